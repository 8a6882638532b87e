"""What a document shows, by the names of its parts."""

from __future__ import annotations

from typing import Any

from sample import Sample

from assay.document.elements import Document, FactList, Heading, Notices, Paragraph, Section, Table
from assay.record.source import RunFacts
from assay.report import facts as reading
from assay.report.html import html_report
from assay.report.pdf import pdf_report
from assay.report.render import render_figures
from series_rows import series_of

Made = tuple[Sample, dict[str, Any]]
"""A sample and the fields of its manifest."""


def facts_of(made: Made, *, series: bool = False) -> RunFacts:
    sample, fields = made
    rows = series_of(sample.series()) if series else None
    return reading.facts_of({**sample.manifest(), "verb": "assess", **fields}, sample.points, rows)


def pages(document: Document) -> tuple[str, bytes]:
    drawings = render_figures(document)
    return html_report(document, drawings), pdf_report(document, drawings)


def names(document: Document) -> list[str]:
    return [part.name for part in document.sections]


def section(document: Document, name: str) -> Section:
    return next(section for section in document.sections if section.name == name)


def texts(part: Section) -> list[str]:
    return [block.text for block in part.blocks if isinstance(block, (Paragraph, Heading))]


def table(document: Document, name: str) -> Table:
    return next(b for s in document.sections for b in s.blocks if isinstance(b, Table) and b.name == name)


def cells(document: Document, name: str) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table(document, name).rows]


def items(document: Document, name: str) -> dict[str, str]:
    return dict(
        next(b for s in document.sections for b in s.blocks if isinstance(b, FactList) and b.name == name).items
    )


def notices(document: Document) -> list[str]:
    blocks = [block for section in document.sections for block in section.blocks]
    return [notice.text for block in blocks if isinstance(block, Notices) for notice in block.items]
