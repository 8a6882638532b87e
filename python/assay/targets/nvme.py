"""Admin commands to NVMe controllers, by NVME_IOCTL_ADMIN_CMD (linux/nvme_ioctl.h)."""

from __future__ import annotations

import ctypes
import fcntl
import struct
from collections.abc import Callable, Sequence

_COMMAND = struct.Struct("<BBHIIIQQIIIIIIIIII")
"""`struct nvme_passthru_cmd`: opcode ... result."""
ADMIN = 0xC0484E41
"""NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, struct nvme_passthru_cmd), of 72 bytes."""
NAMESPACE_ID = 0x4E40
"""NVME_IOCTL_ID: _IO('N', 0x40)."""
_WORDS = 6
"""Command words 10 to 15, which the command gives a meaning."""

Ioctl = Callable[..., int]
"""`fcntl.ioctl`, which tests replace."""


def admin_command(
    descriptor: int,
    opcode: int,
    *,
    namespace: int,
    words: Sequence[int],
    timeout_ms: int,
    answer_bytes: int = 0,
    ioctl: Ioctl = fcntl.ioctl,
) -> bytes:
    """Send a command that writes nothing to the host but its answer, and return the answer.

    Parameters
    ----------
    words
        Command words from the tenth on.

    Raises
    ------
    OSError
        The kernel, or the controller by its status, refuses.
    """
    answer = ctypes.create_string_buffer(answer_bytes) if answer_bytes else None
    command = bytearray(_COMMAND.size)
    _COMMAND.pack_into(
        command, 0, opcode, 0, 0, namespace, 0, 0, 0, ctypes.addressof(answer) if answer is not None else 0, 0,
        answer_bytes, *words, *[0] * (_WORDS - len(words)), timeout_ms, 0,
    )  # fmt: skip
    status = ioctl(descriptor, ADMIN, command)
    if status:
        raise OSError(f"NVMe status {status:#x}")
    return answer.raw if answer is not None else b""


def namespace_id(descriptor: int, *, ioctl: Ioctl = fcntl.ioctl) -> int:
    """Return the number of an open namespace among those of its controller.

    Raises
    ------
    OSError
        It is no namespace.
    """
    return ioctl(descriptor, NAMESPACE_ID)
