"""Figures of transactions: the run over time with its storage beneath, and response times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import (
    BAR_MAX_PX,
    DOTS_LEAST,
    PANEL_WIDTH,
    ChartRows,
    SeriesRow,
    marked_lines,
    nines_axis,
    nines_of,
    ordered,
)
from assay.document.drawing import alt
from assay.document.palette import BAND, COLOURS, COUNT, INK, LIMIT, QUIET, colour, latency_unit, log_scale, shape
from assay.document.series import PanelRow
from assay.document.series_charts import AREA_INK, PlacedRow, TimeAxis, areas, lines, panels_over_time


class ShadedSpan(TypedDict):
    """A span of the time axis, seconds; its label is above the first panel, and may be empty."""

    start_s: float
    end_s: float
    kind: str
    label: str


class StackedRow(SeriesRow):
    """A value at a level of a study, and the first point there."""

    level: str
    point_id: str


class StorageRow(StackedRow):
    """What storage did at a level, in the unit of the panel's title."""

    panel: str


class ResponseRow(TypedDict):
    """A response time of a transaction at a percentile, a key of `NINES` or `max`."""

    series: str
    percentile: str
    latency_ns: float


SHADES = {"warm-up": (BAND, 0.22), "away": (LIMIT, 0.25), "dip": (COLOURS[1], 0.3)}
"""Colour and opacity of spans of the time axis."""

STACKED = ("transactions/s", "sessions (%)")
"""Panels whose series add up to a whole, drawn as areas upon each other."""

LETTER_PX = 5.6
"""Mean width of a letter of a label."""


def timeline(
    rows: Sequence[PanelRow], spans: Sequence[ShadedSpan], marks: Sequence[float], *, end_s: float
) -> alt.TopLevelMixin | None:
    """Panels over one time axis: transactions above, storage and server beneath.

    Parameters
    ----------
    rows : sequence of rows
        As of `series_charts.timeline`; panels of `STACKED` need a value of every series at every step.
    spans : sequence of rows
        `start_s`, `end_s`, `kind` (a key of `SHADES`), `label` (shown above the first panel; may be empty).
    marks : sequence of float
        Where checkpoints began, seconds.
    end_s : float
        End of the time axis, seconds.
    """

    def layers(own: list[PlacedRow], panel: str, axis: TimeAxis) -> list[alt.Chart]:
        drawn = _shading(spans, axis.x, axis.divisor, is_labelled=axis.is_first)
        drawn += [areas(own, panel, axis.x)] if panel in STACKED else lines(own, panel, axis.x)
        return [*drawn, _marks(marks, axis.x, axis.divisor)] if marks else drawn

    return panels_over_time(rows, layers, end_s=end_s)


def _shading(spans: Sequence[ShadedSpan], x: alt.X, divisor: float, *, is_labelled: bool) -> list[alt.Chart]:
    """Rectangles behind a panel, a layer a kind, and their labels above it when asked."""
    layers = []
    for kind, (hue, opacity) in SHADES.items():
        data = [
            {"t": span["start_s"] / divisor, "end": span["end_s"] / divisor, "label": span["label"]}
            for span in spans
            if span["kind"] == kind
        ]
        if not data:
            continue
        base = alt.Chart(ChartRows(values=data)).encode(x=x)
        # A colour that is no encoding leaves the legend to the series.
        layers.append(base.mark_rect(color=hue, opacity=opacity).encode(x2="end:Q"))
        if is_labelled:
            named = base.transform_filter("datum.label != ''")
            labels = named.mark_text(align="left", baseline="bottom", fontSize=10, color=INK, dy=-3)
            layers.append(labels.encode(y=alt.value(0), text="label:N"))
    return layers


def _marks(marks: Sequence[float], x: alt.X, divisor: float) -> alt.Chart:
    base = alt.Chart(ChartRows(values=[{"t": mark / divisor} for mark in marks]))
    rules: alt.Chart = base.mark_rule(color=QUIET, strokeDash=[3, 3], strokeWidth=1).encode(x=x)
    return rules


