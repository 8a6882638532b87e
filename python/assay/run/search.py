"""Finding the largest load whose point meets the limits.

One search serves every axis, outstanding I/Os, rate or users, and every objective. It goes upward from low load,
so that a slow device is never flooded, keeps every point as the curve, narrows the bracket between the largest load
that passes and the smallest that fails, and repeats both ends before it answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.results.figures import Figure, end_figures
from assay.results.shapes.point import Point
from assay.results.steady import half_width_95
from assay.workloads.workload import Axis

Measure = Callable[[float, str, int], Point]
"""Measures a point: load, purpose (`search`, `repeat`), repeat number."""

Reason = Callable[[Point], str | None]
"""Why a point fails, or None when it passes."""


@dataclass
class Curve:
    """All points of one search, by load."""

    axis: Axis
    reason: Reason
    figures: Sequence[Figure]
    points: dict[float, list[Point]] = field(default_factory=dict)

    def add(self, load: float, point: Point) -> None:
        """Keep a point."""
        self.points.setdefault(load, []).append(point)

    def failure(self, load: float) -> str | None:
        """Why a load fails: the first reason when at least half of its points fail."""
        reasons = [self.reason(point) for point in self.points[load]]
        failed = [reason for reason in reasons if reason]
        return failed[0] if len(failed) * 2 >= len(reasons) and failed else None

    def passing(self) -> list[float]:
        """Loads that pass, ascending."""
        return sorted(load for load in self.points if self.failure(load) is None)

    def failing(self) -> list[float]:
        """Loads that fail, ascending."""
        return sorted(load for load in self.points if self.failure(load) is not None)

    def pooled(self, load: float) -> float:
        """Mean throughput of all points at a load."""
        points = self.points[load]
        return sum(self.value(point) for point in points) / len(points)

    def value(self, point: Point) -> float:
        """Throughput of a point; 0 where it has none."""
        return self.figures[0].value(point) or 0.0

    @property
    def is_non_monotone(self) -> bool:
        """Whether a load fails below one that passes."""
        return any(load < passed for load in self.failing() for passed in self.passing())


def search(
    axis: Axis, measure: Measure, reason: Reason, *, figures: Sequence[Figure], repeats: int = 1
) -> dict[str, Any]:
    """Search one axis; returns an answer as in docs/results.md without its workload.

    Parameters
    ----------
    axis
        What is varied, and how finely.
    measure
        Called once for every point, in the order it is wanted.
    reason
        Says why a point fails.
    repeats
        How often each end of the bracket is measured again.
    figures
        Those of the kind; the first is maximised.
    """
    curve = Curve(axis=axis, reason=reason, figures=figures)
    stopped_by = _climb(curve, measure)
    if stopped_by is None:
        _narrow(curve, measure)
    for repeat in range(1, repeats + 1):
        for load in _bracket(curve):
            curve.add(load, measure(load, "repeat", repeat))
    return _answer(curve, stopped_by)


def _climb(curve: Curve, measure: Measure) -> str | None:
    """Double the load until it fails, throughput stops rising, or the axis ends; the latter two are named."""
    axis = curve.axis
    load = axis.start
    best = 0.0
    without_gain = 0.0
    while True:
        point = measure(load, "search", 0)
        curve.add(load, point)
        if curve.failure(load) is not None:
            return None
        value = curve.value(point)
        gains = value >= best * (1 + axis.plateau_share)
        without_gain = 0.0 if gains else without_gain + _witness(point)
        best = max(best, value)
        if axis.stops_at_plateau and without_gain >= 2:
            return "saturation"
        if load >= axis.end:
            return "axis end"
        load = min(load * 2, axis.end)


def _witness(point: Point) -> float:
    """How much a point without gain says of a plateau: one that was not steady may just have met a bad moment."""
    return 0.5 if (point.get("steady") or {}).get("reached") is False else 1.0


def _narrow(curve: Curve, measure: Measure) -> None:
    """Halve the bracket until its ends are as near as the axis asks."""
    axis = curve.axis
    while True:
        passing, failing = curve.passing(), curve.failing()
        if not passing or not failing:
            return
        low, high = passing[-1], min((load for load in failing if load > passing[-1]), default=passing[-1])
        middle = float(int((low + high) / 2)) if axis.whole else (low * high) ** 0.5
        if middle in curve.points or high - low <= axis.resolution_share * high:
            return
        curve.add(middle, measure(middle, "search", 0))


def _bracket(curve: Curve) -> list[float]:
    """The largest load that passes and the smallest above it that fails."""
    ends = []
    best = _best(curve)
    if best is not None:
        ends.append(best)
    above = [load for load in curve.failing() if best is None or load > best]
    return ends + above[:1]


def _best(curve: Curve) -> float | None:
    """The largest passing load, or at a plateau the one of highest throughput among those that pass."""
    passing = curve.passing()
    if not passing:
        return None
    if any(load > passing[-1] for load in curve.failing()):
        return passing[-1]
    return max(passing, key=curve.pooled)


def _answer(curve: Curve, stopped_by: str | None) -> dict[str, Any]:
    best = _best(curve)
    failing = [load for load in curve.failing() if best is None or load > best]
    limited_by = stopped_by
    if failing:
        limited_by = curve.failure(failing[0])
    return {
        "axis": curve.axis.name,
        "point_ids": [point["id"] for load in sorted(curve.points) for point in curve.points[load]],
        "max": None if best is None else _end(curve, best),
        "first_failing": _end(curve, failing[0]) if failing else None,
        "limited_by": limited_by,
        "interval_95": None if best is None else _interval_95(curve, best, failing[0] if failing else None),
        "non_monotone": curve.is_non_monotone,
    }


def _end(curve: Curve, load: float) -> dict[str, Any]:
    points = curve.points[load]
    return {
        curve.axis.name: int(load) if curve.axis.whole else load,
        **end_figures(curve.figures, points),
        "point_id": points[0]["id"],
    }


def _interval_95(curve: Curve, best: float, failing: float | None) -> list[float] | None:
    """Batch means at the answer, widened by the spread of repeats and by the bracket.

    The true largest load lies between the ends of the bracket, so the upper bound reaches half-way to the throughput of
    the failing end where that is higher.
    """
    points = curve.points[best]
    mean = curve.pooled(best)
    # Each point has an interval of its own: strung together, a step between repeats would pass for correlation.
    half_widths = [half_width_95(curve.figures[0].batches(point)) for point in points]
    half_width = math.hypot(*half_widths) / len(points)
    if half_width == math.inf:
        return None
    repeats = [curve.value(point) for point in points]
    low = min(mean - half_width, *repeats)
    high = max(mean + half_width, *repeats)
    if failing is not None:
        beyond = curve.pooled(failing)
        high = max(high, mean + (beyond - mean) / 2 + half_width if beyond > mean else high)
    return [max(low, 0.0), high]
