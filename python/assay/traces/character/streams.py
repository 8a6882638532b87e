"""Sequential streams: I/Os that begin where one of the last ones on their device ended."""

from __future__ import annotations

import numpy as np

from assay.record.rows import Flags, Integers
from assay.traces.ios import IoFlag, Ios

WINDOW = 32
"""I/Os on a device among which the one before is looked for: so many streams may be interleaved."""


class Streams:
    """Finds sequential I/Os.

    Attributes
    ----------
    ios, sequential
        Reads and writes, and those that go on with a stream; of each a pair.
    heads
        I/Os that begin a stream.
    lag
        Sum of how many I/Os before its successor the predecessor of each sequential one was issued.
    """

    def __init__(self) -> None:
        self.ios, self.sequential = [0, 0], [0, 0]
        self.heads = self.lag = 0
        none = np.empty(0, np.int64)
        self._before = _Rows(none, none, none, none.astype(bool), none.astype(bool))

    def add(self, device: Integers, ios: Ios) -> None:
        """Look at I/Os; `device` are numbers that stay the same over the trace."""
        moved = (ios.flags & np.uint16(IoFlag.READ | IoFlag.WRITE)) != 0
        begin, size, device = ios.place_bytes[moved], ios.size_bytes[moved], device[moved]
        write = ios.has(IoFlag.WRITE)[moved]
        no = np.zeros(len(begin), np.bool_)
        old = len(self._before.device)
        rows = self._before.followed_by(_Rows(device, begin, begin + size, no, no))
        order = np.argsort(rows.device, kind="stable")
        sorted_ = rows.where(order)
        is_new = order >= old
        lag = _lags(sorted_)
        is_sequential = (lag > 0) & is_new
        sorted_.sequential[is_sequential] = True
        before = np.flatnonzero(is_sequential) - lag[is_sequential]
        before = np.unique(before)
        self.heads += int((~sorted_.sequential[before] & ~sorted_.used[before]).sum())
        sorted_.used[before] = True
        self.lag += int(lag[is_sequential].sum())
        went_on = np.zeros(len(begin), np.bool_)
        went_on[order[is_sequential] - old] = True
        for number, own in enumerate((~write, write)):
            self.ios[number] += int(own.sum())
            self.sequential[number] += int((own & went_on).sum())
        self._before = sorted_.where(_last_of_each(sorted_.device))

    @property
    def run_ios(self) -> float:
        """How many I/Os a stream has on average; 1 where there is none."""
        return 1 + sum(self.sequential) / self.heads if self.heads else 1.0

    @property
    def interleaved(self) -> float:
        """How many I/Os lie between two of one stream on average, its own counted: streams at once on a device."""
        return self.lag / max(sum(self.sequential), 1)


class _Rows:
    """I/Os: device, where each begins and ends, whether it goes on with a stream, whether another went on with it."""

    def __init__(self, device: Integers, begin: Integers, end: Integers, sequential: Flags, used: Flags) -> None:
        self.device, self.begin, self.end, self.sequential, self.used = device, begin, end, sequential, used

    def followed_by(self, other: _Rows) -> _Rows:
        return _Rows(np.concatenate([self.device, other.device]), np.concatenate([self.begin, other.begin]),
                     np.concatenate([self.end, other.end]), np.concatenate([self.sequential, other.sequential]),
                     np.concatenate([self.used, other.used]))  # fmt: skip

    def where(self, chosen: Integers | Flags) -> _Rows:
        return _Rows(self.device[chosen], self.begin[chosen], self.end[chosen], self.sequential[chosen],
                     self.used[chosen])  # fmt: skip


def _lags(rows: _Rows) -> Integers:
    """How far before each I/O, on its device, the nearest one ended where it begins; 0 where none did."""
    lag = np.zeros(len(rows.device), np.int64)
    for back in range(min(WINDOW, len(lag) - 1), 0, -1):
        fits = (rows.begin[back:] == rows.end[:-back]) & (rows.device[back:] == rows.device[:-back])
        lag[back:][fits] = back
    return lag


def _last_of_each(device: Integers) -> Flags:
    """Flags of the last I/Os of each device, of rows by device."""
    keep = np.ones(len(device), np.bool_)
    keep[: -WINDOW or None][device[WINDOW:] == device[:-WINDOW]] = False
    return keep
