"""The figure of a contract: hours of each day that keep a clause, break it, cannot be judged, or do not count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import PANEL_WIDTH, ChartRows
from assay.document.drawing import alt
from assay.document.palette import COLOURS, GRID, LIMIT

DAYS_LEAST = 2
STATES = ("in breach", "unknown", "met", "does not count")
_HUES = (LIMIT, COLOURS[1], COLOURS[2], GRID)


class DayRow(TypedDict):
    """Hours of a day in a state; the day by its beginning, milliseconds of UTC."""

    day_ms: float
    state: str
    hours: float


def days_chart(rows: Sequence[DayRow]) -> alt.TopLevelMixin | None:
    """Hours of each day by state; None of less than two days."""
    days = {row["day_ms"] for row in rows}
    if len(days) < DAYS_LEAST:
        return None
    order = {state: place for place, state in enumerate(STATES)}
    data = [{**row, "order": order[row["state"]]} for row in rows if row["hours"]]
    begin, end = min(days), max(days) + 86_400_000
    width = PANEL_WIDTH[1] - 60
    x = alt.X(
        "day_ms:T", title="day, UTC", scale=alt.Scale(type="utc", domain=[begin, end], nice=False),
        axis=alt.Axis(format="%d %b", tickCount=8, labelOverlap=True, grid=False),
    )  # fmt: skip
    hours = alt.Axis(values=[0, 6, 12, 18, 24])
    y = alt.Y("hours:Q", title="hours", stack=True, scale=alt.Scale(domain=[0, 24]), axis=hours)
    chart: alt.TopLevelMixin = (
        alt.Chart(ChartRows(values=data))
        .mark_bar(width=max(width * 86_400_000 / (end - begin) * 0.85, 0.8), xOffset=width * 43_200_000 / (end - begin))
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "state:N", scale=alt.Scale(domain=list(STATES), range=list(_HUES)), sort=list(STATES),
                legend=alt.Legend(orient="top", title=None, columns=4),
            ),
            order=alt.Order("order:Q"),
        )
        .properties(width=width, height=180)
    )  # fmt: skip
    return chart
