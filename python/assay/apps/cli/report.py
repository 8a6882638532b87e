"""`assay report`: write the report of a run again, export its figures, or make a paper of one or several runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import say
from assay.base.errors import ExitCode, UsageError
from assay.base.extras import CHARTS, PDF, are_installed, missing, require

EXAMPLES = """
Examples:

`assay report assay-results/20261120-101500-assess-a1b2c3`

`assay report RUN --export csv --no-pdf`

`assay report --paper RUN RUN RUN --output white-paper`

`assay check host --format json -o check.json; assay report --paper RUN --check check.json`

`assay report --paper RUN --anonymise --units decimal`
"""

PAPER = "Paper"
OUTPUT_OF_SEVERAL = Path("assay-paper")

Pdf = Annotated[
    bool | None, typer.Option("--pdf/--no-pdf", help="Write report.pdf (if assay-storage[pdf] is installed).")
]
Markdown = Annotated[
    bool, typer.Option("--markdown/--no-markdown", help="Write paper.md and its figures.", rich_help_panel=PAPER)
]


NewTemplate = Annotated[
    Path | None,
    typer.Option("--new-template", help="Write the templates into this folder, and stop.", rich_help_panel=PAPER),
]
Anonymise = Annotated[
    bool, typer.Option("--anonymise", help="Aliases for hosts, paths, users and databases.", rich_help_panel=PAPER)
]
Share = Annotated[
    Path | None,
    typer.Option("--share", help="Show the run's figures without names; with --yes write them to this file."),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --share: write the file.")]
StorageClass = Annotated[str, typer.Option("--class", help="With --share: class of the storage, such as tlc-pcie4.")]


@usual("--html", "--pdf", "--export", "--paper", "-o", "--markdown", "--anonymise", "--units")
def report(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="A run folder; several with --paper.", show_default=False),
    ] = None,
    html: Annotated[bool, typer.Option("--html/--no-html", help="Write report.html.")] = True,
    pdf: Pdf = None,
    export: opt.Export = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Make a paper of one or several runs instead.", rich_help_panel=PAPER)
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Folder of the paper (the run's; several runs: assay-paper).", rich_help_panel=PAPER
        ),
    ] = None,
    markdown: Markdown = True,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            "--check", help="Findings of best practice: a file of assay check --format json.", rich_help_panel=PAPER
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option("--template", help="Folder of your own templates for the paper's texts.", rich_help_panel=PAPER),
    ] = None,
    new_template: NewTemplate = None,
    anonymise: Anonymise = False,
    units: Annotated[
        str | None,
        typer.Option("--units", help="Throughput in both, binary (MiB/s) or decimal (MB/s).", rich_help_panel=PAPER),
    ] = None,
    several_targets: Annotated[
        bool,
        typer.Option("--several-targets", help="Accept runs of different targets.", rich_help_panel=PAPER),
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Accept less than an hour of recording.", rich_help_panel=PAPER)
    ] = False,
    share: Share = None,
    yes: Yes = False,
    storage_class: StorageClass = "shared",
    debug: opt.Debug = False,
) -> None:
    """Write report.html and report.pdf of a run, finished or not; or a paper of one or several runs."""
    del debug
    if new_template is not None:
        from assay.report.paper.texts import write_templates

        for path in write_templates(new_template):
            print(path)
        return
    if not runs:
        raise UsageError("report: give the folder of a run")
    if share is not None:
        _share(runs, share, storage_class, yes=yes)
        return
    pdf = _is_pdf_wanted(pdf, paper=paper)
    only = {"--output": output, "--check": check, "--template": template, "--anonymise": anonymise, "--units": units,
            "--several-targets": several_targets, "--short": short}  # fmt: skip
    if paper:
        if export:
            raise UsageError("--export and --paper exclude each other")
        formats = [kind for kind, wanted in (("html", html), ("pdf", pdf), ("md", markdown)) if wanted]
        folder = output or (runs[0] if len(runs) == 1 else OUTPUT_OF_SEVERAL)
        _paper(
            runs, folder, formats, template, units, check or [], anonymised=anonymise, several_targets=several_targets,
            short=short,
        )  # fmt: skip
        return
    given = [option for option, value in only.items() if value]
    if given:
        raise UsageError(f"{given[0]}: is an option of --paper; give that too")
    if len(runs) > 1:
        raise UsageError(
            "report: takes one run; of several runs --paper makes a paper, and `assay compare` compares them"
        )
    _report(runs[0], html=html, pdf=pdf, export=export or [])


def _share(runs: list[Path], to: Path, storage_class: str, *, yes: bool) -> None:
    """Show the figures of a run without names, and write them where that is confirmed; nothing is sent."""
    from assay.base.paths import printable
    from assay.insight.ranking.share import shared_text
    from assay.insight.rules.written import write_findings
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder

    if len(runs) != 1:
        raise UsageError(f"--share: takes one run (given {len(runs)})")
    folder = RunFolder.open(runs[0])
    text = shared_text(current_points(folder.points()), folder.manifest.get("started_utc_ns") or 0, storage_class)
    print(text, end="")
    if not yes:
        say(f"nothing is written and nothing is sent; --yes writes this to {printable(to)}")
        return
    write_findings(text, to)
    say(f"written: {printable(to)}; nothing is sent")


def _is_pdf_wanted(asked: bool | None, *, paper: bool) -> bool:
    """Whether to typeset; where that was not asked for, if it can be.

    Raises
    ------
    NotSupported
        What was asked for needs packages that are not installed.
    """
    if paper:
        require("--paper", *CHARTS)
    if asked:
        require("--pdf", *PDF)
    elif asked is None and (lacking := missing("report.pdf", *PDF)):
        say(f"note: {lacking}")
    return are_installed(*PDF) if asked is None else asked


def _report(run: Path, *, html: bool, pdf: bool, export: list[str]) -> None:
    exports = opt.parse_exports(export)
    from assay.apps.cli.exporting import export_all
    from assay.record.run_folder import RunFolder
    from assay.report import write_report

    with RunFolder.open(run) as folder:
        if exports:
            # Refuse what cannot be exported before anything is written.
            folder.whole_points()
        for path in write_report(run, html=html, pdf=pdf):
            print(path)
        code = export_all(exports, folder, ExitCode.DONE, print)
    if code is not ExitCode.DONE:
        raise typer.Exit(int(code))


def _paper(
    runs: list[Path],
    folder: Path,
    formats: list[str],
    template: Path | None,
    units: str | None,
    checks: list[Path],
    *,
    anonymised: bool,
    several_targets: bool,
    short: bool,
) -> None:
    from assay.report.paper.write import PaperOptions, write_paper

    if units not in (None, "both", "binary", "decimal"):
        raise UsageError(f"--units: {units!r} is unknown; accepted: both, binary, decimal")
    written = write_paper(
        PaperOptions(
            runs=runs, folder=folder, formats=formats, template=template, checks=checks, anonymised=anonymised,
            several_targets=several_targets, short=short, units=units,  # type: ignore[arg-type]
            command=["assay", *sys.argv[1:]],
        )
    )  # fmt: skip
    for path in written.files:
        print(path)
    for text in written.notices:
        say(f"note: {text}")
