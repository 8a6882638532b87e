"""Invented points of the shapes that a plan will give. Exports are tried on them before the run."""

from __future__ import annotations

from assay.record.shapes.access import BurstyPoint, accesses_of
from assay.record.shapes.point import Sides, Workload
from assay.record.types import Direction, Load, Point
from assay.report.exports.kinds import measures_io


def expected_point(number: int, workload: Workload, load: Load) -> BurstyPoint:
    """A point with the workload and the load that a plan asks for, in which everything was measured once.

    Parameters
    ----------
    number
        Its place among the points.
    workload, load
        As in a point (docs/results.md).
    """
    asked: Point = {"id": f"p{number:04d}", "workload": workload}
    side = _direction() if measures_io(asked) else None
    activities: list[Sides] = [
        {"name": activity["name"], "role": activity.get("role"), "read": side, "write": side, "total": side}
        for activity in accesses_of(asked).get("activities") or []
    ]
    return {
        "id": f"p{number:04d}", "key": f"{number:064x}", "part": "rehearsal", "repeat": 0, "purpose": "grid",
        "started_utc_ns": 10**18, "warmup_s": 1.0, "measured_s": 1.0, "ended_by": "steady",
        "workload": {**workload}, "load": {**load}, "read": side, "write": side, "total": side, "flush": None,
        "roles": {}, "volumes": [], "activities": activities, "bursts": None, "service_latency_ns": None,
        "offered": None, "errors": {"count": 0, "kinds": {}},
        "steady": {"reached": True, "window_s": 1.0, "slope_share": 0.0, "half_width_share": 0.0},
        "generator": {"cpu_share": 0.1, "schedule_lag_p99_ns": None, "clock_ns": 10, "saturated": False},
        "batches": {"seconds": 1.0, "total": {"iops": [1.0], "latency_mean_ns": [1e6]}}, "telemetry": {},
        "engine": None, "limits": [{"limit": "read.mean<=20ms", "scope": "data/f", "value": 1e6, "unit": "ns",
                                    "met": True}],
    }  # fmt: skip


def _direction() -> Direction:
    ns = 1e6
    return {
        "count": 1, "iops": 1.0, "bytes_per_s": 8192.0,
        "latency_ns": {"mean": ns, "p50": ns, "p90": ns, "p95": ns, "p99": ns, "p99_9": ns, "p99_99": ns, "max": ns},
        "histogram": None,
    }  # fmt: skip
