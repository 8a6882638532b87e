"""Batch files of esxtop: `esxtop -b`, one counter log with hundreds of objects for each virtual machine.

Sources: VMware, "Interpreting esxtop Statistics" (DAVG, KAVG, GAVG, QAVG, %RDY, %CSTP); the header is that of Perfmon.
"""

from __future__ import annotations

import re
from typing import ClassVar, TextIO

from assay.telemetry.importers.importer import NO_USE, Importer, Into, NotTaken
from assay.telemetry.importers.pdh import HEADER, Columns, Counter, Path, begin

_OBJECTS = re.compile(r"\\\\[^\\\"]+\\(Physical Disk|Group Cpu|Vcpu|Virtual Disk|Physical Cpu Load)\b")

_MS, _SHARE, _MBIT = 1e6, 0.01, 1e6 / 8


_DEVICE = {
    "Reads/sec": Counter("storage", "block", "read_ios_count", "delta"),
    "Writes/sec": Counter("storage", "block", "write_ios_count", "delta"),
    "MBytes Read/sec": Counter("storage", "block", "read_bytes", "delta", 2.0**20),
    "MBytes Written/sec": Counter("storage", "block", "write_bytes", "delta", 2.0**20),
    "Average Guest MilliSec/Read": Counter("storage", "block", "read_latency_mean_ns", factor=_MS),
    "Average Guest MilliSec/Write": Counter("storage", "block", "write_latency_mean_ns", factor=_MS),
    "Average Driver MilliSec/Command": Counter("storage", "block", "device_latency_mean_ns", factor=_MS),
    "Average Kernel MilliSec/Command": Counter("storage", "block", "kernel_latency_mean_ns", factor=_MS),
    "Average Guest MilliSec/Command": Counter("storage", "block", "guest_latency_mean_ns", factor=_MS),
    "Average Queue MilliSec/Command": Counter("storage", "block", "queue_latency_mean_ns", factor=_MS),
    "Queue Depth": Counter("storage", "block", "queue_most_count"),
    "Adapter Q Depth": Counter("storage", "block", "queue_most_count"),
    "Active Commands": Counter("storage", "block", "queue_mean_count"),
    "Queued Commands": Counter("storage", "block", "queue_waiting_count"),
    "Aborts/sec": Counter("storage", "block", "aborts_count", "delta"),
    "Resets/sec": Counter("storage", "block", "resets_count", "delta"),
}
"""Counters of physical disks and adapters."""


_KNOWN: dict[str, dict[str, Counter]] = {
    "Physical Disk SCSI Device": _DEVICE,
    "Physical Disk Adapter": _DEVICE,
    "Physical Disk": _DEVICE,
    "Virtual Disk": {
        "Reads/sec": Counter("application", "guest", "read_ios_count", "delta"),
        "Writes/sec": Counter("application", "guest", "write_ios_count", "delta"),
        "MBytes Read/sec": Counter("application", "guest", "read_bytes", "delta", 2.0**20),
        "MBytes Written/sec": Counter("application", "guest", "write_bytes", "delta", 2.0**20),
        "Average MilliSec/Read": Counter("application", "guest", "read_latency_mean_ns", factor=_MS),
        "Average MilliSec/Write": Counter("application", "guest", "write_latency_mean_ns", factor=_MS),
    },
    "Group Cpu": {
        "% Used": Counter("application", "guest", "used_share", factor=_SHARE),
        "% Ready": Counter("application", "guest", "ready_share", factor=_SHARE),
        "% CoStop": Counter("application", "guest", "costop_share", factor=_SHARE),
        "% Max Limited": Counter("application", "guest", "limited_share", factor=_SHARE),
        "% Swap Wait": Counter("application", "guest", "swap_wait_share", factor=_SHARE),
    },
    "Vcpu": {
        "% Used": Counter("application", "guest", "used_share", factor=_SHARE),
        "% Ready": Counter("application", "guest", "ready_share", factor=_SHARE),
    },
    "Physical Cpu": {
        "% Util Time": Counter("client", "host", "busy_share", factor=_SHARE),
        "% Core Util Time": Counter("client", "host", "core_busy_share", factor=_SHARE),
    },
    "Memory": {
        "Free MBytes": Counter("client", "host", "available_bytes", factor=2.0**20),
        "Memory Overcommit (1 Minute Avg)": Counter("client", "host", "overcommit_share"),
        "Swap Used MBytes": Counter("client", "host", "swap_used_bytes", factor=2.0**20),
    },
    "Network Port": {
        "MBits Received/sec": Counter("client", "net", "in_bytes", "delta", _MBIT),
        "MBits Transmitted/sec": Counter("client", "net", "out_bytes", "delta", _MBIT),
        "% Outbound Packets Dropped": Counter("client", "net", "out_dropped_share", factor=_SHARE),
        "% Received Packets Dropped": Counter("client", "net", "in_dropped_share", factor=_SHARE),
    },
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
        columns = Columns()
        for place, path in log.paths.items():
            counter = _KNOWN.get(path.object, {}).get(path.counter)
            if counter is None:
                into.taken.ignore(path.name, NO_USE)
            else:
                columns.take(place, path, _entity(path), counter, into)
        if not columns:
            raise NotTaken("is an esxtop file without disks, processors and memory: save it with all fields")
        columns.hand_over(log, into)


def _entity(path: Path) -> str:
    """The instance, without the numbers that esxtop puts before names of virtual machines: `1234:db01` is `db01`."""
    if path.object == "Physical Cpu":
        return "cpu" if path.instance == "_Total" else f"cpu/{path.instance}"
    if path.object == "Memory":
        return "memory"
    parts = [part for part in path.instance.split(":") if part]
    named = [part for part in parts if not part.isdecimal()] or parts
    return ":".join(named) if path.object in ("Group Cpu", "Vcpu", "Virtual Disk") else path.instance
