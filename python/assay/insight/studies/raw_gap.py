"""The gap between what storage can do and what a database gets out of it, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.units import format_bytes, format_iops, format_throughput
from assay.insight.studies.words import capital, percent_text
from assay.record.shapes.point import Point
from assay.record.standstill import HOSTS_APART
from assay.workloads.registry import workload_named
from assay.workloads.workload import SeenIo

Record = Mapping[str, Any]

_RAW_LIMITED = {
    "saturation": "storage itself: more load brought no more",
    "axis end": "nothing up to the largest load tried",
    "generator": "the load generator",
    HOSTS_APART: "hosts that measured too far apart",
    "errors": "I/O errors",
}


def gaps_of(parts: Sequence[Record], points: Sequence[Point], answers: Sequence[Record]) -> list[dict[str, Any]]:
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
    found = []
    for part in parts:
        followed = [point for point in points if point["part"] == part.get("follows")]
        answered = [answer for answer in answers if answer["part"] == part["name"]]
        seen = workload_named(str(followed[-1]["workload"]["kind"])).seen(followed[-1]) if followed else None
        if seen is not None and answered:
            found.append(_gap(part, followed[-1], seen, answered[-1]))
    return found


def _gap(part: Record, point: Point, seen: SeenIo, answer: Record) -> dict[str, Any]:
    best = answer["max"]
    raw_iops = best["iops"] if best else None
    sequential = is_sequential(part)
    of = seen.bytes_per_s if sequential else seen.iops
    most = (best["bytes_per_s"] if sequential else raw_iops) if best else None
    return {
        "part": part["name"],
        "follows": part["follows"],
        "point_ids": [point["id"], *([best["point_id"]] if best else [])],
        "block_bytes": answer["workload"]["block_bytes"],
        "read_share": seen.read_share,
        "database_iops": seen.iops,
        "raw_iops": raw_iops,
        "database_bytes_per_s": seen.bytes_per_s,
        "raw_bytes_per_s": best["bytes_per_s"] if best else None,
        "sequential": sequential,
        "gap_share": 1 - of / most if most else None,
        **seen.facts,
        "sentences": [_gap_sentence(seen, answer, sequential=sequential), _reasons_sentence(seen, answer)],
    }


def gap_shares(gaps: Sequence[Record]) -> dict[bool, list[float]]:
    """How much less than the raw profile a database reached in each repeat, by whether it was read in order."""
    shares: dict[bool, list[float]] = {}
    for gap in gaps:
        if isinstance(gap, Mapping) and gap.get("gap_share") is not None:
            shares.setdefault(bool(gap.get("sequential")), []).append(float(gap["gap_share"]))
    return shares


def is_sequential(part: Record) -> bool:
    """Whether a raw profile reads in order: then bytes per second are what counts."""
    shares = [activity.get("random_share") for activity in (part.get("plan") or {}).get("activity") or [{}]]
    each = [
        one for share in shares for one in (share if isinstance(share, list) else [1.0 if share is None else share])
    ]
    return all(share < 0.5 for share in each)


def _gap_sentence(seen: SeenIo, answer: Record, *, sequential: bool) -> str:
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


def _reasons_sentence(seen: SeenIo, answer: Record) -> str:
    return capital("; ".join([*seen.reasons, f"the raw profile by {_raw_limited(answer['limited_by'])}"])) + "."


def _raw_limited(limited_by: object) -> str:
    return _RAW_LIMITED.get(str(limited_by), f"the limit {limited_by}")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
