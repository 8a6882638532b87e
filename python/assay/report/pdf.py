"""The report as PDF, typeset by typst with the fonts it carries."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Document,
    FactList,
    FigureElement,
    Heading,
    Notice,
    Paragraph,
    Table,
)
from assay.document.references import Numbers, numbers_of, spans_of
from assay.document.text import breakable, cut

PAPER_PIXELS = 664.0
"""Pixels a figure may be wide to fill the text width of a page; smaller figures keep their proportion."""

RUNNING_LETTERS = 70
"""Letters of the title that fit above every page of a paper."""

_FONT = "Libertinus Serif"
_SUSPECTS = b"/Suspects false"
"""The default, written out: poppler takes it for a value of the wrong type. Blanks keep the places of all objects."""


def pdf_report(document: Document, drawings: Mapping[str, str]) -> bytes:
    """Typeset the report.

    No text of the run ever becomes typst source: it travels as one JSON value that the template reads, and typst
    shows strings as they are.

    Parameters
    ----------
    document : Document
        What to say.
    drawings : mapping of str to str
        SVG of each figure, by name.

    Raises
    ------
    AssayError
        typst refused the document.
    """
    import typst

    from assay.base.errors import AssayError

    numbers = numbers_of(document)
    content = _for_paper(document, numbers)
    content["running_title"] = _fit(cut(document.title, RUNNING_LETTERS))
    for section, made in zip(document.sections, content["sections"], strict=True):
        made["title"] = _fit(numbers.title(section.name, section.title))
        with_text = _with_text(section.blocks)
        for block, shown, has_text in zip(section.blocks, made["blocks"], with_text, strict=True):
            if isinstance(block, FigureElement | Table):
                shown["label"] = numbers.labels.get(block.name, "")
            if isinstance(block, FigureElement):
                shown["svg"] = _with_font(printable(drawings[block.name]))
                shown["width_share"] = min(1.0, _width_pixels(shown["svg"]) / PAPER_PIXELS)
                if document.is_paper:
                    shown["width_share"] = _paper_share(shown["svg"], shown["width_share"])
                else:
                    shown["width_share"] = report_share(shown["svg"], shown["width_share"])
                is_tall = _tall(shown["svg"]) * shown["width_share"] > FLOATS_SHARE
                shown["floats"] = document.is_paper and is_tall and has_text
            elif isinstance(block, Table):
                shown["places"] = [[place for _, place in row] for row in block.placed()]
    template = files("assay.report").joinpath("templates", "report.typ").read_bytes()
    fonts = typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)
    compiler = typst.Compiler(template, font_paths=fonts, sys_inputs={"report": json.dumps(content)})
    try:
        pdf = compiler.compile(format="pdf")
    except typst.TypstError as error:
        raise AssayError(
            f"report.pdf: typst refused the document: {error.message}; report.html has the same content"
        ) from error
    assert isinstance(pdf, bytes)
    return pdf.replace(_SUSPECTS, b" " * len(_SUSPECTS))


def _for_paper(value: Any, numbers: Numbers) -> Any:
    """Plain values of a document, its texts fit for the embedded fonts and for narrow columns; charts are left out.

    A text that may refer to something is a list of spans.
    """
    if isinstance(value, str):
        return _fit(value)
    if isinstance(value, (list, tuple)):
        return [_for_paper(item, numbers) for item in value]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name != "chart"]
        return {name: _field(value, name, numbers) for name in names}
    return value


_KEPT = ("name", "kind", "tone", "point_id", "anchor")
"""Words of the template, not of the reader."""

_PROSE = {
    (Paragraph, "text"), (Bullets, "items"), (Notice, "text"), (Table, "caption"), (FigureElement, "caption"),
    (FactList, "items"), (Cell, "text"),
}  # fmt: skip
"""Fields whose texts may refer to something."""


def _field(value: Any, name: str, numbers: Numbers) -> Any:
    own = getattr(value, name)
    if name in _KEPT:
        return own
    return _with_spans(own, numbers) if (type(value), name) in _PROSE else _for_paper(own, numbers)


def _with_spans(value: Any, numbers: Numbers) -> Any:
    if isinstance(value, str):
        return [{"text": _fit(span.text), "target": span.target} for span in spans_of(value, numbers)]
    return [_with_spans(item, numbers) for item in value]


def _fit(text: str) -> str:
    return breakable(printable(text))


def printable(text: str) -> str:
    r"""Text in letters the embedded fonts have; others, which would print as boxes, as escapes.

    Latin, Greek and Cyrillic are covered, as is the punctuation the report itself uses.

    Examples
    --------
    >>> printable("/daten/größe"), printable("数")
    ('/daten/größe', '\\u6570')
    """
    return "".join(
        letter if ord(letter) < 0x530 or 0x2010 <= ord(letter) < 0x2800 else f"\\u{ord(letter):04x}" for letter in text
    )


FIGURE_SHARE, TALLEST_SHARE, FLOATS_SHARE = 0.88, 0.95, 0.36
"""In papers, as shares of the text's width: how much smaller figures are than in reports, their height at most, and the
height from which they float."""
REPORT_TALLEST_SHARE = 1.2
"""Height of a figure of a report at most, as a share of the text's width: heading and text find room above it."""


def report_share(svg: str, share: float) -> float:
    """Width of a figure of a report, as a share of the text's: one that is tall is narrower.

    Examples
    --------
    >>> report_share('<svg width="500" height="400">', 1.0), report_share('<svg width="500" height="1000">', 1.0)
    (1.0, 0.6)
    """
    tall = _tall(svg)
    return min(share, REPORT_TALLEST_SHARE / tall) if tall else share


def _paper_share(svg: str, share: float) -> float:
    """Width of a figure of a paper: smaller, so that it finds room below its text, and never nearly a page tall."""
    tall = _tall(svg)
    return min(share * FIGURE_SHARE, TALLEST_SHARE / tall) if tall else share * FIGURE_SHARE


def _with_text(blocks: Sequence[Block]) -> list[bool]:
    """Whether the heading above each block has text or a table below it: else it would be left without its figure."""
    groups: list[list[Block]] = [[]]
    for block in blocks:
        if isinstance(block, Heading):
            groups.append([])
        groups[-1].append(block)
    return [any(not isinstance(one, FigureElement | Heading) for one in group) for group in groups for _ in group]


def _tall(svg: str) -> float:
    """Height of a figure as a share of its width; 0 where it is not known."""
    height = re.search(r'<svg [^>]*?\bheight="([0-9.]+)"', svg)
    return float(height[1]) / _width_pixels(svg) if height else 0.0


def _width_pixels(svg: str) -> float:
    match = re.search(r'<svg [^>]*?\bwidth="([0-9.]+)"', svg)
    return float(match[1]) if match else PAPER_PIXELS


def _with_font(svg: str) -> str:
    """SVG in the font of the page: the fonts of a browser are not there, and nothing outside is read."""
    return re.sub(r'font-family="[^"]*"', f'font-family="{_FONT}"', svg)
