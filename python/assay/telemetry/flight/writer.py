"""Writing a flight recording: samples as they come, folded by the minute, rolled up, and pruned to their budget.

The file is SQLite's in write-ahead mode: a process that is killed loses what it had not committed, some seconds, and a
host that loses power what was not synced; neither damages it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from assay.errors import OutOfSpace, RefusedTarget, UsageError
from assay.paths import printable
from assay.results.flight import (
    MINUTE_NS,
    NAME,
    ROLLED_NS,
    SCHEMA,
    VERSION,
    Layout,
    floor_ns,
    layouts_of,
)
from assay.results.rolled import (
    SERIES_MAX,
    Rolled,
    Series,
    floats_of,
    merge,
    pack_block,
    pack_rolled,
    roll,
    unpack_rolled,
)
from assay.telemetry.columns import Reading

KEEP_MIN_BYTES = 16 * 2**20

SHARES = (0.60, 0.25, 0.15)
"""Of the budget that seconds, minutes and quarter hours may take."""

FILLED = 0.80
"""Of the budget that payload may take: the rest is the file's own structure."""

_WAL_BYTES = 4 * 2**20
"""What the write-ahead log may take; it is part of the budget."""

_PAGE_BYTES = 4096

LOCKED_MAX_S = 10.0
"""How long a write waits for a reader that empties the log or another that writes."""

WAITING_MAX_BYTES = 8 * 2**20
"""Samples that wait in memory while they cannot be written: some minutes of a large host; then the oldest go."""

_NAN = float("nan")


