"""Messages between the coordinator and an agent: JSON with rows of a series behind it, over any pipe.

Whatever a login shell prints before the agent's first word is passed over.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any

from assay.errors import NotSupported

GREETING = b"\nassay-agent-1\n"
"""The agent's first word; a change of the protocol changes its number."""
GREETING_WITHIN_BYTES = 1 << 16
"""Noise of a login shell is no longer."""

_HEADER = struct.Struct(">II")
MESSAGE_BYTES_MAX, ROWS_BYTES_MAX = 1 << 28, 1 << 30

Message = dict[str, Any]
Write = Callable[[bytes], object]
Read = Callable[[int], bytes]
"""Up to so many bytes; none at the end."""


def packed(message: Mapping[str, Any], rows: bytes = b"") -> bytes:
    """A message as it is sent."""
    text = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _HEADER.pack(len(text), len(rows)) + text + rows


class Sender:
    """Sends messages from several threads over one pipe."""

    def __init__(self, write: Write) -> None:
        self._write, self._lock = write, threading.Lock()

    def send(self, message: Mapping[str, Any], rows: bytes = b"") -> None:
        """Send one message.

        Raises
        ------
        OSError
            There is nothing at the other end.
        """
        with self._lock:
            self._write(packed(message, rows))


class Receiver:
    """Takes messages off a pipe."""

    def __init__(self, read: Read) -> None:
        self._read, self._buffer = read, bytearray()

    def greeting(self) -> bool:
        """Wait for the agent's first word; False where the pipe ends, or only noise comes."""
        while GREETING not in self._buffer:
            if len(self._buffer) > GREETING_WITHIN_BYTES or not self._more():
                return False
        del self._buffer[: self._buffer.index(GREETING) + len(GREETING)]
        return True

    def receive(self) -> tuple[Message, bytes] | None:
        """The next message and its rows; None where the pipe ends.

        Raises
        ------
        NotSupported
            What comes is no message.
        """
        header = self._take(_HEADER.size)
        if header is None:
            return None
        text_bytes, rows_bytes = _HEADER.unpack(header)
        if text_bytes > MESSAGE_BYTES_MAX or rows_bytes > ROWS_BYTES_MAX:
            raise NotSupported("sends something else than an agent of Assay does")
        text, rows = self._take(text_bytes), self._take(rows_bytes)
        if text is None or rows is None:
            return None
        try:
            message = json.loads(text)
        except ValueError:
            raise NotSupported("sends something else than an agent of Assay does") from None
        return message, rows

    def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            if not self._more():
                return None
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _more(self) -> bool:
        try:
            read = self._read(1 << 16)
        except (OSError, ValueError):
            return False
        self._buffer += read
        return bool(read)
