"""A flight recorder's folder: what it says of itself, and its values as the tall table that all runs have.

A recording holds samples of each collector, at three levels of time. A rolled-up value keeps the number of intervals,
their mean or sum, both extremes, and a histogram of them, which merges exactly. So a percentile over a year is one of
its seconds, and no mean of means. The writer is `assay.telemetry.flight`, the form `assay.record.flight_segments`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.record.documents import parsed
from assay.record.flight_reading import INTERVAL_MAX_NS, RecordingReader, Rolls, Samples
from assay.record.flight_segments import (
    MINUTE_NS,
    NAME,
    NOTICES_MAX,
    ROLLED_NS,
    TEXT_MAX,
    TIME_MAX_NS,
    SampleLayout,
    floor_ns,
    from_each,
    has_recording,
)
from assay.record.rolled import VALUE_MAX, Rolled, roll

if TYPE_CHECKING:
    import sqlite3

    import numpy as np

    from assay.record.rows import Rows

__all__ = [
    "MINUTE_NS",
    "NAME",
    "ROLLED_NS",
    "SampleLayout",
    "Spread",
    "floor_ns",
    "has_recording",
    "read_recording",
    "spreads",
    "told_of",
]

_GAPS_MAX = 200
_SESSIONS_MAX = 100_000

SERIES_READ_MAX = 32_000
"""Series that are read: numbers of texts have two bytes."""
_LEFT_OUT = -1


def told_of(folder: Path) -> dict[str, Any]:
    """What a manifest's `recording` says of a flight recorder's files: when it recorded, its gaps and its notices.

    Raises
    ------
    RunFolderError
        The folder cannot be read.
    """
    found, failed = from_each(folder, _told)
    sessions = [session for one in found for session in one.sessions]
    notices = [notice for one in found for notice in one.notices]
    if lost := sum(one.lost_count for one in found):
        notices.append(f"{lost:,} samples are lost: they could not be written, and more came than wait in memory")
    notices += [f"{text}; it is left out" for text in failed]
    return {
        "hosts": [one.host for one in found if one.host][-1:],
        "from_utc_ns": min((begun for begun, _ in sessions), default=None),
        "to_utc_ns": max((ended for _, ended in sessions), default=None),
        "gaps_utc_ns": _gaps(sessions)[-_GAPS_MAX:],
        "notices": list(dict.fromkeys(notices))[-NOTICES_MAX:],
    }


class _Told(NamedTuple):
    """What a file says of itself."""

    host: str
    sessions: list[tuple[int, int]]
    notices: list[str]
    lost_count: int


def _told(connection: sqlite3.Connection) -> _Told:
    meta = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta LIMIT 1000")}
    notices = parsed(meta.get("notices", "[]").encode())
    if not isinstance(notices, list):
        raise ValueError("its notices are no list")
    told = [str(text)[:TEXT_MAX] for text in notices[:NOTICES_MAX]]
    return _Told(meta.get("host", "")[:TEXT_MAX], _sessions(connection), told, max(int(meta.get("lost", "0")), 0))


def _sessions(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """When the recorder ran, as a file tells it: beginnings, and last samples."""
    query = "SELECT started_ns, ended_ns FROM sessions ORDER BY started_ns DESC LIMIT ?"
    found = [(int(begun), int(ended)) for begun, ended in connection.execute(query, (_SESSIONS_MAX,))]
    if any(not 0 < time_ns < TIME_MAX_NS for session in found for time_ns in session):
        raise ValueError("a session is at no time that a host has")
    return found


def _gaps(sessions: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Times between sessions that none of them covers."""
    gaps: list[list[int]] = []
    covered_ns: int | None = None
    for begun, ended in sorted(sessions):
        if covered_ns is not None and begun > covered_ns:
            gaps.append([covered_ns, begun])
        covered_ns = max(covered_ns or 0, begun, ended)
    return gaps


def read_recording(folder: Path, *, since_ns: int = 0) -> Rows:
    """Rows of a recording as those of any series, at the finest level that is kept of each time.

    Parameters
    ----------
    since_ns
        Only what ended after this time.

    Returns
    -------
    Rows
        By time; `unread` says what could not be read.

    Raises
    ------
    RunFolderError
        No file can be read.
    """
    reading = RecordingReader(folder, since_ns=since_ns)
    rows = _Rows()
    for part in reading.parts((0, 1, 2)):
        if isinstance(part, Rolls):
            rows.add_rolled(part)
        else:
            rows.add_samples(part)
    return rows.table(reading.unread)


