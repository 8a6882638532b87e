"""Pages that memory gave up and fetched again, from /proc/vmstat, and how much memory there is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile
from assay.telemetry.columns import Reading

_METRICS = {
    "pswpin": "pages_in_count",
    "pswpout": "pages_out_count",
    "pgmajfault": "major_faults_count",
    "workingset_refault": "refaults_count",
    "workingset_refault_file": "refaults_count",
    "workingset_refault_anon": "refaults_count",
}
"""Metric of each counter; refaults, pages that were given up and soon wanted again, are two counters since 5.9."""

_LINE = re.compile(rf"^({'|'.join(_METRICS)}) ([0-9]{{1,20}})$", re.MULTILINE | re.ASCII)


class PagingCollector:
    """Pages swapped in and out, faults that waited for storage, refaults, and the size of memory.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "paging"
    tier = "client"
    source = "host"

    def __init__(self, path: str | Path = "/proc/vmstat") -> None:
        self._file = ProcFile(path)
        self._total_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def sample(self) -> dict[str, int]:
        """Read the counters.

        Raises
        ------
        NotSupported
            The file is missing, or counts nothing of it.
        """
        found: dict[str, int] = {}
        for name, count in _LINE.findall(self._file.read()):
            found[_METRICS[name]] = found.get(_METRICS[name], 0) + int(count)
        if not found:
            raise NotSupported(f"/proc/vmstat has none of {', '.join(_METRICS)}")
        return found

    def readings(self, before: dict[str, int], after: dict[str, int], interval_ns: int) -> Iterator[Reading]:
        """Counts between two samples."""
        del interval_ns
        for metric, count in after.items():
            if count >= before.get(metric, count):
                yield Reading("memory", metric, "delta", float(count - before.get(metric, count)))
        yield Reading("memory", "total_bytes", "gauge", float(self._total_bytes))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
