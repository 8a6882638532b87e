"""Points in which the load was not what was meant.

Their generator stood still, hosts did not measure together, or this host served a modelled array late.

Latencies of what was under way are not the device's, and no answer rests on such a point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.base.tables import Record
from assay.base.units import count_of, format_duration

STOOD_STILL = "stood still"
"""`generator.reason` where the generator did."""
HOSTS_APART = "hosts apart"
"""`generator.reason` where hosts began or ended too far apart; what ends a search by it has the same name."""

OVERDRIVEN = "served array overdriven"
"""`generator.reason` where the host of a served array answered later than the array's model would."""


def judged(gaps: Mapping[str, Any] | None, saturated: bool) -> dict[str, Any]:
    """What `generator` says of whether a point may be an answer: `saturated`, and why where that is known.

    Examples
    --------
    >>> judged({"count": 1, "longest_ns": 8_000_000_000, "total_ns": 8_000_000_000, "ios": 4}, False)
    {'saturated': True, 'reason': 'stood still'}
    >>> judged({"count": 0, "longest_ns": 0, "total_ns": 0, "ios": 0}, False)
    {'saturated': False, 'reason': None}
    """
    stood_still = bool(gaps and gaps["count"])
    return {"saturated": saturated or stood_still, "reason": STOOD_STILL if stood_still else None}


def stood_still_s(point: Record) -> float:
    """How long the generator stood still in a point's window; 0 where it did not or that is not recorded."""
    gaps = (point.get("generator") or {}).get("gaps") or {}
    return float(gaps.get("total_ns") or 0) / 1e9


def were_apart(point: Record) -> bool:
    """Whether hosts measured a point too far apart for an answer to rest on it."""
    return (point.get("generator") or {}).get("reason") == HOSTS_APART


def overdriven_words(point: Record) -> str:
    """Why a point on a served array says nothing of the array; empty where its host kept up."""
    for served in point.get("served") or ():
        late = served.get("lateness") or {}
        if late.get("overdriven"):
            seconds = f"{late.get('overdriven_s') or 0} of {count_of(late.get('busy_s') or 0, 'second')}"
            return f"the served array was overdriven in {seconds}: this host cannot serve such load in time"
    return ""


def with_overdriven(figures: Record) -> Record:
    """Figures of a point; where its served array was overdriven, its load says nothing of the array."""
    if not overdriven_words(figures):
        return figures
    generator = {"gaps": None, **(figures.get("generator") or {})}
    reason = generator.get("reason") or OVERDRIVEN
    return {**figures, "generator": {**generator, "saturated": True, "reason": reason}}


def why_saturated(point: Record) -> str:
    """Why a point whose `generator.saturated` holds may not be an answer, as a clause."""
    if (point.get("generator") or {}).get("reason") == OVERDRIVEN:
        return overdriven_words(point) or "the served array was overdriven"
    return "its hosts measured too far apart" if were_apart(point) else "the load generator was the bottleneck"


def bounded_words(point: Record, words: str, *, is_rate: bool = True) -> str:
    """What a figure of a point says of the storage: a rate is the least that it does where the load was too small.

    Parameters
    ----------
    words
        The figure in words, at the head of them.
    is_rate
        Whether more is better; a latency is told with the reservation alone.

    Examples
    --------
    >>> bounded_words({"generator": {"saturated": True, "reason": None}}, "883 MiB/s")
    'at least 883 MiB/s; the load had too little processor time, so the storage may do more'
    """
    if not (point.get("generator") or {}).get("saturated"):
        return words
    if were_apart(point):
        return f"{words}; its hosts measured too far apart, so the storage may do more"
    if words_late := overdriven_words(point):
        return f"{words}; {words_late}"
    why = "stood still for a while" if stood_still_s(point) else "had too little processor time"
    if not is_rate:
        return f"{words}; the load {why}, so the storage may do better"
    return f"at least {words}; the load {why}, so the storage may do more"


def generator_words(point: Record) -> str:
    """What is wrong with the generator of a point, in a few words; empty where nothing is."""
    if seconds := stood_still_s(point):
        return f"generator stood still for {format_duration(seconds)}"
    if were_apart(point):
        return "hosts measured apart"
    if overdriven_words(point):
        return "served array overdriven"
    return "generator saturated" if (point.get("generator") or {}).get("saturated") else ""
