"""Rolling samples up: blocks of a minute, minutes of blocks, quarter hours of minutes, each exactly once."""

from __future__ import annotations

import itertools
from array import array
from typing import Any

from assay.record.flight_segments import MINUTE_NS, ROLLED_NS, floor_ns
from assay.record.rolled import Rolled, floats_of, merge, pack_block, pack_rolled, roll, unpack_block, unpack_rolled
from assay.telemetry.flight.level import LevelWriter

_ROWS_AT_A_TIME = 20

_NAN = float("nan")


class Rolling:
    """What becomes of samples as they grow old.

    A level keeps up to which row of the level below it was made, in the transaction that makes it, so that each row
    becomes part of the next level exactly once whenever the recorder ends.
    """

    def __init__(self, seconds: LevelWriter, minutes: LevelWriter, quarters: LevelWriter) -> None:
        self._seconds, self._minutes, self._quarters = seconds, minutes, quarters
        self._quarter_ns: int | None = None
        """Beginning of the quarter hour that is not over."""

    def open(self) -> None:
        """Go on where the levels' newest segments end."""
        self._quarter_ns = last_step(self._minutes, "rolled", ROLLED_NS[2])

    def begin(self) -> None:
        """See that a segment that was begun knows from where on it is made, before more is below it."""
        self._minutes.taken_of(self._seconds)
        self._quarters.taken_of(self._minutes)

    def fold(self) -> None:
        """Make blocks of the samples that are in none yet.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            As of `LevelWriter.open`; nothing is changed.
        """
        seconds = self._seconds
        with seconds.writing():
            for (number,) in seconds.ask("SELECT DISTINCT layout FROM fresh"):
                rows = seconds.ask(
                    "SELECT t_ns, interval_ns, data FROM fresh WHERE layout = ? ORDER BY t_ns", (number,)
                )
                for begin_ns, own in itertools.groupby(rows, key=lambda row: floor_ns(int(row[0]), MINUTE_NS)):
                    block = _block(begin_ns, number, list(own), len(seconds.layouts[number].series))
                    seconds.put("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", [block])
            seconds.put("DELETE FROM fresh", [()])

    def take_minutes(self, now_ns: int, boot: str) -> None:
        """Make minutes of the blocks that are in none yet, and quarter hours of minutes when these are over.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            As of `LevelWriter.open`; what was made is whole, and the rest is made next time.
        """
        seconds, minutes = self._seconds, self._minutes
        while rows := seconds.ask(
            "SELECT rowid, end_ns, layout, data FROM blocks WHERE rowid > ? ORDER BY rowid LIMIT ?",
            (minutes.taken_of(seconds), _ROWS_AT_A_TIME),
        ):
            for quarter_ns, own in itertools.groupby(rows, key=lambda row: floor_ns(int(row[1]), ROLLED_NS[2])):
                if self._quarter_ns not in (None, quarter_ns):
                    self._take_quarters(now_ns)
                    if minutes.is_due(now_ns):
                        minutes.follow(minutes.taken(seconds, minutes.taken_of(seconds)))
                self._write_minutes(list(own), boot)
                self._quarter_ns = quarter_ns

    def _write_minutes(self, rows: list[Any], boot: str) -> None:
        """Roll blocks up."""
        seconds, minutes = self._seconds, self._minutes
        made: list[tuple[int, int, int, bytes]] = []
        covered: list[tuple[int, int]] = []
        with seconds.faults():
            for _, end_ns, number, data in rows:
                times, columns = unpack_block(data)
                made.append((1, end_ns, number, pack_rolled(roll(seconds.layouts[number].series, times, columns))))
                covered.append((times[0][0] - times[0][1], end_ns))
        with minutes.writing():
            for number in {number for _, _, number, _ in made}:
                minutes.put_layout(number, seconds.layouts[number])
            minutes.put("INSERT INTO rolled VALUES (?, ?, ?, ?)", made)
            minutes.cover(min(begin for begin, _ in covered), max(end for _, end in covered), boot)
            minutes.tell(minutes.taken(seconds, rows[-1][0]))
        minutes.begun_ns = made[0][1] if minutes.begun_ns is None else minutes.begun_ns

    def _take_quarters(self, now_ns: int) -> None:
        """Make quarter hours of the minutes that are in none yet."""
        minutes, quarters = self._minutes, self._quarters
        taken = quarters.taken_of(minutes)
        newest = minutes.ask("SELECT max(rowid) FROM rolled")[0][0] or 0
        made = []
        for (number,) in minutes.ask("SELECT DISTINCT layout FROM rolled WHERE rowid > ?", (taken,)):
            rows = minutes.ask(
                "SELECT rowid, t_ns FROM rolled WHERE rowid > ? AND layout = ? ORDER BY rowid", (taken, number)
            )
            for _, own in itertools.groupby(rows, key=lambda row: floor_ns(int(row[1]), ROLLED_NS[2])):
                made.append(self._quarter(number, list(own)))
        with quarters.writing():
            for _, _, number, _ in made:
                quarters.put_layout(number, minutes.layouts[number])
            quarters.put("INSERT INTO rolled VALUES (?, ?, ?, ?)", made)
            quarters.tell(quarters.taken(minutes, newest))
        if made and quarters.begun_ns is None:
            quarters.begun_ns = made[0][1]
        if quarters.is_due(now_ns):
            quarters.follow(quarters.taken(minutes, newest))

    def _quarter(self, number: int, rows: list[tuple[int, int]]) -> tuple[int, int, int, bytes]:
        """A quarter hour of minutes, one after the other: those of a large host together would take much memory."""
        series = self._minutes.layouts[number].series
        merged: list[Rolled | None] = [None] * len(series)
        for rowid, _ in rows:
            data = self._minutes.ask("SELECT data FROM rolled WHERE rowid = ?", (rowid,))[0][0]
            with self._minutes.faults():
                for place, value in enumerate(unpack_rolled(data)):
                    if value is not None:
                        merged[place] = merge([merged[place], value], is_delta=series[place].kind == "delta")
        return 2, max(int(t_ns) for _, t_ns in rows), number, pack_rolled(merged)


def last_step(level: LevelWriter, table: str, step_ns: int) -> int | None:
    """Step that the last row of a table belongs to."""
    found = level.ask(f"SELECT t_ns FROM {table} ORDER BY rowid DESC LIMIT 1")
    with level.faults():
        return floor_ns(int(found[0][0]), step_ns) if found else None


def _block(begin_ns: int, number: int, rows: list[Any], width: int) -> tuple[int, int, int, int, bytes]:
    """Samples of a layout in one minute as a row of blocks."""
    samples = [floats_of(data) for _, _, data in rows]
    columns = [
        array("d", [values[place] if place < len(values) else _NAN for values in samples]) for place in range(width)
    ]
    times = [(int(t_ns), int(interval_ns)) for t_ns, interval_ns, _ in rows]
    return begin_ns, times[-1][0], number, len(times), pack_block(times, columns)
