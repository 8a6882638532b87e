"""I/Os of Windows: the text of `xperf -i x.etl -o x.txt`, and tables of its disk I/O that WPA and xperf export.

The archives of IOTTA (158 to 161: production servers, 149: TPC-E and TPC-C) are texts of xperf. A row stands where its
I/O completed; times are microseconds where a table does not name their unit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.traces.importers.form import READ, WRITE, Fields, TraceForm, integers, ios_of, taken
from assay.traces.importers.sources import Source
from assay.traces.ios import IoFlag, Ios

_EVENTS = {"DiskRead": READ, "DiskWrite": WRITE, "DiskFlush": int(IoFlag.FLUSH)}
_TYPES = {"read": READ, "write": WRITE, "flush": int(IoFlag.FLUSH)}
_PID = re.compile(r"\s*\(\s*-?\d+\)\s*$")
_UNIT = re.compile(r"\s*\((s|ms|µs|us|ns|b|\ufffds)\)$", re.IGNORECASE)
_NS = {"s": 1e9, "ms": 1e6, "ns": 1.0}
_COLUMNS = {
    "type": ("io type", "type"), "start": ("init time", "start time"), "end": ("complete time", "end time"),
    "whole": ("io time", "elapsed time"), "service": ("disk service time", "disk svc time", "disk svc t"),
    "size": ("size", "io size"), "place": ("min offset", "start offset", "offset", "byte offset"),
    "disk": ("disk", "disk #", "disknum", "disk number"), "process": ("process", "process (name)", "process name",
                                                                      "process name ( pid)", "process name (pid)"),
    "count": ("count",),
}  # fmt: skip
_COMMA_DECIMAL = re.compile(r"(?:;|\t|^)\d[\d.]*,\d+(?:;|\t|$)")
"""A number with a decimal comma, as Windows exports it where that is the custom; the delimiter is no comma then."""
LOOK_LINES = 20
_NEEDED = ("type", "size", "place")


class XperfText(TraceForm):
    """Text of xperf."""

    name, title = "xperf", "xperf text (ETW)"
    times: Literal["split", "whole", "none"] = "split"

    def recognises(self, head: bytes) -> bool:
        """Header rows name the columns of each event."""
        return b"BeginHeader" in head[:4096] or re.match(rb"\s*Disk(Read|Write)\s*,\s*TimeStamp", head) is not None

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield reads, writes and flushes of disks; other events are no I/O."""
        places: dict[str, dict[str, int]] = {}
        for lines in source.text_blocks():
            found: list[Sequence[str]] = []
            for line in lines:
                event = line.partition(",")[0].strip()
                if event not in _EVENTS:
                    source.lines -= 1
                    continue
                fields = [one.strip() for one in line.split(",")]
                if "TimeStamp" in fields[1:2]:
                    places[event] = {title: place for place, title in enumerate(fields)}
                    source.lines -= 1
                    continue
                row = _row(fields, places.get(event, {}))
                if row is None:
                    source.bad(line)
                else:
                    found.append(row)
            ios = taken(found, source, _event_ios)
            if ios is not None:
                yield ios


def _row(fields: Sequence[str], places: Mapping[str, int]) -> Sequence[str] | None:
    """Event, end, whole, service, place, size, disk and process of a row."""
    titles = ("TimeStamp", "ElapsedTime", "DiskSvcTime", "ByteOffset", "IOSize", "DiskNum", "Process Name ( PID)")
    is_flush = fields[0] == "DiskFlush"
    row = [fields[0]]
    for title in titles:
        place = places.get(title)
        if place is None or place >= len(fields):
            if title not in ("DiskSvcTime", "Process Name ( PID)") and not (is_flush and title in titles[3:5]):
                return None
            row.append({"ByteOffset": "0x0", "IOSize": "0x0", "DiskSvcTime": fields[places["ElapsedTime"]]}
                       .get(title, ""))  # fmt: skip
        else:
            row.append(fields[place])
    return row


def _event_ios(fields: Fields) -> Ios:
    event, end, whole, service, place, size, disk, process = fields
    whole_ns, service_ns = integers(whole, 1000), integers(service, 1000)
    return ios_of(
        t_ns=np.maximum(integers(end, 1000) - whole_ns, 0),
        queue_ns=np.maximum(whole_ns - service_ns, 0), device_ns=np.minimum(service_ns, whole_ns).clip(0),
        place_bytes=np.fromiter((int(one, 16) for one in place), np.int64),
        size_bytes=np.fromiter((int(one, 16) for one in size), np.int64),
        flags=np.fromiter((_EVENTS[one] for one in event), np.uint16),
        device=[f"disk{one}" for one in disk], process=[_PID.sub("", one) for one in process],
    )  # fmt: skip


