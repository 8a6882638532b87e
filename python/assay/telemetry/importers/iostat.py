"""Reports of iostat, as text and as JSON (`-o JSON`): with times (`-t`) and without, whole and as excerpts.

The first report of a run of iostat is of the time since the host's start, and is left out; `-y` does not print it.
Sources: sysstat, `iostat.c` (`write_plain_ext_stat`, `DISPLAY_PRETTY`, `DISPLAY_SHORT_OUTPUT`), its manual page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock, Untimed
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.sar_json import samples
from assay.telemetry.importers.sysstat import CPU, DEVICE, HEADER, cells, with_busy
from assay.telemetry.importers.taken import NO_USE

_PROGRAM = "S_TIME_FORMAT=ISO iostat -xt 10"
_TABLE = re.compile(
    r"^[ \t]{0,200}(?:Device:?\s.*(?:await|%util|tps|r/s|kB_read)"
    r"|(?=\S)(?=.*(?:r/s|w/s|tps|%util|f_await)).*\sDevice:?[ \t\r]{0,200}$)",
    re.MULTILINE,
)
_CPU_TABLE = re.compile(r"^avg-cpu:\s+%user", re.MULTILINE)
_SINCE_START = "it is of the time since the host's start"
_LIKE_A_TIME = re.compile(r"\d.*\d{2}.*\d{2}")

Table = Mapping[str, object]


@dataclass
class _Report:
    """One report as it stands in the file."""

    at: str | None = None
    cpu: Table = field(default_factory=dict)
    devices: list[tuple[str, Table]] = field(default_factory=list)
    tables: list[tuple[str, ...]] = field(default_factory=list)
    others: int = 0
    """Values of which no use is made."""

    def __bool__(self) -> bool:
        return bool(self.at is not None or self.cpu or self.devices or self.tables)

    @property
    def values(self) -> int:
        """How many values it holds."""
        return len(self.cpu) + sum(len(one) for _, one in self.devices)


class IostatText(Importer):
    """iostat as text."""

    name: ClassVar[str] = "iostat"
    title: ClassVar[str] = "iostat -xt"

    def recognises(self, head: str) -> bool:
        """A table of devices; an excerpt may lack the line of the host."""
        found = _TABLE.search(head) or _CPU_TABLE.search(head)
        return found is not None and '"sysstat"' not in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take devices and processors of every report but the first of each run."""
        reports = _Reports(into, Clock(into, file))
        for report in _reports_of(file, reports):
            reports.end(report)
        reports.check()


def _reports_of(file: TextIO, reports: _Reports) -> Iterator[_Report]:
    """Reports of a file, one after the other."""
    report = _Report()
    titles: list[str] = []
    cpu_titles: list[str] = []
    alone = ""
    for raw in file:
        line = raw.strip()
        if not line:
            titles, cpu_titles, alone = [], [], ""
            continue
        match = HEADER.match(line)
        if match is not None:
            if report:
                yield report
            report, titles = _Report(), []
            reports.begin_run(match["host"])
        elif moment(line) is not None:
            if report:
                yield report
            report, titles, cpu_titles = _Report(at=line), [], []
        elif line.startswith("avg-cpu:"):
            if report.cpu or report.devices or report.tables:
                yield report
                report = _Report()
            cpu_titles, titles = line.split()[1:], []
        elif _TABLE.match(line) is not None:
            titles = line.replace("Device:", "Device").split()
            if tuple(titles) in report.tables:
                yield report
                report = _Report()
            report.tables.append(tuple(titles))
        elif cpu_titles:
            found = cells(cpu_titles, line)
            if found is None:
                reports.strange(line)
            report.cpu, cpu_titles = found or {}, []
        elif titles:
            alone = _device(report, reports, titles, f"{alone} {line}".strip())
        else:
            reports.strange(line)
    if report:
        yield report


def _device(report: _Report, reports: _Reports, titles: list[str], line: str) -> str:
    """Take a row of a device; its name where that stands alone on the line, as long names do."""
    row = cells(titles, line)
    if row is not None:
        report.devices.append((row["Device"], {name: value for name, value in row.items() if name != "Device"}))
    elif len(line.split()) == 1:
        return line
    else:
        reports.strange(line)
    return ""


