"""Figures of a trace: its course over time, sizes, skew and the hit curve of a cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import ChartRows, ordered
from assay.document.drawing import alt
from assay.document.palette import BAND, INK, QUIET, colour
from assay.document.series import PanelRow
from assay.document.series_charts import timeline
from assay.traces.character.places import ExtentSkew
from assay.traces.character.rates import OverTime

WIDTH, HEIGHT = 560, 190
SIZES_SHOWN = 12
NS_PER_MS = 1e6


class SizeRow(TypedDict):
    """The share of all I/Os that one direction has at one size."""

    size: str
    series: str
    share: float


class ShareRow(TypedDict):
    """A place of a curve; both are percentages, or the first is bytes."""

    x: float
    y: float


def course(over_time: OverTime, span_ns: int) -> alt.TopLevelMixin | None:
    """Rates, throughput and response times of reads and writes over time; None of a trace too short for it."""
    step_s = over_time.step_ns / 1e9
    rows: list[PanelRow] = []
    sums = over_time.columns
    for panel, scale, names in (
        ("IOPS", step_s, ("reads", "writes")),
        ("MiB/s", step_s * 2**20, ("read_bytes", "write_bytes")),
    ):
        for series, name in zip(("reads", "writes"), names, strict=True):
            rows += [
                {"panel": panel, "series": series, "t_s": step * step_s, "value": float(value) / scale, "log": False}
                for step, value in enumerate(sums[name])
            ]
    for series, name in (("reads", "read"), ("writes", "write")):
        if sums[f"{name}_timed"].any():
            rows += [
                {
                    "panel": "mean ms",
                    "series": series,
                    "t_s": step * step_s,
                    "value": float(total / count) / NS_PER_MS if count else None,
                    "log": False,
                }
                for step, (total, count) in enumerate(zip(sums[f"{name}_ns"], sums[f"{name}_timed"], strict=True))
            ]
    return timeline(rows, [], end_s=span_ns / 1e9)


def sizes(rows: Sequence[SizeRow]) -> alt.TopLevelMixin | None:
    """Bars of sizes, reads and writes upon each other."""
    if not rows:
        return None
    labels = ordered(rows, "size")
    base = alt.Chart(ChartRows(values=[dict(row) for row in rows]))
    chart: alt.TopLevelMixin = (
        base.mark_bar()
        .encode(
            x=alt.X(
                "size:N", sort=labels, title="size of an I/O", axis=alt.Axis(labelAngle=0 if len(labels) < 9 else -40)
            ),
            y=alt.Y("share:Q", title="% of the I/Os", stack="zero"),
            color=colour("series", ordered(rows, "series")),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return chart


def skew(found: ExtentSkew) -> alt.TopLevelMixin | None:
    """The share of the I/Os that the hottest extents get; the diagonal is a load without skew."""
    if found.extents < 2:
        return None
    rows = [{"x": 100 * share, "y": 100 * ios} for share, ios in ((0.0, 0.0), *found.curve)]
    even = alt.Chart(ChartRows(values=[{"x": 0, "y": 0}, {"x": 100, "y": 100}])).mark_line(
        color=BAND, strokeDash=[4, 4], strokeWidth=1.2
    )
    line = alt.Chart(ChartRows(values=rows)).mark_line(color=INK, strokeWidth=1.6)
    x = alt.X("x:Q", title="% of the extents that were touched, the hottest first", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("y:Q", title="% of the I/Os", scale=alt.Scale(domain=[0, 100]))
    chart: alt.TopLevelMixin = alt.layer(even.encode(x=x, y=y), line.encode(x=x, y=y)).properties(
        width=WIDTH, height=HEIGHT
    )
    return chart


def hits(curve: Sequence[tuple[float, float]], first_reads: float) -> alt.TopLevelMixin | None:
    """The share of reads that a cache of each size serves; the line above is what no cache exceeds."""
    if len(curve) < 2 or curve[-1][0] <= curve[0][0]:
        return None
    rows = [{"x": size / 2**20, "y": 100 * share} for size, share in curve]
    most = 100 * (1 - first_reads)
    x = alt.X(
        "x:Q",
        title="size of a cache that keeps what was used last (MiB, log)",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format=",.4~g", tickCount=6),
    )
    y = alt.Y("y:Q", title="% of the blocks read", scale=alt.Scale(domain=[0, 100]))
    line = alt.Chart(ChartRows(values=rows)).mark_line(color=INK, strokeWidth=1.6).encode(x=x, y=y)
    bound = alt.Chart(ChartRows(values=[{"y": most, "text": "all that are read again"}]))
    rule = bound.mark_rule(color=QUIET, strokeDash=[4, 4]).encode(y=y)
    named = bound.mark_text(align="left", dx=4, dy=-6, fontSize=10, color=QUIET).encode(
        x=alt.value(0), y=y, text="text:N"
    )
    chart: alt.TopLevelMixin = alt.layer(rule, named, line).properties(width=WIDTH, height=HEIGHT)
    return chart
