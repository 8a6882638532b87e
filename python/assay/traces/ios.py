"""I/Os of a trace in memory: one NumPy column for each of their properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag

import numpy as np
import numpy.typing as npt

from assay.record.rows import Integers, Places, TextColumn

UNKNOWN_NS = -1
"""A time that the trace does not tell."""


class IoFlag(IntFlag):
    """What an I/O asks for, and how (the letters of the kernel's `rwbs`, include/trace/events/block.h).

    A flush without data has `FLUSH` alone; a write that the device flushes its cache before has `WRITE` and `FLUSH`.
    """

    READ = 1
    WRITE = 2
    DISCARD = 4
    FLUSH = 8
    FUA = 16
    SYNC = 32
    METADATA = 64
    AHEAD = 128
    FAILED = 256


@dataclass(frozen=True, eq=False)
class Ios:
    """Some I/Os of a trace, in the order in which they were asked for.

    Attributes
    ----------
    t_ns
        When each was asked for, since the trace's origin; it never goes back.
    queue_ns
        From then until it was issued to the device, or `UNKNOWN_NS`.
    device_ns
        From there until it was completed, or `UNKNOWN_NS`; where the trace tells a response time as a whole
        (`TraceHead.times`), that is it, and `queue_ns` is unknown.
    place_bytes, size_bytes
        Where on its device it begins, and how much it moves.
    flags
        `IoFlag` of each.
    device, process
        Names of the device and of the process that asked; an empty text is an unknown process.
    """

    t_ns: Integers
    queue_ns: Integers
    device_ns: Integers
    place_bytes: Integers
    size_bytes: Integers
    flags: npt.NDArray[np.uint16]
    device: TextColumn
    process: TextColumn

    def __len__(self) -> int:
        return len(self.t_ns)

    def where(self, chosen: Places) -> Ios:
        """Give the chosen I/Os."""
        device, process = (TextColumn(one.numbers[chosen], one.texts) for one in (self.device, self.process))
        return Ios(self.t_ns[chosen], self.queue_ns[chosen], self.device_ns[chosen], self.place_bytes[chosen],
                   self.size_bytes[chosen], self.flags[chosen], device, process)  # fmt: skip

    def has(self, flag: IoFlag) -> npt.NDArray[np.bool_]:
        """Flags of the I/Os that have this flag."""
        return np.asarray((self.flags & np.uint16(flag)) != 0)


def joined_ios(parts: Sequence[Ios]) -> Ios:
    """Put I/Os one after the other."""
    if len(parts) == 1:
        return parts[0]

    def column(name: str) -> Integers:
        return np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in parts)])

    return Ios(
        column("t_ns"), column("queue_ns"), column("device_ns"), column("place_bytes"), column("size_bytes"),
        np.concatenate([np.empty(0, np.uint16), *(part.flags for part in parts)]),
        _joined([part.device for part in parts]), _joined([part.process for part in parts]),
    )  # fmt: skip


def _joined(columns: Sequence[TextColumn]) -> TextColumn:
    texts: dict[str, int] = {}
    numbers = [np.empty(0, np.int32)]
    for column in columns:
        own = np.array([texts.setdefault(text, len(texts)) for text in column.texts], np.int32)
        numbers.append(own[column.numbers] if len(own) else np.empty(0, np.int32))
    return TextColumn(np.concatenate(numbers), list(texts))
