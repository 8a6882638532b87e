"""Purging: a device is told that it may forget all that it holds, so that its flash is as if nothing was written.

Only what a run holds for writing is purged, and of that only the bytes that the run uses. The call is that of
`blkdiscard` (BLKDISCARD, linux/fs.h), by the descriptor of the hold and not by a name.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from assay.base.errors import Interrupted, IoFailed, NotSupported
from assay.base.paths import printable
from assay.targets.files.hold import Hold

BLKDISCARD = 0x1277
"""_IO(0x12, 119), linux/fs.h."""
PIECE_BYTES = 64 << 30
"""Most that one call discards, so that an interrupt is heard between calls."""


def can_discard(path: Path | None) -> bool:
    """Whether a device takes discards (`queue/discard_max_bytes`, Documentation/ABI/stable/sysfs-block)."""
    try:
        status = os.stat(path) if path is not None else None
    except OSError:
        return False
    if status is None or not stat.S_ISBLK(status.st_mode):
        return False
    own = Path(f"/sys/dev/block/{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}")
    # The queue of a partition is that of its disk.
    for queue in (own / "queue", own.resolve().parent / "queue"):
        try:
            return int((queue / "discard_max_bytes").read_text()) > 0
        except (OSError, ValueError):
            continue
    return False


def discard(
    hold: Hold,
    size_bytes: int,
    interrupt: threading.Event,
    *,
    ioctl: Callable[[int, int, bytes], object] = fcntl.ioctl,
) -> None:
    """Discard the bytes of a held device that a run uses.

    Parameters
    ----------
    ioctl
        The call, for tests.

    Raises
    ------
    NotSupported
        The device refuses.
    Interrupted, IoFailed
        The run was interrupted between two pieces; something else has the device's place.
    """
    hold.check()
    hold.begin_writing()
    name = printable(hold.path)
    try:
        # The descriptor of the hold claims the device; what writes is opened through it.
        descriptor = os.open(f"/proc/self/fd/{hold.descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise IoFailed(f"{name}: cannot be opened for its purge: {error.strerror}") from error
    try:
        for begin in range(0, size_bytes, PIECE_BYTES):
            if interrupt.is_set():
                raise Interrupted("interrupted during the purge; it begins anew")
            ioctl(descriptor, BLKDISCARD, struct.pack("QQ", begin, min(PIECE_BYTES, size_bytes - begin)))
    except OSError as error:
        raise NotSupported(f"{name}: refuses to be discarded: {error.strerror}; give --purge none") from error
    finally:
        os.close(descriptor)
