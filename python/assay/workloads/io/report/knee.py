"""The knee of a measured curve: the load beyond which latency rises faster than throughput.

Kneedle of V. Satopaa, J. Albrecht, D. Irwin and B. Raghavan, "Finding a 'Kneedle' in a Haystack: Detecting Knee Points
in System Behavior", ICDCS Workshops 2011. A knee is a measured point here, never an interpolated one, so the paper's
first step (a smoothing spline) is left out: a search keeps some ten points a curve, too few to smooth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MIN_POINTS = 5
"""Fewer points cannot show a bend on both sides of a local maximum and its neighbours."""

MIN_RISE = 1.5
"""A curve whose latency rises less than by half is called flat: scaling it to the unit square would magnify noise."""


@dataclass(frozen=True)
class Knee:
    """A knee: the position in the sequences given, its throughput and its latency.

    Attributes
    ----------
    position : int
        Index into the sequences that were given.
    iops : float
        I/Os per second at the knee.
    latency_ns : float
        Latency at the knee, nanoseconds.
    """

    position: int
    iops: float
    latency_ns: float


def kneedle(x: Sequence[float], y: Sequence[float], *, sensitivity: float = 1.0) -> int | None:
    """Position of the most prominent knee of an increasing, convex curve.

    Parameters
    ----------
    x, y : sequence of float, shape (n,)
        The curve; `x` increases strictly.
    sensitivity : float
        S of the paper: how many mean steps of `x` the difference curve must fall below its maximum.

    Returns
    -------
    int or None
        Index into `x`, or None when no local maximum passes the threshold.

    Raises
    ------
    ValueError
        The sequences differ in length or `x` does not increase strictly.

    Examples
    --------
    >>> kneedle([0, 1, 2, 3, 4, 5], [0, 0.1, 0.2, 0.3, 0.4, 5])
    4
    >>> kneedle([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]) is None
    True
    """
    if len(x) != len(y):
        raise ValueError(f"a curve needs as many x as y; got {len(x)} and {len(y)}")
    if any(after <= before for before, after in pairwise(x)):
        raise ValueError("the x of a curve must increase strictly")
    if len(x) < 3 or max(y) <= min(y):
        return None
    width, low, height = x[-1] - x[0], min(y), max(y) - min(y)
    # A convex curve is the concave curve of the paper turned by half a circle, which turns its difference
    # y' - x' into x - y on the unit square.
    difference = [(a - x[0]) / width - (b - low) / height for a, b in zip(x, y, strict=True)]
    step = sensitivity / (len(x) - 1)
    knees = [at for at in _local_maxima(difference) if _falls_below(difference, at, difference[at] - step)]
    return max(knees, key=lambda at: difference[at], default=None)


def _local_maxima(values: Sequence[float]) -> list[int]:
    inner = range(1, len(values) - 1)
    return [at for at in inner if values[at] > values[at - 1] and values[at] >= values[at + 1]]


def _falls_below(values: Sequence[float], maximum: int, threshold: float) -> bool:
    """Whether the values after a maximum fall below its threshold before they rise above the maximum again."""
    for value in values[maximum + 1 :]:
        if value < threshold:
            return True
        if value > values[maximum]:
            return False
    return False


def find_knee(iops: Sequence[float], latency_ns: Sequence[float], *, sensitivity: float = 1.0) -> Knee | None:
    """Knee of a curve of latency against throughput, in the order of rising load.

    Points at which throughput did not rise above every smaller load are past saturation, where latency is no longer
    a function of throughput; they take no part.

    Parameters
    ----------
    iops : sequence of float, shape (n,)
        I/Os per second, in the order of rising load.
    latency_ns : sequence of float, shape (n,)
        Latency at the same loads, nanoseconds.
    sensitivity : float
        S of the paper; larger is stricter.

    Returns
    -------
    Knee or None
        None when there are fewer than `MIN_POINTS` usable points, when latency rises by less than the factor
        `MIN_RISE`, or when the curve has no knee.

    Raises
    ------
    ValueError
        The sequences differ in length.

    Examples
    --------
    >>> find_knee([1000, 1900, 3500, 4600, 4900, 5000], [1e6, 1.1e6, 1.2e6, 1.8e6, 6e6, 13e6]).iops
    4600
    """
    if len(iops) != len(latency_ns):
        raise ValueError(f"a curve needs as many IOPS as latencies; got {len(iops)} and {len(latency_ns)}")
    rising: list[int] = []
    for position, value in enumerate(iops):
        if not rising or value > iops[rising[-1]]:
            rising.append(position)
    if len(rising) < MIN_POINTS:
        return None
    latencies = [latency_ns[at] for at in rising]
    if min(latencies) <= 0 or max(latencies) < MIN_RISE * min(latencies):
        return None
    found = kneedle([iops[at] for at in rising], latencies, sensitivity=sensitivity)
    if found is None:
        return None
    return Knee(rising[found], iops[rising[found]], latencies[found])
