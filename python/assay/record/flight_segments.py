"""Segments of a flight recording: their names, their form, and how they are opened and read.

A recording is a folder of SQLite files. `recording-000001.sqlite` and those after it hold samples,
`recording-minutes-...` minutes and `recording-quarters-...` quarter hours; the newest of each is written to. A file
that is damaged costs itself: a coarser level takes its place where there is one. `recording.sqlite`, as earlier
versions wrote it, holds all three levels.

A recording that is read may come from anywhere: its files are regular and no links, their tables are exactly those of
this form, they are opened for reading only, and what is read of them is bounded.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from assay.base.errors import RunFolderError
from assay.base.paths import printable
from assay.record.documents import parsed
from assay.record.folder import Folder
from assay.record.rolled import SERIES_MAX, SeriesKey

if TYPE_CHECKING:
    import sqlite3

NAME = "recording.sqlite"
"""A whole recording of an earlier version."""

STEMS = ("recording", "recording-minutes", "recording-quarters")
"""How names of segments begin, by level."""
_NAME = re.compile(r"(recording(?:-minutes|-quarters)?)-([0-9]{6})\.sqlite")
_ASIDE = re.compile(r"(recording(?:-minutes|-quarters)?)-([0-9]{6})\.sqlite\.damaged")
SEGMENTS_MAX = 1000

VERSION = 1

MINUTE_NS = 60 * 10**9
ROLLED_NS = {1: MINUTE_NS, 2: 15 * MINUTE_NS}
"""Length of what is rolled up, by level: minutes and quarter hours."""

TEXT_MAX = 1000
NOTICES_MAX = 200
TIME_MAX_NS = 2**62

_LOG_BYTES_MAX = 256 * 2**20
_BLOB_BYTES_MAX = 64 * 2**20
_LAYOUTS_MAX = 2000
STEPS_MAX = 50_000
"""Thousands of steps of SQLite's machine that one file may take: a table may claim more rows than could be read."""

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


class Segment(NamedTuple):
    """A file of a recording: its level, which of those of the level it is, and its name."""

    level: int
    number: int
    name: str

    @property
    def levels(self) -> Sequence[int]:
        """Levels that it holds."""
        return (0, 1, 2) if self.name == NAME else (self.level,)


class SampleLayout(NamedTuple):
    """What the values of a collector's samples are of, in their order; it grows at its end."""

    tier: str
    host: str
    source: str
    series: list[SeriesKey]


def segments_in(folder: Folder) -> list[Segment]:
    """Segments of a recording by level and number, the oldest first.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    return segments_of(folder.names())


def segment_names(folder: Path) -> list[str]:
    """Names of the flight recorder's files in a folder; none where it cannot be read."""
    try:
        return [one.name for one in segments_of(os.listdir(folder))]
    except OSError:
        return []


def has_recording(folder: Path) -> bool:
    """Whether a folder holds a flight recorder's files."""
    return bool(segment_names(folder))


def segments_of(names: Sequence[str]) -> list[Segment]:
    """Segments among names by level and number, the oldest first."""
    found = [Segment(0, 0, NAME)] if NAME in names else []
    for name in names:
        if match := _NAME.fullmatch(name):
            found.append(Segment(STEMS.index(match[1]), int(match[2]), name))
    return sorted(found)[-SEGMENTS_MAX:]


def next_segment(level: int, names: Sequence[str]) -> Segment:
    """A segment of a name that none of a level has or had, those that were set aside included."""
    matches = [_NAME.fullmatch(name) or _ASIDE.match(name) for name in names]
    taken = [int(match[2]) for match in matches if match and match[1] == STEMS[level]]
    number = max(taken, default=0) + 1
    return Segment(level, number, f"{STEMS[level]}-{number:06}.sqlite")


def is_aside(name: str) -> bool:
    """Whether a file is a segment that was set aside, or its log."""
    return _ASIDE.match(name) is not None


def faults() -> tuple[type[Exception], ...]:
    """What a damaged or foreign file may raise where it is read."""
    import sqlite3
    import struct

    return (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, struct.error, RecursionError, MemoryError)


@contextmanager
def opened(folder: Folder, name: str) -> Iterator[sqlite3.Connection]:
    """A file of a recording, for reading only; its recorder may be at work.

    Raises
    ------
    FileNotFoundError
        It is gone: its time was over.
    RunFolderError
        It cannot be read, or is not of this form.
    """
    shown = printable(folder.path / name)
    held = _held(folder, name, shown)
    connection: sqlite3.Connection | None = None
    try:
        connection = _connected(folder, name)
        refuse_others(connection, shown)
        _refuse_exchanged(folder, name, held, shown)
        yield connection
    except faults() as error:
        raise RunFolderError(f"{shown}: cannot be read: {reason_of(error)}") from None
    finally:
        if connection is not None:
            connection.close()
        os.close(held)


