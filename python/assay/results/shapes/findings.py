"""The shapes of what verifying and transactions found (docs/integrity.md, docs/oltp.md)."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import Field
from typing_extensions import TypedDict

from assay.results.shapes.terms import (
    Amount,
    Count,
    Counts,
    Flag,
    HistogramText,
    Integer,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    Name,
    PointId,
    Text,
    Texts,
)


class Unit(TypedDict, total=False):
    """A run of equal units of a page."""

    first: Annotated[int, Field(ge=0, le=10**6)] | None
    last: Annotated[int, Field(ge=0, le=10**6)] | None
    state: Text
    file: Text
    page: MaybeCount
    generation: MaybeCount


class Expected(TypedDict, total=False):
    """What a page should have held."""

    file: Text
    page: MaybeCount
    generation: MaybeCount
    written_utc_ns: MaybeCount
    writer: Integer | str | None
    lsn: MaybeCount
    checksum: Integer | str | None


class Finding(TypedDict, total=False):
    """One finding."""

    id: Annotated[str, Field(pattern=r"\AF[0-9]{1,12}\z")] | None
    kind: Text
    also: Texts
    persistent: Flag
    file: Text
    page: MaybeCount
    offset_bytes: MaybeCount
    length_bytes: MaybeCount
    phase: Text
    cycle: MaybeCount
    found_utc_ns: MaybeCount
    by: Text
    rereads: MaybeCount
    explanation: Text
    expected: Expected | None
    units: list[Unit] | None
    differing_bytes: MaybeCount
    ranges: list[list[Count]] | None
    elsewhere: Expected | None
    operation: Text
    errno: Integer | None
    evidence: Text


class Phase(TypedDict, total=False):
    """A phase of a cycle."""

    name: Text
    cycle: MaybeCount
    seconds: MaybeAmount
    point_id: PointId | None
    pages_verified: MaybeCount
    pages_written: MaybeCount


class VerifiedFile(TypedDict, total=False):
    """A file and what was done to it."""

    name: Text
    path: Text
    log: Flag
    size_bytes: MaybeCount
    target_io_ms: MaybeAmount
    average_io_ms: MaybeAmount
    throttled: MaybeCount
    reads: MaybeCount
    scatter_reads: MaybeCount
    writes: MaybeCount
    gather_writes: MaybeCount
    io_time_ms: MaybeAmount
    slowest_io_ms: MaybeAmount


class Integrity(TypedDict, total=False):
    """What a run that verifies found."""

    passed: Flag
    audited: Flag
    findings: Required[dict[str, Count]]
    transient: Counts
    persistent: Counts
    injected: Counts
    observable: Counts
    masked: Counts
    seed: Integer | None
    run_identity: Text
    cycles: MaybeCount
    pages: MaybeCount
    pages_verified: MaybeCount
    bytes_verified: MaybeCount
    pages_written: MaybeCount
    bytes_written: MaybeCount
    expected_state_bytes: MaybeCount
    log_blocks: MaybeCount
    resizes: MaybeCount
    stopped_on_error: Flag
    phases: list[Phase] | None
    files: list[VerifiedFile] | None
    understood: Texts
    details: list[Finding] | None
    details_left_out: MaybeCount
    evidence: Text
    error_log: Text
    journal: dict[str, Any] | None


class Transaction(TypedDict, total=False):
    """What one kind of transaction did."""

    count: MaybeCount
    per_s: MaybeAmount
    rolled_back: MaybeCount
    retried: MaybeCount
    failed: MaybeCount
    latency_ns: dict[str, MaybeAmount] | None
    histogram: HistogramText


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


class Storage(TypedDict, total=False):
    """What the storage did beside transactions."""

    devices: list[Device] | None
    read_bytes_per_transaction: MaybeAmount
    written_bytes_per_transaction: MaybeAmount
    log_bytes_per_transaction: MaybeAmount
    log_flush_latency_mean_ns: MaybeAmount
    log_flushes_per_s: MaybeAmount
    buffer_hit_share: MaybeNumber
    checkpoints_count: MaybeAmount
    server_cpu_share: MaybeAmount
    seconds: MaybeAmount
    bytes_from: Text
    database: dict[str, MaybeAmount] | None


class Gap(TypedDict, total=False):
    """When a database was away."""

    from_utc_ns: MaybeCount
    to_utc_ns: MaybeCount
    database: Text
    reason: Text


class MeasuredDatabase(TypedDict, total=False):
    """A database and its share of the throughput."""

    name: Name | None
    kind: Text
    version: Text
    nopm: MaybeAmount
    settings: dict[str, Any] | None


class Background(TypedDict, total=False):
    """Work beside the transactions."""

    kind: Required[str]
    count: Required[Count]
    seconds: MaybeAmount


class Condition(TypedDict, total=False):
    """A consistency condition."""

    id: Required[Integer | str]
    title: Text
    database: Text
    violations: Required[Count]
    checked: MaybeCount
    example: Text
    met: Flag


class TransactionErrors(TypedDict, total=False):
    """Failed transactions."""

    count: MaybeCount
    kinds: Counts
    example: Text


class Loading(TypedDict, total=False):
    """How the rows were loaded."""

    rows: MaybeCount
    bytes: MaybeAmount
    seconds: MaybeAmount
    rows_per_s: MaybeAmount
    resumed: Flag


class Statement(TypedDict, total=False):
    """A statement as the server counts it."""

    database: Text
    text: Text
    calls_count: MaybeAmount
    share: MaybeAmount
    time_ns: MaybeAmount
    mean_ns: MaybeAmount
    rows_count: MaybeAmount
    read_bytes: MaybeAmount
    page_requests_count: MaybeAmount
    page_reads_count: MaybeAmount
    log_bytes: MaybeAmount


class HotTable(TypedDict, total=False):
    """A table as the server counts it."""

    database: Text
    table: Text
    read_bytes: MaybeAmount
    page_requests_count: MaybeAmount
    page_reads_count: MaybeAmount
    inserted_count: MaybeAmount
    updated_count: MaybeAmount
    deleted_count: MaybeAmount


class Oltp(TypedDict, total=False):
    """What transactions came to, of a point or of a run."""

    nopm: MaybeAmount
    tpm_client: MaybeAmount
    tpm_server: MaybeAmount
    client_cpu_ns_per_transaction: MaybeAmount
    memory_bytes_per_user: MaybeAmount
    users: MaybeCount
    warehouses: MaybeCount
    point_id: PointId | None
    by_transaction: dict[str, Transaction] | None
    errors: TransactionErrors | None
    gaps: list[Gap] | None
    schedule: dict[str, Amount | bool | None] | None
    databases: list[MeasuredDatabase] | None
    background: list[Background] | None
    layout: dict[str, Any] | None
    hottest: dict[str, Any] | None
    storage: Storage | None
    statements: list[Statement] | None
    tables: list[HotTable] | None
    conditions: list[Condition] | None
    load: Loading | None
    actions_done: dict[str, list[str]] | None
