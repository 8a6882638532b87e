"""Transactions and the storage beneath them on one time axis, from the tall table of the run folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from assay.base.tables import Record
from assay.base.units import count_of, format_duration, format_latency
from assay.document.elements import Block, FigureElement, Paragraph, Section
from assay.document.series import (
    RESENT_PANEL,
    RESENT_TEXT,
    Course,
    PanelRow,
    SeriesClock,
    by_role,
    course,
    gauge,
    hosts_text,
    largest,
    of_point,
    panel_rows,
    point_clock,
    quotient,
    rate,
    resent_rows,
    total,
    weighted,
    whole_rows,
)
from assay.document.series_charts import WIDTH
from assay.document.text import joined, moment, percent
from assay.record.source import RunFacts
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.report.charts import ShadedSpan, timeline
from assay.workloads.transactions.report.transactions import oltp_of, oltp_point

if TYPE_CHECKING:
    from assay.record.rows import Rows

DATABASES = ("postgresql", "mariadb", "mssql")
"""Sources of rows that database servers count."""

WAITS = {
    "none": "running",
    "log": "log",
    "io": "other I/O",
    "lock": "row locks",
    "lwlock": "latches",
    "other": "other",
}
"""What sessions at work wait for, in the order they are stacked; waits for the client count as other."""

WAIT_NAMED_PERCENT = 5
"""Waits of a smaller share of the sessions are not named in sentences."""

TPM_PANEL = "server TPM"
"""Transactions a minute by the server's own count, rollbacks included where it counts them."""

DIP_DEVIATIONS = 3.0
"""A dip lies so many deviations under the median (C. Leys et al., J. Exp. Soc. Psychol. 49, 2013: 3 is strict)."""
NORMAL_MAD = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""
DIP_SHARE = 0.05
"""A dip is at least so much under the median, as a share: a very even rate has no dips of a few transactions."""
DIP_S = 3.0
"""A dip lasts at least so long, seconds: a single slow second is noise."""

MAX_MARKS = 20
"""Checkpoints that are drawn; more would hide what is beneath them."""


def oltp_timeline_section(facts: RunFacts, application: Application) -> Section | None:
    """Build the section on transactions over time; None without series or without a point."""
    point = oltp_point(facts, application)
    if facts.series is None or point is None:
        return None
    clock = point_clock(point)
    if clock is None:
        return None
    frame = of_point(facts.series, clock)
    rows = oltp_rows(frame, clock, application)
    marks = checkpoint_marks(frame, clock)
    drawn = marks if len(marks) <= MAX_MARKS else []
    fallen = dips(rows, clock, float(point.get("warmup_s") or 0))
    chart = timeline(rows, [*spans_of(point, oltp_of(facts, application), clock), *fallen], drawn, end_s=clock.end_s)
    if chart is None:
        return None
    caption = (
        f"Transactions by kind, response time of {application.first_plural}, and what devices and server did at the"
        " same time."
    )
    caption += f" {RESENT_TEXT}" if any(row["panel"] == RESENT_PANEL for row in rows) else ""
    caption += " Dashed lines: a checkpoint began." if drawn else ""
    caption += f" {len(marks)} checkpoints began, too many to draw." if len(marks) > MAX_MARKS else ""
    caption += f" Yellow: {_dips_text(fallen)}" if fallen else ""
    figure = FigureElement(
        "oltp-timeline", caption, _told(rows, marks, application), chart, point_id=str(point.get("id"))
    )
    text = " ".join(filter(None, (_text(point, clock), hosts_text(frame))))
    blocks: list[Block] = [Paragraph(text), figure]
    return Section("oltp-time", "Transactions and storage over time", blocks, place="answer")


def dips(rows: Sequence[PanelRow], clock: SeriesClock, warmup_s: float) -> list[ShadedSpan]:
    """Spans in which the server's transactions a minute dip, after the warm-up.

    A dip lasts `DIP_S` seconds or longer, and at each of its steps the rate is under the median by more than
    `DIP_DEVIATIONS` times the median absolute deviation (scaled by `NORMAL_MAD`) and by more than `DIP_SHARE` of the
    median. Both are robust: dips, unless they take half of the time, do not move the median that they are judged by.
    A server that is away has no dip: its rate is not known.
    """
    own = [row for row in rows if row["panel"] == TPM_PANEL and row["t_s"] > warmup_s]
    values = [row["value"] for row in own if row["value"] is not None]
    if not values:
        return []
    middle = median(values)
    deviation = NORMAL_MAD * median(abs(value - middle) for value in values)
    bound = middle - max(DIP_DEVIATIONS * deviation, DIP_SHARE * middle)
    spans: list[ShadedSpan] = []
    for is_low, run in groupby(own, key=lambda row: row["value"] is not None and row["value"] < bound):
        times = [row["t_s"] for row in run]
        start_s, end_s = max(times[0] - clock.step_s / 2, warmup_s), min(times[-1] + clock.step_s / 2, clock.end_s)
        if is_low and end_s - start_s >= DIP_S:
            spans.append({"start_s": start_s, "end_s": end_s, "kind": "dip", "label": ""})
    return spans


