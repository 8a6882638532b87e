"""Reports of nfsiostat: the first of each run is of the time since the mount, and is left out.

nfsiostat prints no times; a line of the time is that of a script, which starts a run after it.

Source: nfs-utils, `tools/nfs-iostat/nfs-iostat.py`: kB are 1,024 bytes, what is sent again and errors are counts of the
interval, `exe` is the whole time of a request and `RTT` the part after it was sent.
"""

from __future__ import annotations

import re
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.moments import moment_in
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.snapshots import ReportTimes
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_MOUNT = re.compile(r"^(?P<from>\S.{0,4000}) mounted on (?P<point>/.{0,4000}):[ \t\r]{0,9}$", re.MULTILINE)
_TITLES = re.compile(r"^(?:(?P<side>\w{1,40}):)?\s{1,40}(?P<titles>ops?/s\s.{0,400})$")
_TITLE = re.compile(r"rpc bklog|avg \w+ \(ms\)|\S+")
_CELL = re.compile(r"\S+(?: \([^)]*\))?")
_PROGRAM = "date -Is; nfsiostat 10"

_MS = 1e6


def _of_side(side: str) -> Counters:
    return {
        "ops/s": Counter(f"{side}_ios_count", "delta"), "kB/s": Counter(f"{side}_bytes", "delta", 1024.0),
        "kB/op": Counter(f"{side}_size_mean_bytes", factor=1024.0, of="ops/s"),
        "avg RTT (ms)": Counter(f"{side}_rtt_mean_ns", factor=_MS, of="ops/s"),
        "avg exe (ms)": Counter(f"{side}_latency_mean_ns", factor=_MS, of="ops/s"),
        "avg queue (ms)": Counter(f"{side}_queue_mean_ns", factor=_MS, of="ops/s"),
        "errors": Counter(f"{side}_errors_count", "count"),
    }  # fmt: skip


_SIDES = {"read": _of_side("read"), "write": _of_side("write")}
_ALL: Counters = {
    "ops/s": "requests of all kinds; reads and writes are taken", "rpc bklog": Counter("queue_waiting_count"),
}  # fmt: skip
_AGAIN = "retransmissions_count"

_Table = tuple[str, dict[str, str]]


class NfsIostat(Importer):
    """nfsiostat."""

    name: ClassVar[str] = "nfsiostat"
    title: ClassVar[str] = "nfsiostat"

    def recognises(self, head: str) -> bool:
        """A mount, and the titles of its requests."""
        return _MOUNT.search(head) is not None and "rpc bklog" in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take reads and writes of each mount of every report but the first."""
        reports = _Reports(into, file)
        titles: tuple[str, list[str]] | None = None
        for raw in file:
            mount, line = _MOUNT.match(raw), _TITLES.match(raw)
            if mount is not None:
                reports.mount(mount["point"])
            elif line is not None:
                titles = line["side"] or "", [one.replace("op/s", "ops/s") for one in _TITLE.findall(line["titles"])]
                continue
            elif titles is not None and raw.strip():
                reports.row(titles[0], titles[1], raw)
            elif (at := moment_in(raw)) is not None:
                reports.end(reports.times.line(at))
                reports.is_first = True
            elif raw.strip():
                into.taken.not_understood("lines", raw, 0)
            titles = titles if not raw.strip() else None
        reports.end(reports.times.end() if reports.times.is_open else None)
        if not into.taken.values_taken and "the first report" in into.taken.ignored:
            raise NotTaken(f"holds reports of the time since the mount alone: give nfsiostat an interval ({_PROGRAM})")


class _Reports:
    """Reports of one file, one after the other: a mount that comes again begins the next."""

    def __init__(self, into: Into, file: TextIO) -> None:
        self.times = ReportTimes(into, file, _PROGRAM)
        self._into = into
        self._mounts: dict[str, list[_Table]] = {}
        self._point = ""
        self.is_first = True

    def mount(self, point: str) -> None:
        """The line of a mount."""
        if point in self._mounts:
            self.end(self.times.end())
        self.times.begin()
        self._mounts[point], self._point = [], point

    def row(self, side: str, titles: list[str], line: str) -> None:
        """Values below titles."""
        found = _CELL.findall(line)
        if len(found) != len(titles) or self._point not in self._mounts:
            self._into.taken.not_understood("rows with another number of columns", line, len(found))
        else:
            self._mounts[self._point].append((side, dict(zip(titles, found, strict=True))))

    def end(self, t_ns: int | None) -> None:
        """The end of a report, and its time."""
        mounts, self._mounts = self._mounts, {}
        if not mounts:
            return
        into, taken, host = self._into, self._into.taken, self._into.options.host
        is_first, self.is_first = self.is_first, False
        count = sum(len(record) for tables in mounts.values() for _, record in tables)
        interval_ns = None if t_ns is None else into.advance(host, t_ns)
        if t_ns is None:
            taken.ignore("the last report", "the file does not say its time", count)
        elif not interval_ns or is_first:
            why = "their time was before" if interval_ns is None else "it is of the time since the mount"
            name = "reports while the clock was behind" if interval_ns is None else "the first report"
            taken.ignore(name, why, count)
        else:
            interval_ns = into.paced(host, interval_ns)
            found = [one for point, tables in mounts.items() for one in self._mount(point, tables, interval_ns)]
            into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier="storage", source="nfs")

    def _mount(self, point: str, tables: list[_Table], interval_ns: int) -> list[Reading]:
        taken = self._into.taken
        found: list[Reading] = []
        again = None
        for side, record in tables:
            known = _SIDES.get(side, _ALL if not side else {})
            if side and not known:
                taken.ignore(side, NO_USE, len(record))
                continue
            own = {name: text for name, text in record.items() if name != "retrans"}
            if "errors" in own:
                own["errors"] = own["errors"].split(" (")[0]
            section = f"{side}." if side else ""
            found += taken.readings(own, known, entity=point, interval_ns=interval_ns, source="nfs", section=section)
            if "retrans" in record:
                count = number(record["retrans"].split(" (")[0])
                if count is None or count < 0:
                    taken.not_understood(f"{section}retrans", record["retrans"])
                else:
                    taken.take(f"{section}retrans", f"nfs {_AGAIN}")
                    again = (again or 0.0) + count
        return found if again is None else [*found, Reading(point, _AGAIN, "delta", again)]
