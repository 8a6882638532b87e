"""The load generator's session: a workload on volumes, translated for the compiled core."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay import _core
from assay.errors import UsageError
from assay.paths import printable
from assay.study.modelled import ModelRun
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.hold import Hold
from assay.targets.spec import VolumeSpec
from assay.units import format_bytes, parse_duration
from assay.workloads.io import DEEPEST_QUEUE, Activity, Workload, parse_skew

DRAIN_LOOK_S = 0.01
BUFFERS_MOST_BYTES = 1 << 30
"""Most memory one worker's buffers take; deeper queues of large blocks are refused rather than swapped."""


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume ready for load; `roles` are those it was named for, several when it is shared."""

    spec: VolumeSpec
    roles: tuple[str, ...]
    size_bytes: int
    sector_bytes: int
    hold: Hold | None = None
    """The file or device itself; None for `null:` and `model:`."""

    @property
    def name(self) -> str:
        """Short name, unique in the target."""
        return self.spec.name


def takes_no_time(volume: Volume) -> bool:
    """Whether the volume answers at once, so that what is measured on it is the load generator alone."""
    return volume.spec.kind == "null" and not {"latency", "stall"} & volume.spec.options.keys()


AnySession = _core.Session | _core.ModelSession
"""A workload at work, on the wall clock or on a model's; both have the same methods."""

ROLE_REGIONS = {"data": (0.0, 0.7), "tempdb": (0.7, 0.9), "log": (0.9, 1.0)}
"""Parts of a volume that roles sharing it keep to, so that a log is not overwritten by data and stays sequential."""


def open_session(
    workload: Workload,
    volumes: Sequence[Volume],
    *,
    interval_s: float,
    io_timeout_s: float,
    seed: int,
    backend: str = "auto",
    limit_bytes: int | None = None,
    model: ModelRun | None = None,
) -> AnySession:
    """Start a workload, on a modelled array where one is given.

    Raises
    ------
    UsageError
        A block does not fit the sector, the region or the memory.
    OpenFailed, NotSupported, NotAnswering, IoFailed
        As the volumes behave; IoFailed also where something else has a volume's place.
    """
    activities = [_activity_plan(activity, workload, volumes, limit_bytes) for activity in workload.activities]
    if model is not None:
        load = {
            "activities": activities,
            "seed": seed,
            "interval_ns": round(interval_s * 1e9),
            "warm": model.configuration.starts_warm,
        }
        names = [volume.name for volume in volumes]
        return model.modelled.session(json.dumps({"volumes": names, "load": load}), model.goes_on)
    begin_io([volume.hold for volume in volumes if volume.hold is not None], writes=workload.writes)
    plan = {
        "volumes": [_volume_plan(volume) for volume in volumes],
        "activities": activities,
        "backend": backend,
        "seed": seed,
        "interval_ns": round(interval_s * 1e9),
        "io_timeout_ns": round(io_timeout_s * 1e9),
    }
    return _core.Session(json.dumps(plan))


def begin_io(holds: Sequence[Hold], *, writes: bool) -> None:
    """Make sure that volumes are still what was examined, and say in their marks that a run writes to them.

    Raises
    ------
    IoFailed
        Something else has a volume's place, or another program wrote to it.
    NotAnswering
        The file system does not answer.
    """

    def look() -> None:
        for hold in holds:
            hold.check()
            if writes:
                hold.begin_writing()

    if holds:
        answer_within(ANSWER_TIMEOUT_S, look, what=", ".join(printable(hold.path) for hold in holds))


def drain(session: AnySession, timeout_s: float) -> Iterator[dict[str, Any]]:
    """Stop a session and wait for what is outstanding; gives reports, of which the last says how it ended.

    The wait is here rather than in the compiled core, so that a second Ctrl-C is heard.
    """
    session.stop()
    if isinstance(session, _core.ModelSession):
        yield json.loads(session.finish(timeout_s))
        return
    deadline = time.monotonic() + timeout_s
    report = json.loads(session.poll())
    while report["state"] == "running" and time.monotonic() < deadline:
        yield report
        time.sleep(DRAIN_LOOK_S)
        report = json.loads(session.poll())
    yield report if report["state"] != "running" else json.loads(session.finish(0.0))


