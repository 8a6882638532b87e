"""A run with the points that an export has to cope with."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

Point = dict[str, Any]


@pytest.fixture
def manifest() -> dict[str, Any]:
    return {
        "schema_version": 1, "run_id": "20261120-101500-profile-a1b2c3", "verb": "profile",
        "started_utc_ns": 1_795_169_700_123_456_789, "host": {"hostname": "db1", "kernel": "6.1.0"},
        "build": {"version": "0.1.0"}, "engine": {"backend": "io_uring"},
    }  # fmt: skip


def direction(core: Any, *, count: int, seed: int, mean_ns: float = 1e6, block_bytes: int = 8192) -> dict[str, Any]:
    """A direction measured for 5 s, with exponential latencies, in the form of docs/results.md."""
    generator, histogram = random.Random(seed), core.Histogram()
    for _ in range(count):
        histogram.record(200 + int(generator.expovariate(1 / mean_ns)))
    keys = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
    latency = {"mean": histogram.mean, **{key: histogram.percentile(at) for key, at in keys.items()}}
    return {
        "count": count,
        "iops": count / 5,
        "bytes_per_s": count / 5 * block_bytes,
        "latency_ns": {**latency, "max": histogram.max},
        "histogram": histogram.to_base64(),
    }


@pytest.fixture
def make_point() -> Callable[..., Point]:
    """Build a point; keywords replace keys of its workload, `load` and other keys of the point replace those."""
    core = pytest.importorskip("assay._core", reason="the compiled module is not built")

    def make(identity: str = "p0001", *, load: dict[str, Any] | None = None, seed: int = 1, **workload: Any) -> Point:
        asked = {
            "kind": "io", "name": '8 KiB "random" 70/30', "role": "data", "block_bytes": 8192, "read_share": 0.7,
            "random_share": 1.0, "skew": "uniform", "io_mode": "direct", "sync": "none", "sync_every": 1,
        } | workload  # fmt: skip
        reads = direction(core, count=700, seed=seed) if asked["read_share"] > 0 else None
        writes = direction(core, count=300, seed=seed + 1, mean_ns=2e6) if asked["read_share"] < 1 else None
        return {
            "id": identity, "key": "k", "part": "oltp", "repeat": 0, "purpose": "grid", "ended_by": "steady",
            "started_utc_ns": 1_795_169_710_000_000_000, "warmup_s": 1.0, "measured_s": 5.0, "workload": asked,
            "load": load or {"queue_depth": 8, "workers": 2, "outstanding": 16},
            "read": reads, "write": writes, "flush": None,
            "total": direction(core, count=1000, seed=seed + 2), "service_latency_ns": None,
            "errors": {"count": 2, "kinds": {"EIO": 2, "ENOSPC": 0}},
            "steady": {"reached": True, "window_s": 4.0, "slope_share": 0.01, "half_width_share": 0.02},
            "generator": {"cpu_share": 0.25, "schedule_lag_p99_ns": None, "clock_ns": 11, "saturated": False},
            "batches": {"seconds": 0.5, "read": {"iops": [130.0, 140.0, 150.0], "latency_mean_ns": [9e5, 1e6, 1.1e6]}},
            "limits": [
                {"limit": "read.mean<=20ms", "scope": "data/f", "value": 1e6, "unit": "ns", "met": True},
                {"limit": "write.mean<=1ms", "scope": "data/f", "value": 2e6, "unit": "ns", "met": False},
                {"limit": "log.write.mean<=5ms", "scope": "log", "value": None, "unit": "ns", "met": None},
            ],
        }  # fmt: skip

    return make