def _held(folder: Folder, name: str, shown: str) -> int:
    """The file by a descriptor that keeps its inode; one that could read it would end SQLite's locks when closed.

    Raises
    ------
    FileNotFoundError
        There is none.
    RunFolderError
        It is no regular file, or its log is none or too long.
    """
    try:
        held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunFolderError(f"{shown}: cannot be opened: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise RunFolderError(f"{shown}: is no regular file")
        for ending in ("-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                beside = os.stat(f"{name}{ending}", dir_fd=folder.descriptor, follow_symlinks=False)
                if not stat.S_ISREG(beside.st_mode) or beside.st_size > _LOG_BYTES_MAX:
                    raise RunFolderError(f"{shown}{ending}: is no log of a recording; remove it")
    except BaseException:
        os.close(held)
        raise
    return held


def path_of(folder: Folder, name: str) -> Path:
    """Where a file of a folder that is held really lies: no component is a link."""
    return Path(os.readlink(f"/proc/self/fd/{folder.descriptor}")) / name


def _connected(folder: Folder, name: str) -> sqlite3.Connection:
    # Few commands look at a recording: the others start without it.
    import sqlite3

    path = path_of(folder, name)
    # Where SQLite could make no file beside it, no recorder of this user is at work either.
    is_shut = not os.access(path.parent, os.W_OK) and not os.path.exists(f"{path}-wal")
    mode = "mode=ro&immutable=1" if is_shut else "mode=ro"
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=10.0, isolation_level=None)
    steps = itertools.count(1)
    connection.set_progress_handler(lambda: next(steps) > STEPS_MAX, 1000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _BLOB_BYTES_MAX)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    connection.execute("PRAGMA cell_size_check=ON")
    return connection


def refuse_others(connection: sqlite3.Connection, shown: str) -> None:
    """Refuse a file that holds anything but this form's tables: a view or a computed column could hold anything.

    Raises
    ------
    RunFolderError
        It does.
    """
    found = {_plain(str(sql)) for (sql,) in connection.execute("SELECT sql FROM sqlite_master LIMIT 64") if sql}
    wanted = {_plain(one) for one in SCHEMA.split(";") if one.strip()}
    if found != wanted:
        lacking = sorted(one.split()[2] for one in wanted - found)
        fault = f"it lacks {', '.join(lacking)}" if lacking else "it holds more than its tables"
        raise RunFolderError(f"{shown}: is no recording: {fault}")


def _plain(sql: str) -> str:
    return " ".join(sql.split()).replace(" IF NOT EXISTS", "")


def _refuse_exchanged(folder: Folder, name: str, held: int, shown: str) -> None:
    now, then = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False), os.fstat(held)
    if (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino):
        raise RunFolderError(f"{shown}: was exchanged while it was opened")


def reason_of(error: Exception) -> str:
    """What an error says, on one line of bounded length."""
    return printable(" ".join(str(error).split())[:TEXT_MAX]) or type(error).__name__


def layouts_of(connection: sqlite3.Connection) -> dict[int, SampleLayout]:
    """Layouts by number.

    Raises
    ------
    ValueError
        One has another form.
    """
    found: dict[int, SampleLayout] = {}
    rows = connection.execute("SELECT id, tier, host, source, series FROM layouts LIMIT ?", (_LAYOUTS_MAX + 1,))
    for number, tier, host, source, text in rows:
        made = parsed(text.encode())
        if not isinstance(made, list) or len(made) > SERIES_MAX or len(found) >= _LAYOUTS_MAX:
            raise ValueError("there are too many series")
        # Half a character of two, which JSON can hold, is none that a table can.
        texts = ((str(word)[:TEXT_MAX].encode("utf-8", "replace").decode() for word in one) for one in made)
        series = [SeriesKey(*one) for one in texts]
        if any(one.kind not in ("gauge", "delta") for one in series):
            raise ValueError("a series is neither gauge nor delta")
        found[int(number)] = SampleLayout(str(tier)[:TEXT_MAX], str(host)[:TEXT_MAX], str(source)[:TEXT_MAX], series)
    return found


def floor_ns(t_ns: int, step_ns: int) -> int:
    """Beginning of the step that an interval which ends then belongs to.

    Examples
    --------
    >>> floor_ns(MINUTE_NS, MINUTE_NS), floor_ns(MINUTE_NS + 1, MINUTE_NS) == MINUTE_NS
    (0, True)
    """
    return (t_ns - 1) // step_ns * step_ns


def recording_at(path: Path) -> tuple[Folder, list[Segment]]:
    """A recording's folder, and the segments that are in it.

    Raises
    ------
    RunFolderError
        It cannot be read, or holds none.
    """
    try:
        folder = Folder.open(path)
        found = segments_in(folder)
    except OSError as error:
        raise RunFolderError(f"{printable(path)}: cannot be read: {error.strerror}") from None
    if not found:
        raise RunFolderError(f"{printable(path)}: holds no recording")
    return folder, found


Told = TypeVar("Told")


def from_each(path: Path, take: Callable[[sqlite3.Connection], Told]) -> tuple[list[Told], list[str]]:
    """What each file of a recording tells, the oldest first, and why others cannot be read.

    Raises
    ------
    RunFolderError
        The folder cannot be read, or holds no recording.
    """
    folder, segments = recording_at(path)
    found, failed = list[Told](), list[str]()
    for segment in segments:
        try:
            with opened(folder, segment.name) as connection:
                found.append(take(connection))
        except FileNotFoundError:
            # Its time is over: the recorder removed it.
            continue
        except RunFolderError as error:
            failed.append(str(error))
    return found, failed
