"""The series of a run on a time axis: rows of panels from the tall table, and the axis itself."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from assay.record.rows import Integers, Numbers, Rows

Course = dict[int, float]
"""The value at each step of a time axis; nothing where none is known."""

MAX_STEPS = 400
"""Steps along the time axis: a line of 500 pixels cannot show more."""

NICE_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


class PanelRow(TypedDict):
    """A value of a panel.

    `panel` is the title of its axis, unit included; `t_s` seconds since the start; a `value` of None breaks the line;
    `log` says whether the panel's axis is logarithmic.
    """

    panel: str
    series: str
    t_s: float
    value: float | None
    log: bool


@dataclass(frozen=True)
class SeriesClock:
    """Time axis of the figure: where it starts, how long it is and how wide a step is."""

    start_ns: int
    end_s: float
    step_s: float


def rate(rows: Rows, metric: str, unit: float = 1.0) -> Course:
    """Sum over entities and hosts of a delta, per second of the time it covers."""
    from assay.record.rows import over

    own = rows.of(metric=metric)
    each = own.groups("entity", "host", by=[_steps(own)])
    firsts = own.where(each.first)
    hosts = firsts.groups("host", by=[_steps(firsts)])
    seconds = hosts.most(each.sums(own.interval_ns)) / 1e9
    return over_hosts(firsts.where(hosts.first), over(hosts.sums(each.sums(own.value)), seconds * unit))


def gauge(rows: Rows, metric: str, unit: float = 1.0) -> Course:
    """Mean over time of a gauge, added over entities; over hosts added too, but for a share, which is a mean."""
    from assay.record.rows import over

    own = rows.of(metric=metric)
    each = own.groups("entity", "host", by=[_steps(own)])
    means = over(each.sums(own.value * own.interval_ns), each.sums(own.interval_ns) * unit)
    firsts = own.where(each.first)
    hosts = firsts.groups("host", by=[_steps(firsts)])
    return over_hosts(firsts.where(hosts.first), hosts.sums(means), is_share=metric.endswith(SHARE))


SHARE = "_share"
"""How a metric ends whose values do not add up over hosts."""


def over_hosts(firsts: Rows, values: Numbers, *, is_share: bool = False) -> Course:
    """Values of all hosts together at each step, given a row for each host and step: their sum, or the mean of shares.

    Hosts do not count at the same moments. A value stands for the steps since the host's one before it, and the last
    one for as long again, so that no sum lacks a host that was at work.
    """
    of_host: dict[str, Course] = {}
    for host, step, value in zip(firsts.texts["host"].column(), _steps(firsts).tolist(), values.tolist(), strict=True):
        of_host.setdefault(host, {})[step] = value
    if len(of_host) < 2:
        return next(iter(of_host.values()), {})
    steps = sorted({step for own in of_host.values() for step in own})
    found: dict[int, list[float]] = {}
    for own in of_host.values():
        for step, value in _at_steps(own, steps).items():
            found.setdefault(step, []).append(value)
    return {step: sum(known) / (len(known) if is_share else 1) for step, known in found.items()}


def _at_steps(own: Course, steps: list[int]) -> Course:
    """One host's values at the steps of all, as far as they reach."""
    known = sorted(own)
    reach = _usual_gap(own)
    filled: Course = {}
    for step in steps:
        place = bisect_left(known, step)
        if place < len(known) and known[place] - step <= 2 * reach - 1:
            filled[step] = own[known[place]]
        elif place and step - known[place - 1] <= reach:
            filled[step] = own[known[place - 1]]
    return filled


def _usual_gap(course: Course) -> int:
    """Steps between values that follow each other, mostly."""
    gaps = [after - before for before, after in pairwise(sorted(course))]
    return max(int(median(gaps)), 1) if gaps else 1


def _steps(rows: Rows) -> Integers:
    assert rows.step is not None, "the rows have no steps; `of_point` gives them"
    return rows.step


def course(rows: Rows, how: Literal["sums", "means", "most", "least"], values: Numbers) -> Course:
    """A value at each step, made of those of its rows."""
    groups = rows.groups(by=[_steps(rows)])
    made: Numbers = getattr(groups, how)(values)
    return dict(zip(_steps(rows)[groups.first].tolist(), made.tolist(), strict=True))


def largest(rows: Rows, metric: str, unit: float) -> Course:
    """Largest value of a percentile: percentiles cannot be averaged."""
    own = rows.of(metric=metric)
    return course(own, "most", own.value / unit)


def mean(rows: Rows, metric: str, unit: float) -> Course:
    """Mean over entities and time of a gauge."""
    own = rows.of(metric=metric)
    return course(own, "means", own.value / unit)


def total(rows: Rows, metric: str) -> Course:
    """Sum of a metric at each step."""
    own = rows.of(metric=metric)
    return course(own, "sums", own.value)


def quotient(above: Course, below: Course, unit: float = 1.0) -> Course:
    """One course over another, where that is above zero."""
    return {step: value / below[step] / unit for step, value in above.items() if below.get(step, 0.0) > 0}


