"""Student's t distribution in plain arithmetic, to 1e-9 of SciPy's: SciPy alone would take 140 MB to install.

The share above a value is half the regularised incomplete beta function I_x(v / 2, 1 / 2) at x = v / (v + t^2), with v
degrees of freedom (DLMF 8.17, Abramowitz and Stegun 26.5.27).
"""

from __future__ import annotations

import math

NORMAL_FROM = 1e7
"""From so many degrees of freedom on, the normal distribution of a corrected value is as exact (A&S 26.7.8)."""
SERIES_FROM = 100.0
"""From here on, the quotient of two gamma functions is taken from its series: logarithms of both would cancel."""
TINY = 1e-300
STEPS_MAX = 10_000


def quantile(freedom: float, share: float) -> float:
    """The value below which a share of the distribution lies.

    Examples
    --------
    >>> round(quantile(10, 0.975), 3)
    2.228
    """
    if not 0 < share < 1:
        return math.copysign(math.inf, share - 0.5) if share in (0, 1) else math.nan
    if share < 0.5:
        return -quantile(freedom, 1 - share)
    above, value = 1 - share, 0.0
    # The share above falls and is convex, so that Newton's steps from zero never go too far.
    for _ in range(STEPS_MAX):
        step = (beyond(freedom, value) - above) / _density(freedom, value)
        value += step
        if abs(step) <= 1e-14 * value:
            break
    return value


def beyond(freedom: float, value: float) -> float:
    """The share of the distribution that lies above a value.

    Examples
    --------
    >>> round(beyond(10, 2.228), 3)
    0.025
    """
    if value < 0:
        return 1 - beyond(freedom, -value)
    if math.isinf(value):
        return 0.0
    if freedom >= NORMAL_FROM:
        return math.erfc(value * (1 - 0.25 / freedom) / math.sqrt(1 + value * value / (2 * freedom)) / math.sqrt(2)) / 2
    a, b = freedom / 2, 0.5
    square = value * value / freedom
    x, rest = 1 / (1 + square), square / (1 + square)
    if x < (a + 1) / (a + b + 2):
        return _front(a, square) * _fraction(a, b, x) / a / 2
    return 0.5 - _front(a, square) * _fraction(b, a, rest) / b / 2


def _density(freedom: float, value: float) -> float:
    a = freedom / 2
    root = _gamma_quotient(a) / math.sqrt(math.pi * freedom)
    return root * math.exp(-(a + 0.5) * math.log1p(value * value / freedom))


def _front(a: float, square: float) -> float:
    """x^a (1 - x)^b / B(a, b) of b = 1 / 2 and x = 1 / (1 + square)."""
    power = math.exp(-a * math.log1p(square)) * math.sqrt(square / (1 + square))
    return power * _gamma_quotient(a) / math.sqrt(math.pi)


def _gamma_quotient(a: float) -> float:
    """The quotient of the gamma functions of a + 1 / 2 and a (DLMF 5.11.13)."""
    if a < SERIES_FROM:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a))
    return math.sqrt(a) * (1 - 1 / (8 * a) + 1 / (128 * a**2) + 5 / (1024 * a**3) - 21 / (32768 * a**4))


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's algorithm."""
    numerator, denominator = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = denominator
    for m in range(1, STEPS_MAX):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / _not_zero(1 + factor * denominator)
            numerator = _not_zero(1 + factor / numerator)
            found *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
