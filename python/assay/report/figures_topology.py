"""The picture of a topology: boxes in columns, lines between them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict

from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.palette import COLOURS, INK, QUIET
from assay.document.text import shorten
from assay.report.paper.topology import Box, Topology

WIDTH_PX = 640
BOX_PX, PORT_PX, GAP_PX, HEAD_PX, LINE_PX = 30, 17, 12, 26, 12.5
LETTER_PX = 5.6
BOLD_SHARE, SMALL_SHARE = 0.82, 1.18
"""Letters of a name and of what stands under it that have the room of one usual letter."""
PAGE = "#FEFEFE"
"""Boxes cover the lines behind them; the style puts the colour of the page in its place."""


class PlacedBox(TypedDict):
    """A box, in pixels; its `kind` is `box` or `port`."""

    x: float
    x2: float
    y: float
    y2: float
    kind: str


class PlacedText(TypedDict):
    """A line of text around its middle, in pixels; its `kind` is `head`, `name` or `line`."""

    x: float
    y: float
    text: str
    kind: str


class JoiningLine(TypedDict):
    """A line between two boxes, in pixels."""

    x: float
    y: float
    x2: float
    y2: float


def topology_figure(topology: Topology) -> alt.TopLevelMixin:
    """Draw a topology; widths follow from the number of columns, heights from what boxes say."""
    count = len(topology.columns)
    step = WIDTH_PX / count
    inner = step * (0.78 if count > 3 else 0.7)
    heights = [[_height(box) for box in boxes] for _, boxes in topology.columns]
    tall = max(sum(column) + GAP_PX * max(len(column) - 1, 0) for column in heights)
    boxes: list[PlacedBox] = []
    texts: list[PlacedText] = []
    places: dict[tuple[int, int], tuple[float, float, float]] = {}
    for number, (title, own) in enumerate(topology.columns):
        left = number * step + (step - inner) / 2
        letters = int(inner / LETTER_PX)
        for at, line in enumerate(_wrapped(title, int(step / 5.2))):
            texts.append({"x": left + inner / 2, "y": 7 + at * 11, "text": line, "kind": "head"})
        column = heights[number]
        free = tall - sum(column)
        gap = min(free / max(len(column), 1), 3 * GAP_PX) if len(column) > 1 else 0
        top = HEAD_PX + (tall - sum(column) - gap * (len(column) - 1)) / 2
        for place, (box, height) in enumerate(zip(own, column, strict=True)):
            boxes.append(
                {"x": left, "x2": left + inner, "y": top, "y2": top + height, "kind": "port" if box.is_port else "box"}
            )
            texts += _texts(box, left + inner / 2, top, height, letters)
            places[number, place] = (left, left + inner, top + height / 2)
            top += height + gap
    lines: list[JoiningLine] = [
        {"x": places[one][1], "y": places[one][2], "x2": places[other][0], "y2": places[other][2]}
        for one, other in topology.lines
    ]
    return _drawn(boxes, texts, lines, HEAD_PX + tall + 6)


def _wrapped(text: str, letters: int) -> list[str]:
    lines = textwrap.wrap(text, max(letters, 8))
    return lines[:2] if len(lines) <= 2 else [lines[0], shorten(" ".join(lines[1:]), letters)]


def _height(box: Box) -> float:
    return PORT_PX if box.is_port else BOX_PX + LINE_PX * max(len(box.lines) - 1, 0) + (4 if box.lines else -6)


def _texts(box: Box, middle: float, top: float, height: float, letters: int) -> list[PlacedText]:
    if box.is_port:
        return [{"x": middle, "y": top + height / 2, "text": shorten(box.name, letters), "kind": "line"}]
    rows = [box.name, *box.lines]
    first = top + height / 2 - LINE_PX * (len(rows) - 1) / 2
    return [
        {
            "x": middle,
            "y": first + LINE_PX * at,
            "text": shorten(row, int(letters * (BOLD_SHARE if at == 0 else SMALL_SHARE))),
            "kind": "name" if at == 0 else "line",
        }
        for at, row in enumerate(rows)
    ]


def _drawn(
    boxes: Sequence[PlacedBox], texts: Sequence[PlacedText], lines: Sequence[JoiningLine], height: float
) -> alt.TopLevelMixin:
    x = alt.X("x:Q", axis=None, title=None, scale=alt.Scale(domain=[0, WIDTH_PX], nice=False))
    y = alt.Y("y:Q", axis=None, title=None, scale=alt.Scale(domain=[0, height], reverse=True, nice=False))

    def base(rows: Iterable[PlacedBox | PlacedText | JoiningLine]) -> alt.Chart:
        return alt.Chart(ChartRows(values=list(rows))).encode(x=x, y=y)

    layers = [base(lines).mark_rule(color=QUIET, strokeWidth=0.9).encode(x2="x2:Q", y2="y2:Q")]
    for kind, hue in (("box", INK), ("port", COLOURS[0])):
        own = base(box for box in boxes if box["kind"] == kind)
        layers.append(
            own.mark_rect(fill=PAGE, stroke=hue, strokeWidth=1.1, cornerRadius=3).encode(x2="x2:Q", y2="y2:Q")
        )
    for kind, size, hue in (("head", 10, QUIET), ("name", 11, INK), ("line", 9, INK)):
        own = base(text for text in texts if text["kind"] == kind)
        weight: Literal["bold", "normal"] = "bold" if kind == "name" else "normal"
        layers.append(own.mark_text(fontSize=size, fontWeight=weight, color=hue).encode(text="text:N"))
    chart: alt.TopLevelMixin = alt.layer(*layers).properties(width=WIDTH_PX, height=height)
    return chart
