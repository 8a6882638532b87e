"""What a flight recorder keeps: seconds, minutes and quarter hours in one SQLite file, and how they are read.

`recording.sqlite` of a recording holds samples of each collector, at three levels of time. A rolled-up value keeps the
number of intervals, their mean or sum, both extremes, and a histogram of them, which merges exactly. So a percentile
over a year is one of its seconds, and no mean of means. The writer is `assay.telemetry.flight`; this module knows the
form, and reads it as the tall table that all runs have. A file that is read may come from anywhere: it is opened for
reading only, nothing in it is run, and what it unfolds to is bounded.
"""

from __future__ import annotations

import itertools
import json
import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from assay.errors import RunFolderError
from assay.paths import printable
from assay.results.rolled import SERIES_MAX, Rolled, Series, floats_of, roll, unpack_block, unpack_rolled

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa

NAME = "recording.sqlite"

VERSION = 1

MINUTE_NS = 60 * 10**9
ROLLED_NS = {1: MINUTE_NS, 2: 15 * MINUTE_NS}
"""Length of what is rolled up, by level: minutes and quarter hours."""

SECONDS_ROWS_MAX = 10_000_000
"""Values by the second that are read: the newest; what is older is read by the minute."""
ROWS_MAX = 24_000_000
"""Values that are read in all."""

_TEXT_MAX = 1000


SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (started_ns INTEGER PRIMARY KEY, ended_ns INTEGER NOT NULL, boot TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS layouts (id INTEGER PRIMARY KEY, tier TEXT NOT NULL, host TEXT NOT NULL,
    source TEXT NOT NULL, series TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS fresh (t_ns INTEGER NOT NULL, interval_ns INTEGER NOT NULL, layout INTEGER NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS fresh_times ON fresh (layout, t_ns);
CREATE TABLE IF NOT EXISTS blocks (begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, layout INTEGER NOT NULL,
    samples INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS block_times ON blocks (end_ns);
CREATE TABLE IF NOT EXISTS rolled (level INTEGER NOT NULL, t_ns INTEGER NOT NULL, layout INTEGER NOT NULL,
    data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS rolled_times ON rolled (level, t_ns);
"""


class Layout(NamedTuple):
    """What the values of a collector's samples are of, in their order; it grows at its end."""

    tier: str
    host: str
    source: str
    series: list[Series]


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file of a recording, for reading only; its recorder may be at work.

    Raises
    ------
    RunFolderError
        It cannot be read, or is not of this form.
    """
    # Few commands look at a recording: the others start without it.
    import sqlite3

    path = Path(folder) / NAME
    shown = printable(path)
    if path.is_symlink() or not path.is_file():
        raise RunFolderError(f"{shown}: is no regular file")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)
    except sqlite3.Error as error:
        raise RunFolderError(f"{shown}: cannot be opened: {error}") from None
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        # A view of that name could hold anything.
        wanted = {"meta", "sessions", "layouts", "fresh", "blocks", "rolled"}
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not wanted <= tables:
            raise RunFolderError(f"{shown}: is no recording: it lacks {', '.join(sorted(wanted - tables))}")
        yield connection
    except (sqlite3.Error, ValueError, TypeError, OverflowError, struct.error) as error:
        raise RunFolderError(f"{shown}: cannot be read: {error}") from None
    finally:
        connection.close()


def has_recording(folder: Path) -> bool:
    """Whether a folder holds a flight recorder's file."""
    return (Path(folder) / NAME).exists()


def layouts_of(connection: sqlite3.Connection) -> dict[int, Layout]:
    """Layouts by number.

    Raises
    ------
    ValueError
        One has another form.
    """
    found = {}
    for number, tier, host, source, text in connection.execute("SELECT id, tier, host, source, series FROM layouts"):
        made = json.loads(text)
        if len(made) > SERIES_MAX:
            raise ValueError("a layout has too many series")
        series = [Series(*(str(word)[:_TEXT_MAX] for word in one)) for one in made]
        if any(one.kind not in ("gauge", "delta") for one in series):
            raise ValueError("a series is neither gauge nor delta")
        found[int(number)] = Layout(str(tier), str(host), str(source), series)
    return found


def _sessions(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """When the recorder ran: its beginning, and its last sample."""
    rows = connection.execute("SELECT started_ns, ended_ns FROM sessions ORDER BY started_ns")
    return [(int(started), int(ended)) for started, ended in rows]


def told_of(folder: Path) -> dict[str, Any]:
    """What a manifest's `recording` says of a flight recorder's file: when it recorded, its gaps and its notices.

    Raises
    ------
    RunFolderError
        The file cannot be read.
    """
    with opened(folder) as connection:
        meta = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta")}
        sessions = _sessions(connection)
        notices = [str(text)[:_TEXT_MAX] for text in json.loads(meta.get("notices", "[]"))]
        lost = int(meta.get("lost", "0"))
    if lost:
        notices.append(f"{lost:,} samples are lost: they could not be written, and more came than wait in memory")
    gaps = [[before[1], after[0]] for before, after in itertools.pairwise(sessions) if after[0] > before[1]]
    return {
        "hosts": [meta["host"]] if "host" in meta else [],
        "from_utc_ns": sessions[0][0] if sessions else None,
        "to_utc_ns": max((ended for _, ended in sessions), default=None),
        "gaps_utc_ns": gaps[-_GAPS_MAX:],
        "notices": notices,
    }


_GAPS_MAX = 200


class _Samples(NamedTuple):
    """Samples of a layout: its number, times, and columns by series."""

    layout: int
    times: list[tuple[int, int]]
    columns: list[array[float]]


def _seconds(connection: sqlite3.Connection, since_ns: int) -> Iterator[_Samples]:
    for layout, data in connection.execute(
        "SELECT layout, data FROM blocks WHERE end_ns > ? ORDER BY end_ns", (since_ns,)
    ):
        times, columns = unpack_block(data)
        yield _Samples(layout, times, columns)
    for t_ns, interval_ns, layout, data in connection.execute(
        "SELECT t_ns, interval_ns, layout, data FROM fresh WHERE t_ns > ? ORDER BY t_ns", (since_ns,)
    ):
        yield _Samples(layout, [(int(t_ns), int(interval_ns))], [array("d", (value,)) for value in floats_of(data)])


def _seconds_from(connection: sqlite3.Connection, layouts: dict[int, Layout], since_ns: int) -> int:
    """Where the seconds begin that are read: as many of the newest as are read."""
    rows = 0
    begin_ns = connection.execute("SELECT min(begin_ns) FROM blocks").fetchone()[0]
    if begin_ns is None:
        first = connection.execute("SELECT min(t_ns) FROM fresh").fetchone()[0]
        # Without any second all that there is are minutes and quarter hours.
        return max(floor_ns(int(first), MINUTE_NS), since_ns) if first is not None else 2**62
    for end_ns, layout, samples in connection.execute(
        "SELECT end_ns, layout, samples FROM blocks WHERE end_ns > ? ORDER BY end_ns DESC", (since_ns,)
    ):
        rows += samples * len(layouts[layout].series)
        if rows > SECONDS_ROWS_MAX:
            return max(floor_ns(int(end_ns), MINUTE_NS) + MINUTE_NS, since_ns)
    return max(int(begin_ns), since_ns)


def floor_ns(t_ns: int, step_ns: int) -> int:
    """Beginning of the step that an interval which ends then belongs to.

    Examples
    --------
    >>> floor_ns(MINUTE_NS, MINUTE_NS), floor_ns(MINUTE_NS + 1, MINUTE_NS) == MINUTE_NS
    (0, True)
    """
    return (t_ns - 1) // step_ns * step_ns


def read_recording(folder: Path, *, since_ns: int = 0) -> pa.Table:
    """Rows of a recording as those of any series, at the finest level that is kept of each time.

    Parameters
    ----------
    since_ns
        Only what ended after this time.

    Raises
    ------
    RunFolderError
        The file cannot be read.
    """
    import pyarrow as pa

    from assay.results.series_schema import READ_SCHEMA

    with opened(folder) as connection:
        # One moment of it, while the recorder goes on.
        connection.execute("BEGIN")
        layouts = layouts_of(connection)
        fine_ns = _seconds_from(connection, layouts, since_ns)
        batches = []
        room = ROWS_MAX
        coarse_ns = min(_minutes_from(connection, fine_ns), fine_ns)
        for level, begin, end in ((2, since_ns, coarse_ns), (1, max(since_ns, coarse_ns), fine_ns)):
            for t_ns, number, data in connection.execute(
                "SELECT t_ns, layout, data FROM rolled WHERE level = ? AND t_ns > ? AND t_ns <= ? ORDER BY t_ns",
                (level, begin, end),
            ):
                batches.append(_rolled_batch(layouts[number], int(t_ns), unpack_rolled(data)))
                room -= batches[-1].num_rows
        for samples in _seconds(connection, fine_ns):
            batches.append(_batch(layouts[samples.layout], samples))
            room -= batches[-1].num_rows
            if room < 0:
                raise ValueError(f"more than {ROWS_MAX:,} values")
    if not batches:
        return pa.Table.from_batches([], schema=READ_SCHEMA)
    table = pa.Table.from_batches(batches).unify_dictionaries()
    return table.cast(READ_SCHEMA).sort_by("t_ns")


def _minutes_from(connection: sqlite3.Connection, default_ns: int) -> int:
    """Where the minutes begin that are kept: whole quarter hours of them."""
    first = connection.execute("SELECT min(t_ns) FROM rolled WHERE level = 1").fetchone()[0]
    return floor_ns(int(first), ROLLED_NS[2]) if first is not None else default_ns


class _Rows:
    """Rows of a layout as they are found, column by column."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._columns: dict[str, list[Any]] = {name: [] for name in ("t_ns", "interval_ns", "value", *Series._fields)}

    def add(self, one: Series, times: Sequence[tuple[int, int]], values: Sequence[float]) -> None:
        """Add values of a series, each with the end and the length of its interval."""
        columns = self._columns
        columns["t_ns"] += [t_ns for t_ns, _ in times]
        columns["interval_ns"] += [interval_ns for _, interval_ns in times]
        columns["value"] += values
        for name, text in zip(Series._fields, one, strict=True):
            columns[name] += [text] * len(values)

    def batch(self) -> pa.RecordBatch:
        """The rows as a batch of the series schema."""
        import pyarrow as pa

        from assay.results.series_schema import READ_SCHEMA

        texts = pa.dictionary(pa.int16(), pa.string())
        count = len(self._columns["value"])
        layout = self._layout
        common = {"clock": "wall", "tier": layout.tier, "host": layout.host, "source": layout.source}
        columns: dict[str, Any] = {
            name: pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int16()), pa.array([text]))
            for name, text in common.items()
        }
        for name in Series._fields:
            columns[name] = pa.array(self._columns[name], pa.string()).dictionary_encode().cast(texts)
        for name in ("t_ns", "interval_ns"):
            columns[name] = pa.array(self._columns[name], pa.int64())
        columns["value"] = pa.array(self._columns["value"], pa.float64())
        return pa.RecordBatch.from_arrays([columns[name] for name in READ_SCHEMA.names], schema=READ_SCHEMA)


def _batch(layout: Layout, samples: _Samples) -> pa.RecordBatch:
    rows = _Rows(layout)
    for one, column in zip(layout.series, samples.columns, strict=False):
        known = [place for place, value in enumerate(column) if math.isfinite(value) and samples.times[place][1] > 0]
        rows.add(one, [samples.times[place] for place in known], [column[place] for place in known])
    return rows.batch()


def _rolled_batch(layout: Layout, t_ns: int, values: Sequence[Rolled | None]) -> pa.RecordBatch:
    rows = _Rows(layout)
    for one, value in zip(layout.series, values, strict=False):
        if value is not None and value.covered_ns > 0:
            rows.add(one, [(t_ns, value.covered_ns)], [value.value])
    return rows.batch()


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
        The file cannot be read.
    """
    found: dict[tuple[str, str, str, str], Spread] = {}
    wanted = set(metrics)

    def add(layout: Layout, t_ns: int, values: Sequence[Rolled | None]) -> None:
        for one, value in zip(layout.series, values, strict=False):
            if value is None or one.metric not in wanted:
                continue
            key = (layout.host, layout.source, one.entity, one.metric)
            old = found.get(key) or Spread({}, -math.inf, 0)
            for bucket, count in value.histogram.items():
                old.histogram[bucket] = old.histogram.get(bucket, 0) + count
            found[key] = Spread(old.histogram, value.most, t_ns) if value.most > old.most else old

    with opened(folder) as connection:
        layouts = layouts_of(connection)
        before_ns = _minutes_from(connection, 2**62)
        query = "SELECT t_ns, layout, data FROM rolled WHERE (level = 1) OR (level = 2 AND t_ns <= ?)"
        for t_ns, number, data in connection.execute(query, (before_ns,)):
            add(layouts[number], int(t_ns), unpack_rolled(data))
        # What is in no minute yet.
        for t_ns, interval_ns, number, data in connection.execute("SELECT t_ns, interval_ns, layout, data FROM fresh"):
            times = [(int(t_ns), max(int(interval_ns), 1))]
            columns = [[value] for value in floats_of(data)]
            add(layouts[number], int(t_ns), roll(layouts[number].series, times, columns))
    return found
