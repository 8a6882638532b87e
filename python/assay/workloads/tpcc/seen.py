"""I/O that the storage under databases saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.workloads.workload import SeenIo


def seen_io(point: Mapping[str, Any]) -> SeenIo | None:
    """I/O under the data of a point of transactions, where somebody counted any.

    Parameters
    ----------
    point
        A point with `oltp` (docs/oltp.md).
    """
    storage = point["oltp"]["storage"] or {}
    devices = [device for device in storage.get("devices", ()) if "data" in device["roles"]]
    counted = devices or [storage.get("database") or {}]
    reads, writes, moved = (
        sum(one.get(key) or 0.0 for one in counted for key in keys)
        for keys in (("read_iops",), ("write_iops",), ("read_bytes_per_s", "write_bytes_per_s"))
    )
    iops = reads + writes
    if not iops or not moved:
        return None
    return SeenIo(
        iops=iops,
        size_mean_bytes=moved / iops,
        read_share=reads / iops,
        by_devices=bool(devices),
        devices=frozenset(device["device"] for device in storage.get("devices", ())),
    )
