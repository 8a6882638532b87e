"""Histograms of times above devices and in them, as the recorder keeps them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from assay.record.latency_buckets import bucket_end_ns
from assay.telemetry.collectors.latencies import (
    BUCKET_DEVICES,
    LatenciesCollector,
    SideTimes,
    percentile_ns,
)

BUCKETS = 62


def times(counts: Mapping[int, int], sum_ns: int = 0, max_ns: int = 10**12) -> SideTimes:
    return SideTimes([counts.get(bucket, 0) for bucket in range(BUCKETS)], sum_ns, max_ns)


def values(found: Mapping[tuple[str, str], tuple[SideTimes, SideTimes]]) -> dict[tuple[str, str], float]:
    collector = LatenciesCollector(roles={"vda": "data"})
    return {(one.entity, one.metric): one.value for one in collector.readings({}, found, 10**9)}


def test_both_times_are_told_by_device_and_direction_and_of_reads_and_writes_together() -> None:
    queue, device = times({3: 90, 21: 10}, 10**6, 1_100_000), times({15: 100}, 2 * 10**7)
    writes = times({20: 300}, 3 * 10**8)
    found = values({("vda", "read"): (queue, device), ("vda", "write"): (times({}), writes)})
    assert found["vda", "read_queue_latency_mean_ns"] == 1e4
    assert found["vda", "read_device_ios_count"] == 100
    assert found["vda", "read_queue_bucket03_count"] == 90
    assert found["vda", "read_queue_bucket21_count"] == 10
    assert ("vda", "read_queue_bucket04_count") not in found
    assert bucket_end_ns(2) <= found["vda", "read_queue_latency_p50_ns"] <= bucket_end_ns(3)
    assert found["vda", "read_queue_latency_p99_ns"] <= found["vda", "read_queue_latency_max_ns"] == 1_100_000
    assert ("vda", "write_queue_latency_mean_ns") not in found
    assert found["vda", "device_latency_mean_ns"] == pytest.approx((2e7 + 3e8) / 400)
    assert found["vda", "queue_ios_count"] == 100


def test_a_flush_is_no_read_and_no_write() -> None:
    found = values({("vda", "flush"): (times({}), times({25: 4}, 4 * 10**7))})
    assert found["vda", "flush_device_latency_mean_ns"] == 1e7
    assert ("vda", "device_latency_mean_ns") not in found


def test_buckets_of_very_many_devices_are_left_out() -> None:
    found = values({(f"sd{number:03}", "read"): (times({}), times({9: 1}, 1)) for number in range(100)})
    bucketed = {entity for entity, metric in found if "_bucket" in metric}
    assert len(bucketed) == BUCKET_DEVICES
    assert len({entity for entity, _ in found}) == 100


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1.0])
def test_a_percentile_lies_within_the_bucket_of_its_io(share: float) -> None:
    one = times({10: 1})
    assert bucket_end_ns(9) <= percentile_ns(one, share) <= bucket_end_ns(10)
