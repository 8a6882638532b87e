"""A recording between two times, at the level that the time between them needs: what is drawn of it.

Unlike `read_recording`, it makes no table of everything: it takes the series that are asked for, step by step, without
Arrow, so that a process that watches a recording for weeks stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from assay.base.errors import RunFolderError
from assay.record.flight_reading import RecordingReader, Rolls, Samples, is_reading
from assay.record.flight_segments import ROLLED_NS, TIME_MAX_NS, SampleLayout, Told, from_each, layouts_of
from assay.record.latency_buckets import is_highest
from assay.record.rolled import SERIES_MAX, SeriesKey

if TYPE_CHECKING:
    import sqlite3

SECONDS_SPAN_NS = 3 * 3600 * 10**9
"""Samples are read of at most so long a time, minutes of a longer one."""
MINUTES_SPAN_NS = 4 * 24 * 3600 * 10**9
"""Minutes are read of at most so long a time, quarter hours of a longer one."""

Wanted = Callable[[SampleLayout, SeriesKey], bool]
Layout3 = tuple[str, str, str]
"""Tier, host and source of a layout."""


class Line(NamedTuple):
    """One series over the steps: of deltas the rate per second, of percentiles the highest; None without a value."""

    layout: SampleLayout
    series: SeriesKey
    values: list[float | None]


def catalogue(folder: Path) -> list[SampleLayout]:
    """What a recording holds; what cannot be read of it is left out.

    Raises
    ------
    RunFolderError
        No file can be read.
    """
    found: dict[tuple[str, str, str], SampleLayout] = {}
    for layouts in _of_any(folder, layouts_of):
        for layout in layouts.values():
            kept = found.setdefault(layout[:3], SampleLayout(*layout[:3], []))
            known = set(kept.series)
            kept.series.extend(one for one in layout.series[: SERIES_MAX - len(known)] if one not in known)
    return list(found.values())


def span(folder: Path) -> tuple[int, int]:
    """When what a recording still holds begins and ends; zeros where it holds nothing.

    Raises
    ------
    RunFolderError
        No file can be read.
    """
    times = [int(one) for pair in _of_any(folder, _span) for one in pair if one is not None]
    known = [one for one in times if 0 < one < TIME_MAX_NS]
    return (min(known), max(known)) if known else (0, 0)


def _of_any(folder: Path, take: Callable[[sqlite3.Connection], Told]) -> list[Told]:
    found, failed = from_each(folder, take)
    if failed and not found:
        raise RunFolderError(failed[0])
    return found


def _span(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    first, last = connection.execute(
        "SELECT min(first), max(last) FROM (SELECT min(begin_ns) AS first, max(end_ns) AS last FROM blocks"
        " UNION ALL SELECT min(t_ns - interval_ns), max(t_ns) FROM fresh"
        " UNION ALL SELECT min(t_ns), max(t_ns) FROM rolled)"
    ).fetchone()
    return first, last


def window(folder: Path, from_ns: int, to_ns: int, steps: int, wanted: Wanted) -> tuple[list[int], list[Line]]:
    """Series between two times, on equal steps.

    Parameters
    ----------
    steps
        At most so many; no step is shorter than what is read.
    wanted
        Which series.

    Returns
    -------
    tuple
        When each step ends, and a line for each series that has a value.

    Raises
    ------
    RunFolderError
        No file can be read.
    """
    times, sums = _summed(folder, from_ns, to_ns, steps, wanted)
    return times, [
        Line(SampleLayout(*of_layout, []), series, one.values()) for (of_layout, series), one in sums.items()
    ]


class Counted(NamedTuple):
    """Counts over steps: when each step ends, a line for each series, and the seconds of each step that are covered."""

    times_ns: list[int]
    lines: list[Line]
    covered_s: list[float]


def counted(folder: Path, from_ns: int, to_ns: int, steps: int, wanted: Wanted) -> Counted:
    """Counts of deltas between two times, on equal steps; None where nothing was counted. As `window` otherwise."""
    times, sums = _summed(folder, from_ns, to_ns, steps, wanted)
    lines = [Line(SampleLayout(*of_layout, []), series, one.totals()) for (of_layout, series), one in sums.items()]
    covered_s = [max((one.covered_s(step) for one in sums.values()), default=0.0) for step in range(len(times))]
    return Counted(times, lines, covered_s)


def _summed(
    folder: Path, from_ns: int, to_ns: int, steps: int, wanted: Wanted
) -> tuple[list[int], dict[tuple[Layout3, SeriesKey], _Sums]]:
    """When each step ends, and what each series adds up to in it."""
    level = level_of(to_ns - from_ns)
    step_ns = max(-(-(to_ns - from_ns) // max(steps, 1)), ROLLED_NS.get(level, 10**9))
    count = max(-(-(to_ns - from_ns) // step_ns), 1)
    sums: dict[tuple[Layout3, SeriesKey], _Sums] = {}
    reading = RecordingReader(
        folder, since_ns=from_ns, until_ns=to_ns, takes=lambda layout: any(wanted(layout, one) for one in layout.series)
    )
    # The level that is wanted, then finer ones where it lacks something, and coarser ones.
    for part in reading.parts(((0, 1, 2), (1, 0, 2), (2, 1, 0))[level]):
        chosen = [place for place, one in enumerate(part.layout.series) if wanted(part.layout, one)]
        for t_ns, interval_ns, place, value in _values(part, chosen):
            if from_ns < t_ns <= to_ns and is_reading(t_ns, interval_ns, value):
                one = part.layout.series[place]
                key = (part.layout[:3], one)
                kept = sums.get(key)
                if kept is None:
                    kept = sums[key] = (_Highest if is_highest(one.metric) else _Sums)(count)
                kept.add(
                    min(max((t_ns - 1 - from_ns) // step_ns, 0), count - 1), value, interval_ns, one.kind == "delta"
                )
    times = [from_ns + (step + 1) * step_ns for step in range(count)]
    return times, sums


def _values(part: Samples | Rolls, chosen: Sequence[int]) -> Iterator[tuple[int, int, int, float]]:
    """End, length, place in the layout and value of what was recorded of some series."""
    if isinstance(part, Rolls):
        for place in chosen:
            one = part.values[place] if place < len(part.values) else None
            if one is not None:
                value = one.most if is_highest(part.layout.series[place].metric) else one.value
                yield part.t_ns, one.covered_ns, place, value
        return
    for place in chosen:
        if place < len(part.columns):
            for (t_ns, interval_ns), value in zip(part.times, part.columns[place], strict=False):
                yield t_ns, interval_ns, place, value


def level_of(span_ns: int) -> int:
    """Level to read of a time so long: 0 of samples, 1 of minutes, 2 of quarter hours.

    Examples
    --------
    >>> level_of(3600 * 10**9), level_of(24 * 3600 * 10**9), level_of(30 * 24 * 3600 * 10**9)
    (0, 1, 2)
    """
    return 0 if span_ns <= SECONDS_SPAN_NS else 1 if span_ns <= MINUTES_SPAN_NS else 2


class _Sums:
    """Sums of a series over steps."""

    def __init__(self, count: int) -> None:
        self._totals, self._weights = [0.0] * count, [0.0] * count

    def add(self, step: int, value: float, interval_ns: int, is_delta: bool) -> None:
        seconds = max(interval_ns, 1) / 1e9
        self._totals[step] += value if is_delta else value * seconds
        self._weights[step] += seconds

    def covered_s(self, step: int) -> float:
        return self._weights[step]

    def totals(self) -> list[float | None]:
        return [total if weight else None for total, weight in zip(self._totals, self._weights, strict=True)]

    def values(self) -> list[float | None]:
        return [total / weight if weight else None for total, weight in zip(self._totals, self._weights, strict=True)]


class _Highest(_Sums):
    """The highest values of a series over steps."""

    def add(self, step: int, value: float, interval_ns: int, is_delta: bool) -> None:
        del is_delta
        self._totals[step] = max(value, self._totals[step]) if self._weights[step] else value
        self._weights[step] += max(interval_ns, 1) / 1e9

    def values(self) -> list[float | None]:
        return self.totals()


class CatalogueMetric(TypedDict):
    """A metric of a source, and the entities it is known of."""

    metric: str
    kind: str
    entities: list[str]


class CatalogueGroup(TypedDict):
    """What a source on a host recorded."""

    tier: str
    host: str
    source: str
    metrics: list[CatalogueMetric]


def told(layouts: Sequence[SampleLayout]) -> list[CatalogueGroup]:
    """A catalogue for a page: sources, their metrics, and the entities of each."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], list[str]]] = {}
    for layout in layouts:
        metrics = groups.setdefault((layout.tier, layout.host, layout.source), {})
        for one in layout.series:
            metrics.setdefault((one.metric, one.kind), []).append(one.entity)
    return [
        {
            "tier": tier,
            "host": host,
            "source": source,
            "metrics": [
                {"metric": metric, "kind": kind, "entities": sorted(set(entities))}
                for (metric, kind), entities in sorted(metrics.items())
            ],
        }
        for (tier, host, source), metrics in sorted(groups.items())
    ]
