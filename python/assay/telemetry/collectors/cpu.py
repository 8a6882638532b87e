"""How the host's CPUs spend their time, from /proc/stat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading


class CpuTimes(NamedTuple):
    """Time all CPUs together have spent since boot, in clock ticks.

    `user` includes time at lower priority (nice) and of guests, `system` includes interrupts.
    """

    user: int
    system: int
    idle: int
    iowait: int
    steal: int


def parse_stat(text: str) -> CpuTimes:
    """Read the times of all CPUs together from the text of /proc/stat.

    Its line `cpu` has user, nice, system, idle, and by the kernel's age iowait, irq, softirq, steal, guest, guest_nice.
    Guest times are contained in user and nice already (proc(5)).

    Raises
    ------
    NotSupported
        The text has no such line.
    """
    for line in text.splitlines():
        name, *fields = line.split() or [""]
        if name != "cpu":
            continue
        if len(fields) < 4 or not all(is_count(field) for field in fields):
            break
        user, nice, system, idle, iowait, irq, softirq, steal, *_ = [*map(int, fields), 0, 0, 0, 0]
        return CpuTimes(user + nice, system + irq + softirq, idle, iowait, steal)
    raise NotSupported("/proc/stat has no line 'cpu' with four or more counters")


class CpuCollector:
    """Shares of the time of all CPUs: user, system, iowait, steal; 1.0 is every CPU all the time.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "cpu"
    tier = "client"
    source = "host"

    def __init__(self, path: str | Path = "/proc/stat") -> None:
        self._file = ProcFile(path)

    def sample(self) -> CpuTimes:
        """Read the counters.

        Raises
        ------
        NotSupported
            The file is missing or has another form.
        """
        return parse_stat(self._file.read())

    def readings(self, before: CpuTimes, after: CpuTimes, interval_ns: int) -> Iterator[Reading]:
        """Shares between two samples; none if no clock tick passed.

        The kernel lets idle and iowait run backwards at times (proc(5)); such a step counts as nothing.
        """
        del interval_ns  # Ticks are counted per CPU, so that their own sum is the better divisor.
        spent = CpuTimes(*(max(0, new - old) for old, new in zip(before, after, strict=True)))
        total = sum(spent)
        if total == 0:
            return
        for metric, ticks in (
            ("user_share", spent.user),
            ("system_share", spent.system),
            ("iowait_share", spent.iowait),
            ("steal_share", spent.steal),
        ):
            yield Reading("cpu", metric, "gauge", ticks / total)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
