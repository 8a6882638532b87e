"""The history of each load on each target: its figures over time, where their level changed, and what changed there.

`history_of` is what a verb prints and a page draws. A series is the values of one figure of one load in comparable
runs (`assay.insight.comparable`); levels are the stretches between its changes (`change_points`).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assay.insight.comparable import ComparableKey
from assay.insight.differences import is_better
from assay.insight.history.change_points import (
    CHANCE,
    AskedSeries,
    ChangePoint,
    cautious_correlation,
    find_all,
)
from assay.insight.history.facts import SEED, FactChange, fact_changes, rare_changes
from assay.insight.history.rank_sums import deviation
from assay.insight.history.reading import PastLoad, PastRun, ReadRuns, SkippedRun
from assay.record.figures import Figure
from assay.record.intervals import NORMAL_975
from assay.record.steady import geometric_mean_95
from assay.workloads.registry import figures_of

Numbers = npt.NDArray[np.float64]

RUNS_MIN = 2
"""Runs of a load below which there is no history of it."""
NEAR = 2
"""Runs to either side of a change whose facts are told: its place is not sure to the run."""
ORDERED_MIN = 6
"""Runs from which on the interval of a median is read from the values in order."""
PAIRED_MAX = 200
"""Runs of each side of a change that its size is worked out from."""


@dataclass(frozen=True)
class Level:
    """The level of a series between two changes.

    Attributes
    ----------
    first, count
        Place of its first run, and how many runs it has.
    value
        The median.
    interval_95
        Of the median, widened by what neighbouring runs have in common; None for a single run.
    """

    first: int
    count: int
    value: float
    interval_95: tuple[float, float] | None


@dataclass(frozen=True)
class LevelChange:
    """A change of level.

    Attributes
    ----------
    at
        Place of the first run after it, in the series.
    found_at
        Place of the run with which it was found.
    share, interval_95
        After / before - 1: the median ratio of all pairs of runs (Hodges and Lehmann), and its 95 % interval.
    better
        None where neither way is better.
    """

    at: int
    found_at: int
    share: float
    interval_95: tuple[float, float] | None
    better: bool | None


@dataclass(frozen=True)
class FigureTrend:
    """One figure of a load over its runs.

    Attributes
    ----------
    figure
        Its definition: name, unit, words of a value.
    end
        Of a search the load at which it was held, in words; empty of a point.
    runs
        The runs that have a value, in order of time.
    values
        Their values, in base units.
    levels
        At least one; the last is the level now.
    changes
        One fewer than the levels.
    runs_to_find
        Runs that an unchanged series needs before a change can be found at all; 0 where there are enough.
    """

    figure: Figure
    end: str
    runs: tuple[PastRun, ...]
    values: tuple[float, ...]
    levels: tuple[Level, ...]
    changes: tuple[LevelChange, ...]
    runs_to_find: int

    @property
    def title(self) -> str:
        """The figure as tables head it."""
        return f"{self.figure.title} {self.end}".strip()

    @property
    def now(self) -> Level:
        """The level of the newest runs."""
        return self.levels[-1]

    @property
    def last_change(self) -> LevelChange | None:
        """The newest change, if any."""
        return self.changes[-1] if self.changes else None


@dataclass(frozen=True)
class LoadHistory:
    """One load on one target over its runs.

    Attributes
    ----------
    key
        What its runs have in common.
    workload, load, state
        In words.
    trends
        Its figures, that of the kind's first first.
    """

    key: ComparableKey
    workload: str
    load: str
    state: str
    trends: tuple[FigureTrend, ...]

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return max(len(trend.values) for trend in self.trends)


@dataclass(frozen=True)
class ChangedFigure:
    """A change of level with the load and the figure that it is of."""

    load: LoadHistory
    trend: FigureTrend
    change: LevelChange


@dataclass(frozen=True)
class ChangeEvent:
    """Changes of several figures of a target with nearly the same run: something happened there.

    Attributes
    ----------
    run
        The first run after most of the changes.
    at
        Its place among the runs of the target.
    changed
        The figures whose level changed, the largest change first.
    facts
        What changed near it, each once, the nearest first.
    """

    run: PastRun
    at: int
    changed: tuple[ChangedFigure, ...]
    facts: tuple[FactChange, ...]

    @property
    def worse(self) -> int:
        """How many figures changed for the worse."""
        return sum(one.change.better is False for one in self.changed)


@dataclass(frozen=True)
class TargetHistory:
    """One target over its runs.

    Attributes
    ----------
    place
        What makes it the same one (`ComparableKey.target`).
    title
        In words, as its newest run has it.
    runs
        All its runs, in order of time.
    loads
        Those with `RUNS_MIN` runs or more, the one with the most first.
    events
        What happened to it, the newest first.
    facts
        What changed from run to run, whether or not any figure did; `at` is the place in `runs`.
    """

    place: str
    title: str
    runs: tuple[PastRun, ...]
    loads: tuple[LoadHistory, ...]
    events: tuple[ChangeEvent, ...]
    facts: tuple[FactChange, ...]


@dataclass(frozen=True)
class RunsHistory:
    """Everything that some folders tell of their targets over time; the target that ran last is first."""

    targets: tuple[TargetHistory, ...]
    runs: int
    skipped: tuple[SkippedRun, ...]


def history_of(read: ReadRuns) -> RunsHistory:
    """The history of the targets of some runs."""
    by_target: dict[str, list[PastRun]] = {}
    for run in read.runs:
        for place in dict.fromkeys(load.key.target for load in run.loads):
            by_target.setdefault(place, []).append(run)
    targets = [_target(place, runs) for place, runs in by_target.items()]
    targets.sort(key=lambda target: target.runs[-1].started_utc_ns, reverse=True)
    return RunsHistory(tuple(targets), len(read.runs), read.skipped)


def _target(place: str, runs: Sequence[PastRun]) -> TargetHistory:
    by_load: dict[ComparableKey, list[tuple[PastRun, PastLoad]]] = {}
    for run in runs:
        for load in run.loads:
            if load.key.target == place:
                by_load.setdefault(load.key, []).append((run, load))
    series = [_series_of(key, measured) for key, measured in by_load.items() if len(measured) >= RUNS_MIN]
    # All series are judged together: that costs hardly more than one of them.
    found = iter(find_all([one.asked for load in series for one in load.figures]))
    loads = [load.history(list(itertools.islice(found, len(load.figures)))) for load in series]
    loads.sort(key=lambda load: load.runs, reverse=True)
    facts = fact_changes([run.facts for run in runs])
    title = runs[-1].target or "a target without a name"
    return TargetHistory(place, title, tuple(runs), tuple(loads), tuple(_events(runs, loads, facts)), tuple(facts))


def _events(runs: Sequence[PastRun], loads: Sequence[LoadHistory], facts: Sequence[FactChange]) -> list[ChangeEvent]:
    places = {run: place for place, run in enumerate(runs)}
    changed = [
        (places[trend.runs[change.at]], ChangedFigure(load, trend, change))
        for load in loads
        for trend in load.trends
        for change in trend.changes
    ]
    groups: list[list[tuple[int, ChangedFigure]]] = []
    for place, one in sorted(changed, key=lambda found: found[0]):
        if groups and place - groups[-1][0][0] <= NEAR:
            groups[-1].append((place, one))
        else:
            groups.append([(place, one)])
    rare = rare_changes(facts, len(runs)) if groups else []
    return [_event(runs, group, rare) for group in reversed(groups)]


def _event(
    runs: Sequence[PastRun], group: Sequence[tuple[int, ChangedFigure]], facts: Sequence[FactChange]
) -> ChangeEvent:
    """One event: its place is that of most of its changes."""
    at, _ = Counter(place for place, _ in group).most_common(1)[0]
    near = sorted((fact for fact in facts if abs(fact.at - at) <= NEAR), key=lambda fact: (abs(fact.at - at), fact.at))
    largest = sorted((one for _, one in group), key=lambda one: -abs(math.log1p(one.change.share)))
    return ChangeEvent(runs[at], at, tuple(largest), tuple(near))


@dataclass(frozen=True)
class _FigureSeries:
    """The values of one figure of a load, before changes were looked for."""

    figure: Figure
    end: str
    measured: Sequence[tuple[PastRun, float]]
    asked: AskedSeries


@dataclass(frozen=True)
class _LoadSeries:
    """One load on one target with its figures' values."""

    key: ComparableKey
    newest: PastLoad
    figures: Sequence[_FigureSeries]

    def history(self, found: Sequence[Sequence[ChangePoint]]) -> LoadHistory:
        """The history, once the changes of each figure are known."""
        trends = tuple(_trend(one, own) for one, own in zip(self.figures, found, strict=True))
        return LoadHistory(self.key, self.newest.workload, self.newest.load, self.key.state, trends)


