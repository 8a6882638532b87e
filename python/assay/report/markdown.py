"""The report as Markdown (CommonMark with GitHub's tables), for wikis and repositories; figures are files beside it.

Every text is escaped: none of it becomes markup, a link or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assay.document.elements import Block, Cell, Document, FigureElement, Table
from assay.document.references import Numbers, numbers_of, spans_of
from assay.report.files import MARK

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]#!|~^$@])")
_BEGINS = re.compile(r"^(\s*)([-+=](?=[-+=\s]|$)|\d+(?=[.)](\s|$)))")


def markdown_report(document: Document, figures_folder: str) -> str:
    """Build the text.

    Parameters
    ----------
    document
        What to say; all of it is escaped.
    figures_folder
        Name of the folder beside the file in which the SVG of each figure is, by its name.
    """
    numbers = numbers_of(document)
    lines = [f'<!-- {MARK}{_comment(document.version)}"> -->', "", f"# {escaped(document.title)}", ""]
    for text in (document.subtitle, document.authors, document.facts_line):
        lines += [escaped(text), ""] if text else []
    if document.is_paper:
        lines += ["## Contents", ""]
        lines += [
            f"- [{escaped(numbers.title(section.name, section.title))}](#{section.name})"
            for section in document.sections
        ]
        lines.append("")
    for section in document.sections:
        title = escaped(numbers.title(section.name, section.title))
        lines += [f'<a id="{section.name}"></a>', "", f"## {title}", ""]
        for block in section.blocks:
            lines += [*_block(block, numbers, figures_folder), ""]
    lines += ["---", "", escaped(document.footer)]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return re.sub(r"[^\w.+ ]", "", text)


def escaped(text: str) -> str:
    r"""A text without markup: what Markdown would read as such is escaped.

    Examples
    --------
    >>> print(escaped("*bold* <b> [a](b) | # 1"))
    \*bold\* &lt;b&gt; \[a\](b) \| \# 1
    >>> print(escaped("1. https://x.example - y"))
    1\. https&#58;//x.example - y
    """
    text = _PUNCTUATION.sub(r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    # GitHub makes links of what looks like one.
    text = re.sub(r"(?i)\bwww\.", "www&#46;", text.replace("://", "&#58;//"))
    text = re.sub(r"(?i)\b(mailto|xmpp):", r"\1&#58;", text)
    begun = _BEGINS.match(text)
    if begun is None:
        return text
    # A number and a dot at the beginning would be a list, a dash one too.
    at = begun.end()
    return text[:at] + "\\" + text[at:] if begun[2].isdecimal() else text[: at - 1] + "\\" + text[at - 1 :]


def _prose(text: str, numbers: Numbers) -> str:
    """A text with its links."""
    shown = []
    for number, span in enumerate(spans_of(text, numbers)):
        words = escaped(span.text) if number == 0 else escaped(f"x{span.text}")[1:]
        shown.append(f"[{words}](#{span.target})" if span.target else words)
    return "".join(shown)


def _block(block: Block, numbers: Numbers, folder: str) -> Iterator[str]:
    match block.kind:
        case "paragraph":
            text = _prose(block.text, numbers)
            yield f"**{text}**" if block.strong and text.strip() else text
        case "heading":
            yield f"### {escaped(block.text)}"
        case "bullets":
            yield from (f"- {_prose(item, numbers)}" for item in block.items)
        case "notices":
            for notice in block.items:
                word = {"bad": "Problem: ", "warn": "Note: "}.get(notice.tone, "")
                yield f"> {word}{_prose(notice.text, numbers)}"
                yield ">"
        case "facts":
            yield "| | |"
            yield "|---|---|"
            yield from (f"| {_prose(name, numbers)} | {_prose(value, numbers)} |" for name, value in block.items)
        case "figure":
            yield from _figure(block, numbers, folder)
        case "table":
            yield from _table(block, numbers)


def _captioned(block: FigureElement | Table, numbers: Numbers) -> str:
    label = numbers.labels.get(block.name)
    return (f"**{label}.** " if label else "") + _prose(block.caption, numbers)


def _figure(block: FigureElement, numbers: Numbers, folder: str) -> Iterator[str]:
    yield f'<a id="{block.name}"></a>'
    yield ""
    yield f"![{escaped(block.alternative)}]({folder}/{block.name}.svg)"
    yield ""
    yield _captioned(block, numbers)


def _table(block: Table, numbers: Numbers) -> Iterator[str]:
    yield f'<a id="{block.name}"></a>'
    yield ""
    yield _captioned(block, numbers)
    yield ""
    yield f"| {' | '.join(escaped(column.title) for column in block.columns)} |"
    yield f"|{'|'.join('--:' if column.number else '---' for column in block.columns)}|"
    for row in block.placed():
        cells = {place: _cell(cell, numbers) for cell, place in row}
        yield f"| {' | '.join(cells.get(place, '') for place in range(len(block.columns)))} |"


def _cell(cell: Cell, numbers: Numbers) -> str:
    if cell.anchor:
        return f'<a id="point-{cell.anchor}"></a>{escaped(cell.text)}'
    if cell.point_id and cell.point_id in numbers.anchors:
        return f"[{escaped(cell.text)}](#point-{cell.point_id})"
    return _prose(cell.text, numbers)
