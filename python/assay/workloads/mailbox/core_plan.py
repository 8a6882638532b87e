"""From a plan and its places to what the compiled core takes (crates/mailbox/src/plan.rs)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from assay.base.paths import printable
from assay.targets.files.volume import OpenVolume
from assay.telemetry.ticks import tick_length_of_s
from assay.workloads.mailbox.layout import Extent, PlacedDatabase
from assay.workloads.mailbox.plan import CHECKPOINT_PASSIVE_BYTES, MailboxPlan

LOG_WRITE_MAX_BYTES = 1 << 20
SHORT_TICK_S = 0.25
DEPTH_PER_DATABASE, DEPTH_MAX = 128, 1024
"""I/Os of a page that are under way at the same time, at most."""


def tick_s(plan: MailboxPlan) -> float:
    """Length of a tick; how long a backup or a recovery takes is not known before."""
    return SHORT_TICK_S if not plan.is_loaded else tick_length_of_s(plan.measured_s)


def cache_bytes(plan: MailboxPlan, placed: Sequence[PlacedDatabase]) -> int:
    """The page cache of all databases: what the plan says, an eighth of small databases."""
    data_bytes = sum(one.data.size_bytes for one in placed)
    return min(plan.cache_bytes, data_bytes // 8)


def core_plan(
    plan: MailboxPlan, placed: Sequence[PlacedDatabase], volumes: Sequence[OpenVolume], *, seed: int, rate: float
) -> str:
    """The plan as JSON."""
    return json.dumps(
        {
            "volumes": [_volume(volume) for volume in volumes],
            "databases": [
                {"name": one.name, "passive": one.passive, "data": _extent(one.data), "log": _extent(one.log)}
                for one in placed
            ],
            "test": "performance" if plan.is_loaded else plan.test,
            "page_bytes": plan.page_bytes,
            "cache_bytes": cache_bytes(plan, placed),
            "mix": {"insert": plan.mix.insert, "replace": plan.mix.replace, "delete": plan.mix.delete},
            "lazy_share": plan.mix.lazy,
            "checkpoint_depth_bytes": plan.depth_bytes,
            "passive_depth_bytes": CHECKPOINT_PASSIVE_BYTES,
            "log_file_bytes": plan.log_file_bytes,
            "log_write_max_bytes": min(LOG_WRITE_MAX_BYTES, plan.log_file_bytes),
            "maintenance_bytes_per_s": float(plan.maintenance_bytes_per_s),
            "shipped_copies": plan.copies - 1,
            "backup_streams": plan.backup_streams,
            "recovery_files": plan.log_files,
            "rate": rate,
            "depth": min(DEPTH_PER_DATABASE * len(placed), DEPTH_MAX),
            "seed": seed,
            "run_id": secrets.randbits(63),
            "interval_ns": round(tick_s(plan) * 1e9),
            "io_timeout_ns": round(plan.timing.io_timeout_s * 1e9),
            "backend": plan.backend,
            "direct": plan.no_buffering,
            "write_through": True,
        }
    )


class PlannedExtent(TypedDict):
    """A part of a volume, which is named by its position; bytes."""

    volume: int
    start_bytes: int
    size_bytes: int


class PlannedVolume(TypedDict):
    """A volume, and the descriptor of its file where that is held; one of a model has no path."""

    name: str
    path: str | None
    held: NotRequired[int]


def _extent(extent: Extent) -> PlannedExtent:
    return {"volume": extent.volume, "start_bytes": extent.start_bytes, "size_bytes": extent.size_bytes}


def _volume(volume: OpenVolume) -> PlannedVolume:
    if volume.spec.path is None:
        return {"name": volume.name, "path": None}
    planned: PlannedVolume = {"name": volume.name, "path": printable(volume.spec.path)}
    if volume.hold is not None:
        planned["held"] = volume.hold.descriptor
    return planned
