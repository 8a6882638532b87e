"""Makes a paper from its runs: sections by templates, with the user's remarks, renamed where that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from assay.base.units import count_of
from assay.document.elements import Block, Document, Heading, Paragraph, Section
from assay.document.text import joined
from assay.report.head import version_of
from assay.report.paper import appendices, configuration, front, guidance
from assay.report.paper.measured import absent_study, name_of_source, section_of
from assay.report.paper.parts import Draft
from assay.report.paper.reproduction import Reproduction, reproduction
from assay.report.paper.sources import PaperSource
from assay.report.paper.texts import Texts
from assay.report.paper.words import Words, paragraphs

FRONT = ("reproduction", "summary", "objectives", "terms", "configuration", "method")
IN_GUIDANCE = {"sizing": "sizing", "check": "best-practices"}
"""Kinds of sources without a section of their own, and the section that has what they say."""
BACK = ("best-practices", "sizing", "limitations", "settings", "commands", "points", "references")


def paper(
    sources: Sequence[PaperSource], words: Words, texts: Texts, command: str, again: Reproduction | None = None
) -> Document:
    """The document of a paper.

    Parameters
    ----------
    sources
        Its runs.
    words
        What the user says in it.
    texts
        Its templates.
    command
        The command that writes it.
    again
        The published study that the runs make again, if they do.

    Raises
    ------
    UsageError
        A template is wrong, or a study is asked for that there is not.
    """
    sections = [_section(draft, words, texts) for draft in drafts(sources, words, command, again)]
    version = next(filter(None, (version_of(source.manifest) for source in sources)), "")
    target = front.target_words(sources)
    authors = [*(" ".join(name.split()) for name in words.authors)]
    by = [joined(authors)] if authors else []
    by += [f"for {_line(words.customer)}"] if words.customer else []
    made = Document(
        title=_line(words.title) or (again.title if again is not None else _title(sources, target)),
        subtitle=_line(words.subtitle),
        authors=" ".join(by),
        facts_line=_facts_line(sources),
        sections=sections,
        footer=f"Assay {version}".strip(),
        version=version,
        is_paper=True,
    )
    return mapped(made, typeset)


def _title(sources: Sequence[PaperSource], target: str) -> str:
    return sources[0].title if len(sources) == 1 else f"Storage examined: {target}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _facts_line(sources: Sequence[PaperSource]) -> str:
    from assay.report.paper.measured import counted

    count = sum(len(source.facts.points) for source in sources)
    when = front.when(sources)
    rests = f"{counted(sources)} · made {when} · {count_of(count, 'point')}"
    return " · ".join(filter(None, [front.prediction(sources), rests]))


def drafts(
    sources: Sequence[PaperSource], words: Words, command: str, again: Reproduction | None = None
) -> list[Draft]:
    """Every section before its text is made, in order."""
    taken: set[str] = {*FRONT, *BACK}  # names that blocks may not have
    names: dict[str, str] = {}
    for source in sources:
        names[source.number] = IN_GUIDANCE.get(source.kind) or name_of_source(source, taken)
        taken.add(names[source.number])
    target = front.target_words(sources)
    measured = [section_of(source, names[source.number], taken) for source in sources if source.kind not in IN_GUIDANCE]
    held = {str((source.study or {}).get("name")) for source in sources}
    absent = [absent_study(name) for name in dict.fromkeys(words.studies) if name not in held]
    return [
        *([] if again is None else [reproduction(again, sources, names)]),
        front.summary(sources, names, target),
        front.objectives(sources, names, words, target),
        front.terms(sources),
        configuration.configuration(sources, taken),
        configuration.method(sources, taken),
        *measured,
        *absent,
        guidance.best_practices(sources, taken),
        guidance.sizing(sources, taken),
        guidance.limitations(sources, taken),
        appendices.settings(sources, taken),
        appendices.commands(sources, command, taken),
        appendices.points(sources, taken),
        appendices.references(sources, taken),
    ]


def _section(draft: Draft, words: Words, texts: Texts) -> Section:
    blocks = texts.blocks(draft.template, draft.fields, draft.shown)
    said = paragraphs(words.remarks.get(draft.name, ""))
    remarks: list[Block] = [Heading("Remarks"), *(Paragraph(text) for text in said)] if said else []
    return Section(
        draft.name, draft.title, [*blocks, *remarks], wide=draft.wide, lettered=draft.lettered, listed=draft.listed
    )


def typeset(text: str) -> str:
    """A text with the signs that a page has.

    Examples
    --------
    >>> typeset("29 % +- 8 % more")
    '29 % ± 8 % more'
    """
    return text.replace("+-", "\u00b1")


def mapped(document: Document, text: Callable[[str], str]) -> Document:
    """A document whose every text went through a function, those that charts draw included."""
    from assay.report.paper.rewritten import rewritten

    return replace(
        document,
        title=text(document.title),
        subtitle=text(document.subtitle),
        authors=text(document.authors),
        facts_line=text(document.facts_line),
        footer=text(document.footer),
        sections=[
            replace(section, title=text(section.title), blocks=[rewritten(block, text) for block in section.blocks])
            for section in document.sections
        ],
    )
