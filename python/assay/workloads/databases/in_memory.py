"""Whether work on a database asked the storage at all, or its data came from memory."""

from __future__ import annotations

from assay.base.units import format_bytes, format_share
from assay.workloads.databases.shapes import Storage
from assay.workloads.databases.storage import bytes_per_s_of, data_devices, iops_of

READ_LEAST_SHARE = 0.05
"""Queries that read less than this share of their data from storage were answered by memory: a test reads
most tables, and a column store keeps about an eighth of the bytes of rows with their indexes."""
READS_LEAST = 0.2
"""The same of transactions, in reads each: a tenth of those of the EQL-OLTP study (2,300 reads, 1,054 transactions)."""


def queries_in_memory(storage: Storage, data_bytes: float) -> str:
    """What queries read from storage, where that is little of their data; empty where it is not, or not known."""
    read = _read(storage)
    if read is None or not data_bytes or read[1] >= READ_LEAST_SHARE * data_bytes:
        return ""
    asked = f"{format_bytes(round(read[1]))} of {format_bytes(round(data_bytes))} of data"
    return f"{asked} were read from storage{_hits(storage)}"


def transactions_in_memory(storage: Storage, transactions: float) -> str:
    """How many reads a transaction asked of storage, where they are few; empty where not, or where it is not known."""
    read = _read(storage)
    if read is None or not transactions or read[0] >= READS_LEAST * transactions:
        return ""
    return f"a transaction asked for {read[0] / transactions:.2g} reads of storage{_hits(storage)}"


def _read(storage: Storage) -> tuple[float, float] | None:
    """Reads and bytes read of the window: at the devices of the data, else as the servers asked; None: not known."""
    seconds, devices, asked = storage.get("seconds"), data_devices(storage), storage.get("database") or {}
    if not seconds:
        return None
    if devices:
        reads, moved = (sum(of(one, "read") for one in devices) for of in (iops_of, bytes_per_s_of))
        return reads * seconds, moved * seconds
    iops, rate = asked.get("read_iops"), asked.get("read_bytes_per_s")
    return None if iops is None or rate is None else (iops * seconds, rate * seconds)


def _hits(storage: Storage) -> str:
    hits = storage.get("buffer_hit_share")
    return "" if hits is None else f", {format_share(hits, 2)} of page requests were answered from the server's memory"
