"""Logs of /proc/diskstats: its text again and again, with a line of the time beside each, times in the lines, or none.

Counters are since the host's start; what is taken is their difference from one snapshot to the next. Source: Linux,
Documentation/admin-guide/iostats.rst: sectors of 512 bytes, milliseconds that wrap at 2**32.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import ClassVar, TextIO

from assay.telemetry.collectors.proc_file import is_count
from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment_in
from assay.telemetry.importers.parts import disk_of_part
from assay.telemetry.importers.snapshots import ReportTimes
from assay.telemetry.importers.taken import Counter, Counters

_DEVICE = r"^(?P<at>\S.{0,60}?\s)?\s{0,40}\d{1,4}\s+\d{1,7}\s+(?P<name>[A-Za-z][\w!/.-]*)\s+"
_WHOLE = re.compile(rf"{_DEVICE}\d{{1,20}}(?:\s+\d{{1,20}}){{10,31}}\s*$", re.ASCII | re.MULTILINE)
_LINE = re.compile(rf"{_DEVICE}(?P<counts>\S+(?:\s+\S+){{3,31}})\s*$", re.ASCII)
_PROGRAM = "while sleep 10; do date -Is; cat /proc/diskstats; done"

LOOK_LINES = 50
"""Lines like those of a device that are looked at: other programs' rows may have names among numbers."""

_SECTOR, _MS = 512.0, 1e6
_WRAP_MS = 2**32

_NAMES = (
    "reads", "reads merged", "sectors read", "ms reading", "writes", "writes merged", "sectors written", "ms writing",
    "in flight", "ms busy", "weighted ms", "discards", "discards merged", "sectors discarded", "ms discarding",
    "flushes", "ms flushing",
)  # fmt: skip
"""Fields after the name, as the kernel's documentation orders them."""
_NAMES_FIRST = _NAMES[:11]
"""What every kernel since 2.6.25 prints of a partition, too."""
_OF = {"ms reading": "reads", "ms writing": "writes", "ms discarding": "discards", "ms flushing": "flushes"}
_KNOWN: Counters = {
    "reads": Counter("read_ios_count", "count"), "writes": Counter("write_ios_count", "count"),
    "reads merged": Counter("read_merged_ios_count", "count"),
    "writes merged": Counter("write_merged_ios_count", "count"),
    "sectors read": Counter("read_bytes", "count", _SECTOR),
    "sectors written": Counter("write_bytes", "count", _SECTOR),
    "ms reading": Counter("read_latency_mean_ns", factor=_MS, of="reads"),
    "ms writing": Counter("write_latency_mean_ns", factor=_MS, of="writes"),
    "in flight": Counter("queue_now_count"), "ms busy": Counter("busy_share"),
    "weighted ms": Counter("queue_mean_count"),
    "discards": Counter("discard_ios_count", "count"), "sectors discarded": Counter("discard_bytes", "count", _SECTOR),
    "discards merged": Counter("discard_merged_ios_count", "count"),
    "ms discarding": Counter("discard_latency_mean_ns", factor=_MS, of="discards"),
    "flushes": Counter("flush_ios_count", "count"),
    "ms flushing": Counter("flush_latency_mean_ns", factor=_MS, of="flushes"),
}  # fmt: skip


class Diskstats(Importer):
    """/proc/diskstats over time."""

    name: ClassVar[str] = "diskstats"
    title: ClassVar[str] = "/proc/diskstats with times"

    def recognises(self, head: str) -> bool:
        """A line of a device with eleven counters or more."""
        lines = islice(_WHOLE.finditer(head), LOOK_LINES)
        return any(not line["at"] or moment_in(line["at"].strip()) is not None for line in lines)

    def read(self, file: TextIO, into: Into) -> None:
        """Take each device that ever did an I/O, of every snapshot but the first."""
        log = _Log(into, file)
        for raw in file:
            match = _LINE.match(raw)
            if match is not None:
                log.device(match)
            elif (at := moment_in(raw)) is not None:
                log.end(log.times.line(at))
            elif raw.strip():
                into.taken.not_understood("lines", raw, 0)
        log.end(log.times.end() if log.times.is_open else None)


