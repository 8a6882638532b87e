"""Messages between the coordinator and an agent: JSON with bytes behind it, over any pipe.

Whatever a login shell prints before the agent's first word is passed over. All else that comes is foreign input, on
both sides: its length is told before it, and bounded; its JSON is bounded in depth, in values and in their size. What
the values must be is `assay.fleet.messages`.
"""

from __future__ import annotations

import json
import math
import re
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from assay.base.errors import IoFailed

GREETING = b"\nassay-agent-2\n"
"""The agent's first word; a change of the protocol changes its number."""
_ANY_GREETING = re.compile(rb"\nassay-agent-[0-9]{1,9}\n")
GREETING_WITHIN_BYTES = 1 << 16
"""Noise of a login shell is no longer."""

_HEADER = struct.Struct(">II")
FROM_AGENT_BYTES_MAX = 1 << 25
"""Of a message's JSON: the largest tells of a point."""
FROM_COORDINATOR_BYTES_MAX = 1 << 28
"""Of a message's JSON: the largest holds all points of a run that goes on."""
BEHIND_BYTES_MAX = 1 << 30
"""What lies behind it: rows of a series."""
DEPTH_MAX = 40
BYTES_A_VALUE = 8
"""Values of a message are bounded by its longest length: in memory an empty list takes fifty bytes, here two."""
INTEGER_MAX = 1 << 63

Message = dict[str, object]
"""What came, or is to be sent; what came is checked before anything is made of it (`assay.fleet.messages`)."""
Write = Callable[[bytes], object]
Read = Callable[[int], bytes]
"""Reads at most the number of bytes asked for; gives none at the end."""


class NotAMessage(IoFailed):
    """The other side sends what no message of Assay is; the text says what."""


def packed(message: Mapping[str, object], behind: bytes = b"") -> bytes:
    """A message as it is sent."""
    text = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _HEADER.pack(len(text), len(behind)) + text + behind


class Sender:
    """Sends messages from several threads over one pipe."""

    def __init__(self, write: Write) -> None:
        self._write, self._lock = write, threading.Lock()

    def send(self, message: Mapping[str, object], behind: bytes = b"") -> None:
        """Send one message.

        Raises
        ------
        OSError
            There is nothing at the other end.
        """
        with self._lock:
            self._write(packed(message, behind))


class Receiver:
    """Takes messages off a pipe.

    Parameters
    ----------
    read
        Reads from the pipe.
    bytes_max
        Of the JSON of a message.
    """

    def __init__(self, read: Read, bytes_max: int = FROM_COORDINATOR_BYTES_MAX) -> None:
        self._read, self._bytes_max, self._buffer = read, bytes_max, bytearray()

    def greeting(self) -> bool:
        """Wait for the agent's first word; False where the pipe ends, or only noise comes.

        Raises
        ------
        NotAMessage
            It is that of another protocol.
        """
        while (found := _ANY_GREETING.search(self._buffer)) is None:
            if len(self._buffer) > GREETING_WITHIN_BYTES or not self._more():
                return False
        if found.group() != GREETING:
            raise NotAMessage("the first word of another version")
        del self._buffer[: found.end()]
        return True

    def receive(self) -> tuple[Message, bytes] | None:
        """The next message and what lies behind it; None where the pipe ends.

        Raises
        ------
        NotAMessage
            What comes is none.
        """
        header = self._take(_HEADER.size)
        if header is None:
            return None
        text_bytes, behind_bytes = _HEADER.unpack(header)
        if text_bytes > self._bytes_max or behind_bytes > BEHIND_BYTES_MAX:
            raise NotAMessage(f"a message of {max(text_bytes, behind_bytes):,} bytes")
        text = self._take(text_bytes)
        if text is None:
            return None
        message = _read(text, self._bytes_max // BYTES_A_VALUE)
        behind = self._take(behind_bytes)
        return None if behind is None else (message, behind)

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


def _read(text: bytes, values_max: int) -> Message:
    """A message from its JSON.

    Raises
    ------
    NotAMessage
        It is none, or too deep or too large for one.
    """
    # Counted before anything is made of them.
    if sum(map(text.count, (b",", b"[", b"{"))) > values_max:
        raise NotAMessage("a message of too many values")
    try:
        message = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise NotAMessage("no JSON, or too deep") from None
    if not isinstance(message, dict):
        raise NotAMessage(f"JSON of a {type(message).__name__}")
    _check(message)
    return message


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _check(message: Message) -> None:
    """Bound depth and numbers: all that take what is in it may go down into it, and calculate."""
    level: list[Any] = [message]
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, float):
                if not math.isfinite(value):
                    raise NotAMessage("a number that is none")
            elif isinstance(value, int) and not -INTEGER_MAX < value < INTEGER_MAX:
                raise NotAMessage("a number of too many digits")
        if not below:
            return
        level = below
    raise NotAMessage("values that are nested too deep")
