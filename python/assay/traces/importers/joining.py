"""Events of the kernel's block layer become I/Os: queued, issued and completed, joined by device and sector.

There is no number that tells requests apart (`include/trace/events/block.h`): an issue belongs to the completion that
comes next at its device and sector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from assay.base.units import count_of
from assay.record.rows import Integers, Places, TextColumn
from assay.traces.importers.form import SECTOR, SIZE_END, T_NS_END, ios_of
from assay.traces.importers.ordering import merged, sorted_within
from assay.traces.importers.sources import Source
from assay.traces.ios import UNKNOWN_NS, IoFlag, Ios

EVENT = np.dtype([("t_ns", "i8"), ("sector", "i8"), ("size", "i8"), ("device", "i8"), ("process", "i4"),
                  ("flags", "u2"), ("action", "u1")])  # fmt: skip
"""`device` is major << 20 | minor; `process` is the number of a name; `action` a letter of blkparse."""
QUEUED, MERGED, ISSUED, REQUEUED, COMPLETED = (ord(one) for one in "QMDRC")
WINDOW_EVENTS = 2**18
OPEN_MAX = 2**20
"""I/Os that are waited for at once; the oldest half is given up beyond."""
SECTORS_END = 2**53

_Open = tuple[int, int, int, int, int]
"""When an I/O was asked for (or `UNKNOWN_NS`) and issued, its size, flags and process."""


@dataclass(frozen=True, eq=False)
class BlockEvents:
    """Events of the block layer; see `EVENT`."""

    table: npt.NDArray[np.void]

    @property
    def t_ns(self) -> Integers:
        """The time of each."""
        times: Integers = self.table["t_ns"]
        return times

    def __len__(self) -> int:
        return len(self.table)

    def where(self, chosen: Places) -> BlockEvents:
        """Give the chosen events."""
        return BlockEvents(self.table[chosen])


def joined_events(parts: Sequence[BlockEvents]) -> BlockEvents:
    """Put events one after the other."""
    return BlockEvents(np.concatenate([part.table for part in parts]))


def device_name(number: int) -> str:
    """The name of a device as blkparse writes it."""
    return f"{number >> 20},{number & 0xFFFFF}"


class Joiner:
    """Joins events to I/Os.

    Parameters
    ----------
    processes
        Names of processes by their numbers.

    Attributes
    ----------
    layer
        Which events are I/Os: those that are issued where there are any, or those that are queued, or completions.
    """

    def __init__(self, processes: Sequence[str]) -> None:
        self.layer = ISSUED
        self._processes = processes
        self._queued: dict[tuple[int, int], int] = {}
        self._open: dict[tuple[int, int, bool], list[_Open]] = {}
        self._open_ios = 0
        self._done: list[tuple[int, int, int, int, int, int, int, int]] = []
        self._plain: list[npt.NDArray[np.void]] = []
        self.unmatched = self.unfinished = 0

    def ios(self, files: Sequence[Iterator[BlockEvents]], source: Source) -> Iterator[Ios]:
        """Yield the I/Os of the events of several files, in the order in which they complete."""
        window = max(WINDOW_EVENTS // len(files), 2**12)
        ordered = [sorted_within(one, joined_events, window) for one in files]
        events = merged(ordered, joined_events)
        first = next(events, None)
        if first is None:
            return
        actions = set(np.unique(first.table["action"]).tolist())
        self.layer = next((one for one in (ISSUED, QUEUED, COMPLETED) if one in actions), COMPLETED)
        for block in chain([first], events):
            self._take(block.table)
            yield from self._given()
        for (device, sector, _), waiting in self._open.items():
            for one in waiting:
                self._add(device, sector, one, None)
        if self._open_ios:
            source.note(f"{count_of(self._open_ios, 'I/O')} had not completed when the trace ended")
        yield from self._given()
        if self.unmatched:
            source.note(f"{count_of(self.unmatched, 'completion')} of I/Os that were not seen to begin are left out")
        if self.unfinished:
            source.note(f"{count_of(self.unfinished, 'I/O')} never completed")

    def _take(self, table: npt.NDArray[np.void]) -> None:
        plain, table = self._apart(table)
        if len(plain):
            self._plain.append(plain)
        columns = (table[name].tolist() for name in ("t_ns", "sector", "size", "device", "process", "flags", "action"))
        for t_ns, sector, size, device, process, flags, action in zip(*columns, strict=True):
            place = (device, sector)
            if action == COMPLETED:
                if self.layer == COMPLETED:
                    self._add(device, sector, (UNKNOWN_NS, t_ns, size, flags, process), None)
                else:
                    self._complete(device, sector, size, t_ns)
            elif action == self.layer:
                asked_ns = self._queued.pop(place, UNKNOWN_NS) if action == ISSUED else UNKNOWN_NS
                self._begin(device, sector, (asked_ns, t_ns, size, flags, process))
            elif action == QUEUED:
                if len(self._queued) >= OPEN_MAX:
                    self._queued = dict(list(self._queued.items())[OPEN_MAX // 2 :])
                self._queued.setdefault(place, t_ns)
            elif action == MERGED:
                self._queued.pop(place, None)
            elif action == REQUEUED:
                self._requeue(device, sector, size)

    def _apart(self, table: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
        """Take the events of places where nothing but whole I/Os happened, and give those of the others.

        At such a place each I/O is queued (or was not seen to be), issued and completed, or its bio is merged into
        another one's request; nothing waits there from before, and nothing is under way at the end of the events.
        The first array is in the order of places: the events of each I/O lie one behind the other.
        """
        if self.layer == COMPLETED or not len(table):
            return table[:0], table
        order = np.lexsort((table["sector"], table["device"]))
        found = table[order]
        action, sector, device = found["action"], found["sector"], found["device"]
        begins = np.ones(len(found), bool)
        begins[1:] = (sector[1:] != sector[:-1]) | (device[1:] != device[:-1])
        ends = np.append(begins[1:], True)
        before = np.where(begins, COMPLETED, np.roll(action, 1))
        after_end = np.isin(before, (COMPLETED, MERGED))
        good = np.select(
            [action == self.layer, action == QUEUED, action == MERGED, action == COMPLETED],
            [after_end | (before == QUEUED), after_end, before == QUEUED,
             (before == self.layer) & (found["size"] == np.roll(found["size"], 1))],
            False,
        )  # fmt: skip
        good &= (found["size"] > 0) & (~ends | np.isin(action, (COMPLETED, MERGED)))
        place = np.cumsum(begins) - 1
        is_plain = np.bincount(place, ~good) == 0
        is_plain &= ~self._waits(sector[begins], device[begins])
        chosen = is_plain[place]
        rest = np.ones(len(table), bool)
        rest[order[chosen]] = False
        return found[chosen], table[rest]

    def _waits(self, sectors: Integers, devices: Integers) -> npt.NDArray[np.bool_]:
        """Which places I/Os or bios wait at; the places are sorted by device and sector."""
        waiting = {key[:2] for key in (*self._queued, *self._open)}
        found = np.zeros(len(sectors), bool)
        if waiting:
            places = np.array(sorted(waiting), np.int64)
            for device in np.unique(places[:, 0]).tolist():
                own = slice(*np.searchsorted(devices, (device, device + 1)).tolist())
                found[own] = np.isin(sectors[own], places[places[:, 0] == device, 1])
        return found

    def _plain_ios(self, found: npt.NDArray[np.void]) -> Ios | None:
        """I/Os of places where nothing but whole I/Os happened."""
        done = np.flatnonzero(found["action"] == COMPLETED)
        issued = found[done - 1]
        issued_ns = issued["t_ns"]
        device_ns = np.maximum(found["t_ns"][done] - issued_ns, 0)
        queue_ns = np.full(len(done), UNKNOWN_NS)
        if self.layer == ISSUED:
            # What stands before an issue is its bio or another I/O's end; before the first there is nothing.
            asked = found[np.maximum(done - 2, 0)]
            is_own = (done >= 2) & (asked["action"] == QUEUED) & (asked["t_ns"] <= issued_ns)
            queue_ns = np.where(is_own, issued_ns - asked["t_ns"], UNKNOWN_NS)
        t_ns = issued_ns - np.maximum(queue_ns, 0)
        good = (t_ns >= 0) & (t_ns < T_NS_END) & (issued["sector"] < SECTORS_END) & (issued["size"] < SIZE_END)
        good &= issued["sector"] >= 0
        if not good.any():
            return None
        one = issued[good]
        devices, numbers = np.unique(one["device"], return_inverse=True)
        names = TextColumn(numbers.astype(np.int32), [device_name(number) for number in devices.tolist()])
        processes = TextColumn(one["process"].astype(np.int32), list(self._processes))
        return Ios(
            t_ns[good], queue_ns[good], device_ns[good], one["sector"] * SECTOR, one["size"], one["flags"], names,
            processes,
        )  # fmt: skip

    def _begin(self, device: int, sector: int, one: _Open) -> None:
        waiting = self._open.setdefault((device, sector, one[2] == 0), [])
        if self.layer == ISSUED and waiting and waiting[-1][2:4] == one[2:4]:
            # A driver that has no room hands an I/O back, which is issued again: the time until then was in the queue.
            before_ns = min(waiting[-1][:2]) if waiting[-1][0] != UNKNOWN_NS else waiting[-1][1]
            waiting[-1] = (before_ns, *one[1:4], waiting[-1][4] or one[4])
            return
        waiting.append(one)
        self._open_ios += 1
        if self._open_ios > OPEN_MAX:
            for key in list(self._open)[: len(self._open) // 2 + 1]:
                given_up = self._open.pop(key)
                self._open_ios -= len(given_up)
                self.unfinished += len(given_up)
                for other in given_up:
                    self._add(key[0], key[1], other, None)

    def _requeue(self, device: int, sector: int, size: int) -> None:
        """Let an I/O that was not accepted be issued again; its time in the queue goes on."""
        waiting = self._open.get((device, sector, size == 0))
        if waiting and self.layer == ISSUED:
            asked_ns, issued_ns, *_ = waiting.pop()
            self._queued.setdefault((device, sector), issued_ns if asked_ns == UNKNOWN_NS else asked_ns)
            self._open_ios -= 1

    def _complete(self, device: int, sector: int, size: int, t_ns: int) -> None:
        key = (device, sector, size == 0)
        waiting = self._open.get(key) or self._open.get(key := (device, sector, size != 0))
        if not waiting:
            # A write with a flush completes a second time, with nothing.
            self.unmatched += size > 0
            return
        one = waiting.pop(0)
        if not waiting:
            del self._open[key]
        self._open_ios -= 1
        if 0 < size < one[2]:
            # The rest of a request completes at the sector behind.
            rest = (one[0], one[1], one[2] - size, one[3], one[4])
            one = (one[0], one[1], size, one[3], one[4])
            self._begin(device, sector + size // SECTOR, rest)
        self._add(device, sector, one, t_ns)

    def _add(self, device: int, sector: int, one: _Open, done_ns: int | None) -> None:
        asked_ns, issued_ns, size, flags, process = one
        device_ns = UNKNOWN_NS if done_ns is None else max(done_ns - issued_ns, 0)
        queue_ns = issued_ns - asked_ns if asked_ns != UNKNOWN_NS and issued_ns >= asked_ns else UNKNOWN_NS
        asked_ns = issued_ns if queue_ns == UNKNOWN_NS else asked_ns
        if 0 <= asked_ns < T_NS_END and 0 <= sector < SECTORS_END and size < SIZE_END:
            self._done.append((asked_ns, queue_ns, device_ns, sector * SECTOR, size, flags, device, process))

    def _given(self) -> Iterator[Ios]:
        plain, self._plain = self._plain, []
        for found in plain:
            ios = self._plain_ios(found)
            if ios is not None:
                yield ios
        if not self._done:
            return
        t_ns, queue_ns, device_ns, place, size, flags, device, process = zip(*self._done, strict=True)
        self._done = []
        names = {number: device_name(number) for number in set(device)}
        yield ios_of(t_ns=np.array(t_ns), queue_ns=np.array(queue_ns), device_ns=np.array(device_ns),
                     place_bytes=np.array(place), size_bytes=np.array(size), flags=np.array(flags, np.uint16),
                     device=[names[one] for one in device],
                     process=[self._processes[one] for one in process])  # fmt: skip


def flags_of(letters: str) -> int:
    """Flags of the letters that the kernel calls `rwbs`; an F before the direction flushes, one behind it is FUA.

    Examples
    --------
    >>> flags_of("FWFSM") == IoFlag.WRITE | IoFlag.FLUSH | IoFlag.FUA | IoFlag.SYNC | IoFlag.METADATA
    True
    >>> flags_of("FF") == IoFlag.FLUSH | IoFlag.FUA
    True
    """
    flags, is_behind = 0, False
    for letter in letters:
        if letter == "F":
            flags |= IoFlag.FUA if is_behind else IoFlag.FLUSH
            is_behind = True
        else:
            flags |= _LETTERS.get(letter, 0)
            is_behind = True
    return flags


_LETTERS = {"R": IoFlag.READ, "W": IoFlag.WRITE, "D": IoFlag.DISCARD, "S": IoFlag.SYNC, "M": IoFlag.METADATA,
            "A": IoFlag.AHEAD}  # fmt: skip
