"""Where a cache ends: latency of single random reads against the span they are spread over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.base.units import format_bytes, format_latency
from assay.record.shapes.point import Point
from assay.workloads.io.shapes import CacheSpan, CacheStep, asked_of

PART = "cache-span"
STEP_SHARE = 1.5
"""Latency this many times that of the smaller spans, and staying so, is taken for the end of a cache."""


def cache_span(points: Iterable[Point], size_bytes: int) -> CacheSpan | None:
    """The manifest's `cache_span` from the points of its part; None without them."""
    steps: list[CacheStep] = [
        {
            "span_bytes": round((asked_of(point)["region"] or (0.0, 1.0))[1] * size_bytes),
            "latency_mean_ns": read["latency_ns"]["mean"],
            "latency_p50_ns": read["latency_ns"]["p50"],
            "iops": read["iops"],
            "point_id": point["id"],
        }
        for point in points
        if point["part"] == PART and (read := point["read"])
    ]
    if not steps:
        return None
    steps.sort(key=lambda step: step["span_bytes"] or 0)
    ends_at = cache_end_bytes([(step["span_bytes"] or 0, step["latency_p50_ns"] or 0.0) for step in steps])
    largest = format_bytes(steps[-1]["span_bytes"] or 0)
    if ends_at is None:
        note = f"no step up to {largest}: either no cache, or one that holds all of it"
    else:
        note = f"median read latency rises beyond {format_bytes(ends_at)}: a cache seems to end there"
    note += f" (median {format_latency(steps[0]['latency_p50_ns'])} to {format_latency(steps[-1]['latency_p50_ns'])})"
    return {"steps": steps, "ends_at_bytes": ends_at, "note": note}


def cache_end_bytes(steps: Sequence[tuple[int, float]]) -> int | None:
    """The last span before latency rises for good, from (span in bytes, median latency) ascending by span.

    Examples
    --------
    >>> cache_end_bytes([(16, 80.0), (64, 82.0), (256, 150.0), (1024, 210.0)])
    64
    >>> cache_end_bytes([(16, 80.0), (64, 140.0), (256, 81.0)]) is None
    True
    """
    for index in range(1, len(steps)):
        before = min(latency for _, latency in steps[:index])
        if all(latency >= before * STEP_SHARE for _, latency in steps[index:]):
            return steps[index - 1][0]
    return None
