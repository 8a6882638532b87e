"""The figures of mailboxes: transactional I/Os per second, mailboxes, and what databases and logs wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from assay.base.units import format_latency
from assay.record.common_figures import COMMON_FIGURES, batches_of, scaled_batches
from assay.record.figures import Figure
from assay.record.shapes.point import Point, Sides
from assay.workloads.mailbox.shapes import done_of


def achieved_words(point: Point) -> str | None:
    """Transactional I/Os, and how many were asked for; None where there were none."""
    done = done_of(point)
    if not done.get("achieved_iops"):
        return None
    return (
        f"{done['achieved_iops']:,.0f} transactional I/Os per s of {done['target_iops']:,.0f} asked by"
        f" {done['mailboxes']:,} mailboxes"
    )


ACHIEVED = Figure(
    name="achieved_iops",
    unit="iops",
    title="Achieved transactional I/O per second",
    noun="transactional I/Os per second",
    better="higher",
    value=lambda point: done_of(point).get("achieved_iops"),
    words=lambda iops: f"{iops:,.0f} transactional IOPS",
    batches=partial(batches_of, direction="total", key="iops"),
    in_answers=True,
    study="achieved_iops",
    limit="achieved",
    told=achieved_words,
    nothing="no transactional I/O ended",
)

MAILBOXES = Figure(
    name="mailboxes",
    unit="count",
    title="Mailboxes",
    noun="mailboxes",
    better="higher",
    value=lambda point: done_of(point).get("mailboxes_held"),
    words=lambda count: f"{count:,.0f} mailboxes",
    batches=lambda point: scaled_batches(point, ACHIEVED, done_of(point).get("mailboxes_held")),
    in_answers=True,
    study="mailboxes",
    limit="mailboxes",
)


def _under(role: str, side: Literal["read", "write"], name: str, noun: str) -> Figure:
    """Mean latency of a role's reads or writes; the limits of all kinds bound it as `data.read.mean`."""
    mean = COMMON_FIGURES[f"{side}_latency_mean_ns"]

    def sides(point: Point) -> Sides:
        roles = point.get("roles")
        return (roles.get(role) if roles else None) or {}

    def value(point: Point) -> float | None:
        direction = sides(point).get(side)
        latency = direction.get("latency_ns") if direction else None
        found = latency.get("mean") if latency else None
        return None if found is None else float(found)

    return replace(
        mean, name=f"{name}_mean_ns", title=f"{noun}, mean", noun=noun, full=f"mean {noun}", value=value,
        batches=lambda _point: (), limit="", scopes=None, study=name, at_ends=True,
        record=lambda point: sides(point).get(side),
    )  # fmt: skip


def _peak(stream: Literal["database_read", "log_write"], limit: str, noun: str) -> Figure:
    """The highest mean of any 15 s, judged for each database."""

    def scopes(point: Point, _role: str | None) -> Iterator[tuple[str, float | None, None]]:
        for one in done_of(point).get("databases") or ():
            yield str(one["name"]), (one.get(stream) or {}).get("latency_peak_ns"), None

    def value(point: Point) -> float | None:
        return max((peak for _, peak, _ in scopes(point, None) if peak is not None), default=None)

    return Figure(
        name=f"{stream}_latency_peak_ns", unit="ns", title=f"{noun}, highest", better="lower", value=value,
        words=format_latency, noun=f"highest {noun}", compared=False, limit=limit, scopes=scopes,
    )  # fmt: skip


def _ratio(
    name: Literal["read_write", "database_log", "log_write_bytes"], title: str, words: Callable[[float], str]
) -> Figure:
    def value(point: Point) -> float | None:
        return ((done_of(point).get("ratios") or {}).get(name) or {}).get("value")

    return Figure(
        name=name, unit="count" if name != "log_write_bytes" else "bytes", title=title, better=None, value=value,
        words=words, compared=False,
    )  # fmt: skip


LATENCIES: tuple[Figure, ...] = (
    _under("data", "read", "database_read_latency", "database read latency"),
    _under("data", "write", "database_write_latency", "database write latency"),
    _under("log", "write", "log_write_latency", "log write latency"),
)

FIGURES: tuple[Figure, ...] = (
    ACHIEVED,
    MAILBOXES,
    *LATENCIES,
    _peak("database_read", "database_read.peak", "database read latency"),
    _peak("log_write", "log_write.peak", "log write latency"),
    _ratio("read_write", "Database reads to writes", lambda value: f"{value:.2f} : 1"),
    _ratio("database_log", "Database I/Os to log I/Os", lambda value: f"{value:.1f} : 1"),
)
