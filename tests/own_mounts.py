"""Mounts of their own for tests: what one of them mounts or unmounts, this machine does not see."""

from __future__ import annotations

import ctypes
import os

_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x00020000, 16384, 1 << 18
"""Linux: unshare(2), mount(2)."""


def own_mounts() -> None:
    """Give this thread, and the processes that it starts, mounts of their own, where that is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.unshare(_CLONE_NEWNS) == 0:
        libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
