"""A thread whose open files are its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_CLONE_FILES = 0x400
"""Linux: `CLONE_FILES` (linux/sched.h)."""

Result = TypeVar("Result")


class OwnFilesThread:
    """Runs what may wait for a file system that this process itself serves.

    A process that is killed gives its open files back once the last thread that shares them has ended. A thread in a
    system call such as mount(2) cannot end before it is answered. Did it share `/dev/fuse`, the kernel would go on
    waiting for answers of threads that are dead, and nothing but a restart of the machine would end the process. So
    this thread has no descriptor of it: the kernel then sees that nobody serves, and fails what waits (unshare(2),
    `CLONE_FILES`; fuse(4), ENOTCONN).
    """

    def __init__(self, served: str = "/dev/fuse") -> None:
        """Begin the thread.

        Parameters
        ----------
        served
            The file that it must not hold.

        Raises
        ------
        OSError
            It cannot have files of its own.
        """
        self._served = served
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="own-files")
        self._number = self._pool.submit(self._begin).result()

    def _begin(self) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_FILES):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        for name in os.listdir("/proc/thread-self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/thread-self/fd/{name}") == self._served:
                    os.close(int(name))
        return threading.get_ident()

    def run(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns in the thread, or raise what it raises."""
        if threading.get_ident() == self._number:
            return call()
        return self._pool.submit(call).result()

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()
