"""The one place that puts the measured part of a point together (docs/results.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.measure.window import Window

if TYPE_CHECKING:
    from assay.record.shapes.point import Batches, Generator, Offered, Steady


def measured_point(
    window: Window,
    figures: Mapping[str, Any],
    *,
    generator: Generator | None = None,
    offered: Offered | None = None,
    batches: Batches | Mapping[str, float | Mapping[str, Sequence[float]]] | None = None,
    telemetry: Mapping[str, float | None] | None = None,
    outside: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """Return the measured part of a point.

    Parameters
    ----------
    figures
        Figures of the workload by key: `read`, `total`, `oltp`, ...
    generator, offered
        As of `assay.measure.judge`.
    batches
        As of `Window.batches`; of a kind with a rate of its own, by the key of that.
    outside
        I/Os that ended after the window, and the longest latency among them in ns.
    """
    judged = {"generator": generator, "batches": batches, "telemetry": telemetry, "steady": _steady(window)}
    return {
        "started_utc_ns": window.started_ns,
        "measured_from_utc_ns": window.start_ns,
        "measured_to_utc_ns": window.end_ns,
        "clock": window.clock,
        "warmup_s": window.warmup_s,
        "measured_s": window.seconds,
        "ended_by": window.ended_by,
        **figures,
        "offered": offered,
        "outside_window": {"count": outside[0], "longest_ns": outside[1]},
        **{key: value for key, value in judged.items() if value is not None},
    }


def _steady(window: Window) -> Steady | None:
    steady = window.steady
    if steady is None:
        return None
    half_width = steady.half_width_share
    return {
        "reached": steady.reached,
        "window_s": window.seconds,
        "slope_share": steady.slope_share,
        "half_width_share": None if half_width is None or math.isinf(half_width) else half_width,
    }
