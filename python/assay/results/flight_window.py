"""A recording between two times, at the level that the time between them needs: what is drawn of it.

Unlike `read_recording`, it makes no table of everything: it takes the series that are asked for, step by step, without
Arrow, so that a process that watches a recording for weeks stays small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.results.flight import ROLLED_NS, Layout, floor_ns, layouts_of, opened
from assay.results.rolled import Series, floats_of, unpack_block, unpack_rolled

if TYPE_CHECKING:
    import sqlite3

SECONDS_SPAN_NS = 3 * 3600 * 10**9
"""Samples are read of at most so long a time, minutes of a longer one."""
MINUTES_SPAN_NS = 4 * 24 * 3600 * 10**9
"""Minutes are read of at most so long a time, quarter hours of a longer one."""

Wanted = Callable[[Layout, Series], bool]


class Line(NamedTuple):
    """One series over the steps: of deltas the rate per second; None where nothing was recorded."""

    layout: Layout
    series: Series
    values: list[float | None]


def catalogue(folder: Path) -> list[Layout]:
    """What a recording holds.

    Raises
    ------
    RunFolderError
        The file cannot be read.
    """
    with opened(folder) as connection:
        return list(layouts_of(connection).values())


def span(folder: Path) -> tuple[int, int]:
    """When what a recording still holds begins and ends; zeros where it holds nothing.

    Raises
    ------
    RunFolderError
        The file cannot be read.
    """
    with opened(folder) as connection:
        first, last = connection.execute(
            "SELECT min(first), max(last) FROM (SELECT min(begin_ns) AS first, max(end_ns) AS last FROM blocks"
            " UNION ALL SELECT min(t_ns - interval_ns), max(t_ns) FROM fresh"
            " UNION ALL SELECT min(t_ns), max(t_ns) FROM rolled)"
        ).fetchone()
    return (int(first), int(last)) if first is not None else (0, 0)


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
        The file cannot be read.
    """
    level = level_of(to_ns - from_ns)
    step_ns = max(-(-(to_ns - from_ns) // max(steps, 1)), ROLLED_NS.get(level, 10**9))
    count = max(-(-(to_ns - from_ns) // step_ns), 1)
    sums: dict[tuple[int, int], _Sums] = {}
    with opened(folder) as connection:
        # One moment of it, while the recorder goes on.
        connection.execute("BEGIN")
        layouts = layouts_of(connection)
        chosen = {
            number: [place for place, one in enumerate(layout.series) if wanted(layout, one)]
            for number, layout in layouts.items()
        }
        for number, t_ns, interval_ns, values in _rows(connection, level, from_ns, to_ns, chosen):
            step = min(max((t_ns - 1 - from_ns) // step_ns, 0), count - 1)
            for place in chosen[number]:
                value = values[place] if place < len(values) else None
                if value is not None and math.isfinite(value):
                    kept = sums.get((number, place))
                    if kept is None:
                        kept = sums[number, place] = _Sums(count)
                    kept.add(step, value, interval_ns, layouts[number].series[place].kind == "delta")
    times = [from_ns + (step + 1) * step_ns for step in range(count)]
    lines = [
        Line(layouts[number], layouts[number].series[place], one.values()) for (number, place), one in sums.items()
    ]
    return times, lines


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

    def values(self) -> list[float | None]:
        return [total / weight if weight else None for total, weight in zip(self._totals, self._weights, strict=True)]


_Row = tuple[int, int, int, Sequence[float | None]]


def _rows(
    connection: sqlite3.Connection, level: int, from_ns: int, to_ns: int, chosen: dict[int, list[int]]
) -> Iterator[_Row]:
    """Layout, end, length and values of what is kept between two times, each time once."""
    first_block_ns = connection.execute("SELECT min(begin_ns) FROM blocks").fetchone()[0]
    first_minute_ns = connection.execute("SELECT min(t_ns) FROM rolled WHERE level = 1").fetchone()[0]
    last_quarter_ns = connection.execute("SELECT max(t_ns) FROM rolled WHERE level = 2").fetchone()[0]
    # From where on a finer level is read; what is older is kept at the next coarser one alone.
    seconds_ns = to_ns if level or first_block_ns is None else max(int(first_block_ns), from_ns)
    minutes_ns = from_ns
    if level == 2 and last_quarter_ns is not None:
        minutes_ns = max(int(last_quarter_ns), from_ns)
    elif first_minute_ns is not None:
        minutes_ns = max(floor_ns(int(first_minute_ns), ROLLED_NS[2]), from_ns)
    yield from _rolled_rows(connection, 2, from_ns, min(minutes_ns, to_ns), chosen)
    yield from _rolled_rows(connection, 1, minutes_ns, min(seconds_ns, to_ns), chosen)
    query = "SELECT layout, data FROM blocks WHERE end_ns > ? AND begin_ns <= ? ORDER BY end_ns"
    for number, data in connection.execute(query, (seconds_ns, to_ns)) if not level else ():
        if chosen.get(number):
            times, columns = unpack_block(data)
            for place, (t_ns, interval_ns) in enumerate(times):
                if seconds_ns < t_ns <= to_ns:
                    yield number, t_ns, interval_ns, [column[place] for column in columns]
    # What is in no minute yet.
    query = "SELECT layout, t_ns, interval_ns, data FROM fresh WHERE t_ns > ? AND t_ns <= ? ORDER BY t_ns"
    for number, t_ns, interval_ns, data in connection.execute(query, (from_ns, to_ns)):
        if chosen.get(number):
            yield int(number), int(t_ns), int(interval_ns), floats_of(data)


def _rolled_rows(
    connection: sqlite3.Connection, level: int, from_ns: int, to_ns: int, chosen: dict[int, list[int]]
) -> Iterator[_Row]:
    query = "SELECT layout, t_ns, data FROM rolled WHERE level = ? AND t_ns > ? AND t_ns <= ? ORDER BY t_ns"
    for number, t_ns, data in connection.execute(query, (level, from_ns, to_ns)):
        if chosen.get(number):
            rolled = unpack_rolled(data)
            covered = max((one.covered_ns for one in rolled if one is not None), default=0)
            yield int(number), int(t_ns), covered, [None if one is None else one.value for one in rolled]


def told(layouts: Sequence[Layout]) -> list[dict[str, Any]]:
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
