"""The log of a disk's writes and flushes, in the format of dm-log-writes, which QEMU's blklogwrites keeps, too."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
MAGIC = 0x6A736677736872
SUPER = struct.Struct("<QQQI")
ENTRY = struct.Struct("<QQQQ")
FLUSH = 1
DISCARD = 4


@dataclass(frozen=True)
class Entry:
    """A write, or a flush, in the order in which they came.

    Attributes
    ----------
    data_at
        Where the log has the written bytes.
    """

    offset_bytes: int
    size_bytes: int
    data_at: int
    is_flush: bool


def entries(log: Path) -> Iterator[Entry]:
    """Read a log to its end."""
    with log.open("rb") as file:
        magic, version, _, sector = SUPER.unpack(file.read(SUPER.size))
        assert (magic, version, sector) == (MAGIC, 1, SECTOR), "no write log of sectors of 512 bytes"
        at = SECTOR
        while True:
            file.seek(at)
            head = file.read(ENTRY.size)
            first, count, flags, _ = ENTRY.unpack(head) if len(head) == ENTRY.size else (0, 0, 0, 0)
            if not count and not flags:
                return
            assert not flags & DISCARD, "a log with discards is not replayed"
            yield Entry(first * SECTOR, count * SECTOR, at + SECTOR, bool(flags & FLUSH))
            at += SECTOR + count * SECTOR


class Replay:
    """An image that becomes what the disk held at one flush after the other."""

    def __init__(self, log: Path, image: Path, size_bytes: int) -> None:
        self._log, self.image = log, image
        self._left = entries(log)
        self.flushes = sum(entry.is_flush for entry in entries(log))
        self.at = 0
        with image.open("wb") as file:
            file.truncate(size_bytes)

    def to(self, flush: int) -> None:
        """Apply all writes that came before this flush, counted from 1."""
        assert self.at < flush <= self.flushes
        with self._log.open("rb") as log, self.image.open("r+b") as image:
            while self.at < flush:
                entry = next(self._left)
                log.seek(entry.data_at)
                image.seek(entry.offset_bytes)
                image.write(log.read(entry.size_bytes))
                self.at += entry.is_flush
