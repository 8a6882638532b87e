"""Traces of blktrace: its binary files, one a processor and of either byte order, and what blkparse prints of them.

Layout and numbers: include/uapi/linux/blktrace_api.h; text: blkparse(1), default format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.traces.importers.form import WINDOW_IOS, TraceForm
from assay.traces.importers.joining import EVENT, SECTORS_END, BlockEvents, Joiner, flags_of
from assay.traces.importers.ordering import sorted_within
from assay.traces.importers.sources import Source
from assay.traces.ios import IoFlag, Ios, joined_ios

MAGIC = 0x65617400
VERSION = 7
_FIELDS = [("magic", "u4"), ("sequence", "u4"), ("time", "u8"), ("sector", "u8"), ("bytes", "u4"), ("action", "u4"),
           ("pid", "u4"), ("device", "u4"), ("cpu", "u4"), ("error", "u2"), ("pdu_bytes", "u2")]  # fmt: skip
RECORD_BYTES, PDU_BYTES_AT, NAME_BYTES = 48, 46, 16

_NOTIFY, _DRIVER, _COMMAND = 1 << 26, 1 << 30, 1 << 25
"""Categories (shifted by BLK_TC_SHIFT) of records that are no I/O: notices, data of drivers, SCSI commands."""
_IS_PROCESS, _IS_TIME = 0, 1
_ACTIONS = np.zeros(256, np.uint8)
for _number, _letter in {1: "Q", 2: "M", 3: "M", 6: "R", 7: "D", 8: "C"}.items():
    _ACTIONS[_number] = ord(_letter)
_CATEGORIES = {16: IoFlag.READ, 17: IoFlag.WRITE, 18: IoFlag.FLUSH, 19: IoFlag.SYNC, 27: IoFlag.AHEAD,
               28: IoFlag.METADATA, 29: IoFlag.DISCARD, 31: IoFlag.FUA}  # fmt: skip
"""Bits of an action, and flags."""
PROCESSES_MAX = 2**16


class _Events(TraceForm):
    """A form of events, which are joined to I/Os."""

    times: Literal["split", "whole", "none"] = "split"
    resolution_ns = 100

    def __init__(self) -> None:
        self.begin_utc_ns: int | None = None
        self._processes: dict[str, int] = {"": 0}

    def ios(self, sources: Sequence[Source]) -> Iterator[Ios]:
        """Yield I/Os by time."""
        names: list[str] = []
        self._processes = {"": 0}
        joiner = Joiner(names)
        events = [self._named(self.events(source), names) for source in sources]
        found = joiner.ios(events, sources[0])
        first = next(found, None)
        if joiner.layer != ord("D"):
            self.times, self.layer = "whole", "queued"
        if joiner.layer == ord("C"):
            self.times, self.layer = "none", "issued"
            sources[0].note("the trace holds completions alone: I/Os stand at the time at which they completed")
        if first is not None:
            yield from sorted_within(_before(first, found), joined_ios, WINDOW_IOS // 2)

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield the I/Os of one file."""
        yield from self.ios([source])

    def events(self, source: Source) -> Iterator[BlockEvents]:
        """Yield the events of a file."""
        raise NotImplementedError

    def _named(self, events: Iterator[BlockEvents], names: list[str]) -> Iterator[BlockEvents]:
        """Events, and the names of their processes in a list that is filled as they come."""
        for block in events:
            names[:] = list(self._processes)
            yield block

    def process(self, name: str) -> int:
        """Give the number of a process's name."""
        if len(self._processes) >= PROCESSES_MAX:
            return self._processes.get(name, 0)
        return self._processes.setdefault(name, len(self._processes))


def _before(first: Ios, rest: Iterator[Ios]) -> Iterator[Ios]:
    yield first
    yield from rest


