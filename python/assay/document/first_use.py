"""Words that a reader may not know: each is explained where a document, or the answer on a terminal, uses it first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from assay.document.elements import Block, Bullets, FactList, FigureElement, Notices, Paragraph, Section, Table
from assay.record.figures import Figure

_OF_ITS_OWN = r"(?<![\w./:=?&-])", r"(?![\w/=-]|[.:]\w)"
"""Around a word that is no part of a name, a path or an option."""


@dataclass(frozen=True)
class Term:
    """A word, its forms as a pattern, its meaning, and what a text says that explains it already."""

    word: str
    forms: str
    meaning: str
    told: str

    def found(self, text: str) -> re.Match[str] | None:
        """Where a text uses the word first."""
        return re.search(self.forms.join(_OF_ITS_OWN), text)


TERMS = (
    Term("knee", "[Kk]nees?", "the smallest load with 95 % of the most", "smallest load"),
    Term("edge", "[Ee]dges?", "the largest load within the limits", "largest load"),
    Term("member", "[Mm]embers?", "one array of a group", "array of (a|the) group"),
    Term("generator", "[Gg]enerator", "the part of Assay that makes the load", "makes the load"),
)
"""Words of every kind of workload; docs/glossary.md has them as well."""

KNOWN = ("IOPS",)
"""Abbreviations that every reader knows."""


def terms_of(figures: Iterable[Figure]) -> list[Term]:
    """Abbreviations that figures have as their titles."""
    return [
        Term(one.title, re.escape(one.title), one.full, one.full.replace(" per ", " (per|an?|in an?) "))
        for one in figures
        if one.full and one.title.isupper() and one.title not in KNOWN
    ]


@dataclass
class FirstUses:
    """The words that a document has used so far; blocks are to come in the order in which they are read."""

    terms: Sequence[Term] = TERMS
    used: list[Term] = field(default_factory=list)

    def explained(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield blocks with an explanation where one of them uses a word first; headings are left as they are."""
        for block in blocks:
            match block:
                case Paragraph():
                    yield replace(block, text=self._told(block.text))
                case Bullets():
                    yield Bullets([*map(self._told, block.items)])
                case Notices():
                    yield Notices([replace(one, text=self._told(one.text)) for one in block.items])
                case FactList(name="glossary"):
                    yield replace(block, items=block.items + self._missing({word for word, _ in block.items}))
                case FactList():
                    yield replace(block, items=[*map(self._fact, block.items)])
                case Table():
                    yield replace(block, caption=self._caption(block))
                case FigureElement():
                    yield replace(block, caption=self._told(block.caption))
                case _:
                    yield block

    def _told(self, text: str) -> str:
        """The text with each new word's meaning behind it."""
        for term in self._new(text):
            found = term.found(text)
            if found is None or re.search(term.told, text):
                continue
            meaning = term.meaning if found[0].lower() == term.word.lower() else f"{term.word}: {term.meaning}"
            before, after = text[: found.end()], text[found.end() :]
            if after.startswith(" ("):
                text = f"{before} ({meaning}; {after[2:]}"
            elif before.count("(") > before.count(")"):
                text = f"{before} [{meaning}]{after}"
            else:
                text = f"{before} ({meaning}){after}"
        return text

    def _fact(self, fact: tuple[str, str]) -> tuple[str, str]:
        """A name and its value, which explains new words of both."""
        name, value = fact
        notes = self._notes(name)
        return name, self._told(value) + (f" ({notes})" if notes else "")

    def _caption(self, table: Table) -> str:
        """A table's caption, which explains new words of its headings and cells, too."""
        caption = self._told(table.caption)
        texts = [column.title for column in table.columns] + [cell.text for row in table.rows for cell in row]
        notes = self._notes("\n".join(texts))
        if not notes:
            return caption
        stop = "." if caption and caption[-1] not in ".?!" else ""
        return f"{caption}{stop} {notes[0].upper()}{notes[1:]}.".strip()

    def _notes(self, text: str) -> str:
        return "; ".join(f"{term.word}: {term.meaning}" for term in self._new(text))

    def _new(self, text: str) -> list[Term]:
        found = [term for term in self.terms if term not in self.used and term.found(text)]
        self.used += found
        return found

    def _missing(self, listed: set[str]) -> list[tuple[str, str]]:
        return [(term.word, term.meaning) for term in self.used if term.word not in listed]


def explained(sections: Iterable[Section], figures: Iterable[Figure] = ()) -> list[Section]:
    """Explain words, and titles of figures, in the sections of a document."""
    uses = FirstUses([*TERMS, *terms_of(figures)])
    return [replace(section, blocks=[*uses.explained(section.blocks)]) for section in sections]
