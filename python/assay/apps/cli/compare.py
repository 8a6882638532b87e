"""`assay compare`: before and after, or A and B."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import parse_percent

if TYPE_CHECKING:
    from assay.insight.differences import RunComparison
    from assay.record.run_folder import RunFolder

EXAMPLES = """
Examples:

`assay compare assay-results/BEFORE assay-results/AFTER`

`assay compare before/* after/*`

`assay compare A B C --html comparison.html --smallest 3`
"""


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...",
            help="Run folders, the reference first; those in one folder are repeats: before/* after/*.",
        ),
    ],
    smallest: Annotated[str, typer.Option(help="Smallest difference worth noticing, in percent.")] = "5",
    html: Annotated[Path | None, typer.Option(help="Also write a page with the tables and figures.")] = None,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Match the points of runs and say what changed, with confidence intervals."""
    del debug
    if len(runs) < 2:
        raise UsageError("compare: give at least two run folders")
    if html is not None:
        from assay.report.files import refuse_foreign

        refuse_foreign(html, what=f"--html {printable(html)}")
    from assay.insight.compare import compare_runs
    from assay.insight.differences import ComparedRun, ComparedSide
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder

    folders = {run: RunFolder.open(run) for run in dict.fromkeys(runs)}
    sides = sides_of(runs)
    compared = [
        ComparedSide(
            tuple(ComparedRun(folders[run].manifest, current_points(folders[run].whole_points())) for run in side)
        )
        for side in sides
    ]
    names = [", ".join(_named(run, folders[run]) for run in side) for side in sides]
    comparison = compare_runs(compared, smallest_share=parse_percent(smallest, what="--smallest"))
    if html is not None:
        from assay.report.comparison import write_comparison

        write_comparison(comparison, names, html)
        print(f"comparison: {html}", file=sys.stderr)
    if json:
        document = {"schema_version": 1, "verb": "compare", **comparison.to_dict()}
        print(json_module.dumps(document, allow_nan=False, indent=1))
        return
    _print_tables(comparison, names)


def sides_of(runs: Sequence[Path]) -> list[list[Path]]:
    """Runs that lie in one folder are repeats of one side, if others lie in another; else each is a side of its own.

    Examples
    --------
    >>> [len(side) for side in sides_of([Path("before/1"), Path("before/2"), Path("after/3"), Path("after/4")])]
    [2, 2]
    >>> [len(side) for side in sides_of([Path("results/1"), Path("results/2"), Path("results/3")])]
    [1, 1, 1]
    """
    sides: dict[Path, list[Path]] = {}
    for run in runs:
        sides.setdefault(run.absolute().parent, []).append(run)
    return list(sides.values()) if len(sides) > 1 else [[run] for run in runs]


def _named(run: Path, folder: RunFolder) -> str:
    """A run by its path, and who measured it where Assay did not."""
    programs = (folder.manifest.get("imported") or {}).get("programs") or []
    return printable(run) + (f" (measured by {', '.join(map(str, programs))})" if programs else "")


def _print_tables(comparison: RunComparison, runs: list[str]) -> None:
    from assay.document.elements import Bullets, Paragraph
    from assay.document.terminal import show, table
    from assay.insight.differences import COLUMNS, run_letter

    show(
        [
            Paragraph(comparison.sentence, strong=True),
            Bullets([f"{run_letter(index)} = {run}" for index, run in enumerate(runs)]),
            table("Points", COLUMNS, comparison.rows()),
            table("Most within limits, knee and edge", COLUMNS, comparison.answer_rows()),
            *(Paragraph(f"not compared: {line}") for line in comparison.unmatched),
        ]
    )
