"""What transactions add to points, answers and manifests (docs/oltp-results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Required, cast

from typing_extensions import TypedDict

from assay.record.shapes.point import Point
from assay.record.shapes.terms import (
    Amount,
    Count,
    Counts,
    Flag,
    HistogramText,
    Integer,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    PointId,
    Text,
    Texts,
)  # fmt: skip

DOCUMENT_KEY = "oltp"
"""Key under which points and manifests tell of transactions."""


class Transaction(TypedDict, total=False):
    """What one kind of transaction did."""

    count: MaybeCount
    per_s: MaybeAmount
    rolled_back: MaybeCount
    retried: MaybeCount
    failed: MaybeCount
    latency_ns: dict[str, MaybeAmount] | None
    histogram: HistogramText
    mix: MaybeAmount
    pass_mix: Flag
    pass_latency: Flag


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


class Storage(TypedDict, total=False):
    """What the storage did beside transactions."""

    devices: list[Device] | None
    files: list[File] | None
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
    read_write: dict[str, MaybeAmount] | None
    database: dict[str, MaybeAmount] | None


class Gap(TypedDict, total=False):
    """When a database was away."""

    from_utc_ns: MaybeCount
    to_utc_ns: MaybeCount
    database: Text
    reason: Text


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


class LostTransaction(TypedDict, total=False):
    """A transaction that was acknowledged and is not there."""

    database: Text
    key: list[Integer]
    acknowledged_utc_ns: MaybeCount


class CutOfPower(TypedDict, total=False):
    """A power cut under transactions."""

    at_utc_ns: MaybeCount
    back_utc_ns: MaybeCount
    acknowledged: MaybeCount
    missing: MaybeCount
    examples: list[LostTransaction]
    error: Text


class Oltp(TypedDict, total=False):
    """What transactions came to, of a point or of a run."""

    tpm_client: MaybeAmount
    tpm_server: MaybeAmount
    client_cpu_ns_per_transaction: MaybeAmount
    memory_bytes_per_user: MaybeAmount
    users: MaybeCount
    point_id: PointId | None
    by_transaction: dict[str, Transaction] | None
    errors: TransactionErrors | None
    gaps: list[Gap] | None
    schedule: dict[str, Amount | bool | None] | None
    background: list[Background] | None
    power_cuts: list[CutOfPower] | None
    layout: dict[str, Any] | None
    hottest: dict[str, Any] | None
    storage: Storage | None
    statements: list[Statement] | None
    tables: list[HotTable] | None
    conditions: list[Condition] | None
    load: Loading | None
    actions_done: dict[str, list[str]] | None


class TransactionFacts(TypedDict, total=False):
    """Which transactions."""

    preset: Text
    mix: dict[str, Amount] | None
    think_scale: MaybeAmount


def oltp_of(point: Point) -> dict[str, Any]:
    """What a point of transactions says of them; empty where it says nothing."""
    return cast(dict[str, Any], point).get(DOCUMENT_KEY) or {}


def lacks(point: Mapping[str, Any]) -> str | None:
    """What a point of transactions lacks."""
    return None if isinstance(point.get("oltp"), Mapping) else "'oltp', which points of transactions have"
