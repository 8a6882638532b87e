"""Late I/Os whose time in the device is known apart from that in the queue above it."""

from __future__ import annotations

from typing import Any

from assay.insight.diagnosis.diagnose import Diagnosis, diagnose
from assay.insight.diagnosis.observed import ObservedSource
from series_rows import series_of
from series_rows import series_rows as rows

STEPS = 120
HALF = STEPS // 2


def vda(metric: str, value: float, then: float) -> list[dict[str, Any]]:
    return rows("block", "vda", metric, [value] * HALF + [then] * HALF, tier="storage")


def split(queue_ns: float, device_ns: float) -> Diagnosis:
    """A device whose I/Os are late from half of the time on: this much in the queue, this much in the device."""
    series = [
        *vda("read_latency_mean_ns", 300e3, queue_ns + device_ns),
        *vda("queue_latency_mean_ns", 10e3, queue_ns),
        *vda("device_latency_mean_ns", 290e3, device_ns),
        *vda("queue_mean_count", 1.0, 64.0),
        *rows("block", "vda", "read_ios_count", [2000.0] * STEPS, kind="delta", tier="storage"),
        *rows("host", "cpu", "user_share", [0.2] * STEPS),
    ]
    return diagnose([ObservedSource(name="made", manifest={}, series=series_of(series))])


def test_time_in_the_device_is_a_slow_disk() -> None:
    found = split(2e6, 40e6)
    assert found.first == "slow-disk"
    assert found.causes[0].notes == ["vda: 40.0 ms in the device, 2.00 ms in the queue above it"]
    assert "throttled-queue" not in [one.cause for one in found.causes]


def test_time_above_a_device_that_answers_in_time_is_a_throttled_queue() -> None:
    found = split(40e6, 400e3)
    assert found.first == "throttled-queue"
    assert any("in this host's block layer" in signal.text for signal in found.causes[0].signals)
    assert "slow-disk" not in [one.cause for one in found.causes]
