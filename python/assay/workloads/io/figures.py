"""The figures of I/O: rates and latencies by direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.base.units import format_duration, format_latency
from assay.document.text import percent
from assay.record.common_figures import COMMON_FIGURES, GENERATOR_FIGURES
from assay.record.figures import Figure
from assay.record.shapes.point import Point

LARGE_BYTES = 64 << 10
"""I/Os of this size and more are told in bytes."""

_LATENCIES = ("read_latency_mean_ns", "write_latency_mean_ns", "write_latency_p99_ns")
_MEAN = COMMON_FIGURES["total_latency_mean_ns"]


def _is_large(point: Point) -> bool:
    iops, bytes_per_s = (COMMON_FIGURES[name].value(point) or 0.0 for name in ("iops", "bytes_per_s"))
    return bytes_per_s / max(iops, 1) >= LARGE_BYTES


def _told(figure: Figure, *, large: bool) -> Figure:
    def told(point: Point) -> str | None:
        value, latency_ns = figure.value(point), _MEAN.value(point)
        # Limits that were judged say enough of a point.
        if value is None or _is_large(point) != large or any(one["met"] is not None for one in point["limits"]):
            return None
        return f"{figure.words(value)} at a mean latency of {format_latency(latency_ns)}"

    return replace(figure, in_answers=True, told=told)


def _of_array(key: str) -> Callable[[Point], float | None]:
    """What a point on a model says of the array; None of points without one."""

    def value(point: Point) -> float | None:
        found = (point.get("array") or {}).get(key)
        return None if found is None else float(found)

    return value


_OF_ARRAYS = (
    Figure(
        name="flash_hit_share",
        unit="share",
        title="flash hits",
        better="higher",
        value=_of_array("flash_hit_share"),
        words=percent,
        noun="flash hit rate",
        full="flash hit rate of reads that memory does not answer",
        compared=False,
        study="flash_hit_share",
    ),
    Figure(
        name="write_amplification",
        unit="ratio",
        title="write amplification",
        better="lower",
        value=_of_array("write_amplification"),
        words="{:.2f}".format,
        full="blocks written for each that hosts write",
        compared=False,
        study="write_amplification",
    ),
    Figure(
        name="rebuild_s",
        unit="s",
        title="rebuild",
        better="lower",
        value=_of_array("rebuild_s"),
        words=format_duration,
        noun="time of a rebuild",
        full="time until a lost disk is on the spare",
        compared=False,
        study="rebuild_time",
    ),
)
"""Of models only."""

FIGURES: tuple[Figure, ...] = (
    _told(COMMON_FIGURES["iops"], large=False),
    _told(COMMON_FIGURES["bytes_per_s"], large=True),
    *(replace(COMMON_FIGURES[name], at_ends=COMMON_FIGURES[name].statistic == "mean") for name in _LATENCIES[:1]),
    # Studies of what reads wait for ask how long the slowest of them take.
    replace(COMMON_FIGURES["read_latency_p99_ns"], study="read_latency_p99"),
    replace(COMMON_FIGURES["read_latency_p99_9_ns"], study="read_latency_p99_9", compared=False),
    *(replace(COMMON_FIGURES[name], at_ends=COMMON_FIGURES[name].statistic == "mean") for name in _LATENCIES[1:]),
    # Studies of one I/O at a time ask for it; elsewhere reads and writes are told apart.
    replace(_MEAN, noun="latency", full="mean latency", compared=False),
    *_OF_ARRAYS,
    *GENERATOR_FIGURES,
)
