"""`assay paper`: make a published study again as far as this machine can, and write the paper of it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App, usual
from assay.apps.cli.console import print_json, say
from assay.base.errors import AssayError, ExitCode, Interrupted, UsageError
from assay.base.extras import CHARTS, PDF, are_installed, require
from assay.base.units import format_duration
from assay.insight.calibration.published_papers import (
    Experiment,
    LeftOut,
    PublishedPaper,
    paper_names,
    published_paper,
)

if TYPE_CHECKING:
    from assay.record.load import Run
    from assay.report.paper.reproduction import Reproduction
    from assay.report.paper.write import Written

EXAMPLES = """
Examples:

`assay paper list`

`assay paper reproduce fas`

`assay paper reproduce iscsi --only outstanding,paths -o white-paper`

`assay paper reproduce dvx --at /data/assay`
"""

app = App(
    name="paper",
    help="Make published studies again, and write the paper of each.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="PAPER", help="A published study, as `assay paper list` names it.")]
At = Annotated[
    Path | None,
    typer.Option(
        "--at",
        help="Folder for databases and files; without it models alone are asked.",
        show_default=False,
    ),
]
Only = Annotated[
    str | None,
    typer.Option("--only", help="These experiments alone: raid-policy,fill.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Folder of the paper and its runs (assay-paper-PAPER).", show_default=False),
]


@app.command(name="list", epilog="Examples:\n\n`assay paper list --json`")
def list_papers(json: opt.Json = False, debug: opt.Debug = False) -> None:
    """List the published studies that can be made again."""
    del debug
    papers = [published_paper(name) for name in paper_names()]
    if json:
        listed = [paper.model_dump(mode="json", exclude_defaults=True) for paper in papers]
        print(print_json({"schema_version": 1, "papers": listed}))
        return
    from assay.document.terminal import show, table

    rows = [(paper.name, f"{paper.title} ({paper.year})", paper.storage) for paper in papers]
    show([table("", ("paper", "title", "storage"), rows)])


@app.command(name="show", epilog="Examples:\n\n`assay paper show iscsi`")
def show_paper(name: Name, debug: opt.Debug = False) -> None:
    """Show what a published study said, with the command that makes each experiment again."""
    del debug
    from assay.document.elements import Bullets, Heading, Paragraph
    from assay.document.terminal import Details, show

    paper = published_paper(name)
    blocks: list[Heading | Paragraph | Bullets | Details] = [
        Paragraph(f"{paper.title} ({paper.year}): {paper.storage}.")
    ]
    for one in paper.experiment:
        blocks += [
            Heading(f"{one.title} ({one.name})"),
            Paragraph(f"Published: {paper.sentence_of(one)}"),
            Paragraph(one.shown),
        ]
        blocks += [Paragraph(f"Differs: {one.differs}.")] if one.differs else []
    if paper.left_out:
        blocks += [Heading("Not made again"), Bullets([f"{one.what}. {one.why}" for one in paper.left_out])]
    show(blocks)


@app.command(name="reproduce", epilog=EXAMPLES)
@usual("--at", "--only", "-o", "--pdf", "--dry-run")
def reproduce(
    name: Name,
    at: At = None,
    only: Only = None,
    output: Output = None,
    pdf: Annotated[
        bool | None, typer.Option("--pdf/--no-pdf", help="Write paper.pdf (if assay-storage[pdf] is installed).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the commands, and run none.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Make a published study again, and write the paper; called again, it goes on where it was interrupted."""
    del debug
    paper = published_paper(name)
    chosen = _chosen(paper, only)
    todo = [one for one in chosen if at is not None or one.on == "model"]
    folder = output or Path(f"assay-paper-{paper.name}")
    if dry_run:
        for one in todo:
            print(shlex.join(["assay", *_line(one, at, folder)]))
        return
    require("assay paper reproduce", *CHARTS)
    if pdf:
        require("--pdf", *PDF)
    if not todo:
        raise UsageError(f"paper {paper.name}: {chosen[0].name} needs a folder for its database: --at DIR")
    made: dict[str, Run] = {}
    failed: dict[str, AssayError] = {}
    for number, one in enumerate(todo, 1):
        say(f"{number}/{len(todo)} {one.name}: assay {' '.join(one.words(at))}")
        began = time.monotonic()
        try:
            made[one.name] = _run(one, at, folder)
        except Interrupted:
            say(f"assay: interrupted; {shlex.join(['assay', *sys.argv[1:]])} goes on with {one.name}")
            raise
        except AssayError as error:
            failed[one.name] = error
            say(f"  left out: {error}")
        else:
            say(f"  done in {format_duration(time.monotonic() - began)}")
    _write(paper, chosen, made, failed, folder, pdf=are_installed(*PDF) if pdf is None else pdf)
    if failed:
        raise typer.Exit(int(ExitCode.LIMIT_UNKNOWN))