class DiskIoTable(TraceForm):
    """A table of disk I/Os with a heading, of WPA or of `xperf -a diskio -detail`."""

    name, title = "diskio", "Windows disk I/O CSV (WPA, xperf -a diskio)"
    times: Literal["split", "whole", "none"] = "split"
    resolution_ns = 100

    def recognises(self, head: bytes) -> bool:
        """The heading names type, size, place and a time."""
        encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        lines = head[: len(head) // 2 * 2].decode(encoding, "replace").splitlines()
        return bool(lines) and _heading(lines[0]) is not None

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield I/Os; rows that stand for several are not understood."""
        heading: _Heading | None = None
        for lines in source.text_blocks():
            if not lines:
                continue
            if heading is None:
                heading, lines = _heading(lines[0]), lines[1:]
                source.lines -= 1
                if heading is None:
                    raise UsageError(f"{printable(source.path)}: its first line names no columns of disk I/O")
                heading.is_comma_decimal = any(_COMMA_DECIMAL.search(one) is not None for one in lines[:LOOK_LINES])
            found: list[Sequence[str]] = []
            for fields in csv.reader(lines, delimiter=heading.delimiter):
                if len(fields) > max(heading.places.values()):
                    found.append([fields[place] for place in heading.places.values()])
                else:
                    source.bad(" ".join(fields))
            ios = taken(found, source, heading.ios)
            if ios is not None:
                yield ios


class _Heading:
    """Columns of a table, by what they are; `units` are nanoseconds."""

    def __init__(self, delimiter: str, places: dict[str, int], units: dict[str, float]) -> None:
        self.delimiter, self.places, self.units = delimiter, places, units
        self.is_comma_decimal = False

    def ios(self, fields: Fields) -> Ios:
        """Give the I/Os of columns."""
        by_name = dict(zip(self.places, fields, strict=True))
        if any(one.strip() not in ("1", "") for one in by_name.get("count", ())):
            raise ValueError(by_name["count"])

        def times_ns(name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
            if name not in by_name:
                return None
            return np.fromiter((round(self._number(one) * self.units[name]) for one in by_name[name]), np.int64)

        start_ns, end_ns, whole_ns, service_ns = map(times_ns, ("start", "end", "whole", "service"))
        if whole_ns is None:
            whole_ns = end_ns - start_ns if start_ns is not None and end_ns is not None else service_ns
        if whole_ns is None:
            raise ValueError(self.places)
        if start_ns is None:
            start_ns = np.zeros(0, np.int64) if end_ns is None else end_ns - whole_ns
        service_ns = whole_ns if service_ns is None else service_ns
        kinds = [_TYPES[one.strip().lower()] for one in by_name["type"]]
        return ios_of(
            t_ns=np.maximum(start_ns, 0), queue_ns=np.maximum(whole_ns - service_ns, 0),
            device_ns=np.minimum(service_ns, whole_ns).clip(0),
            # A flush has no place, which is written as one that no disk has.
            place_bytes=np.fromiter((0 if kind == IoFlag.FLUSH else self._place(one)
                                     for one, kind in zip(by_name["place"], kinds, strict=True)), np.int64),
            size_bytes=np.fromiter((round(self._number(one)) for one in by_name["size"]), np.int64),
            flags=np.array(kinds, np.uint16),
            device=[f"disk{one.strip()}" for one in by_name.get("disk", [""] * len(kinds))],
            process=[_PID.sub("", one.strip()) for one in by_name.get("process", [""] * len(kinds))],
        )  # fmt: skip

    def _number(self, text: str) -> float:
        text = text.strip().replace("\u00a0", "").replace(" ", "")
        if self.is_comma_decimal:
            text = text.replace(".", "").replace(",", ".")
        return float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text.replace(",", ""))

    def _place(self, text: str) -> int:
        text = text.strip()
        return int(text, 16) if text[:2] in ("0x", "0X") else round(self._number(text))


def _heading(line: str) -> _Heading | None:
    line = line.strip()
    delimiter = max((";", "\t", ","), key=line.count)
    titles = next(csv.reader([line], delimiter=delimiter), [])
    places: dict[str, int] = {}
    units: dict[str, float] = {}
    for place, title in enumerate(titles):
        unit = _UNIT.search(title)
        words = re.sub(r"\s+", " ", _UNIT.sub("", title)).strip().lower()
        name = next((name for name, known in _COLUMNS.items() if words in known), None)
        if name is not None and name not in places:
            places[name] = place
            units[name] = _NS.get(unit[1].lower(), 1e3) if unit else 1e3
    is_timed = "start" in places or "end" in places
    return _Heading(delimiter, places, units) if is_timed and all(one in places for one in _NEEDED) else None
