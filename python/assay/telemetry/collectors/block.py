"""What block devices did, from /proc/diskstats (kernel documentation, admin-guide/iostats)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from assay.base.errors import NotSupported
from assay.targets.kernel import read_number
from assay.telemetry.collectors.proc_file import ProcFile, is_count
from assay.telemetry.columns import Reading

SECTOR_BYTES = 512
"""The unit of /proc/diskstats, whatever the device's own sector is."""

_MS_WRAP = 2**32
"""The kernel prints milliseconds as 32-bit numbers, which wrap after 50 days of accumulated time."""

_NS_PER_MS = 10**6


class DeviceCounters(NamedTuple):
    """Counters of one device since it appeared; of times only differences modulo 2**32 have a meaning."""

    read_ios: int
    read_sectors: int
    read_ms: int
    write_ios: int
    write_sectors: int
    write_ms: int
    busy_ms: int
    weighted_ms: int
    flush_ios: int | None
    """None before kernel 5.5."""


def parse_diskstats(text: str, devices: Collection[str]) -> dict[str, DeviceCounters]:
    """Counters of the named devices from the text of /proc/diskstats.

    A line has 14 columns, 18 since kernel 4.18 (discards), 20 since 5.5 (flushes); more may come. Counted from 1, those
    used are: 3 name, 4 reads, 6 sectors read, 7 ms reading, 8 writes, 10 sectors written, 11 ms writing, 13 ms busy,
    14 weighted ms, 19 flushes. Lines of other devices or of another form are skipped.
    """
    found = {}
    for line in text.splitlines():
        # Of thousands of lines few are of the devices.
        if (*line.split(None, 3), "", "", "")[2] not in devices:
            continue
        fields = line.split()
        if len(fields) < 14 or not all(is_count(field) for field in fields[3:]):
            continue
        counts = [int(field) for field in fields[3:]]
        found[fields[2]] = DeviceCounters(
            read_ios=counts[0],
            read_sectors=counts[2],
            read_ms=counts[3],
            write_ios=counts[4],
            write_sectors=counts[6],
            write_ms=counts[7],
            busy_ms=counts[9],
            weighted_ms=counts[10],
            flush_ios=counts[15] if len(counts) >= 17 else None,
        )
    return found


_PARTS = re.compile(r"^(?:z?ram|loop|fd|sr)\d+$")
"""Devices that hold no data of their own."""


