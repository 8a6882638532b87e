"""Blocks whose texts are changed after they are made: other names, other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from assay.document.elements import (
    Block,
    Bullets,
    Chart,
    FactList,
    FigureElement,
    Heading,
    Notices,
    Paragraph,
    Specification,
    Table,
)

_DRAWN = ("title", "text", "format", "labelExpr")

Change = Callable[[str], str]


def rewritten(block: Block, text: Change) -> Block:
    """A block whose every text went through a function."""
    match block:
        case Paragraph() | Heading():
            return replace(block, text=text(block.text))
        case Bullets():
            return replace(block, items=[text(item) for item in block.items])
        case FactList():
            return replace(block, items=[(text(name), text(value)) for name, value in block.items])
        case Notices():
            return replace(block, items=[replace(notice, text=text(notice.text)) for notice in block.items])
        case Table():
            return replace(
                block,
                caption=text(block.caption),
                columns=[replace(column, title=text(column.title)) for column in block.columns],
                rows=[[replace(cell, text=text(cell.text)) for cell in row] for row in block.rows],
            )
        case FigureElement():
            return replace(
                block,
                caption=text(block.caption),
                alternative=text(block.alternative),
                chart=Redrawn(block.chart, lambda value: _changed(value, text)),
            )


def _changed(value: Any, text: Change) -> Any:
    """Titles and data of a chart; names of fields and other words of Vega-Lite stay."""
    if isinstance(value, dict):
        return {key: _data(item, text) if key in ("values", "datasets", "domain", "sort") else
                text(item) if key in _DRAWN and isinstance(item, str) else _changed(item, text)
                for key, item in value.items()}  # fmt: skip
    return [_changed(item, text) for item in value] if isinstance(value, list) else value


def _data(value: Any, text: Change) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list):
        return [_data(item, text) for item in value]
    if isinstance(value, dict):
        return {key: _data(item, text) for key, item in value.items()}
    return value


class Redrawn:
    """A chart whose specification is changed when it is drawn."""

    def __init__(self, chart: Chart, change: Callable[[Specification], Specification]) -> None:
        self._chart, self._change = chart, change

    def to_dict(self) -> Specification:
        """The specification, changed."""
        return self._change(self._chart.to_dict())
