"""The file of a DuckDB: whose it is, what lies beside it, and the lock that keeps other processes out.

DuckDB locks its file by `fcntl`. Such a lock belongs to the process and the file, and ends when the process closes any
descriptor of the file (fcntl_locking(2)). The file is therefore opened once, before DuckDB opens it, and closed after
DuckDB did; nothing else here opens it by name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from assay.base.errors import OpenFailed, RefusedTarget
from assay.base.paths import open_without_links, printable
from assay.targets.databases.common.database import file_errors
from assay.targets.databases.common.own_folder import attempt
from assay.targets.trust import open_trusted, others_write

LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Files that DuckDB has beside its own: the log, and what a checkpoint and a recovery make of it."""

TEMPORARY = ".tmp"
"""Folder beside it for what does not fit into memory."""

_MAGIC, _MAGIC_AT = b"DUCK", 8
_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2) on 64-bit Linux: type, whence, start, length, process."""


class DuckdbFile:
    """One file, held from `take` to `release`.

    Attributes
    ----------
    path
        Where it really is, once taken.
    """

    def __init__(self, path: Path, temporary: Path | None, display: str) -> None:
        self.path = path
        self._temporary = temporary
        self._display = display
        self._descriptor = -1

    @property
    def temporary(self) -> Path:
        """Folder for what does not fit into memory, whether or not it is there."""
        return self._temporary or self.path.with_name(self.path.name + TEMPORARY)

    @property
    def exists(self) -> bool:
        """Whether anything has its name."""
        return os.path.lexists(self.path)

    @property
    def descriptor(self) -> int:
        """The file, open for reading and writing."""
        assert self._descriptor >= 0
        return self._descriptor

    @property
    def logs(self) -> list[Path]:
        """Names of its logs, whether or not they are there."""
        return [self.path.with_name(self.path.name + suffix) for suffix in LOGS]

    def find(self) -> None:
        """Follow the way to the folder, and refuse one that others could exchange, and what lies in the file's way.

        Raises
        ------
        RefusedTarget
            The folder does not exist or others could exchange it; another's file or a link has a name that DuckDB uses.
        """
        self.path = self._folder(self.path.parent) / self.path.name
        if self._temporary is not None:
            self._temporary = self._folder(self._temporary)
        elif os.path.lexists(self.temporary):
            self._refuse_unlike(self.temporary, stat.S_ISDIR, "a folder")
        for log in self.logs:
            if os.path.lexists(log):
                if not self.exists:
                    raise RefusedTarget(
                        f"{self._display}: {printable(log)} is the log of a database that is not there; move it away, "
                        "or give another file"
                    )
                self._refuse_unlike(log, stat.S_ISREG, "a file")

    def _folder(self, folder: Path) -> Path:
        try:
            where, descriptor = attempt(self._display, folder, lambda: _trusted(folder, self._display))
        except _NoFolder:
            raise RefusedTarget(
                f"{self._display}: the folder {printable(folder)} does not exist; create it (mkdir -p "
                f"{printable(folder)}), or check the path"
            ) from None
        try:
            # Among entries that stick, too, others make new ones: links by the names that DuckDB will write to.
            if others_write(where, os.fstat(descriptor)):
                raise RefusedTarget(
                    f"{self._display}: {printable(where)} may be written to by other users, who could put links where"
                    f" DuckDB writes; make a folder of your own in it (mkdir -m 700), and give that"
                )
        finally:
            os.close(descriptor)
        return where

    def _refuse_unlike(self, path: Path, is_kind: Callable[[int], bool], kind: str) -> None:
        """Refuse what DuckDB would write to that is not this user's own."""
        status = os.lstat(path)
        if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
            raise RefusedTarget(
                f"{self._display}: {printable(path)} stands where DuckDB writes, and is not {kind} of this user's own; "
                "move it away, or give another file"
            )
        if others_write(path, status):
            raise RefusedTarget(
                f"{self._display}: {printable(path)} may be written to by other users; chmod go-w {printable(path)},"
                " or give another file"
            )
        if stat.S_ISREG(status.st_mode) and status.st_nlink != 1:
            raise RefusedTarget(f"{self._display}: {printable(path)} has a second name; give a file of its own")

    def take(self) -> None:
        """Open the file and keep other processes out.

        Raises
        ------
        RefusedTarget
            It is no DuckDB file, another user could change it, or another process has it open.
        """
        path, shown = self.path, printable(self.path)
        if path.is_symlink():
            raise RefusedTarget(f"{self._display}: {shown} is a link; give the file that it leads to")
        if path.is_dir():
            raise RefusedTarget(f"{self._display}: {shown} is a folder; give a file, such as {shown}/assay.duckdb")
        self._refuse_unlike(path, stat.S_ISREG, "a file")
        self._descriptor = attempt(self._display, path, lambda: open_without_links(path, os.O_RDWR | os.O_NONBLOCK))
        if os.pread(self._descriptor, len(_MAGIC), _MAGIC_AT) != _MAGIC:
            raise RefusedTarget(f"{self._display}: {shown} is no DuckDB file; give a file that does not exist yet")
        self.lock()

    def lock(self) -> None:
        """Keep other processes out, again after DuckDB closed the file."""
        self._lock(self.descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise OpenFailed(
                    f"{self._display}: {printable(self.path)} cannot be locked: {error.strerror}"
                ) from error
            raise RefusedTarget(
                f"{self._display}: {_holder(descriptor)} has {printable(self.path)} open; end it, or give another file"
            ) from None

    def check(self) -> None:
        """Make sure that the name leads to the file that is held.

        Raises
        ------
        RefusedTarget
            The file was exchanged.
        """
        found, held = os.stat(self.path), os.fstat(self.descriptor)
        if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
            raise RefusedTarget(f"{self._display}: {printable(self.path)} was exchanged while it was opened; try again")

    def replace(self, copy: Path) -> None:
        """Put a copy in the place of the file, which DuckDB has closed; at any moment one of them is there whole."""
        with file_errors(self._display):
            descriptor = open_without_links(os.path.realpath(copy.parent) + f"/{copy.name}", os.O_RDWR)
            try:
                self._lock(descriptor)
                for log in self.logs:
                    log.unlink(missing_ok=True)
                os.rename(copy, self.path)
            except BaseException:
                os.close(descriptor)
                raise
            self.release()
            self._descriptor = descriptor
            sync_folder(self.path.parent)

    @property
    def bytes(self) -> int:
        """Bytes of the file and of its logs."""
        return sum(path.stat().st_size for path in (self.path, *self.logs) if path.exists())

    def remove(self) -> None:
        """Delete the file that is held, with its logs, unless its name leads to another."""
        with suppress(OSError, RefusedTarget):
            self.check()
            for path in (*self.logs, self.path):
                path.unlink(missing_ok=True)

    def release(self) -> None:
        """Let others use the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _NoFolder(Exception):
    """A folder is not there."""


def _trusted(folder: Path, display: str) -> tuple[Path, int]:
    try:
        return open_trusted(folder, display)
    except (FileNotFoundError, NotADirectoryError):
        raise _NoFolder from None


def _holder(descriptor: int) -> str:
    """The process that has a file locked, in words."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))[4]
    return f"process {process}" if process > 0 else "another process"


def sync_folder(folder: Path) -> None:
    """Have the names in a folder written to its device."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
