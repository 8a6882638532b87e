"""Spans that are measured to see where a cache ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.workloads.io.cache_span_plan import SMALLEST_SPAN_BYTES, cache_span_plan

MIB = 1 << 20


@given(size_bytes=st.integers(SMALLEST_SPAN_BYTES // 4096, 1 << 30).map(lambda pages: pages * 4096))
def test_spans_grow_from_the_smallest_to_the_whole_volume(size_bytes: int) -> None:
    workloads = cache_span_plan(size_bytes).workloads()
    spans = [round(workload.activities[0].region[1] * size_bytes) for workload in workloads]

    assert spans == sorted(set(spans))
    assert (spans[0], spans[-1]) == (min(SMALLEST_SPAN_BYTES, size_bytes), size_bytes)
    assert {workload.activities[0].depth for workload in workloads} == {1}
    assert not any(workload.writes for workload in workloads)


def test_a_small_volume_is_one_span() -> None:
    assert len(cache_span_plan(MIB).workloads()) == 1
