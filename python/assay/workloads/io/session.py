"""The load generator's session: a workload on volumes, translated for the compiled core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NotRequired, TypedDict

from assay import _core
from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.targets.files.session import AnySession
from assay.targets.files.volume import OpenVolume, begin_io, volume_plan
from assay.workloads.io.activities import DEEPEST_QUEUE, IoActivity, IoWorkloadSpec, Skew, parse_skew
from assay.workloads.modelled import ModelRun

BUFFERS_MAX_BYTES = 1 << 30
"""Most memory one worker's buffers take; deeper queues of large blocks are refused rather than swapped."""


class PlannedBlock(TypedDict):
    """A size of blocks and its weight in the mix."""

    bytes: int
    weight: float


class PlannedRegion(TypedDict):
    """Part of each volume that is used."""

    start_bytes: int
    end_bytes: int


class PlannedAccess(TypedDict):
    """Which I/Os an activity asks for."""

    blocks: list[PlannedBlock]
    read_share: float
    random_share: float
    skew: Skew
    region: PlannedRegion
    align_bytes: int
    streams: int
    stride_bytes: int | None
    duplicate_share: float


class CoreLoad(TypedDict):
    """How hard an activity asks: `closed`, `spread`, `open`, `waves`, `bursts` or `replay`, each with its keys."""

    kind: str
    queue_depth: NotRequired[int]
    outstanding: NotRequired[int]
    rate: NotRequired[float]
    poisson: NotRequired[bool]
    interval_ns: NotRequired[int]
    bytes: NotRequired[int]
    spread_share: NotRequired[float]
    pace: NotRequired[str]
    peak_factor: NotRequired[float]
    peak_share: NotRequired[float]
    period_ns: NotRequired[int]


class PlannedActivity(TypedDict):
    """An activity as the compiled core takes it (crates/device/src/session.rs); volumes by their positions."""

    name: str
    role: str
    volumes: list[int]
    workers: int
    direct: bool
    sync: str
    sync_every: int
    compressible_share: float
    limit_bytes: int | None
    load: CoreLoad
    access: PlannedAccess


ROLE_REGIONS = {"data": (0.0, 0.7), "tempdb": (0.7, 0.9), "log": (0.9, 1.0)}
"""Parts of a volume that roles sharing it keep to, so that a log is not overwritten by data and stays sequential."""


def open_session(
    workload: IoWorkloadSpec,
    volumes: Sequence[OpenVolume],
    *,
    interval_s: float,
    io_timeout_s: float,
    seed: int,
    backend: str = "auto",
    limits: Sequence[int] = (),
    model: ModelRun | None = None,
) -> AnySession:
    """Start a workload, on a modelled array where one is given.

    Parameters
    ----------
    limits
        Bytes after which each worker of an activity ends, by the position of the activity; none unless given.

    Raises
    ------
    UsageError
        A block does not fit the sector, the region or the memory.
    OpenFailed, NotSupported, NotAnswering, IoFailed
        As the volumes behave; IoFailed also where something else has a volume's place.
    """
    most: Sequence[int | None] = limits or [None] * len(workload.activities)
    activities = [
        _activity_plan(activity, workload, volumes, limit_bytes)
        for activity, limit_bytes in zip(workload.activities, most, strict=True)
    ]
    return begin_session(
        activities,
        volumes,
        writes=workload.writes,
        interval_s=interval_s,
        io_timeout_s=io_timeout_s,
        seed=seed,
        backend=backend,
        model=model,
    )


