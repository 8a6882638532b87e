"""What the host's memory holds, from /proc/meminfo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from assay.base.errors import NotSupported
from assay.telemetry.collectors.proc_file import ProcFile
from assay.telemetry.columns import Reading

_METRICS = {"MemAvailable": "available_bytes", "Dirty": "dirty_bytes", "Writeback": "writeback_bytes"}
_LINE = re.compile(r"^([A-Za-z]+):[ \t]+([0-9]{1,20}) kB[ \t]*$", re.MULTILINE | re.ASCII)


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by metric from the text of /proc/meminfo, whose kB are 1024 bytes (proc(5)).

    A kernel before 3.14 has no `MemAvailable`; a line that is missing or has another form is left out.

    Raises
    ------
    NotSupported
        No known line is there.
    """
    found = {_METRICS[name]: int(kib) * 1024 for name, kib in _LINE.findall(text) if name in _METRICS}
    if not found:
        raise NotSupported(f"/proc/meminfo has none of {', '.join(_METRICS)}")
    return found


class MemoryCollector:
    """Memory that is available without swapping, dirty, and under writeback.

    Parameters
    ----------
    path
        The file, for tests.
    """

    name = "memory"
    tier = "client"
    source = "host"

    def __init__(self, path: str | Path = "/proc/meminfo") -> None:
        self._file = ProcFile(path)

    def sample(self) -> dict[str, int]:
        """Read the gauges, in bytes by metric.

        Raises
        ------
        NotSupported
            The file is missing or has another form.
        """
        return parse_meminfo(self._file.read())

    def readings(self, before: dict[str, int], after: dict[str, int], interval_ns: int) -> Iterator[Reading]:
        """Gauges at the end of the interval."""
        del before, interval_ns  # A gauge has no past.
        for metric, count in after.items():
            yield Reading("memory", metric, "gauge", float(count))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
