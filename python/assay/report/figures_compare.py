"""The figure of a comparison: relative differences with their 95 % intervals."""

from __future__ import annotations

from typing import TypedDict

from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.palette import BAND, INK, MAX_SERIES, QUIET, colour, shape
from assay.insight.differences import FigureDifference, RunComparison, run_letter


class DifferenceRow(TypedDict):
    """A difference with its interval, in percent of A."""

    place: str
    metric: str
    percent: float
    low: float | None
    high: float | None
    changed: bool


WIDTH_PX = 460
ROW_PX = 14
"""Height of one metric's row; a workload and load has one for each metric."""
POINTS_MAX = 24
"""Most workloads and loads shown; beyond it the largest differences are taken, because a taller figure is not read."""


def compare_figure(comparison: RunComparison) -> alt.TopLevelMixin:
    """Differences of every metric, one row a workload and load, one panel a run compared with A.

    A marker is the difference, its whisker the 95 % interval, filled where it says *changed*. The grey band is the
    smallest difference worth noticing, the line is no difference.

    Parameters
    ----------
    comparison
        What `compare_runs` found.

    Returns
    -------
    altair chart
        At most six series, the first figures of the workloads; the axis is in percent of A.
    """
    found = [row for row in comparison.compared if row.relative is not None]
    titles = list(dict.fromkeys(row.figure.title for row in found))[:MAX_SERIES]
    shown = [row for row in found if row.figure.title in titles]
    places, left_out = _places(shown)
    panels = [
        _panel(comparison, [row for row in shown if row.run == run and _place(row) in places], places, titles, run)
        for run in range(1, len(comparison.runs))
    ]
    note = [f"{left_out} more workloads and loads, with smaller differences, are in the table"] if left_out else []
    heading = alt.TitleParams("Difference from A", subtitle=note, subtitleColor=QUIET)
    # One scale for all panels, so that their whiskers can be compared by eye.
    figure: alt.VConcatChart = alt.vconcat(*panels).resolve_scale(x="shared").properties(title=heading)
    return figure


def _place(row: FigureDifference) -> str:
    return f"{row.workload}, {row.load}"


def _places(rows: list[FigureDifference]) -> tuple[list[str], int]:
    """Workloads and loads to show, in the order of the runs, and how many were left out."""
    largest: dict[str, float] = {}
    for row in rows:
        largest[_place(row)] = max(largest.get(_place(row), 0.0), abs(row.relative or 0.0))
    taken = set(sorted(largest, key=lambda place: -largest[place])[:POINTS_MAX])
    return [place for place in largest if place in taken], len(largest) - len(taken)


def _panel(
    comparison: RunComparison, rows: list[FigureDifference], places: list[str], titles: list[str], run: int
) -> alt.LayerChart | alt.FacetChart:
    values: list[DifferenceRow] = [
        {
            "place": _place(row),
            "metric": row.figure.title,
            "percent": 100 * (row.relative or 0.0),
            "low": None if row.interval_95 is None else 100 * row.interval_95[0],
            "high": None if row.interval_95 is None else 100 * row.interval_95[1],
            "changed": row.status == "changed",
        }
        for row in rows
    ]
    heading = f"{run_letter(run)} over A, difference (%)"
    y = alt.Y("place:N", title=None, sort=places, axis=alt.Axis(labelLimit=260, ticks=False))
    base = alt.Chart(ChartRows(values=values)).encode(y=y, yOffset=alt.YOffset("metric:N", sort=titles))
    whiskers = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5)
    markers = base.mark_point(size=55, strokeWidth=1.5, opacity=1)
    x = alt.X("percent:Q", title=heading, axis=alt.Axis(format="+.3~g"))
    colours = colour("metric", titles)
    height = ROW_PX * max(1, len(titles)) * max(1, len(places))
    return alt.layer(
        _band(comparison.smallest_share),
        alt.Chart(ChartRows(values=[{"zero": 0}])).mark_rule(color=INK).encode(x=alt.X("zero:Q", title=heading)),
        whiskers.encode(x=alt.X("low:Q", title=heading), x2="high:Q", color=colours),
        markers.encode(
            x=x,
            color=colours,
            shape=shape("metric", titles),
            fill=alt.when("datum.changed").then(colours).otherwise(alt.value("white")),
        ),
    ).properties(width=WIDTH_PX, height=height, **({"title": run_letter(run)} if len(comparison.runs) > 2 else {}))


def _band(smallest_share: float) -> alt.Chart:
    edges = [{"from": -100 * smallest_share, "to": 100 * smallest_share}]
    chart: alt.Chart = (
        alt.Chart(ChartRows(values=edges)).mark_rect(color=BAND, opacity=0.2).encode(x="from:Q", x2="to:Q")
    )
    return chart
