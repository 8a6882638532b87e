"""I/O that the storage under databases saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.workloads.workload import Record, SeenIo


def seen_io(storage: Record, *, facts: Mapping[str, Any] | None = None, reasons: Sequence[str] = ()) -> SeenIo | None:
    """I/O under the data, where anything counted it.

    Parameters
    ----------
    storage
        Figures of `assay.workloads.databases.storage`; empty where there are none.
    facts
        What else is known of it, under the names of docs/studies.md.
    reasons
        What explains that it is not more or less.
    """
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
        facts=facts or {},
        reasons=tuple(reasons),
    )
