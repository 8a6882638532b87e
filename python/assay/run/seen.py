"""What the storage under databases saw, as the load of a plan of I/O: the raw profile beside the database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import NotSupported
from assay.workloads.io.plan import Plan, load_plan

BLOCK_LEAST_BYTES, BLOCK_MOST_BYTES = 4 << 10, 1 << 20
"""Blocks of raw profiles: below are no I/Os of databases, and above they are split on their way anyway."""


@dataclass(frozen=True, kw_only=True)
class SeenIo:
    """I/O of databases over the window of a point.

    Attributes
    ----------
    iops
        Reads and writes per second.
    size_mean_bytes
        Mean size of both.
    read_share
        Share of reads, 0 to 1.
    by_devices
        Whether the devices counted; else the servers did, whose reads the kernel's page cache may have answered.
    """

    iops: float
    size_mean_bytes: float
    read_share: float
    by_devices: bool

    @property
    def block_bytes(self) -> int:
        """The power of two nearest to the mean size."""
        power = 1 << max(round(math.log2(self.size_mean_bytes)), 0)
        return min(max(power, BLOCK_LEAST_BYTES), BLOCK_MOST_BYTES)


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
    return SeenIo(iops=iops, size_mean_bytes=moved / iops, read_share=reads / iops, by_devices=bool(devices))


def seen_plan(plan: Plan, point: Mapping[str, Any]) -> Plan:
    """A plan whose activity has the block size and the share of reads that the storage saw in a point.

    Parameters
    ----------
    plan
        A plan with one activity; whatever block size and share it has are replaced.
    point
        A point of transactions.

    Raises
    ------
    NotSupported
        Nobody counted the I/O of the databases, or there was none.
    """
    seen = seen_io(point)
    if seen is None:
        raise NotSupported(
            f"point {point['id']}: no I/O of the database was counted, so there is nothing to compare storage with;"
            " let it run longer, with more warehouses, or on the host of its server"
        )
    data = plan.model_dump(mode="json", exclude_unset=True)
    first = data["activity"][0] | {"block_bytes": seen.block_bytes, "read_share": round(seen.read_share, 2)}
    return load_plan(data | {"activity": [first]}, source="what the storage saw")
