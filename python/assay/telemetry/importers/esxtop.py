"""Batch files of esxtop: `esxtop -b`, one counter log with hundreds of objects for each virtual machine.

Sources: VMware, "Interpreting esxtop Statistics" (DAVG, KAVG, GAVG, QAVG, %RDY, %CSTP); the header is that of Perfmon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, TextIO

from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.pdh import HEADER, Columns, Path, begin
from assay.telemetry.importers.taken import NO_USE, Counter

_OBJECTS = re.compile(r"\\\\[^\\\"]+\\(Physical Disk[^\\(]*|Group Cpu|Vcpu|Virtual Disk|Physical Cpu Load)\b")

_MS, _SHARE, _MBIT = 1e6, 0.01, 1e6 / 8


_DEVICES = ("Physical Disk SCSI Device", "Physical Disk Adapter", "Physical Disk NFS Volume", "Physical Disk",
            "Physical Disk Path")  # fmt: skip
_PARTS = ("Physical Disk Path", "Physical Disk Partition", "Physical Disk Per-Device-Per-World", "Physical Disk World")
"""What is counted in a device as well."""
_VCPU = re.compile(r"vmx-vcpu-\d+")

_DEVICE = {
    "Reads/sec": Counter("read_ios_count", "delta"),
    "Writes/sec": Counter("write_ios_count", "delta"),
    "MBytes Read/sec": Counter("read_bytes", "delta", 2.0**20),
    "MBytes Written/sec": Counter("write_bytes", "delta", 2.0**20),
    "Average Guest MilliSec/Read": Counter("read_latency_mean_ns", factor=_MS),
    "Average Guest MilliSec/Write": Counter("write_latency_mean_ns", factor=_MS),
    "Average Driver MilliSec/Command": Counter("device_latency_mean_ns", factor=_MS),
    "Average Kernel MilliSec/Command": Counter("kernel_latency_mean_ns", factor=_MS),
    "Average Guest MilliSec/Command": Counter("guest_latency_mean_ns", factor=_MS),
    "Average Queue MilliSec/Command": Counter("queue_latency_mean_ns", factor=_MS),
    "Queue Depth": Counter("queue_most_count"),
    "Adapter Q Depth": Counter("queue_most_count"),
    "Active Commands": Counter("queue_mean_count"),
    "Queued Commands": Counter("queue_waiting_count"),
    "Aborts/sec": Counter("aborts_count", "delta"),
    "Resets/sec": Counter("resets_count", "delta"),
}
"""Counters of physical disks and adapters."""


_KNOWN: dict[str, tuple[str, str, dict[str, Counter]]] = {
    **dict.fromkeys(_DEVICES, ("storage", "block", _DEVICE)),
    "Virtual Disk": (
        "application",
        "guest",
        {
            "Reads/sec": Counter("read_ios_count", "delta"),
            "Writes/sec": Counter("write_ios_count", "delta"),
            "MBytes Read/sec": Counter("read_bytes", "delta", 2.0**20),
            "MBytes Written/sec": Counter("write_bytes", "delta", 2.0**20),
            "Average MilliSec/Read": Counter("read_latency_mean_ns", factor=_MS),
            "Average MilliSec/Write": Counter("write_latency_mean_ns", factor=_MS),
        },
    ),
    "Group Cpu": (
        "application",
        "guest",
        {
            "% Used": Counter("used_share", factor=_SHARE),
            "% Ready": Counter("ready_share", factor=_SHARE),
            "% CoStop": Counter("costop_share", factor=_SHARE),
            "% Max Limited": Counter("limited_share", factor=_SHARE),
            "% Swap Wait": Counter("swap_wait_share", factor=_SHARE),
        },
    ),
    "Vcpu": (
        "application",
        "guest",
        {
            "% Used": Counter("used_share", factor=_SHARE),
            "% Ready": Counter("ready_share", factor=_SHARE),
        },
    ),
    "Physical Cpu": (
        "client",
        "host",
        {
            "% Util Time": Counter("busy_share", factor=_SHARE),
            "% Core Util Time": Counter("core_busy_share", factor=_SHARE),
        },
    ),
    "Memory": (
        "client",
        "host",
        {
            "Free MBytes": Counter("available_bytes", factor=2.0**20),
            "Memory Overcommit (1 Minute Avg)": Counter("overcommit_share"),
            "Swap Used MBytes": Counter("swap_used_bytes", factor=2.0**20),
        },
    ),
    "Network Port": (
        "client",
        "net",
        {
            "MBits Received/sec": Counter("in_bytes", "delta", _MBIT),
            "MBits Transmitted/sec": Counter("out_bytes", "delta", _MBIT),
            "% Outbound Packets Dropped": Counter("out_dropped_share", factor=_SHARE),
            "% Received Packets Dropped": Counter("in_dropped_share", factor=_SHARE),
        },
    ),
}


class Esxtop(Importer):
    """esxtop in batch mode."""

    name: ClassVar[str] = "esxtop"
    title: ClassVar[str] = "esxtop batch file (CSV)"

    def recognises(self, head: str) -> bool:
        """A counter log with objects that ESXi alone has."""
        return HEADER.search(head) is not None and _OBJECTS.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take devices, virtual disks, processors and memory of the host and of each guest.

        Raises
        ------
        NotTaken
            None of them is there.
        """
        log = begin(file)
        columns = Columns(log, into)
        names = _Names(log.paths)
        devices = {path.host for path in log.paths.values() if path.object == "Physical Disk SCSI Device"}
        for place, path in log.paths.items():
            tier, source, counters = _KNOWN.get(path.object, ("", "", {}))
            counter = counters.get(path.counter)
            if path.object in _PARTS and (path.host in devices or path.object != "Physical Disk Path"):
                columns.leave(place, path.name, "its device is taken as a whole")
            elif counter is None:
                columns.leave(place, path.name, NO_USE)
            else:
                columns.take(place, path, names.entity(path), (tier, source, names.of_processor(path, counter, into)))
        if not columns:
            raise NotTaken("is an esxtop file without disks, processors and memory: save it with all fields")
        columns.hand_over()


