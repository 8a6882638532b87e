"""The plan that shows where a cache ends."""

from __future__ import annotations

from assay.workloads.io.cache_span import PART
from assay.workloads.io.plan import IoPlan, load_plan

SMALLEST_SPAN_BYTES = 16 << 20
SPAN_FACTOR = 4


def cache_span_plan(size_bytes: int, *, seconds: float = 1.0) -> IoPlan:
    """One point a span: 8 KiB random reads, one outstanding, on ever larger parts of the volume."""
    spans = []
    span_bytes = min(SMALLEST_SPAN_BYTES, size_bytes)
    while span_bytes < size_bytes:
        spans.append(span_bytes)
        span_bytes *= SPAN_FACTOR
    spans.append(size_bytes)
    return load_plan(
        {
            "name": PART,
            "title": "Latency against span",
            "timing": {"warmup_s": seconds / 4, "duration_s": seconds},
            "activity": [{"block_bytes": "8K", "read_share": 1.0, "queue_depth": 1}],
            "case": [{"region": [0.0, span / size_bytes]} for span in spans],
        },
        source="latency against span",
    )


def cache_span_of_part(size_bytes: int, planned_s: float | None) -> IoPlan:
    """The plan for a volume of this size in so many seconds, half a second to five for each span."""
    spans = len(cache_span_plan(size_bytes).workloads())
    seconds = min((planned_s or 10.0) / spans * 0.8, 5.0)
    return cache_span_plan(size_bytes, seconds=max(seconds, 0.5))
