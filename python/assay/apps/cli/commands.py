"""Commands whose help fits a screen: what they do, three examples and the usual options; `--help-all` has the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from assay.apps.cli.taken import taken_now
from assay.base.audience import Audience

if TYPE_CHECKING:
    from assay.workloads.options import PlanOption

EXAMPLES_SHOWN = 3
USUAL_MAX = 10
"""Options that `--help` shows beside itself."""

HELP_ALL = "--help-all"

VALUES = {"bool": "", "str": "TEXT", "path": "PATH", "int": "N", "int range": "N", "float": "N"}
"""What help writes for the value of an option, by its type."""

F = TypeVar("F", bound=Callable[..., None])


def usual(*flags: str) -> Callable[[F], F]:
    """Name the options of a command that its `--help` shows; without it, `--help` shows all.

    Parameters
    ----------
    flags
        The first name of each option, at most `USUAL_MAX`.
    """

    def mark(function: F) -> F:
        vars(function)["usual"] = flags
        return function

    return mark


class _OnOneScreen:
    """What commands and groups of commands have in common."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Print the whole help if it is asked for."""
        # A group reads its own words alone: those after the name of a command belong to that command.
        if HELP_ALL in (args[:1] if isinstance(self, TyperGroup) else args):
            print_help(self, ctx, whole=True)
            ctx.exit()
        parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return parsed

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the short help."""
        del formatter
        print_help(self, ctx)


class ScreenCommand(_OnOneScreen, TyperCommand):
    """A command whose help fits a screen, and whose options have the defaults that files and the environment set."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed; help needs no settings, which may be the very thing that is wrong.

        A program that calls the verb says all that it wants.
        """
        if {"--help", "-h", HELP_ALL} & {*args} or taken_now() is not None:
            return super().parse_args(ctx, args)
        from assay.apps.cli.settings import give_defaults, tell_used

        give_defaults(ctx, args)
        parsed = super().parse_args(ctx, args)
        tell_used(ctx)
        return parsed


class ScreenGroup(_OnOneScreen, TyperGroup):
    """Commands of one verb."""


class App(typer.Typer):
    """A verb with commands of its own."""

    def __init__(self, **settings: Any) -> None:
        common = {"cls": ScreenGroup, "add_completion": False, "rich_markup_mode": "markdown"}
        super().__init__(**{**common, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Make a command of a function."""
        return super().command(name, **{"cls": ScreenCommand, **settings})


def print_help(command: Any, context: Any, *, whole: bool = False) -> None:
    """Print the help of a command.

    Parameters
    ----------
    whole
        Whether with all options, in their groups, and all examples.
    """
    usual_flags = getattr(command.callback, "usual", ())
    heading, *examples = [line for line in (command.epilog or "").splitlines() if line.strip()] or [""]
    left_out = not whole and (bool(usual_flags) or len(examples) > EXAMPLES_SHOWN)
    params = [
        _shown(param, whole=whole, left_out=left_out)
        for param in command.get_params(context)
        if whole or not usual_flags or isinstance(param, TyperArgument) or {*param.opts} & {*usual_flags, "--help"}
    ]
    if Audience.is_program:
        _print_markdown(command, context, params, examples if whole else examples[:EXAMPLES_SHOWN])
        return
    from typer.rich_utils import rich_format_help

    # Markdown ends a line within a paragraph at two spaces.
    epilog = "  \n".join([heading, *(examples if whole else examples[:EXAMPLES_SHOWN])])
    shown = copy(command)
    vars(shown).update(get_params=lambda _: params, epilog=epilog)
    if isinstance(command, TyperGroup) and not whole:
        vars(shown).update(get_command=lambda ctx, name: _listed(command.get_command(ctx, name)))
    rich_format_help(obj=shown, ctx=context, markup_mode="markdown")


def _print_markdown(command: Any, context: Any, params: Sequence[Any], examples: Sequence[str]) -> None:
    """Print help for a program: a line a parameter, and nothing drawn."""
    print(f"**{command.get_usage(context)}**\n\n{command.help}\n")
    for param in params:
        options = isinstance(param, TyperOption)
        names = ", ".join(sorted((*param.opts, *param.secondary_opts), key=len, reverse=True)) if options else ""
        value = param.display_type_rich(ctx=context) if names else param.display_name_raw
        print(f"- `{f'{names} {value}'.strip()}`: {param.help or ''}")
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            print(f"- `{name}`: {(inner.help or '').partition(chr(10))[0]}")
    print("\n".join(["", *examples]) if examples else "")


def _listed(command: Any) -> Any:
    """A command as lists show it: the first clause of what it does."""
    listed = copy(command)
    listed.short_help = command.short_help or re.split(r"[:;.](?:\s|$)", command.help or "", maxsplit=1)[0] + "."
    return listed


def _shown(param: Any, *, whole: bool, left_out: bool) -> Any:
    """A parameter as help shows it: its value in words of users, not in types of Python."""
    shown = copy(param)
    kind = param.display_type(None).strip("<>").removeprefix("list[").removesuffix("]")
    value = "" if isinstance(param, TyperArgument) else VALUES.get(kind, kind)
    vars(shown).update(display_type_rich=lambda **_: value)
    if not whole and isinstance(param, TyperOption):
        shown.rich_help_panel = None
    if left_out and "--help" in param.opts:
        shown.help = f"Show this message and exit; {HELP_ALL} shows all options and examples."
    return shown


def default_of(option: TyperOption, of_plan: Sequence[PlanOption]) -> str:
    """The value that an option has if it is not given, where that is a plain value."""
    return _plain(of_plan[0].field.default if len(of_plan) == 1 else option.default if not of_plan else None)


def _plain(default: Any) -> str:
    """A default that is a plain value; the meaning tells of others."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, int | float):
        return f"{default:g}"
    return f"`{default}`" if isinstance(default, str | Path) and str(default) else ""
