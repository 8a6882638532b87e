"""How far two samples of ranks may lie apart by chance: critical values of the rank sum test.

F. Wilcoxon (Biometrics Bulletin 1, 1945), H. B. Mann and D. R. Whitney (Annals of Mathematical Statistics 18, 1947).
The test assumes no distribution: of n values that come from one source in any order, each of the C(n, m) choices of m
is as likely as any other to be the last m.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

EXACT_MAX = 9
"""Values of the smaller sample up to which the distribution is counted; above, the normal one is its upper bound."""


@lru_cache(maxsize=200_000)
def critical(one: int, other: int, chance: float) -> int:
    """The largest U that is reached with no more than a chance by two samples of one source, to either side.

    Parameters
    ----------
    one, other
        Sizes of the two samples.
    chance
        Of U or its mirror image, one x other - U.

    Returns
    -------
    int
        -1 where even U = 0 is likelier than that.

    Examples
    --------
    >>> critical(5, 5, 0.05), critical(8, 10, 0.05), critical(3, 3, 0.05)
    (2, 17, -1)
    """
    small, large = min(one, other), max(one, other)
    if 2 / math.comb(small + large, small) > chance:
        return -1
    if small > EXACT_MAX:
        return math.floor(_normal(small, large, chance) - 0.5)
    counted = np.cumsum(_ways(small, large))
    return int(np.searchsorted(counted, chance * math.comb(small + large, small) / 2, side="right")) - 1


def _normal(one: int, other: int, chance: float) -> float:
    return one * other / 2 + NormalDist().inv_cdf(chance / 2) * deviation(one, other)


def deviation(one: int, other: int) -> float:
    """Standard deviation of U where both samples are of one source.

    Examples
    --------
    >>> round(deviation(8, 10), 3)
    11.255
    """
    return math.sqrt(one * other * (one + other + 1) / 12)


def _ways(small: int, large: int) -> Numbers:
    """In how many of the C(n, m) choices U is 0, 1, 2, ... up to its middle: the coefficients of Gauss's binomial.

    It is the product of (1 - q^(large + i)) / (1 - q^i) for i from 1 to small (G. E. Andrews, The Theory of Partitions,
    section 3.2).
    """
    most = small * large // 2 + 1
    ways = np.zeros(most + 1)
    ways[0] = 1
    for i in range(1, small + 1):
        if large + i <= most:
            ways[large + i :] -= ways[: -(large + i)].copy()
        for first in range(i):
            ways[first::i] = np.cumsum(ways[first::i])
    return ways
