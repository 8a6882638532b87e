"""Run folders that lie in a history: manifests and points without anything measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
VOLUME = {"name": "v01", "path": "/data/f.dat", "kind": "file", "role": "data", "size_bytes": 1 << 30}
WORKLOAD = {"kind": "io", "block_bytes": 8192, "read_share": 1.0, "random_share": 1.0}


def direction(iops: float, latency_ns: float) -> dict[str, Any]:
    """What reads of 8 KiB did."""
    latency = {"mean": latency_ns, "p99": 2 * latency_ns}
    return {"count": 1000, "iops": iops, "bytes_per_s": iops * 8192, "latency_ns": latency}


def point(iops: float, *, depth: int = 4, state: str | None = None) -> dict[str, Any]:
    """A point of random reads at a queue depth."""
    reads = direction(iops, depth / iops * 1e9)
    return {
        "id": f"p{depth}", "key": f"k{depth}", "part": "custom", "purpose": "measure", "ended_by": "time",
        "clock": "wall", "warmup_s": 0.0, "measured_s": 5.0, "workload": WORKLOAD,
        "load": {"queue_depth": depth, "workers": 1, "outstanding": depth},
        "read": reads, "write": None, "total": reads, "errors": {"count": 0, "kinds": {}}, "limits": [],
        "steady": {"reached": True}, "generator": {"saturated": False}, "activities": [],
        **({"state": {"name": state}} if state else {}),
    }  # fmt: skip


def past_folder(
    results: Path,
    day: int,
    points: Sequence[Mapping[str, Any]],
    *,
    host: Mapping[str, Any] | None = None,
    volume: Mapping[str, Any] | None = None,
    duration_s: float = 5.0,
    **more: Any,
) -> Path:
    """A run folder of a day."""
    started = FIRST + timedelta(days=day)
    name = f"{started:%Y%m%d-%H%M%S}-profile-{day:06x}"
    plan = {"seed": 1, "timing": {"warmup_s": 0.0, "duration_s": duration_s}}
    manifest = {
        "schema_version": 1, "run_id": name, "verb": "profile", "status": "done",
        "started_utc_ns": int(started.timestamp() * 1e9), "plan": plan,
        "parts": [{"name": "custom", "title": "Custom profile", "plan": plan}],
        "target": {"volumes": [{**VOLUME, **(volume or {})}]},
        "host": {"hostname": "db1", "kernel": "6.1", **(host or {})}, "answers": [], "verdict": [], **more,
    }  # fmt: skip
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(manifest))
    (folder / "points.jsonl").write_text("".join(json.dumps(one) + "\n" for one in points))
    return folder
