"""I/O that the storage under databases saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from assay.record.shapes.point import Point
from assay.workloads.capabilities import OnDatabases
from assay.workloads.databases.shapes import Device, Storage
from assay.workloads.databases.storage import Side, bytes_per_s_of, data_devices, iops_of
from assay.workloads.registry import workload_recorded
from assay.workloads.seen import SeenIo


def seen_io(
    storage: Storage,
    *,
    facts: Mapping[str, float | str | None] | None = None,
    reasons: Sequence[str] = (),
    reads_alone: bool = False,
) -> SeenIo | None:
    """I/O under the data, where anything counted it.

    Parameters
    ----------
    storage
        Figures of `assay.workloads.databases.storage`; empty where there are none.
    facts
        What else is known of it, under the names of docs/studies.md.
    reasons
        What explains that it is not more or less.
    reads_alone
        Whether writes do not count.
    """
    devices = data_devices(storage)
    database = storage.get("database") or {}

    sides: tuple[Side, ...] = ("read",) if reads_alone else ("read", "write")

    def total(key: str, of_device: Callable[[Device, Side], float], *sides: Side) -> float:
        """Sum over all devices, or else what the servers asked."""
        if not devices:
            return sum(database.get(f"{side}_{key}") or 0.0 for side in sides)
        return sum(of_device(one, side) for one in devices for side in sides)

    reads, writes = total("iops", iops_of, "read"), total("iops", iops_of, *sides[1:])
    moved = total("bytes_per_s", bytes_per_s_of, *sides)
    iops = reads + writes
    if not iops or not moved:
        return None
    return SeenIo(
        iops=iops,
        size_mean_bytes=moved / iops,
        read_share=reads / iops,
        by_devices=bool(devices),
        devices=frozenset(str(device["device"]) for device in storage.get("devices") or ()),
        facts=facts or {},
        reasons=tuple(reasons),
    )


def seen_at(point: Point) -> SeenIo | None:
    """I/O that the storage under a point's databases saw; None where nothing counted it, or it ran on none."""
    kind = workload_recorded(point)
    return kind.seen(point) if isinstance(kind, OnDatabases) else None
