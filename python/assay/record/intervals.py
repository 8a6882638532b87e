"""How sure a difference of two measurements is: 95 % intervals of the logarithm of their ratio.

Each kind of evidence has its function, from the strongest to the weakest: repeats, batches of one run, resampled I/Os,
intervals that a search found. `assay.insight.compare` says when each is used and where it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from operator import mul
from typing import Any, Literal

from assay.record import student

Method = Literal["same measurements", "repeats", "batches", "bootstrap", "answer intervals", "none"]

ERROR_SHARE = 0.05
"""Share of false alarms accepted: 1 - 95 %."""
NORMAL_975 = 1.959964
"""Quantile of the normal distribution that 2.5 % lie above."""
BATCHES_MIN = 8
"""Below this the correlation of neighbouring batches cannot be estimated: its bias alone is some 4 / n."""
CORRELATION_MAX = 0.95
"""Ceiling of the corrected correlation; beyond it a run holds hardly one independent sample."""
TAIL_IOS_MIN = 10
"""Effective I/Os that must lie above a percentile before it gets an interval."""
BOOTSTRAP_DRAWS = 10_000
_BOOTSTRAP_SEED = 20_121_106


@dataclass(frozen=True)
class Estimate:
    """Logarithm of B / A with its interval, and the chance of such a value without any change."""

    low: float
    high: float
    p: float
    method: Method


def by_repeats(a: Sequence[float | None], b: Sequence[float | None], center: float) -> tuple[Estimate | None, str]:
    """Student's t on the logarithms of repeats, their variance pooled over both sides.

    Parameters
    ----------
    a, b
        One value per repeat, all in one unit; None where nothing was measured. One side may have a single repeat.
    center
        Logarithm of B / A.

    Returns
    -------
    tuple
        The estimate, or None and the reason.
    """
    logs = [[math.log(value) for value in side if value] for side in (a, b)]
    freedom = sum(len(side) - 1 for side in logs)
    if not logs[0] or not logs[1] or freedom < 1:
        return None, "too few repeats in which anything was measured"
    means = [sum(side) / len(side) for side in logs]
    squares = sum((value - mean) ** 2 for side, mean in zip(logs, means, strict=True) for value in side)
    variance = squares / freedom * (1 / len(logs[0]) + 1 / len(logs[1]))
    return _student(center, math.sqrt(variance), freedom, "repeats"), ""


def _student(center: float, error: float, freedom: float, method: Method) -> Estimate:
    half = student.quantile(freedom, 1 - ERROR_SHARE / 2) * error
    p = 2 * student.beyond(freedom, abs(center) / error) if error else float(center == 0)
    return Estimate(center - half, center + half, p, method)


BETWEEN_RUNS = (0.12, 3.0)
"""Standard deviation of the logarithm of a figure from run to run, and its degrees of freedom.

