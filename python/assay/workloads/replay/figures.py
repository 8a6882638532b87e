"""The figures of replays: times the recorded load, then those of I/O."""

from __future__ import annotations

from dataclasses import replace

from assay.base.units import format_iops, format_latency
from assay.record.common_figures import COMMON_FIGURES, latency_of, scaled_batches
from assay.record.figures import Figure
from assay.record.shapes.point import Point
from assay.workloads.replay.shapes import done_of


def _times(point: Point) -> float | None:
    found = done_of(point).get("times_recorded")
    return None if found is None else float(found)


def _lateness(point: Point) -> float | None:
    found = (done_of(point).get("lateness") or {}).get("p99_ns")
    return None if found is None else float(found)


def _told(point: Point) -> str | None:
    """What a replay came to beside what was recorded."""
    done, total = done_of(point), point["total"]
    if not done or not total or any(one["met"] is not None for one in point["limits"]):
        return None
    times = _times(point)
    words = [] if times is None else [TIMES.words(times)]
    words.append(f"{format_iops(total['iops'])} IOPS")
    for side in ("read", "write"):
        mean = latency_of(point, side, "mean")
        if mean is not None:
            words.append(f"{side} {format_latency(mean)} on average")
    return ", ".join(words)


TIMES = Figure(
    name="times_recorded",
    unit="ratio",
    title="Times the recorded load",
    noun="times the recorded load",
    better="higher",
    value=_times,
    words=lambda times: f"{times:.3g} times your load",
    batches=lambda point: scaled_batches(point, COMMON_FIGURES["iops"], _times(point)),
    in_answers=True,
    study="times_recorded",
    nothing="no I/O ended",
    told=_told,
)

LATENESS = replace(
    COMMON_FIGURES["total_latency_p99_ns"],
    name="start_lateness_p99_ns", title="lateness of starts, p99", full="lateness of starts, p99", value=_lateness,
    batches=lambda _point: (), limit="", scopes=None, study="", record=lambda _point: None, compared=False,
)  # fmt: skip

FIGURES: tuple[Figure, ...] = (
    TIMES,
    COMMON_FIGURES["iops"],
    COMMON_FIGURES["bytes_per_s"],
    *(COMMON_FIGURES[f"{side}_latency_{statistic}_ns"] for side in ("read", "write") for statistic in ("mean", "p99")),
    LATENESS,
)
