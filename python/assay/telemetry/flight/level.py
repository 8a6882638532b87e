"""One level of a recording as it is written: its newest segment, those before it, and what becomes of a damaged one.

A segment's name is never given again: SQLite's log beside a file goes by its name, and a reader may hold the file. A
segment that is over is left alone until its time is over; one that is damaged is moved aside and never removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.base.errors import RunFolderError
from assay.base.paths import printable
from assay.record.documents import parsed
from assay.record.flight_segments import (
    NAME,
    SCHEMA,
    STEMS,
    TEXT_MAX,
    SampleLayout,
    Segment,
    is_aside,
    next_segment,
    refuse_others,
    segments_in,
)
from assay.record.flight_segments import layouts_of as read_layouts
from assay.record.folder import Folder

PAGE_BYTES = 4096
LOCKED_MAX_S = 10.0
"""How long a write waits for a reader that empties the log or another that writes."""

SPANS_NS = (86_400 * 10**9, 16 * 86_400 * 10**9, 256 * 86_400 * 10**9)
"""Time that one segment holds at most, by level: what a damaged one costs."""
SEGMENTS = 8
"""Segments of a level that its share of the disk is enough for, at least."""

CLOSE_NS = 2 * 10**9
"""Times that are no further apart follow on each other."""

_PART = ".recording.part"
"""A segment that is being made."""

_WAITS = ("FULL", "BUSY", "LOCKED", "IOERR", "READONLY", "NOMEM", "PERM", "CANTOPEN", "INTERRUPT", "PROTOCOL")
"""Errors of SQLite that keep a file from being written, and say nothing of its content."""
_HARMS = ("SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_DATA", "SQLITE_READONLY_DBMOVED")
"""Errors of these families that say that the file itself is at fault."""


CONTENT_FAULTS = (ValueError, TypeError, LookupError, OverflowError, RecursionError, struct.error)
"""What reading a row of another form raises."""


class SegmentDamaged(Exception):
    """A segment that cannot be gone on with."""

    def __init__(self, level: LevelWriter, reason: str) -> None:
        super().__init__(reason)
        self.level = level


class LevelWriter:
    """The newest segment of a level, open for writing.

    Parameters
    ----------
    folder
        Folder of the recording, which no other user can exchange.
    level
        0 of samples, 1 of minutes, 2 of quarter hours.
    share_bytes
        Disk that the level may take.
    log_bytes
        Of its write-ahead log.
    """

    def __init__(self, folder: Folder, level: int, *, share_bytes: int, log_bytes: int) -> None:
        self._folder, self.level = folder, level
        self.share_bytes, self._log_bytes = share_bytes, log_bytes
        self.layouts: dict[int, SampleLayout] = {}
        self._written: dict[int, int] = {}
        self._unsure: set[int] = set()
        self._told: dict[str, str] = {}
        self.meta: dict[str, str] = {}
        """What the segment says of itself, as it was opened."""
        self.begun_ns: int | None = None
        """End of the first interval that it holds."""
        self._connection: sqlite3.Connection | None = None
        self._inode = (0, 0)
        own = [one for one in segments_in(folder) if one.level == level and one.name != NAME]
        self.segment = own[-1] if own else self._made()

    def open(self) -> None:
        """Open the newest segment, and see that it is of this form.

        Raises
        ------
        SegmentDamaged
            It is not.
        OSError, sqlite3.Error
            It cannot be opened now.
        """
        with self.faults():
            self._inode = self._checked()
            path = self._path(self.name)
            connection = sqlite3.connect(path, timeout=LOCKED_MAX_S, isolation_level=None, check_same_thread=False)
            try:
                self._take_over(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def _take_over(self, connection: sqlite3.Connection) -> None:
        for pragma in (
            "trusted_schema=OFF", "journal_mode=WAL", "synchronous=NORMAL",
            "cache_size=-1000", f"wal_autocheckpoint={max(self._log_bytes // 4 // PAGE_BYTES, 16)}",
            f"journal_size_limit={self._log_bytes // 2}",
        ):  # fmt: skip
            connection.execute(f"PRAGMA {pragma}")
        # A budget that was larger left a segment that is beyond it, which is folded before another follows.
        pages = max(connection.execute("PRAGMA page_count").fetchone()[0] * 3 // 2, self.share_bytes // PAGE_BYTES)
        connection.execute(f"PRAGMA max_page_count={pages}")
        refuse_others(connection, printable(self.name))
        self.layouts = read_layouts(connection)
        self._written = {number: len(layout.series) for number, layout in self.layouts.items()}
        found = connection.execute("SELECT key, value FROM meta LIMIT 1000")
        self.meta = {str(key): str(value) for key, value in found}
        query = "SELECT min(begin_ns) FROM blocks" if self.level == 0 else "SELECT min(t_ns) FROM rolled"
        first = connection.execute(query).fetchone()[0]
        self.begun_ns = None if first is None else int(first)

    def _checked(self) -> tuple[int, int]:
        """Identity of the file, which others lose their rights on.

        Raises
        ------
        ValueError
            It is no regular file of this user with one name.
        """
        held = os.open(self.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder.descriptor)
        try:
            found = os.fstat(held)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise ValueError("it is a link, or no regular file of one name")
            if found.st_uid != os.fstat(self._folder.descriptor).st_uid:
                raise ValueError("it belongs to another user")
            if stat.S_IMODE(found.st_mode) != 0o600:
                os.chmod(f"/proc/self/fd/{held}", 0o600)
            return found.st_dev, found.st_ino
        finally:
            os.close(held)

    @property
    def is_open(self) -> bool:
        """Whether the newest segment is open."""
        return self._connection is not None

    @property
    def name(self) -> str:
        """Name of the newest segment."""
        return self.segment.name

    @property
    def bytes(self) -> int:
        """What the newest segment takes, without its log."""
        return self._size(self.name)

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        """Tell a damaged file from one that cannot be written now.

        Raises
        ------
        SegmentDamaged
            The file is at fault.
        """
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", None) or ""
            waits = name.removeprefix("SQLITE_").startswith(_WAITS) and not name.startswith(_HARMS)
            if waits and self._is_there():
                raise
            raise SegmentDamaged(self, str(error)) from error
        except FileNotFoundError as error:
            raise SegmentDamaged(self, "it is gone") from error
        except (RunFolderError, *CONTENT_FAULTS) as error:
            raise SegmentDamaged(self, str(error)) from error

    def _is_there(self) -> bool:
        try:
            found = os.stat(self.name, dir_fd=self._folder.descriptor, follow_symlinks=False)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of a question.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            As of `open`.
        """
        assert self._connection is not None
        with self.faults():
            return self._connection.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def writing(self) -> Iterator[LevelWriter]:
        """All that is written within is written, or nothing of it.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            As of `open`; nothing is written.
        """
        assert self._connection is not None
        connection = self._connection
        if not self._is_there():
            raise SegmentDamaged(self, "it was removed or exchanged while it was written to")
        with self.faults():
            self._see_that_log_ends()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield self
                connection.execute("COMMIT")
                self.meta |= self._told
            except BaseException:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                self._written = {number: count for number, count in self._written.items() if number not in self._unsure}
                raise
            finally:
                self._unsure, self._told = set(), {}

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write rows, within `writing`."""
        assert self._connection is not None
        self._connection.executemany(sql, rows)

    def put_layout(self, number: int, layout: SampleLayout) -> None:
        """Write a layout that the segment lacks, or that has grown, within `writing`."""
        self.layouts[number] = layout
        if self._written.get(number) != len(layout.series):
            series = json.dumps(layout.series, separators=(",", ":"))
            self.put("INSERT OR REPLACE INTO layouts VALUES (?, ?, ?, ?, ?)", [(number, *layout[:3], series)])
            self._unsure.add(number)
            self._written[number] = len(layout.series)

    def tell(self, meta: Mapping[str, str]) -> None:
        """Write what a reader must know, within `writing`."""
        self.put("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(meta.items()))
        self._told |= meta

    def _see_that_log_ends(self) -> None:
        """Write nothing more while a reader holds the write-ahead log, which could not be emptied and would grow."""
        if self._size(f"{self.name}-wal") > self._log_bytes:
            assert self._connection is not None
            held, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if held:
                raise OSError("a reader holds the log of the recording")

    def is_due(self, t_ns: int) -> bool:
        """Whether another segment is to follow."""
        over = self.begun_ns is not None and abs(t_ns - self.begun_ns) >= SPANS_NS[self.level]
        return over or self.bytes >= self.share_bytes // SEGMENTS

    def is_half_full(self) -> bool:
        """Whether a segment takes so much of its level's share that another has to follow before its minute is over."""
        return self.bytes >= self.share_bytes // 2

    def follow(self, meta: Mapping[str, str] | None = None) -> None:
        """Begin the next segment.

        Parameters
        ----------
        meta
            What it says of itself from its beginning.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            It cannot be made.
        """
        made = self._made()
        if self._connection is not None:
            # Without its log a segment is one file; where a reader looks at it, it stays as it is.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA busy_timeout=0")
                self._connection.execute("PRAGMA journal_mode=DELETE")
        self.close()
        self.segment = made
        self.open()
        if meta:
            with self.writing():
                self.tell(meta)

    def taken(self, below: LevelWriter, rowid: int) -> dict[str, str]:
        """What a segment says of the rows of the level below that it was made of: up to which one."""
        return {"taken": json.dumps([below.name, int(rowid)])}

    def taken_of(self, below: LevelWriter) -> int:
        """Up to which row of the level below this level was made; a segment that does not know begins with the next."""
        if "taken" in self.meta:
            with self.faults():
                # What cannot be read is not carried over into the segment that takes this one's place.
                name, rowid = parsed(self.meta.pop("taken").encode())
                self.meta |= {"taken": json.dumps([str(name), int(rowid)])}
                return int(rowid) if name == below.name else 0
        table = "rolled" if below.level else "blocks"
        newest = below.ask(f"SELECT max(rowid) FROM {table}")[0][0] or 0
        self.meta |= self.taken(below, newest)
        return int(newest)

    def cover(self, begin_ns: int, end_ns: int, boot: str) -> None:
        """Note that a time is recorded, within `writing`; one that follows on the last becomes part of it."""
        last = self.ask("SELECT started_ns, ended_ns FROM sessions ORDER BY started_ns DESC LIMIT 1")
        if last and 0 <= begin_ns - int(last[0][1]) <= CLOSE_NS:
            begin_ns = int(last[0][0])
        self.put("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", [(begin_ns, end_ns, boot)])

    def _made(self) -> Segment:
        """A segment with its tables: it has its name when it is whole, so that no reader sees less of it.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            It cannot be made.
        """
        segment = next_segment(self.level, self._folder.names())
        for ending in ("", "-journal"):
            self._folder.remove(f"{_PART}{ending}")
        os.close(self._folder.create(_PART, 0o600))
        connection = sqlite3.connect(self._path(_PART), isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        finally:
            connection.close()
        self._folder.rename(_PART, segment.name)
        self._folder.sync()
        return segment

    def _path(self, name: str) -> str:
        """Where a file of the folder really lies."""
        return os.path.join(os.readlink(f"/proc/self/fd/{self._folder.descriptor}"), name)

    def set_aside(self) -> str:
        """Move the newest segment out of the way and begin another.

        Returns
        -------
        str
            The name it has now; empty where it is gone.

        Raises
        ------
        SegmentDamaged, sqlite3.Error, OSError
            Another cannot be made.
        """
        self.close()
        taken = {key: self.meta[key] for key in ("taken",) if key in self.meta}
        names = set(self._folder.names())
        aside = f"{self.name}.damaged"
        number = 2
        while aside in names or f"{aside}-wal" in names:
            aside, number = f"{self.name}.damaged-{number}", number + 1
        is_there = self.name in names
        if is_there:
            self._folder.rename(self.name, aside)
        for ending in ("-wal", "-journal"):
            if f"{self.name}{ending}" in names:
                self._folder.rename(f"{self.name}{ending}", f"{aside}{ending}")
        with contextlib.suppress(OSError):
            self._folder.unlink(f"{self.name}-shm")
        self._folder.sync()
        self.segment = self._made()
        self.open()
        self.meta |= taken
        return aside if is_there else ""

    def prune(self, room_bytes: int) -> None:
        """Remove the oldest segments beyond what the level may take; never the newest."""
        own = [one for one in segments_in(self._folder) if one.level == self.level and one.name != NAME]
        sizes = {one: self._size(one.name) + self._size(f"{one.name}-wal") for one in own}
        for one in own:
            if one == self.segment or sum(sizes.values()) <= room_bytes:
                break
            remove_segment(self._folder, one.name)
            del sizes[one]

    def _size(self, name: str) -> int:
        return size_of(self._folder, name)

    def close(self) -> None:
        """Close the newest segment."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def notices(self) -> list[str]:
        """Sentences that the segment held when it was opened."""
        with contextlib.suppress(ValueError):
            found = parsed(self.meta.get("notices", "[]").encode())
            return [str(text)[:TEXT_MAX] for text in found] if isinstance(found, list) else []
        return []


def size_of(folder: Folder, name: str) -> int:
    """Bytes of a file; none where there is none."""
    try:
        return os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False).st_size
    except OSError:
        return 0


def remove_segment(folder: Folder, name: str) -> None:
    """Remove a segment and what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        folder.remove(f"{name}{ending}")


def bytes_used(folder: Folder) -> tuple[int, int]:
    """What a recording takes of the disk, and what of it was set aside."""
    names = folder.names()
    own = [name for name in names if name.startswith(STEMS[0]) and ".sqlite" in name]
    aside = [name for name in own if is_aside(name)]
    return sum(size_of(folder, name) for name in own), sum(size_of(folder, name) for name in aside)
