"""The requests of a log of writes: of `assay crash run`, or of dm-log-writes, whose format QEMU keeps, too.

This reads logs anew, beside the core (crates/crash/src/log_file.rs), for the judgement of states that were seen: what
judges the states that the core enumerates shares no code with it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Self

import numpy as np
import numpy.typing as npt

from assay import _core
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.insight.crash.promises import Promises

SECTOR_BYTES = 512
Sectors = npt.NDArray[np.uint8]
"""Bytes of sectors, a row each."""

RequestKind = Literal["write", "flush", "discard", "mark"]

_EVENT = struct.Struct("<I B B 2x Q Q Q")
"""Checksum, kind, flags, nanoseconds, offset, length (docs/crash.md)."""
_HEAD_BYTES = 32
_KINDS: tuple[RequestKind, ...] = ("write", "flush", "discard", "mark")
_COMPLETION = 5
_FUA = 1

_SUPER = struct.Struct("<Q Q Q I")
_ENTRY = struct.Struct("<Q Q Q Q")
_SUPER_MAGIC = 0x6A736677736872
_ENTRY_FLUSH, _ENTRY_FUA, _ENTRY_DISCARD, _ENTRY_MARK = 1, 2, 4, 8
"""drivers/md/dm-log-writes.c; a log begins with a super block, each entry with a sector of its own."""

_NOTHING = Path("/dev/null")


@dataclass(slots=True)
class LoggedRequest:
    """A request of a log.

    Attributes
    ----------
    offset_bytes, length_bytes
        Its place on the volume, in whole sectors; of a mark the length of its text.
    submitted, completed
        Numbers of the events; None: the log ends before it completed.
    at_ns
        Time of its submission, since the log began.
    data_at
        Place of its bytes in the log.
    """

    kind: RequestKind
    fua: bool
    offset_bytes: int
    length_bytes: int
    submitted: int
    completed: int | None
    at_ns: int
    data_at: int

    @property
    def sectors(self) -> slice:
        """The sectors that it changes."""
        return slice(self.offset_bytes // SECTOR_BYTES, (self.offset_bytes + self.length_bytes) // SECTOR_BYTES)

    @property
    def changes(self) -> bool:
        """Whether it changes contents."""
        return self.kind in ("write", "discard")


class WriteLog:
    """The requests of a log, in the order of their submission.

    Attributes
    ----------
    volume_bytes
        Size of the volume.
    requests
        All requests, as the core numbers them.
    """

    def __init__(self, path: Path, volume_bytes: int, requests: list[LoggedRequest]) -> None:
        self.volume_bytes = volume_bytes
        self.requests = requests
        self._file = path.open("rb", buffering=0)

    def contents(self, number: int) -> Sectors:
        """Bytes of a write, or the zeroes of a discard.

        Raises
        ------
        UsageError
            The log has become shorter.
        """
        request = self.requests[number]
        if request.kind == "discard":
            return np.zeros((request.length_bytes // SECTOR_BYTES, SECTOR_BYTES), np.uint8)
        found = os.pread(self._file.fileno(), request.length_bytes, request.data_at)
        if len(found) < request.length_bytes:
            raise UsageError(f"the log has become shorter: request {number} is cut short")
        return np.frombuffer(found, np.uint8).reshape(-1, SECTOR_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_write_log(path: Path, volume_bytes: int) -> WriteLog:
    """Read a log of either kind.

    Parameters
    ----------
    volume_bytes
        Size of the volume, for logs that do not hold it.

    Raises
    ------
    UsageError
        It is no log of writes, or goes beyond the volume.
    """
    try:
        with path.open("rb") as file:
            head = file.read(SECTOR_BYTES)
            if len(head) >= _SUPER.size and _SUPER.unpack_from(head)[0] == _SUPER_MAGIC:
                requests = list(_entries(file, path))
            else:
                volume_bytes, requests = _recorded(file, path)
    except OSError as error:
        raise UsageError(f"{printable(path)}: cannot be read: {error.strerror}") from None
    for request in requests:
        if request.changes and request.offset_bytes + request.length_bytes > volume_bytes:
            raise UsageError(
                f"{printable(path)}: has writes beyond {volume_bytes} bytes; give an image of the whole volume"
            )
    return WriteLog(path, volume_bytes, requests)


def _recorded(file: BinaryIO, path: Path) -> tuple[int, list[LoggedRequest]]:
    """Size of the volume and requests of a log that Assay recorded, up to its last whole event."""
    # The core looks at the checksums; what it believes is read here.
    whole = sum(
        count
        for kind, count in _core.CrashStates(path, _NOTHING, Promises().to_json()).counts().items()
        if kind in ("writes", "flushes", "discards", "marks")
    )
    file.seek(0)
    (volume_bytes,) = struct.unpack_from("<Q", file.read(_HEAD_BYTES), 16)
    requests: list[LoggedRequest] = []
    event = 0
    while len(head := file.read(_EVENT.size)) == _EVENT.size:
        _, kind, flags, at_ns, offset, length = _EVENT.unpack(head)
        event += 1
        if kind == _COMPLETION:
            if offset >= len(requests) or requests[offset].completed is not None:
                break
            requests[offset].completed = event
            continue
        if not 1 <= kind <= len(_KINDS) or len(requests) == whole:
            break
        name = _KINDS[kind - 1]
        request = LoggedRequest(name, bool(flags & _FUA), offset, length, event, None, at_ns, file.tell())
        requests.append(request)
        if name in ("write", "mark"):
            file.seek(length, os.SEEK_CUR)
    return volume_bytes, requests


def _entries(file: BinaryIO, path: Path) -> Iterator[LoggedRequest]:
    """Requests of a log of dm-log-writes: each completed before the next one was submitted, as far as the log says."""
    file.seek(0)
    _, version, _, sector = _SUPER.unpack(file.read(_SUPER.size))
    if version != 1 or sector < SECTOR_BYTES or sector > 1 << 16 or sector % SECTOR_BYTES:
        raise UsageError(f"{printable(path)}: is no log of writes that this version of Assay reads; record it again")
    at, event, end = sector, 0, file.seek(0, os.SEEK_END)
    # The count of the super block is brought up to date from time to time only: the first empty entry ends the log.
    while len(head := _at(file, at)) == _ENTRY.size and any(head):
        first, sectors, flags, _ = _ENTRY.unpack(head)
        data_at, place, length = at + sector, first * sector, sectors * sector
        at = data_at
        kinds: list[RequestKind] = ["flush"] if flags & _ENTRY_FLUSH else []
        if flags & _ENTRY_MARK:
            kinds.append("mark")
        elif sectors:
            kinds.append("discard" if flags & _ENTRY_DISCARD else "write")
        if "write" in kinds and data_at + length > end:
            return
        for kind in kinds:
            fua = kind == "write" and bool(flags & _ENTRY_FUA)
            where, size = (place, length) if kind in ("write", "discard") else (0, 0)
            yield LoggedRequest(kind, fua, where, size, event + 1, event + 2, 0, data_at)
            event += 2
        at += length if "write" in kinds else 0


def _at(file: BinaryIO, place: int) -> bytes:
    file.seek(place)
    return file.read(_ENTRY.size)
