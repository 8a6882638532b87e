"""I/Os of a trace as the compiled core takes them (crates/python/src/feeds.rs), a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from assay.traces.ios import IoFlag, Ios
from assay.workloads.replay.survey import response_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.record.rows import Integers
    from assay.workloads.replay.places import DeviceSeat
    from assay.workloads.replay.plan import Pace

ROW = np.dtype({
    "names": ["at_ns", "place", "length", "link", "op"], "formats": ["<u8", "<u8", "<u4", "<u4", "u1"],
    "offsets": [0, 8, 16, 20, 24], "itemsize": 32,
})  # fmt: skip
READ, WRITE, DURABLE_WRITE, FLUSH = range(4)
LINK_MAX = 1 << 16
"""An I/O follows one of this many before it (crates/load/src/worker/replay.rs)."""

Rows = npt.NDArray[np.void]


class RowMaker:
    """Makes rows of one trace for the workers of all volumes.

    Parameters
    ----------
    seats
        Where its devices lie.
    volumes
        The volumes that they lie on, each with one worker.
    begin_ns, at_ns
        Begin of the window, and the time of the replay at which the trace begins.
    depth
        Outstanding I/Os of a closed replay, where the trace does not decide.
    host
        The place of this host among all that the I/Os are dealt to, and their number.
    """

    def __init__(
        self,
        seats: Mapping[str, DeviceSeat],
        *,
        volumes: Sequence[int],
        pace: Pace,
        speed: float,
        begin_ns: int,
        at_ns: int,
        depth: int | None = None,
        host: tuple[int, int] = (0, 1),
    ) -> None:
        self._seats, self._volumes, self._pace, self._speed = seats, volumes, pace, speed
        self._begin_ns, self._at_ns, self._host = begin_ns, at_ns, host
        self._links = [_links_of(pace, depth, speed) for _ in volumes]
        self._seen = 0

    def at_ns(self, t_ns: Integers) -> Integers:
        """Times of the replay at which I/Os begin."""
        return ((t_ns - self._begin_ns) / self._speed).astype(np.int64) + self._at_ns

    def rows(self, ios: Ios) -> list[Rows]:
        """The rows of a batch, for each volume."""
        moving = ~ios.has(IoFlag.DISCARD)
        place, hosts = self._host
        if hosts > 1:
            moving &= (self._seen + np.arange(len(ios))) % hosts == place
        self._seen += len(ios)
        ios = ios.where(moving)
        volume, places, lengths = self._placed(ios)
        made = []
        for number in range(len(self._volumes)):
            own = volume == number
            made.append(self._rows_of(number, ios.where(own), places[own], lengths[own]))
        return made

    def _placed(self, ios: Ios) -> tuple[Integers, Integers, Integers]:
        """Position of the volume, place and length of each I/O."""
        volume, places, lengths = (np.zeros(len(ios), np.int64) for _ in range(3))
        for number, device in enumerate(ios.device.texts):
            own = ios.device.numbers == number
            # A device that only flushes has no place: its flushes go to the first volume.
            seat = self._seats.get(device)
            if seat is not None and own.any():
                volume[own] = self._volumes.index(seat.volume)
                places[own], lengths[own] = seat.placed(ios.place_bytes[own], ios.size_bytes[own])
        return volume, places, lengths

    def _rows_of(self, number: int, ios: Ios, places: Integers, lengths: Integers) -> Rows:
        """Rows of one volume: a write that flushes the device's cache first is a flush and a write."""
        writes, moves = ios.has(IoFlag.WRITE), ios.size_bytes > 0
        flushes = ios.has(IoFlag.FLUSH)
        reads = ios.has(IoFlag.READ) & moves
        data = reads | (writes & moves)
        each = flushes.astype(np.int64) + data
        source = np.repeat(np.arange(len(ios)), each)
        first = np.concatenate([[0], np.cumsum(each)[:-1]]).astype(np.int64) if len(ios) else each
        is_flush = np.zeros(len(source), np.bool_)
        is_flush[first[flushes]] = True
        rows = np.zeros(len(source), ROW)
        durable = (ios.flags & np.uint16(IoFlag.FUA)) != 0
        rows["op"] = np.where(is_flush, FLUSH, np.where(reads, READ, np.where(durable, DURABLE_WRITE, WRITE))[source])
        rows["place"] = np.where(is_flush, 0, places[source])
        rows["length"] = np.where(is_flush, 0, lengths[source])
        asked = ios.where(source)
        rows["at_ns"] = self.at_ns(asked.t_ns)
        self._links[number].put(rows, asked)
        return rows


