"""Where a cache ends: spans that grow, and the step in latency between them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.workloads.io.cache_span import PART, STEP_SHARE, cache_end_bytes, cache_span

MIB = 1 << 20


latencies = st.floats(min_value=10, max_value=1e6)


@given(
    fast=latencies,
    slow=st.floats(min_value=STEP_SHARE * 1.3, max_value=100),
    cached=st.integers(1, 5),
    beyond=st.integers(1, 5),
    noise=st.lists(st.floats(0.9, 1.1), min_size=10, max_size=10),
)
def test_a_cache_is_found_whatever_the_noise(
    fast: float, slow: float, cached: int, beyond: int, noise: list[float]
) -> None:
    medians = [fast] * cached + [fast * slow] * beyond
    steps = [(4**index, median * factor) for index, (median, factor) in enumerate(zip(medians, noise, strict=False))]

    assert cache_end_bytes(steps) == 4 ** (cached - 1)


@given(median=latencies, noise=st.lists(st.floats(0.85, 1.15), min_size=1, max_size=10))
def test_no_step_is_seen_in_noise(median: float, noise: list[float]) -> None:
    assert cache_end_bytes([(4**index, median * factor) for index, factor in enumerate(noise)]) is None


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ([], None),
        ([(16, 80.0)], None),
        ([(16, 80.0), (64, 140.0), (256, 81.0)], None),
        ([(16, 80.0), (64, 82.0), (256, 150.0), (1024, 210.0)], 64),
        ([(16, 210.0), (64, 150.0), (256, 80.0)], None),
    ],
)
def test_only_a_rise_that_stays_is_an_end(steps: list[tuple[int, float]], end: int | None) -> None:
    assert cache_end_bytes(steps) == end


def point(number: int, span_share: float, median_ns: float, **change: Any) -> dict[str, Any]:
    return {
        "id": f"p{number:04d}",
        "part": PART,
        "workload": {"region": [0.0, span_share]},
        "read": {"iops": 1e9 / median_ns, "latency_ns": {"mean": median_ns * 1.1, "p50": median_ns}},
    } | change


def test_the_manifest_has_the_steps_in_order_and_says_what_they_mean() -> None:
    points = [point(2, 1.0, 150e3), point(1, 0.25, 80e3)]
    span = cache_span(points, 64 * MIB)

    assert span is not None
    assert [(step["span_bytes"], step["latency_p50_ns"], step["point_id"]) for step in span["steps"]] == [
        (16 * MIB, 80e3, "p0001"),
        (64 * MIB, 150e3, "p0002"),
    ]
    assert span["ends_at_bytes"] == 16 * MIB
    for word in ("16 MiB", "80.0 us", "150 us"):
        assert word in span["note"]


def test_without_a_step_both_explanations_are_given() -> None:
    span = cache_span([point(1, 0.25, 80e3), point(2, 1.0, 82e3)], 64 * MIB)

    assert span is not None
    assert span["ends_at_bytes"] is None
    assert "either no cache, or one that holds all of it" in span["note"]


def test_other_parts_and_points_without_reads_are_left_out() -> None:
    assert cache_span([point(1, 1.0, 80e3, part="oltp"), point(2, 1.0, 80e3, read=None)], 64 * MIB) is None
