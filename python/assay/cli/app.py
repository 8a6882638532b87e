"""The verbs of `assay`, and the options that all have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from assay.cli import (
    agent,
    array,
    assess,
    check,
    compare,
    diagnose,
    importing,
    model,
    record,
    report,
    serve,
    size,
    study,
)
from assay.cli.console import run_guarded
from assay.cli.verb import add_verbs_of_workloads, verb_of, verbs_of_workloads
from assay.targets.secrets import take_secrets


class Verbs(TyperGroup):
    """The verbs that are declared here, and one for each kind of workload that none of them is for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all verbs."""
        return list(dict.fromkeys([*super().list_commands(ctx), *verbs_of_workloads()]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb by its name."""
        declared = super().get_command(ctx, cmd_name)
        kinds = verbs_of_workloads()
        if declared is not None or cmd_name not in kinds:
            return declared
        alone = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
        alone.command(name=cmd_name)(verb_of(kinds[cmd_name]))
        return typer.main.get_command(alone)


app = typer.Typer(
    name="assay",
    cls=Verbs,
    help="Examine storage the way a database will use it.",
    epilog="Exit codes: 0 done; 1 a limit is missed or no load meets the limits; 2 usage or refused target; 3 target"
    " or environment failed; 4 integrity failure; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        from assay import _core

        build = _core.build_info()
        typer.echo(f"assay {build['version']} ({build['commit'] or 'no commit'}, {build['profile']}, {build['rustc']})")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


app.command(name="assess", epilog=assess.EXAMPLES)(assess.assess)
add_verbs_of_workloads(app)
app.command(name="compare", epilog=compare.EXAMPLES)(compare.compare)
app.command(name="report", epilog=report.EXAMPLES)(report.report)
app.command(name="serve", epilog=serve.EXAMPLES)(serve.serve)
app.command(name="import", epilog=importing.EXAMPLES)(importing.import_)
app.command(name="check", epilog=check.EXAMPLES)(check.check)
app.command(name="diagnose", epilog=diagnose.EXAMPLES)(diagnose.diagnose)
app.command(name="size", epilog=size.EXAMPLES)(size.size)
app.command(name="agent", hidden=True)(agent.agent)
app.add_typer(record.app, name="record")
app.add_typer(study.app, name="study")
app.add_typer(model.app, name="model")
app.add_typer(array.app, name="array")


def run(argv: Sequence[str]) -> None:
    """Run the command line and exit."""
    take_secrets(os.environ)
    run_guarded(app, argv)
