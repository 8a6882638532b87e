"""Counters of sysstat by the names that iostat, sar and sadf gave them from version 9 to 12, and lines they share.

Sources: `iostat.c`, `rd_stats.c`, `pr_stats.c`, `json_stats.c` of sysstat; its CHANGES for names that went.
Rates are per second; kB are 1,024 bytes, sectors and Blk 512.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.telemetry.columns import Reading
from assay.telemetry.importers.taken import Counter, Counters, busy_of

HEADER = re.compile(
    r"^(?P<system>[\w/.-]+) (?P<release>\S+) \((?P<host>[^)]*)\)\s+(?P<date>\S.*?)(?:\s+_(?P<machine>\S+?)_)?"
    r"(?:\s+\((?P<cpus>\d+) CPU\))?\s*$",
    re.ASCII | re.MULTILINE,
)
"""The first line of a run; old versions say neither machine nor processors."""

_OVERALL = "it counts since the host's start"
_NOT_MEASURED = "it is not measured: sysstat made it of utilisation, and took it away in version 12"
_SIDES = (("r", "read", "read"), ("w", "write", "wrtn"), ("d", "discard", "dscd"))
_UNITS = (("sec", 512.0), ("kB", 1024.0), ("MB", 1024.0**2))


def _columns() -> Counters:
    found: dict[str, Counter | str] = {
        "f/s": Counter("flush_ios_count", "delta"),
        "f_await": Counter("flush_latency_mean_ns", factor=1e6, of="f/s"),
        "tps": Counter("ios_count", "delta"),
        "await": Counter("latency_mean_ns", factor=1e6, of="tps+r/s+w/s+d/s"),
        "svctm": _NOT_MEASURED,
        "rqm/s": Counter("merged_ios_count", "delta"),
    }
    for letter, side, short in _SIDES:
        found[f"{letter}/s"] = Counter(f"{side}_ios_count", "delta")
        found[f"{letter}rqm/s"] = Counter(f"{side}_merged_ios_count", "delta")
        found[f"{letter}_await"] = Counter(f"{side}_latency_mean_ns", factor=1e6, of=f"{letter}/s")
        found[f"{letter}areq-sz"] = Counter(f"{side}_size_mean_bytes", factor=1024.0, of=f"{letter}/s")
        for unit, factor in _UNITS:
            found[f"{letter}{unit}/s"] = Counter(f"{side}_bytes", "delta", factor)
        for unit, factor in (("Blk", 512.0), *_UNITS[1:]):
            found[f"{unit}_{short}/s"] = Counter(f"{side}_bytes", "delta", factor)
            found[f"{unit}_{short}"] = "it is the amount of the rate that is taken"
    for unit, factor in _UNITS:
        found[f"{unit}/s"] = Counter("io_bytes", "delta", factor)
    for name in ("avgqu-sz", "aqu-sz"):
        found[name] = Counter("queue_mean_count")
    any_io = "tps+r/s+w/s+d/s"
    found["avgrq-sz"] = Counter("size_mean_bytes", factor=512.0, of=any_io)
    found["areq-sz"] = Counter("size_mean_bytes", factor=1024.0, of=any_io)
    for name in ("%util", "util", "util-percent"):
        found[name] = Counter("busy_share", factor=0.01)
    return found


DEVICE = _columns()
"""Columns of iostat and of `sar -d`."""

DISK: Counters = {
    **DEVICE, "rd_sec": DEVICE["rsec/s"], "wr_sec": DEVICE["wsec/s"], "rd_sec/s": DEVICE["rsec/s"],
    "wr_sec/s": DEVICE["wsec/s"], "dc_sec": DEVICE["dsec/s"], "rkB": DEVICE["rkB/s"], "wkB": DEVICE["wkB/s"],
    "dkB": DEVICE["dkB/s"], "rtps": Counter("read_ios_count", "delta"),
}  # fmt: skip
"""Fields of disks in `sadf`, and columns of `sar -d`."""

_SHARES = {
    "user": "user_share", "usr": "user_share", "nice": "nice_share", "system": "system_share", "sys": "system_share",
    "iowait": "iowait_share", "steal": "steal_share", "irq": "interrupt_share", "soft": "softirq_share",
    "guest": "guest_share", "gnice": "guest_nice_share", "idle": "idle_share",
}  # fmt: skip
CPU: Counters = {
    name: Counter(metric, factor=0.01) for short, metric in _SHARES.items() for name in (short, f"%{short}")
}
"""Shares of processors, with and without percent signs."""


def with_busy(shares: list[Reading]) -> list[Reading]:
    """Shares of a processor, and the share of its time that it worked, where that can be told."""
    busy = busy_of(shares)
    return shares if busy is None else [*shares, Reading(shares[0].entity, "busy_share", "gauge", busy)]


def cells(titles: list[str], line: str) -> Mapping[str, str] | None:
    """A row of a table by the names of its columns; None where the row has not as many.

    Examples
    --------
    >>> cells(["Device", "tps"], "sda 1.5"), cells(["Device", "tps"], "sda")
    ({'Device': 'sda', 'tps': '1.5'}, None)
    """
    found = line.split()
    return dict(zip(titles, found, strict=True)) if len(found) == len(titles) else None
