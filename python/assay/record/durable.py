"""Files that survive a crash: whole writes, directories synced after every rename.

A rename is durable only once its directory is synced, and an atomic replacement only if the new file's data were synced
before the rename (rename(2), fsync(2)).
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from assay.base.errors import AssayError, IoFailed, OutOfSpace


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