class _Names:
    """Names of instances without the numbers that esxtop puts before them, and how many processors guests have."""

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self._alike: dict[tuple[str, str, str], set[str]] = {}
        self._processors: dict[tuple[str, str], set[str]] = {}
        for path in paths.values():
            self._alike.setdefault((path.host, path.object, _short(path)), set()).add(path.instance)
            if path.object == "Vcpu" and _VCPU.search(path.instance):
                self._processors.setdefault((path.host, _guest(path)), set()).add(path.instance)

    def entity(self, path: Path) -> str:
        """The entity of an instance: its short name, where no other of its object has the same."""
        short = _short(path)
        return short if len(self._alike[path.host, path.object, short]) == 1 else path.instance

    def of_processor(self, path: Path, counter: Counter, into: Into) -> Counter:
        """A counter of a group for each of its processors: esxtop prints the sum of its worlds."""
        if path.object != "Group Cpu":
            return counter
        count = len(self._processors.get((path.host, _guest(path)), ()))
        if count:
            return counter._replace(factor=counter.factor / count)
        into.taken.note(
            "Group Cpu is the sum over a guest's processors, and of some guests the file does not say how many those"
            " are (Vcpu): whether these guests lack processors is not known"
        )
        return counter._replace(metric=counter.metric.replace("_share", "_total_share"))


def _guest(path: Path) -> str:
    """What tells a group from others: its number and name, as `1234:db01`."""
    return ":".join(path.instance.split(":")[:2])


def _short(path: Path) -> str:
    """An instance without numbers of worlds: `1234:db01` is `db01`, `1234:db01:22000:vmx-vcpu-0` is `db01:vmx-vcpu-0`.

    Those of disks stay: `db01:scsi0:1` is another disk than `db01:scsi0:0`.
    """
    if path.object == "Physical Cpu":
        return "cpu" if path.instance == "_Total" else f"cpu/{path.instance}"
    if path.object == "Memory":
        return "memory"
    parts = [part for part in path.instance.split(":") if part]
    if path.object in ("Group Cpu", "Vcpu", "Virtual Disk") and len(parts) > 1:
        if parts[0].isdecimal():
            del parts[0]
        if path.object == "Vcpu":
            parts = parts[:1] + [part for part in parts[1:] if not part.isdecimal()]
        return ":".join(parts)
    return path.instance
