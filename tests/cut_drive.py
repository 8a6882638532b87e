"""A drive with a cache of its own, which writes back when it likes and loses the rest with its power.

It keeps its promises by what it does, as a drive does: it knows nothing of the states that Assay enumerates. Writes go
into the cache by lines; lines go to the medium one at a time, in an order of its own. A flush is over when each line
that a completed write had touched is on the medium. All that happens is kept in a log as `assay crash` records it.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SECTOR_BYTES = 512
WRITE, FLUSH, DISCARD, MARK, COMPLETION = 1, 2, 3, 4, 5


@cache
def _crc32c_table() -> list[int]:
    """The checksums of two bytes."""
    one = list(range(256))
    for _ in range(8):
        one = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in one]
    first = [one[word & 255] ^ word >> 8 for word in range(1 << 16)]
    return [one[value & 255] ^ value >> 8 for value in first]


def crc32c(data: bytes) -> int:
    """CRC-32C of an even number of bytes, slowly."""
    value, table = 0xFFFFFFFF, _crc32c_table()
    for word in memoryview(data).cast("H"):
        value = table[(value ^ word) & 0xFFFF] ^ value >> 16
    return value ^ 0xFFFFFFFF


class LogWriter:
    """Writes a log of writes (docs/crash.md), an event with each system call."""

    def __init__(self, path: Path, volume_bytes: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._began = time.monotonic_ns()
        self._requests = 0
        head = struct.pack("<8sIIQ", b"ASSAYCRL", 1, SECTOR_BYTES, volume_bytes)
        os.write(self._file, head + struct.pack("<II", crc32c(head), 0))

    def submit(self, kind: int, offset: int = 0, data: bytes = b"", *, length: int = 0, fua: bool = False) -> int:
        """Note a request; its number."""
        self._event(kind, int(fua), offset, len(data) or length, data)
        self._requests += 1
        return self._requests - 1

    def complete(self, number: int) -> None:
        """Note that a request completed."""
        self._event(COMPLETION, 0, number, 0, b"")

    def close(self) -> None:
        """End the log."""
        os.close(self._file)

    def _event(self, kind: int, flags: int, offset: int, length: int, data: bytes) -> None:
        at_ns = time.monotonic_ns() - self._began
        rest = struct.pack("<BB2xQQQ", kind, flags, at_ns, offset, length) + data
        os.write(self._file, struct.pack("<I", crc32c(rest)) + rest)


@dataclass(frozen=True, kw_only=True)
class DriveKind:
    """What a drive does.

    Attributes
    ----------
    has_cache
        Whether a write completes before it is on the medium.
    line_bytes
        How much goes to the medium at a time, whole or not at all.
    in_order
        Whether lines go to the medium in the order of their writes.
    flushes, forces
        Whether flushes and FUA writes do what they say.
    """

    has_cache: bool = True
    line_bytes: int = 512
    in_order: bool = False
    flushes: bool = True
    forces: bool = True


DRIVES = {
    "write-through": DriveKind(has_cache=False),
    "torn at 512 B": DriveKind(),
    "torn at 4 KiB": DriveKind(line_bytes=4096),
    "atomic 16 KiB": DriveKind(line_bytes=16384),
    "in order": DriveKind(in_order=True),
    "lying": DriveKind(flushes=False, forces=False),
}
"""Kinds of drives. The names say what each does with what it has not made durable, except for the last one."""


@dataclass
class _Request:
    number: int
    kind: int
    done: Callable[[], None]
    lines: set[int] = field(default_factory=set)
    """Lines that must be on the medium before it completes."""
    order: list[int] = field(default_factory=list)
    """In which order, from the last to the first."""
    touched: set[int] = field(default_factory=set)
    """Dirty lines with bytes of it."""

    def needs(self, lines: set[int], draw: random.Random) -> None:
        """Let it complete when these lines are on the medium."""
        self.lines = set(lines)
        self.order = sorted(lines)
        draw.shuffle(self.order)

    def next_line(self) -> int:
        """A line that it needs."""
        while self.order[-1] not in self.lines:
            self.order.pop()
        return self.order[-1]


class CutDrive:
    """A drive over a file. Nothing of it but the file and the log is left when the process ends.

    Parameters
    ----------
    medium
        The file, which has the size of the drive.
    """

    def __init__(self, kind: DriveKind, medium: Path, log: Path, seed: int) -> None:
        self.kind = kind
        self._medium = os.open(medium, os.O_RDWR | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._medium).st_size
        self._log = LogWriter(log, self.size_bytes)
        self._random = random.Random(seed)
        self._cached: dict[int, dict[int, bytes]] = {}
        """Of each dirty line its dirty sectors."""
        self._queue: deque[dict[int, bytes]] = deque()
        """Of a drive that keeps the order: the dirty sectors of each part of a write."""
        self._first = 0
        """Number of the first part in the queue."""
        self._under_way: list[_Request] = []
        self._promised: set[int] = set()
        """Dirty lines that a completed write touched."""

    @property
    def is_busy(self) -> bool:
        """Whether requests have not completed."""
        return bool(self._under_way)

    def write(self, offset: int, data: bytes, done: Callable[[], None], *, fua: bool = False) -> None:
        """Take a write; `done` is called when it completes."""
        request = _Request(self._log.submit(WRITE, offset, data, fua=fua), WRITE, done)
        request.touched = self._put(offset, data)
        if not self.kind.has_cache or (fua and self.kind.forces):
            request.needs(request.touched, self._random)
        self._under_way.append(request)

    def flush(self, done: Callable[[], None]) -> None:
        """Take a flush."""
        request = _Request(self._log.submit(FLUSH), FLUSH, done)
        if self.kind.flushes:
            request.needs(self._promised, self._random)
        self._under_way.append(request)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes as the host wrote them."""
        found = bytearray(os.pread(self._medium, length, offset))
        line_sectors = self.kind.line_bytes // SECTOR_BYTES
        sectors = range(offset // SECTOR_BYTES, (offset + length) // SECTOR_BYTES)
        lines = range(sectors.start // line_sectors, -(-sectors.stop // line_sectors))
        for dirty in self._queue or (self._cached[line] for line in lines if line in self._cached):
            for sector in dirty.keys() & sectors:
                at = sector * SECTOR_BYTES - offset
                found[at : at + SECTOR_BYTES] = dirty[sector]
        return bytes(found)

    def step(self) -> None:
        """Do one thing: bring a line to the medium, or let a request complete that may."""
        ready = [one for one in self._under_way if not one.lines]
        waiting = [one for one in self._under_way if one.lines]
        if ready and (not waiting or self._random.random() < 0.5):
            self._complete(self._random.choice(ready))
        elif waiting:
            self._bring(self._random.choice(waiting).next_line())

    def idle(self) -> None:
        """Bring a line to the medium although nothing asks for it."""
        if self.kind.in_order and self._queue:
            self._bring_first()
        elif self._cached:
            self._bring(self._random.choice(list(self._cached)))

    def close(self) -> None:
        """Lose what the cache has."""
        os.close(self._medium)
        self._log.close()

    def _put(self, offset: int, data: bytes) -> set[int]:
        """Take sectors into the cache; the lines that they belong to."""
        line_sectors = self.kind.line_bytes // SECTOR_BYTES
        touched: dict[int, dict[int, bytes]] = {}
        for at in range(0, len(data), SECTOR_BYTES):
            sector = (offset + at) // SECTOR_BYTES
            touched.setdefault(sector // line_sectors, {})[sector] = data[at : at + SECTOR_BYTES]
        if self.kind.in_order:
            # A part is a line of its own, with a number that no other has had.
            first = self._first + len(self._queue)
            self._queue += touched.values()
            return set(range(first, first + len(touched)))
        for line, dirty in touched.items():
            self._cached.setdefault(line, {}).update(dirty)
        return set(touched)

    def _bring(self, line: int) -> None:
        """Bring a line to the medium, in order with all before it."""
        if self.kind.in_order:
            while self._first <= line:
                self._bring_first()
            return
        self._to_medium(self._cached.pop(line))
        self._is_there(line)

    def _bring_first(self) -> None:
        self._to_medium(self._queue.popleft())
        self._first += 1
        self._is_there(self._first - 1)

    def _is_there(self, line: int) -> None:
        self._promised.discard(line)
        for request in self._under_way:
            request.lines.discard(line)
            request.touched.discard(line)

    def _to_medium(self, dirty: dict[int, bytes]) -> None:
        """Write sectors with one system call, which no signal ends: with others between them, all are written."""
        first, last = min(dirty), max(dirty)
        span = bytearray(os.pread(self._medium, (last + 1 - first) * SECTOR_BYTES, first * SECTOR_BYTES))
        for sector, data in dirty.items():
            at = (sector - first) * SECTOR_BYTES
            span[at : at + SECTOR_BYTES] = data
        os.pwrite(self._medium, span, first * SECTOR_BYTES)

    def _complete(self, request: _Request) -> None:
        self._under_way.remove(request)
        self._promised |= request.touched
        self._log.complete(request.number)
        request.done()
