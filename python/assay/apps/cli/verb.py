"""Commands made of plans: their options come from the plan's fields, and what is given becomes changes of a plan."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.repeating import resume
from assay.apps.cli.running import OutputOptions, start
from assay.base.errors import UsageError
from assay.base.fields import FieldError
from assay.base.reading import nearest, read_table
from assay.base.tables import Record
from assay.base.units import format_bytes, format_duration
from assay.run.request import TargetRequest
from assay.workloads.capabilities import OnDatabases
from assay.workloads.options import LOAD, OUTPUT, SAFETY, TARGET, TIME, Keys, PlanOption, plan_options
from assay.workloads.plan import AnyPlan, Part
from assay.workloads.registry import workload_of_plans
from assay.workloads.workload import Workload

_GROUPS = {None: 0, TARGET: 1, LOAD: 3, TIME: 4, SAFETY: 5, OUTPUT: 6}
"""Order of the groups in `--help`; those of the plan alone come third."""


@dataclass(kw_only=True)
class Given:
    """What was given on the command line.

    Attributes
    ----------
    context
        The command as it was called.
    shown
        What is shown and written.
    workload, options
        The kind of the plan, and all its options.
    preset, plan_file
        What the plan begins as.
    target
        What was asked of the target, as `TargetRequest` takes it.
    values
        The fields of the plan that options set.
    flags
        The options that set them, as they were given.
    """

    context: typer.Context
    shown: OutputOptions
    workload: Workload[Any] | None
    options: Sequence[PlanOption]
    preset: str | None
    plan_file: Path | None
    target: dict[str, Any]
    values: dict[Keys, Any] = field(default_factory=dict)
    flags: dict[Keys, str] = field(default_factory=dict)

    def request(self, paths: Sequence[str] | None, **asked: Any) -> TargetRequest:
        """The request for the target, from its options."""
        return TargetRequest(paths=list(paths or []), **(self.target | asked))

    def take(self, *table: str) -> dict[str, Any]:
        """The values of a table's fields by key, for verbs that apply them themselves."""
        return {path[-1]: self.values.pop(path) for path in list(self.values) if path[:-1] == table}

    def base(self) -> Any:
        """The plan before options: that of `--plan` or `--preset`, if one is given.

        Raises
        ------
        UsageError
            Both are given, the file cannot be read or is empty, there is no such preset, or the plan is wrong.
        """
        if self.preset is not None and self.plan_file is not None:
            raise UsageError("--preset and --plan exclude each other")
        if self.plan_file is not None:
            source = f"--plan {self.plan_file}"
            table = read_table(self.plan_file, option="--plan")
            if not table:
                raise UsageError(f"{source}: holds no key; leave --plan out for the plan that is the default")
            return self._load(table, source=source)
        assert self.workload is not None
        return None if self.preset is None else self.workload.preset(self.preset)

    def preset_default(self) -> Any:
        """The preset that plans begin as where neither preset nor file is given."""
        assert self.workload is not None
        return self.workload.preset(self.workload.preset_default)

    def changed(self, base: AnyPlan | None, before: Mapping[Keys, Any] | None = None) -> dict[str, Any]:
        """The plan's JSON form with what was given; `before` is what options win over, but a preset does not."""
        data: dict[str, Any] = {} if base is None else base.model_dump(mode="json", exclude_unset=True)
        for path, value in {**(before or {}), **self.values}.items():
            table = data
            for key in path[:-1]:
                table = table.setdefault(key, {})
            table[path[-1]] = value
        if ("limits",) in self.values:
            data["user_limits"] = True
        return data

    def plan(self, data: Mapping[str, Any]) -> Any:
        """The plan from its JSON form.

        Raises
        ------
        FieldError
            It is wrong; the message names the options that are to blame, or the plan's file.
        """
        self._refuse_idle_search(data)
        try:
            return self._load(data, source="options")
        except FieldError as error:
            raise self._named(error) from None

    def _load(self, data: Mapping[str, Any], *, source: str) -> Any:
        assert self.workload is not None
        return self.workload.load_plan(data, source=source)

    def _named(self, error: FieldError) -> FieldError:
        """The error with options, or a file and a key, instead of a key alone."""
        keys = tuple(key for key in error.field if isinstance(key, str))
        blamed = [flag for path, flag in self.flags.items() if path == keys[: len(path)]]
        if not blamed and keys:
            blamed = [flag for path, flag in self.flags.items() if path[: len(keys)] == keys]
        if not blamed and self.plan_file is not None:
            source = f"--plan {self.plan_file}"
            return FieldError(error.reason, field=error.field, source=source, says_field=error.says_field)
        if not blamed:
            blamed = [option.option.flag for option in self.options if option.path == keys[: len(option.path)]][:1]
        source = "" if error.says_field else ", ".join(dict.fromkeys(blamed))
        return FieldError(error.reason, field=error.field, source=source, says_field=error.says_field or bool(blamed))

    def _refuse_idle_search(self, data: Mapping[str, Any]) -> None:
        """Refuse options that say how to search where nothing is searched."""
        axes = next((option.field for option in self.options if option.path == ("search", "axis")), None)
        how = [flag for path, flag in self.flags.items() if path[0] == "search" and path != ("search", "axis")]
        if axes is not None and how and data.get("search", {}).get("axis", axes.default) == "none":
            known = " or ".join(f"--search {axis}" for axis in get_args(axes.annotation) if axis != "none")
            raise UsageError(f"{how[0]}: says how to search; give {known}, too")


