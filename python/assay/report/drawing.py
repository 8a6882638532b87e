"""Where the texts and marks of a drawing lie: the geometry of the SVG that Vega makes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple
from xml.parsers import expat

_WIDTHS = (
    "278278355556556889667191333333389584278333278278556556556556556556556556556556278278584584584556"
    "1015667667722722667611778722278500667556833722778667778722667611722667944667667611278278278469556"
    "333556556500556556278556556222222500222833556556556556333500278556500722500500500334260334584"
)
"""Widths of the letters from space to tilde in thousandths of the size: Helvetica's, and so Liberation Sans's."""
WIDTHS = dict(zip(map(chr, range(32, 127)), map(int, re.findall(r"1015|\d{3}", _WIDTHS)), strict=True))
OTHER_WIDTH = 600
"""Width of any other letter: a wide one."""
ASCENT, DESCENT, BOLD = 0.72, 0.2, 1.07
"""Height above and below the line in sizes, and width of bold letters over plain ones."""

_TRANSFORM = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_STEP = re.compile(r"([MLhvHVZ])([^MLhvHVZAC]*)")


class Pixel(NamedTuple):
    """A place in pixels."""

    x: float
    y: float


class Rectangle(NamedTuple):
    """An upright rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Rectangle, slack: float = 0.0) -> bool:
        """Whether two rectangles overlap by more than `slack` in both directions."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > slack
            and min(self.bottom, other.bottom) - max(self.top, other.top) > slack
        )

    def moved(self, x: float, y: float) -> Rectangle:
        """The rectangle, this much further right and down."""
        return Rectangle(self.left + x, self.top + y, self.right + x, self.bottom + y)

    def crossed(self, start: Pixel, end: Pixel) -> bool:
        """Whether a straight line passes through."""
        first, last = 0.0, 1.0
        for low, high, begin, length in (
            (self.left, self.right, start.x, end.x - start.x),
            (self.top, self.bottom, start.y, end.y - start.y),
        ):
            if length == 0:
                if not low < begin < high:
                    return False
                continue
            near, far = sorted(((low - begin) / length, (high - begin) / length))
            first, last = max(first, near), min(last, far)
        return first < last


@dataclass(frozen=True)
class DrawnText:
    """A text: its part in the drawing (`mark`, `axis-label`, `legend-label`, ...), and where its element begins."""

    text: str
    role: str
    group: int
    extent: Rectangle
    corners: Sequence[Pixel]
    colour: str
    is_turned: bool
    offset: int


@dataclass
class Drawing:
    """Texts and marks of a drawing."""

    width: float = 0.0
    height: float = 0.0
    texts: list[DrawnText] = field(default_factory=list)
    symbols: list[Rectangle] = field(default_factory=list)
    lines: list[tuple[Pixel, Pixel]] = field(default_factory=list)
    shapes: list[Rectangle] = field(default_factory=list)


Matrix = tuple[float, float, float, float, float, float]


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels of a text in the font of the figures.

    Examples
    --------
    >>> width_of("10", 10)
    11.12
    """
    return sum(WIDTHS.get(letter, OTHER_WIDTH) for letter in text) * size / 1000 * (BOLD if bold else 1)


def read_drawing(svg: str) -> Drawing:
    """Find where the texts and marks of a drawing lie."""
    reader = _Reader()
    reader.parser.Parse(svg.encode(), True)
    return reader.drawing