def _series_of(key: ComparableKey, measured: Sequence[tuple[PastRun, PastLoad]]) -> _LoadSeries:
    newest = measured[-1][1]
    figures = {figure.name: figure for figure in figures_of({"workload": {"kind": newest.kind}})}
    series: dict[tuple[str, str], list[tuple[PastRun, float]]] = {}
    for run, load in measured:
        for value in load.values:
            if value.figure in figures:
                series.setdefault((value.figure, value.end), []).append((run, value.value))
    kept = {name: values for name, values in series.items() if len(values) >= RUNS_MIN}
    seeds = {fact.value for run, _ in measured for fact in run.facts if fact.name == SEED}
    is_exact = all(load.is_exact for _, load in measured) and len(seeds) == 1
    made = [
        _FigureSeries(figures[name], end, own, AskedSeries([value for _, value in own], len(kept), is_exact))
        for (name, end), own in kept.items()
    ]
    return _LoadSeries(key, newest, made)


def _trend(series: _FigureSeries, found: Sequence[ChangePoint]) -> FigureTrend:
    figure, end, judged, values = series.figure, series.end, series.asked.figures, list(series.asked.values)
    runs = [run for run, _ in series.measured]
    bounds = [0, *(change.at for change in found), len(values)]
    levels = [_level(values[first:last], first) for first, last in itertools.pairwise(bounds)]
    changes = []
    for number, change in enumerate(found):
        share, interval = _size(values[bounds[number] : change.at], values[change.at : bounds[number + 2]])
        changes.append(LevelChange(change.at, change.found_at, share, interval, is_better(figure, share)))
    return FigureTrend(
        figure, end, tuple(runs), tuple(values), tuple(levels), tuple(changes), runs_to_find(levels[-1].count, judged)
    )