def measuring(
    verb: str,
    plan: type[AnyPlan] | None = None,
    *,
    on: opt.Declared = opt.NOTHING,
    only: Collection[str] | None = None,
    presets: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function: with its own parameters, a plan's options, and those of target and output.

    The function is called with a `Given` before its own parameters. Where parameters have the same name, its own win
    over the plan's, and these over those of target and output.

    Parameters
    ----------
    verb
        The verb whose runs `--resume` goes on with.
    plan
        The kind of plan that the command runs.
    on
        Options of the target.
    only
        Flags of the plan's options to take, where the command runs no plan as a whole.
    presets
        Help of `--preset`; unless given, the presets' names.
    """
    workload = None if plan is None else workload_of_plans(plan)
    options = [] if workload is None else plan_options(workload.plan_type)
    begin: opt.Declared = {}
    if only is not None:
        options = [option for option in options if option.option.flag in only]
    elif workload is not None:
        begin = _beginning(workload, presets)

    def command(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        own_names = {parameter.name for parameter in own}
        of_plan: dict[str, list[PlanOption]] = {}
        for option in options:
            if option.name not in own_names:
                of_plan.setdefault(option.name, []).append(option)
        # What measures nothing of its own is spread over no hosts.
        over = opt.OVER_HOSTS if workload is not None and only is None else opt.NOTHING
        taken = own_names | of_plan.keys()
        shared = {name: one for name, one in {**on, **over, **opt.OF_OUTPUT}.items() if name not in taken}

        def run(context: typer.Context, **values: Any) -> None:
            given = Given(
                context=context,
                shown=OutputOptions(
                    command=_words(context),
                    export=values["export"] or [],
                    **{name: values[name] for name in opt.SHOWN if name in values},
                ),
                workload=workload,
                options=options,
                preset=values.get("preset"),
                plan_file=values.get("plan"),
                target={
                    name: values[name]
                    for name in shared
                    if name in {**opt.ON_STORAGE, **opt.WRITES_MUCH, **opt.OVER_HOSTS} and values[name] is not None
                },
            )
            if "resume_run" in shared and values["resume_run"] is not None:
                resume(verb, values["resume_run"], given.shown, context)
                return
            for setting in _settings(of_plan, values, _set_elsewhere(context, values)):
                given.values[setting.option.path] = setting.value
                given.flags[setting.option.path] = setting.flag
            function(given, **{name: values[name] for name in own_names})

        parameters = [
            *(_parameter(name, *declared) for name, declared in begin.items()),
            *(_parameter(name, *_declared(alike, _usual(workload))) for name, alike in of_plan.items()),
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own),
            *(_parameter(name, *declared) for name, declared in shared.items()),
        ]
        context = _parameter("context", typer.Context, inspect.Parameter.empty)
        signature = inspect.Signature([context, *sorted(parameters, key=_group)])
        run.__doc__ = function.__doc__
        vars(run).update(__signature__=signature, plan_options=of_plan, workload=workload)
        return run

    return command


def _words(context: Any) -> list[str]:
    """The words of a command, without the program's name."""
    return [] if context.parent is None else [*_words(context.parent), context.info_name or ""]


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _group(parameter: inspect.Parameter) -> int:
    """Place of the parameter's group in `--help`."""
    (info,) = get_args(parameter.annotation)[1:]
    return _GROUPS.get(info.rich_help_panel, 2)


def _beginning(workload: Workload[Any], presets: str | None) -> opt.Declared:
    """Options that say what a plan begins as."""
    listed = presets or ", ".join(workload.presets())
    preset = {"preset": (Annotated[str | None, typer.Option("--preset", help=f"{listed}.")], None)} if listed else {}
    return {**preset, "plan": (opt.Plan, None)}


@cache
def _usual(workload: Workload[Any] | None) -> Record:
    """What the preset sets that plans begin as where none is given."""
    preset = workload.preset(workload.preset_default) if workload is not None and workload.presets() else None
    return {} if preset is None else preset.model_dump(mode="json", exclude_unset=True)


def _default_shown(option: PlanOption, usual: Record) -> str:
    """The value in force without the option, as it would be given; nothing where the help says it in words."""
    if option.option.values or option.option.is_keyed or option.help.endswith(")."):
        return ""
    table: Any = usual
    for key in option.path:
        table = table.get(key) if isinstance(table, Mapping) else None
    value = option.field.default if table is None else table
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or option.in_tables:
        return ""
    unit = option.path[-1].rpartition("_")[2]
    shown = {"s": format_duration, "bytes": format_bytes}.get(unit, "{:g}".format)
    return shown(value).replace(" ", "")


def _declared(alike: Sequence[PlanOption], usual: Record) -> tuple[Any, Any]:
    """Type and default of the parameter for options of one name."""
    plan_option = alike[0]
    option = plan_option.option
    assert len(alike) == 1 or option.is_keyed, f"{option.flag} is declared twice"
    help_text = plan_option.help
    if option.is_keyed:
        help_text += f": {', '.join(f'{one.table}=N' for one in alike)}."
    elif shown := _default_shown(plan_option, usual):
        help_text = f"{help_text.rstrip('.')} ({shown})."
    info = typer.Option(
        *option.names.split(),
        help=help_text,
        rich_help_panel=option.group,
        metavar=option.metavar or plan_option.metavar,
    )
    if option.values:
        return (Annotated[bool, info], False) if len(option.values) == 1 else (Annotated[bool | None, info], None)
    return Annotated[list[str] | None if plan_option.is_repeatable else str | None, info], None


class _Setting(NamedTuple):
    """A field that an option sets: to which value, and the option for errors, without and with what was given."""

    option: PlanOption
    value: Any
    flag: str
    given: str


def _set_elsewhere(context: typer.Context, names: Iterable[str]) -> set[str]:
    """Parameters whose value comes from a file or the environment; where a plan is named, it says all."""
    return {name for name in names if getattr(context.get_parameter_source(name), "name", "") == "DEFAULT_MAP"}


def _settings(
    of_plan: Mapping[str, Sequence[PlanOption]], values: Mapping[str, Any], elsewhere: Collection[str] = ()
) -> Iterable[_Setting]:
    """The fields that the plan's options set; options that were typed win over those that are set `elsewhere`.

    Raises
    ------
    UsageError
        A value is not accepted, or two options set one field to different values.
    """
    found: dict[Keys, _Setting] = {}
    for name, alike in sorted(of_plan.items(), key=lambda one: one[0] in elsewhere):
        given = values[name]
        if name in elsewhere and (values.get("plan") is not None or any(one.path in found for one in alike)):
            continue
        if given is None or (given is False and len(alike[0].option.values) == 1):
            continue
        for setting in _settings_of(alike, given):
            before = found.get(setting.option.path)
            if before is not None and not before.option.option.gives_way and before.value != setting.value:
                raise UsageError(f"{setting.given} and {before.given} exclude each other")
            found[setting.option.path] = setting
    return found.values()


def _settings_of(alike: Sequence[PlanOption], given: Any) -> Iterator[_Setting]:
    """The fields that options of one name set."""
    first = alike[0]
    flag = first.option.flag
    if first.option.is_keyed:
        yield from _keyed_settings(flag, given, {one.table: one for one in alike})
    elif first.option.values:
        shown = first.option.shown(given)
        yield _Setting(first, first.option.values[0 if given else 1], shown, shown)
    else:
        yield _Setting(first, first.read(given, flag), flag, f"{flag} {given}")


def _keyed_settings(flag: str, given: Sequence[str], options: Mapping[str, PlanOption]) -> Iterator[_Setting]:
    """Each `TABLE=VALUE` of an option."""
    seen: set[str] = set()
    for item in (item.strip() for text in given for item in text.split(",")):
        table, separator, text = item.partition("=")
        if table not in options:
            meant = nearest(table, options)
            hint = f"did you mean {meant!r}? " if meant else ""
            raise UsageError(f"{flag} {item!r}: unknown kind; {hint}accepted: {', '.join(options)}")
        if not separator:
            raise UsageError(f"{flag} {item!r}: accepted: KIND=N, as in {table}=8")
        if table in seen:
            raise UsageError(f"{flag}: {table} is given twice; give it once")
        seen.add(table)
        shown = f"{flag} {table}=N"
        yield _Setting(options[table], options[table].read(text, shown), shown, f"{flag} {item}")


def verb_of(workload: Workload[Any]) -> Callable[..., None]:
    """The command of a workload that has no verb of its own."""

    def run(
        given: Given,
        target: Annotated[
            list[str] | None, typer.Argument(metavar="TARGET", help="Target of the workload.", show_default=False)
        ] = None,
    ) -> None:
        plan = given.plan(given.changed(given.base()))
        part = Part(name=workload.kind, title=plan.title or workload.kind, plan=plan)
        size = {"size": plan.size} if "size" in workload.plan_type.model_fields else {}
        start(workload.kind, given.request(target, **size), [part], given.shown)

    run.__doc__ = type(workload).__doc__ or f"Run the workload {workload.kind!r}."
    on = opt.ON_DATABASES if isinstance(workload, OnDatabases) else opt.ON_STORAGE
    return measuring(workload.kind, workload.plan_type, on=on)(run)
