"""Invented points of the shapes that a plan will give. Exports are tried on them before the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.record.load import LATENCIES
from assay.report.exports.kinds import measures_io


def expected_point(number: int, workload: Mapping[str, Any], load: Mapping[str, Any]) -> dict[str, Any]:
    """A point with the workload and the load that a plan asks for, in which everything was measured once.

    Parameters
    ----------
    number
        Its place among the points.
    workload, load
        As in a point (docs/results.md).
    """
    side = _direction() if measures_io({"workload": workload}) else None
    activities = [
        {"name": activity["name"], "role": activity.get("role"), "read": side, "write": side, "total": side}
        for activity in workload.get("activities") or []
    ]
    return {
        "id": f"p{number:04d}", "key": f"{number:064x}", "part": "rehearsal", "repeat": 0, "purpose": "grid",
        "started_utc_ns": 10**18, "warmup_s": 1.0, "measured_s": 1.0, "ended_by": "steady",
        "workload": dict(workload), "load": dict(load), "read": side, "write": side, "total": side, "flush": None,
        "roles": {}, "volumes": [], "activities": activities, "bursts": None, "service_latency_ns": None,
        "offered": None, "errors": {"count": 0, "kinds": {}},
        "steady": {"reached": True, "window_s": 1.0, "slope_share": 0.0, "half_width_share": 0.0},
        "generator": {"cpu_share": 0.1, "schedule_lag_p99_ns": None, "clock_ns": 10, "saturated": False},
        "batches": {"seconds": 1.0, "total": {"iops": [1.0], "latency_mean_ns": [1e6]}}, "telemetry": {},
        "engine": None, "limits": [{"limit": "read.mean<=20ms", "scope": "data/f", "value": 1e6, "unit": "ns",
                                    "met": True}],
    }  # fmt: skip


def _direction() -> dict[str, Any]:
    return {
        "count": 1, "iops": 1.0, "bytes_per_s": 8192.0, "latency_ns": dict.fromkeys(LATENCIES, 1e6), "histogram": None
    }  # fmt: skip
