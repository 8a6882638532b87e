"""Traces of vscsiStats: lines as it prints them, and the records of 32 and 40 bytes that CloudPhysics published."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np

from assay.traces.importers.delimited import WORDS, LinesForm
from assay.traces.importers.form import READ, SECTOR, WRITE, Fields, TraceForm, directions, integers, ios_of
from assay.traces.importers.sources import Source
from assay.traces.ios import Ios

_READS, _WRITES = (0x08, 0x28, 0xA8, 0x88), (0x0A, 0x2A, 0xAA, 0x8A)
"""READ and WRITE of 6, 10, 12 and 16 bytes (SBC-4)."""
_COMMANDS = {f"{prefix}{code:02x}": flag for codes, flag in ((_READS, READ), (_WRITES, WRITE)) for code in codes
             for prefix in ("", "0x")}  # fmt: skip
_FLAGS = np.zeros(256, np.uint16)
_FLAGS[list(_READS)], _FLAGS[list(_WRITES)] = READ, WRITE

_RECORDS = {
    1: [("sn", "u4"), ("size", "u4"), ("parts", "u4"), ("command", "u2"), ("version", "u2"), ("block", "u8"),
        ("time", "u8")],
    2: [("command", "u2"), ("version", "u2"), ("sn", "u4"), ("size", "u4"), ("parts", "u4"), ("block", "u8"),
        ("time", "u8"), ("response", "u8")],
}  # fmt: skip
"""Records by the high byte of their field `version`."""
RECORDS_AT_ONCE = 2**16


class VscsiText(LinesForm):
    """What `vscsiStats -t` gives through `vscsiTraceProcess`."""

    name, title, fields = "vscsistats", "vscsiStats trace", 6
    layer: Literal["queued", "issued"] = "queued"
    line: ClassVar[re.Pattern[str]] = re.compile(
        r"\s*\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*(?:read|write|(?:0x)?[0-9a-f]{2})\s*,\s*\d+\s*,\s*\d+\s*$", re.IGNORECASE
    )

    def columns(self, fields: Fields) -> Ios:
        """Bytes, blocks of 512 bytes, microseconds."""
        _, size, _, command, block, time = fields
        return ios_of(t_ns=integers(time, 1000), place_bytes=integers(block, SECTOR), size_bytes=integers(size),
                      flags=directions((one.strip().lower() for one in command), WORDS | _COMMANDS),
                      device=["disk"] * len(size))  # fmt: skip


class VscsiRecords(TraceForm):
    """Binary records, either byte order."""

    name, title = "vscsi", "vscsiStats trace, binary"
    layer: Literal["queued", "issued"] = "queued"

    def recognises(self, head: bytes) -> bool:
        """Whether the first records are of one version, and most of them read or write."""
        return self._record(head) is not None

    def rows(self, source: Source) -> Iterator[Ios]:
        """Yield reads and writes; other commands are left out and counted."""
        record = self._record(source.head)
        if record is None:
            source.lines, source.lines_bad = 1, 1
            return
        rest, others = b"", 0
        for block in source.blocks(RECORDS_AT_ONCE * record.itemsize):
            data = rest + block
            whole = len(data) - len(data) % record.itemsize
            rest = data[whole:]
            found = np.frombuffer(data[:whole], record)
            source.lines += len(found)
            good = (found["command"] < 256) & (found["block"] < 2**53) & (found["time"] < 2**52)
            source.bad("a record with a command, a block or a time that no disk has", int((~good).sum()))
            found = found[good]
            flags = _FLAGS[found["command"]]
            others += int((flags == 0).sum())
            found, flags = found[flags != 0], flags[flags != 0]
            yield ios_of(t_ns=found["time"].astype(np.int64) * 1000,
                         place_bytes=found["block"].astype(np.int64) * SECTOR,
                         size_bytes=found["size"].astype(np.int64), flags=flags, device=["disk"] * len(found),
                         device_ns=found["response"].astype(np.int64).clip(0, 2**42) * 1000
                         if "response" in (record.names or ()) else None)  # fmt: skip
        if others:
            source.note(f"{others:,} commands that neither read nor write are left out")
        if rest:
            source.note("the last record is cut off")

    @staticmethod
    def _record(head: bytes) -> np.dtype[np.void] | None:
        for version, fields in _RECORDS.items():
            for order in "<>":
                record = np.dtype([(name, f"{order}{kind}") for name, kind in fields])
                found = np.frombuffer(head[: len(head) - len(head) % record.itemsize], record)[:100]
                commands = found["command"]
                known = (commands < 256) & (_FLAGS[np.minimum(commands, 255)] != 0)
                if len(found) and (found["version"] >> 8 == version).all() and known.mean() > 0.5:
                    return record
        return None
