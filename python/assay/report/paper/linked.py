"""Links of chart marks to their source: the mark's point, else the figure's point, else the run."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from assay.document.elements import Document, FigureElement
from assay.report.paper.rewritten import Redrawn

_OF_RUN = re.compile(r"r(\d+)-")
_POINT = re.compile(r"R\d+\.p\d+")
_MARKS = frozenset({"bar", "point", "circle", "square", "rect", "tick", "rule", "arc", "text"})
"""Marks that are one row each."""
_LINES = frozenset({"line", "area"})
"""Marks of many rows, which lead somewhere where all of the figure is of one point."""

LEADS_TO = "leads_to"
"""Field of the data of a chart that says where a mark leads."""


def linked(document: Document) -> Document:
    """A paper whose drawings lead to the points and runs that it introduces."""
    anchors = document.anchors
    sections = [
        replace(
            section, blocks=[_linked(one, anchors) if isinstance(one, FigureElement) else one for one in section.blocks]
        )
        for section in document.sections
    ]
    return replace(document, sections=sections)


def _linked(figure: FigureElement, anchors: Collection[str]) -> FigureElement:
    match = _OF_RUN.match(figure.name)
    run = f"R{match[1]}" if match and f"R{match[1]}" in anchors else None
    point = figure.point_id if figure.point_id in anchors else None
    marks = _MARKS | _LINES if point else _MARKS

    def changed(specification: Any) -> Any:
        return _with_links(specification, point or run, anchors, marks)

    return replace(figure, chart=Redrawn(figure.chart, changed))


def _with_links(value: Any, else_to: str | None, anchors: Collection[str], marks: Collection[str]) -> Any:
    """A specification whose rows say where they lead, and whose marks lead there."""
    if isinstance(value, list):
        return [_with_links(item, else_to, anchors, marks) for item in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: [_row(row, else_to, anchors) for row in item]
        if key == "values" and isinstance(item, list)
        else {name: [_row(row, else_to, anchors) for row in rows] for name, rows in item.items()}
        if key == "datasets" and isinstance(item, dict)
        else _with_links(item, else_to, anchors, marks)
        for key, item in value.items()
    }
    mark = made.get("mark")
    kind = mark.get("type") if isinstance(mark, dict) else mark
    if kind in marks:
        own = mark if isinstance(mark, dict) else {"type": kind}
        made["mark"] = {**own, "href": {"expr": f"datum['{LEADS_TO}'] || null"}}
    return made


def _row(row: Any, else_to: str | None, anchors: Collection[str]) -> Any:
    if not isinstance(row, dict):
        return row
    named = [text for value in row.values() for text in (value if isinstance(value, list) else [value])]
    known = [text for text in named if isinstance(text, str) and _POINT.fullmatch(text) and text in anchors]
    to = known[0] if known else else_to
    return {**row, LEADS_TO: f"#point-{to}"} if to else row
