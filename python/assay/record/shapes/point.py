"""The shape of a point (docs/results.md, Point), of answers and of verdict lines."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import Field, with_config
from typing_extensions import TypedDict

from assay.record.shapes.terms import (
    STRICT,
    Amount,
    Count,
    Flag,
    HistogramText,
    Integer,
    Interval,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    Name,
    PointId,
    Text,
    Texts,
)

Depth = Annotated[int, Field(ge=0, le=10**9)] | None


class Latency(TypedDict, total=False):
    """Statistics of a latency, nanoseconds; the devices of databases have the mean alone, or not even that."""

    mean: MaybeAmount
    p50: MaybeAmount
    p90: MaybeAmount
    p95: MaybeAmount
    p99: MaybeAmount
    p99_9: MaybeAmount
    p99_99: MaybeAmount
    max: MaybeAmount


class Direction(TypedDict, total=False):
    """What reads, writes or both did."""

    count: Required[Count]
    iops: Required[Amount]
    bytes_per_s: Required[Amount]
    latency_ns: Required[Latency]
    histogram: HistogramText


class Sides(TypedDict, total=False):
    """A role, volume or activity."""

    name: Name | None
    role: Name | None
    read: Direction | None
    write: Direction | None
    total: Direction | None


class Workload(TypedDict, total=False):
    """What a point asked; each kind says more."""

    kind: Text
    name: Name | None
    role: Name | None


class Load(TypedDict, total=False):
    """How hard was asked."""

    kind: Text
    queue_depth: Depth
    workers: Depth
    outstanding: Depth
    rate: MaybeAmount
    arrivals: Text
    speed: MaybeAmount
    pace: Text
    users: Depth
    streams: Depth
    burst_interval_s: MaybeAmount
    burst_bytes: MaybeCount
    burst_spread: MaybeAmount
    wave_period_s: MaybeAmount
    wave_share: MaybeAmount
    wave_peak: MaybeAmount


class Errors(TypedDict, total=False):
    """Failed I/Os or transactions."""

    count: Required[Count]
    kinds: dict[str, Count]


class Steady(TypedDict, total=False):
    """Whether and how the point was steady."""

    reached: Flag
    window_s: MaybeAmount
    slope_share: MaybeNumber
    half_width_share: MaybeAmount
    judged_by: Text


class Gaps(TypedDict, total=False):
    """When the load generator stood still."""

    count: MaybeCount
    longest_ns: MaybeAmount
    total_ns: MaybeAmount
    ios: MaybeCount


class Generator(TypedDict, total=False):
    """How busy the load generator was."""

    cpu_share: MaybeAmount
    fullest_worker_share: MaybeAmount
    schedule_lag_p99_ns: MaybeAmount
    clock_ns: MaybeAmount
    cpu_ns_per_io: MaybeAmount
    cpu_unit_ns: MaybeAmount
    gaps: Gaps | None
    reason: Text
    saturated: Flag


class Batch(TypedDict, total=False):
    """Means of equal pieces of the window."""

    iops: list[MaybeAmount] | None
    latency_mean_ns: list[MaybeAmount] | None


class Batches(TypedDict, total=False):
    """Batches of each direction."""

    seconds: MaybeAmount
    read: Batch | None
    write: Batch | None
    total: Batch | None


class Offered(TypedDict, total=False):
    """What an open loop offered."""

    rate: MaybeAmount
    unfinished: MaybeCount
    oldest_unfinished_ns: MaybeCount
    sustained: Flag


class JudgedLimit(TypedDict, total=False):
    """A limit as it was judged."""

    limit: Required[str]
    scope: Text
    value: MaybeNumber
    unit: Text
    met: Required[Flag]
    reason: Text
    why: Text


class Engine(TypedDict, total=False):
    """What did the I/O."""

    backend: Text
    features: Texts
    degraded: Texts


class BesideQueries(TypedDict):
    """Queries that were answered, and the mean time of those that ran both alone and beside the point."""

    queries: Amount
    mean_s: MaybeAmount


class Beside(TypedDict, total=False):
    """What ran while the point was measured, and what the two did to it."""

    kind: Required[Text]
    title: Required[Text]
    target: Required[list[Text]]
    streams: MaybeCount
    scale: MaybeAmount
    alone: Required[BesideQueries]
    together: Required[BesideQueries]
    slowdown: MaybeAmount
    slowdown_95: Interval


class HostPoint(TypedDict, total=False):
    """What one host of several did: its clock before the point, and its own point."""

    name: Required[Name]
    clock_offset_ns: Integer | None
    clock_error_ns: MaybeCount
    clock_drift_ns: Integer | None
    point: dict[str, Any]
    lost: Text
    until_then: Text


class Together(TypedDict, total=False):
    """How far apart several hosts measured a point, by one clock."""

    count: Count
    start_skew_ns: MaybeCount
    first_done_utc_ns: MaybeCount
    last_done_utc_ns: MaybeCount
    window_ns: MaybeCount
    skew_share: MaybeAmount
    skewed: Flag


class ServedEvent(TypedDict, total=False):
    """What happened to an array, and how it is from then on."""

    t_ns: Required[Count]
    what: Required[Text]
    state: Text


class ServedVolume(TypedDict, total=False):
    """What a volume was asked for, and how long it took by the model."""

    name: Required[Name]
    role: Text
    read_iops: MaybeAmount
    read_bytes_per_s: MaybeAmount
    read_latency_mean_ns: MaybeAmount
    write_iops: MaybeAmount
    write_bytes_per_s: MaybeAmount
    write_latency_mean_ns: MaybeAmount


class Phase(TypedDict, total=False):
    """An array in one state, and the rate of the load meanwhile."""

    state: Required[Text]
    from_utc_ns: Required[Count]
    to_utc_ns: Required[Count]
    per_s: MaybeAmount


class FaultDip(TypedDict, total=False):
    """How far and how long a load fell after the first event."""

    event: Text
    before_per_s: MaybeAmount
    least_per_s: MaybeAmount
    depth_share: MaybeAmount
    length_s: MaybeAmount
    fell_at_utc_ns: MaybeCount
    recovered_at_utc_ns: MaybeCount


class Lateness(TypedDict, total=False):
    """How late answers of an array left, against its model."""

    ios: Count
    mean_ns: MaybeAmount
    late_1ms: MaybeCount
    p99_ns: MaybeAmount
    busy_s: MaybeCount
    overdriven_s: MaybeCount
    overdriven: Flag
    scheduling: Text


class ServedPoint(TypedDict, total=False):
    """A served array while a point was measured."""

    folder: Text
    durability: Text
    state: Text
    from_utc_ns: Count
    to_utc_ns: Count
    events: list[ServedEvent]
    lateness: Lateness
    lost_chunks: MaybeCount
    volumes: list[ServedVolume]
    phases: list[Phase]
    dip: FaultDip | None


class ImportedFrom(TypedDict, total=False):
    """Who measured a point, where Assay did not, and what the file calls it."""

    program: Text
    version: Text
    file: Text
    label: Text


@with_config(STRICT)
class Point(TypedDict, total=False):
    """A point. Only its id is always asked for: the rest is checked where it is there, see `check_whole`."""

    id: Required[PointId]
    key: str
    part: Name | None
    purpose: Text
    repeat: MaybeCount
    started_utc_ns: MaybeCount
    measured_from_utc_ns: MaybeCount
    measured_to_utc_ns: MaybeCount
    clock: Text
    warmup_s: MaybeAmount
    measured_s: MaybeAmount
    ended_by: Text
    workload: Workload
    load: Load
    read: Direction | None
    write: Direction | None
    total: Direction | None
    flush: Direction | None
    roles: dict[str, Sides] | None
    volumes: list[Sides] | None
    activities: list[Sides] | None
    service_latency_ns: Latency | None
    offered: Offered | None
    errors: Errors
    outside_window: dict[str, MaybeAmount] | None
    steady: Steady | None
    generator: Generator
    batches: Batches | None
    telemetry: dict[str, MaybeNumber] | None
    engine: Engine | None
    met: Flag
    array: dict[str, MaybeNumber] | None
    beside: Beside | None
    served: list[ServedPoint] | None
    imported: ImportedFrom | None
    hosts: list[HostPoint] | None
    together: Together | None
    band_90: Interval
    band_basis: Text
    limits: list[JudgedLimit]


WHOLE = (
    "key", "part", "purpose", "ended_by", "warmup_s", "measured_s", "workload", "load", "read", "write", "total",
    "errors", "limits", "steady", "generator", "activities",
)  # fmt: skip
"""What every point of a run has that ended in order, and what comparing, exporting and going on count on."""
MAY_BE_NULL = frozenset({"read", "write", "total"})


class Limiting(TypedDict, total=False):
    """The limiting metric at a load: its estimate over all repeats as a share of the bound."""

    limit: Text
    scope: Text
    share: MaybeAmount
    interval_95: Interval


class End(TypedDict, total=False):
    """A load of a search, and what it gave."""

    outstanding: Depth
    queue_depth: Depth
    rate: MaybeAmount
    speed: MaybeAmount
    users: Depth
    iops: MaybeAmount
    interval_95: Interval
    limiting: Limiting | None
    point_id: PointId | None
    repeats: Count
    repeats_met: Count


class Crossing(TypedDict, total=False):
    """The load at which the limit is crossed, between loads that were measured."""

    outstanding: MaybeAmount
    rate: MaybeAmount
    speed: MaybeAmount
    users: MaybeAmount
    interval_95: Interval


class Answer(TypedDict, total=False):
    """The answer of a search; older runs know `max` and `first_failing` alone."""

    workload: Required[Workload]
    axis: Required[str]
    part: Required[Name]
    max: Required[End | None]
    knee: End | None
    edge: End | None
    first_failing: End | None
    limits: Texts
    limited_by: Text
    point_ids: list[PointId] | None
    interval_95: Interval
    band_90: Interval
    band_basis: Text
    crossing: Crossing | None
    step_share: MaybeAmount
    resolution_share: MaybeAmount
    undecided: Flag
    non_monotone: Flag


class VerdictLine(TypedDict, total=False):
    """One line of the verdict."""

    question: Required[str]
    limit: Required[Text]
    value: Required[MaybeNumber]
    unit: Required[Text]
    met: Required[Flag]
    meaning: Required[Text]
    point_id: PointId | None
    part: Name | None
    asked: Flag
    sums_up: Flag
