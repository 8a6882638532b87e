"""Figures of I/O: IOPS within limits, latency against IOPS, latency by percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import (
    BAR_MAX_PX,
    DOTS_LEAST,
    PANEL_WIDTH,
    ChartRows,
    LimitLine,
    limit_lines,
    marked_lines,
    nines_axis,
    nines_of,
    ordered,
    rings,
)
from assay.document.drawing import alt
from assay.document.palette import COUNT, INK, MAX_SERIES, colour, latency_unit, log_scale, shape

DIRECTIONS = ("read", "write")


class IopsBar(TypedDict):
    """I/Os per second within limits of a block and mix, both as labels, and the 95 % interval where there is one."""

    block: str
    mix: str
    iops: float
    low: float | None
    high: float | None
    point_id: str | None


class CurveRow(TypedDict):
    """A latency in nanoseconds of a direction, `read` or `write`, at the I/Os per second of both together.

    Of several points near one load it is the median, with the least and the most. `mark` is what a point is of the
    answer, such as its knee; empty for most.
    """

    series: str
    direction: str
    iops: float
    latency_ns: float
    load: float
    low_ns: float | None
    high_ns: float | None
    mark: str
    point_id: str | None


class DirectionLimit(TypedDict):
    """A limit on the latency of a direction, nanoseconds, and its text."""

    direction: str
    latency_ns: float
    limit: str


class PercentileRow(TypedDict):
    """A latency in nanoseconds of a direction; `percentile` is a key of `NINES`, or `max`."""

    series: str
    direction: str
    percentile: str
    latency_ns: float
    point_id: str | None


def iops_bars(rows: Sequence[IopsBar]) -> alt.TopLevelMixin | None:
    """Bars of IOPS within limits by block, one colour a mix, with 95 % intervals.

    Parameters
    ----------
    rows : sequence of rows
        Bars in the order to show.
    """
    if not rows:
        return None
    mixes, blocks = ordered(rows, "mix"), ordered(rows, "block")
    if len(mixes) > MAX_SERIES:
        raise ValueError(f"a figure holds at most {MAX_SERIES} series, got {len(mixes)}")
    highest = max(max(row["iops"], row["high"] or 0) for row in rows)
    # A bar each of few blocks would look like an area.
    gap = max(1 - BAR_MAX_PX * len(mixes) * len(blocks) / PANEL_WIDTH[1], 0.2)
    base = alt.Chart(ChartRows(values=list(rows))).encode(
        x=alt.X(
            "block:N",
            sort=blocks,
            title="block size",
            axis=alt.Axis(labelAngle=0, grid=False, labelLimit=120),
            scale=alt.Scale(paddingInner=gap, paddingOuter=gap / 2),
        ),
        xOffset=alt.XOffset("mix:N", sort=mixes, scale=alt.Scale(paddingInner=0.12)),
    )
    bars = base.mark_bar().encode(
        y=alt.Y("iops:Q", title="I/Os per second within limits", axis=alt.Axis(format=COUNT, tickCount=6),
                scale=alt.Scale(domain=[0, highest * 1.12], nice=False)),
        color=colour("mix", mixes, "read/write mix (%)"),
    )  # fmt: skip
    spans = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    whiskers = spans.mark_rule(color=INK, strokeWidth=1.2).encode(y="low:Q", y2="high:Q")
    ends = [spans.mark_tick(color=INK, size=7, thickness=1.2, orient="horizontal").encode(y=f"{end}:Q")
            for end in ("low", "high")]  # fmt: skip
    layers = [bars, whiskers, *ends]
    if len(rows) <= 16:
        tops = base.transform_calculate(top="isValid(datum.high) ? max(datum.high, datum.iops) : datum.iops")
        layers.append(
            tops.mark_text(dy=-7, fontSize=9, color=INK).encode(y="top:Q", text=alt.Text("iops:Q", format=",.0f"))
        )
    figure: alt.TopLevelMixin = alt.layer(*layers).properties(width=PANEL_WIDTH[1], height=230)
    return figure


def latency_curves(
    rows: Sequence[CurveRow], limits: Sequence[DirectionLimit], statistic: str
) -> alt.TopLevelMixin | None:
    """Curves of latency against IOPS, reads and writes apart, with the loads of answers and limits.

    Parameters
    ----------
    rows : sequence of rows
        Points of the curves.
    limits : sequence of rows
        Limits on what is drawn.
    statistic : str
        What the latency is (`mean`, `p99`), for the axis.
    """
    labels = ordered(rows, "series")
    shown = [direction for direction in DIRECTIONS if any(row["direction"] == direction for row in rows)]
    if not shown or max(len([row for row in rows if row["direction"] == one]) for one in shown) < DOTS_LEAST:
        return None
    drawn = [row for row in limits if row["direction"] in shown]
    every = [*(row["latency_ns"] for row in rows), *(row["latency_ns"] for row in drawn)]
    factor, unit = latency_unit(every)
    scale, ticks = log_scale([value / factor for value in every])
    most = max(row["iops"] for row in rows) * 1.05
    x = alt.X("iops:Q", title="I/Os per second, reads and writes together", axis=alt.Axis(format=COUNT, tickCount=5),
              scale=alt.Scale(domain=[0, most], nice=False))  # fmt: skip
    panels = []
    for direction in shown:
        title = f"{direction} latency, {statistic} ({unit}, log)"
        y = alt.Y("latency:Q", title=title, scale=scale, axis=alt.Axis(values=ticks, format="~g"))
        data = [
            {**row, "latency": row["latency_ns"] / factor, "low": (row["low_ns"] or 0) / factor,
             "high": (row["high_ns"] or 0) / factor}
            for row in rows
            if row["direction"] == direction
        ]  # fmt: skip
        base = alt.Chart(ChartRows(values=data)).encode(x=x, y=y)
        hues, marks = colour("series", labels), shape("series", labels)
        own: list[LimitLine] = [
            {"latency_ns": row["latency_ns"], "limit": row["limit"]} for row in drawn if row["direction"] == direction
        ]
        layers: list[alt.Chart] = [*limit_lines(own, factor, scale)]
        layers.append(base.mark_line(strokeWidth=1.6).encode(color=hues, order="load:Q"))
        spans = base.transform_filter("datum.high > datum.low").mark_rule(strokeWidth=1.2)
        layers.append(spans.encode(y=alt.Y("low:Q"), y2="high:Q", color=hues))
        layers.append(base.mark_point(size=34, filled=True, opacity=1).encode(color=hues, shape=marks))
        layers += rings(base, len(labels))
        panels.append(alt.layer(*layers).properties(width=PANEL_WIDTH[len(shown)], height=225, title=direction + "s"))
    figure: alt.TopLevelMixin = alt.hconcat(*panels, spacing=24).resolve_scale(color="shared", shape="shared")
    return figure


def percentile_curves(rows: Sequence[PercentileRow]) -> alt.TopLevelMixin | None:
    """Latency by percentile on an axis of nines, reads and writes apart.

    Parameters
    ----------
    rows : sequence of rows
        Latencies, percentiles in their order.
    """
    labels = ordered(rows, "series")
    shown = [direction for direction in DIRECTIONS if any(row["direction"] == direction for row in rows)]
    if not shown or max(len([row for row in rows if row["direction"] == one]) for one in shown) < DOTS_LEAST:
        return None
    factor, unit = latency_unit([row["latency_ns"] for row in rows])
    scale, ticks = log_scale([row["latency_ns"] / factor for row in rows])
    panels = []
    for direction in shown:
        data = [
            {**row, "nines": nines_of(row["percentile"]), "latency": row["latency_ns"] / factor}
            for row in rows
            if row["direction"] == direction
        ]
        y = alt.Y("latency:Q", title=f"{direction} latency ({unit}, log)", scale=scale,
                  axis=alt.Axis(values=ticks, format="~g"))  # fmt: skip
        base = alt.Chart(ChartRows(values=data)).encode(x=nines_axis(labelFontSize=10), y=y)
        lines = marked_lines(base, colour("series", labels), shape("series", labels))
        panels.append(lines.properties(width=PANEL_WIDTH[len(shown)], height=225, title=direction + "s"))
    figure: alt.TopLevelMixin = alt.hconcat(*panels, spacing=24).resolve_scale(color="shared", shape="shared")
    return figure
