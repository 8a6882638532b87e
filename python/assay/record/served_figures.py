"""Figures of a load on a served array that faults happened to: how deep it fell, and how long."""

from __future__ import annotations

from typing import Any

from assay.base.units import format_duration
from assay.record.figures import Figure
from assay.record.shapes.point import Point


def _dip(point: Point, key: str) -> float | None:
    served: list[Any] = list(point.get("served") or ())
    found = next((one["dip"] for one in served if one.get("dip")), None)
    return None if found is None or found.get(key) is None else float(found[key])


FAULT_FIGURES = (
    Figure(
        name="fault_dip_share",
        unit="share",
        title="dip",
        noun="dip after the fault",
        full="share of the load that was lost at the deepest after the fault",
        better="lower",
        value=lambda point: _dip(point, "depth_share"),
        words=lambda value: f"{value * 100:.3g} %",
        compared=False,
        study="fault_dip",
    ),
    Figure(
        name="fault_dip_length_s",
        unit="s",
        title="recovery",
        noun="time from the fault to the recovery",
        full="time from the fault until the load had recovered",
        better="lower",
        value=lambda point: _dip(point, "length_s"),
        words=format_duration,
        compared=False,
        study="fault_recovery",
    ),
)
"""After the first event of a point; None where the load had not recovered, or nothing happened."""
