"""The JSON document of docs/results.md as a check: every documented key, its type, and what must agree with what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assay import _core
from assay.targets.files.spec import FAULTS

NUMBER = (int, float)
NULL = type(None)
MAYBE = (*NUMBER, NULL)
LATENCIES = dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"), NUMBER)
DIRECTION = {"count": int, "iops": NUMBER, "bytes_per_s": NUMBER, "latency_ns": LATENCIES, "histogram": str}
SIDES = {"read": (DIRECTION, NULL), "write": (DIRECTION, NULL), "total": (DIRECTION, NULL)}
TELEMETRY = (
    "cpu_share", "iowait_share", "steal_share", "tcp_retransmit_share", "device_iops", "device_bytes_per_s",
    "device_queue",
)  # fmt: skip
GAPS = dict.fromkeys(("count", "longest_ns", "total_ns", "ios"), int)
BATCH = {"iops": [NUMBER], "latency_mean_ns": [MAYBE]}

ACCESS = {
    "block_bytes": (int, dict), "read_share": NUMBER, "random_share": NUMBER, "skew": str, "streams": int,
    "align_bytes": (int, NULL), "region": [NUMBER], "compressible_share": NUMBER, "duplicate_share": NUMBER,
    "io_mode": str, "sync": str, "sync_every": int, "role": str,
}  # fmt: skip

POINT = {
    "id": str, "key": str, "part": str, "repeat": int, "purpose": str, "started_utc_ns": int,
    "measured_from_utc_ns": int, "measured_to_utc_ns": int, "warmup_s": NUMBER,
    "measured_s": NUMBER, "ended_by": str,
    "workload": {"kind": str, "name": str},
    "load": dict,
    **SIDES,
    "flush": (DIRECTION, NULL),
    "roles": dict,
    "volumes": [{"name": str, "role": str, **SIDES}],
    "activities": [{"name": str, "role": str, **SIDES}],
    "bursts": ({"share_of_time": NUMBER, "count": int, "read_during": (DIRECTION, NULL),
                "read_between": (DIRECTION, NULL)}, NULL),
    "service_latency_ns": (LATENCIES, NULL),
    "offered": ({"rate": NUMBER, "unfinished": int, "oldest_unfinished_ns": int, "sustained": bool}, NULL),
    "errors": {"count": int, "kinds": {"EIO": int, "ENOSPC": int, "short": int, "other": int}},
    "outside_window": {"count": int, "longest_ns": NUMBER},
    "steady": {"reached": bool, "window_s": NUMBER, "slope_share": MAYBE, "half_width_share": MAYBE},
    "generator": {"cpu_share": MAYBE, "fullest_worker_share": MAYBE, "schedule_lag_p99_ns": MAYBE,
                  "clock_ns": MAYBE, "cpu_ns_per_io": MAYBE, "cpu_unit_ns": MAYBE,
                  "gaps": (GAPS, NULL), "saturated": bool, "reason": (str, NULL)},
    "batches": {"seconds": NUMBER, "read": BATCH, "write": BATCH, "total": BATCH},
    "telemetry": dict.fromkeys(TELEMETRY, MAYBE),
    "engine": {"backend": str, "features": [str], "degraded": [str]}, "met": (bool, NULL),
    "limits": [{"limit": str, "scope": str, "value": MAYBE, "unit": str, "met": (bool, NULL), "reason": (str, NULL),
                "why": (str, NULL)}],
}  # fmt: skip

LIMITING = {"limit": str, "scope": str, "share": NUMBER, "interval_95": [NUMBER]}
END = {
    "iops": NUMBER, "bytes_per_s": NUMBER, "read_latency_mean_ns": MAYBE, "write_latency_mean_ns": MAYBE,
    "interval_95": ([NUMBER], NULL), "limiting": (LIMITING, NULL), "point_id": str,
}  # fmt: skip
ANSWER = {
    "workload": {"kind": str, "name": str}, "part": str, "limits": [str], "axis": str, "point_ids": [str],
    "max": (END, NULL), "knee": (END, NULL), "edge": (END, NULL), "first_failing": (END, NULL), "limited_by": str,
    "interval_95": ([NUMBER], NULL), "crossing": ({"interval_95": ([NUMBER], NULL)}, NULL), "step_share": MAYBE,
    "resolution_share": NUMBER, "undecided": bool, "non_monotone": bool,
}  # fmt: skip
VERDICT = {
    "question": str, "limit": (str, NULL), "value": MAYBE, "unit": str, "met": (bool, NULL), "meaning": str,
    "asked": bool, "point_id": (str, NULL), "part": str,
}  # fmt: skip
VOLUME = {
    "name": str, "path": (str, NULL), "kind": str, "role": str, "size_bytes": int, "state": str,
    "bytes_laid_out": int, "created_by_assay": bool, "file_system": (str, NULL), "mount_options": (str, NULL),
    "device": (str, NULL), "device_stack": [str], "model": (str, NULL), "queue": (dict, NULL),
}  # fmt: skip
DOCUMENT = {
    "schema_version": int, "verb": str, "run_folder": str, "status": str,
    "points": [POINT], "answers": [ANSWER], "verdict": [VERDICT],
    "target": {"volumes": [VOLUME], "cache_notice": str},
    "host": {"hostname": str, "kernel": str, "distribution": (str, NULL), "cpu_model": (str, NULL), "cpu_count": int,
             "memory_bytes": int, "virtualization": (str, NULL), "python": str},
    "engine": {"backend": str, "features": [str], "degraded": [str]},
    "cache_span": ({"steps": [{"span_bytes": int, "latency_mean_ns": NUMBER, "latency_p50_ns": NUMBER, "iops": NUMBER}],
                    "ends_at_bytes": (int, NULL), "note": str}, NULL),
    "notices": [str],
}  # fmt: skip


FOUND = dict.fromkeys(FAULTS, int)
FINDING = {
    "id": str, "kind": str, "also": [str], "persistent": bool, "file": (str, NULL), "page": (int, NULL),
    "offset_bytes": (int, NULL), "length_bytes": (int, NULL), "phase": str, "cycle": int, "found_utc_ns": int,
    "by": str, "rereads": int, "explanation": str, "expected": (dict, NULL), "units": [{"first": int, "last": int}],
    "differing_bytes": (int, NULL), "ranges": [[int]], "elsewhere": (dict, NULL), "operation": (str, NULL),
    "errno": (int, NULL), "evidence": (str, NULL),
}  # fmt: skip
INTEGRITY = {
    "passed": bool, "audited": bool, "findings": FOUND, "transient": FOUND, "persistent": FOUND,
    "injected": (FOUND, NULL), "observable": (FOUND, NULL), "masked": (FOUND, NULL), "seed": int, "run_identity": str,
    "cycles": int, "pages": int, "pages_verified": int, "bytes_verified": int, "pages_written": int,
    "bytes_written": int, "expected_state_bytes": int, "log_blocks": int, "resizes": int, "stopped_on_error": bool,
    "phases": [{"name": str, "cycle": int, "seconds": NUMBER, "point_id": str, "pages_verified": int,
                "pages_written": int}],
    "files": [{"name": str, "path": str, "log": bool, "size_bytes": int, "target_io_ms": NUMBER,
               "average_io_ms": NUMBER, "throttled": int, "reads": int, "scatter_reads": int, "writes": int,
               "gather_writes": int, "io_time_ms": NUMBER, "slowest_io_ms": NUMBER}],
    "understood": [str], "details": [FINDING], "details_left_out": int, "evidence": str, "error_log": str,
}  # fmt: skip


def check_document(document: Mapping[str, Any]) -> None:
    """Compare a document with the contract, key by key, and its figures with each other."""
    check(document, DOCUMENT, "document")
    if document["verb"] == "verify":
        _check_integrity(document)
    for point in document["points"]:
        _check_point(point)
    ids = [point["id"] for point in document["points"]]
    assert len(set(ids)) == len(ids)
    for answer in document["answers"]:
        assert set(answer["point_ids"]) <= set(ids)
        for end in (answer["max"], answer["knee"], answer["edge"], answer["first_failing"]):
            assert end is None or (end["point_id"] in answer["point_ids"] and answer["axis"] in end)


def check(value: Any, expected: Any, where: str) -> None:
    """Compare a value with a type, a tuple of alternatives, a table of keys, or a list of one form."""
    if isinstance(expected, tuple):
        forms = [form for form in expected if isinstance(form, (dict, list))]
        if forms and isinstance(value, type(forms[0])):
            check(value, forms[0], where)
        else:
            assert isinstance(value, tuple(form for form in expected if isinstance(form, type))), (where, value)
    elif isinstance(expected, dict):
        assert isinstance(value, dict), where
        for key, form in expected.items():
            assert key in value, f"{where}.{key} is missing"
            check(value[key], form, f"{where}.{key}")
    elif isinstance(expected, list):
        assert isinstance(value, list), where
        for position, element in enumerate(value):
            check(element, expected[0], f"{where}[{position}]")
    else:
        assert isinstance(value, expected), (where, value)
        assert expected is bool or not isinstance(value, bool), (where, value)


def _check_integrity(document: Mapping[str, Any]) -> None:
    """Counts of findings add up, and every phase has its point."""
    integrity = document["integrity"]
    check(integrity, INTEGRITY, "document.integrity")
    for name in FAULTS:
        assert integrity["findings"][name] == integrity["transient"][name] + integrity["persistent"][name]
    assert len(integrity["details"]) + integrity["details_left_out"] == sum(integrity["findings"].values())
    phases = [(phase["point_id"], phase["name"]) for phase in integrity["phases"]]
    assert phases == [(point["id"], point["workload"]["phase"]) for point in document["points"]]
    for key in ("pages_verified", "pages_written"):
        assert sum(phase[key] for phase in integrity["phases"]) == integrity[key]


def _check_point(point: Mapping[str, Any]) -> None:
    assert point["ended_by"] in ("steady", "time", "interrupted", "not-answering", "failed")
    assert point["purpose"] in ("grid", "search", "repeat")
    if point["workload"]["kind"] == "integrity":
        assert (point["load"], point["steady"]["slope_share"]) == ({"kind": "integrity"}, None)
    else:
        _check_asked(point)
    for role, directions in point["roles"].items():
        check(directions, SIDES, f"{point['id']}.roles.{role}")
    for side in ("read", "write", "total"):
        _check_direction(point, side)
    _check_sums(point)


def _check_asked(point: Mapping[str, Any]) -> None:
    """Workload and load of an I/O point."""
    activities = point["workload"].get("activities")
    for access in activities or [point["workload"]]:
        check(access, ACCESS, f"{point['id']}.workload")
    keys = {"mixed": {"kind"}, "open": {"rate", "arrivals", "workers"}}
    kind = "mixed" if activities else "open" if "rate" in point["load"] else "closed"
    assert set(point["load"]) == keys.get(kind, {"queue_depth", "workers", "outstanding"})
    if kind == "closed":
        assert point["load"]["outstanding"] // point["load"]["workers"] == point["load"]["queue_depth"]


def _check_direction(point: Mapping[str, Any], side: str) -> None:
    figures = point[side]
    if figures is None:
        return
    latency = figures["latency_ns"]
    ordered = [latency[name] for name in ("p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")]
    assert ordered == sorted(ordered)
    assert figures["iops"] * point["measured_s"] == pytest.approx(figures["count"])
    histogram = _core.Histogram.from_base64(figures["histogram"])
    assert histogram.count == figures["count"]
    assert histogram.percentile(99) == pytest.approx(latency["p99"], rel=0.002)


def _check_sums(point: Mapping[str, Any]) -> None:
    """Reads and writes make the total; roles, volumes and activities make the point."""

    def count(table: Mapping[str, Any], side: str) -> int:
        return table[side]["count"] if table[side] else 0

    assert count(point, "total") == count(point, "read") + count(point, "write")
    for side in ("read", "write", "total"):
        for tables in (point["roles"].values(), point["volumes"], point["activities"]):
            assert sum(count(table, side) for table in tables) == count(point, side)
