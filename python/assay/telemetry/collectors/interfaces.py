"""What network interfaces carried, dropped and got wrong, from /proc/net/dev (proc(5)), and how fast they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.base.errors import NotSupported
from assay.targets.kernel import read_number
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading

_FIELDS = {
    "in_bytes": 0, "in_packets_count": 1, "in_errors_count": 2, "in_dropped_count": 3, "out_bytes": 8,
    "out_packets_count": 9, "out_errors_count": 10, "out_dropped_count": 11,
}  # fmt: skip
"""Places of the counters behind the interface's name."""

SPEED_EVERY = 60
"""Samples between two looks at the speed of an interface, which changes when a cable is plugged in."""


def parse_interfaces(text: str) -> dict[str, dict[str, int]]:
    """Counters by interface from the text of /proc/net/dev; the loopback is left out, and so are lines of another form.

    Raises
    ------
    NotSupported
        There is no interface.
    """
    found = {}
    for line in text.splitlines()[2:]:
        name, mark, rest = line.partition(":")
        fields = rest.split()
        if mark and len(fields) >= 12 and all(map(is_count, fields[:12])) and name.strip() != "lo":
            found[name.strip()] = {metric: int(fields[place]) for metric, place in _FIELDS.items()}
    if not found:
        raise NotSupported("/proc/net/dev has no interface but the loopback")
    return found


class InterfacesCollector:
    """Bytes, packets, errors and drops of each interface, and the share of its speed that the fuller direction takes.

    Parameters
    ----------
    path, folder
        The file, and the folder of interfaces in /sys, for tests.
    """

    name = "interfaces"
    tier = "client"
    source = "net"

    def __init__(self, path: str | Path = "/proc/net/dev", folder: str | Path = "/sys/class/net") -> None:
        self._file = ProcFile(path)
        self._folder = Path(folder)
        self._speeds: dict[str, int | None] = {}
        self._samples = 0

    def sample(self) -> dict[str, dict[str, int]]:
        """Read the counters.

        Raises
        ------
        NotSupported
            The file is missing, or names no interface.
        """
        if self._samples % SPEED_EVERY == 0:
            self._speeds = {}
        self._samples += 1
        return parse_interfaces(self._file.read())

    def readings(
        self, before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], interval_ns: int
    ) -> Iterator[Reading]:
        """Values between two samples of the interfaces that are in both; nothing where counters were reset."""
        for name, counters in after.items():
            old = before.get(name)
            grown = {metric: count - old[metric] for metric, count in counters.items()} if old else {}
            if not grown or any(count < 0 for count in grown.values()):
                continue
            for metric, count in grown.items():
                yield Reading(name, metric, "delta", float(count))
            speed = self._speed(name)
            if speed:
                yield Reading(name, "rate_bits_per_s", "gauge", float(speed))
                fuller = max(grown["in_bytes"], grown["out_bytes"]) * 8e9 / interval_ns
                yield Reading(name, "busy_share", "gauge", min(fuller / speed, 1.0))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _speed(self, name: str) -> int | None:
        """Bits per second; None where the kernel does not know, as of virtual interfaces."""
        if name not in self._speeds:
            megabits = read_number(self._folder / name / "speed")
            self._speeds[name] = megabits * 10**6 if megabits is not None and megabits > 0 else None
        return self._speeds[name]