class BlktraceBinary(_Events):
    """Files of blktrace."""

    name, title = "blktrace", "blktrace, binary"

    def recognises(self, head: bytes) -> bool:
        """The magic number of the first record."""
        return len(head) >= 4 and _order(head) is not None

    def origin_utc_ns(self, first_ns: int) -> int | None:
        """What a notice of the time said."""
        return None if self.begin_utc_ns is None else self.begin_utc_ns + first_ns

    def events(self, source: Source) -> Iterator[BlockEvents]:
        """Yield events up to the end, or to where the file is damaged."""
        order = _order(source.head)
        if order is None:
            raise UsageError(f"{printable(source.path)}: does not begin as a file of blktrace does")
        version = int.from_bytes(source.head[:4], "little" if order == "<" else "big") & 0xFF
        if version != VERSION:
            raise UsageError(f"{printable(source.path)}: is of version {version} of blktrace's format; version "
                             f"{VERSION} is read")  # fmt: skip
        record = np.dtype([(name, order + kind) for name, kind in _FIELDS])
        names: dict[int, int] = {}
        rest = b""
        for block in source.blocks():
            data = rest + block
            places, at = _places(data, order)
            rest = data[at:]
            if not len(places):
                continue
            bytes_of = np.frombuffer(data, np.uint8)
            found = np.ascontiguousarray(bytes_of[places[:, None] + np.arange(RECORD_BYTES)]).view(record)[:, 0]
            source.lines += len(found)
            good = found["magic"] == (MAGIC | VERSION)
            damaged_at = len(found) if good.all() else int(np.argmin(good))
            found, places = found[:damaged_at], places[:damaged_at]
            self._notes(found, places, data, order, names)
            yield self._events_of(found, names)
            if not good.all():
                source.note(f"{printable(source.path.name)}: is damaged after {source.lines - len(good) + damaged_at:,}"
                            " records; what comes before is taken")  # fmt: skip
                return
        if rest:
            is_whole = len(rest) < 4 or _order(rest) == order
            what = "ends within a record" if is_whole else f"is damaged after {source.lines:,} records"
            source.note(f"{printable(source.path.name)}: {what}; what comes before is taken")

    def _notes(self, found: npt.NDArray[np.void], places: npt.NDArray[np.int64], data: bytes, order: str,
               names: dict[int, int]) -> None:  # fmt: skip
        """Take names of processes and the time of day from notices."""
        for number in np.flatnonzero(found["action"] & _NOTIFY).tolist():
            kind, begin = int(found["action"][number]) & 0xFF, int(places[number]) + RECORD_BYTES
            payload = data[begin : begin + int(found["pdu_bytes"][number])]
            if kind == _IS_PROCESS and len(names) < PROCESSES_MAX:
                name = payload[:NAME_BYTES].split(b"\0")[0].decode("utf-8", "replace")
                names[int(found["pid"][number])] = self.process(name)
            elif kind == _IS_TIME and len(payload) >= 8 and self.begin_utc_ns is None:
                seconds, ns = np.frombuffer(payload[:8], f"{order}u4").tolist()
                self.begin_utc_ns = max(seconds * 10**9 + ns - min(int(found["time"][number]), 2**62), 0)

    def _events_of(self, found: npt.NDArray[np.void], names: dict[int, int]) -> BlockEvents:
        actions = _ACTIONS[found["action"] & 0xFF]
        wanted = (actions != 0) & ((found["action"] & (_NOTIFY | _DRIVER | _COMMAND)) == 0)
        # A flush without data is issued at no sector.
        sectors = np.where(found["sector"] >= SECTORS_END, 0, found["sector"])
        wanted &= (found["time"] < 2**62) & (found["sector"] < SECTORS_END) | (found["bytes"] == 0)
        found, actions, sectors = found[wanted], actions[wanted], sectors[wanted]
        table = np.empty(len(found), EVENT)
        table["t_ns"], table["sector"], table["size"] = found["time"] & (2**62 - 1), sectors, found["bytes"]
        table["device"], table["action"] = found["device"], actions
        pids, numbers = np.unique(found["pid"], return_inverse=True)
        table["process"] = np.array([names.get(pid, 0) for pid in pids.tolist()], np.int32)[numbers]
        flags = np.zeros(len(found), np.uint16)
        for bit, flag in _CATEGORIES.items():
            flags |= ((found["action"] >> np.uint32(bit)) & 1).astype(np.uint16) * np.uint16(flag)
        # A discard has the bit of a write as well, and a flush without data that of a read.
        is_flush = (flags & int(IoFlag.FLUSH) != 0) & (found["bytes"] == 0)
        flags[is_flush] &= ~np.uint16(IoFlag.READ | IoFlag.WRITE)
        flags[flags & int(IoFlag.DISCARD) != 0] &= ~np.uint16(IoFlag.WRITE)
        table["flags"] = flags
        return BlockEvents(table)


