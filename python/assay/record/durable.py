"""Files that survive a crash: whole writes, directories synced after every rename.

A rename is durable only once its directory is synced, and an atomic replacement only if the new file's data were synced
before the rename (rename(2), fsync(2)).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path

from assay.base.errors import AssayError, IoFailed, OutOfSpace, UsageError

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG)
"""Reasons to refuse the folder the user named, as opposed to a file system that failed."""


def failure(error: OSError, doing: str) -> AssayError:
    """Error of Assay for a failed system call.

    Parameters
    ----------
    error
        What the system reported.
    doing
        What was attempted, on which path: "cannot write /data/run.json".

    Returns
    -------
    AssayError
        `OutOfSpace` if the file system or quota is full, `IoFailed` otherwise; to be raised by the caller.
    """
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutOfSpace(f"{doing}: {reason}; free some space or choose another folder with --output")
    return IoFailed(f"{doing}: {reason}")


def write_whole(descriptor: int, data: bytes) -> None:
    """Write every byte, since one `write` may take only some of them.

    Raises
    ------
    OSError
        The system refused; some of the bytes may have been written.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_directory(path: Path) -> None:
    """Bring the names in a directory to stable storage, where the file system can.

    Raises
    ------
    OSError
        The directory cannot be opened, or syncing it failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_descriptor(descriptor)
    finally:
        os.close(descriptor)


def sync_descriptor(descriptor: int) -> None:
    """Bring the names in an open directory to stable storage, where the file system can.

    Raises
    ------
    OSError
        Syncing it failed.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and FUSE file systems cannot sync directories; their servers order renames themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def made_folder(parent: Path, verb: str, started_ns: int | None = None) -> Path:
    """A new folder for a run or its repeats, named by its time, unless given this moment.

    Raises
    ------
    UsageError
        The parent cannot be made or written to.
    OutOfSpace, IoFailed
        The file system failed.
    """
    moment_ns = time.time_ns() if started_ns is None else started_ns
    stamp = datetime.fromtimestamp(moment_ns // 10**9, UTC).strftime("%Y%m%d-%H%M%S")
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            path = parent / f"{stamp}-{verb}-{secrets.token_hex(3)}"
            # Two runs may start in the same second and draw the same six digits.
            with contextlib.suppress(FileExistsError):
                # Whatever the umask: one that every user may write to could not be gone on with.
                path.mkdir(0o775)
                return path
    except OSError as error:
        if error.errno in UNWRITABLE:
            reason = "it is not a folder" if parent.is_file() else error.strerror
            raise UsageError(
                f"cannot keep results in {parent}: {reason}; name a writable folder with --output"
            ) from error
        raise failure(error, f"cannot make a run folder in {parent}") from error
