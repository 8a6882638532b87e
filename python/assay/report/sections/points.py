"""Every point in one table, and the words it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from assay.document.elements import Block, Cell, Column, FactList, Heading, Paragraph, Section, Table
from assay.document.point_cells import errors_cell, limits_cell, steady_cell
from assay.document.remarks import Remarks
from assay.document.text import DASH, iops_text, latency_text, load_label, shorten, throughput_texts
from assay.record.shapes.point import Point
from assay.record.source import RunFacts
from assay.report.facts import label_of


def points_section(facts: RunFacts, remarks: Sequence[Remarks]) -> Section:
    """Build the tables of all points and the glossary."""
    own = [found.points for found in remarks if found.points is not None]
    shown = {cell.anchor for table in own for row in table.rows for cell in row if cell.anchor}
    others = [point for point in facts.points if str(point.get("id") or DASH) not in shown]
    blocks: list[Block] = [*([_point_table(others)] if others else []), *own]
    if not blocks:
        blocks.append(Paragraph("No point has been measured."))
    words = dict.fromkeys(word for found in remarks for word in found.words)
    blocks += [Heading("Words"), FactList("glossary", list(words))]
    return Section("points", "Every point", blocks, wide=True)


def _point_table(points: Sequence[Point]) -> Table:
    columns = [
        Column("Point", weight=0.85), Column("Workload", weight=2.5), Column("Load", weight=1.25),
        Column("Side", weight=0.65),
        *(Column(name, number=True, weight=0.9) for name in
          ("IOPS", "MiB/s", "MB/s", "Mean", "p50", "p99", "p99.9", "Max")),
        Column("Steady", weight=1.6), Column("Errors", number=True, weight=0.75), Column("Limits", weight=1.9),
    ]  # fmt: skip
    rows = [row for point in points for row in _rows(point)]
    caption = "Points in the order they ended, reads and writes apart."
    return Table("points-table", caption, columns, rows, dense=True)


def _rows(point: Point) -> list[list[Cell]]:
    measured_sides: list[Literal["read", "write", "total"]] = [side for side in ("read", "write") if point.get(side)]
    sides = measured_sides or ["total" if point.get("total") else "read"]
    span = len(sides)
    point_id = str(point.get("id") or DASH)
    workload = shorten(label_of(point["workload"]), 60)
    first = [
        Cell(point_id, rowspan=span, anchor=point_id),
        Cell(workload, rowspan=span),
        Cell(load_label(point.get("load") or {}), rowspan=span),
    ]
    last = [steady_cell(point, span), errors_cell(point, span), limits_cell(point, span)]
    rows = []
    for place, side in enumerate(sides):
        measured = point.get(side)
        cells = [Cell(("both" if side == "total" else side) if measured else DASH), Cell(iops_text(measured))]
        cells += [Cell(text) for text in throughput_texts(measured["bytes_per_s"] if measured else None)]
        cells += [Cell(latency_text(measured, name)) for name in ("mean", "p50", "p99", "p99_9", "max")]
        rows.append([*first, *cells, *last] if place == 0 else cells)
    return rows