def _order(head: bytes) -> str | None:
    """The byte order of a file by the magic number of its first record."""
    for order, word in (("<", "little"), (">", "big")):
        if int.from_bytes(head[:4], "little" if word == "little" else "big") & 0xFFFFFF00 == MAGIC:
            return order
    return None


def _places(data: bytes, order: str) -> tuple[npt.NDArray[np.int64], int]:
    """Where each whole record begins, and where the first begins that is not whole.

    Records lie one behind the other. Where the magic number stands is found for all at once; a place is a record's if
    the one before it ends there, since data behind a record may hold the number, too. The last place given may be that
    of a record without it, which is damaged.
    """
    bytes_of = np.frombuffer(data, np.uint8)
    magic = (MAGIC | VERSION).to_bytes(4, "little" if order == "<" else "big")
    end = len(data) - RECORD_BYTES + 1
    if end <= 0:
        return np.empty(0, np.int64), 0
    is_magic = np.ones(end, bool)
    for number, one in enumerate(magic):
        is_magic &= bytes_of[number : number + end] == one
    marked = np.flatnonzero(is_magic)
    low, high = (PDU_BYTES_AT, PDU_BYTES_AT + 1) if order == "<" else (PDU_BYTES_AT + 1, PDU_BYTES_AT)
    behind = marked + RECORD_BYTES + bytes_of[marked + low] + 256 * bytes_of[marked + high].astype(np.int64)
    # The last one of each run of records that lie one behind the other.
    stops = np.flatnonzero(np.append(behind[:-1] != marked[1:], True)) if len(marked) else np.empty(0, np.int64)
    parts, at, number = [], 0, 0
    while number < len(marked) and marked[number] == at:
        stop = int(stops[np.searchsorted(stops, number)])
        parts.append(marked[number : stop + 1])
        at = int(behind[stop])
        number = int(np.searchsorted(marked, at))
    places = np.concatenate([np.empty(0, np.int64), *parts])
    if at > len(data):
        return places[:-1], int(places[-1])
    return (places, at) if at >= end else (np.append(places, at), at + RECORD_BYTES)


class BlkparseText(_Events):
    """Text of blkparse in its default format."""

    name, title = "blkparse", "blkparse text"
    line: ClassVar[re.Pattern[str]] = re.compile(
        r"\s*(\d{1,4}),(\d{1,7})\s+\d+\s+\d+\s+(\d{1,9})\.(\d{9})\s+-?\d+\s+([A-Z])\s+([A-Z]+)(?:\s+(\d{1,16})\s+\+\s+"
        r"(\d{1,9})(?:\s+(?:\[(.*)\]|<-.*|.*))?)?\s*$"
    )

    def recognises(self, head: bytes) -> bool:
        """Whether one of the first lines is an event."""
        lines = head.decode("utf-8", "replace").splitlines()[:100]
        return any(self.line.match(one) is not None for one in lines)

    def events(self, source: Source) -> Iterator[BlockEvents]:
        """Yield events; the summary behind them and lines of other actions are none."""
        flags_by_letters: dict[str, int] = {}
        for lines in source.text_blocks():
            rows = []
            for line in lines:
                found = self.line.match(line)
                if found is None:
                    source.lines -= 1
                    continue
                major, minor, seconds, ns, action, letters, sector, sectors, name = found.groups()
                if action == "F":
                    action = "M"
                if action not in "QMDRC" or (sector is None and "F" not in letters):
                    continue
                flags = flags_by_letters.setdefault(letters, flags_of(letters))
                process = 0 if action == "C" else self.process(name or "")
                rows.append((int(seconds) * 10**9 + int(ns), int(sector or 0), int(sectors or 0) * 512,
                             int(major) << 20 | int(minor), process, flags, ord(action)))  # fmt: skip
            if rows:
                yield BlockEvents(np.array(rows, EVENT))
