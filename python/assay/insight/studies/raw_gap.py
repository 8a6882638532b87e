"""The gap between what storage can do and what a database gets out of it, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, cast

from assay.base.units import format_bytes, format_iops, format_throughput
from assay.insight.studies.words import capital, percent_text
from assay.record.shapes.manifest import Part
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.study import RawGap
from assay.record.standstill import HOSTS_APART, overdriven_words, why_saturated
from assay.workloads.databases.seen import seen_at
from assay.workloads.seen import SeenIo

_Fact = Literal[
    "buffer_hit_share", "read_bytes_per_transaction", "written_bytes_per_transaction", "log_bytes_per_transaction"
]
_FACTS: tuple[_Fact, ...] = (
    "buffer_hit_share",
    "read_bytes_per_transaction",
    "written_bytes_per_transaction",
    "log_bytes_per_transaction",
)


class RawEnd(TypedDict):
    """What a load of a raw profile gave: I/Os and bytes per second."""

    iops: float
    bytes_per_s: float
    point_id: str


class RawAccess(TypedDict):
    """What a raw profile asked; shares from 0 to 1."""

    block_bytes: int
    read_share: float


class RawAnswer(TypedDict):
    """The answer of a raw profile, which I/O gives."""

    part: str
    workload: RawAccess
    max: RawEnd | None
    limited_by: str | None


class _Facts(TypedDict, total=False):
    buffer_hit_share: float | None
    read_bytes_per_transaction: float | None
    written_bytes_per_transaction: float | None
    log_bytes_per_transaction: float | None


_RAW_ENDED = {
    "saturation": "is limited by the storage itself: more load brings no more",
    "axis end": "meets its limits up to the largest load tried: the storage may hold more",
    "generator": "is limited by the load generator: the storage may hold more",
    HOSTS_APART: "ended where hosts measured too far apart: the storage may hold more",
    "errors": "ended in I/O errors",
}


def gaps_of(parts: Sequence[Part], points: Sequence[Point], answers: Sequence[Answer]) -> list[RawGap]:
    """The gap of every part that follows one on databases (docs/studies.md), once both have ended.

    Parameters
    ----------
    parts
        The manifest's.
    points, answers
        Those of the run.

    Returns
    -------
    list of dict
        `part`, `follows`, `point_ids`, `block_bytes`, `read_share` (of the database's storage), `database_iops`,
        `raw_iops` or None, `gap_share` (how much fewer I/Os per second the database made, negative for more) or None,
        `buffer_hit_share`, `read_bytes_per_transaction`, `written_bytes_per_transaction`, `log_bytes_per_transaction`
        and `sentences`.
    """
    found: list[RawGap] = []
    for part in parts:
        followed = [point for point in points if point["part"] == part.get("follows")]
        answered = [answer for answer in answers if answer["part"] == part["name"]]
        seen = seen_at(followed[-1]) if followed else None
        if seen is not None and answered:
            found.append(_gap(part, followed[-1], seen, cast(RawAnswer, answered[-1])))
    return found


def _gap(part: Part, point: Point, seen: SeenIo, answer: RawAnswer) -> RawGap:
    best = answer["max"]
    raw_iops = best["iops"] if best else None
    sequential = is_sequential(part)
    of = seen.bytes_per_s if sequential else seen.iops
    most = (best["bytes_per_s"] if sequential else raw_iops) if best else None
    facts: _Facts = {}
    for name in _FACTS:
        if name in seen.facts:
            facts[name] = seen.facts[name]
    doubt = why_saturated(point) if point["generator"]["saturated"] else overdriven_words(point)
    sentences = [_gap_sentence(seen, answer, sequential=sequential), _reasons_sentence(seen, answer)]
    return {
        "part": part["name"],
        "follows": str(part["follows"]),
        "point_ids": [point["id"], *([best["point_id"]] if best else [])],
        "block_bytes": answer["workload"]["block_bytes"],
        "read_share": seen.read_share,
        "database_iops": seen.iops,
        "raw_iops": raw_iops,
        "database_bytes_per_s": seen.bytes_per_s,
        "raw_bytes_per_s": best["bytes_per_s"] if best else None,
        "sequential": sequential,
        "gap_share": 1 - of / most if most and not doubt else None,
        **facts,
        "sentences": [f"Nothing can be said of the gap: {doubt}."] if doubt else sentences,
    }


def gap_shares(gaps: Sequence[RawGap]) -> dict[bool, list[float]]:
    """How much less than the raw profile a database reached in each repeat, by whether it was read in order."""
    shares: dict[bool, list[float]] = {}
    for gap in gaps:
        share = gap.get("gap_share") if isinstance(gap, Mapping) else None
        if share is not None:
            shares.setdefault(bool(gap.get("sequential")), []).append(float(share))
    return shares


def is_sequential(part: Part) -> bool:
    """Whether a raw profile reads in order: then bytes per second are what counts."""
    plan = part.get("plan")
    shares = [activity.get("random_share") for activity in (plan.get("activity") if plan else None) or [{}]]
    each = [
        one for share in shares for one in (share if isinstance(share, list) else [1.0 if share is None else share])
    ]
    return all(share < 0.5 for share in each)


def _gap_sentence(seen: SeenIo, answer: RawAnswer, *, sequential: bool) -> str:
    who = "The storage under the database did" if seen.by_devices else "The database asked its storage for"
    mean = (
        f"{format_iops(seen.iops)} IOPS, {format_bytes(seen.size_mean_bytes)} each, {_percent(seen.read_share)} reads"
    )
    raw = f"{format_bytes(answer['workload']['block_bytes'])} at {_percent(answer['workload']['read_share'])} reads"
    best = answer["max"]
    if not best or not best["iops"]:
        return f"{who} {mean}; the raw profile of {raw} held no load within its limits."
    if sequential:
        most = best["bytes_per_s"]
        return (
            f"{who} {format_throughput(seen.bytes_per_s)}, {format_bytes(seen.size_mean_bytes)} each,"
            f" {_percent(seen.read_share)} reads; in order the storage gives {format_throughput(most)} of {raw}: the"
            f" database scans {percent_text(seen.bytes_per_s / most)} of that."
        )
    share = seen.iops / best["iops"] - 1
    gap = f"{_percent(abs(share))} {'more' if share > 0 else 'fewer'}"
    return f"{who} {mean}; the raw profile holds {format_iops(best['iops'])} IOPS of {raw}: the database reaches {gap}."


def _reasons_sentence(seen: SeenIo, answer: RawAnswer) -> str:
    ended = _raw_ended(str(answer["limited_by"]), held=answer["max"] is not None)
    return capital("; ".join([*seen.reasons, f"the raw profile {ended}"])) + "."


def _raw_ended(limited_by: str, *, held: bool) -> str:
    return _RAW_ENDED.get(limited_by, f"{'is limited by' if held else 'misses'} {limited_by}")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
