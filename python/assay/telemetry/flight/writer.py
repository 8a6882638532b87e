"""Writing a flight recording: samples as they come, folded by the minute, rolled up, and pruned to their budget.

Each level has files of its own (`assay.record.flight_segments`) in SQLite's write-ahead mode: a process that is killed
loses what it had not committed, some seconds, and a host that loses power what was not synced; neither damages a file.
A level keeps up to which row of the level below it was made, in the transaction that makes it, so that each row becomes
part of the next level exactly once whenever the recorder ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from assay.base.errors import OutOfSpace, RefusedTarget, UsageError
from assay.base.paths import printable
from assay.record.flight_segments import (
    MINUTE_NS,
    NAME,
    NOTICES_MAX,
    VERSION,
    SampleLayout,
    floor_ns,
)
from assay.record.folder import PRIVATE, Folder
from assay.record.rolled import (
    SERIES_MAX,
    floats_of,
)
from assay.targets.trust import open_own
from assay.telemetry.columns import Reading
from assay.telemetry.flight.layouts import Layouts, Source
from assay.telemetry.flight.level import LevelWriter, SegmentDamaged, bytes_used, remove_segment, size_of
from assay.telemetry.flight.rolling import Rolling, last_step

KEEP_MIN_BYTES = 16 * 2**20

SHARES = (0.60, 0.25, 0.15)
"""Of the budget that seconds, minutes and quarter hours may take."""

LOG_BYTES = (3 * 2**20, 2**19, 2**19)
"""What write-ahead logs may take, by level; they are part of the budget."""

WAITING_MAX_BYTES = 8 * 2**20
"""Samples that wait in memory while they cannot be written: some minutes of a large host; then the oldest go."""

CLOCK_JUMP_NS = 2 * 10**9
"""A clock that goes further between two samples than time did was set, or the host slept."""

_ASIDE_TRIES = 4
"""Segments that one write may find damaged: one of each level, and the one that was begun in its place."""
_ROWS_AT_A_TIME = 20

_NAN = float("nan")


class _Sample(NamedTuple):
    """Values of a collector that wait to be written."""

    t_ns: int
    interval_ns: int
    number: int
    data: bytes
    session_ns: int

    @property
    def minute_ns(self) -> int:
        """Beginning of the minute that the interval ends in."""
        return floor_ns(self.t_ns, MINUTE_NS)


class FlightWriter:
    """The files of one recording, which no other recorder writes meanwhile.

    Parameters
    ----------
    folder
        Folder of the recording.
    keep_bytes
        What the files and their logs may take of the disk.
    host
        Name of this host.

    Raises
    ------
    RefusedTarget
        Another recorder writes there, or another user could exchange what is there.
    UsageError
        The budget is too small, or the folder cannot be written to.
    """

    def __init__(self, folder: Path, *, keep_bytes: int, host: str) -> None:
        if keep_bytes < KEEP_MIN_BYTES:
            raise UsageError(f"--keep: {keep_bytes} bytes are too few; {KEEP_MIN_BYTES >> 20} MiB are the least")
        self._keep_bytes, self._host = keep_bytes, host
        self.notices: list[str] = []
        self._told: list[str] = []
        self.lost_count = 0
        """Samples that could not be written, and waited for too long."""
        self._pending: list[_Sample] = []
        self._minute_ns: int | None = None
        """Beginning of the minute that is not over."""
        self._tick_ns = self._session_ns = 0
        self._written_ns = self._written_session_ns = 0
        self._used_bytes = 0
        self._boot, self._meta = "", dict[str, str]()
        self._layouts = Layouts(host, {})
        self._file = ""
        """The segment that the numbers of layouts are of."""
        self._folder = own_folder(Path(folder))
        self._levels: list[LevelWriter] = []
        self._lock = self._locked()
        try:
            self._open_all()
        except (OSError, sqlite3.Error, SegmentDamaged) as error:
            self.close()
            raise OutOfSpace(f"{printable(self._folder.path)}: cannot be recorded into: {error}") from None
        except BaseException:
            self.close()
            raise

    def _open_all(self) -> None:
        shares = [int((self._keep_bytes - sum(LOG_BYTES)) * share) for share in SHARES]
        self._levels = [
            LevelWriter(self._folder, level, share_bytes=shares[level], log_bytes=LOG_BYTES[level])
            for level in range(3)
        ]
        self._seconds, self._minutes, self._quarters = self._levels
        self._rolling = Rolling(*self._levels)
        for _ in range(_ASIDE_TRIES):
            try:
                for level in self._levels:
                    if not level.is_open:
                        level.open()
                self._begin_file()
            except SegmentDamaged as damage:
                self._aside(damage)
            else:
                return
        raise OSError("one segment after the other is damaged")

    def _locked(self) -> int:
        shown = printable(self._folder.path)
        try:
            descriptor = self._folder.open_single("recorder.lock", os.O_RDWR, 0o600)
        except OSError as error:
            raise UsageError(f"{shown}/recorder.lock: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise RefusedTarget(f"{shown}: another recorder writes there; stop it, or give another folder") from None
        return descriptor

    def _begin_file(self) -> None:
        """Take over what the newest segments hold.

        Raises
        ------
        UsageError
            A newer Assay wrote them.
        SegmentDamaged, sqlite3.Error, OSError
            As of `LevelWriter.open`.
        """
        seconds = self._seconds
        with seconds.faults():
            version = int(seconds.meta.get("version", VERSION))
        if version > VERSION:
            raise UsageError(f"{printable(self._folder.path)}: was recorded by a newer Assay; give another folder")
        for level in self._levels[1:]:
            if not all(_is_same(layout, seconds.layouts.get(number)) for number, layout in level.layouts.items()):
                level.follow()
        self._take_over()
        self._minute_ns = last_step(seconds, "fresh", MINUTE_NS)
        self._rolling.open()

    def _take_over(self) -> None:
        """Go on with the layouts and notices of the newest segment of samples."""
        seconds = self._seconds
        self._file, self._layouts = seconds.name, Layouts(self._host, seconds.layouts)
        with seconds.faults():
            self._earlier = seconds.notices()
            self._lost_before = int(seconds.meta.get("lost", "0")) - self.lost_count

    def begin(self, meta: Mapping[str, str]) -> None:
        """Note that recording begins, on which boot of the host, and what a reader must know."""
        self._boot, self._meta = _boot(), {**meta, "version": str(VERSION)}
        now = time.time_ns()
        self._session_ns = now
        try:
            self._see_last_session(now)
            with self._seconds.writing() as seconds:
                seconds.put("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", [(now, now, self._boot)])
                seconds.tell(self._meta)
        except (SegmentDamaged, sqlite3.Error, OSError):
            # The first commit meets it again, and tells what becomes of it.
            return

    def _see_last_session(self, now: int) -> None:
        found = self._seconds.ask("SELECT ended_ns, boot FROM sessions ORDER BY started_ns DESC LIMIT 1")
        if found:
            with self._seconds.faults():
                away_s = (now - int(found[0][0])) / 1e9
            if away_s < 0:
                self.notice(f"the clock of this host went back by {-away_s:,.0f} s since the last sample")
            elif found[0][1] != self._boot:
                self.notice("the host was restarted since the last sample")

    def notice(self, text: str) -> None:
        """Keep a sentence for the reader, once."""
        if text not in self.notices:
            self.notices.append(text)
            del self.notices[:-NOTICES_MAX]

    def add(
        self, readings: Iterable[Reading], *, t_ns: int, interval_ns: int, tier: str, source: str, **_: Any
    ) -> None:
        """Take the values of one interval; they are written by `commit`."""
        self._see_clock(t_ns, interval_ns)
        self._keep(readings, t_ns, interval_ns, (tier, source), self._session_ns)

    def _keep(self, readings: Iterable[Reading], t_ns: int, interval_ns: int, source: Source, session_ns: int) -> None:
        found, left_out = self._layouts.arranged(readings, source, self._next_number)
        if left_out:
            self.notice(f"{source[1]}: more than {SERIES_MAX:,} series; new ones are left out")
        for number, values in found.items():
            self._pending.append(_Sample(t_ns, interval_ns, number, values.tobytes(), session_ns))

    def _next_number(self) -> int:
        return 1 + max((*self._layouts.by_number, *self._minutes.layouts, *self._quarters.layouts), default=0)

    def _see_clock(self, t_ns: int, interval_ns: int) -> None:
        """Tell a clock that was set, or a host that slept: an interval begins where the one before it ended."""
        if t_ns == self._tick_ns:
            return
        went_ns = t_ns - interval_ns - self._tick_ns
        if self._tick_ns and abs(went_ns) > CLOCK_JUMP_NS:
            way = "back" if went_ns < 0 else "forward, or the host slept,"
            self._say(f"the clock of this host went {way} by {abs(went_ns) / 1e9:,.0f} s at {_moment(self._tick_ns)}")
            self._session_ns = t_ns - interval_ns
        self._tick_ns = t_ns

    def _say(self, text: str) -> None:
        self.notice(text)
        self._told.append(text)
        del self._told[:-NOTICES_MAX]

    def said(self) -> list[str]:
        """Sentences for people that are new since the last call."""
        told, self._told = self._told, []
        return told

    def commit(self) -> None:
        """Write what was added and the notices; fold minutes that are over, and prune.

        A segment that is damaged is set aside, and what was to be written goes into another.

        Raises
        ------
        OutOfSpace
            The disk is full, or a reader holds the log: what was added waits in memory, as much as `WAITING_MAX_BYTES`,
            and what was written before is whole.
        """
        try:
            for _ in range(_ASIDE_TRIES):
                try:
                    self._write()
                except SegmentDamaged as damage:
                    self._aside(damage)
                else:
                    return
            raise OSError("one segment after the other is damaged")
        except (sqlite3.Error, OSError, SegmentDamaged) as error:
            self._keep_waiting()
            raise OutOfSpace(
                f"{printable(self._folder.path)}: {error}; samples wait in memory until they can be written, the newest"
                f" {WAITING_MAX_BYTES >> 20} MiB of them"
            ) from error

    def _write(self) -> None:
        for level in self._levels:
            if not level.is_open:
                level.open()
        if self._file != self._seconds.name:
            self._go_on()
        self._rolling.begin()
        while self._pending:
            minute_ns = floor_ns(self._pending[0].t_ns, MINUTE_NS)
            if self._minute_ns not in (None, minute_ns) or self._seconds.is_half_full():
                self._end_minute()
            key = (minute_ns, self._pending[0].session_ns)
            own = list(itertools.takewhile(lambda one: (one.minute_ns, one.session_ns) == key, self._pending))  # noqa: B023
            self._write_samples(own)
            del self._pending[: len(own)]
            self._minute_ns = minute_ns
        with self._seconds.writing() as seconds:
            notices = [*(text for text in self._earlier if text not in self.notices), *self.notices][-NOTICES_MAX:]
            lost = self._lost_before + self.lost_count
            seconds.tell({**self._meta, "notices": json.dumps(notices), "lost": str(lost)})

    def _write_samples(self, samples: list[_Sample]) -> None:
        """Write samples of one minute and session."""
        ends_ns, session_ns = max(one.t_ns for one in samples), samples[0].session_ns
        with self._seconds.writing() as seconds:
            for number in {one.number for one in samples}:
                seconds.put_layout(number, seconds.layouts[number])
            seconds.put("INSERT INTO fresh VALUES (?, ?, ?, ?)", [one[:4] for one in samples])
            seconds.put("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?)", [(session_ns, ends_ns, self._boot)])
            seconds.put("UPDATE sessions SET ended_ns = ? WHERE started_ns = ?", [(ends_ns, session_ns)])
        if seconds.begun_ns is None:
            seconds.begun_ns = ends_ns
        self._written_ns, self._written_session_ns = ends_ns, session_ns

    def _keep_waiting(self) -> None:
        size = sum(len(one.data) for one in self._pending)
        first = 0
        while size > WAITING_MAX_BYTES:
            size -= len(self._pending[first].data)
            first += 1
        self.lost_count += first
        del self._pending[:first]

    def _end_minute(self) -> None:
        """Make blocks of the samples that are in none yet, and all that follows of a minute that is over."""
        seconds = self._seconds
        self._rolling.fold()
        self._minute_ns = None
        self._rolling.take_minutes(self._now_ns(), self._boot)
        self._prune()
        if seconds.is_due(self._now_ns()):
            seconds.follow()
            self._go_on(self._written_ns or None)

    def _now_ns(self) -> int:
        """Time of the sample that is written next."""
        return self._pending[0].t_ns if self._pending else self._written_ns

    def _go_on(self, from_ns: int | None = None) -> None:
        """Go on in a new segment of samples, with only the series that are still recorded.

        Parameters
        ----------
        from_ns
            Until when the segment before it told; None where it is lost.
        """
        if from_ns is None:
            from_ns = self._pending[0].t_ns - self._pending[0].interval_ns if self._pending else time.time_ns()
        self._minute_ns = None
        layouts = self._layouts.by_number
        self._take_over()
        pending, self._pending = self._pending, []
        # One that began with a jump of the clock keeps its beginning, and the gap before it.
        goes_on_ns = self._written_session_ns if pending else self._session_ns
        if self._session_ns == goes_on_ns:
            self._session_ns = from_ns
        for one in pending:
            layout = layouts[one.number]
            readings = [
                Reading(series.entity, series.metric, series.kind, value, series.role)
                for series, value in zip(layout.series, floats_of(one.data), strict=False)
                if value == value
            ]
            own_ns = from_ns if one.session_ns == goes_on_ns else one.session_ns
            self._keep(readings, one.t_ns, one.interval_ns, (layout.tier, layout.source), own_ns)

    def _prune(self) -> None:
        """Remove the oldest segments of each level that is over its share."""
        _, aside_bytes = bytes_used(self._folder)
        # What was set aside is never removed, and takes from what the rest may take, down to half of it.
        room = max(self._keep_bytes - sum(LOG_BYTES) - aside_bytes, self._keep_bytes // 2)
        for level, share in zip(self._levels, SHARES, strict=True):
            level.prune(int(room * share))
        if size_of(self._folder, NAME) and self.bytes_used > self._keep_bytes:
            remove_segment(self._folder, NAME)
            self._say(f"{NAME}, which an earlier version wrote, was removed: its room is needed")

    def _aside(self, damage: SegmentDamaged) -> None:
        """Go on without a damaged segment."""
        level = damage.level
        name, begun_ns = level.name, level.begun_ns
        since = f" from {_moment(begun_ns)} on" if begun_ns and 0 < begun_ns < 2**62 else ""
        aside = level.set_aside()
        kept = f"is kept as {aside}" if aside else "is gone"
        self._say(f"{name} is damaged ({printable(str(damage))}) and {kept}: {_LOSSES[level.level].format(since)}")

    @property
    def bytes_used(self) -> int:
        """What the recording takes of the disk; what was last known where the folder cannot be listed now."""
        with contextlib.suppress(OSError):
            self._used_bytes = bytes_used(self._folder)[0]
        return self._used_bytes

    def close(self) -> None:
        """Close the files and let go of the folder."""
        for level in self._levels:
            level.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


_LOSSES = (
    "its samples{} are told by the minute, but for the last minute, which is lost",
    "its minutes{} are told by samples or by the quarter hour, but for the last quarter of an hour",
    "its quarter hours{} are lost, where neither minutes nor samples are kept",
)


def own_folder(path: Path) -> Folder:
    """The folder of a recording, which no other user may read or exchange.

    Raises
    ------
    RefusedTarget
        Another user could.
    UsageError
        It cannot be opened.
    """
    try:
        where, descriptor = open_own(Path(os.path.abspath(path)), "recording")
        folder = Folder(descriptor, where)
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != PRIVATE:
            os.fchmod(descriptor, PRIVATE)
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be recorded into: {error.strerror}") from None
    return folder


def _is_same(layout: SampleLayout, other: SampleLayout | None) -> bool:
    """Whether a layout of a coarser level is that of samples, which may have grown since."""
    if other is None:
        return True
    shorter = min(len(layout.series), len(other.series))
    return layout[:3] == other[:3] and layout.series[:shorter] == other.series[:shorter]


def _moment(t_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(t_ns // 10**9))


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
