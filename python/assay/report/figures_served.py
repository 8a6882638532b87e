"""A load and the served array beneath it on one time axis: states shaded, events marked and numbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.palette import BAND, COLOURS, INK, LIMIT
from assay.document.series import PanelRow
from assay.document.series_charts import WIDTH, PlacedRow, TimeAxis, lines, panels_over_time


class FaultSpan(TypedDict):
    """A state of an array, seconds since the start; `kind` is a key of `SHADES`."""

    start_s: float
    end_s: float
    kind: str


class FaultMark(TypedDict):
    """An event, seconds since the start, by its number in the table."""

    t_s: float
    number: int


class TimeLabel(TypedDict):
    """A label on the time axis, seconds since the start."""

    t_s: float
    label: str


SHADES = {
    "warm-up": (BAND, 0.22, "grey"),
    "degraded": (COLOURS[1], 0.22, "yellow"),
    "rebuilding": (COLOURS[0], 0.16, "blue"),
    "rebalancing": (COLOURS[2], 0.16, "green"),
    "no power": (LIMIT, 0.3, "red"),
    "at baseline": (COLOURS[1], 0.22, "yellow"),
    "throttled": (COLOURS[3], 0.22, "pink"),
}
"""Colour, opacity and the colour's name of the states of an array; a healthy one is not shaded."""

LETTER_PX = 6
GAP_PX = 4
"""Between labels of events."""
PANEL_MAX_PX = 120


def fault_timeline(
    rows: Sequence[PanelRow], spans: Sequence[FaultSpan], marks: Sequence[FaultMark], *, end_s: float
) -> alt.TopLevelMixin | None:
    """Panels over one time axis.

    Parameters
    ----------
    rows : sequence of rows
        As of `series_charts.timeline`.
    spans : sequence of rows
        States of the array.
    marks : sequence of rows
        Events in order of time. Each gets a line; events whose labels would touch share one.
    end_s : float
        End of the time axis, seconds.
    """

    def layers(own: list[PlacedRow], panel: str, axis: TimeAxis) -> list[alt.Chart]:
        shading = _shading(spans, axis.x, axis.divisor, end_s, is_labelled=axis.is_first)
        marked = _marks(marks, axis.x, axis.divisor, end_s, is_labelled=axis.is_first) if marks else []
        return [*shading, *lines(own, panel, axis.x), *marked]

    return panels_over_time(rows, layers, end_s=end_s, height_max_px=PANEL_MAX_PX)


def _shading(
    spans: Sequence[FaultSpan], x: alt.X, divisor: float, end_s: float, *, is_labelled: bool
) -> list[alt.Chart]:
    layers = []
    for kind, (hue, opacity, _) in SHADES.items():
        data = [
            {"t": span["start_s"] / divisor, "end": span["end_s"] / divisor} for span in spans if span["kind"] == kind
        ]
        if data:
            base = alt.Chart(ChartRows(values=data)).encode(x=x)
            layers.append(base.mark_rect(color=hue, opacity=opacity).encode(x2="end:Q"))
    named = [{"t": one["t_s"] / divisor, "label": one["label"]} for one in span_labels(spans, end_s)]
    if is_labelled and named:
        text = alt.Chart(ChartRows(values=named)).encode(x=x)
        labels = text.mark_text(align="left", baseline="bottom", fontSize=10, color=INK, dy=-14)
        layers.append(labels.encode(y=alt.value(0), text="label:N"))
    return layers


def span_labels(spans: Sequence[FaultSpan], end_s: float) -> list[TimeLabel]:
    """Labels of shaded spans, `t_s` and `label`, on an axis that is so long.

    A label that would lie on another begins after it. It is left out where its span has no room for it.

    Examples
    --------
    >>> spans = [{"start_s": 0, "end_s": 20, "kind": "warm-up"}, {"start_s": 0, "end_s": 60, "kind": "degraded"}]
    >>> labels = span_labels([*spans, {"start_s": 60, "end_s": 63, "kind": "rebuilding"}], 100)
    >>> [(round(one["t_s"], 1), one["label"]) for one in labels]
    [(0, 'warm-up'), (9.2, 'degraded')]
    """
    labels: list[TimeLabel] = []
    free_s = 0.0
    for span in sorted(spans, key=lambda span: (span["start_s"], span["end_s"])):
        start_s, length_s = max(span["start_s"], free_s), LETTER_PX * len(span["kind"]) / WIDTH * end_s
        if start_s + length_s <= span["end_s"]:
            labels.append({"t_s": start_s, "label": span["kind"]})
            free_s = start_s + length_s + GAP_PX / WIDTH * end_s
    return labels


def shades_text(kinds: Sequence[str]) -> str:
    """What the shades of a figure mean.

    Examples
    --------
    >>> shades_text(["rebuilding", "warm-up", "rebuilding"])
    'warm-up (grey), rebuilding (blue)'
    """
    return ", ".join(f"{kind} ({name})" for kind, (_, _, name) in SHADES.items() if kind in kinds)


def mark_labels(marks: Sequence[FaultMark], end_s: float) -> list[TimeLabel]:
    """Labels of events, `t_s` and `label`, on an axis that is so long. Those that would touch become one, at the first.

    Examples
    --------
    >>> mark_labels([{"t_s": 10, "number": 1}, {"t_s": 11, "number": 2}, {"t_s": 60, "number": 3}], 100)
    [{'t_s': 10, 'label': '1-2'}, {'t_s': 60, 'label': '3'}]
    """
    groups: list[tuple[int, int, float]] = []
    for mark in marks:
        groups.append((mark["number"], mark["number"], mark["t_s"]))
        while len(groups) > 1 and _touch(groups[-2], groups[-1], end_s):
            (first, _, at_s), (_, last, _) = groups[-2:]
            groups[-2:] = [(first, last, at_s)]
    return [{"t_s": at_s, "label": _label(first, last)} for first, last, at_s in groups]


def _touch(one: tuple[int, int, float], next_one: tuple[int, int, float], end_s: float) -> bool:
    letters = len(_label(*one[:2])) + len(_label(*next_one[:2]))
    return (next_one[2] - one[2]) / end_s * WIDTH < letters / 2 * LETTER_PX + GAP_PX


def _label(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _marks(marks: Sequence[FaultMark], x: alt.X, divisor: float, end_s: float, *, is_labelled: bool) -> list[alt.Chart]:
    rules = alt.Chart(ChartRows(values=[{"t": mark["t_s"] / divisor} for mark in marks])).encode(x=x)
    layers = [rules.mark_rule(color=INK, strokeWidth=1)]
    if is_labelled:
        labels = [{"t": one["t_s"] / divisor, "label": one["label"]} for one in mark_labels(marks, end_s)]
        text = (
            alt.Chart(ChartRows(values=labels))
            .encode(x=x)
            .mark_text(align="center", baseline="bottom", fontSize=10, fontWeight="bold", color=INK, dy=-3)
        )
        layers.append(text.encode(y=alt.value(0), text="label:N"))
    return layers
