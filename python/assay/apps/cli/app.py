"""The verbs of `assay`, and the options that all have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from assay.apps.cli.commands import App, ScreenGroup
from assay.apps.cli.console import run_guarded
from assay.apps.cli.verbs import commands_typed, first_words, verbs
from assay.base.audience import OPTION, VARIABLES
from assay.base.errors import ExitCode, UsageError
from assay.base.log import LEVELS, LOG
from assay.base.secrets import take_secrets

EXIT_CODES: dict[int, str] = {
    ExitCode.DONE: "done",
    ExitCode.LIMIT_MISSED: "a limit is missed or no load meets the limits",
    ExitCode.USAGE: "usage or refused target",
    ExitCode.TARGET_FAILED: "target or environment failed",
    ExitCode.INTEGRITY_FAILED: "integrity failure",
    ExitCode.LIMIT_UNKNOWN: "unknown whether a limit can be met",
    ExitCode.WORSE: "a run is worse than its baseline allows",
    ExitCode.INTERRUPTED: "interrupted",
}


ANYWHERE = ("--isolated", OPTION)
"""Options of all verbs that may also stand behind the verb."""


class Verbs(ScreenGroup):
    """The verbs, none of which is imported before it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update(verbs())
        self.typed = commands_typed()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`assay help VERB` is `assay VERB --help`; `assay` alone answers with questions."""
        if not [word for word in args if word not in ANYWHERE]:
            typer.echo(first_words(), nl=False)
            ctx.exit()
        before = args[: args.index("--")] if "--" in args else args
        if moved := [flag for flag in ANYWHERE if flag in before]:
            args = [*moved, *(word for word in args if word not in moved)]
        return super().parse_args(ctx, [*args[1:], "--help"] if args[:1] == ["help"] else args)


app = App(
    name="assay",
    cls=Verbs,
    help="Examine storage the way a database will use it.",
    epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
    context_settings={"help_option_names": ["--help", "-h"]},
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
    agent: Annotated[
        bool,
        typer.Option(
            OPTION,
            help=f"For programs: answers in Markdown, errors in JSON, no progress; {' or '.join(VARIABLES)} does the"
            " same where standard output is no terminal.",
        ),
    ] = False,
    isolated: Annotated[bool, typer.Option("--isolated", help="Read no assay.toml and no config.toml.")] = False,
) -> None:
    del version, agent, isolated
    if log_level not in LEVELS:
        raise UsageError(f"--log-level: {log_level!r} is unknown; accepted: {', '.join(LEVELS)}")
    LOG.set_level(log_level)


def run(argv: Sequence[str]) -> None:
    """Run the command line and exit."""
    take_secrets(os.environ)
    run_guarded(app, argv)