class IostatJson(Importer):
    """iostat as JSON."""

    name: ClassVar[str] = "iostat"
    title: ClassVar[str] = "iostat -xt -o JSON"

    def recognises(self, head: str) -> bool:
        """A document of sysstat with devices as iostat names them."""
        return '"sysstat"' in head and ('"disk_device"' in head or '"avg-cpu"' in head)

    def read(self, file: TextIO, into: Into) -> None:
        """Take devices and processors of every report but the first of each document."""
        reports = _Reports(into, Clock(into, file))
        run = 0
        for one in samples(file):
            if one.run != run:
                run = one.run
                reports.begin_run(one.host)
            sample = one.values
            cpu, disks = sample.get("avg-cpu"), sample.get("disk")
            stamp = sample.get("timestamp")
            report = _Report(at=str(stamp) if stamp else None)
            if isinstance(cpu, Mapping):
                report.cpu = {f"%{key}": value for key, value in cpu.items()}
            for disk in disks if isinstance(disks, list) else ():
                if isinstance(disk, Mapping):
                    values = {str(key): value for key, value in disk.items() if key != "disk_device"}
                    report.devices.append((str(disk.get("disk_device") or ""), values))
            for key, value in sample.items():
                if key not in ("avg-cpu", "disk", "timestamp"):
                    into.taken.ignore(str(key), NO_USE, one.leaves(value))
            reports.end(report)
        reports.check()


class _Reports:
    """Reports of one file, one after the other."""

    def __init__(self, into: Into, clock: Clock) -> None:
        self.into, self.name, self._clock = into, "", clock
        self._count = self._timed = self._runs = 0
        self._is_first = True
        self._strange = ""
        self._untimed = Untimed(into, _PROGRAM)

    def begin_run(self, host: str) -> None:
        """The line of the host: a run begins."""
        self.into.begin_run(self.name or self.into.options.host)
        self.name, self._is_first = host, True
        self._runs += 1

    def strange(self, line: str) -> None:
        """A line that belongs to no report: its numbers are not understood."""
        if _LIKE_A_TIME.search(line) and not self._strange:
            self._strange = line
        self.into.taken.not_understood("lines that are of no report", line, 0)

    def end(self, report: _Report) -> None:
        """Hand over a report."""
        self._count += 1
        into, taken = self.into, self.into.taken
        name = self.name or into.options.host
        moment_at = moment(report.at) if report.at is not None else None
        if moment_at is None and report.at is not None:
            taken.not_understood("reports whose time is not understood", report.at, report.values)
            return
        if moment_at is None and self._timed:
            taken.ignore("reports without a time", "others of the file have one", report.values)
            return
        if moment_at is None and self._runs > 1 and into.options.start_ns is not None:
            taken.ignore("later runs", "the file does not say when they began", report.values)
            return
        if moment_at is None:
            if self._strange and into.options.interval_ns is None:
                raise NotTaken(
                    f"says its times as {self._strange[:40]!r}, which is not understood: record with {_PROGRAM}"
                )
            t_ns = self._untimed.next_ns()
        else:
            self._timed += 1
            t_ns = self._clock.t_ns(moment_at)
        interval_ns = into.advance(name, t_ns)
        is_first, self._is_first = self._is_first, False
        if is_first and interval_ns is not None:
            taken.ignore("the first report", _SINCE_START, report.values)
            return
        if not interval_ns:
            taken.ignore("reports while the clock was behind", "their time was before", report.values)
            return
        self._take(report, name, t_ns, into.paced(name, interval_ns))

    def _take(self, report: _Report, name: str, t_ns: int, interval_ns: int) -> None:
        into, taken = self.into, self.into.taken
        cpu = taken.readings(report.cpu, CPU, entity="cpu", interval_ns=interval_ns, source="host")
        found: list[Reading] = []
        for entity, record in report.devices:
            found += taken.readings(record, DEVICE, entity=entity, interval_ns=interval_ns, source="block")
        for tier, source, readings in (("client", "host", with_busy(cpu)), ("storage", "block", found)):
            into.add(readings, host=name, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)

    def check(self) -> None:
        """Refuse a file of which nothing could be taken.

        Raises
        ------
        NotTaken
            It holds reports since the start alone.
        """
        if self._count and not self.into.taken.values_taken and "the first report" in self.into.taken.ignored:
            raise NotTaken("holds one report alone, of the time since the host's start: give iostat an interval")
