"""Forms with a line an I/O and fields at fixed places: the archives of IOTTA, clouds, SPC and simulators.

Columns and units: README of each archive (docs/trace.md names them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import numpy as np

from assay.traces.importers.form import (
    READ,
    SECTOR,
    WRITE,
    Fields,
    TraceForm,
    directions,
    integers,
    ios_of,
    ns_of,
    taken,
)
from assay.traces.importers.sources import Source
from assay.traces.ios import UNKNOWN_NS, Ios

FILETIME_UNIX_100NS = 116_444_736_000_000_000
"""From 1601, where FILETIME of Windows begins, to 1970."""
LOOK_LINES = 20
WORDS = {"R": READ, "W": WRITE, "r": READ, "w": WRITE, "Read": READ, "Write": WRITE, "read": READ, "write": WRITE}


class LinesForm(TraceForm):
    """A form of which each line is an I/O.

    Attributes
    ----------
    line
        What a line looks like.
    header
        What the first line may be instead.
    separator
        Between fields; None is white space.
    fields
        How many fields are taken; a line may have more.
    comment
        How lines begin that are no I/O.
    """

    line: ClassVar[re.Pattern[str]]
    header: ClassVar[str] = ""
    separator: ClassVar[str | None] = ","
    fields: ClassVar[int]
    comment: ClassVar[str] = "#"

    def recognises(self, head: bytes) -> bool:
        """Whether nearly all of the first lines look like one of this form."""
        lines = head.decode("utf-8-sig", "replace").splitlines()[: LOOK_LINES + 1]
        if self.header and lines and lines[0].strip().lower().startswith(self.header.lower()):
            return True
        first = lines[:LOOK_LINES] if len(lines) > LOOK_LINES else lines
        whole = [one for one in first if one.strip() and not one.startswith(self.comment)]
        good = sum(self.line.match(one) is not None for one in whole)
        return good > 0 and good >= 0.8 * len(whole)

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield the I/Os of a file, many lines at once."""
        for lines in source.text_blocks():
            if self.header and lines and lines[0].lower().startswith(self.header.lower()):
                lines = lines[1:]
                source.lines -= 1
            found = [line.split(self.separator) for line in lines if not line.startswith(self.comment)]
            source.lines -= len(lines) - len(found)
            for short in [one for one in found if len(one) < self.fields]:
                source.bad(" ".join(short))
            rows: list[Sequence[str]] = [one[: self.fields] for one in found if len(one) >= self.fields]
            ios = taken(rows, source, self.columns)
            if ios is not None:
                yield ios

    def columns(self, fields: Fields) -> Ios:
        """Give the I/Os of columns of fields."""
        raise NotImplementedError


class Msr(LinesForm):
    """MSR Cambridge (SNIA IOTTA 388): 36 volumes of 13 servers, 2007."""

    name, title = "msr", "MSR Cambridge CSV"
    times: Literal["split", "whole", "none"] = "whole"
    resolution_ns, has_wall_clock, fields = 100, True, 7
    header: ClassVar[str] = "Timestamp,Hostname,"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\d{17,18},[^,]*,\d+,(?:Read|Write),\d+,\d+,\d+\s*$", re.IGNORECASE)

    def columns(self, fields: Fields) -> Ios:
        """Timestamp and ResponseTime are counts of 100 ns; a disk is a host's."""
        time, host, disk, kind, place, size, response = fields
        return ios_of(
            t_ns=(integers(time) - FILETIME_UNIX_100NS) * 100, place_bytes=integers(place), size_bytes=integers(size),
            flags=directions((one.capitalize() for one in kind), WORDS),
            device=[f"{one}.{other}" for one, other in zip(host, disk, strict=True)],
            device_ns=integers(response, 100),
        )  # fmt: skip


class Systor(LinesForm):
    """SYSTOR '17 (SNIA IOTTA 4928): six LUNs of desktops, 2016; no type where no response was seen."""

    name, title = "systor", "SYSTOR '17 CSV"
    times: Literal["split", "whole", "none"] = "whole"
    has_wall_clock, fields = True, 6
    header: ClassVar[str] = "Timestamp,Response,IOType"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\d{9,10}\.\d+,[\d.eE-]*,[RW]?,\d+,\d+,\d+\s*$")

    def columns(self, fields: Fields) -> Ios:
        """Seconds with a fraction; an I/O without a type is none that a replay could make."""
        time, response, kind, lun, place, size = fields
        return ios_of(
            t_ns=ns_of(time, 0), place_bytes=integers(place), size_bytes=integers(size),
            flags=directions(kind, WORDS), device=[f"LUN{one}" for one in lun],
            device_ns=np.where([one.strip() == "" for one in response], UNKNOWN_NS,
                               ns_of((one.strip() or "0" for one in response), 0)),
        )  # fmt: skip