def _dips_text(fallen: Sequence[ShadedSpan]) -> str:
    longest = max(span["end_s"] - span["start_s"] for span in fallen)
    return (
        f"{count_of(len(fallen), 'dip')} of the server's TPM, at most {format_duration(longest)} long (under the median"
        f" by {DIP_DEVIATIONS:g} deviations and {percent(DIP_SHARE)} for {DIP_S:g} s or longer)."
    )


def _text(point: Record, clock: SeriesClock) -> str:
    each = f"Each step covers {format_duration(clock.step_s)}" if clock.step_s > 1 else "One value a second"
    coarse = "; of several values in a step, percentiles are the largest" if clock.step_s > 1 else ""
    return (
        f"Point {point.get('id')}, from {moment(clock.start_ns)}. {each}{coarse}. Latency of devices is a mean over "
        "I/Os, that of the log over its flushes, as the server times them. Sessions: what those at work waited for, in "
        "one look a second; blank where none was at work. Lines break where nothing was recorded."
    )


def oltp_rows(frame: Rows, clock: SeriesClock, application: Application) -> list[PanelRow]:
    """Rows of `charts.timeline` for the panels that have any."""
    own, block, cpu = frame.of(source=application.kind), frame.of(source="block"), frame.of(source="host", entity="cpu")
    server = frame.where(frame.are("source", *DATABASES))
    rows = _transaction_rows(own, clock, application)
    rows += panel_rows(TPM_PANEL, clock, {"server": _server_tpm(server)})
    firsts = _of_kind(own, application.first)
    responses = {name: largest(firsts, f"latency_{name}_ns", 1e6) for name in ("p50", "p90", "p99", "max")}
    rows += panel_rows(_response_panel(application), clock, responses, log=True)
    rows += panel_rows("device (I/Os per s)", clock, by_role(block, lambda own, side: rate(own, f"{side}_ios_count")))
    moved = by_role(block, lambda own, side: rate(own, f"{side}_bytes", 2.0**20))
    moved["log (server)"] = rate(server, "log_bytes", 2.0**20)
    rows += panel_rows("device (MiB/s)", clock, moved)
    latencies = by_role(block, lambda own, side: weighted(own, side, 1e6))
    latencies["log flush"] = _mean_flush(server)
    rows += panel_rows("latency (ms, log)", clock, latencies, log=True)
    rows += resent_rows(frame, clock)
    rows += panel_rows("checkpoint age (MiB)", clock, {"log since": gauge(server, "checkpoint_age_bytes", 2.0**20)})
    rows += _wait_rows(server, clock)
    troubles = {name: rate(own, f"{name}_count") for name in ("retried", "failed")}
    rows += panel_rows(
        "attempts/s", clock, {name: found for name, found in troubles.items() if sum(found.values()) > 0}
    )
    shares = {name: gauge(cpu, f"{name}_share", 0.01) for name in ("user", "system", "iowait", "steal")}
    return rows + panel_rows("host CPU (%)", clock, shares)


def _server_tpm(server: Rows) -> Course:
    """Commits and rollbacks of all databases, a minute."""
    found = [rate(server, metric, 1 / 60) for metric in ("commits_count", "rollbacks_count")]
    return {step: sum(one.get(step, 0.0) for one in found) for step in {*found[0], *found[1]}}


def _of_kind(frame: Rows, name: str) -> Rows:
    """Rows of one kind of transaction, of all databases."""
    return frame.where(frame.matching("entity", lambda entity: entity.endswith(f"/{name}")))


def _transaction_rows(frame: Rows, clock: SeriesClock, application: Application) -> list[PanelRow]:
    """Committed transactions of each kind at every step, zero where there were none: areas need them all."""
    columns = {
        title: rate(_of_kind(frame, name), "committed_count") for name, title in application.transactions.items()
    }
    return whole_rows("transactions/s", clock, {name: own for name, own in columns.items() if own})


