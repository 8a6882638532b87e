"""Binary logs of Perfmon (BLG, Windows Vista and later), read as the text that `relog` would make of them.

A BLG is an event trace: buffers that begin with a header, filled with events. PDH writes one event with the counters'
paths and types and one a sample with their raw values, of which the shown value is worked out by the counter's type.

Sources: Microsoft, evntrace.h (TRACE_LOGFILE_HEADER, EVENT_TRACE_HEADER), pdh.h (PDH_RAW_COUNTER: local time, two raw
values), winperf.h and "Performance Counters: Counter Types" (formulas). How PDH lays out its own events is written
nowhere; it was read off a real log of Windows 8 (601 samples, BasicPerfCounters.blg of the public project Tx), whose
values come out as Performance Monitor showed them to 14 digits. What is laid out in another way is refused.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

BUFFER_HEADER_BYTES = 0x48
BUFFER_BYTES_MAX = 16 * 2**20
_EVENT_HEADER_BYTES = 0x48
_SYSTEM_HEADERS = (1, 2)
_FULL_HEADER = 0x14
_COUNTERS, _SAMPLE = 0x20, 0x22
_PDH = bytes.fromhex("b33b3f933e940d499ced3cbb14c14479")
"""GUID of PDH's events."""
_SINGLE, _INSTANCES = 1, 2
_ITEM = np.dtype([("name", "<u4"), ("bases", "<u4"), ("first", "<i8"), ("second", "<i8")])
_NONE = 0xFFFFFFFF
_VALID = (0, 1)
"""PDH_CSTATUS_VALID_DATA and PDH_CSTATUS_NEW_DATA."""
COUNTERS_MAX = 2**15
"""Counters and instances of a log that are taken."""
_NAMES_MAX = 4096
"""Different lists of instances that are remembered."""
_SINCE_1601 = datetime(1601, 1, 1, tzinfo=UTC)


class NotReadable(ValueError):
    """The log is laid out in a way that is not known here."""


Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Raw(NamedTuple):
    """Raw values of a counter's instances at a time."""

    instances: tuple[str, ...]
    first: Numbers
    second: Numbers

    def since(self, old: Raw) -> tuple[Floats, Floats]:
        """Differences to the values before, NaN for instances that were not there; exact, as times have 18 digits."""
        if old.instances is self.instances:
            return (self.first - old.first).astype(np.float64), (self.second - old.second).astype(np.float64)
        place = {name: at for at, name in enumerate(old.instances)}
        found = np.array([place.get(name, -1) for name in self.instances], np.int64)
        return (
            np.where(found < 0, np.nan, self.first - old.first[found]),
            np.where(found < 0, np.nan, self.second - old.second[found]),
        )


Formula = Callable[[Floats, Floats, int], Floats]
"""Makes a value of three numbers: what was done, what that is related to, and the ticks a second."""


def _rate(scale: float, *, by_frequency: bool = False, rest: bool = False) -> Formula:
    def value(done: Floats, passed: Floats, frequency: int) -> Floats:
        share = np.where(passed > 0, done / passed * (frequency if by_frequency else 1), np.nan)
        return scale * (np.maximum(1 - share, 0) if rest else share)

    return value


def _average(scale: float = 1, *, timed: bool = False) -> Formula:
    def value(done: Floats, count: Floats, frequency: int) -> Floats:
        return scale * np.where(count == 0, 0.0, done / count / (frequency if timed else 1))

    return value


def _first(done: Floats, _second: Floats, _frequency: int) -> Floats:
    return done


_OF_TWO: Mapping[int, Formula] = {
    **dict.fromkeys((0x10410400, 0x10410500, 0x00410400), _rate(1, by_frequency=True)),
    **dict.fromkeys((0x20410500, 0x20510500, 0x20610500, 0x20470500, 0x20570500, 0x20670500), _rate(100)),
    **dict.fromkeys((0x21410500, 0x21510500), _rate(100, rest=True)),
    **dict.fromkeys((0x00450400, 0x00450500, 0x00550500, 0x00650500), _rate(1)),
    0x30020400: _average(timed=True),
    0x40020500: _average(),
    0x20C20400: _average(100),
    **dict.fromkeys((0x00400400, 0x00400500), _first),
}
"""Types (winperf.h) whose value is that between two samples: rates, shares of time, queues, means, differences."""

