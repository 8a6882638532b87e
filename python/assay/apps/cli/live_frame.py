"""How a run stands, as lines of a terminal; and the terminal they are drawn on, again and again in place."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from assay.base.paths import plain
from assay.base.progress import Gauge, Moment, NearestLimit, Status, gauge_text
from assay.base.units import format_duration

REFRESH_S = 0.5
"""A frame is drawn no more often, so that a slow line carries some two kilobytes a second at most."""

BARS, BARS_ASCII = "▁▂▃▄▅▆▇█", "_.:-=+*#"

LABEL = 22
"""Width of the label before the values."""
NEAR_SHARE = 0.8
"""From this share of its limit on a value is near it."""
VALUE = 11
WIDTH_MIN = 40

Style = str
"""One of `plain`, `quiet`, `good`, `warn`, `bad`, `strong`."""

SGR = {"quiet": "2", "good": "32", "warn": "33", "bad": "1;31", "strong": "1"}
"""Colours of the terminal itself, which its user has chosen to be readable."""


class Piece(NamedTuple):
    """Text of one style."""

    text: str
    style: Style = "plain"


Line = Sequence[Piece]


def frame(status: Status, width: int, *, bars: str = BARS) -> list[Line]:
    """Lines that show how a run stands, none wider than `width`.

    Parameters
    ----------
    bars
        Letters of sparklines, from low to high.
    """
    moment = status.moment
    rows = [
        _head(moment),
        *(_gauge_line(gauge, status.histories.get(gauge.name, ()), width, bars) for gauge in moment.gauges),
        *_nearest_line(status.nearest),
        *_host_line(status),
        *_curve_line(status, width, bars),
        *_end_line(status),
    ]
    return [_cut(row, width) for row in rows]


def _head(moment: Moment) -> Line:
    left = [f"{moment.done_share:.0%} done"] if moment.done_share is not None else []
    if moment.left_s is not None:
        left.append(f"{'at most ' if moment.is_most else ''}{format_duration(moment.left_s)} left")
    pieces = [Piece(f"[{moment.part}] ", "quiet")] if moment.part else []
    pieces.append(Piece(", ".join([moment.phase, *left]), "strong"))
    return [*pieces, Piece(f"  {moment.what}")] if moment.what else pieces


def _gauge_line(gauge: Gauge, history: Sequence[float | None], width: int, bars: str) -> Line:
    value = gauge_text(gauge.value, gauge.unit)
    room = width - LABEL - VALUE - 2
    return [Piece(f"{gauge.title[: LABEL - 1]:{LABEL}}"), Piece(f"{value:>{VALUE}}", "strong"),
            Piece("  " + sparkline(history[-room:] if room > 0 else (), bars), "quiet")]  # fmt: skip


def sparkline(values: Sequence[float | None], bars: str = BARS) -> str:
    """Values as bars from zero to the largest; a space where there is none.

    Examples
    --------
    >>> sparkline([0, 1, None, 2], "_-#")
    '_- #'
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    most = max(known, default=0.0)
    last = len(bars) - 1

    def bar(value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return " "
        return bars[round(max(value, 0.0) / most * last) if most > 0 else 0]

    return "".join(map(bar, values))


def _nearest_line(nearest: NearestLimit | None) -> list[Line]:
    if nearest is None:
        return []
    from assay.record.judgement import WORDS
    from assay.record.limits import show_value

    is_near = nearest.met is None or nearest.share > NEAR_SHARE
    style = "bad" if nearest.met is False else "warn" if is_near else "good"
    words = WORDS[nearest.met]
    where = f"{nearest.scope} " if nearest.scope else ""
    text = f"{nearest.limit}: {where}{show_value(nearest.value, nearest.unit)}, {nearest.share:.0%} of it, {words}"
    return [[Piece(f"{'nearest limit':{LABEL}}"), Piece(text, style), Piece(f"  ({nearest.where})", "quiet")]]


def _host_line(status: Status) -> list[Line]:
    words = [] if status.host_cpu_share is None else [f"CPU {status.host_cpu_share:.0%}"]
    words += [f"{name} {share:.0%} busy" for name, share in status.devices]
    return [[Piece(f"{'host':{LABEL}}"), Piece(", ".join(words))]] if words else []


def _curve_line(status: Status, width: int, bars: str) -> list[Line]:
    """The curve so far, by load: a bar for each load, what it gives at most, and where limits are missed."""
    loads: dict[float, list[Any]] = {}
    for one in status.curve:
        loads.setdefault(one.load, []).append(one)
    if len(loads) < 2:
        return []
    ordered = sorted(loads)
    means = [_mean([one.value for one in loads[load]]) for load in ordered]
    places = [place for place in range(len(ordered)) if means[place] is not None]
    if not places:
        return []
    best = max(places, key=lambda place: means[place] or 0.0)
    missed = [load for load in ordered if any(one.met is False for one in loads[load])]
    text = f"{gauge_text(means[best], status.figure[1])} {status.figure[0]} at {ordered[best]:g} {status.axis}"
    text += f", limits missed from {min(missed):g}" if missed else ""
    room = max(width - LABEL - len(text) - 2, 0)
    return [[Piece(f"{'curve so far':{LABEL}}"), Piece(sparkline(means[-room:] if room else (), bars), "quiet"),
             Piece(f"  {text}")]]  # fmt: skip


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _end_line(status: Status) -> list[Line]:
    count, word = status.moment.errors
    errors = count + status.error_count
    pieces = [Piece(f"{word:{LABEL}}"), Piece(f"{errors:,}", "bad" if errors else "plain")]
    pieces.append(Piece(f"  points done {status.done:,}", "quiet"))
    if status.moment.waiting:
        pieces.append(Piece(f"  {status.moment.waiting}", "warn"))
    return [pieces]


def _cut(line: Line, width: int) -> Line:
    kept: list[Piece] = []
    room = width
    for piece in line:
        # Names are others' words: none of their letters may move the cursor.
        text = plain(piece.text)
        if len(text) > room:
            kept.append(Piece(text[:room], piece.style))
            break
        kept.append(Piece(text, piece.style))
        room -= len(text)
    return kept


class Screen:
    """Lines at the end of a terminal that are drawn again in place: only changed lines are sent.

    Parameters
    ----------
    stream
        The terminal.
    colour
        Whether to colour.
    size
        Gives its columns and lines, asked each time: a window may be resized.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool = True,
        size: Callable[[], tuple[int, int]] | None = None,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._colour, self._clock_s = stream, colour, clock_s
        self._size = size or (lambda: shutil.get_terminal_size((80, 24)))
        self._lines: list[str] = []
        self._lengths: list[int] = []
        self._width = 0
        self._drawn_s = -math.inf
        can_draw = "utf" in (getattr(stream, "encoding", None) or "").lower()
        self.bars = BARS if can_draw else BARS_ASCII

    @property
    def is_due(self) -> bool:
        """Whether a frame may be drawn again."""
        return self._clock_s() - self._drawn_s >= REFRESH_S

    @property
    def width(self) -> int:
        """Letters of a line; the last column stays free, where terminals differ."""
        return max(self._size()[0] - 1, 1)

    def draw(self, lines: Sequence[Line]) -> None:
        """Draw these lines in place of the last ones."""
        self._drawn_s = self._clock_s()
        columns, rows = self._size()
        shown = [self._text(line) for line in lines[: max(rows - 1, 1)]]
        lengths = [sum(len(piece.text) for piece in line) for line in lines[: len(shown)]]
        if columns != self._width or len(shown) != len(self._lines):
            # A terminal that became narrower has wrapped what was drawn: all of it goes.
            self._stream.write(self._erased(columns) + "".join(f"{line}\n" for line in shown))
        else:
            moved = f"\x1b[{len(shown)}A" if shown else ""
            parts = [
                "\n" if line == before else f"\r{line}\x1b[K\n" for line, before in zip(shown, self._lines, strict=True)
            ]
            self._stream.write(moved + "".join(parts))
        self._stream.flush()
        self._lines, self._lengths, self._width = shown, lengths, columns

    def above(self, text: str) -> None:
        """Print a line that stays, above the frame."""
        drawn, self._lines = self._lines, self._lines
        self._stream.write(self._erased(self._size()[0]) + text + "\n" + "".join(f"{line}\n" for line in drawn))
        self._stream.flush()

    def close(self) -> None:
        """Remove the frame."""
        if self._lines:
            self._stream.write(self._erased(self._size()[0]))
            self._stream.flush()
        self._lines, self._lengths = [], []

    def _erased(self, columns: int) -> str:
        """Go to the first line that was drawn and clear from there on."""
        rows = sum(max(-(-length // max(columns, 1)), 1) for length in self._lengths) if self._lines else 0
        return f"\x1b[{rows}A\r\x1b[J" if rows else ""

    def _text(self, line: Line) -> str:
        if not self._colour:
            return "".join(piece.text for piece in line)
        return "".join(
            f"\x1b[{SGR[piece.style]}m{piece.text}\x1b[0m" if piece.style in SGR and piece.text else piece.text
            for piece in line
        )


def screen_of(stream: TextIO, environment: Mapping[str, str]) -> Screen | None:
    """The terminal to draw on; None where the stream is none, or one that cannot be drawn on."""
    if not stream.isatty() or environment.get("TERM", "dumb") == "dumb":
        return None
    return Screen(stream, colour=not environment.get("NO_COLOR"))