def weighted(rows: Rows, side: str, unit: float) -> Course:
    """Mean latency over volumes and time, weighted by the I/Os each mean stands for."""
    import numpy as np

    own = rows.where(rows.are("metric", f"{side}_latency_mean_ns", f"{side}_ios_count"))
    groups = own.groups("entity", "host", by=[own.t_ns, _steps(own)])
    is_mean = own.are("metric", f"{side}_latency_mean_ns")
    means, counts = (groups.sums(np.where(chosen, own.value, 0.0)) for chosen in (is_mean, ~is_mean))
    both = (groups.sums(is_mean) > 0) & (counts > 0)
    firsts = own.where(groups.first[both])
    times = course(firsts, "sums", means[both] * counts[both])
    return quotient(times, course(firsts, "sums", counts[both]), unit)


def hosts_text(rows: Rows) -> str:
    """What was added over hosts, as a sentence; empty for rows of one host."""
    count = len(rows.distinct("host"))
    return (
        f"Counts and rates are sums over {count} hosts, shares are their means; what hosts on one machine all saw"
        " counts once."
        if count > 1
        else ""
    )


RESENT_PANEL = "TCP resent (%)"
"""Segments to storage that were sent again, of each interface."""

RESENT_TEXT = (
    "TCP resent: the share of segments to storage on the network (NFS, iSCSI, NVMe/TCP, SMB) that were sent again, by"
    " the interface they left through."
)


def resent_rows(rows: Rows, clock: SeriesClock) -> list[PanelRow]:
    """Rows of `RESENT_PANEL`; none without storage on the network."""
    sent, again = (rows.of(metric=f"storage_segments_{what}_count") for what in ("out", "retransmitted"))
    columns = {}
    for name in sent.distinct("entity"):
        counts = [total(own.of(entity=name), own.at("metric", 0)) if len(own) else {} for own in (again, sent)]
        columns[name] = quotient(counts[0], counts[1], 0.01)
    return panel_rows(RESENT_PANEL, clock, columns)


def panel_rows(panel: str, clock: SeriesClock, columns: Mapping[str, Course], *, log: bool = False) -> list[PanelRow]:
    """Rows of one panel; more than two missing values break the line with a row without value.

    A series may have its values several steps apart, as telemetry has where the load counts in quarters of a second.
    """
    rows: list[PanelRow] = []
    for name, values in columns.items():
        before: int | None = None
        apart = 2 * _usual_gap(values)
        for step, value in sorted(values.items()):
            if not math.isfinite(value):
                continue
            if before is not None and step > before + apart:
                rows.append(
                    {"panel": panel, "series": name, "t_s": (before + 1) * clock.step_s, "value": None, "log": log}
                )
            middle = min((step + 0.5) * clock.step_s, clock.end_s)
            rows.append(
                {"panel": panel, "series": name, "t_s": round(middle, 3), "value": float(f"{value:.5g}"), "log": log}
            )
            before = step
    return rows


def whole_rows(panel: str, clock: SeriesClock, columns: Mapping[str, Course]) -> list[PanelRow]:
    """Rows of a panel with a value of every series at every step, zero where there is none: areas need them all."""
    if not columns:
        return []
    steps = range(int(clock.end_s / clock.step_s + 0.999999))
    rows: list[PanelRow] = []
    for name, values in columns.items():
        for step in steps:
            middle = min((step + 0.5) * clock.step_s, clock.end_s)
            value = float(f"{values.get(step, 0.0):.5g}")
            rows.append({"panel": panel, "series": name, "t_s": round(middle, 3), "value": value, "log": False})
    return rows


def point_clock(point: Mapping[str, Any]) -> SeriesClock | None:
    """Time axis of a point, warm-up included."""
    start_ns = point.get("started_utc_ns")
    length = float(point.get("warmup_s") or 0) + float(point.get("measured_s") or 0)
    if start_ns is None or length <= 0:
        return None
    wanted = length / MAX_STEPS
    return SeriesClock(int(start_ns), length, float(next((nice for nice in NICE_SECONDS if nice >= wanted), wanted)))


def on_axis(rows: Rows, clock: SeriesClock) -> Rows:
    """Rows with the step of the axis that each falls into."""
    return replace(rows, step=(rows.t_ns - 1 - clock.start_ns) // round(clock.step_s * 1e9))


def of_point(rows: Rows, clock: SeriesClock) -> Rows:
    """Rows that end within the point, with the step each falls into."""
    end_ns = clock.start_ns + round(clock.end_s * 1e9)
    return on_axis(rows.where((rows.t_ns > clock.start_ns) & (rows.t_ns <= end_ns)), clock)


def by_role(block: Rows, figure: Callable[[Rows, str], Course]) -> dict[str, Course]:
    """A figure of reads and writes for the devices of each role; a device of several roles goes by its own name.

    Directions that did nothing are left out.
    """
    has_role = block.matching("role", lambda role: role != "" and "+" not in role)
    places = {*block.where(has_role).distinct("role"), *block.where(~has_role).distinct("entity")}
    columns = {}
    for place in sorted(places):
        chosen = (block.are("role", place) & has_role) | (block.are("entity", place) & ~has_role)
        own = block.where(chosen)
        for side in ("read", "write"):
            if own.of(metric=f"{side}_ios_count").value.sum() > 0:
                columns[f"{place} {side}"] = figure(own, side)
    return columns
