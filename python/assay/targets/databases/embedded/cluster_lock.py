"""The lock of an embedded database's folder: one process uses it, and servers left behind make way."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable

import psutil

from assay.base.errors import NotAnswering, UsageError
from assay.targets.databases.common.folder_state import open_or_create, open_own_file

STRAY_TIMEOUT_S = 600.0
"""How long a server whose owner has died may take to stop: it writes all dirty pages."""

_LOCK = "lock"
_OWNER_BYTES = 120


def take_lock(folder: int, display: str, stop_stray: Callable[[], None]) -> int:
    """Lock an open folder; waits for a server whose owner has died.

    Parameters
    ----------
    stop_stray
        Tells such a server to stop; called again and again.

    Returns
    -------
    int
        Descriptor that is locked; who inherits it keeps the folder taken, and cannot write through it.

    Raises
    ------
    UsageError
        A living process has the folder.
    NotAnswering
        A server that was left behind does not stop.
    OSError
        The file of the lock is another user's, or cannot be made.
    """
    lock = open_or_create(_LOCK, folder, os.O_RDONLY)
    deadline = time.monotonic() + STRAY_TIMEOUT_S
    try:
        while not _locked(lock):
            _refuse_living_owner(lock, display)
            stop_stray()
            if time.monotonic() > deadline:
                raise NotAnswering(f"{display}: a PostgreSQL left behind there does not stop; end it, then try again")
            time.sleep(0.1)
        owner = {"pid": os.getpid(), "started": psutil.Process().create_time()}
        with open(open_own_file(_LOCK, folder, os.O_WRONLY), "wb") as file:
            file.write(json.dumps(owner).ljust(_OWNER_BYTES).encode())
    except BaseException:
        os.close(lock)
        raise
    return lock


def _refuse_living_owner(lock: int, display: str) -> None:
    try:
        owner = json.loads(os.pread(lock, _OWNER_BYTES, 0))
        is_alive = psutil.Process(owner["pid"]).create_time() == owner["started"]
    except (ValueError, KeyError, TypeError, OverflowError, psutil.Error):
        return
    if is_alive:
        raise UsageError(
            f"{display}: is in use by another run of Assay (process {owner['pid']}); wait for it, or give another "
            "folder"
        )


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
