"""I/O that the storage under databases saw, and what explains that it was not more."""

from __future__ import annotations

from dataclasses import replace

from assay.base.units import count_of, format_bytes, format_latency
from assay.record.shapes.point import Point
from assay.workloads.databases.seen import seen_io as seen_in
from assay.workloads.databases.shapes import Storage
from assay.workloads.seen import SeenIo
from assay.workloads.transactions.cost import cost_words, costs_of
from assay.workloads.transactions.shapes import oltp_of, storage_of

BUSY_CPU_SHARE = 0.8
"""A server whose processors are this busy is limited by them: the method's limit."""


def seen_io(point: Point) -> SeenIo | None:
    """I/O under the data of a point of transactions, where anything counted it.

    Parameters
    ----------
    point
        A point with `oltp` (docs/oltp-results.md).
    """
    storage = storage_of(point)
    if not storage:
        return None
    facts = {
        "buffer_hit_share": storage["buffer_hit_share"],
        "read_bytes_per_transaction": storage["read_bytes_per_transaction"],
        "written_bytes_per_transaction": storage["written_bytes_per_transaction"],
        "log_bytes_per_transaction": storage["log_bytes_per_transaction"],
    }
    seen = seen_in(storage, facts=facts, reasons=_reasons(point, storage))
    database = storage.get("database") or {}
    tpm = oltp_of(point).get("tpm_client")
    return seen and replace(
        seen,
        log_writes_per_s=database.get("log_writes_per_s"),
        log_bytes_per_s=database.get("log_bytes_per_s"),
        transactions_per_s=tpm / 60 if tpm is not None else None,
        cpu_share=storage["server_cpu_share"],
    )


def _reasons(point: Point, storage: Storage) -> list[str]:
    hit, log = storage["buffer_hit_share"], storage["log_bytes_per_transaction"]
    read, written = storage["read_bytes_per_transaction"], storage["written_bytes_per_transaction"]
    words = [f"its buffer cache answered {hit * 100:.1f} % of the requests for pages"] if hit is not None else []
    if any(one.is_counted for one in costs_of(storage).values()):
        words.append(f"a transaction {cost_words(storage)}")
    elif read is not None and written is not None:
        moved = f"a transaction read {format_bytes(read)} and wrote {format_bytes(written)}"
        words.append(moved + (f", {format_bytes(log)} of log among it" if log is not None else ""))
    return [*words, f"the database was limited by {_limited_by(point, storage)}"]


def _limited_by(point: Point, storage: Storage) -> str:
    cpu, flush = storage["server_cpu_share"], storage["log_flush_latency_mean_ns"]
    if point["generator"]["saturated"]:
        return "the load generator"
    if cpu is not None and cpu >= BUSY_CPU_SHARE:
        return f"the CPU of its server ({cpu * 100:.0f} % busy)"
    missed = [limit["limit"] for limit in point["limits"] if limit["met"] is False]
    if missed:
        return f"what misses {', '.join(dict.fromkeys(missed))}"
    waits = f": a flush of the log takes {format_latency(flush)}" if flush is not None else ""
    return f"its {count_of(oltp_of(point)['users'] or 0, 'user')}, waiting for each commit{waits}"
