"""Statistics that assume no distribution: correlation of ranks, slopes that jumps do not move, curves that rise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's correlation: that of the ranks, equal values sharing their mean rank (Spearman 1904).

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [1, 4, 9, 16])
    1.0
    """
    import numpy as np

    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1].round(15))


def _ranks(values: Sequence[float]) -> Numbers:
    import numpy as np

    _, places, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])


def median_slope(times: Numbers, values: Numbers) -> tuple[float, float, float]:
    """The median slope of all pairs of points, and its 95 % interval.

    Single jumps do not move it (Sen 1968, "Estimates of the regression coefficient based on Kendall's tau", JASA 63;
    the variance with ties is his equation 2.6).
    """
    import numpy as np

    run, rise = times[:, None] - times, values[:, None] - values
    slopes = np.sort(rise[run > 0] / run[run > 0])
    count = len(values)

    def pairs(sizes: npt.NDArray[np.integer]) -> float:
        return float(np.sum(sizes * (sizes - 1) * (2 * sizes + 5)))

    ties = sum(pairs(np.unique(one, return_counts=True)[1]) for one in (times, values))
    variance = (pairs(np.array([count])) - ties) / 18
    half = 1.959963984540054 * math.sqrt(max(variance, 0.0))
    low, high = round((slopes.size - half) / 2) - 1, round((slopes.size + half) / 2)
    return float(np.median(slopes)), float(slopes[max(low, 0)]), float(slopes[min(high, slopes.size - 1)])


def never_falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The curve nearest to values by weighted squares that never falls.

    Neighbours that fall are pooled until none does (pool adjacent violators: Barlow and others, Statistical Inference
    under Order Restrictions, 1972).

    Examples
    --------
    >>> never_falling([1.0, 3.0, 2.0], [1, 1, 1])
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (below, light, few), (above, heavy, more) = pools[-2:]
            pools[-2:] = [((below * light + above * heavy) / (light + heavy), light + heavy, few + more)]
    return [value for value, _, count in pools for _ in range(count)]
