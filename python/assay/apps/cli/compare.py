"""`assay compare`: before and after, or A and B."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.taken import answer
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import parse_percent

if TYPE_CHECKING:
    from assay.document.elements import Block, Table
    from assay.document.terminal import Details
    from assay.insight.differences import RunComparison
    from assay.insight.sides import SideName

EXAMPLES = """
Examples:

`assay compare assay-results/BEFORE assay-results/AFTER`

`assay compare before/* after/*`

`assay compare before/* after/* --paired`

`assay compare A B C --html comparison.html --smallest 3`

`assay compare RUN --to baseline --fail-on "iops<-5%" --fail-on "read.p99>+10%"`
"""

To = Annotated[
    str | None, typer.Option("--to", help="Compare with this baseline instead: its name, or the path of its folder.")
]
FailOn = Annotated[
    list[str] | None,
    typer.Option("--fail-on", help="With --to: fail where a figure changed for sure: iops<-5%, read.p99>+10%."),
]
Form = Annotated[str, typer.Option("--format", help="With --fail-on: text, json, junit, sarif or markdown.")]
Outputs = Annotated[
    list[Path] | None,
    typer.Option("-o", "--output", help="With --fail-on: also write .xml (JUnit), .sarif, .md or .json; repeat it."),
]
Baselines = Annotated[Path, typer.Option("--baselines", metavar="DIR", help="Folder in which baselines are kept.")]

ROWS_SHOWN = 20
"""Rows of points that are printed without --details."""


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders, or folders of repeats, the reference first; runs in one folder are repeats: before/*"
            " after/*.",
        ),
    ],
    smallest: Annotated[str, typer.Option(help="Smallest difference worth noticing, in percent.")] = "5",
    paired: Annotated[
        bool, typer.Option("--paired", help="The runs were made in turns, A B A B: compare them in pairs, by order.")
    ] = False,
    any_state: Annotated[
        bool, typer.Option("--any-state", help="Compare targets in different states, such as purged and steady.")
    ] = False,
    to: To = None,
    fail_on: FailOn = None,
    form: Form = "text",
    output: Outputs = None,
    baselines: Baselines = Path("assay-baselines"),
    html: Annotated[Path | None, typer.Option(help="Also write a page with the tables and figures.")] = None,
    json: opt.Json = False,
    details: opt.Details = False,
    debug: opt.Debug = False,
) -> None:
    """Match the points of runs and say what changed, with confidence intervals."""
    del debug
    if html is not None:
        from assay.report.files import refuse_foreign

        refuse_foreign(html, what=f"--html {printable(html)}")
    _refuse_half_a_gate(to, fail_on, form, output)
    if to is not None:
        from assay.apps.cli.gate import sides_to

        runs = sides_to(runs, to, baselines)
    from assay.insight.sides import read_sides

    read = read_sides(runs)
    if fail_on:
        from assay.apps.cli.gate import tell_gate

        tell_gate(read, fail_on, form="json" if json else form, outputs=output or [], any_state=any_state)
    comparison = read.compared(
        smallest_share=parse_percent(smallest, what="--smallest"), paired=paired, any_state=any_state
    )
    if html is not None:
        from assay.report.comparison import write_comparison

        write_comparison(comparison, read.names, html)
        print(f"comparison: {html}", file=sys.stderr)
    answer(
        lambda: {"schema_version": 1, "verb": "compare", **comparison.to_dict()},
        lambda: comparison_blocks(comparison, read.names),
        json=json,
        details=details,
    )


def _refuse_half_a_gate(to: str | None, fail_on: list[str] | None, form: str, output: list[Path] | None) -> None:
    """Refuse options of a gate that lack the others."""
    if fail_on and to is None:
        raise UsageError("--fail-on holds a run against a baseline; give --to BASELINE too")
    if (form != "text" or output) and not fail_on:
        raise UsageError("--format and --output are of a gate; give --fail-on too")


def comparison_blocks(comparison: RunComparison, runs: Sequence[SideName]) -> list[Block | Details]:
    """What changed: the sentence, what the searches found, and the points as details where they are many."""
    from assay.document.elements import Bullets, Paragraph
    from assay.document.terminal import Details, table
    from assay.insight.differences import COLUMNS, run_letter

    def narrow(caption: str, rows: Sequence[Sequence[str]]) -> Table:
        # A column less leaves the words of a verdict room on a terminal of a hundred columns.
        columns = (f"{COLUMNS[0]}, {COLUMNS[1]}", *COLUMNS[2:])
        return table(caption, columns, [(f"{workload}, {load}", *texts) for workload, load, *texts in rows])

    rows, answers = comparison.rows(), comparison.answer_rows()
    points = narrow("Points", rows)
    return [
        Paragraph(comparison.sentence, strong=True),
        *([Paragraph(comparison.basis)] if comparison.basis else []),
        Bullets([f"{run_letter(index)} = {run.title}, {run.folders}" for index, run in enumerate(runs)]),
        Details(f"{len(rows)} rows of points: --details prints them", [points]) if len(rows) > ROWS_SHOWN else points,
        *([narrow("Most within limits, knee and edge", answers)] if answers else []),
        *(Paragraph(f"not compared: {line}") for line in comparison.unmatched),
    ]
