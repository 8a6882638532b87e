"""The volume that a log of writes and flushes leaves at each flush; QEMU's blklogwrites keeps such logs."""

from __future__ import annotations

from pathlib import Path

from assay.insight.crash.write_log import read_write_log


class Replay:
    """An image that becomes what the disk held at one flush after the other."""

    def __init__(self, log: Path, image: Path, size_bytes: int) -> None:
        self._log, self.image = log, image
        with read_write_log(log, size_bytes) as found:
            self._requests = found.requests
        assert not any(request.kind == "discard" for request in self._requests), "a log with discards is not replayed"
        self.flushes = sum(request.kind == "flush" for request in self._requests)
        self.at = 0
        self._next = 0
        with image.open("wb") as file:
            file.truncate(size_bytes)

    def to(self, flush: int) -> None:
        """Apply all writes that came before this flush, counted from 1."""
        assert self.at < flush <= self.flushes
        with self._log.open("rb") as log, self.image.open("r+b") as image:
            while self.at < flush:
                request = self._requests[self._next]
                self._next += 1
                if request.kind == "write":
                    log.seek(request.data_at)
                    image.seek(request.offset_bytes)
                    image.write(log.read(request.length_bytes))
                self.at += request.kind == "flush"
