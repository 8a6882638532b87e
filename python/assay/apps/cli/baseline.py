"""`assay baseline`: what later runs are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App
from assay.apps.cli.taken import answer
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.units import count_of

if TYPE_CHECKING:
    from assay.insight.history.baseline import KeptBaseline

EXAMPLES = """
Examples:

`assay baseline set assay-results/RUN`

`assay baseline set --median last:5 /srv/results --name main`

`assay compare RUN --to baseline --fail-on "iops<-5%" --fail-on "read.p99>+10%"`
"""
FOLDER = Path("assay-baselines")
Baselines = Annotated[Path, typer.Option("--baselines", metavar="DIR", help="Folder in which baselines are kept.")]

app = App(
    name="baseline",
    help="Keep runs as a baseline, which later runs are compared with.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)


@app.command(name="set", epilog=EXAMPLES)
def set_(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Runs, or with --median folders of runs.", show_default=False),
    ] = None,
    median: Annotated[
        str | None, typer.Option("--median", help="Keep the newest comparable runs of folders: last:5.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of the baseline.")] = "baseline",
    baselines: Baselines = FOLDER,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Keep copies of runs as a baseline; their medians are what a run is compared with."""
    del debug
    from assay.insight.history.baseline import newest_comparable, parse_last, runs_given, set_baseline

    if median is not None:
        chosen = newest_comparable(runs or [Path("assay-results")], parse_last(median))
    elif runs:
        chosen = runs_given(runs)
    else:
        raise UsageError("baseline set: give a run, or --median last:5")
    kept = set_baseline(chosen, name, baselines)
    runs_kept = f"{count_of(len(kept.runs), 'run')} of {printable(kept.runs[-1].title)}"
    _tell(
        [kept],
        f"Baseline {name} is kept in {printable(kept.folder)}: {runs_kept}.",
        json=json,
        steps=[f'assay compare RUN --to {name} --fail-on "iops<-5%"'],
    )


@app.command(name="show", epilog=EXAMPLES)
def show(baselines: Baselines = FOLDER, json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show the baselines that are kept."""
    del debug
    from assay.insight.history.baseline import kept_baselines

    found = kept_baselines(baselines)
    if not found:
        raise UsageError(f"{printable(baselines)}: there is no such baseline; keep one with assay baseline set RUN")
    _tell(found, f"{count_of(len(found), 'baseline')} in {printable(baselines)}.", json=json, steps=[])


def _tell(kept: Sequence[KeptBaseline], sentence: str, *, json: bool, steps: Sequence[str]) -> None:
    from assay.document.elements import Paragraph
    from assay.document.terminal import table
    from assay.insight.history.telling import BASELINE_COLUMNS, baseline_document, baseline_rows

    answer(
        lambda: baseline_document(kept),
        lambda: [Paragraph(sentence, strong=True), table("Baselines", BASELINE_COLUMNS, baseline_rows(kept))],
        json=json,
        steps=steps,
    )
