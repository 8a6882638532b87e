"""What the compiled core reports of I/O as JSON text, and where that is read (crates/python/src/summary.rs)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from assay.record.shapes.point import Direction, Engine, Errors, Generator, Latency, Sides


class CoreSide(TypedDict):
    """Reads or writes of one tick; latencies are null where none ended."""

    count: int
    bytes: int
    mean_ns: float | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int | None


class FileTick(TypedDict):
    """A tick of one thing that is counted: its number, what ended in it, and what failed."""

    tick: int
    read: CoreSide
    write: CoreSide
    error_count: int


class CoreTick(FileTick):
    """A tick of an activity on a volume, both by their numbers, with the processor time it took."""

    activity: int
    volume: int
    cpu_ns: int


class CoreTelemetry(TypedDict):
    """What the members of a modelled array did in one interval: entity, metric, kind and value of each row."""

    at_ns: int
    interval_ns: int
    rows: list[tuple[str, str, str, float]]


class Unfinished(TypedDict):
    """I/Os that had not ended when an open loop did, and the age of the oldest."""

    unfinished: int
    oldest_unfinished_ns: int


class SessionReport(TypedDict):
    """How a session stands, and its ticks since the last report; models say the rest, too."""

    state: str
    detail: Unfinished | str | None
    complete_ticks: int
    now_ns: int
    ticks: list[CoreTick]
    settled: NotRequired[bool]
    telemetry: NotRequired[list[CoreTelemetry]]


class Drained(TypedDict):
    """I/Os that ended after the stop."""

    errors: Errors
    count: int
    bytes: int
    max_ns: int


class BurstReads(TypedDict):
    """Reads during checkpoints and between them."""

    share_of_time: float
    count: int
    read_during: Direction | None
    read_between: Direction | None


class CoreLateness(TypedDict):
    """How late I/Os of a trace began although a slot was free; late ones, and those that found no slot."""

    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int
    late_count: int
    held_count: int


class CoreFigures(TypedDict):
    """The measured part of a point; `generator` is taken out of it, and a model's `array` is put in."""

    activities: list[Sides]
    bursts: BurstReads | None
    errors: Errors
    flush: Direction | None
    generator: NotRequired[Generator]
    lateness: NotRequired[CoreLateness]
    read: Direction | None
    roles: dict[str, Sides]
    service_latency_ns: Latency | None
    total: Direction | None
    volumes: list[Sides]
    write: Direction | None
    array: NotRequired[dict[str, float | None]]


def session_report(text: str) -> SessionReport:
    """Read a session's report."""
    found: SessionReport = json.loads(text)
    return found


def figures_report(text: str) -> CoreFigures:
    """Read the measured part of a point."""
    found: CoreFigures = json.loads(text)
    return found


def drained_report(text: str) -> Drained:
    """Read what ended after the stop."""
    found: Drained = json.loads(text)
    return found


def engine_report(text: str) -> Engine:
    """Read backend and features in force."""
    found: Engine = json.loads(text)
    return found
