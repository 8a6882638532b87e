"""`assay support`: one archive of a run for a colleague or a vendor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.apps.cli import options as opt

EXAMPLES = """
Examples:

`assay support assay-results/20261120-101500-assess-a1b2c3`

`assay support RUN --output for-the-vendor.tar.gz`

`assay support RUN --names`
"""


def support(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, finished or not.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Path of the archive (RUN-support.tar.gz).", show_default=False),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Keep the names of hosts, users, databases, volumes and folders.")
    ] = False,
    debug: opt.Debug = False,
) -> None:
    """Pack manifest, log and points of a run into one archive for a colleague or a vendor, names replaced."""
    del debug
    from assay.apps.cli.console import say
    from assay.base.paths import printable
    from assay.base.units import format_bytes
    from assay.report.support import pack_support

    archive = output or Path(f"{run.resolve().name}-support.tar.gz")
    packed = pack_support(run, archive, anonymised=not names)
    for name, size in packed.files.items():
        say(f"packed {name}, {format_bytes(size)}")
    for notice in packed.left_out:
        say(f"note: {notice}")
    if not names:
        say("names of hosts, users, databases, volumes and folders are replaced; look before you send it")
    typer.echo(printable(archive))