class _Links:
    """What ties an I/O to those before it; of a timed replay nothing."""

    def put(self, rows: Rows, ios: Ios) -> None:
        """Set `link`, and `at_ns` where it counts from an end."""


class _Depth(_Links):
    """Always as many outstanding."""

    def __init__(self, depth: int) -> None:
        self._depth = depth

    def put(self, rows: Rows, ios: Ios) -> None:
        rows["link"] = self._depth - 1


class _Outstanding(_Links):
    """As many outstanding as there were when the I/O was asked for."""

    def __init__(self) -> None:
        self._ends = np.empty(0, np.int64)

    def put(self, rows: Rows, ios: Ios) -> None:
        if not len(ios):
            return
        ends = ios.t_ns + np.maximum(response_times(ios), 0)
        before = len(self._ends)
        every = np.sort(np.concatenate([self._ends, ends]))
        asked = before + np.arange(len(ios))
        rows["link"] = np.maximum(asked - np.searchsorted(every, ios.t_ns, "right"), 0)
        self._ends = every[every > ios.t_ns[-1]]


class _Following(_Links):
    """The I/O that ended last before this one was asked for, of the same process on the same device."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._seen = 0
        self._ended: dict[tuple[str, str], tuple[Integers, Integers]] = {}

    def put(self, rows: Rows, ios: Ios) -> None:
        number = self._seen + np.arange(len(ios))
        self._seen += len(ios)
        response_ns = response_times(ios)
        # An I/O never follows itself, nor one that was asked for with it.
        ends = np.where(response_ns < 0, np.iinfo(np.int64).max, ios.t_ns + np.maximum(response_ns, 1))
        stream = ios.device.numbers.astype(np.int64) * max(len(ios.process.texts), 1) + ios.process.numbers
        for one in np.unique(stream):
            own = np.flatnonzero(stream == one)
            device, process = divmod(int(one), max(len(ios.process.texts), 1))
            key = (ios.device.texts[device], ios.process.texts[process] if ios.process.texts else "")
            before_ends, before_numbers = self._ended.get(key, (np.empty(0, np.int64), np.empty(0, np.int64)))
            every_ends = np.concatenate([before_ends, ends[own]])
            every_numbers = np.concatenate([before_numbers, number[own]])
            order = np.argsort(every_ends, kind="stable")
            every_ends, every_numbers = every_ends[order], every_numbers[order]
            last = np.searchsorted(every_ends, ios.t_ns[own], "right") - 1
            link = np.where(last >= 0, number[own] - every_numbers[last], 0)
            follows = (link > 0) & (link <= LINK_MAX)
            rows["link"][own] = np.where(follows, link, 0)
            gap_ns = ((ios.t_ns[own] - every_ends[last]) / self._speed).astype(np.int64)
            rows["at_ns"][own] = np.where(follows, np.maximum(gap_ns, 0), rows["at_ns"][own])
            kept = max(int(last[-1]), 0)
            self._ended[key] = (every_ends[kept:], every_numbers[kept:])


def _links_of(pace: Pace, depth: int | None, speed: float) -> _Links:
    if pace == "think":
        return _Following(speed)
    if pace == "closed":
        return _Outstanding() if depth is None else _Depth(depth)
    return _Links()
