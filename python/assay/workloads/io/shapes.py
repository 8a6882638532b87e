"""What I/O adds to points, answers and manifests (docs/results.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.access import Accesses, Bursts
from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import Answer, End, Point
from assay.record.shapes.state import Preconditioning, RunState, TargetState
from assay.record.shapes.terms import STRICT, MaybeAmount, MaybeCount, PointId, Text

ACCESS = ("block_bytes", "read_share", "random_share")
"""Keys that every access has."""


@with_config(STRICT)
class IoPoint(TypedDict, total=False):
    """A point of I/O."""

    workload: Accesses
    bursts: Bursts | None
    state: TargetState | None
    precondition: Preconditioning | None


class IoEnd(TypedDict, total=False):
    """What a load of a search gave."""

    iops: MaybeAmount
    bytes_per_s: MaybeAmount
    read_latency_mean_ns: MaybeAmount
    write_latency_mean_ns: MaybeAmount


class FoundIo(End, IoEnd, total=False):
    """A load of a search, and what it gave."""


class IoAnswer(TypedDict, total=False):
    """The answer of a search."""

    workload: Accesses
    max: IoEnd | None
    knee: IoEnd | None
    edge: IoEnd | None
    first_failing: IoEnd | None


class CacheStep(TypedDict, total=False):
    """Latency at one span."""

    span_bytes: MaybeCount
    latency_mean_ns: MaybeAmount
    latency_p50_ns: MaybeAmount
    iops: MaybeAmount
    point_id: PointId | None


class CacheSpan(TypedDict, total=False):
    """Where a cache ends."""

    steps: list[CacheStep] | None
    ends_at_bytes: MaybeCount
    note: Text


@with_config(STRICT)
class IoManifest(TypedDict, total=False):
    """A manifest of a run of I/O."""

    cache_span: CacheSpan | None
    states: list[RunState] | None
    answers: list[IoAnswer] | None


def asked_of(told: Point | Answer) -> Accesses:
    """What a point asked, or what an answer is about."""
    return cast("Accesses", told["workload"])


def knee_of(answer: Answer) -> FoundIo | None:
    """The knee that a search found."""
    return cast("FoundIo | None", answer.get("knee"))


def found_at(answer: Answer) -> FoundIo | None:
    """The largest load within limits that a search found; None where it found none."""
    return cast("FoundIo | None", answer.get("max"))


def _lacks(point: Mapping[str, Any]) -> str | None:
    workload = point["workload"]
    for access in workload.get("activities", [workload]):
        for key in (("name", "load") if "activities" in workload else ()) + ACCESS:
            # Of a foreign result it may not be known whether it was random.
            if access.get(key) is None and (key != "random_share" or key not in access):
                return f"{key!r} of its workload"
    return None


SHAPES = Shapes(point=IoPoint, manifest=IoManifest, lacks=_lacks)