def check_workload(workload: Workload, volumes: Sequence[Volume]) -> None:
    """Refuse a workload that does not fit the volumes, before anything is written to them.

    Raises
    ------
    UsageError
        A block does not fit the sector, the region or the memory.
    """
    for activity in workload.activities:
        _activity_plan(activity, workload, volumes, None)


def deepest_queue(activity: Activity) -> int:
    """Most I/Os a worker can have outstanding."""
    return max(min(DEEPEST_QUEUE, BUFFERS_MOST_BYTES // (2 * activity.largest_block_bytes)), 1)


def volumes_for(activity: Activity, volumes: Sequence[Volume]) -> list[int]:
    """Positions of the volumes an activity uses.

    These are the one it names, or all of its role; a role without a volume of its own shares the data volumes.
    """
    if activity.volume is not None:
        return [position for position, volume in enumerate(volumes) if volume.name == activity.volume]
    role = activity.role
    own = [position for position, volume in enumerate(volumes) if role in volume.roles]
    data = [position for position, volume in enumerate(volumes) if "data" in volume.roles]
    return own or data or list(range(len(volumes)))


def sharing_roles(workload: Workload, volumes: Sequence[Volume]) -> dict[str, list[str]]:
    """Volumes that serve several roles of the workload, by name, and those roles."""
    served: dict[str, set[str]] = {}
    for activity in workload.activities:
        for position in volumes_for(activity, volumes):
            served.setdefault(volumes[position].name, set()).add(activity.role)
    return {name: sorted(roles) for name, roles in served.items() if len(roles) > 1}


def _region(activity: Activity, workload: Workload, volumes: Sequence[Volume]) -> tuple[float, float]:
    if activity.region == (0.0, 1.0) and any(
        activity.role in roles for roles in sharing_roles(workload, volumes).values()
    ):
        return ROLE_REGIONS[activity.role]
    return activity.region


def _volume_plan(volume: Volume) -> dict[str, Any]:
    if volume.spec.kind == "null":
        kind: dict[str, Any] = {"kind": "null", "options": null_options(volume.spec.options)}
    else:
        # The core opens what is held; the path is for its messages.
        kind = {"kind": "file", "path": printable(volume.spec.path or "")}
        kind |= {"held": volume.hold.descriptor} if volume.hold is not None else {}
    return {"name": volume.name, "volume": kind, "sector_bytes": volume.sector_bytes}


def null_options(options: dict[str, str]) -> dict[str, int]:
    """The null device's options in base units."""
    names = {"latency": "latency_ns", "stall_at": "stall_at_ns", "stall": "stall_ns", "stall_every": "stall_every_ns"}
    converted = {names[key]: parse_duration(value, what=key) for key, value in options.items() if key in names}
    if "servers" in options:
        converted["servers"] = int(options["servers"])
    return converted


def _activity_plan(
    activity: Activity, workload: Workload, volumes: Sequence[Volume], limit_bytes: int | None
) -> dict[str, Any]:
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
            raise UsageError(f"--block: {block} bytes is not a multiple of the sector of {sector_bytes} bytes")
    if align_bytes % sector_bytes:
        raise UsageError(f"--align: {align_bytes} bytes is not a multiple of the sector of {sector_bytes} bytes")
    if end_bytes - start_bytes < largest:
        raise UsageError(
            f"{volumes[positions[0]].name}: {format_bytes(end_bytes - start_bytes)} is smaller than a block of"
            f" {format_bytes(largest)}; give a larger --size or a smaller --block"
        )
    if activity.depth > deepest_queue(activity):
        raise UsageError(
            f"--queue-depth {activity.depth} with blocks of {format_bytes(largest)} needs more than"
            f" {format_bytes(BUFFERS_MOST_BYTES)} of buffers per worker; give a smaller --queue-depth or --block"
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
        "load": _load_plan(activity),
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


def _load_plan(activity: Activity) -> dict[str, Any]:
    if activity.burst_bytes is not None and activity.burst_interval_s is not None:
        return {
            "kind": "bursts",
            "interval_ns": round(activity.burst_interval_s * 1e9),
            "bytes": activity.burst_bytes,
            "spread_share": activity.burst_spread,
            "queue_depth": activity.depth,
        }
    if activity.rate is not None:
        poisson = activity.arrivals == "poisson"
        return {"kind": "open", "rate": activity.rate, "poisson": poisson, "queue_depth": activity.depth}
    return {"kind": "closed", "queue_depth": activity.depth}