def begin_session(
    activities: Sequence[PlannedActivity],
    volumes: Sequence[OpenVolume],
    *,
    writes: bool,
    interval_s: float,
    io_timeout_s: float,
    seed: int,
    backend: str = "auto",
    model: ModelRun | None = None,
    traces: Sequence[_core.TraceFeeds] = (),
) -> AnySession:
    """Start activities, on a modelled array where one is given.

    Parameters
    ----------
    traces
        Traces that activities replay, in the order of the activities.

    Raises
    ------
    UsageError, OpenFailed, NotSupported, NotAnswering, IoFailed
        As `open_session`.
    """
    fed = [list(traces)] if traces else []
    if model is not None:
        asked = _asked_of_model(model, activities, volumes, seed=seed, interval_s=interval_s)
        return model.modelled.session(asked, model.goes_on, *fed)
    begin_io([volume.hold for volume in volumes if volume.hold is not None], writes=writes)
    plan = {
        "volumes": [volume_plan(volume) for volume in volumes],
        "activities": activities,
        "backend": backend,
        "seed": seed,
        "interval_ns": round(interval_s * 1e9),
        "io_timeout_ns": round(io_timeout_s * 1e9),
    }
    return _core.Session(json.dumps(plan), *fed)


def modelled_bytes_per_s(
    model: ModelRun,
    workload: IoWorkloadSpec,
    volumes: Sequence[OpenVolume],
    *,
    interval_s: float,
    warmup_s: float,
    settling_s: float,
    duration_s: float,
    seed: int,
) -> float:
    """Bytes per second of a workload on a fresh modelled array: what a point of these times has in total.

    Raises
    ------
    UsageError
        As `open_session`.
    """
    activities = [_activity_plan(activity, workload, volumes, None) for activity in workload.activities]
    asked = _asked_of_model(model, activities, volumes, seed=seed, interval_s=interval_s)
    return model.modelled.bytes_per_s(asked, *(round(each / interval_s) for each in (warmup_s, settling_s, duration_s)))


def _asked_of_model(
    model: ModelRun,
    activities: Sequence[PlannedActivity],
    volumes: Sequence[OpenVolume],
    *,
    seed: int,
    interval_s: float,
) -> str:
    load = {
        "activities": activities,
        "seed": seed,
        "interval_ns": round(interval_s * 1e9),
        "warm": model.configuration.starts_warm,
    }
    return json.dumps({"volumes": [volume.name for volume in volumes], "load": load})


def check_workload(workload: IoWorkloadSpec, volumes: Sequence[OpenVolume]) -> None:
    """Refuse a workload that does not fit the volumes, before anything is written to them.

    Raises
    ------
    UsageError
        A block does not fit the sector, the region or the memory.
    """
    for activity in workload.activities:
        _activity_plan(activity, workload, volumes, None)


