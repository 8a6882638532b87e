"""Ticks, the short equal intervals a session counts in: their length, sums, batches and rows of the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from assay.targets.storage.volume import Volume
from assay.telemetry.columns import SeriesColumns
from assay.telemetry.ticks import add_ticks, tick_length_of_s
from assay.workloads.io.activities import Workload
from assay.workloads.io.plan import Timing


def tick_length_s(timing: Timing) -> float:
    """Length of a tick of an I/O workload's points."""
    return tick_length_of_s(timing.duration_s or timing.min_s)


def add_session(
    columns: SeriesColumns,
    ticks: Sequence[Mapping[str, Any]],
    started_ns: int,
    interval_s: float,
    workload: Workload,
    volumes: Sequence[Volume],
    *,
    clock: Literal["wall", "virtual"] = "wall",
) -> None:
    """Add what the workload did, tick by tick, to the rows of a series."""
    several = len(workload.activities) > 1
    entities = []
    for tick in ticks:
        activity = workload.activities[tick["activity"]]
        name = volumes[tick["volume"]].name
        entities.append((f"{name}/{activity.name}" if several else name, activity.role))
    add_ticks(columns, ticks, entities, started_ns, interval_s, clock=clock)
