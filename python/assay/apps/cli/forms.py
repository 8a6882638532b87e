"""Forms of what `assay ui --allow-runs` may start, made of the commands' own options.

Options that name a path or a host, that allow writing to what is there, or that say what is printed are in no form: a
run that the page starts writes to what Assay made, to empty files, and to results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import typer
from typer.core import TyperOption

from assay.apps.cli import options as opt
from assay.apps.cli.app import app
from assay.apps.ui.start_form import FieldChoice, FieldKind, FormField, StartForm, StartSettings
from assay.insight.studies.files import study_names, study_variants
from assay.targets.arrays.live.events import events_in
from assay.targets.arrays.model.model_file import catalogue_names
from assay.workloads.options import SAFETY, PlanOption

PLACE, MODEL, NULL = "place", "model", "null"
"""Kinds of targets."""

TEXTS = frozenset(
    {
        "--size", "--cache-size", "--title", "--limit", "--need", "--budget", "--only", "--skip", "--levels",
        "--baseline", "--set", "--workload", "--repeat", "--repeats", "--seed",
    }
)  # fmt: skip
"""Options whose text is no place. Those of plans are typed; another option with a text is in no form."""

WITHOUT_PLACES = frozenset({"--levels", "--set", "--baseline", "--workload"})
"""Options that name parts of a model, which could be the path of a file."""

ALWAYS = ("--preset", "--title")
"""Options that a form shows at once, as those of the short help."""

LEFT_OUT = {*opt.OF_OUTPUT, *opt.OVER_HOSTS, *opt.WRITES_FILES, *opt.WRITES_MUCH, *opt.ON_DATABASES, "paired"}
"""Parameters that no form has, but the title."""


@dataclass(frozen=True, kw_only=True)
class _Argument:
    """An argument of a command, as a form offers it.

    `own` says what an empty choice means; without it the argument is required.
    """

    name: str
    label: str
    kind: FieldKind = "target"
    takes: Sequence[str] = ()
    own: str = ""
    choices: Sequence[FieldChoice] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Offer:
    """A command that a form is made of."""

    words: tuple[str, ...]
    arguments: Sequence[_Argument]


def start_settings(places: Sequence[Path]) -> StartSettings:
    """What the page's process gets: a form for each plan that may be started.

    Parameters
    ----------
    places
        Folders that runs may use as targets.
    """
    return {
        "forms": [_form(offer) for offer in _offers()],
        "places": [str(path) for path in places],
        "models": catalogue_names(),
    }


def _offers() -> list[_Offer]:
    on_storage = _Argument(name="path", label="Target", takes=(PLACE, MODEL, NULL))
    in_places = "Folder to examine"
    return [
        _Offer(words=("assess",), arguments=[_Argument(name="directory", label=in_places, takes=(PLACE,))]),
        _Offer(words=("profile",), arguments=[on_storage]),
        _Offer(words=("verify",), arguments=[_Argument(name="path", label="Folder to verify", takes=(PLACE,))]),
        _Offer(
            words=("study", "run"),
            arguments=[
                _Argument(name="name", label="Study", kind="choice", choices=_studies()),
                _Argument(name="target", label="Target", takes=(MODEL,), own="the study's own"),
            ],
        ),
        _Offer(words=("replay",), arguments=[_Argument(name="trace", label="Trace", kind="trace"), on_storage]),
    ]


def _studies() -> list[FieldChoice]:
    """Studies that run on models."""
    found: list[FieldChoice] = []
    for name in study_names():
        fits = [one for one in study_variants(name) if one.published or {*one.targets} & {"model", "flash"}]
        if fits:
            found.append({"value": name, "text": f"{name}: {fits[0].title}"})
    return found


def _form(offer: _Offer) -> StartForm:
    command = _command(offer.words)
    usual = getattr(command.callback, "usual", ())
    of_plan = cast("Mapping[str, Sequence[PlanOption]]", getattr(command.callback, "plan_options", {}))
    options = [
        made
        for param in command.params
        if isinstance(param, TyperOption) and not param.hidden and (param.name == "title" or param.name not in LEFT_OUT)
        for made in _option(param, of_plan.get(param.name or "", ()), command, usual)
    ]
    return {
        "name": "-".join(offer.words),
        "words": [*offer.words],
        "title": (command.help or "").splitlines()[0],
        "fields": [*map(_argument, offer.arguments), *options],
    }


def _command(words: Sequence[str]) -> Any:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
        command = getattr(command, "loaded", command)
    return command


def _argument(argument: _Argument) -> FormField:
    return {
        "name": argument.name, "label": argument.label, "help": argument.own and f"Unless chosen: {argument.own}.",
        "group": "", "kind": argument.kind, "flag": "", "off": "", "choices": [*argument.choices],
        "takes": [*argument.takes], "is_usual": True, "is_required": not argument.own, "is_without_places": True,
    }  # fmt: skip


def _option(
    param: TyperOption, of_plan: Sequence[PlanOption], command: Any, usual: Sequence[str]
) -> Iterator[FormField]:
    """The field of an option, unless it names a place or allows more than a form does."""
    kind = _kind(param, of_plan)
    if kind is None or param.rich_help_panel == SAFETY:
        return
    flag = next(name for name in param.opts if name.startswith("--"))
    off = param.secondary_opts[0] if param.secondary_opts else ""
    yield {
        "name": str(param.name), "label": flag.removeprefix("--"),
        "help": param.help or "",
        "group": str(param.rich_help_panel or "What"), "kind": kind, "flag": flag, "off": off,
        "choices": _choices(param, of_plan, command, flag, off), "takes": [],
        "is_usual": flag in usual or flag in ALWAYS, "is_required": False,
        "is_without_places": flag in WITHOUT_PLACES,
    }  # fmt: skip


def _kind(param: TyperOption, of_plan: Sequence[PlanOption]) -> FieldKind | None:
    """How a form asks for an option's value; None for one that is in no form."""
    if param.is_flag:
        return "choice" if param.secondary_opts else "flag"
    if "--preset" in param.opts:
        return "choice"
    if of_plan:
        if any(one.option.parse is events_in for one in of_plan):
            return None
        if _words(of_plan):
            return "choice"
    elif not TEXTS & {*param.opts}:
        return None
    return "lines" if param.multiple else "text"


def _words(of_plan: Sequence[PlanOption]) -> list[str]:
    return [word for one in of_plan for word in get_args(one.field.annotation) if isinstance(word, str)]


def _choices(param: TyperOption, of_plan: Sequence[PlanOption], command: Any, flag: str, off: str) -> list[FieldChoice]:
    if param.is_flag:
        return [{"value": one, "text": one.removeprefix("--")} for one in (flag, off) if off]
    words = [*command.callback.workload.presets()] if "--preset" in param.opts else _words(of_plan)
    return [{"value": word, "text": word} for word in words]
