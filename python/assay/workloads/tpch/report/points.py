"""What points of queries say, for all sections of their report."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes
from assay.document.text import DASH, shorten
from assay.record.points import MEMORY_AXIS
from assay.record.source import RunFacts

KIND = "tpch"

QUEUE_WAITS = 0.5
"""A query waits for reads where at least so many I/Os were outstanding on average: half of its time, or more."""

CPU_BUSY_SHARE = 0.9
"""With processors this busy it computes, however much is read meanwhile."""


def points_of(facts: RunFacts) -> list[Record]:
    """Points of queries."""
    return [point for point in facts.points_of(KIND) if point.get("dss")]


def variants(facts: RunFacts, points: Sequence[Record]) -> dict[str, str]:
    """A name for each point by its id: its part, the test, its memory and the run, each where there are several."""
    titles = {part.get("name"): str(part.get("title")) for part in facts.manifest.get("parts") or []}
    parts = {point.get("part") for point in points}
    tests = {point["dss"].get("test") for point in points}
    runs = {point["dss"].get("run") for point in points}
    memories = {(point.get("load") or {}).get(MEMORY_AXIS) for point in points}
    named = {}
    for point in points:
        dss = point["dss"]
        test = test_words(point)
        words = [shorten(titles.get(point.get("part") or "", DASH), 40)] if len(parts) > 1 else []
        words += [test] if len(tests) > 1 or not words else []
        memory = (point.get("load") or {}).get(MEMORY_AXIS)
        words += [f"{format_bytes(memory)} of memory"] if len(memories) > 1 and memory is not None else []
        words += [f"run {dss.get('run')}"] if len(runs) > 1 else []
        named[str(point.get("id"))] = ", ".join(words)
    return named


def test_words(point: Record) -> str:
    """Which test a point is: the power test, or so many streams."""
    dss = point["dss"]
    return "power" if dss.get("test") == "power" else count_of(int(dss.get("streams") or 0), "stream")


def waits_for(query: Record) -> str:
    """What a query of the power test spent its time with; empty where it cannot be told."""
    queue, cpu = query.get("device_queue"), query.get("cpu_share")
    if queue is None:
        return ""
    return "waits for reads" if queue >= QUEUE_WAITS and (cpu is None or cpu < CPU_BUSY_SHARE) else "computes"


def mean_seconds(point: Record) -> dict[int, float]:
    """Mean time of each query over the streams of a point, of those that came to their end."""
    found: dict[int, list[float]] = {}
    for query in point["dss"].get("queries") or []:
        if query["ended_by"] == "done":
            found.setdefault(int(query["query"]), []).append(float(query["seconds"]))
    return {number: sum(values) / len(values) for number, values in sorted(found.items())}