_OF_ONE: Mapping[int, Formula] = {
    **dict.fromkeys((0x00010000, 0x00010100, 0x00000000, 0x00000100), _first),
    **dict.fromkeys((0x20020400, 0x20020500), _average(100)),
    0x30240500: lambda begun, now, frequency: (now - begun) / (frequency or np.nan),
}
"""Types whose value one sample tells: raw counts, fractions, time since a start."""


@dataclass(frozen=True)
class CounterOfLog:
    """A counter as the log declares it: its path in parts, its type and the ticks a second of its time."""

    machine: str
    object: str
    instance: str
    counter: str
    type: int
    frequency: int

    def path(self, instance: str) -> str:
        """The path of an instance, as Windows writes it."""
        inside = f"({instance})" if instance else ""
        return f"{self.machine}\\{self.object}{inside}\\{self.counter}"


class LogSample(NamedTuple):
    """Raw values of each counter at a local time (100 ns since 1601); None where it has no valid one."""

    t: int
    values: list[Raw | None]


def is_blg(head: bytes) -> bool:
    """Whether a file begins as an event trace: a buffer's size that is a power of two, and the trace's own event."""
    if len(head) < 0x80:
        return False
    size, marker, inside = (int.from_bytes(head[at : at + 4], "little") for at in (0, BUFFER_HEADER_BYTES, 0x68))
    return 0x400 <= size <= BUFFER_BYTES_MAX and size & (size - 1) == 0 and marker >> 24 == 0xC0 and inside == size