def _wait_rows(server: Rows, clock: SeriesClock) -> list[PanelRow]:
    """What sessions at work waited for; mean over databases, and over the samples of a step."""
    columns = {}
    for kind, name in WAITS.items():
        kinds = ["waits_other_share", "waits_client_share"] if kind == "other" else [f"waits_{kind}_share"]
        own = server.where(server.are("metric", *kinds))
        servers = {host: len(of_host.distinct("entity")) for (host,), of_host in own.apart("host")}
        shares = own.value / [servers[host] for host in own.texts["host"].column()]
        moments = own.groups("host", by=[own.t_ns])
        added = moments.sums(shares)
        columns[name] = course(own.where(moments.first), "means", added * 100)
    return whole_rows("sessions (%)", clock, {name: own for name, own in columns.items() if own})


def waited_words(facts: RunFacts, point: Record) -> str:
    """What sessions at work waited for over the window of a point, the most first; empty where it was not recorded."""
    clock = point_clock(point)
    if facts.series is None or clock is None:
        return ""
    inside = of_point(facts.series, clock)
    server = inside.where(inside.are("source", *DATABASES))
    found: dict[str, list[float]] = {}
    for row in _wait_rows(server, clock):
        if row["value"] is not None and row["t_s"] > float(point.get("warmup_s") or 0):
            found.setdefault(row["series"], []).append(row["value"])
    means = sorted(((sum(values) / len(values), name) for name, values in found.items()), reverse=True)
    told = [f"{name} {percent(mean / 100)}" for mean, name in means if mean >= WAIT_NAMED_PERCENT]
    return f"what sessions at work did or waited for: {joined(told)}" if told else ""


def _mean_flush(server: Rows) -> Course:
    """Mean time of a flush of the log over all databases, milliseconds."""
    means = quotient(total(server, "log_flush_time_ns"), total(server, "log_flushes_count"), 1e6)
    return {step: mean for step, mean in means.items() if mean > 0}


def checkpoint_marks(frame: Rows, clock: SeriesClock) -> list[float]:
    """When checkpoints began, seconds from the start of the point: the middle of the interval that counted one."""
    began = frame.where(frame.are("metric", "checkpoints_count") & (frame.value >= 0.5)).by_time()
    return [
        round(max((t_ns - interval_ns / 2 - clock.start_ns) / 1e9, 0.0), 3)
        for t_ns, interval_ns in zip(began.t_ns.tolist(), began.interval_ns.tolist(), strict=True)
    ]


def spans_of(point: Record, found: Record, clock: SeriesClock) -> list[ShadedSpan]:
    """Shaded spans: the warm-up, and times in which a server was away."""
    spans: list[ShadedSpan] = []
    warmup_s = float(point.get("warmup_s") or 0)
    if warmup_s > 0:
        spans.append({"start_s": 0.0, "end_s": warmup_s, "kind": "warm-up",
                      "label": _fitting("warm-up", warmup_s, clock)})  # fmt: skip
    for gap in found.get("gaps") or []:
        start_ns, end_ns = gap.get("from_utc_ns"), gap.get("to_utc_ns")
        if start_ns is None or end_ns is None:
            continue
        ends = [min(max((edge - clock.start_ns) / 1e9, 0.0), clock.end_s) for edge in (start_ns, end_ns)]
        if ends[1] > ends[0]:
            spans.append({"start_s": ends[0], "end_s": ends[1], "kind": "away", "label": "server away"})
    return spans


def _fitting(label: str, length_s: float, clock: SeriesClock) -> str:
    return label if length_s / clock.end_s * WIDTH >= 6 * len(label) else ""


def _response_panel(application: Application) -> str:
    return f"{application.first_plural} (ms, log)"


def _told(rows: Sequence[PanelRow], marks: Sequence[float], application: Application) -> str:
    """Ranges for readers who cannot see the figure."""
    sums: dict[float, float] = {}
    for row in rows:
        if row["panel"] == "transactions/s":
            sums[row["t_s"]] = sums.get(row["t_s"], 0.0) + (row["value"] or 0.0)
    p90s = _values(rows, _response_panel(application), "p90")
    texts = [f"{min(sums.values()):,.0f} to {max(sums.values()):,.0f} transactions per second"] if sums else []
    texts += (
        [f"p90 of {application.first_plural} {format_latency(min(p90s) * 1e6)} to {format_latency(max(p90s) * 1e6)}"]
        if p90s
        else []
    )
    texts += [f"{len(marks)} checkpoints"] if marks else []
    panels = joined(dict.fromkeys(row["panel"] for row in rows))
    return f"Panels over time: {panels}.{f' {joined(texts)}.' if texts else ''}"


def _values(rows: Iterable[PanelRow], panel: str, series: str) -> list[float]:
    chosen = (row["value"] for row in rows if row["panel"] == panel and row["series"] == series)
    return [value for value in chosen if value is not None]
