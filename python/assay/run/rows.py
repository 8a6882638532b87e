"""A point in one row: what a list of points shows of it, whatever its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from assay.document.text import load_axis, load_size
from assay.record.figures import value_of
from assay.record.judgement import WORDS, concerns, met
from assay.record.points import load_text
from assay.record.shapes.point import JudgedLimit
from assay.workloads.registry import figures_of


class FigureTitle(TypedDict):
    """A figure as lists name it, and the base unit of its values."""

    name: str
    title: str
    unit: str


class FigureCell(FigureTitle):
    """A figure of a point: its value in the unit, and in words."""

    value: float
    text: str


class PointHead(TypedDict):
    """A point in a list: its load in words, its `size` as a number of `axis`, how its limits stand in a word, its time.

    Without limits that concern it, `standing` is empty.
    """

    id: str
    part: str
    kind: str
    name: str
    load: str
    size: float
    axis: str
    met: bool | None
    missed: list[str]
    standing: str
    ended_by: str
    errors: int
    from_utc_ns: int | None
    to_utc_ns: int | None


class PointRow(PointHead):
    """A point in a list, with its figures."""

    figures: list[FigureCell]


def point_row(point: Mapping[str, Any]) -> PointRow:
    """What a list shows of a point."""
    figures: list[FigureCell] = [
        {"name": figure.name, "title": figure.title, "unit": figure.unit, "value": value, "text": figure.words(value)}
        for figure in figures_of(point)
        if figure.compared and (value := value_of(figure, point)) is not None and math.isfinite(value)
    ]
    limits = [cast(JudgedLimit, one) for one in point.get("limits") or [] if isinstance(one, Mapping)]
    workload = point.get("workload") or {}
    return {
        "id": str(point.get("id") or ""),
        "part": str(point.get("part") or ""),
        "kind": str(workload.get("kind") or ""),
        "name": str(workload.get("name") or workload.get("kind") or ""),
        "load": load_text(point.get("load") or {}),
        "size": load_size(point.get("load") or {}),
        "axis": load_axis(point.get("load") or {}),
        "figures": figures[:FIGURES_MAX],
        "met": met(limits),
        "standing": WORDS[met(limits)] if any(map(concerns, limits)) else "",
        "missed": [str(one.get("limit")) for one in limits if one.get("met") is False][:FIGURES_MAX],
        "ended_by": str(point.get("ended_by") or ""),
        "errors": int((point.get("errors") or {}).get("count") or 0),
        "from_utc_ns": point.get("measured_from_utc_ns"),
        "to_utc_ns": point.get("measured_to_utc_ns"),
    }


FIGURES_MAX = 8
