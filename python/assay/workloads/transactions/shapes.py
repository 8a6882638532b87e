"""What transactions add to points, answers and manifests (docs/oltp-results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Required, TypeVar, cast

from typing_extensions import TypedDict

from assay.record.shapes.manifest import Database, Manifest
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
    Name,
    PointId,
    Text,
    Texts,
)  # fmt: skip
from assay.targets.databases.common.layout import LaidOutTables
from assay.workloads.databases.shapes import Loading, Storage

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


class Gap(TypedDict, total=False):
    """When a database was away."""

    from_utc_ns: MaybeCount
    to_utc_ns: MaybeCount
    database: Text
    reason: Text


class ScheduleKept(TypedDict, total=False):
    """How well waits were kept."""

    lag_p99_ns: MaybeAmount
    kept_share: MaybeAmount
    waits: MaybeCount


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
    codes: Counts
    ended_users: MaybeCount


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
    fetched_count: MaybeAmount
    inserted_count: MaybeAmount
    updated_count: MaybeAmount
    deleted_count: MaybeAmount
    time_ns: MaybeAmount


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


class TableHeat(TypedDict, total=False):
    """What was asked of a table, in the figure that ranks it, and its share of all."""

    table: Text
    value: MaybeAmount
    share: MaybeAmount


class StatementsHeat(TypedDict, total=False):
    """What the heaviest statements asked of each table."""

    figure: Text
    tables: list[TableHeat] | None


class HottestTable(TypedDict, total=False):
    """The table that was asked most of in a trace, and why it is taken for that."""

    table: Text
    figure: Text
    share: MaybeAmount
    trace_s: MaybeAmount
    tables: list[TableHeat] | None
    statement: Text
    by_statements: StatementsHeat | None
    sentence: Text


class LaidOutDatabase(LaidOutTables, total=False):
    """How the tables of one of the databases were laid out."""

    database: Text


class LayoutOfPoint(TypedDict, total=False):
    """How tables were laid out for a point."""

    databases: list[LaidOutDatabase] | None
    hottest: HottestTable | None


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
    schedule: ScheduleKept | None
    background: list[Background] | None
    power_cuts: list[CutOfPower] | None
    layout: LayoutOfPoint | None
    hottest: HottestTable | None
    storage: Storage | None
    statements: list[Statement] | None
    tables: list[HotTable] | None
    conditions: list[Condition] | None
    load: Loading | None
    actions_done: dict[str, list[str]] | None


class LayoutAsked(TypedDict, total=False):
    """The layout of tables that was asked for, as the plan has it."""

    tablespaces: MaybeCount
    directories: Texts
    partition_table: Text
    partition_ways: MaybeCount
    trace_s: MaybeAmount


class TransactionFacts(TypedDict, total=False):
    """Which transactions."""

    kind: Text
    name: Name | None
    preset: Text
    mix: dict[str, Amount] | None
    layout: LayoutAsked | None
    background: Texts
    mode: Text
    draw: Text
    think_scale: MaybeAmount
    retries: MaybeCount


class MeasuredOltp(Oltp, total=False):
    """What transactions came to while a point was measured, of each database too."""

    databases: list[Database]


class OltpPoint(Point, total=False):
    """A point of transactions, of whatever kind."""

    oltp: Oltp | None


class OltpManifest(Manifest, total=False):
    """A manifest of a run of transactions, of whatever kind."""

    oltp: Oltp | None


class OfKind(TypedDict, total=False):
    """Keys that a kind of transactions adds, under names of its own."""


def of_kind(key: str, value: float | None) -> OfKind:
    """A number that a kind adds: its throughput, or how much is loaded."""
    return cast(OfKind, {key: value})


Told = TypeVar("Told", bound=Mapping[str, object])


def with_own(before: Told, own: OfKind, after: Told) -> Told:
    """Keys of a record in their order, with the keys that a kind adds in between."""
    return cast(Told, {**before, **own, **after})


def number_of(told: Mapping[str, object], key: str) -> float | None:
    """A number by a key that a kind chose; None where it is not known."""
    found = told.get(key)
    return found if isinstance(found, int | float) else None


def oltp_of(point: Point) -> Oltp:
    """What a point of transactions says of them; empty where it says nothing."""
    return cast(OltpPoint, point).get("oltp") or {}


def storage_of(point: Point) -> Storage:
    """What the storage did for the databases of a point; empty where it is not known."""
    return oltp_of(point).get("storage") or {}


def lacks(point: Mapping[str, object]) -> str | None:
    """What a point of transactions lacks."""
    return None if isinstance(point.get("oltp"), Mapping) else "'oltp', which points of transactions have"
