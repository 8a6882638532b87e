"""What the sections of a paper share: how one is asked for, names of blocks, and where a sentence is from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assay.document.elements import Block, Cell, FactList, FigureElement, Heading, Section, Table
from assay.document.text import id_range

RANGES_MAX = 4
"""Points that a sentence names; of more it names the run alone."""


@dataclass
class Draft:
    """A section before its text is made.

    Attributes
    ----------
    template
        Name of its template.
    fields
        What the template may name.
    shown
        Tables and figures that it may show.
    """

    name: str
    title: str
    template: str
    fields: Mapping[str, object] = field(default_factory=dict)
    shown: Mapping[str, Sequence[Block]] = field(default_factory=dict)
    wide: bool = False
    lettered: bool = False
    listed: bool = False


def slug(text: str) -> str:
    """A name of a section from any text.

    Examples
    --------
    >>> slug("RAID policy <b>"), slug("数")
    ('raid-policy-b', 'section')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "section"


def own_names(blocks: Iterable[Block], number: str, taken: set[str]) -> list[Block]:
    """Blocks whose names no other block of the document has, and whose captions name the run that they are from.

    Parameters
    ----------
    number
        Of the run; empty for blocks that are from several.
    taken
        Names of the document so far; those of the blocks are added.
    """
    made: list[Block] = []
    for block in blocks:
        if isinstance(block, Table) and not block.rows:
            continue
        if isinstance(block, Table | FigureElement | FactList):
            name = first = (f"{number.lower()}-" if number else "") + slug(block.name)
            count = 1
            while name in taken:
                count += 1
                name = f"{first}-{count}"
            taken.add(name)
            block = replace(block, name=name)
        if isinstance(block, Table):
            block = replace(block, rows=[[_introduced_once(cell, taken) for cell in row] for row in block.rows])
        if isinstance(block, Table | FigureElement) and number:
            block = replace(block, caption=_of_run(block.caption, number))
        made.append(block)
    return made


def _introduced_once(cell: Cell, taken: set[str]) -> Cell:
    """A cell that introduces a point, which a link can lead to, only where no other does."""
    if cell.anchor is None:
        return cell
    name = f"point {cell.anchor}"
    if name in taken:
        return replace(cell, anchor=None, point_id=cell.anchor)
    taken.add(name)
    return cell


def _of_run(caption: str, number: str) -> str:
    if re.search(rf"\b{number}\b", caption):
        return caption
    return f"{caption[:-1]} [{number}]." if caption.endswith(".") else f"{caption} [{number}]"


def flat(sections: Iterable[Section]) -> list[Block]:
    """Sections of a report as parts of one section: each under a heading, its own headings left as they are."""
    return [block for section in sections for block in (Heading(section.title), *section.blocks)]


def traced(sentence: str, ids: Iterable[str], number: str) -> str:
    """A sentence with the points that it is from, or the run where they are many.

    Examples
    --------
    >>> traced("It holds 5.", ["R1.p0001"], "R1"), traced("It holds 5.", [], "R2")
    ('It holds 5 [R1.p0001].', 'It holds 5 [R2].')
    >>> traced("It holds 5 [R1.p0001].", [], "R1")
    'It holds 5 [R1.p0001].'
    """
    if re.search(r"\[R\d", sentence):
        return sentence
    told = id_range(ids)
    if not told or told.count(",") >= RANGES_MAX:
        told = number
    ends = sentence.endswith((".", "!", "?"))
    return f"{sentence[:-1]} [{told}]{sentence[-1]}" if ends else f"{sentence} [{told}]"
