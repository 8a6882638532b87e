"""Reports of `iostat -xt`, as text and as JSON (`-o JSON`).

The first report of a run of iostat is of the time since the host's start, and is left out; `-y` does not print it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import NO_USE, Importer, Into, NotTaken, number, utc_ns
from assay.telemetry.importers.sar import samples
from assay.telemetry.importers.zones import zone_assumed

_HEADER = re.compile(r"^\S+ \S+ \((?P<host>[^)]*)\)\s+\S+\s+_\S+_\s+\(\d+ CPU\)", re.MULTILINE)
_WITHOUT_TIMES = "says no times: record with iostat -xt, which prints one before each report"
_FORMATS = (
    "%m/%d/%y %H:%M:%S", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%y %I:%M:%S %p", "%d.%m.%Y %H:%M:%S",
    "%d.%m.%y %H:%M:%S", "%Y-%m-%d %H:%M:%S",
)  # fmt: skip

_CPU = {"%user": "user_share", "%system": "system_share", "%iowait": "iowait_share", "%steal": "steal_share"}
_DEVICE: dict[str, tuple[str, str, float]] = {
    "r/s": ("read_ios_count", "delta", 1.0),
    "w/s": ("write_ios_count", "delta", 1.0),
    "f/s": ("flush_ios_count", "delta", 1.0),
    "rkB/s": ("read_bytes", "delta", 1024.0),
    "wkB/s": ("write_bytes", "delta", 1024.0),
    "rMB/s": ("read_bytes", "delta", 1024.0**2),
    "wMB/s": ("write_bytes", "delta", 1024.0**2),
    "r_await": ("read_latency_mean_ns", "gauge", 1e6),
    "w_await": ("write_latency_mean_ns", "gauge", 1e6),
    "f_await": ("flush_latency_mean_ns", "gauge", 1e6),
    "rareq-sz": ("read_size_mean_bytes", "gauge", 1024.0),
    "wareq-sz": ("write_size_mean_bytes", "gauge", 1024.0),
    "aqu-sz": ("queue_mean_count", "gauge", 1.0),
    "avgqu-sz": ("queue_mean_count", "gauge", 1.0),
    "%util": ("busy_share", "gauge", 0.01),
    "util": ("busy_share", "gauge", 0.01),
}
"""Columns of sysstat 10 to 12; kB are 1,024 bytes."""

NO_IO = {"r_await": "r/s", "w_await": "w/s", "f_await": "f/s", "rareq-sz": "r/s", "wareq-sz": "w/s"}
"""What says nothing in an interval without such I/Os, where iostat prints 0."""


class IostatText(Importer):
    """iostat as text."""

    name: ClassVar[str] = "iostat"
    title: ClassVar[str] = "iostat -xt"

    def recognises(self, head: str) -> bool:
        """The line of the host, and a table of devices with latencies."""
        return (
            _HEADER.search(head) is not None
            and re.search(r"^Device:?\s.*(await|%util)", head, re.MULTILINE) is not None
        )

    def read(self, file: TextIO, into: Into) -> None:
        """Take devices and processors of every report but the first."""
        reports = _Reports(into, name="")
        at: str | None = None
        cpu: dict[str, str] = {}
        devices: list[dict[str, str]] = []
        cpu_titles: list[str] = []
        titles: list[str] = []
        pending: str | None = None
        for raw in file:
            line = raw.strip()
            match = _HEADER.match(line)
            begins = line.startswith(("avg-cpu:", "Device"))
            if begins and devices:
                reports.end(at, cpu, devices)
                at, cpu, devices = None, {}, []
            if not line:
                titles = []
            elif match is not None:
                reports.name = match["host"] or into.options.host
            elif begins:
                at = at or pending
                cpu_titles = line.split()[1:] if line.startswith("avg-cpu:") else []
                titles = line.replace("Device:", "Device ").split() if line.startswith("Device") else []
            elif cpu_titles:
                cpu, cpu_titles = dict(zip(cpu_titles, line.split(), strict=False)), []
            elif titles:
                devices.append(dict(zip(titles, line.split(), strict=False)))
            else:
                # The time of the report that follows, where one is printed.
                pending = line
        if devices:
            reports.end(at, cpu, devices)
        reports.check()


class IostatJson(Importer):
    """iostat as JSON."""

    name: ClassVar[str] = "iostat"
    title: ClassVar[str] = "iostat -xt -o JSON"

    def recognises(self, head: str) -> bool:
        """A document of sysstat with devices as iostat names them."""
        return '"sysstat"' in head and ('"disk_device"' in head or '"avg-cpu"' in head)

    def read(self, file: TextIO, into: Into) -> None:
        """Take devices and processors of every report but the first."""
        reports = _Reports(into, name="")
        for host, sample in samples(file):
            reports.name = host or into.options.host
            cpu = sample.get("avg-cpu")
            disks = sample.get("disk")
            reports.end(
                str(sample["timestamp"]) if sample.get("timestamp") else None,
                {f"%{key}": str(value) for key, value in cpu.items()} if isinstance(cpu, Mapping) else {},
                [
                    {"Device" if key == "disk_device" else str(key): str(value) for key, value in disk.items()}
                    for disk in (disks if isinstance(disks, list) else ())
                    if isinstance(disk, Mapping)
                ],
            )
        reports.check()


class _Reports:
    """Reports of one file, one after the other."""

    def __init__(self, into: Into, name: str) -> None:
        self.into, self.name = into, name
        self._count = 0
        self._timed = 0
        self._zone: timezone | None = None

    def end(self, at: str | None, cpu: Mapping[str, str], devices: Iterable[Mapping[str, str]]) -> None:
        """Hand over a report."""
        self._count += 1
        t_ns = self._time_ns(at) if at is not None else None
        if t_ns is None:
            return
        self._timed += 1
        name = self.name or self.into.options.host
        interval_ns = self.into.advance(name, t_ns)
        if not interval_ns:
            return
        for tier, source, found in (
            ("client", "host", list(_of_cpu(cpu))),
            ("storage", "block", [one for device in devices for one in self._of_device(device, interval_ns / 1e9)]),
        ):
            self.into.add(found, host=name, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)

    def check(self) -> None:
        """Refuse a file of which nothing could be taken.

        Raises
        ------
        NotTaken
            It says no times, or holds the report since the start alone.
        """
        if self._count and not self._timed:
            raise NotTaken(_WITHOUT_TIMES)
        if self._timed == 1:
            raise NotTaken("holds one report alone, of the time since the host's start: give iostat an interval")
        self.into.taken.ignore("the first report", "it is of the time since the host's start")

    def _of_device(self, device: Mapping[str, str], interval_s: float) -> Iterator[Reading]:
        entity = device.get("Device", "")
        for key, text in device.items():
            if key == "Device":
                continue
            known = _DEVICE.get(key)
            value = number(text)
            if known is None:
                self.into.taken.ignore(key, NO_USE)
                continue
            if value is None or (key in NO_IO and not number(device.get(NO_IO[key], ""))):
                continue
            metric, kind, factor = known
            self.into.taken.counters.setdefault(key, f"block {metric}")
            yield Reading(entity, metric, kind, value * factor * (interval_s if kind == "delta" else 1.0))

    def _time_ns(self, text: str) -> int | None:
        at = _moment(text)
        if at is None:
            return None
        if at.tzinfo is None:
            self._zone = self._zone or zone_assumed(self.into.options, self.into.taken)
            at = at.replace(tzinfo=self._zone)
        return utc_ns(at)


def _of_cpu(cpu: Mapping[str, str]) -> Iterator[Reading]:
    for key, metric in _CPU.items():
        value = number(cpu.get(key, ""))
        if value is not None:
            yield Reading("cpu", metric, "gauge", value * 0.01)


def _moment(text: str) -> datetime | None:
    """The time of a report, as `S_TIME_FORMAT=ISO` or a locale writes it; None for other text.

    Examples
    --------
    >>> _moment("2026-11-23T19:03:07+0000").hour, _moment("11/23/26 19:02:50").minute, _moment("Device")
    (19, 2, None)
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
