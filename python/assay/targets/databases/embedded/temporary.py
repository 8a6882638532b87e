"""Temporary folders that a later start recognises as left behind by a process that was killed, and removes.

    BASE/assay-run-XXXXXXXX/lock   locked while the process lives that made the folder, or a server of it

A folder is removed only if this user made it, its lock says what it is, and no process holds that lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from assay.base.errors import OpenFailed
from assay.base.paths import open_regular
from assay.targets.databases.embedded.launcher import closed_ancestor
from assay.targets.trust import is_trusted

_PREFIX = "assay-run-"
_NAME = re.compile(_PREFIX + r"[a-z0-9_]{8}")
_PLAIN = re.compile(r"/[^,\"\x00-\x1f\x7f\udc80-\udcff]*")
"""Folders that a server's configuration can name: in full, in text, and without what stands between its folders."""

_LOCK = "lock"
_SAYS = b"Assay made this folder for one run, which is over once this file is not locked any more.\n"


class TemporaryFolder:
    """A temporary folder of this process's own, which other users may pass but not list.

    Attributes
    ----------
    path
        Holds the lock and what the caller puts there.
    lock
        Descriptor; processes that inherit it keep the folder from being removed.
    """

    def __init__(self, base: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        try:
            written = self.path / f"{_LOCK}.new"
            self.lock = os.open(written, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            # Locked before it has its name: what has it and is not locked is left behind.
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self.lock, _SAYS)
            os.rename(written, self.path / _LOCK)
            self.path.chmod(0o711)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Delete the folder with all that it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def bases(*, runtime: bool) -> list[str]:
    """Folders for temporary files which no other user can tamper with, the best first.

    Parameters
    ----------
    runtime
        For sockets: short paths first. Otherwise for programs, which such folders often do not let run.
    """
    own, common = os.environ.get("XDG_RUNTIME_DIR", ""), [tempfile.gettempdir(), "/var/tmp", "/tmp"]
    wanted = [own, "/run", *common] if runtime else common
    return [
        base
        for base in dict.fromkeys(wanted)
        if _PLAIN.fullmatch(base) and os.access(base, os.W_OK | os.X_OK) and is_trusted(Path(base))
    ]


def remove_left_behind(places: Sequence[str]) -> None:
    """Remove what runs of this user that were killed have left in folders for temporary files."""
    for place in places:
        with contextlib.suppress(OSError):
            base = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                for name in os.listdir(base):
                    if _NAME.fullmatch(name):
                        _remove_if_left_behind(name, base)
            finally:
                os.close(base)


def _remove_if_left_behind(name: str, base: int) -> None:
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=base)
        stack.callback(os.close, folder)
        lock = open_regular(_LOCK, dir_fd=folder)
        stack.callback(os.close, lock)
        if any(os.fstat(one).st_uid != os.geteuid() for one in (folder, lock)) or os.fstat(lock).st_nlink != 1:
            return
        if os.read(lock, len(_SAYS) + 1) != _SAYS:
            return
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(folder), os.stat(name, dir_fd=base, follow_symlinks=False)):
            shutil.rmtree(name, dir_fd=base, ignore_errors=True)


def socket_folder(fits_bytes: int, *, for_all: bool = False) -> TemporaryFolder:
    """Make a folder whose path, with a socket's below it, is short enough.

    Parameters
    ----------
    fits_bytes
        Most bytes of the folder's path.
    for_all
        Every user must be able to reach it by its path.

    Raises
    ------
    OpenFailed
        No folder for temporary files can be written to.
    """
    for base in bases(runtime=True):
        # mkdtemp's names have eight letters.
        is_closed = for_all and closed_ancestor(f"{base}/{_PREFIX}") is not None
        if len(os.fsencode(f"{base}/{_PREFIX}12345678")) <= fits_bytes and not is_closed:
            with contextlib.suppress(OSError):
                return TemporaryFolder(base)
    raise OpenFailed("embedded: no folder for the server's socket; make /tmp writable, or set TMPDIR to a short path")


def mode_for_all(status: os.stat_result) -> int:
    """Mode with which every user may read a copy of a file or folder, and run what could be run."""
    return 0o755 if stat.S_ISDIR(status.st_mode) or status.st_mode & stat.S_IXUSR else 0o644