class BinaryLog:
    """A binary log of counters.

    Raises
    ------
    NotReadable
        Something in it is laid out in another way than is known here.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        file.seek(0)
        head = file.read(0x400)
        if not is_blg(head):
            raise NotReadable("has no header of an event trace")
        (self._size,) = struct.unpack_from("<I", head)
        # TIME_ZONE_INFORMATION of the trace's header stands after two pointers of the writing Windows.
        zone = 0xB0 if head[0x94] == 8 else 0xA8
        bias, *extras = (struct.unpack_from("<i", head, zone + at)[0] for at in (0, 84, 168))
        self._biases: list[int] = [bias + extra for extra in extras if abs(bias + extra) < 1440]
        self._lists: dict[bytes, tuple[str, ...]] = {}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.counters = self._declared()

    def fileno(self) -> int:
        """Descriptor of the file."""
        return self._file.fileno()

    @cached_property
    def instances(self) -> list[list[str]]:
        """Instances of each counter, by a pass over all samples."""
        found: list[dict[str, None]] = [{} for _ in self.counters]
        last: list[tuple[str, ...]] = [()] * len(self.counters)
        for sample in self.samples():
            for number, raw in enumerate(sample.values):
                if raw is not None and raw.instances is not last[number]:
                    found[number].update(dict.fromkeys(raw.instances))
                    last[number] = raw.instances
            if sum(map(len, found)) > COUNTERS_MAX:
                raise NotReadable(f"has more than {COUNTERS_MAX:,} counters and instances")
        return [[*names] for names in found]

    def bias_min(self) -> int | None:
        """Minutes to add to local time to get UTC: those of the zone that the buffers' own times, in UTC, confirm."""
        for buffer, written in self._buffers():
            times = [struct.unpack_from("<q", body, 0x10)[0] for kind, body in _events(buffer) if kind == _SAMPLE]
            if times and self._biases:
                seen = (written - times[-1]) / (60 * 10**7)
                _, bias = min((abs(bias - seen), bias) for bias in self._biases)
                return bias
        return None

    def samples(self) -> Iterator[LogSample]:
        """Samples in the order in which they were written."""
        for buffer, _ in self._buffers():
            for kind, body in _events(buffer):
                if kind == _SAMPLE:
                    yield self._sample(body[_EVENT_HEADER_BYTES:])

    def _buffers(self) -> Iterator[tuple[bytes, int]]:
        """Buffers in the order of their numbers, which a circular log writes over; and when each was written, UTC."""
        numbers: list[tuple[int, int]] = []
        at = 0
        while True:
            self._file.seek(at)
            head = self._file.read(BUFFER_HEADER_BYTES)
            if len(head) < BUFFER_HEADER_BYTES:
                break
            size, saved = struct.unpack_from("<II", head)
            if size == self._size and BUFFER_HEADER_BYTES < saved <= size:
                numbers.append((struct.unpack_from("<q", head, 0x18)[0], at))
            at += self._size
        for _, place in sorted(numbers):
            self._file.seek(place)
            buffer = self._file.read(self._size)
            (saved,) = struct.unpack_from("<I", buffer, 4)
            yield buffer[:saved], struct.unpack_from("<q", buffer, 0x10)[0]

    def _declared(self) -> list[CounterOfLog]:
        found: list[CounterOfLog] = []
        for buffer, _ in self._buffers():
            for kind, body in _events(buffer):
                if kind == _COUNTERS:
                    found.extend(_counters(body[_EVENT_HEADER_BYTES + 8 :]))
                if len(found) > COUNTERS_MAX:
                    raise NotReadable(f"has more than {COUNTERS_MAX:,} counters")
        if not found:
            raise NotReadable("declares no counter")
        return found

    def _sample(self, body: bytes) -> LogSample:
        values: list[Raw | None] = []
        t, place = 0, 8
        if body[:3] != b"BL\x03":
            raise NotReadable("has samples of another form")
        while place + 8 <= len(body) and body[place : place + 3] == b"BL\x03":
            length = int.from_bytes(body[place + 4 : place + 8], "little")
            block = body[place : place + length]
            if len(values) >= len(self.counters) or length < 0x28 or len(block) < length:
                raise NotReadable("has samples with other counters than it declares")
            if block[3] == _SINGLE:
                status, stamp, first, second = struct.unpack_from("<Iq4xqq", block, 8)
                names = self._named((self.counters[len(values)].instance,))
                valid = Raw(names, np.array([first]), np.array([second])) if status in _VALID else None
            elif block[3] == _INSTANCES:
                stamp, valid = self._instances(block[8:])
            else:
                raise NotReadable("has values of another form")
            t = t or stamp
            values.append(valid)
            place += length
        if len(values) != len(self.counters):
            raise NotReadable("has samples with other counters than it declares")
        return LogSample(t, values)

    def _instances(self, block: bytes) -> tuple[int, Raw | None]:
        """Values of a counter's instances, and their time."""
        length, count, _, status, stamp = struct.unpack_from("<IIIIq", block)
        if not 24 + count * _ITEM.itemsize <= length <= len(block):
            raise NotReadable("has instances of another form")
        if status not in _VALID:
            return stamp, None
        items: Any = np.frombuffer(block, _ITEM, count, 24)
        key = items["name"].tobytes() + block[24 + count * _ITEM.itemsize : length]
        names = self._lists.get(key)
        if names is None:
            names = self._named(_unique([_text(block[:length], int(at)) for at in items["name"]]))
            if len(self._lists) < _NAMES_MAX:
                self._lists[key] = names
        return stamp, Raw(names, items["first"], items["second"])

    def _named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The one object for equal lists of instances."""
        return self._same.setdefault(names, names) if len(self._same) < _NAMES_MAX else self._same.get(names, names)


def _events(buffer: bytes) -> Iterator[tuple[int, bytes]]:
    """PDH's events in a buffer: what each is, and the whole of it; those of others are passed over."""
    at = BUFFER_HEADER_BYTES
    while at + 8 <= len(buffer):
        size, form, marker, second, kind = (*struct.unpack_from("<HBBH", buffer, at), buffer[at + 4])
        size = second if form in _SYSTEM_HEADERS else size
        if marker != 0xC0 or size < 8:
            raise NotReadable("has events of another form")
        event = buffer[at : at + size]
        if form == _FULL_HEADER and size >= _EVENT_HEADER_BYTES and event[0x18:0x28] == _PDH:
            if kind not in (_COUNTERS, _SAMPLE):
                raise NotReadable(f"has events of kind {kind}, which is not known here")
            if len(event) == size:
                yield kind, event
        at += size + 7 & ~7


