"""Tasks that wait for a processor, from /proc/loadavg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading


class RunQueueCollector:
    """Tasks that could run and have no processor, at the end of the interval, and how many processors there are.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "run queue"
    tier = "client"
    source = "host"

    def __init__(self, path: str | Path = "/proc/loadavg") -> None:
        self._file = ProcFile(path)
        self._cpus = os.cpu_count() or 1

    def sample(self) -> int:
        """Tasks that run or could run: the number before the slash (proc(5)).

        Raises
        ------
        NotSupported
            The file is missing or has another form.
        """
        fields = self._file.read().split()
        runnable = fields[3].partition("/")[0] if len(fields) > 3 else ""
        if not is_count(runnable):
            raise NotSupported("/proc/loadavg has no number of tasks that can run")
        return int(runnable)

    def readings(self, before: int, after: int, interval_ns: int) -> Iterator[Reading]:
        """Gauges at the end of the interval."""
        del before, interval_ns
        yield Reading("cpu", "waiting_count", "gauge", float(max(after - self._cpus, 0)))
        yield Reading("cpu", "cpu_count", "gauge", float(self._cpus))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
