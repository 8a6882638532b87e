"""A compiled core that reports what a test wrote, in the form of `_core.Verification`."""

from __future__ import annotations

import base64
import json
from typing import Any

MIB = 1 << 20
PAGE = 8192


def side(count: int = 0, size: int = PAGE) -> dict[str, Any]:
    if not count:
        return {"count": 0, "bytes": 0, "mean_ns": None, "p50_ns": None, "p99_ns": None, "max_ns": None}
    return {"count": count, "bytes": count * size, "mean_ns": 1e6, "p50_ns": 1e6, "p99_ns": 2e6, "max_ns": 3e6}


def tick(number: int, file: int = 0) -> dict[str, Any]:
    return {"tick": number, "file": file, "read": side(10), "write": side(5), "error_count": 0}


def phase(name: str, from_s: float, to_s: float, cycle: int = 1, verified: int = 0) -> dict[str, Any]:
    return {"name": name, "cycle": cycle, "from_ns": round(from_s * 1e9), "to_ns": round(to_s * 1e9),
            "pages_verified": verified, "pages_written": 7}  # fmt: skip


def finding(number: int = 1, kind: str = "torn", **fields: Any) -> dict[str, Any]:
    expected, received = b"\x01" * PAGE, b"\x01" * 512 + b"\x02" * (PAGE - 512)
    return {
        "id": number, "kind": kind, "also": [], "persistent": True, "file": 0, "page": 3, "offset_bytes": 3 * PAGE,
        "length_bytes": PAGE, "phase": "stress", "cycle": 1, "found_ns": 2_000_000_000, "by": "audit", "rereads": 15,
        "explanation": "units 1-15 hold the older generation 1",
        "expected": {"file": 0, "page": 3, "generation": 2, "written_ns": 1_000_000_000, "writer": "random", "lsn": 9,
                     "checksum": 77},
        "units": [{"first": 0, "last": 0, "state": "expected", "file": None, "page": None, "generation": 2},
                  {"first": 1, "last": 15, "state": "older", "file": 0, "page": 3, "generation": 1}],
        "differing_bytes": PAGE - 512, "ranges": [[512, PAGE]], "elsewhere": None, "operation": "read", "errno": None,
        "expected_image": base64.b64encode(expected).decode(), "received_image": base64.b64encode(received).decode(),
        "other_images": [],
        "history": [{"at_ns": 1_000_000_000, "ended_ns": 1_001_000_000, "op": "write", "user": "random", "file": 0,
                     "page": 3, "pages": 1, "generation": 2, "result": "ok"}],
        **fields,
    }  # fmt: skip


def file_facts(size_bytes: int) -> dict[str, Any]:
    return {"target_io_ns": 100_000_000, "average_io_ns": 1_500_000, "throttled": 2, "reads": 10, "scatter_reads": 3,
            "writes": 5, "gather_writes": 1, "io_time_ns": 30_000_000, "slowest_io_ns": 3_000_000,
            "size_bytes": size_bytes}  # fmt: skip


def report(**fields: Any) -> dict[str, Any]:
    return {
        "state": "running", "detail": None, "error": None, "stopped_on_error": False, "audited": False,
        "phase": "stress", "cycle": 1, "done_share": 0.5, "phase_elapsed_ns": 10**9, "now_ns": 2 * 10**9,
        "counts": {"pages_verified": 100, "bytes_verified": 100 * PAGE, "pages_written": 50,
                   "bytes_written": 50 * PAGE, "resizes": 0},
        "outstanding": 4, "long_outstanding": [], "ticks": [], "findings": [], "phases": [],
        "files": [file_facts(8 * MIB), file_facts(16 * MIB)], "injected": None, "observable": None, "masked": None,
        **fields,
    }  # fmt: skip


def ended(*phases: dict[str, Any], **fields: Any) -> dict[str, Any]:
    done = list(phases) or [phase("prepare", 0, 1), phase("stress", 1, 2, verified=60), phase("checkpoint", 2, 2.1),
                            phase("audit", 2.1, 3, verified=40)]  # fmt: skip
    return report(**{"state": "ended", "audited": True, "phase": "audit", "phases": done, **fields})


class ScriptedCore:
    """Gives its reports one after the other, the last one for ever; new ticks and findings only once."""

    def __init__(self, *reports: dict[str, Any]) -> None:
        self.reports = list(reports)
        self.asked: dict[str, Any] = {}
        self.polls = 0
        self.is_stopped = False

    def __call__(self, plan_json: str) -> ScriptedCore:
        self.asked = json.loads(plan_json)
        return self

    def poll(self) -> str:
        self.polls += 1
        given = self.reports[0]
        if len(self.reports) > 1:
            self.reports.pop(0)
        else:
            self.reports[0] = given | {"ticks": [], "findings": []}
            if self.is_stopped and given["state"] == "running":
                self.reports[0] |= {"state": "ended"}
        return json.dumps(given)

    def stop(self) -> None:
        self.is_stopped = True

    def point(self, number: int) -> str:
        del number
        latency = dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"), 1e6)
        one = {"count": 10, "iops": 10.0, "bytes_per_s": 81920.0, "latency_ns": latency, "histogram": ""}
        sides = {"read": one, "write": None, "total": one}
        return json.dumps(
            {
                **sides, "flush": None, "roles": {"data": sides},
                "volumes": [{"name": "f", "role": "data", **sides}],
                "activities": [{"name": "random", "role": "data", **sides}],
                "errors": {"count": 0, "kinds": {"EIO": 0, "ENOSPC": 0, "short": 0, "other": 0}},
                "service_latency_ns": None, "bursts": None,
                "generator": {"cpu_share": 0.2, "fullest_worker_share": 0.2, "schedule_lag_p99_ns": None, "gaps": None},
            }
        )  # fmt: skip

    def engine(self) -> str:
        return json.dumps({"backend": "threads", "features": [], "degraded": []})
