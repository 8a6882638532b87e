"""Figures of transactions: the run over time with its storage beneath, response times, and the search for the most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import altair as alt

from assay.document.charts import MAX_AT, NINES, PANEL_WIDTH, nines, ordered
from assay.document.palette import BAND, COLOURS, INK, LIMIT, QUIET, colour, latency_unit, log_scale, shape
from assay.document.series_charts import HEIGHT, WIDTH, lines

Row = Mapping[str, Any]

SHADES = {"warm-up": (BAND, 0.22), "away": (LIMIT, 0.25)}
"""Colour and opacity of spans of the time axis."""

STACKED = ("transactions/s", "sessions (%)")
"""Panels whose series add up to a whole, drawn as areas upon each other."""

AREA_INK = "#FFFFFF"
"""Edge between areas, so that they are told apart in grey as well."""


def timeline(
    rows: Sequence[Row], spans: Sequence[Row], marks: Sequence[float], *, end_s: float
) -> alt.TopLevelMixin | None:
    """Panels over one time axis: transactions above, storage and server beneath.

    Parameters
    ----------
    rows : sequence of rows
        As of `figures_series.timeline`; panels of `STACKED` need a value of every series at every step.
    spans : sequence of rows
        `start_s`, `end_s`, `kind` (a key of `SHADES`), `label` (shown above the first panel; may be empty).
    marks : sequence of float
        Where checkpoints began, seconds.
    end_s : float
        End of the time axis, seconds.
    """
    panels = ordered(rows, "panel")
    if not panels:
        return None
    divisor, unit = (60, "min") if end_s > 600 else (1, "s")
    scale = alt.Scale(domain=[0, max(end_s, 1.0) / divisor], nice=False)
    charts = []
    for number, panel in enumerate(panels):
        own = [{**row, "t": row["t_s"] / divisor} for row in rows if row["panel"] == panel]
        is_last = number == len(panels) - 1
        axis = alt.Axis(grid=False, labels=is_last, ticks=is_last, tickCount=10, format=".6~g")
        x = alt.X("t:Q", title=f"time ({unit})" if is_last else None, axis=axis, scale=scale)
        layers = _shading(spans, x, divisor, is_labelled=number == 0)
        layers.append(_areas(own, panel, x) if panel in STACKED else lines(own, panel, x))
        if marks:
            layers.append(_marks(marks, x, divisor))
        charts.append(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT))
    figure: alt.TopLevelMixin = alt.vconcat(*charts, spacing=12).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return figure


def _areas(rows: Sequence[Row], panel: str, x: alt.X) -> alt.Chart:
    labels = ordered(rows, "series")
    numbered = [{**row, "place": labels.index(row["series"])} for row in rows]
    hues = alt.Color(
        "series:N",
        sort=labels,
        scale=alt.Scale(domain=labels, range=list(COLOURS[: len(labels)])),
        legend=alt.Legend(orient="right", title=None, labelLimit=110, symbolType="square"),
    )
    axis = alt.Axis(format="~s", tickCount=4, minExtent=44, maxExtent=44, titleFontSize=10)
    areas = alt.Chart(alt.InlineData(values=numbered)).mark_area(
        opacity=0.9, stroke=AREA_INK, strokeWidth=0.4, interpolate="step"
    )
    stacked: alt.Chart = areas.encode(
        x=x, y=alt.Y("value:Q", title=panel, stack="zero", axis=axis), color=hues, order=alt.Order("place:Q")
    )
    return stacked


def _shading(spans: Sequence[Row], x: alt.X, divisor: float, *, is_labelled: bool) -> list[alt.Chart]:
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
        base = alt.Chart(alt.InlineData(values=data)).encode(x=x)
        # A colour that is no encoding leaves the legend to the series.
        layers.append(base.mark_rect(color=hue, opacity=opacity).encode(x2="end:Q"))
        if is_labelled:
            named = base.transform_filter("datum.label != ''")
            labels = named.mark_text(align="left", baseline="bottom", fontSize=10, color=INK, dy=-3)
            layers.append(labels.encode(y=alt.value(0), text="label:N"))
    return layers


def _marks(marks: Sequence[float], x: alt.X, divisor: float) -> alt.Chart:
    base = alt.Chart(alt.InlineData(values=[{"t": mark / divisor} for mark in marks]))
    rules: alt.Chart = base.mark_rule(color=QUIET, strokeDash=[3, 3], strokeWidth=1).encode(x=x)
    return rules


def response_curves(rows: Sequence[Row]) -> alt.TopLevelMixin | None:
    """Response time by percentile on an axis of nines, one curve a transaction.

    Parameters
    ----------
    rows : sequence of rows
        `series` (the transaction), `percentile` (a key of `figures.NINES`, or `max`), `latency_ns`.
    """
    labels = ordered(rows, "series")
    if not labels:
        return None
    factor, unit = latency_unit([row["latency_ns"] for row in rows])
    scale, ticks = log_scale([row["latency_ns"] / factor for row in rows])
    places = {name: nines(value) for name, value in NINES.items()} | {"max": MAX_AT}
    names = {f"{place:.4f}": name.removeprefix("p").replace("_", ".") for name, place in places.items()}
    picked = " : ".join(f"format(datum.value, '.4f') == '{place}' ? '{name}'" for place, name in names.items())
    x = alt.X("nines:Q", title="percentile, on a scale of nines",
              scale=alt.Scale(domain=[nines(50) - 0.08, MAX_AT + 0.15], nice=False),
              axis=alt.Axis(values=list(places.values()), labelExpr=f"{picked} : ''", labelOverlap=False))  # fmt: skip
    y = alt.Y("latency:Q", title=f"response time ({unit}, log)", scale=scale, axis=alt.Axis(values=ticks, format="~g"))
    data = [{**row, "nines": places[row["percentile"]], "latency": row["latency_ns"] / factor} for row in rows]
    base = alt.Chart(alt.InlineData(values=data)).encode(x=x, y=y)
    hues, marks = colour("series", labels, columns=5), shape("series", labels)
    figure: alt.TopLevelMixin = alt.layer(
        base.mark_line(strokeWidth=1.6).encode(color=hues),
        base.mark_point(size=34, filled=True, opacity=1).encode(color=hues, shape=marks),
    ).properties(width=PANEL_WIDTH[1] - 60, height=240)
    return figure


def search_curve(rows: Sequence[Row], limits: Sequence[Row], axis_title: str) -> alt.TopLevelMixin | None:
    """New orders per minute over load, and their response time beneath it.

    Parameters
    ----------
    rows : sequence of rows
        `load`, `nopm`, `latency_ns` (p90 of new orders, or None), `state` (whether the point is an answer, in words),
        `is_answer`.
    limits : sequence of rows
        `latency_ns`, `limit` (its text).
    axis_title : str
        What the load is.
    """
    if not rows:
        return None
    states = ordered(sorted(rows, key=lambda row: row["state"] != "meets the limits"), "state")
    timed = [row for row in rows if row["latency_ns"]]
    most = max(row["load"] for row in rows)
    x_scale = alt.Scale(domain=[0, most * 1.05], nice=False)
    top = alt.X("load:Q", title=None, scale=x_scale, axis=alt.Axis(labels=False, ticks=False, tickMinStep=1))
    bottom = alt.X("load:Q", title=axis_title, scale=x_scale, axis=alt.Axis(format=",~g", tickMinStep=1))
    nopm = alt.Y("nopm:Q", title="new orders per minute", axis=alt.Axis(format="~s"), scale=alt.Scale(zero=True))
    panels = [_search_panel(rows, states, top if timed else bottom, nopm, "nopm", [])]
    if timed:
        factor, unit = latency_unit([row["latency_ns"] for row in timed])
        # A limit far above all points would press them flat.
        near = [row for row in limits if row["latency_ns"] <= 20 * max(row["latency_ns"] for row in timed)]
        scale, ticks = log_scale([row["latency_ns"] / factor for row in (*timed, *near)])
        y = alt.Y("latency:Q", title=f"new orders, p90 ({unit}, log)", scale=scale,
                  axis=alt.Axis(values=ticks, format="~g"))  # fmt: skip
        data = [{**row, "latency": row["latency_ns"] / factor} for row in timed]
        drawn = [{"latency": row["latency_ns"] / factor, "limit": row["limit"]} for row in near]
        panels.append(_search_panel(data, states, bottom, y, "latency", drawn))
    figure: alt.TopLevelMixin = alt.vconcat(*panels, spacing=14).resolve_scale(color="shared", shape="shared")
    return figure


def _search_panel(
    rows: Sequence[Row], states: Sequence[str], x: alt.X, y: alt.Y, field: str, limits: Sequence[Row]
) -> alt.LayerChart | alt.FacetChart:
    base = alt.Chart(alt.InlineData(values=[dict(row) for row in rows])).encode(x=x, y=y)
    hues, marks = colour("state", states), shape("state", states)
    # The line runs through the mean of the points at each load, which may have been measured again.
    loads = sorted({row["load"] for row in rows})
    means = [
        {"load": load, field: fmean(row[field] for row in rows if row["load"] == load)} for load in loads
    ]  # fmt: skip
    layers: list[alt.Chart] = [
        alt.Chart(alt.InlineData(values=means)).mark_line(strokeWidth=1.2, color=QUIET).encode(x=x, y=y),
        base.mark_point(size=48, filled=True, opacity=1).encode(color=hues, shape=marks),
        base.transform_filter("datum.is_answer").mark_point(shape="circle", size=210, strokeWidth=1.6, color=INK),
    ]
    if limits:
        lines_of = alt.Chart(alt.InlineData(values=[dict(row) for row in limits])).encode(y=y)
        layers.append(lines_of.mark_rule(color=LIMIT, strokeDash=[5, 4], strokeWidth=1.2))
        layers.append(
            lines_of.mark_text(align="left", dy=-6, dx=4, color=LIMIT, fontSize=10).encode(
                x=alt.value(0), text="limit:N"
            )
        )
    return alt.layer(*layers).properties(width=PANEL_WIDTH[1] - 60, height=170)