def whole_devices(folder: str | Path = "/sys/block") -> list[str]:
    """Block devices of this host that hold data: disks, and what is built on them; no partitions."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [name for name in names if not _PARTS.match(name) and (read_number(Path(folder) / name / "size") or 0) > 0]


DEVICES_MAX = 256
"""Devices that are recorded: each has some thirteen series."""


def busiest(
    devices: Collection[str],
    roles: Collection[str],
    notice: Callable[[str], None],
    path: str | Path = "/proc/diskstats",
) -> list[str]:
    """Devices to record: all, or of very many those with a role and those that did most I/Os since the host started."""
    if len(devices) <= DEVICES_MAX:
        return sorted(devices)
    file = ProcFile(path)
    try:
        counters = parse_diskstats(file.read(), devices)
    except NotSupported:
        counters = {}
    finally:
        file.close()
    ios = {name: one.read_ios + one.write_ios for name, one in counters.items()}
    chosen = sorted(devices, key=lambda name: (name not in roles, -ios.get(name, 0), name))[:DEVICES_MAX]
    notice(
        f"of {len(devices):,} block devices the {DEVICES_MAX} that did most I/Os since the host started are recorded;"
        " name others with --volume"
    )
    return sorted(chosen)


class BlockCollector:
    """I/Os, bytes, mean latency and size of reads and writes apart; flushes, mean queue and busy share of devices.

    Parameters
    ----------
    devices
        Kernel names such as `vda`, `nvme0n1`, `dm-0`; name one layer of a stack, or its I/Os are counted twice.
    roles
        Role of a device where it has one.
    path
        The file, for tests.
    totals
        Whether I/Os and bytes of both directions are recorded together too, as `ios_count` and `bytes`: a percentile
        of their sum cannot be found from those of its parts.
    """

    name = "block"
    tier = "storage"
    source = "block"

    def __init__(
        self,
        devices: Sequence[str],
        *,
        roles: Mapping[str, str] | None = None,
        path: str | Path = "/proc/diskstats",
        totals: bool = False,
    ) -> None:
        self._totals = totals
        self._devices = frozenset(devices)
        self._roles = dict(roles or {})
        self._file = ProcFile(path)

    def sample(self) -> dict[str, DeviceCounters]:
        """Read the counters of the devices that are there.

        Raises
        ------
        NotSupported
            The file is missing, or has none of the devices.
        """
        found = parse_diskstats(self._file.read(), self._devices)
        if not found:
            names = sorted(self._devices)
            more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
            raise NotSupported(f"{self._file.path} has no device {', '.join(names[:8])}{more}")
        return found

    def readings(
        self, before: dict[str, DeviceCounters], after: dict[str, DeviceCounters], interval_ns: int
    ) -> Iterator[Reading]:
        """Values between two samples of the devices that are in both."""
        for device, counters in after.items():
            if device in before:
                role = self._roles.get(device, "")
                for metric, kind, value in _device_values(before[device], counters, interval_ns):
                    yield Reading(device, metric, kind, value, role)
                if self._totals:
                    yield from _both(device, role, before[device], counters)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _device_values(before: DeviceCounters, after: DeviceCounters, interval_ns: int) -> Iterator[tuple[str, str, float]]:
    """Metric, kind and value of one device; nothing if its counters were reset, as when it was detached.

    Latency and queue are those of iostat(1): time over I/Os finished, weighted time over the interval.
    """
    directions = (
        (
            "read",
            after.read_ios - before.read_ios,
            after.read_sectors - before.read_sectors,
            _elapsed_ms(before.read_ms, after.read_ms),
        ),
        (
            "write",
            after.write_ios - before.write_ios,
            after.write_sectors - before.write_sectors,
            _elapsed_ms(before.write_ms, after.write_ms),
        ),
    )
    if any(ios < 0 or sectors < 0 for _, ios, sectors, _ in directions):
        return
    for direction, ios, sectors, spent_ms in directions:
        yield f"{direction}_ios_count", "delta", float(ios)
        yield f"{direction}_bytes", "delta", float(sectors * SECTOR_BYTES)
        if ios:
            yield f"{direction}_latency_mean_ns", "gauge", spent_ms * _NS_PER_MS / ios
            yield f"{direction}_size_mean_bytes", "gauge", sectors * SECTOR_BYTES / ios
    if before.flush_ios is not None and after.flush_ios is not None:
        yield "flush_ios_count", "delta", float(max(0, after.flush_ios - before.flush_ios))
    busy = _elapsed_ms(before.busy_ms, after.busy_ms) * _NS_PER_MS / interval_ns
    yield "queue_mean_count", "gauge", _elapsed_ms(before.weighted_ms, after.weighted_ms) * _NS_PER_MS / interval_ns
    # Busy time is counted in clock ticks, so it may exceed a short interval by one.
    yield "busy_share", "gauge", min(1.0, busy)


def _both(device: str, role: str, before: DeviceCounters, after: DeviceCounters) -> Iterator[Reading]:
    """I/Os and bytes of both directions; nothing where counters were reset."""
    ios = after.read_ios - before.read_ios + after.write_ios - before.write_ios
    sectors = after.read_sectors - before.read_sectors + after.write_sectors - before.write_sectors
    if ios >= 0 and sectors >= 0:
        yield Reading(device, "ios_count", "delta", float(ios), role)
        yield Reading(device, "bytes", "delta", float(sectors * SECTOR_BYTES), role)


def _elapsed_ms(before_ms: int, after_ms: int) -> int:
    """Milliseconds between two values of a counter that wraps.

    Examples
    --------
    >>> _elapsed_ms(10, 25), _elapsed_ms(2**32 - 10, 5), _elapsed_ms(25, 24)
    (15, 15, 0)
    """
    elapsed_ms = (after_ms - before_ms) % _MS_WRAP
    # The kernel adds up counters of all CPUs without stopping them: a sum may seem to step back, which is no wrap.
    return elapsed_ms if elapsed_ms < _MS_WRAP // 2 else 0