It is what is assumed of storage of which one run each is known: `benches/compare.py` measures it."""


def by_blocks(rows: Sequence[Sequence[float | None]], center: float) -> tuple[Estimate | None, str]:
    """Any two rows of a randomised block design: Student's t on what blocks and rows leave of the logarithms.

    A block is what was measured close together in time, each row once in it. What differs between blocks is taken out,
    and the residual variance is that of all rows, with (rows - 1) x (blocks - 1) degrees of freedom (R. A. Fisher, The
    Design of Experiments, 1935). Of two rows it is the t of pairs.

    Parameters
    ----------
    rows
        One value per block in each, all in one unit; a block in which a row measured nothing counts for nothing.
    center
        Logarithm of the ratio of the two rows.

    Returns
    -------
    tuple
        The estimate, or None and the reason.
    """
    blocks = [block for block in zip(*rows, strict=True) if all(block)]
    if len(rows) < 2 or len(blocks) < 2:
        return None, "too few repeats in which everything was measured"
    logs = [[math.log(value) for value in block if value] for block in blocks]
    means = [sum(row) / len(blocks) for row in zip(*logs, strict=True)]
    whole = sum(means) / len(means)
    squares = sum(
        (value - mean - sum(block) / len(block) + whole) ** 2
        for block in logs
        for value, mean in zip(block, means, strict=True)
    )
    freedom = (len(rows) - 1) * (len(blocks) - 1)
    error = math.sqrt(2 * squares / freedom / len(blocks))
    return _student(center, error, freedom, "repeats"), ""


def widened(estimate: Estimate, center: float, between: tuple[float, float] = BETWEEN_RUNS) -> Estimate:
    """An estimate from within one run each, as far as it tells of other runs: what varies from run to run is added.

    Parameters
    ----------
    center
        Logarithm of B / A.
    between
        Standard deviation of the logarithm between runs, and its degrees of freedom (`BETWEEN_RUNS`). Degrees of
        freedom of the sum are Welch's and Satterthwaite's, with those within a run taken for many.
    """
    deviation, freedom = between
    within = max(center - estimate.low, estimate.high - center) / NORMAL_975
    runs = 2 * deviation**2
    total = within**2 + runs
    return _student(center, math.sqrt(total), freedom * (total / runs) ** 2, estimate.method)


def relative_error(batches: Sequence[float]) -> tuple[float, float] | None:
    """Relative standard error of a mean over correlated batches, and its degrees of freedom.

    The batches are worth n / tau independent ones. The sample variance is too small by (n - tau) / (n - 1) for the same
    reason, and is put right.

    Parameters
    ----------
    batches
        Batch means in order of time.

    Returns
    -------
    tuple of float, or None
        None where there are fewer than `BATCHES_MIN` batches or their mean is not positive.
    """
    n = len(batches)
    mean = sum(batches) / n if n else 0.0
    if n < BATCHES_MIN or mean <= 0:
        return None
    deviations = [value - mean for value in batches]
    squares = sum(deviation**2 for deviation in deviations)
    if squares == 0:
        return 0.0, n - 1.0
    tau = _batches_per_independent_one(deviations, squares)
    return math.sqrt(squares / (n - tau) * tau / n) / mean, n / tau - 1


def _batches_per_independent_one(deviations: Sequence[float], squares: float) -> float:
    """Integrated autocorrelation time tau in batches, the larger of two estimates because each misses something.

    A first-order process has tau = (1 + r) / (1 - r), with r the correlation of neighbours, corrected to
    (n r + 1) / (n - 3) for its bias -(1 + 3 r) / n in short series. Where noise lies over a slow drift r looks small;
    the initial monotone sequence then sees more: 2 (sum of r_2m + r_2m+1, not rising, while positive) - 1.
    """
    n = len(deviations)
    lags: list[float] = [sum(map(mul, deviations, deviations[lag:])) / squares for lag in range(n // 2 // 2 * 2)]
    r = min(max((n * lags[1] + 1) / (n - 3), 0.0), CORRELATION_MAX)
    # Every lag's estimate is low by about 1 / n, because the mean is that of the same series.
    pairs = [lags[at] + lags[at + 1] + (2 if at else 1) / n for at in range(0, len(lags), 2)]
    monotone = accumulate(takewhile(lambda pair: pair > 0, pairs), min)
    return float(min(max((1 + r) / (1 - r), 2 * sum(monotone) - 1), n / 2))


def by_batches(a: tuple[float, float], b: tuple[float, float], center: float) -> Estimate:
    """Welch's t on two means of which the relative standard error and its degrees of freedom are known.

    Parameters
    ----------
    a, b
        What `relative_error` gave for each side.
    center
        Logarithm of B / A.
    """
    variances = [error**2 for error, _ in (a, b)]
    total = sum(variances)
    # Welch's and Satterthwaite's degrees of freedom.
    parts = sum(variance**2 / freedom for variance, (_, freedom) in zip(variances, (a, b), strict=True))
    return _student(center, math.sqrt(total), total**2 / parts if parts else a[1] + b[1], "batches")


def by_bootstrap(
    a: Sequence[tuple[int, int]],
    b: Sequence[tuple[int, int]],
    errors: tuple[float, float],
    center: float,
    share: float = 0.99,
) -> tuple[Estimate | None, str]:
    """Interval of the ratio of two percentiles over resamples of the I/Os, with the same seed every time.

    Parameters
    ----------
    a, b
        Histogram of each side: latency in nanoseconds, rising, and count.
    errors
        Relative standard error of each side's mean latency over batches. Over the error that independent I/Os would
        have, squared, it is the design effect: the number of I/Os that are worth one independent I/O.
    center
        Logarithm of B / A.
    share
        Which percentile: the share of I/Os below it.

    Returns
    -------
    tuple
        The estimate, or None and the reason.
    """
    import numpy

    generator = numpy.random.default_rng(_BOOTSTRAP_SEED)
    draws = []
    for bins, error in zip((a, b), errors, strict=True):
        values = numpy.array([value for value, _ in bins], dtype=float)
        counts = numpy.array([count for _, count in bins], dtype=float)
        effective = _effective_ios(values, counts, error)
        rank = math.ceil(share * effective)
        if effective - rank < TAIL_IOS_MIN:
            return None, f"fewer than {TAIL_IOS_MIN} independent I/Os above p{100 * share:g}"
        ranks = generator.beta(rank, effective - rank + 1, BOOTSTRAP_DRAWS)
        at = numpy.searchsorted(counts.cumsum() / counts.sum(), ranks)
        draws.append(numpy.log(numpy.maximum(values[numpy.minimum(at, len(values) - 1)], 1.0)))
    ratios = draws[1] - draws[0]
    low, high = (float(edge) for edge in numpy.quantile(ratios, (ERROR_SHARE / 2, 1 - ERROR_SHARE / 2)))
    beyond = min(int((ratios <= 0).sum()), int((ratios >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (BOOTSTRAP_DRAWS + 1))
    # The interval always holds the estimate, also where the histogram's bins are coarse.
    return Estimate(min(low, center), max(high, center), p, "bootstrap"), ""


def percentile_interval(bins: Sequence[tuple[int, int]], error: float, share: float) -> tuple[float, float] | None:
    """95 % interval of a percentile from the ranks of the I/Os, fewer of which are independent than were counted.

    The share of the I/Os below the value at rank r of n has a beta distribution of r and n - r + 1 (H. A. David, Order
    Statistics, 1970).

    Parameters
    ----------
    bins, error, share
        As of `by_bootstrap`, for one side.

    Returns
    -------
    tuple of float, or None
        Nanoseconds; None where fewer than `TAIL_IOS_MIN` independent I/Os lie above the percentile.

    Examples
    --------
    >>> percentile_interval([(100, 900), (200, 100)], 0.0, 0.5)
    (100.0, 100.0)
    """
    import numpy
    from scipy.stats import beta

    values = numpy.array([value for value, _ in bins], dtype=float)
    counts = numpy.array([count for _, count in bins], dtype=float)
    effective = _effective_ios(values, counts, error)
    rank = math.ceil(share * effective)
    if effective - rank < TAIL_IOS_MIN:
        return None
    shares = beta.ppf((ERROR_SHARE / 2, 1 - ERROR_SHARE / 2), rank, effective - rank + 1)
    at = numpy.minimum(numpy.searchsorted(counts.cumsum() / counts.sum(), shares), len(values) - 1)
    low, high = (float(value) for value in values[at])
    return low, high


def _effective_ios(values: Any, counts: Any, error: float) -> int:
    import numpy

    mean = float(numpy.average(values, weights=counts))
    variance = float(numpy.average((values - mean) ** 2, weights=counts))
    design_effect = max(1.0, (error * mean) ** 2 * counts.sum() / variance) if variance else 1.0
    return int(counts.sum() / design_effect)


def by_answer_intervals(a_value: float, b_value: float, a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Interval of a ratio from those of its parts (G. Y. Zou and A. Donner, Statistics in Medicine 27, 2008).

    Parameters
    ----------
    a_value, b_value
        The answers, above 0.
    a, b
        Their 95 % intervals, low and high, above 0; an answer outside its own interval widens it.
    """
    center = math.log(b_value / a_value)
    below = math.hypot(math.log(b_value / min(b[0], b_value)), math.log(max(a[1], a_value) / a_value))
    above = math.hypot(math.log(max(b[1], b_value) / b_value), math.log(a_value / min(a[0], a_value)))
    # On a logarithmic scale a normal interval is 2 x 1.96 standard errors wide.
    p = math.erfc(abs(center) * 2 * 1.96 / (below + above) / math.sqrt(2)) if below + above else float(center == 0)
    return Estimate(center - below, center + above, p, "answer intervals")