class FlightWriter:
    """The file of one recording, which no other recorder writes meanwhile.

    Parameters
    ----------
    folder
        Folder of the recording.
    keep_bytes
        What the file and its log may take of the disk.
    host
        Name of this host.

    Raises
    ------
    RefusedTarget
        Another recorder writes there.
    UsageError
        The budget is too small.
    """

    def __init__(self, folder: Path, *, keep_bytes: int, host: str) -> None:
        if keep_bytes < KEEP_MIN_BYTES:
            raise UsageError(f"--keep: {keep_bytes} bytes are too few; {KEEP_MIN_BYTES >> 20} MiB are the least")
        self._folder, self._keep_bytes, self._host = Path(folder), keep_bytes, host
        self._lock = self._locked()
        self._layouts: dict[int, Layout] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._places: dict[int, dict[tuple[str, str], int]] = {}
        self._pending: list[tuple[int, int, int, bytes]] = []
        self._grown: set[int] = set()
        self._folded_ns = 0
        self._session_ns = 0
        self.notices: list[str] = []
        self.lost_count = 0
        """Samples that could not be written, and waited for too long."""
        self._connection = self._open()
        self._bytes = self._payload()

    def _locked(self) -> int:
        descriptor = os.open(
            self._folder / "recorder.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
        )
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise RefusedTarget(
                f"{printable(self._folder)}: another recorder writes there; stop it, or give another folder"
            ) from None
        return descriptor

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._folder / NAME, timeout=LOCKED_MAX_S, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA cache_size=-2000")
        connection.execute("PRAGMA wal_autocheckpoint=256")
        connection.execute(f"PRAGMA journal_size_limit={_WAL_BYTES // 2}")
        connection.execute(f"PRAGMA max_page_count={(self._keep_bytes - _WAL_BYTES) // _PAGE_BYTES}")
        connection.executescript(SCHEMA)
        found = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        if found is not None and int(found[0]) > VERSION:
            raise UsageError(f"{printable(self._folder)}: was recorded by a newer Assay; give another folder")
        self._layouts = layouts_of(connection)
        for number, layout in self._layouts.items():
            self._numbers[layout.tier, layout.source] = number
            self._places[number] = {(one.entity, one.metric): place for place, one in enumerate(layout.series)}
        return connection

    def begin(self, meta: Mapping[str, str]) -> None:
        """Note that recording begins, on which boot of the host, and what a reader must know."""
        boot = _boot()
        now = time.time_ns()
        last = self._connection.execute(
            "SELECT ended_ns, boot FROM sessions ORDER BY started_ns DESC LIMIT 1"
        ).fetchone()
        if last is not None:
            away_s = (now - last[0]) / 1e9
            if away_s < 0:
                self.notice(f"the clock of this host went back by {-away_s:,.0f} s since the last sample")
            elif last[1] != boot:
                self.notice("the host was restarted since the last sample")
        self._session_ns = now
        self._connection.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", (now, now, boot))
        self.tell({**meta, "version": str(VERSION)})

    def tell(self, meta: Mapping[str, str]) -> None:
        """Write what a reader must know."""
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(meta.items()))

    def notice(self, text: str) -> None:
        """Keep a sentence for the reader, once."""
        if text not in self.notices:
            self.notices.append(text)

    def add(
        self, readings: Iterable[Reading], *, t_ns: int, interval_ns: int, tier: str, source: str, **_: Any
    ) -> None:
        """Take the values of one interval; they are written by `commit`."""
        number = self._numbers.get((tier, source))
        if number is None:
            number = max(self._layouts, default=0) + 1
            self._layouts[number] = Layout(tier, self._host, source, [])
            self._numbers[tier, source], self._places[number] = number, {}
            self._grown.add(number)
        places, layout = self._places[number], self._layouts[number]
        values = array("d", [_NAN]) * len(layout.series)
        for one in readings:
            place = places.get((one.entity, one.metric))
            if place is None:
                if len(layout.series) >= SERIES_MAX:
                    self.notice(f"{source}: more than {SERIES_MAX:,} series; new ones are left out")
                    continue
                place = places[one.entity, one.metric] = len(layout.series)
                layout.series.append(Series(one.entity, one.role, one.metric, str(one.kind)))
                self._grown.add(number)
                values.append(_NAN)
            values[place] = one.value
        self._pending.append((t_ns, interval_ns, number, values.tobytes()))

    def commit(self) -> None:
        """Write what was added and the notices; fold minutes that are over, and prune.

        Raises
        ------
        OutOfSpace
            The disk is full, or a reader holds the log: what was added waits in memory, as much as `WAITING_MAX_BYTES`,
            and what was written before is whole.
        """
        pending, self._pending = self._pending, []
        connection = self._connection
        try:
            self._see_that_log_ends()
            connection.execute("BEGIN IMMEDIATE")
            for number in self._grown:
                tier, host, source, series = self._layouts[number]
                connection.execute(
                    "INSERT OR REPLACE INTO layouts VALUES (?, ?, ?, ?, ?)", (number, tier, host, source, _text(series))
                )
            connection.executemany("INSERT INTO fresh VALUES (?, ?, ?, ?)", pending)
            if pending:
                last_ns = max(t_ns for t_ns, *_ in pending)
                connection.execute("UPDATE sessions SET ended_ns = ? WHERE started_ns = ?", (last_ns, self._session_ns))
                if floor_ns(last_ns, MINUTE_NS) > self._folded_ns:
                    self._fold(floor_ns(last_ns, MINUTE_NS))
                    self._prune()
                    self._folded_ns = floor_ns(last_ns, MINUTE_NS)
            self.tell({"notices": json.dumps(self.notices), "lost": str(self.lost_count)})
            connection.execute("COMMIT")
            self._grown.clear()
        except (sqlite3.OperationalError, sqlite3.DatabaseError, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._bytes = self._payload()
            self._keep_waiting(pending)
            raise OutOfSpace(
                f"{printable(self._folder)}: {error}; samples wait in memory until they can be written, the newest"
                f" {WAITING_MAX_BYTES >> 20} MiB of them"
            ) from error

    def _see_that_log_ends(self) -> None:
        """Write nothing more while a reader holds the write-ahead log, which could not be emptied and would grow."""
        log = self._folder / f"{NAME}-wal"
        if log.exists() and log.stat().st_size > _WAL_BYTES:
            held, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if held:
                raise OSError("a reader holds the log of the recording")

    def _keep_waiting(self, samples: list[tuple[int, int, int, bytes]]) -> None:
        size = sum(len(data) for *_, data in samples)
        first = 0
        while size > WAITING_MAX_BYTES:
            size -= len(samples[first][-1])
            first += 1
        self.lost_count += first
        self._pending = samples[first:]

    def _fold(self, before_ns: int) -> None:
        """Make blocks of the minutes before a time, and roll them up."""
        connection = self._connection
        rows = connection.execute(
            "SELECT t_ns, interval_ns, layout, data FROM fresh WHERE t_ns <= ? ORDER BY layout, t_ns", (before_ns,)
        )
        groups: dict[tuple[int, int], list[tuple[int, int, array[float]]]] = {}
        for t_ns, interval_ns, number, data in rows:
            sample = (t_ns, interval_ns, floats_of(data))
            groups.setdefault((number, floor_ns(t_ns, MINUTE_NS)), []).append(sample)
        for (number, begin_ns), samples in groups.items():
            series = self._layouts[number].series
            times = [(t_ns, interval_ns) for t_ns, interval_ns, _ in samples]
            columns = [
                array("d", [values[place] if place < len(values) else _NAN for _, _, values in samples])
                for place in range(len(series))
            ]
            block = pack_block(times, columns)
            connection.execute(
                "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", (begin_ns, times[-1][0], number, len(times), block)
            )
            self._bytes[0] += len(block)
            self._keep_rolled(1, times[-1][0], number, roll(series, times, columns))
        connection.execute("DELETE FROM fresh WHERE t_ns <= ?", (before_ns,))
        self._fold_minutes(floor_ns(before_ns + 1, ROLLED_NS[2]))

    def _fold_minutes(self, before_ns: int) -> None:
        """Make quarter hours of the minutes before a time that are in none yet."""
        connection = self._connection
        last = connection.execute("SELECT value FROM meta WHERE key = 'quarters_ns'").fetchone()
        since_ns = int(last[0]) if last is not None else 0
        if before_ns <= since_ns:
            return
        groups: dict[tuple[int, int], list[tuple[int, list[Rolled | None]]]] = {}
        for t_ns, number, data in connection.execute(
            "SELECT t_ns, layout, data FROM rolled WHERE level = 1 AND t_ns > ? AND t_ns <= ? ORDER BY t_ns",
            (since_ns, before_ns),
        ):
            groups.setdefault((number, floor_ns(t_ns, ROLLED_NS[2])), []).append((t_ns, unpack_rolled(data)))
        for (number, _), minutes in groups.items():
            series = self._layouts[number].series
            merged = [
                merge(
                    [values[place] if place < len(values) else None for _, values in minutes],
                    is_delta=one.kind == "delta",
                )
                for place, one in enumerate(series)
            ]
            self._keep_rolled(2, minutes[-1][0], number, merged)
        self.tell({"quarters_ns": str(before_ns)})

    def _keep_rolled(self, level: int, t_ns: int, number: int, values: list[Rolled | None]) -> None:
        data = pack_rolled(values)
        self._connection.execute("INSERT INTO rolled VALUES (?, ?, ?, ?)", (level, t_ns, number, data))
        self._bytes[level] += len(data)

    def _payload(self) -> list[int]:
        """Bytes of payload by level."""
        seconds = self._connection.execute("SELECT coalesce(sum(length(data)), 0) FROM blocks").fetchone()[0]
        rolled = dict(self._connection.execute("SELECT level, sum(length(data)) FROM rolled GROUP BY level"))
        return [int(seconds), int(rolled.get(1, 0)), int(rolled.get(2, 0))]

    def _prune(self) -> None:
        """Drop the oldest of each level that is over its share."""
        budget = (self._keep_bytes - _WAL_BYTES) * FILLED
        connection = self._connection
        while self._bytes[0] > budget * SHARES[0]:
            (oldest,) = connection.execute("SELECT min(begin_ns) FROM blocks").fetchone()
            gone = connection.execute("SELECT sum(length(data)) FROM blocks WHERE begin_ns = ?", (oldest,)).fetchone()[
                0
            ]
            connection.execute("DELETE FROM blocks WHERE begin_ns = ?", (oldest,))
            self._bytes[0] -= int(gone)
        for level in (1, 2):
            while self._bytes[level] > budget * SHARES[level]:
                (oldest,) = connection.execute("SELECT min(t_ns) FROM rolled WHERE level = ?", (level,)).fetchone()
                # Whole quarter hours of minutes, so that quarter hours take their place without a gap.
                until_ns = floor_ns(int(oldest), ROLLED_NS[2]) + ROLLED_NS[2]
                where = "WHERE level = ? AND t_ns <= ?"
                gone = connection.execute(
                    f"SELECT sum(length(data)) FROM rolled {where}", (level, until_ns)
                ).fetchone()[0]
                connection.execute(f"DELETE FROM rolled {where}", (level, until_ns))
                self._bytes[level] -= int(gone)

    @property
    def bytes_used(self) -> int:
        """What the file and its log take."""
        names = (NAME, f"{NAME}-wal")
        return sum((self._folder / name).stat().st_size for name in names if (self._folder / name).exists())

    def close(self) -> None:
        """Close the file and let go of the folder."""
        self._connection.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _text(series: list[Series]) -> str:
    return json.dumps(series, separators=(",", ":"))


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
