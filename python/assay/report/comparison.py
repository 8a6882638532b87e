"""The page of a comparison: sentence, figure, tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.document.elements import (
    Cell,
    Column,
    Document,
    FactList,
    FigureElement,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
)
from assay.document.first_use import explained
from assay.document.text import joined
from assay.insight.differences import COLUMNS, RunComparison, run_letter
from assay.insight.sides import SideName
from assay.report.figures_compare import compare_figure
from assay.report.files import replace_file
from assay.report.html import html_report
from assay.report.render import render_figures

NUMBERS = frozenset({"A", "B", "difference"})


def write_comparison(comparison: RunComparison, runs: Sequence[SideName], path: Path) -> None:
    """Write a self-contained page.

    Raises
    ------
    OpenFailed, OutOfSpace
        The page cannot be written.
    """
    document = comparison_document(comparison, runs)
    replace_file(path, html_report(document, render_figures(document)).encode())


def comparison_document(comparison: RunComparison, runs: Sequence[SideName]) -> Document:
    """The document of a comparison."""
    names = [(run_letter(index), run.title) for index, run in enumerate(runs)]
    summary = Section(
        name="summary",
        title="What changed",
        blocks=[Paragraph(comparison.sentence, strong=True), FactList("runs", names)],
    )
    if comparison.basis:
        summary.blocks.insert(1, Paragraph(comparison.basis))
    if comparison.unmatched:
        notices = [Notice(f"not compared: {line}") for line in comparison.unmatched]
        summary.blocks.append(Notices(notices))
    sections = [summary]
    if any(row.relative is not None for row in comparison.compared):
        figure = FigureElement(
            name="differences",
            caption="Relative differences with their 95 % intervals; filled marks changed, the grey band is too small"
            " to matter.",
            alternative=comparison.sentence,
            chart=compare_figure(comparison),
        )
        sections.append(Section(name="figure", title="Differences", blocks=[figure]))
    answers = _table("answers", "Most within limits, knee and edge", comparison.answer_rows())
    points = _table("points", "Points that both runs have", comparison.rows())
    blocks = [table for table in (answers, points) if table.rows]
    if blocks:
        sections.append(Section(name="tables", title="Every figure", blocks=[*blocks], wide=True))
    folders = " · ".join(f"{letter}: {run.folders}" for (letter, _), run in zip(names, runs, strict=True))
    title = f"Comparison: {joined(run.title for run in runs)}"
    return Document(title=title, facts_line=folders, sections=explained(sections), footer="Assay")


def _table(name: str, caption: str, rows: Sequence[Sequence[str]]) -> Table:
    columns = [Column(title, number=title in NUMBERS) for title in COLUMNS]
    return Table(name, caption, columns, [[Cell(text) for text in row] for row in rows], dense=True)