class _Reader:
    """Follows groups and their transforms."""

    def __init__(self) -> None:
        self.drawing = Drawing()
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._letters
        self.stack: list[tuple[Matrix, str, int]] = [((1, 0, 0, 1, 0, 0), "", 0)]
        self.groups = 0
        self.open: tuple[dict[str, str], int] | None = None
        self.text = ""

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        matrix, role, group = self.stack[-1]
        matrix = _times(matrix, _matrix(attributes.get("transform", "")))
        if tag == "g" and " role-" in attributes.get("class", ""):
            role = attributes["class"]
            self.groups += 1
            group = self.groups
        self.stack.append((matrix, role, group))
        if tag == "svg":
            self.drawing.width, self.drawing.height = (float(attributes[side]) for side in ("width", "height"))
        elif tag == "text":
            self.open, self.text = (attributes, self.parser.CurrentByteIndex), ""
        elif tag in ("path", "line") and "role-mark" in role and "mark-group" not in role:
            self._mark(role, attributes, matrix)

    def _letters(self, letters: str) -> None:
        self.text += letters

    def _end(self, tag: str) -> None:
        matrix, role, group = self.stack.pop()
        if tag != "text" or self.open is None:
            return
        attributes, offset = self.open
        self.open = None
        if not self.text.strip() or attributes.get("opacity") == "0":
            return
        size = float(attributes.get("font-size", "11px").removesuffix("px"))
        width = width_of(self.text, size, bold=attributes.get("font-weight") == "bold")
        left = {"middle": -width / 2, "end": -width}.get(attributes.get("text-anchor", "start"), 0.0)
        corners = [_at(matrix, x, y) for x in (left, left + width) for y in (-ASCENT * size, DESCENT * size)]
        part = re.sub(r".*\brole-([\w-]+).*", r"\1", role)
        self.drawing.texts.append(
            DrawnText(
                self.text, part, group, _around(corners), corners, attributes.get("fill", ""), matrix[1] != 0, offset
            )
        )

    def _mark(self, role: str, attributes: dict[str, str], matrix: Matrix) -> None:
        if "d" not in attributes:
            end = _at(matrix, float(attributes.get("x2", 0)), float(attributes.get("y2", 0)))
            self.drawing.lines.append((_at(matrix, 0, 0), end))
            return
        if "mark-symbol" in role:
            reach = max((abs(float(number)) for number in _NUMBER.findall(attributes["d"])), default=0.0)
            x, y = _at(matrix, 0, 0)
            self.drawing.symbols.append(Rectangle(x - reach, y - reach, x + reach, y + reach))
            return
        places = [_at(matrix, *place) for place in _outline(attributes["d"])]
        if "mark-line" in role:
            self.drawing.lines += pairwise(places)
        elif places:
            self.drawing.shapes.append(_around(places))


def _outline(path: str) -> list[Pixel]:
    """Corners of a path of straight pieces."""
    places: list[Pixel] = []
    x = y = 0.0
    for step, told in _STEP.findall(path):
        numbers = [float(number) for number in _NUMBER.findall(told)]
        for at in range(0, len(numbers), 1 if step in "hvHV" else 2):
            match step:
                case "h":
                    x += numbers[at]
                case "v":
                    y += numbers[at]
                case "H":
                    x = numbers[at]
                case "V":
                    y = numbers[at]
                case _ if at + 1 < len(numbers):
                    x, y = numbers[at], numbers[at + 1]
            places.append(Pixel(x, y))
    return places


def _around(places: list[Pixel]) -> Rectangle:
    xs, ys = [place.x for place in places], [place.y for place in places]
    return Rectangle(min(xs), min(ys), max(xs), max(ys))


def _matrix(transform: str) -> Matrix:
    made: Matrix = (1, 0, 0, 1, 0, 0)
    for kind, told in _TRANSFORM.findall(transform):
        numbers = [float(number) for number in _NUMBER.findall(told)]
        if kind == "translate":
            made = _times(made, (1, 0, 0, 1, numbers[0], numbers[1] if len(numbers) > 1 else 0.0))
        elif kind == "rotate":
            cos, sin = math.cos(math.radians(numbers[0])), math.sin(math.radians(numbers[0]))
            made = _times(made, (cos, sin, -sin, cos, 0, 0))
        else:
            made = _times(made, (numbers[0], 0, 0, numbers[-1], 0, 0))
    return made


def _times(one: Matrix, other: Matrix) -> Matrix:
    a, b, c, d, e, f = one
    g, h, i, j, k, m = other
    return (a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * m + e, b * k + d * m + f)


def _at(matrix: Matrix, x: float, y: float) -> Pixel:
    a, b, c, d, e, f = matrix
    return Pixel(a * x + c * y + e, b * x + d * y + f)
