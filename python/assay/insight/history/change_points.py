"""Where the level of a series of runs changed, found run by run with a false alarm rate that is held over a year.

After each run the newest 1 to `NEWEST_MAX` runs are held against all earlier ones since the last change, by the rank
sum test: a change point model in the sense of D. M. Hawkins and Q. Deng (Journal of Quality Technology 42, 2010) and
G. J. Ross, D. K. Tasoulis and N. M. Adams (Technometrics 53, 2011). Ranks assume no distribution, so that outliers and
skewed figures raise no alarm by themselves. A change that was found stays: later runs never take it back.

Neighbouring runs resemble each other, which ranks alone would take for changes. So a candidate is judged again on what
neighbours do not explain: x_t - r x_(t-1), with r the correlation of neighbours within both sides of the candidate,
plus `CAUTION` standard errors, because it is known from few runs only.

The chance of one look (`CHANCE`) is such that 365 runs of an unchanged target raise a false alarm in at most 1 % of
histories, for normal, skewed and heavy-tailed noise, 5 % outliers, and correlation of neighbours up to 0.7. It was set
by simulation: `benches/history.py` repeats 10,000 histories of each noise, and counts after how many runs steps are
found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay.insight.history.rank_sums import critical

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

FALSE_ALARMS_A_YEAR = 0.01
"""Share of histories of 365 runs without any change in which one is found; what `CHANCE` was set for."""
CHANCE = 5e-6
"""Chance of a candidate in one look, to either side."""
NEWEST_MAX = 40
"""Most runs after a change that are looked at; a change is found before or not at all."""
CAUTION = 2.0
"""Standard errors that are added to the correlation of neighbours."""
CORRELATION_MAX = 0.9
"""Ceiling of that correlation; runs that resemble each other more have no level that could change."""
REFINED = 5
"""Runs to either side within which the place of a change is put right when more runs are known."""
_SCREEN = 2.5
"""Standard deviations of U below which no sample of any size is critical: looked up only above."""
SAME_RUNS_MIN = 2
"""Runs with the very same figure, on a virtual clock, that another figure is a change against."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of level.

    Attributes
    ----------
    at
        Place of the first run after it.
    found_at
        Place of the run with which it was found.
    """

    at: int
    found_at: int


def find_changes(values: Sequence[float], *, figures: int = 1, exact: bool = False) -> list[ChangePoint]:
    """Changes of level in a series, in order.

    Parameters
    ----------
    values
        One a run, in order of time, all above 0.
    figures
        How many figures are judged together: the false alarm rate holds for all of them (Bonferroni).
    exact
        Whether nothing varies between runs but what was changed, as on a virtual clock with one seed: then a figure
        that differs from at least `SAME_RUNS_MIN` equal ones before is a change.

    Examples
    --------
    >>> flat = [100.0, 101.0, 99.5, 100.5, 99.0, 100.2, 99.8, 101.2, 100.9, 99.1] * 3
    >>> find_changes(flat), find_changes(flat + [80.0, 81.0, 79.5, 80.4, 79.9, 80.2, 80.6])
    ([], [ChangePoint(at=30, found_at=35)])
    """
    return find_all([AskedSeries(values, figures, exact)])[0]


@dataclass(frozen=True)
class AskedSeries:
    """A series whose changes are looked for; see `find_changes`."""

    values: Sequence[float]
    figures: int = 1
    exact: bool = False


def find_all(asked: Sequence[AskedSeries]) -> list[list[ChangePoint]]:
    """Changes of level in several series, each as `find_changes` finds them; those of one length are judged at once."""
    logs = [np.log(np.asarray(one.values, np.float64)) for one in asked]
    found: list[list[ChangePoint]] = [[] for _ in asked]
    looked_at = [*range(len(asked))]
    while looked_at:
        starts = [found[number][-1].at if found[number] else 0 for number in looked_at]
        rests = [logs[number][start:] for number, start in zip(looked_at, starts, strict=True)]
        changes = _next_changes([asked[number] for number in looked_at], rests)
        for number, start, change in zip(looked_at, starts, changes, strict=True):
            if change is not None:
                found[number].append(ChangePoint(start + change.at, start + change.found_at))
        looked_at = [number for number, change in zip(looked_at, changes, strict=True) if change is not None]
    return [_refined(series, own) for series, own in zip(logs, found, strict=True)]


def _next_changes(asked: Sequence[AskedSeries], rests: Sequence[Numbers]) -> list[ChangePoint | None]:
    """The first change of what is left of each series."""
    changes = [_exact_change(rest) if one.exact else None for one, rest in zip(asked, rests, strict=True)]
    lengths: dict[int, list[int]] = {}
    for place, rest in enumerate(rests):
        if changes[place] is None:
            lengths.setdefault(len(rest), []).append(place)
    for places in lengths.values():
        chances = [CHANCE / asked[place].figures for place in places]
        found_at, at = first_changes(np.stack([rests[place] for place in places]), chances)
        for row, place in enumerate(places):
            changes[place] = None if found_at[row] < 0 else ChangePoint(int(at[row]), int(found_at[row]))
    return changes


def _exact_change(series: Numbers) -> ChangePoint | None:
    if len(series) <= SAME_RUNS_MIN:
        return None
    others = np.flatnonzero(series != series[0])
    return ChangePoint(int(others[0]), int(others[0])) if len(others) and others[0] >= SAME_RUNS_MIN else None


def first_changes(series: Numbers, chance: float | Sequence[float] = CHANCE) -> tuple[Places, Places]:
    """The first change of each of several series of one length, as they are found run by run.

    Parameters
    ----------
    series
        A row each; logarithms of figures, or anything whose noise does not grow with it.
    chance
        Of a look, for all rows or for each.

    Returns
    -------
    tuple of arrays
        For each row the run with which the change was found, and the first run after the change; -1 for none.
    """
    rows, length = series.shape
    chances = np.broadcast_to(chance, rows)
    found_at, at = np.full(rows, -1), np.full(rows, -1)
    ranks = np.zeros((rows, length))
    for last in range(length):
        newest = series[:, last : last + 1]
        above = (series[:, :last] > newest) + 0.5 * (series[:, :last] == newest)
        ranks[:, :last] += above
        ranks[:, last] = last + 1 - above.sum(axis=1)
        sizes = np.arange(1, min(NEWEST_MAX, last) + 1)
        if not len(sizes):
            continue
        earlier = last + 1 - sizes
        apart = np.cumsum(ranks[:, last : last - len(sizes) : -1], axis=1) - sizes * (last + 2) / 2
        scores = np.abs(apart) / np.sqrt(sizes * earlier * (last + 2) / 12)
        for row in np.flatnonzero((scores.max(axis=1) >= _SCREEN) & (found_at < 0)):
            size = _candidate(scores[row], np.abs(apart[row]), last + 1, float(chances[row]))
            if size and _stands(series[row, : last + 1], size, float(chances[row])):
                found_at[row], at[row] = last, last + 1 - size
    return found_at, at


def _candidate(scores: Numbers, apart: Numbers, length: int, chance: float) -> int:
    """How many of the newest runs differ most from those before; 0 where chance may explain all of it.

    `apart` is the distance of the rank sum from its mean, which is that of U.
    """
    best = 0
    for place in np.flatnonzero(scores >= _SCREEN):
        size = int(place) + 1
        earlier = length - size
        limit = critical(size, earlier, chance)
        if limit >= 0 and size * earlier / 2 - apart[place] <= limit and (not best or scores[place] > scores[best - 1]):
            best = size
    return best


def _stands(series: Numbers, size: int, chance: float) -> bool:
    """Whether the newest runs still differ when what neighbours explain is taken out."""
    correlation = cautious_correlation(series, len(series) - size)
    rest = series[1:] - correlation * series[:-1]
    earlier = len(rest) - size
    if earlier < 1:
        return False
    limit = critical(size, earlier, chance)
    return limit >= 0 and size * earlier / 2 - abs(_apart(rest, earlier)) <= limit


def _apart(series: Numbers, at: int) -> float:
    """U of the values from a place on, less its mean: pairs in which the later value is greater, ties counting half."""
    before, after = np.sort(series[:at]), series[at:]
    greater = np.searchsorted(before, after, "left").sum() + np.searchsorted(before, after, "right").sum()
    return float(greater / 2 - len(before) * len(after) / 2)


def cautious_correlation(series: Numbers, at: int, caution: float = CAUTION) -> float:
    """Correlation of neighbours within the two sides of a place, 0 to `CORRELATION_MAX`, with caution added.

    It is that of the ranks of what each side's median leaves, which outliers do not move, corrected for its bias in
    short series (M. G. Kendall, Biometrika 41, 1954).
    """
    count = len(series)
    if count <= 6:
        return CORRELATION_MAX
    sides = [side for side in (series[:at], series[at:]) if len(side)]
    rest = np.concatenate([side - np.median(side) for side in sides])
    ranks = np.argsort(np.argsort(rest)) - (count - 1) / 2
    squares = float((ranks**2).sum())
    products = ranks[:-1] * ranks[1:]
    if 0 < at < count:
        products[at - 1] = 0
    lag = float(products.sum()) / squares * count / (count - len(sides))
    unbiased = (count * lag + 1) / (count - 3)
    bounded = min(max(unbiased, 0.0), 0.95)
    error = math.sqrt(max(1 - bounded**2, 0.05) / count)
    return min(max(unbiased + caution * error, 0.0), CORRELATION_MAX)


def _refined(series: Numbers, found: Sequence[ChangePoint]) -> list[ChangePoint]:
    """Changes at the places where the runs up to the next change say that they are: the least absolute deviations.

    The rank sum finds a change, but favours places in the middle of the runs.
    """
    made: list[ChangePoint] = []
    for number, change in enumerate(found):
        start = made[-1].at if made else 0
        end = found[number + 1].at if number + 1 < len(found) else len(series)
        first, last = max(change.at - REFINED, start + 1), min(change.at + REFINED, change.found_at, end - 1)
        left = {at: _left(series[start:at]) + _left(series[at:end]) for at in range(first, last + 1)}
        best = min(left, key=lambda at: (left[at], abs(at - change.at)), default=change.at)
        made.append(ChangePoint(best, change.found_at))
    return made


def _left(side: Numbers) -> float:
    """Absolute deviations from the median, together."""
    return float(np.abs(side - np.median(side)).sum())
