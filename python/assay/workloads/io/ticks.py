"""Ticks, the short equal intervals a session counts in: their length, sums, batches and rows of the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.targets.storage.volume import Volume
from assay.telemetry.ticks import entity_rows, tick_length_of_s
from assay.workloads.io.activities import Workload
from assay.workloads.io.plan import Timing


def tick_length_s(timing: Timing) -> float:
    """Length of a tick of an I/O workload's points."""
    return tick_length_of_s(timing.duration_s or timing.min_s)


def series_rows(
    ticks: Sequence[Mapping[str, Any]],
    started_ns: int,
    interval_s: float,
    workload: Workload,
    volumes: Sequence[Volume],
    *,
    clock: str = "wall",
) -> list[dict[str, Any]]:
    """Rows of the series schema for what the workload did, tick by tick."""
    several = len(workload.activities) > 1
    entities = []
    for tick in ticks:
        activity = workload.activities[tick["activity"]]
        name = volumes[tick["volume"]].name
        entities.append((f"{name}/{activity.name}" if several else name, activity.role))
    return entity_rows(ticks, entities, started_ns, interval_s, clock=clock)
