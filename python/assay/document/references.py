"""Numbers of sections, figures and tables, and what a text refers to: other blocks, runs and points.

A reference within the document is written by `see`. It stands between two letters of the private use area, which
`results.source.clean` takes out of every text that comes from outside: no name of a file can forge one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.document.elements import Document, FigureElement, Table

_OPEN, _CLOSE = "\ue000", "\ue001"
_SEEN = re.compile(
    f"{_OPEN}(?P<name>[^{_OPEN}{_CLOSE}]*){_CLOSE}"
    r"|(?<![\w.])(?P<point>R\d+\.p\d+)(?!\w)"
    r"|(?<=\[)(?P<runs>R\d+(?:, R\d+)*)(?=\])"
)


@dataclass(frozen=True)
class Span:
    """A piece of a text, and the id of what it leads to."""

    text: str
    target: str | None = None


@dataclass(frozen=True)
class Numbers:
    """Numbers of a document.

    Attributes
    ----------
    sections
        Number or letter of each section, by its name.
    labels
        `Figure 3` or `Table 2` of each block of a paper, by its name; empty for other documents.
    anchors
        Runs and points that can be led to; empty for other documents.
    """

    sections: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    anchors: frozenset[str] = frozenset()

    def title(self, name: str, title: str) -> str:
        """Heading of a section."""
        number = self.sections[name]
        return f"{number}. {title}" if number.isdecimal() else f"Appendix {number}. {title}"

    def caption(self, name: str, caption: str) -> str:
        """Caption of a figure or a table."""
        return f"{self.labels[name]}. {caption}" if name in self.labels else caption


def see(name: str) -> str:
    """A reference to a section, a figure or a table, for any text of the document."""
    return f"{_OPEN}{name}{_CLOSE}"


def numbers_of(document: Document) -> Numbers:
    """Number the sections of a document; in a paper, number figures and tables too."""
    sections: dict[str, str] = {}
    body = appendices = 0
    for section in document.sections:
        if section.lettered:
            appendices += 1
            sections[section.name] = _letter(appendices)
        else:
            body += 1
            sections[section.name] = str(body)
    if not document.is_paper:
        return Numbers(sections)
    labels: dict[str, str] = {}
    counts = {"Figure": 0, "Table": 0}
    for block in (block for section in document.sections for block in section.blocks):
        if isinstance(block, FigureElement | Table):
            kind = "Figure" if isinstance(block, FigureElement) else "Table"
            counts[kind] += 1
            labels[block.name] = f"{kind} {counts[kind]}"
    return Numbers(sections, labels, frozenset(document.anchors))


def _letter(number: int) -> str:
    return chr(64 + number)


def spans_of(text: str, numbers: Numbers) -> list[Span]:
    """A text in pieces, each with what it leads to; what cannot be led to is text."""
    spans: list[Span] = []
    end = 0
    for match in _SEEN.finditer(text):
        if match.start() > end:
            spans.append(Span(text[end : match.start()]))
        spans += _spans(match, numbers)
        end = match.end()
    if end < len(text) or not spans:
        spans.append(Span(text[end:]))
    return spans


def _spans(match: re.Match[str], numbers: Numbers) -> list[Span]:
    name = match["name"]
    if name is not None:
        return [Span(_shown(name, numbers), name if name in numbers.labels or name in numbers.sections else None)]
    if match["runs"]:
        words = match["runs"].split(", ")
        found = [[Span(", ")] * bool(at) + [_anchored(word, numbers)] for at, word in enumerate(words)]
        return [span for pair in found for span in pair]
    return [_anchored(match["point"], numbers)]


def _anchored(name: str, numbers: Numbers) -> Span:
    return Span(name, f"point-{name}" if name in numbers.anchors else None)


def _shown(name: str, numbers: Numbers) -> str:
    if name in numbers.labels:
        return numbers.labels[name]
    number = numbers.sections.get(name)
    if number is None:
        return name
    return f"section {number}" if number.isdecimal() else f"appendix {number}"


def plain_text(text: str, numbers: Numbers) -> str:
    """A text with its references as words."""
    return "".join(span.text for span in spans_of(text, numbers))
