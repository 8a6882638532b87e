"""Reports of vmstat: the first is of the time since the host's start, and is left out; `-t` writes times.

Source: procps, `vmstat.c`; amounts are KiB, blocks 1,024 bytes.
"""

from __future__ import annotations

import re
from typing import ClassVar, TextIO

from assay.telemetry.importers.clock import Clock, Untimed
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.sysstat import cells, with_busy
from assay.telemetry.importers.taken import Counter, Counters

_TITLES = re.compile(r"^\s*r\s+b\s+swpd\s+free\b.*\bid\s+wa\b", re.MULTILINE)
_PROGRAM = "vmstat -t 10"

_CPU: Counters = {
    "us": Counter("user_share", factor=0.01), "sy": Counter("system_share", factor=0.01),
    "id": Counter("idle_share", factor=0.01), "wa": Counter("iowait_share", factor=0.01),
    "st": Counter("steal_share", factor=0.01), "gu": Counter("guest_share", factor=0.01),
    "r": Counter("waiting_count"), "b": Counter("blocked_count"),
}  # fmt: skip
_MEMORY: Counters = {
    "free": Counter("free_bytes", factor=1024), "si": Counter("swap_in_bytes", "delta", 1024),
    "so": Counter("swap_out_bytes", "delta", 1024), "bi": Counter("paged_in_bytes", "delta", 1024),
    "bo": Counter("paged_out_bytes", "delta", 1024), "swpd": Counter("swap_used_bytes", factor=1024),
}  # fmt: skip


class Vmstat(Importer):
    """vmstat."""

    name: ClassVar[str] = "vmstat"
    title: ClassVar[str] = "vmstat (-t)"

    def recognises(self, head: str) -> bool:
        """Its line of titles."""
        return _TITLES.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory and paging of every report but the first of each run."""
        clock, untimed = Clock(into, file), Untimed(into, _PROGRAM)
        host, taken = into.options.host, into.taken
        titles: list[str] = []
        is_first = True
        for raw in file:
            line = raw.strip()
            if _TITLES.match(line):
                # Titles come again every screen; a run of its own begins with a line of groups before them.
                titles = [one for one in line.split() if one.islower() and "-" not in one]
                continue
            if not line or line.startswith("procs"):
                continue
            words = line.split()
            record = cells(titles, " ".join(words[: len(titles)]))
            if record is None or not words[0].isdigit():
                taken.not_understood("lines", line, len(words))
                continue
            stamp = " ".join(words[len(titles) :])
            at = moment(stamp) if stamp else None
            if stamp and at is None:
                taken.not_understood("reports whose time is not understood", stamp, len(record))
                continue
            t_ns = clock.t_ns(at) if at is not None else untimed.next_ns()
            interval_ns = into.advance(host, t_ns)
            if is_first or not interval_ns:
                why = "it is of the time since the host's start" if is_first else "their time was before"
                taken.ignore("the first report" if is_first else "reports while the clock was behind", why, len(record))
                is_first = False
                continue
            of_cpu = {name: value for name, value in record.items() if name not in _MEMORY}
            of_memory = {name: value for name, value in record.items() if name in _MEMORY}
            found = with_busy(taken.readings(of_cpu, _CPU, entity="cpu", interval_ns=interval_ns, source="host"))
            found += taken.readings(of_memory, _MEMORY, entity="memory", interval_ns=interval_ns, source="host")
            into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier="client", source="host")