class _Log:
    """Snapshots of one file."""

    def __init__(self, into: Into, file: TextIO) -> None:
        self.times = ReportTimes(into, file, _PROGRAM)
        self._into = into
        self._now: dict[str, list[int]] = {}
        self._before: dict[str, list[int]] = {}
        self._prefix = ""

    def device(self, match: re.Match[str]) -> None:
        """A line of a device: it ends the snapshot before it where it is of another time, or again of the device."""
        prefix, name, counts = (match["at"] or "").strip(), match["name"], match["counts"].split()
        if len(counts) < len(_NAMES_FIRST) or not all(is_count(one) for one in counts):
            self._into.taken.not_understood("lines of devices", match[0], len(counts))
            return
        if self._now and (prefix != self._prefix or name in self._now):
            self.end(self.times.end())
        at = moment_in(prefix) if prefix and prefix != self._prefix else None
        if at is not None:
            self.times.line(at)
        self._prefix = prefix
        self.times.begin()
        self._now[name] = [int(one) for one in counts]

    def end(self, t_ns: int | None) -> None:
        """The end of a snapshot, and its time."""
        now, self._now = self._now, {}
        if not now:
            return
        taken, host = self._into.taken, self._into.options.host
        count = sum(len(one) for one in now.values())
        if t_ns is None:
            taken.ignore("the last snapshot", "the file does not say its time", count)
            return
        interval_ns = self._into.advance(host, t_ns)
        if interval_ns is None:
            taken.ignore("snapshots while the clock was behind", "their time was before", count)
            return
        before, self._before = self._before, now
        if not interval_ns:
            taken.ignore("the first snapshot", "it is of the time since the host's start", count)
            return
        found = [
            one for name, counts in now.items() for one in self._device(name, before.get(name), counts, interval_ns)
        ]
        self._into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier="storage", source="block")

    def _device(
        self, name: str, before: Sequence[int] | None, counts: Sequence[int], interval_ns: int
    ) -> list[Reading]:
        taken = self._into.taken
        if disk_of_part(name, self._before) is not None:
            taken.ignore("partitions", "their disk is taken as a whole", len(counts))
            return []
        if not any(counts):
            taken.ignore("devices that never did an I/O", "nothing is known of them", len(counts))
            return []
        if before is None or len(before) != len(counts):
            taken.ignore("the first values of a device", "they are of the time since it appeared", len(counts))
            return []
        record = _differences(before, counts)
        if any(value < 0 for value in record.values()):
            taken.ignore("counters that began anew", "the host or the device was started again", len(counts))
            return []
        ios = {side: record[f"{side}s"] for side in ("read", "write")}
        sizes = {side: record[f"sectors {what}"] for side, what in (("read", "read"), ("write", "written"))}
        for spent, of in _OF.items():
            if record.get(of):
                record[spent] /= record[of]
        for name_of_ms in ("ms busy", "weighted ms"):
            record[name_of_ms] *= _MS / interval_ns
        found = taken.readings(record, _KNOWN, entity=name, interval_ns=interval_ns, source="block")
        return found + [
            Reading(name, f"{side}_size_mean_bytes", "gauge", sizes[side] * _SECTOR / ios[side])
            for side in ios
            if ios[side]
        ]


def _differences(before: Sequence[int], now: Sequence[int]) -> dict[str, float]:
    """What happened between two snapshots, by the names of the fields.

    Examples
    --------
    >>> _differences([1] * 9 + [2**32 - 5], [3] * 9 + [5])["ms busy"]
    10.0
    """
    found: dict[str, float] = {}
    for place, (old, new) in enumerate(zip(before, now, strict=True)):
        name = _NAMES[place] if place < len(_NAMES) else f"field {place + 1}"
        change = float(new - old)
        if "ms" in name.split() and change < 0:
            # Processors are summed without stopping them: a small step back is none, a large one has wrapped.
            change = change % _WRAP_MS if change < -_WRAP_MS / 2 else 0.0
        found[name] = float(new) if name == "in flight" else change
    return found