def _level(values: Sequence[float], first: int) -> Level:
    """The median and its interval: the values in order at n / 2 - 1.96 sqrt(n c) / 2, with c for common parts.

    Source: W. J. Conover, Practical Nonparametric Statistics, section 3.2. c = (1 + r) / (1 - r) is what the
    correlation r of neighbours takes from independent values.
    """
    ordered = sorted(values)
    count = len(ordered)
    if count < ORDERED_MIN:
        return Level(first, count, float(np.median(ordered)), geometric_mean_95(values)[1])
    half = NORMAL_975 * math.sqrt(count * _common(np.log(values), count)) / 2
    low = max(math.floor(count / 2 - half), 0)
    return Level(first, count, float(np.median(ordered)), (ordered[low], ordered[count - 1 - low]))


def _size(before: Sequence[float], after: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """After / before - 1 and its interval: the ordered differences of all pairs of logarithms.

    Source: M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods, sections 4.2 and 4.3.
    """
    sides = [np.log(before[-PAIRED_MAX:]), np.log(after[:PAIRED_MAX])]
    pairs = np.sort((sides[1][:, None] - sides[0][None, :]).ravel())
    share = math.expm1(float(np.median(pairs)))
    series = np.concatenate(sides)
    spread = deviation(len(sides[0]), len(sides[1])) * math.sqrt(_common(series, len(sides[0])))
    place = math.floor(len(pairs) / 2 - NORMAL_975 * spread)
    if place < 0 or min(map(len, sides)) < RUNS_MIN:
        return share, None
    return share, (math.expm1(float(pairs[place])), math.expm1(float(pairs[len(pairs) - 1 - place])))


def _common(series: Numbers, at: int) -> float:
    """How many correlated values are worth one independent one."""
    correlation = cautious_correlation(series, at, caution=0.0)
    return (1 + correlation) / (1 - correlation)


def runs_to_find(known: int, figures: int) -> int:
    """How many more runs a level needs before a change of any size can be found; 0 where it has enough.

    Examples
    --------
    >>> runs_to_find(4, 1), runs_to_find(30, 1)
    (19, 0)
    """
    needed = known
    # One run has no neighbour before it that its value is judged with.
    while 2 / math.comb(max(needed - 1, 0), max(needed - 1, 0) // 2) > CHANCE / figures:
        needed += 1
    return needed - known
