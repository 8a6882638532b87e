"""Pressure stall information: the share of time in which work waited for CPU, I/O or memory, from /proc/pressure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile
from assay.telemetry.columns import Reading

_RESOURCES = ("cpu", "io", "memory")
_LINE = re.compile(r"^(some|full)[ \t](?:[^\n]*[ \t])?total=([0-9]{1,20})[ \t]*$", re.MULTILINE | re.ASCII)

Stalled = dict[str, dict[str, int]]
"""Microseconds stalled since boot, by resource and `some` or `full`."""


def parse_pressure(text: str) -> dict[str, int]:
    """Microseconds by `some` (any task waited) and `full` (all did) from the text of one file of /proc/pressure.

    `total` counts microseconds (kernel documentation, accounting/psi). The averages beside it are left aside: they look
    back over 10 s and more and would smear a point's pressure over its neighbours. `full` is missing for `cpu` before
    kernel 5.13.

    Raises
    ------
    NotSupported
        The text has no such line.
    """
    found = {name: int(total) for name, total in _LINE.findall(text)}
    if not found:
        raise NotSupported("/proc/pressure has no line 'some' or 'full' with total=")
    return found


class PsiCollector:
    """Shares of time in which some or all work waited for a resource.

    Parameters
    ----------
    folder
        The folder with the files cpu, io and memory, for tests.
    """

    name = "psi"
    tier = "client"
    source = "host"

    def __init__(self, folder: str | Path = "/proc/pressure") -> None:
        self._files = {resource: ProcFile(Path(folder) / resource) for resource in _RESOURCES}

    def sample(self) -> Stalled:
        """Read the counters.

        Raises
        ------
        NotSupported
            The kernel was built or booted without pressure stall information, or a file has another form.
        """
        return {resource: parse_pressure(file.read()) for resource, file in self._files.items()}

    def readings(self, before: Stalled, after: Stalled, interval_ns: int) -> Iterator[Reading]:
        """Shares between two samples."""
        for resource, totals in after.items():
            for name, total_us in totals.items():
                stalled_us = total_us - before[resource].get(name, total_us)
                # The kernel folds stalls in at moments of its own, so a share may come out slightly above 1.
                share = min(1.0, max(0.0, stalled_us * 1000 / interval_ns))
                yield Reading(f"psi-{resource}", f"{name}_share", "gauge", share)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
