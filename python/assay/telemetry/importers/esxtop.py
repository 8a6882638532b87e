"""Batch files of esxtop: `esxtop -b`, one counter log with hundreds of objects for each virtual machine.

Sources: VMware, "Interpreting esxtop Statistics" (DAVG, KAVG, GAVG, QAVG, %RDY, %CSTP); the header is that of Perfmon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken, number
from assay.telemetry.importers.pdh import HEADER, Path, begin, times

_OBJECTS = re.compile(r"\\\\[^\\\"]+\\(Physical Disk|Group Cpu|Vcpu|Virtual Disk|Physical Cpu Load)\b")

_MS, _SHARE, _MBIT = 1e6, 0.01, 1e6 / 8


@dataclass(frozen=True)
class _Known:
    tier: str
    source: str
    metric: str
    kind: str = "gauge"
    factor: float = 1.0


def _device(prefix: str) -> dict[str, _Known]:
    """Counters of physical disks and adapters."""
    return {
        "Reads/sec": _Known("storage", "block", "read_ios_count", "delta"),
        "Writes/sec": _Known("storage", "block", "write_ios_count", "delta"),
        "MBytes Read/sec": _Known("storage", "block", "read_bytes", "delta", 2.0**20),
        "MBytes Written/sec": _Known("storage", "block", "write_bytes", "delta", 2.0**20),
        f"Average {prefix} MilliSec/Read": _Known("storage", "block", "read_latency_mean_ns", factor=_MS),
        f"Average {prefix} MilliSec/Write": _Known("storage", "block", "write_latency_mean_ns", factor=_MS),
        "Average Driver MilliSec/Command": _Known("storage", "block", "device_latency_mean_ns", factor=_MS),
        "Average Kernel MilliSec/Command": _Known("storage", "block", "kernel_latency_mean_ns", factor=_MS),
        "Average Guest MilliSec/Command": _Known("storage", "block", "guest_latency_mean_ns", factor=_MS),
        "Average Queue MilliSec/Command": _Known("storage", "block", "queue_latency_mean_ns", factor=_MS),
        "Queue Depth": _Known("storage", "block", "queue_most_count"),
        "Adapter Q Depth": _Known("storage", "block", "queue_most_count"),
        "Active Commands": _Known("storage", "block", "queue_mean_count"),
        "Queued Commands": _Known("storage", "block", "queue_waiting_count"),
        "Aborts/sec": _Known("storage", "block", "aborts_count", "delta"),
        "Resets/sec": _Known("storage", "block", "resets_count", "delta"),
    }


_KNOWN: dict[str, dict[str, _Known]] = {
    "Physical Disk SCSI Device": _device("Guest"),
    "Physical Disk Adapter": _device("Guest"),
    "Physical Disk": _device("Guest"),
    "Virtual Disk": {
        "Reads/sec": _Known("application", "guest", "read_ios_count", "delta"),
        "Writes/sec": _Known("application", "guest", "write_ios_count", "delta"),
        "MBytes Read/sec": _Known("application", "guest", "read_bytes", "delta", 2.0**20),
        "MBytes Written/sec": _Known("application", "guest", "write_bytes", "delta", 2.0**20),
        "Average MilliSec/Read": _Known("application", "guest", "read_latency_mean_ns", factor=_MS),
        "Average MilliSec/Write": _Known("application", "guest", "write_latency_mean_ns", factor=_MS),
    },
    "Group Cpu": {
        "% Used": _Known("application", "guest", "used_share", factor=_SHARE),
        "% Ready": _Known("application", "guest", "ready_share", factor=_SHARE),
        "% CoStop": _Known("application", "guest", "costop_share", factor=_SHARE),
        "% Max Limited": _Known("application", "guest", "limited_share", factor=_SHARE),
        "% Swap Wait": _Known("application", "guest", "swap_wait_share", factor=_SHARE),
    },
    "Vcpu": {
        "% Used": _Known("application", "guest", "used_share", factor=_SHARE),
        "% Ready": _Known("application", "guest", "ready_share", factor=_SHARE),
    },
    "Physical Cpu": {
        "% Util Time": _Known("client", "host", "busy_share", factor=_SHARE),
        "% Core Util Time": _Known("client", "host", "core_busy_share", factor=_SHARE),
    },
    "Memory": {
        "Free MBytes": _Known("client", "host", "available_bytes", factor=2.0**20),
        "Memory Overcommit (1 Minute Avg)": _Known("client", "host", "overcommit_share"),
        "Swap Used MBytes": _Known("client", "host", "swap_used_bytes", factor=2.0**20),
    },
    "Network Port": {
        "MBits Received/sec": _Known("client", "net", "in_bytes", "delta", _MBIT),
        "MBits Transmitted/sec": _Known("client", "net", "out_bytes", "delta", _MBIT),
        "% Outbound Packets Dropped": _Known("client", "net", "out_dropped_share", factor=_SHARE),
        "% Received Packets Dropped": _Known("client", "net", "in_dropped_share", factor=_SHARE),
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
        groups = _groups(log.paths, into)
        if not groups:
            raise NotTaken("is an esxtop file without disks, processors and memory: save it with all fields")
        for t_ns, row in times(log, into):
            for host, columns in groups.items():
                interval_ns = into.interval_ns(host, t_ns)
                if into.is_late(host, t_ns):
                    continue
                for (tier, source), own in columns.items():
                    readings = _readings(own, row, interval_ns)
                    into.add(readings, host=host, t_ns=t_ns, interval_ns=interval_ns or 0, tier=tier, source=source)


def _readings(columns: Sequence[tuple[int, str, _Known]], row: Sequence[str], interval_ns: int | None) -> list[Reading]:
    found = []
    for place, entity, known in columns:
        value = number(row[place]) if place < len(row) else None
        if value is None or (known.kind == "delta" and interval_ns is None):
            continue
        scaled = value * known.factor * ((interval_ns or 0) / 1e9 if known.kind == "delta" else 1.0)
        found.append(Reading(entity, known.metric, known.kind, scaled))
    return found


def _groups(paths: Mapping[int, Path], into: Into) -> dict[str, dict[tuple[str, str], list[tuple[int, str, _Known]]]]:
    groups: dict[str, dict[tuple[str, str], list[tuple[int, str, _Known]]]] = {}
    for place, path in paths.items():
        known = _KNOWN.get(path.object, {}).get(path.counter)
        if known is None:
            into.taken.ignore(path.name, "no use is made of it")
            continue
        columns = groups.setdefault(path.host, {}).setdefault((known.tier, known.source), [])
        columns.append((place, _entity(path), known))
        into.taken.counters[path.name] = f"{known.source} {known.metric}"
    return groups


def _entity(path: Path) -> str:
    """The instance, without the numbers that esxtop puts before names of virtual machines: `1234:db01` is `db01`."""
    if path.object == "Physical Cpu":
        return "cpu" if path.instance == "_Total" else f"cpu/{path.instance}"
    if path.object == "Memory":
        return "memory"
    parts = [part for part in path.instance.split(":") if part]
    named = [part for part in parts if not part.isdecimal()] or parts
    return ":".join(named) if path.object in ("Group Cpu", "Vcpu", "Virtual Disk") else path.instance
