"""A point in one row: what a list of points shows of it, whatever its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from assay.document.text import load_size
from assay.record.figures import value_of
from assay.record.points import load_text
from assay.workloads.registry import figures_of


def point_row(point: Mapping[str, Any]) -> dict[str, Any]:
    """What a list shows of a point.

    Returns
    -------
    dict
        `id`, `part`, `name`, `load` in words, `size` of the load as a number, `figures` with name, title, unit, value
        and words, `met`, `missed` limits, `ended_by`, `errors` and when it was measured.
    """
    figures = [
        {"name": figure.name, "title": figure.title, "unit": figure.unit, "value": value, "text": figure.words(value)}
        for figure in figures_of(point)
        if figure.compared and (value := value_of(figure, point)) is not None and math.isfinite(value)
    ]
    limits = [one for one in point.get("limits") or [] if isinstance(one, Mapping)]
    workload = point.get("workload") or {}
    return {
        "id": str(point.get("id") or ""),
        "part": str(point.get("part") or ""),
        "kind": str(workload.get("kind") or ""),
        "name": str(workload.get("name") or workload.get("kind") or ""),
        "load": load_text(point.get("load") or {}),
        "size": load_size(point.get("load") or {}),
        "figures": figures[:FIGURES_MAX],
        "met": point.get("met"),
        "missed": [str(one.get("limit")) for one in limits if one.get("met") is False][:FIGURES_MAX],
        "ended_by": str(point.get("ended_by") or ""),
        "errors": int((point.get("errors") or {}).get("count") or 0),
        "from_utc_ns": point.get("measured_from_utc_ns"),
        "to_utc_ns": point.get("measured_to_utc_ns"),
    }


FIGURES_MAX = 8
