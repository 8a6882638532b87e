"""Colours, marker shapes and the one theme of all figures.

The colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), without black (it would vanish on a dark
page) and without yellow (on white). Every series has a shape or a dash of its own as well, for printing in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import altair as alt

from assay.document.elements import Chart, Specification

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 2])
MAX_SERIES = len(COLOURS)
"""At most six series a figure: more cannot be told apart."""

INK, QUIET, GRID, LIMIT, BAND = "#222222", "#666666", "#DDDDDD", "#8B1A1A", "#999999"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

T = TypeVar("T")


def chunks(items: Sequence[T], size: int = MAX_SERIES) -> list[list[T]]:
    """Items in even groups of at most `size`.

    Examples
    --------
    >>> chunks([1, 2, 3, 4, 5, 6, 7])
    [[1, 2, 3, 4], [5, 6, 7]]
    """
    groups = -(-len(items) // size)
    if groups == 0:
        return []
    even = -(-len(items) // groups)
    return [list(items[at : at + even]) for at in range(0, len(items), even)]


def colour(field: str, labels: Sequence[str], title: str | None = None, **legend: Any) -> alt.Color:
    """Colour of each series, in the order given, with the legend above the figure."""
    shown = {"orient": "top", "title": title, "labelLimit": 230, "symbolLimit": 0, "columns": 4, **legend}
    return alt.Color(
        field,
        type="nominal",
        scale=alt.Scale(domain=list(labels), range=list(COLOURS[: len(labels)])),
        legend=alt.Legend(**shown),
    )


def shape(field: str, labels: Sequence[str], title: str | None = None) -> alt.Shape:
    """Marker of each series; its title equals that of `colour`, so that both share one legend."""
    scale = alt.Scale(domain=list(labels), range=list(SHAPES[: len(labels)]))
    legend = alt.Legend(orient="top", title=title, labelLimit=230, symbolLimit=0, columns=4)
    return alt.Shape(field, type="nominal", scale=scale, legend=legend)


def latency_unit(latencies_ns: Iterable[float]) -> tuple[float, str]:
    """Factor in nanoseconds and name of the unit that suits an axis.

    Examples
    --------
    >>> latency_unit([80_000, 900_000]), latency_unit([80_000, 90e6])
    ((1000.0, 'us'), (1000000.0, 'ms'))
    """
    largest = max(latencies_ns, default=0.0)
    return (1e3, "us") if largest < 1e6 else (1e6, "ms") if largest < 1e10 else (1e9, "s")


def log_scale(values: Sequence[float]) -> tuple[alt.Scale, list[float]]:
    """Logarithmic scale around positive values, and its ticks: 1, 2, 5 of each decade, or 1 alone when there are many.

    Examples
    --------
    >>> log_scale([0.3, 40.0])[1]
    [0.5, 1, 2, 5, 10, 20, 50]
    """
    low, high = min(values) * 0.8, max(values) * 1.3
    decades = range(-6, 13)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in (1, 2, 5)]
    inside = [tick for tick in ticks if low <= tick <= high]
    if len(inside) > 9:
        inside = [tick for tick in inside if f"{tick:e}".startswith("1.0")]
    whole = [int(tick) if tick == int(tick) else tick for tick in inside]
    return alt.Scale(type="log", domain=[low, high], nice=False), whole


def theme(chart: Chart) -> Specification:
    """Vega-Lite specification of a chart in the one theme."""
    specification = chart.to_dict()
    axis = {
        "labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
        "gridColor": GRID, "domainColor": QUIET, "tickColor": QUIET, "tickSize": 4, "titlePadding": 8,
        "labelOverlap": True,
    }  # fmt: skip
    specification["config"] = {
        "background": None,
        "font": FONT,
        "aria": False,  # one text alternative per figure serves better than one per mark
        "view": {"stroke": None},
        "axis": axis,
        "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11,
                   "titleFontWeight": "normal", "symbolSize": 70, "rowPadding": 3, "columnPadding": 14},
        "title": {"color": INK, "fontSize": 12, "fontWeight": "bold", "anchor": "start", "offset": 6},
        "header": {"labelColor": INK, "titleColor": INK},
        "text": {"color": INK},
    }  # fmt: skip
    return specification
