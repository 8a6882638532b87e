"""Which programs read, write and compute most, from /proc/PID/io and /proc/PID/stat (proc(5)).

`read_bytes` and `write_bytes` of a process are what it caused at the device, not what it asked the page cache for. The
kernel adds those of a child to its parent's when the parent waits for it; what was seen of the child is taken off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.columns import Reading

EVERY_S = 15.0
"""Between two looks: each costs three reads a process."""

PROGRAMS_MAX = 20
"""Programs whose values are kept. Those with most bytes come first, then those with most processor time."""

_TICKS = os.sysconf("SC_CLK_TCK")
_NAME_MAX = 15


class Program(NamedTuple):
    """Counters of one process."""

    name: str
    read_bytes: int
    write_bytes: int
    cpu_ticks: int
    parent: int = 0


class Look(NamedTuple):
    """All processes at one moment."""

    at_ns: int
    processes: dict[tuple[int, int], Program]


class ProcessesCollector:
    """Bytes and processor time by program; a look each quarter of a minute.

    Parameters
    ----------
    proc
        The folder, for tests.
    """

    name = "processes"
    tier = "client"
    source = "process"

    def __init__(self, proc: str | Path = "/proc", every_s: float = EVERY_S) -> None:
        self._proc = os.fspath(proc)
        self._every_s = every_s
        self._last: Look | None = None
        self._before: Look | None = None

    def sample(self) -> tuple[Look | None, Look]:
        """Look at all processes, where it is time; the look before and this one.

        Raises
        ------
        NotSupported
            The I/O of other users' processes may not be read.
        """
        now_ns = time.monotonic_ns()
        if self._last is None or now_ns - self._last.at_ns >= self._every_s * 1e9:
            self._before, self._last = self._last, Look(now_ns, self._look())
        return self._before, self._last

    def _look(self) -> dict[tuple[int, int], Program]:
        found = {}
        refused = 0
        for name in os.listdir(self._proc):
            if not name.isdecimal():
                continue
            try:
                stat = self._text(name, "stat")
                io = self._text(name, "io")
            except PermissionError:
                refused += 1
                continue
            except OSError:
                # It has ended.
                continue
            program = _program(stat, io)
            if program is not None:
                found[int(name), program[0]] = program[1]
        if refused and refused >= len(found):
            raise NotSupported(
                "the I/O of other users' processes may not be read; run as root, or give the capability CAP_SYS_PTRACE"
            )
        return found

    def _text(self, pid: str, name: str) -> str:
        descriptor = os.open(f"{self._proc}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 4096).decode("utf-8", "replace")
        finally:
            os.close(descriptor)

    def readings(
        self, before: tuple[Look | None, Look], after: tuple[Look | None, Look], interval_ns: int
    ) -> Iterator[Reading]:
        """What programs did between two looks, once; brought to the interval as rates over the time between looks."""
        old, new = after
        if old is None or before[1].at_ns == new.at_ns:
            return
        elapsed_ns = new.at_ns - old.at_ns
        grown: dict[str, list[int]] = {}
        inherited: dict[int, list[int]] = {}
        for key, program in old.processes.items():
            if key not in new.processes:
                told = inherited.setdefault(program.parent, [0, 0])
                told[0] += program.read_bytes
                told[1] += program.write_bytes
        for key, program in new.processes.items():
            past = old.processes.get(key)
            own = grown.setdefault(program.name, [0, 0, 0])
            for place, name in enumerate(("read_bytes", "write_bytes", "cpu_ticks")):
                count = getattr(program, name) - (getattr(past, name) if past else 0)
                if place < 2:
                    count -= inherited.get(key[0], (0, 0))[place]
                own[place] += max(count, 0)
        chosen = sorted(grown, key=lambda name: (-(grown[name][0] + grown[name][1]), -grown[name][2]))[:PROGRAMS_MAX]
        scale = interval_ns / elapsed_ns
        for name in chosen:
            read, written, ticks = grown[name]
            if read or written or ticks:
                yield Reading(name, "read_bytes", "delta", read * scale)
                yield Reading(name, "write_bytes", "delta", written * scale)
                yield Reading(name, "busy_share", "gauge", ticks / _TICKS / (elapsed_ns / 1e9))

    def close(self) -> None:
        """Nothing is held."""


def _program(stat: str, io: str) -> tuple[int, Program] | None:
    """Start time and counters of a process; None where a file has another form.

    The name may hold blanks and brackets, so that fields are counted from the last bracket.
    """
    name = stat[stat.find("(") + 1 : stat.rfind(")")][:_NAME_MAX]
    fields = stat[stat.rfind(")") + 2 :].split()
    counters = dict(line.partition(": ")[::2] for line in io.splitlines())
    try:
        return int(fields[19]), Program(
            name,
            int(counters["read_bytes"]),
            int(counters["write_bytes"]),
            int(fields[11]) + int(fields[12]),
            int(fields[1]),
        )
    except (IndexError, KeyError, ValueError):
        return None
