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
    _, read = own_reads(storage)
    if read is None or not data_bytes or read >= READ_LEAST_SHARE * data_bytes:
        return ""
    asked = f"{format_bytes(round(read))} of {format_bytes(round(data_bytes))} of data"
    return f"{asked} were read from storage{_hits(storage)}"


def transactions_in_memory(storage: Storage, transactions: float, work: str = "transaction") -> str:
    """How many reads a transaction asked of storage, where they are few; empty where not, or where it is not known.

    `work` is what transactions are called.
    """
    reads, _ = own_reads(storage)
    if reads is None or not transactions or reads >= READS_LEAST * transactions:
        return ""
    return f"a {work} asked for {reads / transactions:.2g} reads of storage{_hits(storage)}"


def own_reads(storage: Storage) -> tuple[float | None, float | None]:
    """Reads and bytes of the window that databases can have read from storage; None: not known.

    Devices serve other programs as well, and a page cache answers part of what servers ask for: the least of both is
    the most that came from storage for them.
    """
    seconds, devices, asked = storage.get("seconds"), data_devices(storage), storage.get("database") or {}
    if not seconds:
        return None, None
    least: list[float | None] = []
    for key, of in (("read_iops", iops_of), ("read_bytes_per_s", bytes_per_s_of)):
        known = [sum(of(one, "read") for one in devices)] if devices else []
        known += [rate] if (rate := asked.get(key)) is not None else []
        least.append(min(known) * seconds if known else None)
    return least[0], least[1]


def _hits(storage: Storage) -> str:
    hits = storage.get("buffer_hit_share")
    return "" if hits is None else f", {format_share(hits, 2)} of page requests were answered from the server's memory"
