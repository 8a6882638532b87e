"""Whose measurement it is, where Assay did not measure: programs, files, what was taken of each and what was not."""

from __future__ import annotations

from assay.document.elements import Block, Cell, Column, Paragraph, Section, Table
from assay.document.text import DASH, id_range, joined, shorten
from assay.record.shapes.manifest import ImportedResults
from assay.record.source import records

NAMES_LETTERS = 400


def imported_section(told: ImportedResults) -> Section:
    """Build the section of the manifest's `imported`."""
    files = records(told.get("files"))
    columns = [
        Column("File", weight=2.4), Column("Measured by", weight=1.2), Column("Points", weight=1.2),
        Column("Figures taken", weight=3.2),
    ]  # fmt: skip
    rows = [
        [
            Cell(shorten(str(one.get("path")), 60)),
            Cell(f"{one.get('program') or DASH} {one.get('version') or ''}".strip()),
            Cell(id_range(one.get("point_ids") or []) or DASH),
            Cell(shorten("; ".join(str(name) for name in one.get("taken") or {}), NAMES_LETTERS)),
        ]
        for one in files
    ]
    programs = joined(str(name) for name in told.get("programs") or []) or "Another program"
    text = (
        f"{programs} measured all points of this run, and Assay read the results. Figures are those of the files, in"
        " Assay's units. A figure that a file does not hold is left out; none is estimated."
    )
    blocks: list[Block] = [
        Paragraph(text),
        Table("imported-files", "Files that the points come from.", columns, rows),
    ]
    reasons: dict[str, list[str]] = {}
    for one in files:
        for name, reason in (one.get("ignored") or {}).items():
            reasons.setdefault(str(reason), []).append(str(name))
    blocks += [
        Paragraph(f"Left out, {reason}: {shorten('; '.join(dict.fromkeys(names)), NAMES_LETTERS)}.")
        for reason, names in reasons.items()
    ]
    unread = [f"{name} ({example!r})" for one in files for name, example in (one.get("not_understood") or {}).items()]
    if unread:
        blocks.append(Paragraph(f"Not understood: {shorten('; '.join(unread), NAMES_LETTERS)}."))
    return Section("imported", "Whose measurement it is", blocks)
