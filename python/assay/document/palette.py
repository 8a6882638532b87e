"""Colours, marker shapes and the one theme of all figures.

The colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), without black (it would vanish on a dark
page) and without yellow (on white). Every series has a shape or a dash of its own as well, for printing in grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from assay.document.drawing import alt
from assay.document.elements import Chart, Specification

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 2])
MAX_SERIES = len(COLOURS)
"""At most six series a figure: more cannot be told apart."""

INK, QUIET, GRID, LIMIT, BAND = "#222222", "#666666", "#DDDDDD", "#8B1A1A", "#999999"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

COUNT = ",~f"
"""Format of an axis of counts and rates: no two labels of small ones are the same."""
TICKS_LEAST = 3
"""An axis with fewer labels does not tell how its values grow."""

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


def log_scale(values: Iterable[float], most: int = 9) -> tuple[alt.Scale, list[float]]:
    """Logarithmic scale around positive values, and its ticks: as many round values as fit, three at least.

    Parameters
    ----------
    values : iterable of float
        What the scale reaches around.
    most : int
        Labels that the axis has room for.

    Examples
    --------
    >>> log_scale([0.3, 40.0])[1], log_scale([0.3, 40.0], 5)[1], log_scale([17.0, 21.0])[1]
    ([0.5, 1, 2, 5, 10, 20, 50], [0.3, 1, 3, 10, 30], [14, 16, 18, 20, 22, 24, 26])
    >>> log_scale([1e-15, 3e-3], 5)[1]
    [1e-15, 1e-12, 1e-09, 1e-06, 0.001]
    """
    values = list(values)
    low, high = min(values) * 0.8, max(values) * 1.3
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    inside: list[float] = []
    for steps in (range(1, 10), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [float(f"{step}e{decade}") for decade in range(first, last + 1) for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= most:
            break
    inside = inside[:: -(-len(inside) // most)] if inside else []
    if len(inside) < TICKS_LEAST:  # the values lie so near each other that round steps between them are even
        step = next(
            step
            for decade in range(first - 2, last + 1)
            for step in (float(f"{digit}e{decade}") for digit in (1, 2, 5))
            if (high - low) / step <= most
        )
        inside = [float(f"{number * step:.6g}") for number in range(math.ceil(low / step), int(high / step) + 1)]
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
