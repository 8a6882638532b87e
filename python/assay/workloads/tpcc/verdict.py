"""Verdict lines of loading and of checking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.results.shapes.point import VerdictLine
from assay.units import count_of, format_duration


def load_line(load: Mapping[str, Any]) -> VerdictLine:
    """The verdict line of warehouses that were loaded."""
    meaning = f"{load['rows']:,} rows at {load['rows_per_s']:,.0f} rows/s, {format_duration(load['seconds'])} in all"
    meaning += "; the rest of a load that was cut short" if load["resumed"] else ""
    told = f"{count_of(load['warehouses'], 'warehouse')}: {meaning}"
    return VerdictLine(
        question="load", limit=None, value=load["warehouses"], unit="count", met=None, meaning=told, point_id=None
    )


def consistency_line(conditions: Sequence[Mapping[str, Any]]) -> VerdictLine:
    """The verdict line of the consistency conditions of a database (docs/oltp.md): missed on any violation."""
    violated = [condition for condition in conditions if not condition["met"]]
    if violated:
        listed = "; ".join(
            f"condition {condition['id']} ({condition['title']}) {condition['violations']:,} times in"
            f" {condition['database']}"
            for condition in violated
        )
        meaning = f"FAILED: {listed}"
    else:
        count = len({condition["id"] for condition in conditions})
        meaning = f"all {count} conditions hold" + ("" if count == 12 else "; the eleventh holds after loading only")
    value = sum(condition["violations"] for condition in conditions)
    return VerdictLine(
        question="consistency", limit=None, value=value, unit="count", met=not violated, meaning=meaning, point_id=None
    )