def deepest_queue(activity: IoActivity) -> int:
    """Most I/Os a worker can have outstanding."""
    return max(min(DEEPEST_QUEUE, BUFFERS_MAX_BYTES // (2 * activity.largest_block_bytes)), 1)


def volumes_for(activity: IoActivity, volumes: Sequence[OpenVolume]) -> list[int]:
    """Positions of the volumes an activity uses.

    These are the one it names, or all of its role; a role without a volume of its own shares the data volumes.
    """
    if activity.volume is not None:
        return [position for position, volume in enumerate(volumes) if volume.name == activity.volume]
    role = activity.role
    own = [position for position, volume in enumerate(volumes) if role in volume.roles]
    data = [position for position, volume in enumerate(volumes) if "data" in volume.roles]
    return own or data or list(range(len(volumes)))


def sharing_roles(workload: IoWorkloadSpec, volumes: Sequence[OpenVolume]) -> dict[str, list[str]]:
    """Volumes that serve several roles of the workload, by name, and those roles."""
    served: dict[str, set[str]] = {}
    for activity in workload.activities:
        for position in volumes_for(activity, volumes):
            served.setdefault(volumes[position].name, set()).add(activity.role)
    return {name: sorted(roles) for name, roles in served.items() if len(roles) > 1}


def _region(activity: IoActivity, workload: IoWorkloadSpec, volumes: Sequence[OpenVolume]) -> tuple[float, float]:
    if activity.region == (0.0, 1.0) and any(
        activity.role in roles for roles in sharing_roles(workload, volumes).values()
    ):
        return ROLE_REGIONS[activity.role]
    return activity.region


def _activity_plan(
    activity: IoActivity, workload: IoWorkloadSpec, volumes: Sequence[OpenVolume], limit_bytes: int | None
) -> PlannedActivity:
    positions = volumes_for(activity, volumes)
    # Volumes of one role are used alike, so the smallest sets the span.
    size_bytes = min(volumes[position].size_bytes for position in positions)
    sector_bytes = max(volumes[position].sector_bytes for position in positions)
    align_bytes = activity.align_bytes or min(activity.blocks)
    start, end = _region(activity, workload, volumes)
    start_bytes = round(size_bytes * start) // align_bytes * align_bytes
    end_bytes = round(size_bytes * end)
    largest = activity.largest_block_bytes
    for block in activity.blocks:
        if block % sector_bytes:
            meant = block // 1000 if block % 1000 == 0 else block
            hint = f"; {meant}K is {meant} KiB" if meant <= 4096 else ""
            raise UsageError(f"--block: {block} bytes is not a multiple of the sector of {sector_bytes} bytes{hint}")
    if align_bytes % sector_bytes:
        raise UsageError(f"--align: {align_bytes} bytes is not a multiple of the sector of {sector_bytes} bytes")
    if end_bytes - start_bytes < largest:
        raise UsageError(
            f"{volumes[positions[0]].name}: {format_bytes(end_bytes - start_bytes)} is smaller than a block of"
            f" {format_bytes(largest)}; give a larger --size or a smaller --block"
        )
    depth = activity.depth_on(len(positions))
    if depth > deepest_queue(activity):
        raise UsageError(
            f"--queue-depth {depth} with blocks of {format_bytes(largest)} needs more than"
            f" {format_bytes(BUFFERS_MAX_BYTES)} of buffers per worker; give a smaller --queue-depth or --block"
        )
    workers = activity.workers * len(positions)
    if activity.outstanding is not None and activity.outstanding < workers:
        raise UsageError(
            f"--outstanding {activity.outstanding} is less than one for each of {workers} workers;"
            f" give {workers} or more"
        )
    return {
        "name": activity.name,
        "role": activity.role,
        "volumes": positions,
        "workers": activity.workers,
        "direct": activity.io_mode == "direct",
        "sync": activity.sync,
        "sync_every": activity.sync_every,
        "compressible_share": activity.compressible_share,
        "limit_bytes": limit_bytes,
        "load": _load_plan(activity, depth),
        "access": {
            "blocks": [{"bytes": size, "weight": weight} for size, weight in activity.blocks.items()],
            "read_share": activity.read_share,
            "random_share": activity.random_share,
            "skew": parse_skew(activity.skew),
            "region": {"start_bytes": start_bytes, "end_bytes": end_bytes},
            "align_bytes": align_bytes,
            "streams": activity.streams,
            "stride_bytes": activity.stride_bytes,
            "duplicate_share": activity.duplicate_share,
        },
    }


def _load_plan(activity: IoActivity, depth: int) -> CoreLoad:
    if activity.burst_bytes is not None and activity.burst_interval_s is not None:
        return {
            "kind": "bursts",
            "interval_ns": round(activity.burst_interval_s * 1e9),
            "bytes": activity.burst_bytes,
            "spread_share": activity.burst_spread,
            "queue_depth": depth,
        }
    if activity.rate is not None and activity.wave_period_s and activity.wave_share and activity.wave_peak:
        return {
            "kind": "waves",
            "rate": activity.rate,
            "peak_factor": activity.wave_peak,
            "peak_share": activity.wave_share,
            "period_ns": round(activity.wave_period_s * 1e9),
            "queue_depth": depth,
        }
    if activity.rate is not None:
        poisson = activity.arrivals == "poisson"
        return {"kind": "open", "rate": activity.rate, "poisson": poisson, "queue_depth": depth}
    if activity.outstanding is not None:
        return {"kind": "spread", "outstanding": activity.outstanding}
    return {"kind": "closed", "queue_depth": depth}