class Alibaba(LinesForm):
    """Alibaba's cloud disks, January 2020."""

    name, title = "alibaba", "Alibaba block traces CSV"
    has_wall_clock, fields = True, 5
    header: ClassVar[str] = "device_id,opcode,"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\d+,[RW],\d+,\d+,\d{15,17}\s*$")

    def columns(self, fields: Fields) -> Ios:
        """Bytes, and microseconds since 1970."""
        device, kind, place, size, time = fields
        return ios_of(t_ns=integers(time, 1000), place_bytes=integers(place), size_bytes=integers(size),
                      flags=directions(kind, WORDS), device=[f"disk{one}" for one in device])  # fmt: skip


class Tencent(LinesForm):
    """Tencent's cloud block storage (SNIA IOTTA 27917), 2018."""

    name, title = "tencent", "Tencent block storage CSV"
    resolution_ns, has_wall_clock, fields = 10**9, True, 5
    header: ClassVar[str] = "Timestamp,Offset,Size,IOType"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\d{10},\d+,\d+,[01],\d+\s*$")
    remark: ClassVar[str] = (
        "Times are whole seconds: the I/Os of a second lie at its beginning, so that nothing can be said of bursts "
        "below a second, and a replay sends them at once"
    )

    def columns(self, fields: Fields) -> Ios:
        """Sectors of 512 bytes; 0 reads, 1 writes."""
        time, place, size, kind, volume = fields
        return ios_of(t_ns=integers(time, 10**9), place_bytes=integers(place, SECTOR),
                      size_bytes=integers(size, SECTOR), flags=directions(kind, {"0": READ, "1": WRITE}),
                      device=[f"volume{one.strip()}" for one in volume])  # fmt: skip


class Spc(LinesForm):
    """SPC trace file format 1.0.1: UMass Financial1 and 2 (OLTP), WebSearch1 to 3."""

    name, title, fields = "spc", "SPC trace", 5
    line: ClassVar[re.Pattern[str]] = re.compile(
        r"\s*\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*[rRwW]\s*,\s*\d+(?:\.\d*)?\s*(?:,.*)?$"
    )

    def columns(self, fields: Fields) -> Ios:
        """Blocks of 512 bytes, sizes in bytes, seconds since the beginning; optional fields follow."""
        unit, block, size, kind, time = fields
        return ios_of(t_ns=ns_of(time, 0), place_bytes=integers(block, SECTOR), size_bytes=integers(size),
                      flags=directions((one.strip() for one in kind), WORDS),
                      device=[f"ASU{one.strip()}" for one in unit])  # fmt: skip


class DiskSim(LinesForm):
    """DiskSim's ASCII traces, which MQSim reads, too: 1 reads, 0 writes, the opposite of Tencent's."""

    name, title, separator, fields = "disksim", "DiskSim or MQSim ASCII", None, 5
    line: ClassVar[re.Pattern[str]] = re.compile(r"\s*\d+(?:\.\d+)?\s+\d+\s+\d+\s+\d+\s+[01]\s*$")
    remark: ClassVar[str] = (
        "Times with a fraction are read as milliseconds (DiskSim), whole ones as nanoseconds (MQSim): the file does "
        "not say its unit"
    )

    def columns(self, fields: Fields) -> Ios:
        """Sectors of 512 bytes."""
        time, device, place, size, kind = fields
        t_ns = ns_of(time, 3) if any("." in one for one in time) else integers(time)
        return ios_of(t_ns=t_ns, place_bytes=integers(place, SECTOR), size_bytes=integers(size, SECTOR),
                      flags=directions(kind, {"1": READ, "0": WRITE}),
                      device=[f"disk{one}" for one in device])  # fmt: skip


class Fiu(LinesForm):
    """FIU's traces with a hash of the content (SNIA IOTTA 390, 391); the hash is not kept."""

    name, title, separator, fields = "fiu", "FIU trace", None, 8
    layer: Literal["queued", "issued"] = "queued"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\d+ \d+ \S+ \d+ \d+ [RW] \d+ \d+ [0-9a-fA-F]{2,32}\s*$")

    def columns(self, fields: Fields) -> Ios:
        """Nanoseconds since the beginning, sectors of 512 bytes."""
        time, _, process, place, size, kind, major, minor = fields
        return ios_of(t_ns=integers(time), place_bytes=integers(place, SECTOR), size_bytes=integers(size, SECTOR),
                      flags=directions(kind, WORDS), process=process,
                      device=[f"{one},{other}" for one, other in zip(major, minor, strict=True)])  # fmt: skip
