"""What the targets of a comparison did in other runs: how much their figures vary from run to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from assay.insight.differences import VALUE_MIN, BetweenRuns, ComparedSide, same_point
from assay.record.figures import Figure, pooled
from assay.record.intervals import BETWEEN_RUNS
from assay.record.points import CUT_SHORT
from assay.record.shapes.point import Point

FREEDOM_MIN = 2
"""Of three runs; the interval of fewer would be wider than any difference worth asking for."""


class RunSpread(NamedTuple):
    """Standard deviation of the logarithm between runs, its degrees of freedom, and the runs it is of; 0: assumed."""

    deviation: float
    freedom: float
    runs: int = 0

    @property
    def told(self) -> BetweenRuns:
        """As a difference tells it."""
        return self.deviation, self.runs


class History:
    """Runs other than those compared; each side holds the runs of one target."""

    def __init__(self, sides: Sequence[ComparedSide]) -> None:
        self.sides = sides

    @cached_property
    def _points(self) -> list[dict[str, list[list[Point]]]]:
        return [points_by_load(side) for side in self.sides]

    def of_point(self, figure: Figure, key: str) -> RunSpread:
        """How much a figure varies from run to run at one load of one workload."""
        return spread([[known_value(figure, points) for points in by_key.get(key, [])] for by_key in self._points])


def points_by_load(side: ComparedSide) -> dict[str, list[list[Point]]]:
    """Points of a side by workload and load, those of a run together; without those that say nothing of the target."""
    found: dict[str, list[list[Point]]] = {}
    for run in side.runs:
        own: dict[str, list[Point]] = {}
        for point in run.points:
            if point.get("ended_by") not in CUT_SHORT and not (point.get("generator") or {}).get("saturated"):
                own.setdefault(same_point(point), []).append(point)
        for key, points in own.items():
            found.setdefault(key, []).append(points)
    return found


def spread(sides: Sequence[Sequence[float | None]]) -> RunSpread:
    """How much values of one target vary, their variance pooled over targets; what is assumed where too few are known.

    Examples
    --------
    >>> spread([[100.0, 110.0, 121.0]]).runs, spread([[100.0, 110.0]])
    (3, RunSpread(deviation=0.12, freedom=3.0, runs=0))
    """
    logs = [[math.log(value) for value in side if value is not None and value >= VALUE_MIN] for side in sides]
    freedom = sum(max(len(side) - 1, 0) for side in logs)
    squares = sum(_squares(side) for side in logs)
    if freedom < FREEDOM_MIN or squares == 0:
        return RunSpread(*BETWEEN_RUNS)
    return RunSpread(math.sqrt(squares / freedom), freedom, sum(len(side) for side in logs if len(side) > 1))


def _squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values) if values else 0.0
    return sum((value - mean) ** 2 for value in values)


def known_value(figure: Figure, points: Sequence[Point]) -> float | None:
    """A figure over repeats of a point; None where nothing was measured."""
    value = pooled(figure, points)
    return value if value is not None and value >= VALUE_MIN else None
