"""`assay compare`: before and after, or A and B."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.base.paths import printable
from assay.base.units import parse_percent

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.insight.differences import RunComparison
    from assay.insight.sides import SideName

EXAMPLES = """
Examples:

`assay compare assay-results/BEFORE assay-results/AFTER`

`assay compare before/* after/*`

`assay compare before/* after/* --paired`

`assay compare A B C --html comparison.html --smallest 3`
"""


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...",
            help="Run folders, or folders of repeats, the reference first; runs in one folder are repeats: before/*"
            " after/*.",
        ),
    ],
    smallest: Annotated[str, typer.Option(help="Smallest difference worth noticing, in percent.")] = "5",
    paired: Annotated[
        bool, typer.Option("--paired", help="The runs were made in turns, A B A B: compare them in pairs, by order.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the tables and figures.")] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Match the points of runs and say what changed, with confidence intervals."""
    del debug
    if html is not None:
        from assay.report.files import refuse_foreign

        refuse_foreign(html, what=f"--html {printable(html)}")
    from assay.insight.sides import read_sides

    read = read_sides(runs)
    comparison = read.compared(smallest_share=parse_percent(smallest, what="--smallest"), paired=paired)
    if html is not None:
        from assay.report.comparison import write_comparison

        write_comparison(comparison, read.names, html)
        print(f"comparison: {html}", file=sys.stderr)
    if json:
        document = {"schema_version": 1, "verb": "compare", **comparison.to_dict()}
        print(json_module.dumps(document, allow_nan=False, indent=1))
        return
    show_comparison(comparison, read.names)


def show_comparison(comparison: RunComparison, runs: Sequence[SideName]) -> None:
    """Print what changed."""
    from assay.document.terminal import show

    show(comparison_blocks(comparison, runs))


def comparison_blocks(comparison: RunComparison, runs: Sequence[SideName]) -> list[Block]:
    """What changed, as elements of a document."""
    from assay.document.elements import Bullets, Paragraph
    from assay.document.terminal import table
    from assay.insight.differences import COLUMNS, run_letter

    return [
        Paragraph(comparison.sentence, strong=True),
        *([Paragraph(comparison.basis)] if comparison.basis else []),
        Bullets([f"{run_letter(index)} = {run.title}, {run.folders}" for index, run in enumerate(runs)]),
        table("Points", COLUMNS, comparison.rows()),
        table("Most within limits, knee and edge", COLUMNS, comparison.answer_rows()),
        *(Paragraph(f"not compared: {line}") for line in comparison.unmatched),
    ]
