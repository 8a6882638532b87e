"""Scores by the specification's formulas (clause 5.4), under names that are not its metrics'."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from assay.workloads.tpch.shapes import RunScores

QUERIES_COUNT = 22
TESTS: tuple[Literal["power", "throughput"], ...] = ("power", "throughput")
RESOLUTION_S = Decimal("0.1")
"""Intervals are rounded to this, halves up, and at least this (clause 5.3.7)."""
RANGE_MAX = 1000
"""No query of the power test counts for less than the longest query divided by this (clause 5.4.1.4)."""


def rounded(seconds: float) -> float:
    """An interval as the formulas take it.

    Examples
    --------
    >>> rounded(0.04), rounded(0.25), rounded(23.74), rounded(23.75)
    (0.1, 0.3, 23.7, 23.8)
    """
    return float(max(Decimal(str(seconds)).quantize(RESOLUTION_S, ROUND_HALF_UP), RESOLUTION_S))


def power_score(queries: Mapping[int, float], rf1_s: float, rf2_s: float, *, scale: float) -> float | None:
    """3600 x scale over the geometric mean of the queries and the refresh functions (clause 5.4.1).

    Parameters
    ----------
    queries
        Seconds of each query.
    rf1_s, rf2_s
        Seconds of the refresh functions.

    Returns
    -------
    float or None
        None unless all queries are there.
    """
    if len(queries) != QUERIES_COUNT:
        return None
    intervals = [rounded(seconds) for seconds in queries.values()]
    # The least is an interval too, and rounded; refresh functions are not raised to it.
    least = rounded(max(intervals) / RANGE_MAX)
    raised = [*(max(interval, least) for interval in intervals), rounded(rf1_s), rounded(rf2_s)]
    return 3600 * scale / math.exp(sum(map(math.log, raised)) / len(raised))


def throughput_score(streams: int, seconds: float, *, scale: float) -> float:
    """Queries per hour of all streams times the scale (clause 5.4.2)."""
    return streams * QUERIES_COUNT * 3600 / rounded(seconds) * scale


def composite_score(power: float, throughput: float) -> float:
    """The geometric mean of both (clause 5.4.3).

    Examples
    --------
    >>> composite_score(400.0, 100.0)
    200.0
    """
    return math.sqrt(power * throughput)


def run_that_counts(runs: Sequence[RunScores]) -> RunScores:
    """Of several runs of the same tests the one with the lowest score; one without a score comes before all.

    The specification reports the lower of two runs.

    Examples
    --------
    >>> run_that_counts([{"power": 9.0, "throughput": 4.0}, {"power": 8.0, "throughput": 4.0}])["power"]
    8.0
    """
    return min(runs, key=lambda run: math.prod(run[test] or 0.0 for test in TESTS if test in run))
