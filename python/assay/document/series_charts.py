"""The series over time: what was asked above, the telemetry beneath, on one shared time axis."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from assay.document.charts import PLAIN_ZERO, ChartRows, ordered
from assay.document.drawing import alt
from assay.document.palette import BAND, COLOURS, DASHES, INK, MAX_SERIES, log_scale
from assay.document.series import PanelRow

WIDTH, HEIGHT, SPACING = 500, 84, 12
PAGE_HEIGHT = 740
"""Pixels of all panels together, so that they fit a page with the text above them."""

MAX_TICKS = 5
"""Labels that fit beside a panel."""
STEPS_LEAST = 4
"""A panel needs a series with as many values: fewer show no course over time."""


BURST_STEPS, BURST_TIMES = 3, 4.0
"""A burst of so few steps that is so many times what comes next would flatten all else: its height is told instead."""
STEPS_BESIDE = 12
"""Steps that a panel must have besides, for a burst to be one."""

AREA_INK = "#FFFFFF"
"""Edge between areas, so that they are told apart in grey as well."""


class PlacedRow(PanelRow):
    """A value of a panel, with its place `t` on the axis."""

    t: float


class PointBand(TypedDict):
    """A point behind the panels, seconds since the start; its `label` may be empty, every other one is `odd`."""

    start_s: float
    end_s: float
    label: str
    odd: bool


def panel_axis(form: str, ticks: Sequence[float] | None = None) -> alt.Axis:
    """The axis of values of a panel; those of all panels begin at one place."""
    return alt.Axis(format=form, labelExpr=PLAIN_ZERO, values=alt.Undefined if ticks is None else ticks, tickCount=4,
                    minExtent=44, maxExtent=44, titleFontSize=10)  # fmt: skip


def panel_height(panels: int) -> float:
    """Height of each of so many panels over one time axis."""
    return min(HEIGHT, (PAGE_HEIGHT - SPACING * (panels - 1)) / panels)


def timeline(
    rows: Sequence[PanelRow], bands: Sequence[PointBand], *, end_s: float, stacked: Sequence[str] = ()
) -> alt.TopLevelMixin | None:
    """Panels of series over one time axis, with the points shaded behind them.

    Parameters
    ----------
    rows : sequence of rows
        Values, panels in the order to show.
    bands : sequence of rows
        The points; their labels are shown above the first panel.
    end_s : float
        End of the time axis, seconds.
    stacked : sequence of str
        Panels whose series are areas upon each other; they need a value of every series at every step.
    """

    def layers(own: list[PlacedRow], panel: str, axis: TimeAxis) -> list[alt.Chart]:
        shading = _bands(bands, axis.x, axis.divisor, labelled=axis.is_first)
        drawn = [areas(own, panel, axis.x)] if panel in stacked else lines(own, panel, axis.x)
        return [*shading, *drawn]

    return panels_over_time(rows, layers, end_s=end_s, title="time since the start")


def with_course(rows: Sequence[PanelRow]) -> list[PanelRow]:
    """Rows of the panels that show a course over time."""
    counts = Counter((row["panel"], row["series"]) for row in rows if row["value"] is not None)
    shown = {panel for (panel, _), count in counts.items() if count >= STEPS_LEAST}
    return [row for row in rows if row["panel"] in shown]


@dataclass(frozen=True, kw_only=True)
class TimeAxis:
    """The time axis of a panel: seconds over `divisor`, and whether the panel is the first."""

    x: alt.X
    divisor: int
    is_first: bool


def panels_over_time(
    rows: Sequence[PanelRow],
    layers: Callable[[list[PlacedRow], str, TimeAxis], Sequence[alt.Chart]],
    *,
    end_s: float,
    title: str = "time",
    height_max_px: float = math.inf,
) -> alt.TopLevelMixin | None:
    """Panels over one time axis, which the last one names.

    Parameters
    ----------
    rows : sequence of rows
        As of `timeline`.
    layers : callable
        Makes of a panel's rows, its title and its axis what is drawn in it; rows have `t` on the axis.
    end_s : float
        End of the time axis, seconds.
    title : str
        Of the time axis.
    height_max_px : float
        A panel is no higher.
    """
    rows = with_course(rows)
    panels = ordered(rows, "panel")
    if not panels:
        return None
    divisor, unit = (60, "min") if end_s > 600 else (1, "s")
    scale = alt.Scale(domain=[0, max(end_s, 1.0) / divisor], nice=False)
    charts = []
    for number, panel in enumerate(panels):
        own: list[PlacedRow] = [{**row, "t": row["t_s"] / divisor} for row in rows if row["panel"] == panel]
        is_last = number == len(panels) - 1
        axis = alt.Axis(grid=False, labels=is_last, ticks=is_last, tickCount=10, format=".6~g")
        x = alt.X("t:Q", title=f"{title} ({unit})" if is_last else None, axis=axis, scale=scale)
        drawn = layers(own, panel, TimeAxis(x=x, divisor=divisor, is_first=number == 0))
        height = min(panel_height(len(panels)), height_max_px)
        charts.append(alt.layer(*drawn).properties(width=WIDTH, height=height))
    figure: alt.TopLevelMixin = alt.vconcat(*charts, spacing=SPACING).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return figure


def burst_top(rows: Sequence[PlacedRow]) -> float | None:
    """Where the axis of a panel ends that a short burst would flatten; None where nothing is left out.

    Examples
    --------
    >>> def row(t: float, value: float) -> PlacedRow:
    ...     return {"panel": "", "series": "", "t_s": t, "t": t, "value": value, "log": False}
    >>> rows = [row(0, 900.0), *(row(t, 100.0) for t in range(1, 20))]
    >>> burst_top(rows), burst_top(rows[1:])
    (125.0, None)
    """
    highest: dict[float, float] = {}
    for row in rows:
        highest[row["t"]] = max(highest.get(row["t"], 0.0), row["value"] or 0.0)
    ranked = sorted(highest.values(), reverse=True)
    if len(ranked) < BURST_STEPS + STEPS_BESIDE:
        return None
    rest = ranked[BURST_STEPS]
    return rest * 1.25 if rest > 0 and ranked[0] > BURST_TIMES * rest else None


def lines(rows: Sequence[PlacedRow], panel: str, x: alt.X) -> list[alt.Chart]:
    """Layers of one panel: lines, one colour and dash a series, and the height of a burst that the axis leaves out.

    `rows` are as of `timeline`, with `t` on the axis `x`.
    """
    labels = ordered(rows, "series")[:MAX_SERIES]
    positive = [row["value"] for row in rows if row["value"]]
    format_, scale = "~s", alt.Scale(zero=True)
    ticks: list[float] | None = None
    if rows[0]["log"] and positive and min(positive) > 0:
        scale, ticks = log_scale(positive, MAX_TICKS)
        format_ = "~g"
    elif max(positive, default=0) < 1000:
        format_ = "~r"
    top = None if rows[0]["log"] else burst_top(rows)
    if top is not None:
        scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("value:Q", title=panel, scale=scale, axis=panel_axis(format_, ticks))
    legend = alt.Legend(orient="right", title=None, labelLimit=110, symbolType="stroke", symbolStrokeWidth=2.2)
    hues = alt.Color("series:N", legend=legend, scale=alt.Scale(domain=labels, range=list(COLOURS[: len(labels)])))
    dashes = alt.StrokeDash(
        "series:N", legend=legend, scale=alt.Scale(domain=labels, range=list(DASHES[: len(labels)]))
    )
    chosen = [row for row in rows if row["series"] in labels and not (rows[0]["log"] and row["value"] == 0)]
    chart = alt.Chart(ChartRows(values=[dict(row) for row in chosen]))
    lines = chart.mark_line(strokeWidth=1.3, invalid="break-paths-show-domains", clip=top is not None)
    encoded: alt.Chart = lines.encode(x=x, y=y, color=hues, strokeDash=dashes)
    return [encoded] if top is None else [encoded, _burst(chosen, x)]


def _burst(rows: Sequence[PlacedRow], x: alt.X) -> alt.Chart:
    """The height of what a panel's axis leaves out, at its time."""
    most = max(rows, key=lambda row: row["value"] or 0.0)
    value = most["value"] or 0.0
    told = [{"t": most["t"], "label": f"up to {value:,.3g}" if value < 1000 else f"up to {value:,.0f}"}]
    text = alt.Chart(ChartRows(values=told)).mark_text(align="left", baseline="top", dx=4, fontSize=10, color=INK)
    named: alt.Chart = text.encode(x=x, y=alt.value(2), text="label:N")
    return named


