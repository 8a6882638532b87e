"""Labels within a drawing, each in a place of its own: upon no other text and upon no point."""

from __future__ import annotations

import math
import re

from assay.document.palette import LIMIT, QUIET
from assay.report.drawing import Drawing, DrawnText, Pixel, Rectangle, read_drawing

STEP_PX, ASIDE_PX, UP_PX = 6, 66, 48
"""How finely a free place is looked for, and how far from the first one."""
ALONG_PX = 198
"""How far the label of a limit goes along its line."""
LINE_COST_PX = 14
"""A label that lies on a line could as well lie this much farther away."""
LEADER_PX = 14
"""A label that was moved farther has a thin line to what it names."""


def with_placed_labels(svg: str) -> str:
    """Move labels that lie on another text, on a point or beyond the drawing to the nearest free place.

    A label that finds none is left out; what the figure shows is in its caption and its tables.
    """
    drawing = read_drawing(svg)
    taken = [text.extent for text in drawing.texts if text.role != "mark"]
    changes: list[tuple[int, str]] = []
    raw = svg.encode()
    for label in drawing.texts:
        if label.role != "mark":
            continue
        found = (0.0, 0.0) if label.is_turned else _free_place(label, taken, drawing)
        if found is not None:
            taken.append(label.extent.moved(*found))
        if found != (0.0, 0.0):
            changes.append((label.offset, _changed(raw[label.offset :].decode(), label, found, drawing)))
    for offset, element in reversed(changes):
        end = raw.index(b"</text>", offset) + len(b"</text>")
        raw = raw[:offset] + element.encode() + raw[end:]
    return raw.decode()


def is_free(extent: Rectangle, taken: list[Rectangle], drawing: Drawing) -> bool:
    """Whether a text may lie here."""
    return (
        extent.left >= 0
        and extent.top >= 0
        and extent.right <= drawing.width
        and extent.bottom <= drawing.height
        and not any(extent.meets(other, 0.5) for other in taken)
        and not any(extent.meets(symbol, 1.5) for symbol in drawing.symbols)
    )


def _free_place(label: DrawnText, taken: list[Rectangle], drawing: Drawing) -> tuple[float, float] | None:
    """How far a label moves, right and down; None where no place near by is free."""
    if is_free(label.extent, taken, drawing):
        return 0.0, 0.0
    aside = ALONG_PX if label.colour == LIMIT else ASIDE_PX
    best: tuple[float, tuple[float, float]] | None = None
    for x in range(-aside // STEP_PX * STEP_PX, aside + 1, STEP_PX):
        for y in (0, 17) if label.colour == LIMIT else range(-UP_PX, UP_PX + 1, STEP_PX):
            far = math.hypot(x, y)
            extent = label.extent.moved(x, y)
            if (best is None or far < best[0]) and is_free(extent, taken, drawing):
                cost = far + LINE_COST_PX * any(extent.crossed(*line) for line in drawing.lines)
                if best is None or cost < best[0]:
                    best = cost, (float(x), float(y))
    return best[1] if best else None


def _changed(rest: str, label: DrawnText, found: tuple[float, float] | None, drawing: Drawing) -> str:
    """The element of a label at its new place, with a line to its point where it is far from it."""
    if found is None:
        return ""
    element = rest[: rest.index("</text>") + len("</text>")]
    place = re.search(r"translate\(([-\d.e]+),([-\d.e]+)\)", element)
    if place is None:
        return element
    x, y = float(place[1]), float(place[2])
    moved = f"translate({x + found[0]:g},{y + found[1]:g})"
    element = element.replace(place[0], moved, 1)
    if math.hypot(*found) <= LEADER_PX or label.colour == LIMIT or not drawing.symbols:
        return element
    # Both ends lie in the group of the label.
    middle = _middle(label.extent)
    symbol = min(drawing.symbols, key=lambda one: math.dist(_middle(one), middle))
    reach = (symbol.right - symbol.left) / 2
    extent = label.extent.moved(*found)
    origin = _middle(symbol)
    end = Pixel(min(max(origin.x, extent.left), extent.right), min(max(origin.y, extent.top - 1), extent.bottom + 1))
    length = math.dist(origin, end)
    if length <= reach + 2:
        return element
    start = Pixel(*(at + (to - at) * reach / length for at, to in zip(origin, end, strict=True)))
    anchor = Pixel(x - _anchor_x(label, element), y - (label.extent.bottom - 0.2 * _size(element)))
    line = (
        f'<line x1="{start.x + anchor.x:.1f}" y1="{start.y + anchor.y:.1f}" x2="{end.x + anchor.x:.1f}"'
        f' y2="{end.y + anchor.y:.1f}" stroke="{QUIET}" stroke-width="0.6"/>'
    )
    return line + element


def _middle(extent: Rectangle) -> Pixel:
    return Pixel((extent.left + extent.right) / 2, (extent.top + extent.bottom) / 2)


def _size(element: str) -> float:
    found = re.search(r'font-size="([\d.]+)px"', element)
    return float(found[1]) if found else 11.0


def _anchor_x(label: DrawnText, element: str) -> float:
    """The x of the label's text anchor: its middle, right or left edge."""
    if 'text-anchor="middle"' in element:
        return _middle(label.extent).x
    return label.extent.right if 'text-anchor="end"' in element else label.extent.left
