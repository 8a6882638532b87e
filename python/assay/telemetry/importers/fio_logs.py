"""Logs of fio: bandwidth, IOPS and latency of a job over time (`write_bw_log`, `write_iops_log`, `write_lat_log`).

A row is a time since the job's start in milliseconds, a value, the direction and the block; later versions add offset,
priority and issue time (fio, HOWTO, "Log File Formats"; `iolog.c`, `flush_samples`). What the value is, the name of the
file alone says: `NAME_bw.1.log`. Rows are of single I/Os, which become seconds here, or of windows (`log_avg_msec`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from statistics import median
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken

WINDOWS_MAX = 2_000_000
"""Windows of a log that are held until its end: at half a second eleven days."""
HEAD_ROWS = 1000
FIRST_ROWS = 5
"""Rows by which a log is known."""
WINDOW_MS = 1000
"""I/Os of as long become one."""
LATE_MS = 5000
"""By how much rows of one job may be out of order: I/Os that ended together."""
TIME_MS_MAX = 10**12
STEP_SHARE = 0.1
"""Windows are as far apart as each other, within this share; single I/Os are not."""

_NAME = re.compile(r"(?P<job>.{1,200}?)_(?P<kind>bw|iops|lat|clat|slat)(?:\.(?P<number>\d{1,6}))?\.log(?:\.txt)?$")
_ROW = re.compile(
    r"\d{1,15}, -?\d{1,19}(?:, -?\d{1,19}){1,2}, \d{1,12}(?:, (?:\d{1,19}|0x[0-9a-fA-F]{4})){0,3}$", re.ASCII
)
_DIRECTIONS = ("read", "write")
_KINDS = {
    "bw": ("bytes", "delta"), "iops": ("ios_count", "delta"), "lat": ("latency_mean_ns", "gauge"),
    "clat": ("completion_latency_mean_ns", "gauge"), "slat": ("submission_latency_mean_ns", "gauge"),
}  # fmt: skip


class _Row(NamedTuple):
    """One line: direction 2 is a trim."""

    at_ms: int
    value: int
    most: int | None
    direction: int
    block_bytes: int


class _Window:
    """What is known of a direction from one time to another."""

    def __init__(self) -> None:
        self.rows = self.total = self.blocks_bytes = self.most = 0
        self.has_most = False

    def add(self, row: _Row) -> None:
        """Take a row more."""
        self.rows += 1
        self.total += row.value
        self.blocks_bytes += row.block_bytes
        self.most = max(self.most, row.value if row.most is None else row.most)
        self.has_most = self.has_most or row.most is not None


class FioLog(Importer):
    """A log of bandwidth, IOPS or latency of fio."""

    name: ClassVar[str] = "fio_log"
    title: ClassVar[str] = "fio's logs (NAME_bw.1.log, NAME_iops.1.log, NAME_lat.1.log)"

    def recognises(self, head: str) -> bool:
        """Rows of whole numbers, of which one is a direction."""
        lines = head.splitlines()[:FIRST_ROWS]
        return all(_ROW.fullmatch(line.strip()) for line in lines) and _place(_parsed(lines)) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take each window, or each second of single I/Os."""
        named = _NAME.fullmatch(into.file_name)
        if named is None:
            raise NotTaken(
                "is a log of fio, and its name does not say of what: NAME_bw.1.log, NAME_iops.1.log, NAME_lat.1.log"
            )
        head = [line for line in islice(file, HEAD_ROWS) if line.strip()]
        rows = _parsed(head)
        place = _place(rows[:FIRST_ROWS])
        if place is None:
            raise NotTaken("has rows without a direction, which no log of fio has")
        kind = named["kind"]
        factor = _unit_ns(rows, kind)
        is_single = _is_of_single_ios([_row(one, place) for one in rows if len(one) > place + 1], kind)
        windows = self._windows(_lines(head, file), place, kind, is_single, into)
        entity = named["job"] + (f".{named['number']}" if named["number"] else "")
        self._hand_over(windows, entity, kind, factor, is_single, into)

    def _windows(
        self, lines: Iterator[str], place: int, kind: str, is_single: bool, into: Into
    ) -> dict[tuple[int, int], _Window]:
        """Rows by the end of their window and their direction."""
        found: dict[tuple[int, int], _Window] = {}
        latest_ms = others = 0
        for line in lines:
            shown = line.strip()
            fields = shown.split(", ")
            row = _row(fields, place) if _ROW.fullmatch(shown) and len(fields) > place + 1 else None
            if row is None or not 0 <= row.direction <= 2 or row.at_ms > TIME_MS_MAX or row.value < 0:
                if shown:
                    into.taken.not_understood("rows", shown, max(len(fields) - 3, 1))
                continue
            if row.at_ms < latest_ms - LATE_MS:
                raise NotTaken(
                    "goes back in time: it holds several runs, or jobs (per_job_logs=0); give each by itself"
                )
            latest_ms = max(latest_ms, row.at_ms)
            others += len(fields) - place - 2
            if row.direction == 2:
                into.taken.ignore("trims", "series have no trims", 1 if row.most is None else 2)
                continue
            if row.most is not None and kind != "lat":
                into.taken.ignore("longest of a window", "series have no such figures", 1)
            end_ms = (row.at_ms // WINDOW_MS + 1) * WINDOW_MS if is_single else row.at_ms
            window = found.get((end_ms, row.direction))
            if window is None:
                window = found[end_ms, row.direction] = _Window()
                if len(found) > WINDOWS_MAX:
                    raise NotTaken(f"has more than {WINDOWS_MAX:,} windows: let fio average longer ones (log_avg_msec)")
            window.add(row)
        if others:
            into.taken.ignore("offset, priority, issue time", "series have no such figures", others)
        return found

    def _hand_over(
        self,
        windows: dict[tuple[int, int], _Window],
        entity: str,
        kind: str,
        factor: float,
        is_single: bool,
        into: Into,
    ) -> None:
        host, start_ns = into.options.host, into.options.start_ns
        if start_ns is None:
            into.taken.note("says times since its start alone, and so do its values (--start says when it was)")
        suffix, delta = _KINDS[kind]
        before = {0: 0, 1: 0}
        last_ns = -1
        for (end_ms, direction), window in sorted(windows.items()):
            if not is_single and window.rows > 1:
                raise NotTaken(
                    f"has two values of {_DIRECTIONS[direction]}s at {end_ms} ms: it holds several jobs"
                    " (per_job_logs=0); give each by itself"
                )
            length_ms = WINDOW_MS if is_single else end_ms - before[direction]
            before[direction] = end_ms
            side = _DIRECTIONS[direction]
            into.taken.take(f"{side} {kind}", f"fio {side}_{suffix}", window.rows)
            if window.has_most and kind == "lat":
                into.taken.take(f"longest {side} lat", f"fio {side}_latency_max_ns", window.rows)
            if not length_ms:
                continue
            readings = [Reading(entity, f"{side}_{suffix}", delta, _value(window, kind, factor, is_single, length_ms))]
            if kind == "lat" and (is_single or window.has_most):
                readings.append(Reading(entity, f"{side}_latency_max_ns", "gauge", window.most * factor))
            t_ns = (start_ns or 0) + end_ms * 10**6
            if t_ns != last_ns and into.advance(host, t_ns) is None:
                continue
            last_ns = t_ns
            into.add(readings, host=host, t_ns=t_ns, interval_ns=length_ms * 10**6, tier="application", source="fio")


def _value(window: _Window, kind: str, factor: float, is_single: bool, length_ms: int) -> float:
    """The mean latency of a window, or how many bytes or I/Os it had."""
    if kind == "bw":
        return float(window.blocks_bytes) if is_single else window.total * 1024 * length_ms / 1000
    if kind == "iops":
        return float(window.rows) if is_single else window.total * length_ms / 1000
    return window.total * factor / window.rows


def _lines(head: list[str], file: TextIO) -> Iterator[str]:
    yield from head
    yield from file


def _parsed(lines: list[str]) -> list[list[str]]:
    return [line.strip().split(", ") for line in lines if _ROW.fullmatch(line.strip())]


def _place(rows: list[list[str]]) -> int | None:
    """Where the direction stands: after the value, or after the mean and the longest (`log_window_value=both`)."""
    return next(
        (place for place in (2, 3) if rows and all(len(row) > place + 1 and row[place] in "012" for row in rows)), None
    )


def _row(fields: list[str], place: int) -> _Row:
    most = int(fields[2]) if place == 3 else None
    return _Row(int(fields[0]), int(fields[1]), most, int(fields[place]), int(fields[place + 1]))


def _unit_ns(rows: list[list[str]], kind: str) -> float:
    """Nanoseconds of a latency's unit: fio 3 writes nanoseconds, fio 2 microseconds.

    Rows with a priority are of fio 3. Of rows of four the size of the values tells, unless both units make sense: less
    than a microsecond as nanoseconds is shorter than a system call, and more than a second as microseconds is no mean.

    Raises
    ------
    NotTaken
        Both make sense.
    """
    if kind not in ("lat", "clat", "slat") or max(len(row) for row in rows) > 4:
        return 1.0
    usual = median(int(row[1]) for row in rows)
    if usual < 1000:
        return 1000.0
    if usual >= 1_000_000:
        return 1.0
    raise NotTaken(
        f"has latencies of microseconds (fio 2) or nanoseconds (fio 3), as {usual:,.0f}, and does not say which: give"
        " the log of a newer fio, which has five columns, or fio's output of the run"
    )


def _is_of_single_ios(rows: list[_Row], kind: str) -> bool:
    """Whether rows are of single I/Os: those of windows have no block, or are as far apart as each other."""
    if not all(row.block_bytes for row in rows):
        return False
    if kind in ("lat", "clat", "slat"):
        return True
    if kind == "iops":
        return all(row.value == 1 for row in rows)
    steps = [
        later.at_ms - row.at_ms
        for direction in (0, 1)
        for row, later in pairwise([one for one in rows if one.direction == direction])
    ]
    usual = median(steps) if steps else 0
    return not (usual >= 100 and all(abs(step - usual) <= STEP_SHARE * usual for step in steps))