def areas(rows: Sequence[PlacedRow], panel: str, x: alt.X) -> alt.Chart:
    """Areas of one panel upon each other; `rows` as of `lines`, with a value of every series at every step."""
    labels = ordered(rows, "series")
    numbered = [{**row, "place": labels.index(row["series"])} for row in rows]
    hues = alt.Color(
        "series:N",
        sort=labels,
        scale=alt.Scale(domain=labels, range=list(COLOURS[: len(labels)])),
        legend=alt.Legend(orient="right", title=None, labelLimit=110, symbolType="square"),
    )
    drawn = alt.Chart(ChartRows(values=numbered)).mark_area(
        opacity=0.9, stroke=AREA_INK, strokeWidth=0.4, interpolate="step"
    )
    stacked: alt.Chart = drawn.encode(
        x=x,
        y=alt.Y("value:Q", title=panel, stack="zero", axis=panel_axis("~s")),
        color=hues,
        order=alt.Order("place:Q"),
    )
    return stacked


def _bands(bands: Sequence[PointBand], x: alt.X, divisor: float, *, labelled: bool) -> list[alt.Chart]:
    """Shading of the points, every other one darker; labels above the panel when asked."""
    if not bands:
        return []
    data = [
        {"t": band["start_s"] / divisor, "end": band["end_s"] / divisor, "label": band["label"],
         "shade": 0.2 if band["odd"] else 0.0}
        for band in bands
    ]  # fmt: skip
    base = alt.Chart(ChartRows(values=data)).encode(x=x)
    shading = base.mark_rect(color=BAND).encode(x2="end:Q", opacity=alt.Opacity("shade:Q", scale=None, legend=None))
    if not labelled:
        return [shading]
    named = base.transform_filter("datum.label != ''")
    labels = named.mark_text(align="left", baseline="bottom", fontSize=10, color=INK, dy=-3).encode(
        y=alt.value(0), text="label:N"
    )
    return [shading, labels]
