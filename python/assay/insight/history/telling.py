"""A history in words and as a document: what `assay history` prints, and what `--json` has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypedDict

from assay.base.units import count_of
from assay.document.text import joined
from assay.insight.differences import signed_percent
from assay.insight.history.baseline import KeptBaseline
from assay.insight.history.change_points import FALSE_ALARMS_A_YEAR
from assay.insight.history.facts import FactChange
from assay.insight.history.reading import PastRun
from assay.insight.history.trends import (
    ChangedFigure,
    ChangeEvent,
    FigureTrend,
    LoadHistory,
    RunsHistory,
    TargetHistory,
)
from assay.record.figures import Figure

Interval = tuple[float, float] | None

SLIGHT_SHARE = 0.01
"""A smaller change of level is neither for the worse nor for the better where changes are counted."""


class LevelDocument(TypedDict):
    """A level: its first run, how many runs it has, the median and its interval in base units."""

    first_run: str
    runs: int
    value: float
    interval_95: Interval


class FactDocument(TypedDict):
    """A fact that changed, and the run that has the new value."""

    name: str
    before: str
    after: str
    run: str


class ChangeDocument(TypedDict):
    """A change of level: the first run after it, and the run with which it was found."""

    run: str
    started_utc_ns: int
    found_with: str
    share: float
    interval_95: Interval
    better: bool | None


class EventFigure(TypedDict):
    """A figure that changed with an event: its load and title, after / before - 1, and whether that is better."""

    figure: str
    share: float
    better: bool | None


class EventDocument(TypedDict):
    """Changes with nearly the same run: the first run after them, the figures, and what changed there."""

    run: str
    started_utc_ns: int
    figures: list[str]
    changed: list[EventFigure]
    worse: int
    facts: list[FactDocument]


class TrendDocument(TypedDict):
    """A figure of a load over its runs."""

    metric: str
    end: str
    title: str
    unit: str
    better: str | None
    runs: list[str]
    started_utc_ns: list[int]
    values: list[float]
    levels: list[LevelDocument]
    changes: list[ChangeDocument]
    runs_to_find: int


class LoadDocument(TypedDict):
    """A load of a target over its runs."""

    workload: str
    load: str
    state: str
    runs: int
    trends: list[TrendDocument]


class TargetDocument(TypedDict):
    """A target over its runs."""

    title: str
    runs: list[str]
    loads: list[LoadDocument]
    events: list[EventDocument]
    facts: list[FactDocument]


class SkippedDocument(TypedDict):
    """A folder that was skipped, and why."""

    path: str
    reason: str


class HistoryDocument(TypedDict):
    """The JSON document of `assay history`."""

    schema_version: int
    verb: str
    sentence: str
    false_alarms_a_year: float
    runs: int
    targets: list[TargetDocument]
    skipped: list[SkippedDocument]


class BaselineDocument(TypedDict):
    """A baseline that is kept: its folder, and its runs in order of time."""

    name: str
    folder: str
    runs: list[str]


class BaselinesDocument(TypedDict):
    """The JSON document of `assay baseline`."""

    schema_version: int
    verb: str
    baselines: list[BaselineDocument]


def baseline_document(kept: Sequence[KeptBaseline]) -> BaselinesDocument:
    """Baselines as one JSON document."""
    found: list[BaselineDocument] = [
        {"name": one.name, "folder": str(one.folder), "runs": [run.run_id for run in one.runs]} for one in kept
    ]
    return {"schema_version": 1, "verb": "baseline", "baselines": found}


BASELINE_COLUMNS = ("name", "runs", "first", "last", "loads", "title")


def baseline_rows(kept: Sequence[KeptBaseline]) -> list[tuple[str, ...]]:
    """A row for each baseline, in the columns of `BASELINE_COLUMNS`."""
    return [
        (
            one.name, str(len(one.runs)), day_of(one.runs[0]), day_of(one.runs[-1]),
            str(len({load.key for run in one.runs for load in run.loads})), one.runs[-1].title,
        )
        for one in kept
    ]  # fmt: skip


def history_document(history: RunsHistory) -> HistoryDocument:
    """A history as one JSON document."""
    return {
        "schema_version": 1,
        "verb": "history",
        "sentence": history_sentence(history),
        "false_alarms_a_year": FALSE_ALARMS_A_YEAR,
        "runs": history.runs,
        "targets": [_target(target) for target in history.targets],
        "skipped": [{"path": one.path, "reason": one.reason} for one in history.skipped],
    }


def _target(target: TargetHistory) -> TargetDocument:
    names = [run.run_id for run in target.runs]
    return {
        "title": target.title,
        "runs": names,
        "loads": [_load(load) for load in target.loads],
        "events": [
            {
                "run": event.run.run_id,
                "started_utc_ns": event.run.started_utc_ns,
                "figures": [f"{changed_load(one)}: {one.trend.title}" for one in event.changed],
                "changed": [
                    {
                        "figure": f"{changed_load(one)}: {one.trend.title}",
                        "share": one.change.share,
                        "better": one.change.better,
                    }
                    for one in event.changed
                ],
                "worse": event.worse,
                "facts": [_fact(fact, names[fact.at]) for fact in event.facts],
            }
            for event in target.events
        ],
        "facts": [_fact(fact, names[fact.at]) for fact in target.facts],
    }


def _load(load: LoadHistory) -> LoadDocument:
    return {
        "workload": load.workload,
        "load": load.load,
        "state": load.state,
        "runs": load.runs,
        "trends": [_trend(trend) for trend in load.trends],
    }


def _trend(trend: FigureTrend) -> TrendDocument:
    names = [run.run_id for run in trend.runs]
    return {
        "metric": trend.figure.name,
        "end": trend.end,
        "title": trend.title,
        "unit": trend.figure.unit,
        "better": trend.figure.better,
        "runs": names,
        "started_utc_ns": [run.started_utc_ns for run in trend.runs],
        "values": list(trend.values),
        "levels": [
            {
                "first_run": names[level.first],
                "runs": level.count,
                "value": level.value,
                "interval_95": level.interval_95,
            }
            for level in trend.levels
        ],
        "changes": [
            {
                "run": names[change.at],
                "started_utc_ns": trend.runs[change.at].started_utc_ns,
                "found_with": names[change.found_at],
                "share": change.share,
                "interval_95": change.interval_95,
                "better": change.better,
            }
            for change in trend.changes
        ],
        "runs_to_find": trend.runs_to_find,
    }


def _fact(fact: FactChange, run: str) -> FactDocument:
    return {"name": fact.name, "before": fact.before, "after": fact.after, "run": run}


def history_sentence(history: RunsHistory) -> str:
    """What came of a history, in one sentence."""
    targets, loads = len(history.targets), sum(len(target.loads) for target in history.targets)
    told = f"{count_of(history.runs, 'run')} of {count_of(targets, 'target')}, {count_of(loads, 'load')}"
    if not loads:
        return f"{told}: no load was measured twice in the same way, which a history needs."
    changed = [one for target in history.targets for event in target.events for one in event.changed]
    if not changed:
        return f"{told}: no change of level was found."
    events = [event for target in history.targets for event in target.events]
    when = f"{len(events)} times" if len(events) > 1 else "once"
    newest = max(events, key=lambda event: event.run.started_utc_ns)
    first = newest.changed[0]
    most = (
        f"{first.trend.title} {signed_percent(first.change.share)} since {day_of(newest.run)} ({changed_load(first)})"
    )
    ways = _ways(changed)
    counted = f"the level of {count_of(len(changed), 'figure')}"
    return f"{told}: {counted} changed, {when}{': ' + ways if ways else ''}. The last time: {most}."


def _ways(changed: Sequence[ChangedFigure]) -> str:
    """The number of figures that changed for the worse, for the better, and by next to nothing."""
    slight = sum(abs(one.change.share) < SLIGHT_SHARE for one in changed)
    much = [one.change.better for one in changed if abs(one.change.share) >= SLIGHT_SHARE]
    counts = ((much.count(False), "for the worse"), (much.count(True), "for the better"),
              (slight, f"by less than {SLIGHT_SHARE:.0%}".replace("%", " %")))  # fmt: skip
    return joined([f"{number} {words}" for number, words in counts if number])


def trend_words(trend: FigureTrend) -> str:
    """What a series did, in a few words: since its last change, or since it began; too few runs to tell is said."""
    change, now = trend.last_change, trend.now
    if change is not None:
        return f"{signed_percent(change.share)} on {day_of(trend.runs[change.at])}, {count_of(now.count, 'run')} ago"
    if trend.runs_to_find:
        return f"not judged: {count_of(trend.runs_to_find, 'more run')} needed"
    return f"no change in {count_of(now.count, 'run')}"


def event_words(target: TargetHistory, event: ChangeEvent) -> str:
    """An event in one sentence: when, how many figures changed, and what else changed there."""
    figures = count_of(len(event.changed), "figure")
    ways = _ways(event.changed)
    told = f": {ways}" if ways else ""
    known = "; ".join(fact_words(fact, event.at) for fact in event.facts)
    why = f"What changed there: {known}" if known else "Nothing that the runs recorded changed there"
    return f"{day_of(event.run)}, run {event.at + 1} of {len(target.runs)}: {figures} changed{told}. {why}."


def change_words(one: ChangedFigure) -> str:
    """A change in one sentence: how much, from and to what, and after how many runs it was found."""
    change, trend = one.change, one.trend
    interval = change.interval_95
    sure = f" (95 % interval {signed_percent(interval[0])} to {signed_percent(interval[1])})" if interval else ""
    number = trend.changes.index(change)
    before, after = (trend.figure.words(trend.levels[place].value) for place in (number, number + 1))
    found = count_of(change.found_at - change.at + 1, "run")
    return (
        f"{changed_load(one)}: {trend.title} {signed_percent(change.share)}{sure}, {before} -> {after}, found after"
        f" {found}"
    )


def changed_load(one: ChangedFigure) -> str:
    """The load whose level changed, in words."""
    return load_words(one.load)


def load_words(load: LoadHistory) -> str:
    """A load in words, with the state of its target where that is known."""
    return f"{load.workload}, {load.load}" + ("" if load.state == "unknown" else f", {load.state}")


def fact_words(fact: FactChange, at: int) -> str:
    """What changed near a change of level, and how near.

    Parameters
    ----------
    at
        Place of the first run after the change.

    Examples
    --------
    >>> fact_words(FactChange("kernel", "6.1", "6.12", 30), 30)
    'kernel 6.1 -> 6.12'
    >>> fact_words(FactChange("nvme0n1: firmware", "", "2.1", 29), 30)
    'nvme0n1: firmware not recorded -> 2.1 (1 run before)'
    """
    apart = fact.at - at
    where = f" ({count_of(abs(apart), 'run')} {'before' if apart < 0 else 'after'})" if apart else ""
    return f"{fact.name} {fact.before or 'not recorded'} -> {fact.after or 'not recorded'}{where}"


def interval_words(figure: Figure, interval: Interval) -> str:
    """An interval in the words of its figure; a dash where there is none."""
    return "-" if interval is None else f"{figure.words(interval[0])} to {figure.words(interval[1])}"


def day_of(run: PastRun) -> str:
    """The day of a run (UTC)."""
    started = run.started_utc_ns
    return f"{datetime.fromtimestamp(started / 1e9, UTC):%Y-%m-%d}" if 0 < started < 1 << 62 else "an unknown day"
