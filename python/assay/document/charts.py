"""Parts of figures that several kinds of workloads draw.

Every function that draws takes plain rows and returns a chart, or None when the rows show nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from statistics import median
from typing import Any, TypedDict, TypeVar

from assay.document.drawing import alt
from assay.document.elements import FigureElement, Paragraph
from assay.document.limits import MEETS
from assay.document.palette import INK, LIMIT, MAX_SERIES, QUIET, colour, latency_unit, log_scale, shape


class SeriesRow(TypedDict):
    """A value of a series; rows of a figure say more."""

    series: str
    value: float | None


AnySeriesRow = TypeVar("AnySeriesRow", bound=SeriesRow)


class LimitLine(TypedDict):
    """A limit on latency, nanoseconds, and its text."""

    latency_ns: float
    limit: str


class SearchRow(TypedDict):
    """A point of a search: its load, what was searched for, and a latency in nanoseconds where it has one.

    `state` says in words whether the point is an answer; at most six differ. `mark` is what the point is of the
    answer, such as its knee; empty for most.
    """

    load: float
    value: float
    latency_ns: float | None
    point_id: str
    state: str
    mark: str


class TimedSearchRow(SearchRow):
    """A point of a search with its latency in the unit of the axis."""

    latency: float


PANEL_WIDTH = {1: 600, 2: 292}
"""Pixels of a panel by the panels in a row; the whole fits the text width of A4."""

PLAIN_ZERO = "datum.value === 0 ? '0' : datum.label"
"""Labels of an axis in thousands call zero 0, not 0k."""
BAR_MAX_PX = 60
"""Widest bar: one as wide as it is high looks like an area."""

NINES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}
MAX_AT = 5.0
"""Where the maximum stands on the axis of nines: one step beyond 99.99 %."""


DOTS_LEAST = 4
"""A line of fewer dots is a sentence drawn as a figure."""


def figure_or_words(
    name: str, caption: str, alternative: str, chart: alt.TopLevelMixin | None
) -> FigureElement | Paragraph:
    """A figure, or in words what it would show: where there was too little to draw."""
    return Paragraph(alternative) if chart is None else FigureElement(name, caption, alternative, chart)


class ChartRows(alt.InlineData):
    """Rows of a drawing: layers share them, and the schema is asked of the whole figure alone."""

    _class_is_valid_at_instantiation = False

    def __deepcopy__(self, memo: object) -> ChartRows:
        """Give itself: nothing changes the rows."""
        del memo
        return self


def ordered(rows: Sequence[Mapping[str, object]], field: str) -> list[str]:
    """Distinct values of a field, in the order of the rows."""
    return list(dict.fromkeys(str(row[field]) for row in rows))


def with_others(rows: Sequence[AnySeriesRow]) -> list[AnySeriesRow]:
    """Rows with `series` and `value` whose series can be told apart: of more, the smallest are added up as `others`.

    Rows of the smaller series are added up where all else in them is equal.
    """
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["series"]] = totals.get(row["series"], 0.0) + (row["value"] or 0.0)
    if len(totals) <= MAX_SERIES:
        return [copy(row) for row in rows]
    kept = set(sorted(totals, key=lambda name: totals[name], reverse=True)[: MAX_SERIES - 1])
    shown = [copy(row) for row in rows if row["series"] in kept]
    added: dict[tuple[tuple[str, object], ...], AnySeriesRow] = {}
    for row in rows:
        if row["series"] not in kept:
            key = tuple((name, value) for name, value in row.items() if name not in ("series", "value"))
            if key not in added:
                added[key] = copy(row)
                added[key]["series"], added[key]["value"] = "others", 0.0
            added[key]["value"] = (added[key]["value"] or 0.0) + (row["value"] or 0.0)
    return [*shown, *added.values()]


def nines(share_percent: float) -> float:
    """Position of a percentile on the axis of nines: 90 is 1, 99 is 2, 99.9 is 3.

    Examples
    --------
    >>> nines(90.0), round(nines(99.9), 6)
    (1.0, 3.0)
    """
    return -math.log10(1 - share_percent / 100)


def nines_of(percentile: str) -> float:
    """Position of a key of `NINES`, or of `max`."""
    return MAX_AT if percentile == "max" else nines(NINES[percentile])


def nines_axis(**axis: Any) -> alt.X:
    """The axis of nines; `axis` are further properties of it."""
    names = {f"{nines_of(name):.4f}": name.removeprefix("p").replace("_", ".") for name in (*NINES, "max")}
    picked = " : ".join(f"format(datum.value, '.4f') == '{place}' ? '{name}'" for place, name in names.items())
    return alt.X("nines:Q", title="percentile, on a scale of nines",
                 scale=alt.Scale(domain=[nines(50) - 0.08, MAX_AT + 0.15], nice=False),
                 axis=alt.Axis(values=[nines_of(name) for name in (*NINES, "max")], labelExpr=f"{picked} : ''",
                               labelOverlap=False, **axis))  # fmt: skip


def marked_lines(base: alt.Chart, hues: alt.Color, marks: alt.Shape, *, size: int = 34) -> Any:
    """Lines with a marker at each value."""
    line = base.mark_line(strokeWidth=1.6).encode(color=hues)
    return alt.layer(line, base.mark_point(size=size, filled=True, opacity=1).encode(color=hues, shape=marks))


def limit_lines(limits: Sequence[LimitLine], factor: float, scale: alt.Scale) -> list[alt.Chart]:
    """Dashed lines at limits on latency, each with its text above its left end.

    Parameters
    ----------
    limits : sequence of rows
        The limits.
    factor : float
        Nanoseconds in the unit of the axis.
    scale : altair.Scale
        Scale of the axis.
    """
    if not limits:
        return []
    data = [{"latency": row["latency_ns"] / factor, "limit": row["limit"]} for row in limits]
    base = alt.Chart(ChartRows(values=data)).encode(y=alt.Y("latency:Q", scale=scale))
    line = base.mark_rule(color=LIMIT, strokeDash=[5, 4], strokeWidth=1.2)
    text = base.mark_text(align="left", dy=-6, dx=4, color=LIMIT, fontSize=10).encode(x=alt.value(0), text="limit:N")
    return [line, text]


NAMED_SERIES = 2
"""Curves whose rings are named; around the rings of more there is no room for names."""


def rings(base: alt.Chart, series: int = 1) -> list[alt.Chart]:
    """Rings around the points of an answer, each with its `mark` beside it where there is room: most, knee, edge."""
    marked = base.transform_filter("datum.mark != ''")
    ring = marked.mark_point(shape="circle", size=190, filled=False, strokeWidth=1.6, color=INK)
    if series > NAMED_SERIES:
        return [ring]
    return [ring, marked.mark_text(dy=16, fontSize=9, color=INK).encode(text="mark:N")]


def search_curve(
    rows: Sequence[SearchRow],
    axis_title: str,
    value_title: str,
    *,
    latency_title: str = "",
    limits: Sequence[LimitLine] = (),
) -> alt.TopLevelMixin | None:
    """What a search found over its load, and a latency beneath it where rows have one.

    Parameters
    ----------
    rows : sequence of rows
        Points of the search.
    axis_title, value_title, latency_title : str
        What the load, the value and the latency are.
    limits : sequence of rows
        Limits on the latency.
    """
    if len(rows) < DOTS_LEAST:
        return None
    states = ordered(sorted(rows, key=lambda row: row["state"] != MEETS), "state")
    timed = [(row, latency_ns) for row in rows if (latency_ns := row["latency_ns"])]
    most = max(row["load"] for row in rows)
    x_scale = alt.Scale(domain=[0, most * 1.05], nice=False)
    top = alt.X("load:Q", title=None, scale=x_scale, axis=alt.Axis(labels=False, ticks=False, tickMinStep=1))
    bottom = alt.X("load:Q", title=axis_title, scale=x_scale, axis=alt.Axis(format=",.6~g", tickMinStep=1))
    value = alt.Y(
        "value:Q", title=value_title, axis=alt.Axis(format="~s", labelExpr=PLAIN_ZERO), scale=alt.Scale(zero=True)
    )
    heights = [row["value"] for row in rows]
    panels = [_search_panel(rows, heights, states, top if timed else bottom, value, "value", [])]
    if timed:
        latencies_ns = [latency_ns for _, latency_ns in timed]
        factor, unit = latency_unit(latencies_ns)
        # A limit far above all points would press them flat.
        near = [row for row in limits if row["latency_ns"] <= 20 * max(latencies_ns)]
        scale, ticks = log_scale(
            [latency_ns / factor for latency_ns in (*latencies_ns, *(row["latency_ns"] for row in near))]
        )
        y = alt.Y("latency:Q", title=f"{latency_title} ({unit}, log)", scale=scale,
                  axis=alt.Axis(values=ticks, format="~g"))  # fmt: skip
        data: list[TimedSearchRow] = [{**row, "latency": latency_ns / factor} for row, latency_ns in timed]
        lines = limit_lines(near, factor, scale)
        panels.append(_search_panel(data, [row["latency"] for row in data], states, bottom, y, "latency", lines))
    figure: alt.TopLevelMixin = alt.vconcat(*panels, spacing=14).resolve_scale(color="shared", shape="shared")
    return figure


NEAR_SHARE = 0.05
"""Loads that differ by less are one place of a curve: between them lies chance."""


def near_loads(loads: Iterable[float]) -> list[list[float]]:
    """Distinct loads in groups that a curve shows at one place.

    Examples
    --------
    >>> near_loads([1, 2, 40, 41, 42, 43, 40])
    [[1], [2], [40, 41], [42, 43]]
    """
    groups: list[list[float]] = []
    for load in sorted(set(loads)):
        if groups and load < groups[-1][0] * (1 + NEAR_SHARE):
            groups[-1].append(load)
        else:
            groups.append([load])
    return groups


def _search_panel(
    rows: Sequence[SearchRow],
    heights: Sequence[float],
    states: Sequence[str],
    x: alt.X,
    y: alt.Y,
    field: str,
    limits: Sequence[alt.Chart],
) -> alt.LayerChart | alt.FacetChart:
    """A panel of points and the line through them; `heights` is the field of each row that `y` shows."""
    base = alt.Chart(ChartRows(values=[dict(row) for row in rows])).encode(x=x, y=y)
    hues, marks = colour("state", states), shape("state", states)
    # The line runs through the median of each load, which may have been measured again.
    middles = []
    for together in near_loads([row["load"] for row in rows]):
        own = [height for row, height in zip(rows, heights, strict=True) if row["load"] in together]
        first = next(row["point_id"] for row in rows if row["load"] in together)
        middles.append(
            {"load": median(together), field: median(own), "low": min(own), "high": max(own), "point_id": first}
        )
    middle = alt.Chart(ChartRows(values=middles)).encode(x=x)
    layers = [
        middle.mark_line(strokeWidth=1.2, color=QUIET).encode(y=y),
        middle.mark_rule(strokeWidth=1.2, color=QUIET).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(size=48, filled=True, opacity=1).encode(color=hues, shape=marks),
        *rings(base),
        *limits,
    ]
    return alt.layer(*layers).properties(width=PANEL_WIDTH[1] - 60, height=170)