def response_curves(rows: Sequence[ResponseRow]) -> alt.TopLevelMixin | None:
    """Response time by percentile on an axis of nines, one curve a transaction.

    Parameters
    ----------
    rows : sequence of rows
        `series` (the transaction), `percentile` (a key of `charts.NINES`, or `max`), `latency_ns`.
    """
    labels = ordered(rows, "series")
    if len(rows) < DOTS_LEAST:
        return None
    factor, unit = latency_unit([row["latency_ns"] for row in rows])
    scale, ticks = log_scale([row["latency_ns"] / factor for row in rows])
    y = alt.Y("latency:Q", title=f"response time ({unit}, log)", scale=scale, axis=alt.Axis(values=ticks, format="~g"))
    data = [{**row, "nines": nines_of(row["percentile"]), "latency": row["latency_ns"] / factor} for row in rows]
    base = alt.Chart(ChartRows(values=data)).encode(x=nines_axis(), y=y)
    hues, marks = colour("series", labels, columns=5), shape("series", labels)
    figure: alt.TopLevelMixin = marked_lines(base, hues, marks).properties(width=PANEL_WIDTH[1] - 60, height=240)
    return figure


def storage_levels(rows: Sequence[StorageRow], by: str) -> alt.TopLevelMixin:
    """Panels beside each other with bars by level; I/Os of several kinds stand upon each other.

    Parameters
    ----------
    rows : sequence of rows
        `panel` (title of the axis, unit included), `level`, `series`, `value`, in the order to show.
    by : str
        What the levels are of.
    """
    panels, series = ordered(rows, "panel"), ordered(rows, "series")
    width = PANEL_WIDTH[1] / len(panels) - 60
    charts = [
        _level_bars([row for row in rows if row["panel"] == panel], panel, by, series, width=width) for panel in panels
    ]
    figure: alt.TopLevelMixin = alt.hconcat(*charts, spacing=16)
    return figure


def device_levels(rows: Sequence[StorageRow], by: str) -> alt.TopLevelMixin:
    """Panels beside each other: bars by level that add up, and means of each series as marks.

    Parameters
    ----------
    rows : sequence of rows
        `panel` (title of the axis, unit included; the first adds up, the second does not), `level`, `series`, `value`.
    by : str
        What the levels are of.
    """
    panels, series = ordered(rows, "panel"), ordered(rows, "series")
    width = PANEL_WIDTH[1] / len(panels) - 60
    first = _level_bars([row for row in rows if row["panel"] == panels[0]], panels[0], by, series, width=width)
    charts = [first]
    for panel in panels[1:]:
        own = [row for row in rows if row["panel"] == panel]
        charts.append(
            alt.Chart(ChartRows(values=own))
            .mark_point(filled=True, size=60)
            .encode(
                x=alt.X("level:N", sort=ordered(own, "level"), title=by, axis=alt.Axis(grid=False, labelAngle=-40)),
                y=alt.Y("value:Q", title=panel, axis=alt.Axis(format=COUNT, tickCount=6)),
                color=colour("series", series),
                shape=shape("series", series),
            )
            .properties(width=width, height=220)
        )
    figure: alt.TopLevelMixin = alt.hconcat(*charts, spacing=16)
    return figure


def stacked_levels(rows: Sequence[StackedRow], title: str, by: str) -> alt.TopLevelMixin:
    """Bars by level of series upon each other.

    Parameters
    ----------
    rows : sequence of rows
        `level`, `series`, `value`, in the order to show.
    title : str
        Title of the axis, unit included.
    by : str
        What the levels are of.
    """
    figure: alt.TopLevelMixin = _level_bars(rows, title, by, ordered(rows, "series"), width=PANEL_WIDTH[1])
    return figure


def _level_bars(rows: Sequence[StackedRow], title: str, by: str, series: Sequence[str], *, width: float) -> alt.Chart:
    levels = ordered(rows, "level")
    data = [{**row, "place": series.index(row["series"])} for row in rows]
    spare = 1 - min(0.9, BAR_MAX_PX * len(levels) / width)
    fits = LETTER_PX * max(map(len, levels)) <= width / len(levels)
    axis = alt.Axis(grid=False, labelAngle=0 if fits else -40, labelLimit=160, labelOverlap=False)
    spread = alt.Scale(paddingInner=max(spare, 0.1), paddingOuter=max(spare, 0.1) / 2)
    chart: alt.Chart = (
        alt.Chart(ChartRows(values=data))
        .mark_bar(stroke=AREA_INK, strokeWidth=0.6)
        .encode(
            x=alt.X("level:N", sort=levels, title=by, axis=axis, scale=spread),
            y=alt.Y("value:Q", title=title, stack="zero", axis=alt.Axis(format=COUNT, tickCount=6)),
            color=colour("series", series),
            order=alt.Order("place:Q"),
        )
        .properties(width=width, height=220)
    )
    return chart
