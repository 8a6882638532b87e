"""What replays add to points (docs/replay.md)."""

from __future__ import annotations

from typing import cast

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import Latency, Point
from assay.record.shapes.terms import STRICT, Amount, Count, Flag, MaybeAmount, MaybeCount, Name, Text


class RecordedSide(TypedDict, total=False):
    """Reads or writes as the trace tells them."""

    count: MaybeCount
    bytes: MaybeCount
    iops: MaybeAmount
    latency_ns: Latency | None


class TraceReplayed(TypedDict, total=False):
    """A trace that was replayed: the window, when it began, and what of it was left out."""

    name: Name | None
    source: Text
    at_s: MaybeAmount
    begin_ns: MaybeCount
    seconds: MaybeAmount
    ios: MaybeCount
    discards: MaybeCount
    read: RecordedSide | None
    write: RecordedSide | None


class StartLateness(TypedDict, total=False):
    """How late I/Os began although a slot was free; `held_count` is of those that found none."""

    count: Count
    p50_ns: MaybeAmount
    p99_ns: MaybeAmount
    max_ns: MaybeAmount
    late_count: MaybeCount
    held_count: MaybeCount


class ReplayDone(TypedDict, total=False):
    """What a replay asked, and whether it was one."""

    pace: Text
    speed: MaybeAmount
    times_recorded: MaybeAmount
    fit: Text
    fit_note: Text
    window: Text
    traces: list[TraceReplayed] | None
    recorded_iops: MaybeAmount
    begun_share: Amount | None
    lateness: StartLateness | None
    is_replay: Flag


@with_config(STRICT)
class ReplayPoint(TypedDict, total=False):
    """A point of a replay."""

    replay: ReplayDone | None


class ReplayPointWhole(Point, total=False):
    """A point that may be one of a replay."""

    replay: ReplayDone | None


def done_of(point: Point) -> ReplayDone:
    """What a point says of its replay; empty where it is none."""
    return cast("ReplayPointWhole", point).get("replay") or {}


SHAPES = Shapes(point=ReplayPoint)
