"""Elements of documents on standard output: the one place that draws tables as text and knows how wide they may be."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
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
from assay.document.text import shorten

PIPED_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, where sentences stay on one line."""

LETTERS_MAX = 1000
"""Letters of a text of which a terminal shows all; a longer one loses its middle."""

STYLES: dict[Tone, str] = {"plain": "", "good": "green", "bad": "bold red", "warn": "yellow", "quiet": "dim"}


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


def show(blocks: Iterable[Block]) -> None:
    """Print blocks on standard output; a terminal gets lines of its width, and colours, a program Markdown."""
    if Audience.is_program:
        if text := markdown(blocks):
            print(f"{text}\n", flush=True)
        return
    on_terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if on_terminal else PIPED_WIDTH)
    for block in blocks:
        if isinstance(block, Table):
            if block.rows:
                console.print(_grid(block))
            continue
        for text, style in _lines(block):
            for line in _wrapped(text, console.width) if on_terminal else [text]:
                console.print(Text(line, style=style), soft_wrap=True)


def markdown(blocks: Iterable[Block]) -> str:
    """Blocks as Markdown for programs."""
    return "\n\n".join(filter(None, ("\n".join(_markdown(block)) for block in blocks)))


def _grid(block: Table) -> Grid:
    title = Text(_safe(block.caption), style="bold") if block.caption else None
    grid = Grid(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for column in block.columns:
        side: Literal["left", "right"] = "right" if column.number else "left"
        grid.add_column(_safe(column.title), justify=side, overflow="fold", no_wrap=block.dense)
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
    """Text in lines that break at words; those after the first stand further right."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
