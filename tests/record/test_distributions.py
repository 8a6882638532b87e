"""Statistics in plain arithmetic give what SciPy gives."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import optimize, special, stats

from assay.record import student
from assay.record.ranks import median_slope, never_falling, rank_correlation

FREEDOMS = (0.5, 1, 1.7, 2, 4, 10.3, 29, 99, 100, 199, 200, 201, 1000, 54321.5, 9.9e6, 1e7, 1e9)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_shares_above_a_value_are_scipy_s(freedom: float) -> None:
    for value in (-3.0, -0.1, 0.0, 1e-6, 0.02, 0.7, 1.0, 1.96, 4.0, 9.0, 30.0):
        expected = special.stdtr(freedom, -value)
        assert student.beyond(freedom, value) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert student.beyond(freedom, math.inf) == 0


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_are_scipy_s(freedom: float) -> None:
    for share in (0.001, 0.025, 0.4, 0.5, 0.51, 0.9, 0.95, 0.975, 0.995, 0.9999):
        expected = special.stdtrit(freedom, share)
        assert student.quantile(freedom, share) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_quantiles_of_no_share_and_of_all() -> None:
    assert (student.quantile(5, 0), student.quantile(5, 1)) == (-math.inf, math.inf)
    assert math.isnan(student.quantile(5, 1.1))


def samples(count: int) -> list[tuple[list[float], list[float]]]:
    """Pairs of lists, with ties and without."""
    chance = random.Random(7)
    found = []
    for number in range(count):
        size = chance.randint(4, 40)
        digits = number % 3
        left = [round(chance.gauss(0, 3), digits) for _ in range(size)]
        found.append((left, [round(value + chance.gauss(0, 2), digits) for value in left]))
    return found


def test_correlations_of_ranks_are_scipy_s() -> None:
    for left, right in samples(30):
        assert rank_correlation(left, right) == pytest.approx(stats.spearmanr(left, right).statistic, abs=1e-12)


def test_median_slopes_and_their_intervals_are_scipy_s() -> None:
    for left, right in samples(30):
        expected = stats.theilslopes(right, left, 0.95)
        found = median_slope(np.array(left), np.array(right))
        assert found == pytest.approx((expected.slope, expected.low_slope, expected.high_slope), rel=1e-12)


def test_curves_that_never_fall_are_scipy_s() -> None:
    for values, others in samples(30):
        weights = [1.0 + abs(other) for other in others]
        expected = optimize.isotonic_regression(values, weights=weights).x
        assert never_falling(values, weights) == pytest.approx(list(expected), rel=1e-12, abs=1e-12)
