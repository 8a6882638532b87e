"""Heat maps of latency: I/Os of a recorded device by time and by how long they took.

A recorder that was started with `--latencies` keeps histograms. They add up exactly, so percentiles are those of all
I/Os of a step, never means of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from assay.apps.ui.lines import STRICT, Name, Seconds
from assay.record.flight import SampleLayout
from assay.record.flight_window import Counted, counted
from assay.record.latency_buckets import bounds_ns, bucket_series_of, percentile_ns
from assay.record.rolled import SeriesKey

STEPS_MAX = 300
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}


class HeatMap(TypedDict):
    """I/Os by time and bucket.

    `t` is when each step ends, seconds since 1970. Rows go from short times to long ones: `begin_ns` and `end_ns` of
    each, where the last bucket has no end; `counts` of I/Os by row and step. Percentiles are null without I/Os.
    """

    t: list[float]
    step_s: float
    begin_ns: list[float]
    end_ns: list[float | None]
    counts: list[list[float]]
    ios_per_s: list[float]
    p50: list[float | None]
    p99: list[float | None]
    p99_9: list[float | None]


class HeatQuestion(BaseModel):
    """Which I/Os are shown, and of which time."""

    model_config = STRICT

    from_s: Seconds
    to_s: Seconds
    steps: Annotated[int, Field(ge=2, le=STEPS_MAX)] = 120
    host: Name
    entity: Name
    direction: Literal["read", "write", "flush"]
    side: Literal["device", "queue"] = "device"

    @model_validator(mode="after")
    def _is_some_time(self) -> Self:
        if round(self.from_s * 1e9) >= round(self.to_s * 1e9):
            raise ValueError("from_s and to_s: accepted: seconds since 1970, the second later than the first")
        return self


def heat_of(path: Path, asked: HeatQuestion) -> HeatMap:
    """The heat map of one device and direction; without rows where no histogram was recorded.

    Raises
    ------
    RunFolderError
        The recording cannot be read.
    """
    of_metric: dict[str, int] = {}

    def wanted(layout: SampleLayout, one: SeriesKey) -> bool:
        if layout.host != asked.host or one.entity != asked.entity:
            return False
        found = bucket_series_of(one.metric)
        if found is None or (found.direction, found.side) != (asked.direction, asked.side):
            return False
        of_metric[one.metric] = found.bucket
        return True

    from_ns, to_ns = round(asked.from_s * 1e9), round(asked.to_s * 1e9)
    found = counted(path, from_ns, to_ns, asked.steps, wanted)
    interval_s = max(found.covered_s, default=0.0)
    if interval_s > 1.5 * (to_ns - from_ns) / 1e9 / asked.steps and any(not one for one in found.covered_s):
        # Samples are rarer than the steps: each step has one, rather than every other none.
        found = counted(path, from_ns, to_ns, max(int((to_ns - from_ns) / 1e9 / interval_s), 2), wanted)
    columns: list[dict[int, float]] = [{} for _ in found.times_ns]
    for line in found.lines:
        bucket = of_metric[line.series.metric]
        for column, count in zip(columns, line.values, strict=True):
            if count:
                column[bucket] = column.get(bucket, 0.0) + count
    return _map(found, columns)


def _map(found: Counted, columns: Sequence[dict[int, float]]) -> HeatMap:
    times = found.times_ns
    known = [bucket for column in columns for bucket in column]
    rows = range(min(known), max(known) + 1) if known else range(0)
    bounds = [bounds_ns(bucket) for bucket in rows]
    step_s = (times[1] - times[0]) / 1e9 if len(times) > 1 else 1.0
    shown = {name: [percentile_ns(column, share) for column in columns] for name, share in PERCENTILES.items()}
    return {
        "t": [round(t_ns / 1e9, 3) for t_ns in times],
        "step_s": step_s,
        "begin_ns": [begin_ns for begin_ns, _ in bounds],
        "end_ns": [None if math.isinf(end_ns) else end_ns for _, end_ns in bounds],
        "counts": [[column.get(bucket, 0.0) for column in columns] for bucket in rows],
        "ios_per_s": [
            round(math.fsum(column.values()) / covered_s, 3) if covered_s else 0.0
            for column, covered_s in zip(columns, found.covered_s, strict=True)
        ],
        "p50": shown["p50"],
        "p99": shown["p99"],
        "p99_9": shown["p99_9"],
    }
