"""Figures of `assay size`: the use of each resource over the years, and cost against what it buys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import DOTS_LEAST, PANEL_WIDTH, PLAIN_ZERO, ChartRows, marked_lines, ordered
from assay.document.drawing import alt
from assay.document.palette import INK, LIMIT, MAX_SERIES, QUIET, colour, shape


class GrowthRow(TypedDict):
    """Share of a resource that is used in a year."""

    year: int
    resource: str
    used: float


class FrontierRow(TypedDict):
    """A candidate that holds the need: its cost, or its disks, and the latency at the need in milliseconds."""

    label: str
    cost: float
    latency_ms: float


def growth_chart(rows: Sequence[GrowthRow], years: float) -> alt.TopLevelMixin | None:
    """Use of each resource by year; the dashed line is where it runs out, the upright one the end of the need.

    Parameters
    ----------
    rows : sequence of rows
        The use of each resource in each year.
    years : float
        The years that the need is for.
    """
    if len(rows) < DOTS_LEAST:
        return None
    resources = ordered(rows, "resource")
    if len(resources) > MAX_SERIES:
        raise ValueError(f"a figure holds at most {MAX_SERIES} series, got {len(resources)}")
    most = max(max(row["used"] for row in rows), 1.0)
    data = [{**row, "percent": row["used"] * 100} for row in rows]
    y = alt.Y("percent:Q", title="used, % of what there is",
              scale=alt.Scale(domain=[0, most * 108], nice=False))  # fmt: skip
    x = alt.X("year:Q", title="year", axis=alt.Axis(tickMinStep=1, format="d"))
    base = alt.Chart(ChartRows(values=data)).encode(x=x, y=y)
    lines = marked_lines(base, colour("resource", resources, columns=3), shape("resource", resources))
    out = alt.Chart(ChartRows(values=[{"percent": 100}])).mark_rule(color=LIMIT, strokeDash=[5, 4]).encode(y=y)
    end = alt.Chart(ChartRows(values=[{"year": years}])).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(x=x)
    chart: alt.TopLevelMixin = alt.layer(lines, out, end).properties(width=PANEL_WIDTH[1], height=240)
    return chart


NAMED_MOST = 8
"""Points of the frontier that carry their names: more would overlap."""


def frontier_chart(rows: Sequence[FrontierRow], cost_title: str) -> alt.TopLevelMixin | None:
    """Latency of every candidate that holds the need over its cost; a line joins those that no other beats in both.

    Parameters
    ----------
    rows : sequence of rows
        The candidates.
    cost_title : str
        What the cost is.
    """
    if len(rows) < DOTS_LEAST:
        return None
    best = frontier(rows)
    states = ["none that takes no more answers sooner", "another takes no more and answers sooner"]
    data = [{**row, "state": states[0] if row in best else states[1]} for row in rows]
    shown = [state for state in states if any(row["state"] == state for row in data)]
    costs = [row["cost"] for row in rows]
    # Room for the names beside the marks, and no cost below nothing.
    room = (max(costs) - min(costs)) / 10 or max(costs) / 10 or 1
    domain = [max(min(costs) - room, 0), max(costs) + room]
    axis = alt.Axis(format="~s", tickMinStep=1, labelExpr=PLAIN_ZERO)
    x = alt.X("cost:Q", title=cost_title, scale=alt.Scale(domain=domain, nice=False), axis=axis)
    most = max(row["latency_ms"] for row in rows)
    y = alt.Y(
        "latency_ms:Q", title="mean latency at the need, ms", scale=alt.Scale(domain=[0, most * 1.15], nice=False)
    )
    base = alt.Chart(ChartRows(values=data)).encode(x=x, y=y)
    points = base.mark_point(size=70, filled=True, opacity=1).encode(
        color=colour("state", shown), shape=shape("state", shown)
    )
    line = (
        alt.Chart(ChartRows(values=[dict(row) for row in best]))
        .mark_line(color=QUIET, strokeWidth=1.2, interpolate="step-after")
        .encode(x=x, y=y)
    )
    named = alt.Chart(ChartRows(values=[dict(row) for row in best[:NAMED_MOST]])).mark_text(
        align="left", dx=7, dy=-7, fontSize=9, color=INK
    ).encode(x=x, y=y, text="label:N")  # fmt: skip
    chart: alt.TopLevelMixin = alt.layer(line, points, named).properties(width=PANEL_WIDTH[1], height=230)
    return chart


def frontier(rows: Sequence[FrontierRow]) -> list[FrontierRow]:
    """Rows of which no other costs no more and answers sooner, by cost.

    Examples
    --------
    >>> rows = [{"cost": 1, "latency_ms": 9}, {"cost": 2, "latency_ms": 5}, {"cost": 3, "latency_ms": 7}]
    >>> [row["cost"] for row in frontier(rows)]
    [1, 2]
    """
    found: list[FrontierRow] = []
    for row in sorted(rows, key=lambda one: (one["cost"], one["latency_ms"])):
        if not found or row["latency_ms"] < found[-1]["latency_ms"]:
            found.append(row)
    return found
