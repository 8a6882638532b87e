"""I/O that the storage under databases saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.workloads.databases.storage import data_devices
from assay.workloads.workload import Record, SeenIo


def seen_io(
    storage: Record,
    *,
    facts: Mapping[str, Any] | None = None,
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
    counted = devices or [storage.get("database") or {}]
    sides = ("read",) if reads_alone else ("read", "write")
    reads, writes, moved = (
        sum(one.get(key) or 0.0 for one in counted for key in keys)
        for keys in (
            ("read_iops",),
            [f"{side}_iops" for side in sides if side != "read"],
            [f"{side}_bytes_per_s" for side in sides],
        )
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
