"""Ticks, the short equal intervals the compiled core counts in: their length, sums, batches and rows of the series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from assay.base.progress import Gauge
from assay.telemetry.columns import Reading, SeriesColumns

BATCHES = 20
"""Most parts of a window whose means give its interval."""


DIRECTIONS = ("read", "write")


def tick_length_of_s(shortest: float) -> float:
    """Length of a tick of points that last at least so long: a second, less where that would leave too few to judge."""
    if shortest >= 20:
        return 1.0 if shortest <= 250 else max(1.0, round(shortest / 250))
    return 0.25 if shortest >= 5 else 0.1 if shortest >= 2 else 0.05


def tick_sums(ticks: Sequence[Mapping[str, Any]], from_tick: int, to_tick: int) -> list[dict[str, float]]:
    """Counts and summed latencies of all groups per tick; ticks in which nothing ended are there with zeros."""
    sums = [{"count": 0.0, "latency_ns": 0.0} for _ in range(max(to_tick - from_tick, 0))]
    for tick in ticks:
        if from_tick <= tick["tick"] < to_tick:
            total = sums[tick["tick"] - from_tick]
            for side in (tick["read"], tick["write"]):
                total["count"] += side["count"]
                total["latency_ns"] += side["count"] * (side["mean_ns"] or 0.0)
    return sums


def sides_mean_ns(ticks: Sequence[Mapping[str, Any]], from_tick: int, to_tick: int) -> dict[str, float | None]:
    """Mean latency of reads and of writes over ticks; None where none ended."""
    counts, sums = dict.fromkeys(DIRECTIONS, 0.0), dict.fromkeys(DIRECTIONS, 0.0)
    for tick in ticks:
        if from_tick <= tick["tick"] < to_tick:
            for side in DIRECTIONS:
                counts[side] += tick[side]["count"]
                sums[side] += tick[side]["count"] * (tick[side]["mean_ns"] or 0.0)
    return {side: sums[side] / counts[side] if counts[side] else None for side in DIRECTIONS}


def latency_gauges(means_ns: Mapping[str, float | None]) -> list[Gauge]:
    """Gauges of mean latencies by direction."""
    return [
        Gauge(name=f"{side}_latency_ns", title=f"{side} latency", value=value, unit="ns", limit=f"{side}.mean")
        for side, value in means_ns.items()
    ]


def batches(ticks: Sequence[Mapping[str, Any]], from_tick: int, to_tick: int, interval_s: float) -> dict[str, Any]:
    """Means over at most `BATCHES` equal parts of the window, from which intervals are computed."""
    ticks_each = max((to_tick - from_tick) // BATCHES, 1)
    count = (to_tick - from_tick) // ticks_each
    seconds = ticks_each * interval_s
    table: dict[str, Any] = {"seconds": seconds}
    for direction in ("read", "write", "total"):
        counts, sums = [0.0] * count, [0.0] * count
        for tick in ticks:
            batch = (tick["tick"] - from_tick) // ticks_each
            if from_tick <= tick["tick"] and batch < count:
                for side in ("read", "write") if direction == "total" else (direction,):
                    counts[batch] += tick[side]["count"]
                    sums[batch] += tick[side]["count"] * (tick[side]["mean_ns"] or 0.0)
        table[direction] = {
            "iops": [value / seconds for value in counts],
            "latency_mean_ns": [total / value if value else None for total, value in zip(sums, counts, strict=True)],
        }
    return table


def add_ticks(
    columns: SeriesColumns,
    ticks: Sequence[Mapping[str, Any]],
    entities: Sequence[tuple[str, str]],
    started_ns: int,
    interval_s: float,
    *,
    clock: Literal["wall", "virtual"] = "wall",
) -> None:
    """Add ticks to the rows of a series, each with its entity and role."""
    interval_ns = round(interval_s * 1e9)
    for tick, (entity, role) in zip(ticks, entities, strict=True):
        columns.add(
            _tick_readings(tick, entity, role),
            t_ns=started_ns + (tick["tick"] + 1) * interval_ns,
            interval_ns=interval_ns,
            tier="client",
            source="assay",
            clock=clock,
        )


def _tick_readings(tick: Mapping[str, Any], entity: str, role: str) -> Iterator[Reading]:
    for direction in ("read", "write"):
        side = tick[direction]
        yield Reading(entity, f"{direction}_ios_count", "delta", float(side["count"]), role)
        yield Reading(entity, f"{direction}_bytes", "delta", float(side["bytes"]), role)
        for name in ("mean_ns", "p50_ns", "p99_ns", "max_ns"):
            if side[name] is not None:
                yield Reading(entity, f"{direction}_latency_{name}", "gauge", float(side[name]), role)
    yield Reading(entity, "error_count", "delta", float(tick["error_count"]), role)
