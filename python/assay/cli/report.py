"""`assay report`: write the report of a run again, or export its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli import options as opt
from assay.errors import ExitCode

EXAMPLES = """
Examples:

`assay report assay-results/20261120-101500-assess-a1b2c3`

`assay report RUN --export csv --no-pdf`
"""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    html: Annotated[bool, typer.Option("--html/--no-html", help="Write report.html.")] = True,
    pdf: Annotated[bool, typer.Option("--pdf/--no-pdf", help="Write report.pdf.")] = True,
    export: opt.Export = None,
    debug: opt.Debug = False,
) -> None:
    """Write report.html and report.pdf of a run, finished or not."""
    del debug
    exports = opt.parse_exports(export or [])
    from assay.cli.exporting import export_all
    from assay.report import write_report
    from assay.results.run_folder import RunFolder

    with RunFolder.open(run) as folder:
        if exports:
            # Refuse what cannot be exported before anything is written.
            folder.whole_points()
        for path in write_report(run, html=html, pdf=pdf):
            print(path)
        code = export_all(exports, folder, ExitCode.DONE, print)
    if code is not ExitCode.DONE:
        raise typer.Exit(int(code))
