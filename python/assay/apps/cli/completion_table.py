"""The table of what a shell completes, a row a word, from the declarations of commands and options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from typer.core import TyperArgument

from assay.apps.cli import completing as kinds
from assay.apps.cli.commands import HELP_ALL
from assay.apps.cli.options import EXPORTS_KNOWN
from assay.apps.cli.schema import NAMES as SCHEMAS
from assay.base.log import LEVELS
from assay.workloads.databases.plan import Action
from assay.workloads.options import PlanOption

RUN_OPTIONS = {"--resume", "--need-from", "--from"}
OF_OPTIONS = {
    "--export": f"={','.join(EXPORTS_KNOWN)}",
    "--log-level": f"={','.join(LEVELS)}",
    "--overwrite": kinds.FILES,
    "--yes-destroy": kinds.FILES,
    "--yes-format": kinds.FILES,
    **dict.fromkeys(RUN_OPTIONS, kinds.RUN),
}
"""What completes options whose type does not say it."""

OF_ARGUMENTS = {
    ("schema", "name"): f"={','.join(SCHEMAS)}",
    ("study", "name"): kinds.STUDY,
    ("model", "name"): kinds.MODEL,
    ("model", "array"): kinds.MODEL,
    ("array", "model"): kinds.MODEL,
    ("completion", "shell"): "=bash,zsh,fish",
    **{
        (verb, name): kinds.RUN
        for verb in ("compare", "report", "support", "diagnose")
        for name in ("run", "runs", "inputs")
    },
}
"""What completes arguments, by verb and name; targets and paths are known by what they are called."""


def table(root: Any) -> str:
    """The rows of all commands: the command, its word, the kind of the word or of its value, what it means."""
    return "".join("\t".join(row) + "\n" for row in _rows(root, ""))


def _rows(command: Any, words: str) -> Iterator[Sequence[str]]:
    command = getattr(command, "loaded", command)
    inner = {name: one for name, one in getattr(command, "commands", {}).items() if not one.hidden}
    for name, one in inner.items():
        yield words, name, kinds.COMMAND, (one.help or "").partition("\n")[0]
    if default := getattr(command, "default", ""):
        yield words, f"*{default}", kinds.DEFAULT, ""
    places = 0
    for param in command.params:
        if isinstance(param, TyperArgument):
            repeated = "+" if param.nargs != 1 else ""
            yield words, f"{repeated}{places}", _argument(words.partition(" ")[0], param), ""
            places += 1
        elif not param.hidden:
            for name in (*param.opts, *param.secondary_opts):
                yield words, name, _option(command, param), (param.help or "").replace("\n", " ")
    yield words, "--help", kinds.FLAG, "Show the usual options and examples."
    yield words, HELP_ALL, kinds.FLAG, "Show all options and examples."
    for name, one in inner.items():
        yield from _rows(one, f"{words} {name}".lstrip())


def _argument(verb: str, param: Any) -> str:
    if "[ACTION]" in (param.metavar or ""):
        return f"{kinds.DATABASE}={','.join(get_args(Action))}"
    if known := OF_ARGUMENTS.get((verb, param.name)):
        return known
    return kinds.STORAGE if param.name in ("path", "target", "targets") else kinds.FILES


def _option(command: Any, param: Any) -> str:
    """What completes the value of an option."""
    if param.is_flag:
        return kinds.FLAG
    (name,) = param.opts[-1:]
    workload = getattr(command.callback, "workload", None)
    if name == "--preset" and workload is not None:
        return f"={','.join(workload.presets())}"
    of_plan: Mapping[str, Sequence[PlanOption]] = getattr(command.callback, "plan_options", {})
    for option in of_plan.get(param.name, ()):
        choices = [one for one in get_args(option.field.annotation) if isinstance(one, str)]
        if choices:
            return f"={','.join(choices)}"
    return OF_OPTIONS.get(name) or (kinds.FILES if param.type_descriptor.is_path else "text")
