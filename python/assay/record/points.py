"""Points of a run folder: those that count, and their loads in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.units import count_of, format_bytes

PRECONDITION = "precondition"
"""Purpose of points that bring a target into a state, and are no result of the run."""

MEMORY_AXIS = "memory_bytes"
"""Axis of a search over memory: less memory is the harder load."""

CUT_SHORT = ("interrupted", "not-answering", "failed")
"""Ends of points that are measured again when a run goes on."""


def current_points(points: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The points that count: where a point was measured again, the last finished one of its key.

    Those that only brought the target into its state are left out (`preconditioning`).

    Examples
    --------
    >>> ended = [{"id": "p1", "key": "a", "ended_by": "time"}, {"id": "p2", "key": "a", "ended_by": "time"}]
    >>> [point["id"] for point in current_points(ended)]
    ['p2']
    """
    points = [point for point in points if point.get("purpose") != PRECONDITION]
    last = {point["key"]: place for place, point in enumerate(points) if _is_finished(point)}
    return [point for place, point in enumerate(points) if not _is_finished(point) or last[point["key"]] == place]


def preconditioning(points: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The finished points that brought the target into its state; of a key that was measured again the last one."""
    own = {point["key"]: point for point in points if point.get("purpose") == PRECONDITION and _is_finished(point)}
    return list(own.values())


def _is_finished(point: Mapping[str, object]) -> bool:
    """Whether a resumed run would take it over; a report outlives points that lack their key."""
    return "key" in point and point.get("ended_by") not in CUT_SHORT


def describe_load(load: Mapping[str, Any]) -> str:
    """A load for people."""
    if load.get("outstanding", 0) % load.get("workers", 1):
        return f"{load['outstanding']} outstanding"
    if "speed" in load:
        return f"speed {load['speed']:.3g}"
    if "queue_depth" in load:
        return f"queue depth {load['queue_depth']}" + (f" x {load['workers']}" if load["workers"] > 1 else "")
    if "rate" in load:
        what = "transactions" if "users" in load else "I/Os"
        return f"{load['rate']:,.0f} {what} per s, {load['arrivals']}"
    return _counted(load) or str(load.get("kind") or "mixed")


def _counted(load: Mapping[str, object]) -> str:
    """What a load counts, as users and streams, and the memory that these have."""
    return ", ".join(
        f"{format_bytes(count)} of memory" if name == MEMORY_AXIS else count_of(count, name.removesuffix("s"))
        for name, count in load.items()
        if isinstance(count, int)
    )


def blank_point() -> dict[str, Any]:
    """What a point says of itself where its workload says nothing: keys of docs/results.md, nothing measured."""
    return {
        "clock": "wall",
        "warmup_s": 0.0,
        "ended_by": "time",
        **dict.fromkeys(("read", "write", "total", "flush", "bursts", "service_latency_ns", "offered", "engine")),
        "roles": {},
        "volumes": [],
        "activities": [],
        "errors": {"count": 0, "kinds": {}},
        "outside_window": {"count": 0, "longest_ns": 0},
        "steady": {"reached": False, "window_s": None, "slope_share": None, "half_width_share": None},
        "generator": {
            **dict.fromkeys(("cpu_share", "fullest_worker_share", "schedule_lag_p99_ns", "clock_ns", "cpu_ns_per_io")),
            **dict.fromkeys(("cpu_unit_ns", "gaps", "reason")),
            "saturated": False,
        },
        "batches": {"seconds": None},
        "telemetry": {},
    }


def load_text(load: Mapping[str, object]) -> str:
    """Load of a point in words.

    Examples
    --------
    >>> load_text({"outstanding": 96, "queue_depth": 8, "workers": 12}), load_text({"rate": 5000.0})
    ('96 outstanding', '5,000/s')
    >>> load_text({"users": 1}), load_text({"streams": 4}), load_text({"kind": "mixed"})
    ('1 user', '4 streams', 'mixed')
    >>> load_text({"streams": 1, "memory_bytes": 1 << 26})
    '1 stream, 64 MiB of memory'
    """
    if load.get("speed") is not None:
        return f"speed {load['speed']:.3g}"
    if load.get("rate") is not None:
        return f"{load['rate']:,.0f}/s"
    if load.get("outstanding") is not None:
        return f"{load['outstanding']} outstanding"
    return _counted(load) or str(load.get("kind") or "-")
