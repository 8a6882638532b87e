"""Binary logs of Perfmon, laid out as a real one of Windows 8: a buffer with the header, buffers of events."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

BUFFER = 0x10000
PDH = bytes.fromhex("b33b3f933e940d499ced3cbb14c14479")
HOUR = 36_000_000_000


class Declared(NamedTuple):
    """A counter of a log; several instances where `instance` is `*`."""

    object: str
    instance: str
    counter: str
    type: int
    frequency: int = 10_000_000


Values = Sequence[tuple[int, int] | Mapping[str, tuple[int, int]] | None]
"""Raw values of each counter at a time; by instance where it has several, None where it had no valid one."""


def binary_log(
    counters: Sequence[Declared],
    samples: Sequence[tuple[int, Values]],
    *,
    bias_min: int = 480,
    buffer_bytes: int = BUFFER,
) -> bytes:
    """A log whose samples have local times (100 ns since 1601), made `bias_min` minutes west of UTC."""
    events = [_event(0x20, bytes.fromhex("ff06000008000200") + b"".join(map(_record, counters)))]
    events += [_event(0x22, _sample(t, values)) for t, values in samples]
    filled = [b""]
    for event in events:
        if len(filled[-1]) + len(event) > buffer_bytes - 0x48:
            filled.append(b"")
        filled[-1] += event
    written = samples[-1][0] + bias_min * HOUR // 60
    buffers = [_header(bias_min, buffer_bytes), *filled]
    return b"".join(_buffer(held, number, written, buffer_bytes) for number, held in enumerate(buffers))


def _buffer(events: bytes, number: int, written: int, size: int) -> bytes:
    head = struct.pack("<IIIIqq", size, 0x48 + len(events), 0, 0, written, number).ljust(0x48, b"\0")
    return (head + events).ljust(size, b"\xff")


def _header(bias_min: int, size: int) -> bytes:
    trace = bytearray(0x1E8)
    struct.pack_into("<IHHIIQI", trace, 0, 0xC0020000, 0x1E8, 0, 0, 0, 0, 0)
    struct.pack_into("<I", trace, 0x20, size)
    struct.pack_into("<I", trace, 0x4C, 8)
    struct.pack_into("<i", trace, 0x68, bias_min)
    struct.pack_into("<i", trace, 0x68 + 168, -60)
    return bytes(trace)


def _event(kind: int, body: bytes) -> bytes:
    head = struct.pack("<HBBB3xIIq", 0x48 + len(body), 0x14, 0xC0, kind, 1, 2, 0) + PDH
    event = head.ljust(0x48, b"\0") + body
    return event.ljust(len(event) + 7 & ~7, b"\0")


def _record(one: Declared) -> bytes:
    strings, places = b"", []
    for text in ("\\\\SQL1", one.object, one.instance, one.counter):
        places.append(len(strings) if text else 0xFFFFFFFF)
        strings += text.encode("utf-16-le") + b"\0\0" if text else b""
    machine, its_object, instance, counter = places
    strings = strings.ljust(len(strings) + 7 & ~7, b"\0")
    fields = struct.pack("<IIIqq", one.instance == "*", machine, one.type, one.frequency, 0)
    fields += struct.pack("<IIIII", its_object, instance, 0xFFFFFFFF, 0, counter)
    return struct.pack("<I", 4 + len(fields) + len(strings)) + fields + strings


def _sample(t: int, values: Values) -> bytes:
    blocks = b""
    for one in values:
        if isinstance(one, Mapping):
            strings, items = b"", b""
            for name, (first, second) in one.items():
                items += struct.pack("<IIqq", 24 + 24 * len(one) + len(strings), 0, first, second)
                strings += name.encode("utf-16-le") + b"\0\0"
            strings = strings.ljust(len(strings) + 7 & ~7, b"\0")
            held = struct.pack("<IIIIq", 24 + len(items) + len(strings), len(one), 0, 0, t) + items + strings
            blocks += b"BL\x03\x02" + struct.pack("<I", 8 + len(held)) + held
        else:
            first, second = one or (0, 0)
            status = 0 if one else 0x800007D1
            blocks += b"BL\x03\x01" + struct.pack("<IIqIqqII", 0x30, status, t, 0, first, second, 1, 0)
    return b"BL\x03\x00" + struct.pack("<I", 8 + len(blocks)) + blocks
