"""Student's t distribution, from SciPy's plain functions: its module of distributions takes half a second to import."""

from __future__ import annotations


def quantile(freedom: float, share: float) -> float:
    """The value below which a share of the distribution lies.

    Examples
    --------
    >>> round(quantile(10, 0.975), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def beyond(freedom: float, value: float) -> float:
    """The share of the distribution that lies above a value.

    Examples
    --------
    >>> round(beyond(10, 2.228), 3)
    0.025
    """
    from scipy.special import stdtr

    return float(stdtr(freedom, -value))