def _chosen(paper: PublishedPaper, only: str | None) -> Sequence[Experiment]:
    if only is None:
        return paper.experiment
    known = {one.name: one for one in paper.experiment}
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise UsageError(f"--only {name}: paper {paper.name} has no such experiment; it has {', '.join(known)}")
    return [one for one in paper.experiment if one.name in wanted]


def _line(one: Experiment, at: Path | None, folder: Path) -> list[str]:
    return [*one.words(at), "--output", str(folder / "runs" / one.name), "--no-report", "--quiet"]


def _run(one: Experiment, at: Path | None, folder: Path) -> Run:
    """The run of an experiment: the one of an earlier call where it ended well and the command is the same."""
    from assay.apps.api.calling import load, run_of_line

    line = _line(one, at, folder)
    for path in sorted((folder / "runs" / one.name).glob("*/run.json"), reverse=True):
        run = load(path.parent)
        if run.manifest.get("status") == "done" and run.manifest.get("command") == line:
            say("  made before")
            return run
    return run_of_line(line)


def _write(
    paper: PublishedPaper,
    chosen: Sequence[Experiment],
    made: dict[str, Run],
    failed: dict[str, AssayError],
    folder: Path,
    *,
    pdf: bool,
) -> None:
    from assay.document.elements import Block, Bullets, Heading
    from assay.document.terminal import show, table
    from assay.report.paper.reproduction import Reproduction

    if not made:
        raise next(iter(failed.values()))
    left_out = [LeftOut(what=one.title, why=_why(one, failed.get(one.name))) for one in chosen if one.name not in made]
    asked = Reproduction(paper, [one for one in chosen if one.name in made], [*left_out, *paper.left_out])
    written = _written(asked, [made[one.name].path for one in asked.experiments], folder, pdf=pdf)
    rows = [
        (one.title, paper.sentence_of(one), found) for one, found in zip(asked.experiments, written.found, strict=True)
    ]
    missing: list[Block] = [Heading("Not made again"), Bullets([f"{one.what}: {one.why}" for one in asked.left_out])]
    show([table("", ("experiment", "published", "found here"), rows), *(missing if asked.left_out else [])])
    for path in written.files:
        print(path)


def _written(asked: Reproduction, runs: Sequence[Path], folder: Path, *, pdf: bool) -> Written:
    from assay.report.paper.write import PaperOptions, write_paper

    return write_paper(
        PaperOptions(
            runs=runs,
            folder=folder,
            formats=["html", *(["pdf"] if pdf else []), "md"],
            several_targets=True,
            command=["assay", *sys.argv[1:]],
            reproduction=asked,
        )
    )


def _why(one: Experiment, error: AssayError | None) -> str:
    """Why an experiment was not made: it failed, or nothing else than the folder for it was missing."""
    if error is not None:
        return f"It failed: {error}"
    return f"It needs a folder for its database: --at DIR ({one.shown})"
