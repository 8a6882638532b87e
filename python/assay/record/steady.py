"""When a point has been measured long enough.

The series of ticks is steady when a straight line through the window neither rises nor falls by more than `SLOPE_SHARE`
of the mean over the window (SNIA Solid State Storage Performance Test Specification 2.0.2: 10 %), and the 95 %
confidence interval of the mean, widened for the correlation of neighbouring ticks, is at most
`HALF_WIDTH_SHARE` to either side.

Rounds of preconditioning are judged as that specification does (`steady_rounds`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from assay.base.tables import Record
from assay.record import student

SLOPE_SHARE = 0.10
HALF_WIDTH_SHARE = 0.05
TICKS_MIN = 8
ROUNDS_IN_WINDOW = 5
EXCURSION_SHARE = 0.20
BATCHES_MAX = 10
CORRELATION_MAX = 0.5


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """Slope over the window and half-width of the interval, as shares of the mean."""

    reached: bool
    slope_share: float | None
    half_width_share: float | None


def steady_state(values: Sequence[float]) -> Steadiness:
    """Judge a window of per-tick values.

    Parameters
    ----------
    values
        One value a tick, oldest first.

    Examples
    --------
    >>> steady_state([100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 100.0, 100.0]).reached
    True
    >>> steady_state([100.0, 120.0, 140.0, 160.0, 180.0, 200.0, 220.0, 240.0]).reached
    False
    """
    count = len(values)
    if count < TICKS_MIN or sum(values) <= 0:
        return Steadiness(reached=False, slope_share=None, half_width_share=None)
    mean = sum(values) / count
    slope_share = _rise(values) / mean
    half_width_share = half_width_95(values) / mean
    reached = abs(slope_share) <= SLOPE_SHARE and half_width_share <= HALF_WIDTH_SHARE
    return Steadiness(reached=reached, slope_share=slope_share, half_width_share=half_width_share)


@dataclass(frozen=True, kw_only=True)
class RoundsSteadiness:
    """The measurement window of the last five rounds: its average, and excursion and slope as shares of it.

    Attributes
    ----------
    first
        Position of the window's first round.
    rise_share
        Rise of the best linear fit from the first round of the window to its last; below 0 for a fall.
    """

    reached: bool
    first: int
    average: float
    excursion_share: float
    rise_share: float


def steady_rounds(values: Sequence[float]) -> RoundsSteadiness | None:
    """Judge the last five rounds of a tracked figure; None where there are fewer, or nothing was measured in them.

    SNIA Solid State Storage Performance Test Specification 2.0.2, Definitions, "Steady State": over a measurement
    window of five rounds the most less the least is at most 20 % of the average, and the ends of the best linear fit
    differ by at most 10 % of it.

    Examples
    --------
    >>> found = steady_rounds([900.0, 104.0, 100.0, 98.0, 99.0, 100.0])
    >>> found.reached, found.first, round(found.excursion_share, 3), round(found.rise_share, 3)
    (True, 1, 0.06, -0.036)
    >>> steady_rounds([900.0, 500.0, 98.0, 99.0, 100.0]).reached
    False
    """
    window = values[-ROUNDS_IN_WINDOW:]
    average = fmean(window) if window else 0.0
    if len(window) < ROUNDS_IN_WINDOW or average <= 0:
        return None
    excursion = (max(window) - min(window)) / average
    rise = _rise(window) / average
    return RoundsSteadiness(
        reached=excursion <= EXCURSION_SHARE and abs(rise) <= SLOPE_SHARE,
        first=len(values) - len(window),
        average=average,
        excursion_share=excursion,
        rise_share=rise,
    )


def _rise(values: Sequence[float]) -> float:
    """Rise of the least-squares line from the first value to the last."""
    count, mean = len(values), fmean(values)
    centre = (count - 1) / 2
    covariance = sum((index - centre) * (value - mean) for index, value in enumerate(values))
    return covariance / sum((index - centre) ** 2 for index in range(count)) * (count - 1)


def judged_steady(point: Record) -> tuple[bool | None, str]:
    """Whether a point was steady, and in words why it was not, or why that was not judged: decided here for all.

    No words where there was nothing to judge, as for work that is done once.

    Examples
    --------
    >>> judged_steady({"ended_by": "time", "steady": {"reached": False, "window_s": 5.0, "slope_share": -0.14}})
    (False, 'drift -14 % (max. 10 %)')
    >>> judged_steady({"ended_by": "time", "steady": {"reached": False, "window_s": 5.0, "slope_share": None}})
    (None, 'too short or idle')
    """
    steady = point.get("steady") or {}
    reached, slope, half_width = (steady.get(key) for key in ("reached", "slope_share", "half_width_share"))
    if reached is not False or steady.get("window_s") is None:
        return reached or None, ""
    if point.get("ended_by") != "time":
        return None, "cut off"
    if steady.get("judged_by"):
        return False, f"by the test of {steady['judged_by']}"
    if slope is None:
        return None, "too short or idle"
    words = [f"drift {slope * 100:+.3g} % (max. {SLOPE_SHARE * 100:g} %)"] if abs(slope) > SLOPE_SHARE else []
    if half_width is not None and half_width > HALF_WIDTH_SHARE:
        words.append(f"mean ±{half_width * 100:.3g} % (max. {HALF_WIDTH_SHARE * 100:g} %)")
    return (False, ", ".join(words)) if words else (None, "too short or idle on a host")


def unsteady_words(point: Record) -> str:
    """Why a point was not steady, or was not judged, as a clause; empty of a steady one."""
    reached, why = judged_steady(point)
    head = {False: "no steady state before its time was up", None: "steady state not judged"}.get(reached, "")
    return f"{head}: {why}" if why else ""


def half_width_95(values: Sequence[float]) -> float:
    """Half-width of the 95 % interval of the mean of a correlated series, by batch means.

    The series is cut into at most `BATCHES_MAX` batches, whose means are nearly independent when batches are long
    against what correlates them (Law, Simulation Modeling and Analysis, section 9.5.3). What correlation is left
    inflates the variance of the mean by (1 + r) / (1 - r), r that of neighbours (first-order autoregression; Wilks,
    Statistical Methods in the Atmospheric Sciences, section 5.2.4), and Student's t is taken at the effective number.
    r is kept at or below `CORRELATION_MAX`: a handful of batches cannot show more. Infinite below three values.
    """
    if len(values) < 3:
        return math.inf
    means = _batch_means(values)
    count = len(means)
    mean = sum(means) / count
    squares = sum((value - mean) ** 2 for value in means)
    if squares == 0:
        return 0.0
    lag_one = sum((left - mean) * (right - mean) for left, right in itertools.pairwise(means)) / squares
    correlation = min(max(lag_one, 0.0), CORRELATION_MAX)
    effective = max(count * (1 - correlation) / (1 + correlation), 2.0)
    return student_t_975(effective - 1) * math.sqrt(squares / (count - 1) / effective)


def _batch_means(values: Sequence[float]) -> list[float]:
    """Means of batches of equal size; the oldest values are left out where they do not fill one."""
    size = max(len(values) // BATCHES_MAX, 1)
    count = len(values) // size
    kept = values[len(values) - count * size :]
    return [sum(kept[index * size : (index + 1) * size]) / size for index in range(count)]


def geometric_mean_95(values: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """Geometric mean of independent values above 0, and its 95 % interval: Student's over their logarithms.

    The interval is None below two values.

    Examples
    --------
    >>> geometric_mean_95([2.0, 2.0]), geometric_mean_95([1.0])
    ((2.0, (2.0, 2.0)), (1.0, None))
    """
    logarithms = [math.log(value) for value in values]
    middle = fmean(logarithms)
    if len(values) < 2:
        return math.exp(middle), None
    half = student_t_975(len(values) - 1) * stdev(logarithms) / math.sqrt(len(values))
    return math.exp(middle), (math.exp(middle - half), math.exp(middle + half))


def student_t_975(degrees: float) -> float:
    """The 97.5 % quantile of Student's t."""
    return student.quantile(degrees, 0.975)
