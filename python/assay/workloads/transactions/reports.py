"""What the core reports of transactions: how a run stands, and the figures of its window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NotRequired, Protocol, TypedDict

from assay.record.shapes.point import Gaps, Latency
from assay.telemetry.columns import Reading
from assay.workloads.databases.in_process import CoreError
from assay.workloads.transactions.shapes import ScheduleKept, Transaction, TransactionErrors, number_of

TICK_LATENCIES = ("mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
TICK_COUNTS = ("committed", "rolled_back", "retried", "failed")


class CoreRun(Protocol):
    """Transactions at work in the core."""

    def poll(self) -> str:
        """How the run stands, and the ticks completed since the last poll."""
        ...

    def measure_from(self, tick: int) -> None:
        """Forget the ticks before this one."""
        ...

    def point(self, from_tick: int, to_tick: int) -> str:
        """Figures of the complete ticks `from_tick..to_tick`."""
        ...

    def acknowledged(self) -> str:
        """What was acknowledged lately, where the workload keeps it."""
        ...

    def finish(self, timeout_s: float) -> str:
        """Stop, wait for what is under way, and report as `poll` does."""
        ...


class OltpTick(TypedDict):
    """One kind of transaction on one database in a tick; latencies in nanoseconds, None where none ended."""

    tick: int
    database: int
    transaction: str
    committed: int
    rolled_back: int
    retried: int
    failed: int
    mean_ns: float | None
    p50_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    max_ns: int | None


class OltpAway(TypedDict):
    """When a database was away, nanoseconds since the run began; `to_ns` is None while it is."""

    from_ns: int
    to_ns: int | None
    database: int
    reason: str


class OltpReport(TypedDict):
    """How a run stands, with what is new since the last report, and the first error of a transaction if it is told."""

    state: str
    error: CoreError | None
    connected: int
    reconnecting: int
    complete_ticks: int
    started_utc_ns: int
    ticks: list[OltpTick]
    gaps: list[OltpAway]
    example: NotRequired[str]


class OltpTotal(TypedDict):
    """All transactions of the window together."""

    count: int
    per_s: float


class OltpDatabase(TypedDict):
    """Transactions of one database; those of the first kind besides, under the name of its counter."""

    name: str
    count: int


class OltpBacklog(TypedDict):
    """What was to begin and had not ended."""

    unfinished: int
    oldest_ns: int


class OltpFigures(TypedDict):
    """Figures of the window."""

    by_transaction: dict[str, Transaction]
    total: OltpTotal
    databases: list[OltpDatabase]
    errors: TransactionErrors
    client_cpu_ns: int
    threads: int
    fullest_thread_share: float
    gaps: Gaps
    service_latency_ns: Latency | None
    schedule: ScheduleKept | None
    backlog: OltpBacklog | None


def tick_readings(tick: OltpTick, entity: str) -> Iterator[Reading]:
    """What a tick adds to the series."""
    for count in TICK_COUNTS:
        yield Reading(entity, f"{count}_count", "delta", float(number_of(tick, count) or 0))
    for latency in TICK_LATENCIES:
        if (value := number_of(tick, latency)) is not None:
            yield Reading(entity, f"latency_{latency}", "gauge", float(value))
