"""What workloads on databases have in common in points and manifests (docs/oltp-results.md)."""

from __future__ import annotations

from typing_extensions import TypedDict

from assay.record.shapes.terms import Flag, MaybeAmount, MaybeCount, MaybeNumber, Text, Texts


class Device(TypedDict, total=False):
    """What a device did meanwhile."""

    device: Text
    roles: Texts
    read_iops: MaybeAmount
    write_iops: MaybeAmount
    read_bytes_per_s: MaybeAmount
    write_bytes_per_s: MaybeAmount
    read_latency_mean_ns: MaybeAmount
    write_latency_mean_ns: MaybeAmount
    read_size_mean_bytes: MaybeAmount
    write_size_mean_bytes: MaybeAmount
    read_share: MaybeAmount


class File(TypedDict, total=False):
    """What was written to a file of a database, as its server counts it."""

    file: Text
    write_bytes_per_s: MaybeAmount


class PerTransaction(TypedDict, total=False):
    """Bytes that a transaction moved."""

    read_bytes_per_transaction: MaybeAmount
    written_bytes_per_transaction: MaybeAmount
    log_bytes_per_transaction: MaybeAmount


class Storage(PerTransaction, total=False):
    """What the storage did for databases; bytes per transaction beside transactions alone."""

    devices: list[Device] | None
    files: list[File] | None
    log_flush_latency_mean_ns: MaybeAmount
    log_flushes_per_s: MaybeAmount
    buffer_hit_share: MaybeNumber
    temp_bytes: MaybeAmount
    checkpoints_count: MaybeAmount
    server_cpu_share: MaybeAmount
    seconds: MaybeAmount
    bytes_from: Text
    read_write: dict[str, MaybeAmount] | None
    database: dict[str, MaybeAmount] | None


class Loading(TypedDict, total=False):
    """How the rows were loaded."""

    rows: MaybeCount
    bytes: MaybeAmount
    seconds: MaybeAmount
    rows_per_s: MaybeAmount
    resumed: Flag
