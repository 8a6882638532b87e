"""Figures of single parts of an examination: scans, log writes, the database mix, the span of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from assay.base.units import format_bytes
from assay.document.charts import DOTS_LEAST, NINES, PANEL_WIDTH, ChartRows, marked_lines, ordered
from assay.document.drawing import alt
from assay.document.palette import COUNT, INK, LIMIT, colour, latency_unit, log_scale, shape
from assay.workloads.io.shapes import CacheStep


class ScanRow(TypedDict):
    """Throughput of an access at a size of blocks, a label."""

    series: str
    block: str
    bytes_per_s: float
    point_id: str | None


class LogWriteRow(TypedDict):
    """Latencies in nanoseconds of log writes of a size, a label."""

    series: str
    block: str
    point_id: str | None
    mean_ns: float
    p99_ns: float | None


class ActivityRow(TypedDict):
    """Latencies in nanoseconds of an activity in a direction; `name` has both."""

    name: str
    direction: str
    mean_ns: float
    p99_ns: float


class ForegroundRow(TypedDict):
    """A latency in nanoseconds of reads during or between bursts; `percentile` is mean, a key of `NINES`, or max."""

    series: str
    percentile: str
    latency_ns: float


def throughput_lines(rows: Sequence[ScanRow]) -> alt.TopLevelMixin | None:
    """Throughput by block size, one line an access.

    Parameters
    ----------
    rows : sequence of rows
        Scans in the order of the block sizes.
    """
    if len(rows) < DOTS_LEAST:
        return None
    labels, blocks = ordered(rows, "series"), ordered(rows, "block")
    data = [{**row, "mib_per_s": row["bytes_per_s"] / 2**20} for row in rows]
    base = alt.Chart(ChartRows(values=data)).encode(
        x=alt.X("block:N", sort=blocks, title="block size", axis=alt.Axis(labelAngle=0, grid=False, labelLimit=110)),
        y=alt.Y("mib_per_s:Q", title="throughput (MiB/s)", scale=alt.Scale(zero=True), axis=alt.Axis(format=COUNT)),
    )
    figure: alt.TopLevelMixin = _lines(base, labels).properties(width=PANEL_WIDTH[1], height=220)
    return figure


def log_write_lines(rows: Sequence[LogWriteRow]) -> alt.TopLevelMixin | None:
    """Mean log write latency by size, one line per appenders and way of syncing; thin bars reach to p99.

    Parameters
    ----------
    rows : sequence of rows
        Log writes in the order of the block sizes.
    """
    if len(rows) < DOTS_LEAST:
        return None
    labels, blocks = ordered(rows, "series"), ordered(rows, "block")
    every = [value for row in rows for value in (row["mean_ns"], row["p99_ns"]) if value]
    factor, unit = latency_unit(every)
    scale, ticks = log_scale([value / factor for value in every])
    data = [{**row, "mean": row["mean_ns"] / factor, "p99": row["p99_ns"] and row["p99_ns"] / factor} for row in rows]
    base = alt.Chart(ChartRows(values=data)).encode(
        x=alt.X("block:N", sort=blocks, title="write size", axis=alt.Axis(labelAngle=0, grid=False, labelLimit=110),
                scale=alt.Scale(type="point", padding=0.5)),
        xOffset=alt.XOffset("series:N", sort=labels, scale=alt.Scale(range=[-4.0 * len(labels), 4.0 * len(labels)])),
        y=alt.Y("mean:Q", title=f"log write latency, mean to p99 ({unit}, log)", scale=scale,
                axis=alt.Axis(values=ticks, format="~g")),
    )  # fmt: skip
    reach = base.transform_filter("isValid(datum.p99)").mark_rule(strokeWidth=1.2).encode(
        y2="p99:Q", color=colour("series", labels)
    )  # fmt: skip
    figure: alt.TopLevelMixin = (reach + _lines(base, labels)).properties(width=PANEL_WIDTH[1], height=220)
    return figure


def _lines(base: alt.Chart, labels: Sequence[str]) -> Any:
    return marked_lines(base, colour("series", labels), shape("series", labels), size=44)


def role_latencies(rows: Sequence[ActivityRow]) -> alt.TopLevelMixin | None:
    """Latencies of the activities that ran at once: a line from the mean to p99, and its limit.

    Parameters
    ----------
    rows : sequence of rows
        Activities in the order to show.
    """
    if not rows:
        return None
    names = ordered(rows, "name")
    every = [value for row in rows for value in (row["mean_ns"], row["p99_ns"])]
    factor, unit = latency_unit(every)
    scale, ticks = log_scale([value / factor for value in every])
    data = [
        {"name": row["name"], "statistic": statistic, "latency": latency_ns / factor}
        for row in rows
        for statistic, latency_ns in (("mean", row["mean_ns"]), ("p99", row["p99_ns"]))
    ]
    base = alt.Chart(ChartRows(values=data)).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=240, labelFontSize=11, minExtent=120)),
        x=alt.X("latency:Q", title=f"latency ({unit}, log)", scale=scale, axis=alt.Axis(values=ticks, format="~g")),
    )
    joined = base.mark_line(color=INK, strokeWidth=1, opacity=0.5).encode(detail="name:N")
    statistics = ["mean", "p99"]
    marks = base.mark_point(size=60, filled=True, opacity=1).encode(
        color=colour("statistic", statistics), shape=shape("statistic", statistics)
    )
    figure: alt.TopLevelMixin = (joined + marks).properties(width=440, height=max(60, 26 * len(names)))
    return figure


def foreground_reads(rows: Sequence[ForegroundRow]) -> alt.TopLevelMixin | None:
    """Foreground read latency by percentile, during checkpoint bursts and between them.

    Parameters
    ----------
    rows : sequence of rows
        Latencies, percentiles in their order.
    """
    if not rows:
        return None
    order = ["mean", *(name.replace("_", ".") for name in NINES), "max"]
    labels = ordered(rows, "series")
    factor, unit = latency_unit([row["latency_ns"] for row in rows])
    scale, ticks = log_scale([row["latency_ns"] / factor for row in rows])
    data = [
        {**row, "statistic": row["percentile"].replace("_", "."), "latency": row["latency_ns"] / factor} for row in rows
    ]
    base = alt.Chart(ChartRows(values=data)).encode(
        x=alt.X("statistic:N", sort=order, title="statistic", axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y("latency:Q", title=f"foreground read latency ({unit}, log)", scale=scale,
                axis=alt.Axis(values=ticks, format="~g")),
    )  # fmt: skip
    figure: alt.TopLevelMixin = _lines(base, labels).properties(width=PANEL_WIDTH[1], height=200)
    return figure


def cache_span(steps: Sequence[CacheStep], ends_at_bytes: float | None) -> alt.TopLevelMixin | None:
    """Latency against the span of bytes read, with the place where a cache ends.

    Parameters
    ----------
    steps : sequence of rows
        Steps with a span and a mean.
    ends_at_bytes : float or None
        Where the cache ends; None when no end was seen.
    """
    drawn = [
        (span_bytes / 2**20, name, latency_ns)
        for step in steps
        for name, latency_ns in (("mean", step.get("latency_mean_ns")), ("p50", step.get("latency_p50_ns")))
        if latency_ns and (span_bytes := step.get("span_bytes"))
    ]
    if len(drawn) < DOTS_LEAST:
        return None
    factor, unit = latency_unit([latency_ns for _, _, latency_ns in drawn])
    scale, ticks = log_scale([latency_ns / factor for _, _, latency_ns in drawn])
    data = [
        {"span": span, "series": name, "latency_ns": latency_ns, "latency": latency_ns / factor}
        for span, name, latency_ns in drawn
    ]
    spans = sorted({span for span, _, _ in drawn})
    limits = [spans[0] / 1.3, spans[-1] * 1.3]
    base = alt.Chart(ChartRows(values=data)).encode(
        x=alt.X("span:Q", title="span of random reads (MiB, log)", axis=alt.Axis(values=spans, format=",~g"),
                scale=alt.Scale(type="log", base=2, domain=limits, nice=False)),
        y=alt.Y("latency:Q", title=f"read latency ({unit}, log)", scale=scale,
                axis=alt.Axis(values=ticks, format="~g")),
    )  # fmt: skip
    chart = _lines(base, [name for name in ("mean", "p50") if any(series == name for _, series, _ in drawn)])
    if ends_at_bytes and limits[0] <= ends_at_bytes / 2**20 <= limits[1]:
        end = [{"span": ends_at_bytes / 2**20, "text": f"cache ends near {format_bytes(ends_at_bytes)}"}]
        mark = alt.Chart(ChartRows(values=end)).encode(x="span:Q")
        rule = mark.mark_rule(color=LIMIT, strokeDash=[5, 4], strokeWidth=1.2)
        right = ends_at_bytes / 2**20 > (limits[0] * limits[1]) ** 0.5  # the text goes where there is room
        label = mark.mark_text(align="right" if right else "left", dx=-5 if right else 5, color=LIMIT, fontSize=10)
        chart = rule + chart + label.encode(y=alt.value(8), text="text:N")
    figure: alt.TopLevelMixin = chart.properties(width=PANEL_WIDTH[1], height=200)
    return figure
