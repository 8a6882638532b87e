"""Elements of documents on standard output: the one place that draws tables as text and knows how wide they may be."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from assay.base.audience import Audience
from assay.base.paths import plain
from assay.document.elements import (
    Block,
    Bullets,
    Cell,
    Column,
    FactList,
    FigureElement,
    Heading,
    Notice,
    Notices,
    Paragraph,
    Table,
    Tone,
)
from assay.document.first_use import FirstUses
from assay.document.text import DASH, shorten

PIPED_WIDTH = 100
"""Columns of a table that goes to a file or a pipe unless COLUMNS says it; sentences stay on one line there."""

NOTES_SHOWN = 4
"""Notes of an answer that are not left for its details."""

NAME_MAX = 32
"""A first column of single words, none longer than that, has names that a reader copies: it is not broken."""

LETTERS_MAX = 1000
"""Letters of a text of which a terminal shows all; a longer one loses its middle."""

STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "bold red", "warn": "yellow", "quiet": "dim"}


@dataclass(frozen=True)
class Details:
    """Blocks that are printed where details are asked for; elsewhere a line says what they are."""

    what: str
    blocks: Sequence[Block]


def table(caption: str, columns: Sequence[str | Column], rows: Iterable[Sequence[str | Cell]]) -> Table:
    """Table of texts: a heading that is a text stands over words."""
    return Table(
        name="",
        caption=caption,
        columns=[one if isinstance(one, Column) else Column(one) for one in columns],
        rows=[[one if isinstance(one, Cell) else Cell(one) for one in row] for row in rows],
    )


def notes(texts: Iterable[object]) -> Notices:
    """Notices of texts."""
    return Notices([Notice(str(text)) for text in texts])


def notes_and_details(texts: Sequence[str], *, report: bool = True) -> list[Block | Details]:
    """The first notes, and the others as details.

    Parameters
    ----------
    texts
        Notes, the gravest first.
    report
        Whether a report has all of them.
    """
    shown, others = texts[:NOTES_SHOWN], texts[NOTES_SHOWN:]
    if len(others) < 2:
        return [notes(texts)]
    where = " and the report have them" if report else " prints them"
    return [notes(shown), Details(f"{len(others)} more notes: --details{where}", [notes(others)])]


def show(blocks: Iterable[Block | Details], *, details: bool = False) -> None:
    """Print blocks on standard output; a terminal gets lines of its width, and colours, a program Markdown.

    Parameters
    ----------
    blocks
        The blocks; of details a line.
    details
        Whether to print details, too.
    """
    if Audience.is_program:
        if text := markdown(unfolded(blocks, details=details)):
            print(f"{text}\n", flush=True)
        return
    on_terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if on_terminal else _piped_width())
    for block in unfolded(blocks, details=details):
        if isinstance(block, Table) and _fits(block, console.width):
            console.print(_grid(block))
            continue
        for text, style in _records(block) if isinstance(block, Table) else _lines(block):
            for line in _wrapped(text, console.width) if on_terminal else [text]:
                console.print(Text(line, style=style), soft_wrap=True)


def markdown(blocks: Iterable[Block | Details]) -> str:
    """Blocks with their details as Markdown for programs."""
    whole = unfolded(blocks, details=True)
    return "\n\n".join(filter(None, ("\n".join(_markdown(block)) for block in whole)))


def _piped_width() -> int:
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) else PIPED_WIDTH


def unfolded(blocks: Iterable[Block | Details], *, details: bool) -> Iterator[Block]:
    """Blocks, with those of details or a line for them, and words explained where they are used first."""
    return FirstUses().explained(_unfolded(blocks, details=details))


def _unfolded(blocks: Iterable[Block | Details], *, details: bool) -> Iterator[Block]:
    for block in blocks:
        if not isinstance(block, Details):
            yield block
        elif details:
            yield from block.blocks
        else:
            yield Paragraph(block.what, tone="quiet")


def _fits(block: Table, width: int) -> bool:
    """Whether every word of a table fits at this width."""
    longest = [_longest_word(column.title) for column in block.columns]
    for row in block.placed():
        for cell, place in row:
            longest[place] = max(longest[place], len(cell.text) if block.dense else _longest_word(cell.text))
    return bool(block.rows) and sum(longest) + 2 * len(longest) <= width


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _records(block: Table) -> Iterator[tuple[str, str]]:
    """A table that is too wide, a row a sentence: what it is of, then each figure that is known with its name."""
    if block.caption and block.rows:
        yield _safe(block.caption), "bold"
    for row in block.placed():
        (first, _), *others = row
        figures = [(block.columns[place].title, cell) for cell, place in others if cell.text not in ("", DASH)]
        told = ", ".join(f"{name} {cell.text}".strip() for name, cell in figures)
        yield _safe(f"{first.text}: {told}" if told else first.text), STYLES[first.tone]


def _grid(block: Table) -> Grid:
    title = Text(_safe(block.caption), style="bold") if block.caption else None
    grid = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    names = [cell.text for row in block.placed() for cell, place in row if place == 0]
    copied = all(len(name) <= NAME_MAX and " " not in name for name in names)
    for place, column in enumerate(block.columns):
        side: Literal["left", "right"] = "right" if column.number else "left"
        whole = block.dense or (copied and place == 0)
        grid.add_column(_safe(column.title), justify=side, overflow="fold", no_wrap=whole)
    for row in block.placed():
        cells = {place: Text(_safe(cell.text), style=STYLES[cell.tone]) for cell, place in row}
        grid.add_row(*(cells.get(place, "") for place in range(len(block.columns))))
    return grid


def _lines(block: Paragraph | Bullets | Notices | FactList | FigureElement | Heading) -> Iterator[tuple[str, str]]:
    """Texts of a block, each with its style."""
    match block:
        case Paragraph():
            yield _safe(block.text), f"bold {STYLES[block.tone]}".strip() if block.strong else STYLES[block.tone]
        case Bullets():
            yield from ((_safe(f"  {text}"), "") for text in block.items)
        case Notices():
            yield from ((_safe(f"note: {one.text}"), "") for one in block.items)
        case FactList():
            yield from ((_safe(f"{name}: {value}"), "") for name, value in block.items)
        case _:
            yield _safe(block.alternative if isinstance(block, FigureElement) else block.text), "bold"


def _markdown(block: Block) -> Iterator[str]:
    """Lines of a block in Markdown, as short as it can be; a program's own words need no more escapes than these."""
    if isinstance(block, Table):
        if block.rows:
            yield from ([f"**{_safe(block.caption)}**", ""] if block.caption else [])
            yield f"| {' | '.join(_in_cell(column.title) for column in block.columns)} |"
            yield f"|{'|'.join('--:' if column.number else '---' for column in block.columns)}|"
            for row in block.placed():
                cells = {place: _in_cell(cell.text) for cell, place in row}
                yield f"| {' | '.join(cells.get(place, '') for place in range(len(block.columns)))} |"
        return
    for text, _ in _lines(block):
        mark = "## " if isinstance(block, Heading) else "- " if isinstance(block, Bullets | Notices | FactList) else ""
        is_strong = isinstance(block, Paragraph) and block.strong
        yield f"**{text}**" if is_strong else f"{mark}{text.strip()}"


def _in_cell(text: str) -> str:
    return _safe(text).replace("|", r"\|")


def _safe(text: str) -> str:
    """Text that neither begins a line nor moves the cursor: names and messages are others' words."""
    return plain(shorten(text.replace("\N{NO-BREAK SPACE}", " "), LETTERS_MAX))


def _wrapped(text: str, width: int) -> list[str]:
    """Text in lines that break at words, so that paths stay whole; lines after the first stand further right."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(text) or [""]
