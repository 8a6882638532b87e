"""Whether a content of the volume that was seen after a crash is one that promises of the storage allow.

The latest requests are looked at first. A sector must hold what its latest durable request left there, or what a later
outstanding request wrote. A part that survives as a whole is taken to be there if it agrees with every sector that no
later one accounts for: to take it where it agrees never spoils what is below, so that the answer is exact.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.insight.crash.promises import Promises
from assay.insight.crash.write_log import SECTOR_BYTES, LoggedRequest, Sectors, WriteLog

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
BASE = -1
"""In place of a request's number: the volume as it was when the log began."""

_BLOCK_SECTORS = 8192


class SeenVolume:
    """Bytes of a volume: a file, a device, or zeroes."""

    def __init__(self, path: Path | None, what: str) -> None:
        """Open a volume.

        Parameters
        ----------
        path
            None: zeroes.
        what
            Name of the option or argument, for errors.

        Raises
        ------
        UsageError
            It cannot be read.
        """
        self._what = what
        self._file = -1
        self.size_bytes = 0
        if path is None:
            return
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            self.size_bytes = os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise UsageError(f"{what}: {printable(path)}: cannot be read: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)

    def read(self, sectors: slice) -> Sectors:
        """Bytes of sectors; zeroes beyond the end.

        Raises
        ------
        UsageError
            They cannot be read.
        """
        count, at = (sectors.stop - sectors.start) * SECTOR_BYTES, sectors.start * SECTOR_BYTES
        found = bytearray()
        try:
            while self._file >= 0 and len(found) < count:
                if not (part := os.pread(self._file, count - len(found), at + len(found))):
                    break
                found += part
        except OSError as error:
            raise UsageError(f"{self._what}: cannot be read: {error.strerror}") from None
        found.extend(bytes(count - len(found)))
        return np.frombuffer(found, np.uint8).reshape(-1, SECTOR_BYTES)


@dataclass(frozen=True, kw_only=True)
class Membership:
    """The judgement of one content.

    Attributes
    ----------
    outstanding, kept, torn
        Outstanding requests at the crash, those that are there, and those that are there in part.
    wrong, expected
        Sectors that no allowed request accounts for, and of each the durable request that it should come from, or BASE.
    overtaken
        Of storage that promises order: a request that is not there in full, and a later one that is.
    """

    outstanding: int
    kept: int
    torn: int
    wrong: Numbers
    expected: Numbers
    overtaken: tuple[int, int] | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the promises allow this content."""
        return not len(self.wrong) and self.overtaken is None


class CrashJudge:
    """Judges one content of the volume, at the end of a log.

    Parameters
    ----------
    base
        The volume as it was when the log began.
    image
        The content that was seen.
    """

    def __init__(self, log: WriteLog, base: SeenVolume, image: SeenVolume) -> None:
        self.log = log
        self._base, self._image = base, image
        self._sectors = log.volume_bytes // SECTOR_BYTES

    def membership(self, promises: Promises) -> Membership:
        """Whether promises allow the content."""
        durable = durable_requests(self.log, promises)
        found = self._any_order(durable, promises)
        if promises.order == "any" or not found.is_allowed or self._is_prefix(durable, promises):
            return found
        return replace(found, overtaken=self._overtaken(durable))

    def agrees(self, number: int) -> Flags:
        """Of each sector of a request whether the content has its bytes."""
        same: Flags = (self.log.contents(number) == self._image.read(self.log.requests[number].sectors)).all(axis=1)
        return same

    def agrees_with_base(self) -> Flags:
        """Of each sector whether it is as it was when the log began."""
        found: Flags = np.empty(self._sectors, np.bool_)
        for first in range(0, self._sectors, _BLOCK_SECTORS):
            block = slice(first, min(first + _BLOCK_SECTORS, self._sectors))
            found[block] = (self._base.read(block) == self._image.read(block)).all(axis=1)
        return found

    def _any_order(self, durable: Mapping[int, int], promises: Promises) -> Membership:
        """Account for each sector, from the latest request to the first."""
        left: Flags = np.ones(self._sectors, np.bool_)
        outstanding = kept = torn = 0
        wrong: list[tuple[int, Flags]] = []
        for number in range(len(self.log.requests) - 1, -1, -1):
            request = self.log.requests[number]
            if not request.changes:
                continue
            here = left[request.sectors]
            agrees = self.agrees(number) if here.any() else ~here
            if number in durable:
                wrong.append((number, here & ~agrees))
                here[:] = False
                continue
            there = [bool((agrees | ~here)[part].all()) for part in parts(request, promises)]
            for part, is_there in zip(parts(request, promises), there, strict=True):
                if is_there:
                    here[part] = False
            outstanding += 1
            kept += all(there)
            torn += any(there) and not all(there)
        wrong.append((BASE, left & ~self.agrees_with_base()))
        places = [self._first(number) + np.flatnonzero(flags) for number, flags in wrong]
        expected = [np.full(len(place), number) for place, (number, _) in zip(places, wrong, strict=True)]
        return Membership(
            outstanding=outstanding,
            kept=kept,
            torn=torn,
            wrong=np.concatenate(places),
            expected=np.concatenate(expected),
        )

    def _first(self, number: int) -> int:
        """The first sector of a request, or of the volume."""
        return 0 if number == BASE else self.log.requests[number].sectors.start

    def _is_prefix(self, durable: Mapping[int, int], promises: Promises) -> bool:
        """Whether the content is that of the first outstanding parts, up to some moment."""
        source, agrees = self._up_to(0, durable)
        disagreeing = int(np.count_nonzero(~agrees))
        for number, request in enumerate(self.log.requests):
            if not request.changes or number in durable:
                continue
            fits = self.agrees(number)
            for part in parts(request, promises):
                if not disagreeing:
                    return True
                newer = source[request.sectors][part] < number
                before = agrees[request.sectors][part]
                after = np.where(newer, fits[part], before)
                disagreeing += int(np.count_nonzero(before)) - int(np.count_nonzero(after))
                before[:] = after
                source[request.sectors][part][newer] = number
        return not disagreeing

    def _up_to(self, until: int, durable: Mapping[int, int]) -> tuple[Numbers, Flags]:
        """Where sectors come from with what is durable and the outstanding requests before one; whether they agree."""
        source, agrees = np.full(self._sectors, BASE, np.int64), self.agrees_with_base()
        for number, request in enumerate(self.log.requests):
            if request.changes and (number < until or number in durable):
                source[request.sectors] = number
                agrees[request.sectors] = self.agrees(number)
        return source, agrees

    def _overtaken(self, durable: Mapping[int, int]) -> tuple[int, int]:
        """A request that is not there in full, and a later one that is."""
        source, agrees = self._up_to(len(self.log.requests), durable)
        first = int(source[~agrees].min())
        _, before = self._up_to(first, durable)
        later = source[agrees & ~before]
        return first, int(later.max()) if len(later) else first


def durable_requests(log: WriteLog, promises: Promises) -> dict[int, int]:
    """Of each durable request at the end of a log the request that made it durable: a flush, or itself."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    completed = [(one.completed, number) for number, one in enumerate(log.requests) if one.completed is not None]
    for _, number in sorted(completed):
        request = log.requests[number]
        if request.kind == "flush" and promises.flush:
            for other in waiting:
                if (log.requests[other].completed or 0) < request.submitted:
                    found[other] = number
            waiting = [other for other in waiting if other not in found]
        elif request.changes and (request.kind == "write" or promises.deterministic_discard):
            if not promises.volatile_cache or (request.fua and promises.fua):
                found[number] = number
            else:
                waiting.append(number)
    return found


def parts(request: LoggedRequest, promises: Promises) -> Iterator[slice]:
    """The parts of a request that survive whole or not at all: slices of its sectors, counted from its first."""
    whole = request.sectors
    unit = None if request.kind == "discard" else promises.atomic_bytes
    if unit is None:
        yield slice(0, whole.stop - whole.start)
        return
    size = unit // SECTOR_BYTES
    at = whole.start
    while at < whole.stop:
        after = min((at // size + 1) * size, whole.stop)
        yield slice(at - whole.start, after - whole.start)
        at = after
