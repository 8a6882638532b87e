"""What all commands of a machine share, imported and built once, before they are forked from it.

In emulation an import more costs seconds, and so do the command line's description and what checks a run folder.
"""

import functools
from importlib import import_module

import typer.main

from assay.apps.cli.app import app
from assay.record import shapes

for name in (
    "assay.report.exports", "assay.record.load", "assay.record.series", "assay.workloads.integrity.job",
    "assay.workloads.io.job", "assay.record.series", "rich.console", "rich.table", "typer._adapters",
):  # fmt: skip
    import_module(name)

typer.main.get_command = functools.cache(typer.main.get_command)
command_line = typer.main.get_command(app)
for verb in command_line.commands.values():
    for command in getattr(verb, "commands", {"": verb}).values():
        command.loaded  # noqa: B018 - imports it, and is kept
shapes._adapters("manifest")
shapes._adapters("point")
