"""Figures of queries: their times side by side, and the run over time with the queries as bars above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from assay.document.charts import ChartRows, ordered
from assay.document.drawing import alt
from assay.document.palette import COLOURS, INK, LIMIT, colour
from assay.document.series import PanelRow
from assay.document.series_charts import HEIGHT, WIDTH, PlacedRow, lines, with_course


class QueryTime(TypedDict):
    """Seconds of a query, by its number, in what is beside each other, and the point that they are of."""

    query: int
    seconds: float
    variant: str
    point_id: str


class LaneBar(TypedDict):
    """What ran in a lane, seconds since the start of the point."""

    lane: str
    label: str
    start_s: float
    end_s: float
    is_done: bool


LANE_PX = 13
"""Height of a stream's bars."""
LETTER_PX = 5.0
"""Mean width of a digit on a bar."""


def query_bars(rows: Sequence[QueryTime]) -> alt.TopLevelMixin:
    """Times of the queries side by side.

    Parameters
    ----------
    rows
        `query` (its number), `seconds`, `variant` (what is beside each other), in the order to show.
    """
    variants = ordered(rows, "variant")
    base = alt.Chart(ChartRows(values=[dict(row) for row in rows])).mark_bar()
    drawn: alt.TopLevelMixin = base.encode(
        x=alt.X("query:O", title="query", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("variant:N", sort=variants),
        y=alt.Y("seconds:Q", title="time of a query (s)"),
        color=colour("variant", variants),
    ).properties(width=WIDTH + 60, height=190)
    return drawn


def query_timeline(bars: Sequence[LaneBar], rows: Sequence[PanelRow], *, end_s: float) -> alt.TopLevelMixin:
    """Queries as bars, a lane a stream, above panels of what storage and host did, on one time axis.

    Parameters
    ----------
    bars
        `lane`, `label`, `start_s`, `end_s`, `is_done`.
    rows
        Rows of panels, as of `series_charts.timeline`.
    end_s
        End of the time axis, seconds.
    """
    rows = with_course(rows)
    divisor, unit = (60, "min") if end_s > 600 else (1, "s")
    scale = alt.Scale(domain=[0, max(end_s, 0.1) / divisor], nice=False)
    lanes, panels = ordered(bars, "lane"), ordered(rows, "panel")
    charts: list[Any] = []
    for number, panel in enumerate(["", *panels]):
        is_last = number == len(panels)
        axis = alt.Axis(grid=False, labels=is_last, ticks=is_last, tickCount=10, format=".6~g")
        x = alt.X("t:Q", title=f"time ({unit})" if is_last else None, axis=axis, scale=scale)
        if not number:
            charts.append(_bars(bars, lanes, x, divisor, end_s))
            continue
        own: list[PlacedRow] = [{**row, "t": row["t_s"] / divisor} for row in rows if row["panel"] == panel]
        charts.append(alt.layer(*lines(own, panel, x)).properties(width=WIDTH, height=HEIGHT))
    figure: alt.TopLevelMixin = alt.vconcat(*charts, spacing=12).resolve_scale(
        color="independent", strokeDash="independent"
    )
    return figure


def _bars(bars: Sequence[LaneBar], lanes: Sequence[str], x: alt.X, divisor: float, end_s: float) -> Any:
    data = [
        {
            "lane": bar["lane"],
            "t": bar["start_s"] / divisor,
            "end": bar["end_s"] / divisor,
            "middle": (bar["start_s"] + bar["end_s"]) / 2 / divisor,
            "label": bar["label"] if _fits(bar, end_s) else "",
            "state": "done" if bar["is_done"] else "ended early",
            "place": place,
        }
        for place, bar in enumerate(bars)
    ]
    base = alt.Chart(ChartRows(values=data))
    y = alt.Y("lane:N", sort=list(lanes), title=None, axis=alt.Axis(minExtent=44, labelLimit=90))
    hues = alt.Color(
        "state:N",
        scale=alt.Scale(domain=["done", "ended early"], range=[COLOURS[5], LIMIT]),
        legend=None if all(bar["is_done"] for bar in bars) else alt.Legend(orient="right", title=None),
    )
    rectangles = base.mark_bar(stroke=INK, strokeWidth=0.5).encode(x=x, x2="end:Q", y=y, color=hues)
    labels = base.transform_filter("datum.label != ''").mark_text(fontSize=9, color=INK)
    named = labels.encode(x=alt.X("middle:Q"), y=y, text="label:N")
    return alt.layer(rectangles, named).properties(width=WIDTH, height=LANE_PX * max(len(lanes), 2))


def _fits(bar: LaneBar, end_s: float) -> bool:
    return bool((bar["end_s"] - bar["start_s"]) / max(end_s, 0.1) * WIDTH >= LETTER_PX * (len(str(bar["label"])) + 0.6))
