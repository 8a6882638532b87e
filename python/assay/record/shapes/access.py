"""The shape of what was asked of storage: sizes, shares and patterns of reads and writes (docs/results.md)."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field
from typing_extensions import TypedDict

from assay.record.shapes.point import Direction, Load, Point
from assay.record.shapes.terms import Amount, Interval, MaybeAmount, MaybeCount, Name, Text

Mix = dict[Annotated[str, Field(pattern=r"\A[1-9][0-9]{0,11}\z")], Amount]
Blocks = Annotated[int, Field(gt=0, le=2**40)] | Annotated[Mix, Field(min_length=1)]
"""One block size, or shares by block size."""
Share = Annotated[float, Field(ge=0, le=1)]


class Access(TypedDict, total=False):
    """What was asked: one activity, or the only one."""

    name: Name | None
    role: Name | None
    block_bytes: Blocks | None
    read_share: Share | None
    random_share: Share | None
    skew: Text
    streams: MaybeCount
    stride_bytes: MaybeCount
    align_bytes: MaybeCount
    region: Interval
    compressible_share: MaybeAmount
    duplicate_share: MaybeAmount
    io_mode: Text
    sync: Text
    sync_every: MaybeCount
    volume: Text
    other_options: dict[str, Text] | None
    load: Load


class Accesses(Access, total=False):
    """What a point asked: one activity, or several at once."""

    kind: Text
    activities: list[Access]


class Bursts(TypedDict, total=False):
    """Reads during checkpoints and between them."""

    share_of_time: MaybeAmount
    count: MaybeCount
    read_during: Direction | None
    read_between: Direction | None


class BurstyPoint(Point, total=False):
    """A point whose writes may have come in bursts."""

    bursts: Bursts | None


def accesses_of(point: Point) -> Accesses:
    """What a point asked of storage; points of some kinds say little of it, or nothing."""
    return cast(Accesses, point.get("workload") or {})


def bursts_of(point: Point) -> Bursts:
    """What reads did during checkpoints and between them; empty where there were none."""
    return cast(BurstyPoint, point).get("bursts") or {}
