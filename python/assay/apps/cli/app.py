"""The verbs of `assay`, and the options that all have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from assay.apps.cli.console import run_guarded
from assay.apps.cli.verbs import verbs
from assay.base.errors import UsageError
from assay.base.log import LEVELS, LOG
from assay.base.secrets import take_secrets


class Verbs(TyperGroup):
    """The verbs, none of which is imported before it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update(verbs())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`assay help VERB` is `assay VERB --help`."""
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)


app = typer.Typer(
    name="assay",
    cls=Verbs,
    help="Examine storage the way a database will use it.",
    epilog="Exit codes: 0 done; 1 a limit is missed or no load meets the limits; 2 usage or refused target; 3 target"
    " or environment failed; 4 integrity failure; 5 unknown whether a limit can be met; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["--help", "-h"]},
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
    log_level: Annotated[
        str,
        typer.Option("--log-level", envvar="ASSAY_LOG", help=f"What log.jsonl of a run holds: {', '.join(LEVELS)}."),
    ] = "info",
) -> None:
    del version
    if log_level not in LEVELS:
        raise UsageError(f"--log-level: {log_level!r} is unknown; accepted: {', '.join(LEVELS)}")
    LOG.set_level(log_level)


def run(argv: Sequence[str]) -> None:
    """Run the command line and exit."""
    take_secrets(os.environ)
    run_guarded(app, argv)