class _Rows:
    """Rows as they are found: each with the number of its series, whose texts are kept once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._of_layouts: dict[int, tuple[SampleLayout, np.ndarray[Any, Any]]] = {}
        self._parts: dict[str, list[Any]] = {"t_ns": [], "interval_ns": [], "value": [], "series": []}
        self._rolled: dict[str, array[Any]] = {
            "t_ns": array("q"), "interval_ns": array("q"), "value": array("d"), "series": array("l"),
        }  # fmt: skip

    def _series(self, layout: SampleLayout) -> np.ndarray[Any, Any]:
        """Numbers of a layout's series."""
        import numpy as np

        kept = self._of_layouts.get(id(layout))
        if kept is None:
            texts = (("wall", layout.tier, layout.host, layout.source, *one) for one in layout.series)
            numbers = [self._number(text) for text in texts]
            # The layout is kept too, so that no other gets its identity.
            kept = self._of_layouts[id(layout)] = (layout, np.array(numbers, np.int64))
        return kept[1]

    def _number(self, texts: tuple[str, ...]) -> int:
        if len(self._numbers) >= SERIES_READ_MAX:
            return self._numbers.get(texts, _LEFT_OUT)
        return self._numbers.setdefault(texts, len(self._numbers))

    def add_samples(self, part: Samples) -> None:
        """Add samples, series by series."""
        import numpy as np

        count = min(len(part.columns), len(part.layout.series))
        if not count:
            return
        times = np.array(part.times, np.int64).reshape(-1, 2)
        values = np.frombuffer(b"".join(part.columns[:count]), np.float64).reshape(count, -1)
        # A value that is none, NaN, is not below the bound either.
        in_time = (times[:, 0] > 0) & (times[:, 0] < TIME_MAX_NS) & (times[:, 1] > 0) & (times[:, 1] <= INTERVAL_MAX_NS)
        series, places = np.nonzero((np.abs(values) < VALUE_MAX) & in_time)
        parts = self._parts
        parts["t_ns"].append(times[places, 0])
        parts["interval_ns"].append(times[places, 1])
        parts["value"].append(values[series, places])
        parts["series"].append(self._series(part.layout)[series])

    def add_rolled(self, part: Rolls) -> None:
        """Add rolled-up values."""
        if not 0 < part.t_ns < TIME_MAX_NS:
            return
        numbers = self._series(part.layout)
        for number, one in zip(numbers.tolist(), part.values, strict=False):
            if one is not None and 0 < one.covered_ns <= INTERVAL_MAX_NS and abs(one.value) < VALUE_MAX:
                self._rolled["t_ns"].append(part.t_ns)
                self._rolled["interval_ns"].append(one.covered_ns)
                self._rolled["value"].append(one.value)
                self._rolled["series"].append(number)

    def table(self, unread: Sequence[str]) -> Rows:
        """The rows by time."""
        import numpy as np

        from assay.record.rows import TEXT_COLUMNS, Rows, TextColumn

        found = {
            name: np.concatenate([*self._parts.pop(name), np.array(self._rolled.pop(name))])
            for name in tuple(self._parts)
        }
        notes = list(unread)
        if len(self._numbers) >= SERIES_READ_MAX:
            notes.append(f"more than {SERIES_READ_MAX:,} series were recorded; those that came last are left out")
        order = np.argsort(found["t_ns"], kind="stable")
        order = order[found["series"][order] != _LEFT_OUT]
        series = found.pop("series").astype(np.int32)[order]
        columns: dict[str, Any] = {name: found.pop(name)[order] for name in tuple(found)}
        texts = {}
        for name, own in zip(
            TEXT_COLUMNS, zip(*self._numbers, strict=True) if self._numbers else ((),) * 8, strict=True
        ):
            numbered = TextColumn.of(own)
            texts[name] = TextColumn(numbered.numbers.astype(np.int16)[series], numbered.texts)
        return Rows(**columns, texts=texts, unread=notes)


class Spread(NamedTuple):
    """How a metric of an entity was spread over all intervals that were recorded: rates of deltas, values of gauges."""

    histogram: dict[int, int]
    most: float
    most_ns: int


def spreads(folder: Path, metrics: Sequence[str]) -> dict[tuple[str, str, str, str], Spread]:
    """Spread of metrics over all minutes that are kept, and quarter hours before them: by host, source, entity, metric.

    Raises
    ------
    RunFolderError
        No file can be read.
    """
    wanted = set(metrics)
    found: dict[tuple[str, str, str, str], Spread] = {}
    reading = RecordingReader(folder, takes=lambda layout: any(one.metric in wanted for one in layout.series))
    # Samples are rolled up where no minute is kept of them, as of what is in no minute yet.
    for part in reading.parts((1, 0, 2)):
        if isinstance(part, Rolls):
            t_ns, values = part.t_ns, part.values
        else:
            t_ns, values = part.times[-1][0], rolled_of(part)
        for one, value in zip(part.layout.series, values, strict=False):
            if value is not None and one.metric in wanted:
                key = (part.layout.host, part.layout.source, one.entity, one.metric)
                found[key] = _spread(found.get(key) or Spread({}, -math.inf, 0), value, t_ns)
    return found


def rolled_of(part: Samples) -> list[Rolled | None]:
    """Samples as one value of each series; nothing where their times are none."""
    if not part.times or any(not 0 < interval_ns <= INTERVAL_MAX_NS for _, interval_ns in part.times):
        return []
    return roll(part.layout.series, part.times, part.columns)


def _spread(old: Spread, value: Rolled, t_ns: int) -> Spread:
    for bucket, count in value.histogram.items():
        old.histogram[bucket] = old.histogram.get(bucket, 0) + count
    return Spread(old.histogram, value.most, t_ns) if value.most > old.most else old
