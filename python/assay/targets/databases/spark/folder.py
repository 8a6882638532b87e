"""The folder of a Spark target: tables as Parquet files, and what was loaded, in a small SQLite file beside them.

A folder is Assay's where that file says so. Files of tables are named by chunk, written under another name and renamed,
so that a load that was cut short leaves no half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.base.errors import IoFailed, OpenFailed, RefusedTarget
from assay.base.feeding import Fed
from assay.base.paths import printable
from assay.targets.databases.common.connection import Row
from assay.targets.databases.common.database import file_errors
from assay.targets.databases.common.own_folder import open_or_make
from assay.targets.databases.common.tree_copy import opened_below
from assay.targets.trust import others_write

BOOK, LOCK = "assay.sqlite", "assay.lock"
APPLICATION_ID = 0x41737379
"""What SQLite writes into the head of the file: whose it is."""
PREFIX, SUFFIX = "assay-", ".parquet"
BUSY_S = 60.0


class SparkFolder:
    """A folder with tables, held while it is open.

    It is its user's alone; where it is `shared`, others may read it, as the executors of a cluster have a user of their
    own and tables hold generated rows.
    """

    def __init__(self, path: Path, display: str, *, shared: bool = False) -> None:
        self.path, self._display = path, display
        self.file_mode, self._folder_mode = (0o644, 0o755) if shared else (0o600, 0o700)
        self._lock_descriptor = -1
        self._guard = threading.RLock()
        self._book: sqlite3.Connection | None = None

    def take(self) -> None:
        """Make the folder, or take one that is Assay's, and keep other runs out.

        Raises
        ------
        RefusedTarget
            It holds something else, or another run is at work on it.
        OpenFailed
            It cannot be made or read.
        """
        with file_errors(self._display):
            self.path, folder = open_or_make(self.path, self._display)
            try:
                others = sorted(os.listdir(folder))
                if others and BOOK not in others and others != [LOCK]:
                    raise RefusedTarget(
                        f"{self._display}: {printable(self.path)} holds {printable(others[0])}, which Assay did not"
                        " make; give an empty or new folder"
                    )
                self._refuse_planted(folder)
                os.fchmod(folder, self._folder_mode)
            finally:
                os.close(folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock_descriptor = os.open(self.path / LOCK, flags, 0o600)
            try:
                fcntl.flock(self._lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.release()
                raise RefusedTarget(
                    f"{self._display}: another run is at work on {printable(self.path)}; wait for it to end"
                ) from None
        self._open_book()

    def _refuse_planted(self, folder: int, where: Path | None = None) -> None:
        """Refuse links, second names and other users' files among what Assay writes to, in tables' folders as well."""
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
        for name, status in found:
            path = (where or self.path) / name
            is_plain = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
            if not is_plain or status.st_uid != os.geteuid() or others_write(path, status):
                raise RefusedTarget(
                    f"{self._display}: {printable(path)} is a link, has a second name, or is another user's or for"
                    " others to write to; give another folder"
                )
            if stat.S_ISDIR(status.st_mode) and where is None:
                with opened_below(name, folder) as below:
                    self._refuse_planted(below, path)

    def _open_book(self) -> None:
        book = self.path / BOOK
        is_new = not os.path.lexists(book)
        if book.is_symlink():
            raise RefusedTarget(f"{self._display}: {printable(book)} is a link; give another folder")
        try:
            self._book = sqlite3.connect(book, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
            (found,) = self._book.execute("PRAGMA application_id").fetchone()
            if is_new:
                self._book.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._book.execute("PRAGMA synchronous = FULL")
            elif found != APPLICATION_ID:
                raise RefusedTarget(f"{self._display}: {printable(book)} is not Assay's; give another folder")
        except sqlite3.Error as error:
            raise OpenFailed(
                f"{self._display}: {printable(book)} cannot be opened: {error}; give another folder"
            ) from error

    # What was loaded

    def book(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Rows of a statement on what was loaded."""
        with self._guard:
            assert self._book is not None, "the folder is open"
            try:
                found = self._book.execute(sql.replace("%s", "?"), [str(one) for one in params]).fetchall()
            except sqlite3.Error as error:
                raise IoFailed(f"{self._display}: {BOOK}: {error}; see whether the disk is full") from error
            return [tuple(row) for row in found]

    def keep_chunks(self, files: Sequence[tuple[Path, Path]], entries: Sequence[str]) -> None:
        """Give written files their names, and note their chunks: all of them, or as if none had been loaded."""
        with self._guard, file_errors(self._display):
            for written, name in files:
                os.rename(written, name)
            for folder in {name.parent for _, name in files}:
                _sync(folder)
            self.book("BEGIN IMMEDIATE")
            for entry in entries:
                self.book(entry)
            self.book("COMMIT")

    # Tables

    def tables(self, names: Sequence[str]) -> list[str]:
        """Those of these tables that are there."""
        own = [str(name) for (name,) in self.book("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [*own, *(name for name in names if (self.path / name).is_dir())]

    def make(self, table: str) -> None:
        """Make the folder of a table."""
        with file_errors(self._display):
            folder = self.path / table
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(self._folder_mode)

    def files(self, table: str) -> list[Path]:
        """Files of a table."""
        folder = self.path / table
        return sorted(folder.glob(f"{PREFIX}*{SUFFIX}")) if folder.is_dir() else []

    def new_file(self, table: str, chunk_name: str) -> tuple[Path, Path]:
        """A name to write under, and the one that the file will have."""
        name = self.path / table / f"{PREFIX}{chunk_name}{SUFFIX}"
        return name.with_name(f".{name.name}.{secrets.token_hex(6)}"), name

    def drop(self, table: str) -> None:
        """Delete the files of a table that are Assay's, and its folder if nothing is left in it."""
        folder = self.path / table
        with file_errors(self._display):
            if folder.is_dir() and not folder.is_symlink():
                for path in [*folder.glob(f"{PREFIX}*{SUFFIX}"), *folder.glob(f".{PREFIX}*{SUFFIX}.*")]:
                    path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def strangers(self, names: Sequence[str]) -> list[str]:
        """What lies in folders of tables and is not Assay's."""
        found = []
        for table in names:
            folder = self.path / table
            if folder.is_dir():
                found += [
                    f"file {table}/{path.name}"
                    for path in folder.iterdir()
                    if not path.name.lstrip(".").startswith(PREFIX)
                ]
        return found

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())

    def release(self, *, remove_empty: bool = False) -> None:
        """Let other runs use it; one in which nothing is left goes, where this run made it."""
        if self._book is not None:
            self._book.close()
            self._book = None
        if remove_empty:
            with contextlib.suppress(OSError):
                (self.path / BOOK).unlink()
                (self.path / LOCK).unlink()
                self.path.rmdir()
        if self._lock_descriptor >= 0:
            os.close(self._lock_descriptor)
            self._lock_descriptor = -1


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ChunkWriter:
    """Writes the rows of a transaction as Parquet files, one a table."""

    def __init__(self, folder: SparkFolder) -> None:
        self._folder = folder
        self._writers: dict[str, tuple[Any, Path, Path]] = {}
        self.entries: list[str] = []
        self._name = secrets.token_hex(8)

    def append(self, table: str, batch: Any) -> None:
        """Add rows to a table's file."""
        from arro3.core import RecordBatchReader
        from arro3.io import write_parquet

        with file_errors(str(self._folder.path)):
            if table not in self._writers:
                written, name = self._folder.new_file(table, self._name)

                def write(batches: Iterator[Any], path: str = str(written)) -> None:
                    write_parquet(RecordBatchReader.from_batches(batch.schema, batches), path, compression="snappy")

                self._writers[table] = Fed(write), written, name
            self._writers[table][0].give(batch)

    def commit(self) -> None:
        """All of it is there from now on."""
        files = []
        for writer, written, name in self._writers.values():
            with file_errors(str(self._folder.path)):
                writer.end()
            with open(written, "rb") as file:
                os.fchmod(file.fileno(), self._folder.file_mode)
                os.fsync(file.fileno())
            files.append((written, name))
        self._folder.keep_chunks(files, self.entries)
        self._writers = {}

    def roll_back(self) -> None:
        """None of it is."""
        for writer, written, _ in self._writers.values():
            with contextlib.suppress(Exception):
                writer.end()
            written.unlink(missing_ok=True)
        self._writers = {}
