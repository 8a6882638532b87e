"""The report as a document: sections of blocks, the same for HTML and PDF, with plain text only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol

Tone = Literal["plain", "good", "bad", "warn", "quiet"]

Place = Literal["answer", "detail", "appendix"]
"""Where a section stands: before how it was measured, after it, or after the details of all workloads."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text, how it reads, the point it comes from, and the point it introduces (`anchor`)."""

    text: str
    tone: Tone = "plain"
    point_id: str | None = None
    rowspan: int = 1
    anchor: str | None = None


@dataclass(frozen=True)
class Column:
    """Heading of a column; numbers stand right, words left; `weight` shares the width of the paper."""

    title: str
    number: bool = False
    weight: float = 1.0


@dataclass(frozen=True)
class Table:
    """A table with its caption; `rows` leave out the cells that a `rowspan` above them covers."""

    name: str
    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    dense: bool = False
    kind: Literal["table"] = "table"

    def placed(self) -> list[list[tuple[Cell, int]]]:
        """Cells of each row with the number of the column each stands in: `rowspan`s push cells to the right."""
        covered = [0] * len(self.columns)  # rows each column is still covered by a cell above
        placed = []
        for row in self.rows:
            free = [column for column, rows in enumerate(covered) if rows == 0]
            covered = [max(rows - 1, 0) for rows in covered]
            for cell, column in zip(row, free, strict=True):
                covered[column] = cell.rowspan - 1
            placed.append(list(zip(row, free, strict=True)))
        return placed

    def known(self, absent: str) -> Table:
        """The table without columns of which no row knows anything, where `absent` stands for what is not known."""
        kept = [place for place, _ in enumerate(self.columns) if any(row[place].text != absent for row in self.rows)]
        rows = [[row[place] for place in kept] for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in kept], rows=rows)


Specification = dict[str, object]
"""A chart in Vega-Lite: JSON of any depth, which the libraries that draw it read."""


class Chart(Protocol):
    """Whatever gives a specification in Vega-Lite: a chart of altair, or one that was changed."""

    def to_dict(self) -> Specification:
        """The specification."""
        ...


@dataclass(frozen=True)
class FigureElement:
    """A figure: its chart, its caption, and the text that stands in for it.

    Attributes
    ----------
    point_id
        The point that all of it shows; None where it shows several, or none.
    """

    name: str
    caption: str
    alternative: str
    chart: Chart
    point_id: str | None = None
    kind: Literal["figure"] = "figure"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `strong` for the headline sentences, with a tone where they are good or bad news."""

    text: str
    strong: bool = False
    tone: Tone = "plain"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True)
class FactList:
    """Names and their values, as a list of definitions."""

    name: str
    items: list[tuple[str, str]]
    kind: Literal["facts"] = "facts"


@dataclass(frozen=True)
class Notice:
    """One thing the reader must know before believing the figures."""

    text: str
    tone: Tone = "warn"


@dataclass(frozen=True)
class Notices:
    """The notices of the run, worst first."""

    items: list[Notice]
    kind: Literal["notices"] = "notices"


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True)
class Bullets:
    """A list of sentences that stand beside each other."""

    items: list[str]
    kind: Literal["bullets"] = "bullets"


Block = Table | FigureElement | Paragraph | FactList | Notices | Heading | Bullets


@dataclass(frozen=True)
class Section:
    """A numbered section.

    Attributes
    ----------
    wide
        Whether it asks for landscape pages on paper.
    lettered
        Whether it is an appendix.
    listed
        Whether the contents of a paper list its headings.
    """

    name: str
    title: str
    blocks: list[Block]
    wide: bool = False
    place: Place = "detail"
    lettered: bool = False
    listed: bool = False


@dataclass(frozen=True)
class Document:
    """The whole report.

    Attributes
    ----------
    is_paper
        Whether it is a paper: with a title page, contents, numbered figures and tables, and links to what they name.
    subtitle, authors
        Of a paper.
    """

    title: str
    facts_line: str
    sections: list[Section]
    footer: str
    version: str = ""
    run_id: str = ""
    started: str = ""
    is_paper: bool = False
    subtitle: str = ""
    authors: str = ""

    @property
    def figures(self) -> list[FigureElement]:
        """Every figure, in order."""
        return [block for section in self.sections for block in section.blocks if isinstance(block, FigureElement)]

    @property
    def anchors(self) -> set[str]:
        """Ids of the points that the table of points introduces: others cannot be linked to."""
        tables = [block for section in self.sections for block in section.blocks if isinstance(block, Table)]
        return {cell.anchor for table in tables for row in table.rows for cell in row if cell.anchor}