def _counters(body: bytes) -> Iterator[CounterOfLog]:
    """Counters that an event declares: records of fixed fields, each followed by its strings."""
    at = 0
    while at + 0x34 <= len(body):
        length, _, machine, kind, frequency = struct.unpack_from("<IIIIq", body, at)
        if not 0x34 < length <= len(body) - at:
            raise NotReadable("declares counters in another form")
        object_at, instance_at, parent_at, index, counter_at = struct.unpack_from("<IIIII", body, at + 0x20)
        strings = body[at + 0x34 : at + length]
        instance = "" if instance_at == _NONE else _text(strings, instance_at)
        if parent_at != _NONE:
            instance = f"{_text(strings, parent_at)}/{instance}"
        yield CounterOfLog(
            machine=_text(strings, machine),
            object=_text(strings, object_at),
            instance=f"{instance}#{index}" if index not in (0, _NONE) else instance,
            counter=_text(strings, counter_at),
            type=kind,
            frequency=frequency,
        )
        at += length


def _text(strings: bytes, at: int) -> str:
    """UTF-16 up to a null."""
    if at >= len(strings):
        raise NotReadable("has a name beyond its record")
    return strings[at : at + 4096].decode("utf-16-le", errors="replace").partition("\0")[0]


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names with `#1`, `#2` where one stands there again, as Windows shows them."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        times = seen.get(name, 0)
        seen[name] = times + 1
        made.append(f"{name}#{times}" if times else name)
    return tuple(made)


class TextOfLog(io.RawIOBase):
    """The log as text of the form PDH-CSV, made while it is read."""

    def __init__(self, log: BinaryLog) -> None:
        self._log = log
        self._text = self._lines()
        self._rest = b""
        self._made = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """Descriptor of the log."""
        return self._log.fileno()

    def tell(self) -> int:
        """Bytes of text so far."""
        return self._made

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with text."""
        while not self._rest and (line := next(self._text, "")):
            self._rest = line.encode("utf-8", errors="replace")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        self._made += len(taken)
        return len(taken)

    def _lines(self) -> Iterator[str]:
        counters, instances = self._log.counters, self._log.instances
        bias = self._log.bias_min()
        zone = f" ()({bias})" if bias is not None else ""
        paths = [_quoted(one.path(name)) for one, names in zip(counters, instances, strict=True) for name in names]
        yield ",".join([f'"(PDH-CSV 4.0){zone}"', *paths]) + "\n"
        before: list[Raw | None] = [None] * len(counters)
        for sample in self._log.samples():
            cells = []
            for counter, names, old, new in zip(counters, instances, before, sample.values, strict=True):
                values = dict(zip(new.instances, _values(counter, old, new).tolist(), strict=True)) if new else {}
                cells += [_cell(values.get(name)) for name in names]
            yield ",".join([f'"{_shown(sample.t)}"', *cells]) + "\n"
            before = sample.values


def _values(counter: CounterOfLog, old: Raw | None, new: Raw) -> Floats:
    """Values as relog works them out; NaN where that needs a sample before, and for types of text."""
    formula, first, second = _OF_ONE.get(counter.type), new.first.astype(float), new.second.astype(float)
    if formula is None and old is not None and old.instances:
        formula = _OF_TWO.get(counter.type)
        first, second = new.since(old)
    if formula is None:
        return np.full(len(new.instances), np.nan)
    with np.errstate(all="ignore"):
        return formula(first, second, counter.frequency)


def _cell(value: float | None) -> str:
    return repr(value) if value is not None and 0 <= value < math.inf else ""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""').replace("\n", " ").replace("\r", " ") + '"'


def _shown(t: int) -> str:
    """A local time as PDH writes it."""
    try:
        at = _SINCE_1601 + timedelta(microseconds=t // 10)
    except OverflowError:
        raise NotReadable("has a sample beyond all times") from None
    return f"{at:%m/%d/%Y %H:%M:%S}.{at.microsecond // 1000:03d}"
