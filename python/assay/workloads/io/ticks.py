"""Ticks, the short equal intervals a session counts in: their length, sums, batches and rows of the series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from assay.targets.files.volume import OpenVolume
from assay.telemetry.columns import SeriesColumns
from assay.telemetry.ticks import add_ticks, tick_length_of_s
from assay.workloads.io.activities import IoWorkloadSpec
from assay.workloads.io.plan import IoTiming

if TYPE_CHECKING:
    from assay.measure.core_reports import CoreTick


def tick_length_s(timing: IoTiming) -> float:
    """Length of a tick of an I/O workload's points."""
    return tick_length_of_s(timing.duration_s or timing.min_s)


def add_session(
    columns: SeriesColumns,
    ticks: Sequence[CoreTick],
    started_ns: int,
    interval_s: float,
    workload: IoWorkloadSpec,
    volumes: Sequence[OpenVolume],
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


FAILED_LAST_MIN = 100
"""I/Os of a volume that failed at the end of a point, none between them well, before the volume counts as failed."""


def failed_to_the_end(ticks: Sequence[CoreTick], end_tick: int) -> set[int]:
    """Return the volumes on which every I/O failed at the end: enough of them, and none ended well after them."""
    last_good: dict[int, int] = {}
    for tick in ticks:
        if tick["tick"] < end_tick and tick["read"]["count"] + tick["write"]["count"]:
            volume = tick["volume"]
            last_good[volume] = max(last_good.get(volume, -1), tick["tick"])
    failed: Counter[int] = Counter()
    for tick in ticks:
        if last_good.get(tick["volume"], -1) < tick["tick"] < end_tick:
            failed[tick["volume"]] += tick["error_count"]
    return {volume for volume, count in failed.items() if count >= FAILED_LAST_MIN}
