"""The one search: measures what its curve wants next, until the answer stands.

It serves every axis, outstanding I/Os, rate or users, and every objective. It goes upward from low load, so that a slow
device is never flooded, and keeps every point. `assay.run.bracket` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.record.figures import Figure
from assay.record.shapes.point import Point
from assay.run.bracket import LoadReading, SearchCurve
from assay.workloads.steps import Axis

Measure = Callable[[float, str, int], Point]
"""Measures a point: load, purpose (`search`, `repeat`), repeat number."""

Read = Callable[[Point], LoadReading]
"""What a point says of its load."""


def search(axis: Axis, measure: Measure, read: Read, *, figures: Sequence[Figure], repeats: int = 1) -> dict[str, Any]:
    """Search one axis; returns an answer as in docs/results.md without its workload.

    Parameters
    ----------
    axis
        What is varied, and how finely.
    measure
        Called once for every point, in the order it is wanted.
    read
        Says how far a point is from its limits.
    repeats
        How often the loads that the answer rests on are measured again at least; undecided ones up to
        `REPEATS_FACTOR` times as often.
    figures
        Those of the kind; the first is maximised.
    """
    curve = SearchCurve(axis=axis, figures=figures, repeats=repeats)
    while (load := curve.next_load()) is not None:
        repeat = len(curve.points.get(load, ()))
        point = measure(abs(load), "repeat" if repeat else "search", repeat)
        curve.add(load, point, read(point))
    return curve.answer()
