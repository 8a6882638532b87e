"""From options to an execution and its output: what verbs that measure share."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import typer

from assay.cli.console import Console, Signals, leave_at_once, print_verdict, say
from assay.cli.exporting import export_all, rehearse_exports
from assay.cli.options import parse_exports
from assay.cli.study_tables import print_study
from assay.errors import ExitCode, NotAnswering, RunFolderError, UsageError
from assay.paths import printable
from assay.results.points import current_points
from assay.results.run_folder import RunFolder
from assay.run.chains import in_order
from assay.run.execute import Execution, estimate_s, exit_code_of, new_folder, print_json, run_document
from assay.run.part import AnyTarget, Part, part_from_report, part_report
from assay.run.request import Request
from assay.run.resumed import refuse_other_targets, refuse_strange_folder
from assay.studies.parts import choose_targets
from assay.targets.storage.target import Target
from assay.units import format_bytes, format_duration
from assay.workloads.integrity.core_plan import memory_of
from assay.workloads.integrity.files import Placed, place_files
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.result import findings_line
from assay.workloads.io.cache_span import PART as CACHE_SPAN
from assay.workloads.io.plan import Plan
from assay.workloads.tpcc.check import violations_total
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.runner import actions_done
from assay.workloads.tpcc.target import DatabaseTarget

GIVEN_ANEW = frozenset(
    {"resume_run", "json", "dry_run", "report", "export", "quiet", "debug", "overwrite", "yes_destroy"}
    | {"password_stdin"}
)
"""Parameters that a resumed run does not take from its folder."""

COMMANDS = {"oltp": "oltp tpcc"}
"""The command of a verb that has commands of its own."""


@dataclass(kw_only=True)
class OutputOptions:
    """What is shown and written."""

    output: Path
    json: bool = False
    dry_run: bool = False
    report: bool = True
    export: list[str] = field(default_factory=list)
    quiet: bool = False
    notices: list[str] = field(default_factory=list)
    """What the verb has to say about the run itself."""

    def validate(self) -> None:
        """Refuse unknown exports before anything is measured."""
        self.export = parse_exports(self.export)


def start(
    verb: str, request: Request, parts: Sequence[Part], options: OutputOptions, study: dict[str, Any] | None = None
) -> None:
    """Run new work to its end and exit; `study` is what the manifest says of a study before it runs."""
    options.validate()
    target, parts = choose_targets(request, parts)
    target.notices += options.notices
    parts = [_with_spans(part, target) for part in parts]
    if options.dry_run:
        show_plan(verb, target, parts, options, study)
        return
    rehearse_exports(options.export, parts)
    with databases_open(target, in_order(parts, study)[0], options):
        folder = new_folder(options.output, verb, sys.argv[1:], request.to_dict(), parts, study)
        run_to_end(verb, folder, target, parts, options, yes_destroy=request.yes_destroy)


@contextmanager
def databases_open(
    target: AnyTarget, first: Part, options: OutputOptions, actions_done: Sequence[str] = ()
) -> Iterator[Part]:
    """Open and examine the databases of the part that runs first, so that what is refused leaves no run folder.

    Yields the part with its plan as it fits them. A part that may be left out is not opened before its time.

    Raises
    ------
    AssayError
        As `DatabaseTarget.prepare` raises them.
    """
    databases, plan = first.target or target, first.plan
    if first.optional or not isinstance(databases, DatabaseTarget) or not isinstance(plan, TpccPlan):
        yield first
        return
    try:
        with Console(quiet=options.quiet) as console:
            fitted = databases.prepare(plan.without(actions_done), console.phase)
        yield replace(first, plan=fitted.model_copy(update={"actions": plan.actions}))
    finally:
        databases.close()


def _with_spans(part: Part, target: AnyTarget) -> Part:
    """The latency-against-span part with the spans of the target's smallest volume."""
    from assay.workloads.io.cache_span_plan import cache_span_plan

    if part.name != CACHE_SPAN or not isinstance(target, Target):
        return part
    plan = cache_span_plan(min(target.sizes.values()))
    seconds = min((part.planned_s or 10.0) / len(plan.workloads()) * 0.8, 5.0)
    plan = cache_span_plan(min(target.sizes.values()), seconds=max(seconds, 0.5))
    return replace(part, plan=plan)


def resume(verb: str, path: Path, options: OutputOptions, context: typer.Context) -> None:
    """Go on with a run folder and exit.

    Raises
    ------
    RunFolderError
        It is not a run of this verb.
    UsageError
        Options were given that the run has decided already.
    """
    options.validate()
    refuse_decided(context)
    folder = RunFolder.open(path)
    manifest = folder.manifest
    if manifest.get("verb") != verb or "request" not in manifest:
        raise RunFolderError(
            f"--resume {path}: is a run of {manifest.get('verb')!r}, which `assay {verb}` cannot go on with"
        )
    folder.check_goes_on()
    study = manifest.get("study")
    parts = [part_from_report(part, study, source=f"--resume {path}") for part in manifest["parts"]]
    if manifest["status"] == "done" and not options.dry_run:
        show_finished(folder, parts, options)
    refuse_strange_folder(folder)
    if not options.dry_run:
        folder.lock()
    permitted = {name: context.params.get(name) or [] for name in ("overwrite", "yes_destroy")}
    try:
        request = Request.from_dict(manifest["request"], **permitted)
    except TypeError as error:
        raise RunFolderError(
            f"--resume {path}: its request is not one of `assay {verb}`; the folder was changed"
        ) from error
    sizes = {volume["name"]: volume["size_bytes"] for volume in manifest["target"]["volumes"]}
    target, parts = choose_targets(request, parts, sizes)
    own = [part.target for part in parts if part.target is not None]
    for part in parts:
        if isinstance(part.target or target, DatabaseTarget) != isinstance(part.plan, TpccPlan):
            raise RunFolderError(f"--resume {path}: part {part.name} does not fit its target; the folder was changed")
    refuse_other_targets(folder, [target, *own], request.overwrite)
    if options.dry_run:
        show_plan(verb, target, parts, options, study)
        return
    first = in_order(parts, study)[0]
    with databases_open(target, first, options, actions_done(manifest, first.name)):
        run_to_end(verb, folder, target, parts, options, yes_destroy=request.yes_destroy)


def refuse_decided(context: typer.Context) -> None:
    """A run goes on with its own target and plan; options that ask for others must not be passed over in silence.

    Raises
    ------
    UsageError
        Such an option is given.
    """
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name)
        if name not in GIVEN_ANEW and given is not None and given.name == "COMMANDLINE":
            shown = max(option.opts, key=len) if option.opts[0].startswith("-") else name.upper()
            raise UsageError(f"--resume goes on with the run's own target and plan; leave out {shown}")


def show_finished(folder: RunFolder, parts: Sequence[Part], options: OutputOptions) -> NoReturn:
    """Show a run in which nothing is left to measure, and exit as it did; its files stay as they are."""
    say(f"assay: {folder.path} is finished: nothing was measured again")
    points, answers = current_points(folder.points()), folder.manifest["answers"]
    manifest = folder.manifest
    code = exit_code_of(parts, points, answers, manifest.get("integrity"), manifest.get("oltp"))
    code = export_all(options.export if points else [], folder, code)
    _print_folder(folder, options)
    sys.exit(int(code))


def run_to_end(
    verb: str,
    folder: RunFolder,
    target: AnyTarget,
    parts: Sequence[Part],
    options: OutputOptions,
    signals: Signals | None = None,
    *,
    yes_destroy: Sequence[str] = (),
) -> NoReturn:
    """Run, show the outcome, and exit.

    `signals` are those that a verb looks after already; `yes_destroy` is what a command to go on has to repeat.
    """
    signals = signals or Signals()
    with Console(quiet=options.quiet) as console:
        execution = Execution(
            verb=verb,
            folder=folder,
            target=target,
            parts=parts,
            display=console,
            interrupt=signals.interrupt,
            with_report=options.report,
            uninterruptible=signals,
            yes_destroy=yes_destroy,
            study=folder.manifest.get("study"),
        )
        code = execution.run()
        console.phase("done" if execution.error is None else "ended early")
    code = export_all(options.export if execution.points else [], folder, code)
    _print_outcome(execution, options)
    if isinstance(execution.error, NotAnswering):
        leave_at_once(code)
    sys.exit(int(code))


def _print_folder(folder: RunFolder, options: OutputOptions) -> None:
    if options.json:
        print(print_json(run_document(folder)), flush=True)
        return
    if folder.manifest.get("study"):
        print_study(folder.manifest["study"])
    print_verdict(folder.manifest["verdict"], folder.manifest["notices"])
    for name in ("report.html", "report.pdf"):
        if (folder.path / name).exists():
            print(f"{name.removeprefix('report.').upper()} report: {printable(folder.path / name)}")
    print(f"run folder: {printable(folder.path)}", flush=True)


def _print_outcome(execution: Execution, options: OutputOptions) -> None:
    folder = execution.folder
    _print_folder(folder, options)
    if execution.integrity is not None and (found := findings_line(execution.integrity)):
        say(f"assay: integrity failed: {found}")
    if violations := violations_total(execution.oltp):
        say(f"assay: consistency conditions are violated {violations:,} times")
    if execution.error is not None:
        say(f"assay: {execution.error}")
        if execution.error.exit_code is ExitCode.INTERRUPTED and execution.can_go_on:
            verb = "study run" if execution.study is not None else COMMANDS.get(execution.verb, execution.verb)
            again = ["assay", *verb.split(), "--resume", printable(folder.path), *execution.permissions_again]
            say(f"assay: go on with: {shlex.join(again)}")


def show_plan(
    verb: str,
    target: AnyTarget,
    parts: Sequence[Part],
    options: OutputOptions,
    study: dict[str, Any] | None = None,
) -> None:
    """Show what would be done; nothing is written, and no server is asked or started."""
    shortest, longest = estimate_s(parts)
    storage = target if isinstance(target, Target) else None
    placed = {
        part.name: place_files(storage, part.plan)
        for part in parts
        if isinstance(part.plan, IntegrityPlan) and storage is not None
    }
    if options.json:
        print(print_json(_plan_document(verb, target, parts, placed, study)))
        return
    if study is not None:
        print(f"study {study['name']}: {study['question']}")
    if any(part.target is None for part in parts):
        for line in _target_lines(target):
            print(line)
    for part in parts:
        for line in _part_lines(part, placed.get(part.name, [])):
            print(line)
    time = "until interrupted" if math.isinf(longest) else f"{format_duration(shortest)} to {format_duration(longest)}"
    if all((part.target or target).array is not None for part in parts):
        print(f"time: {time} of the model's time, which passes some hundred times faster")
        return
    if storage is not None and not storage.database:
        print(f"layout: writes {format_bytes(storage.layout_bytes)}")
    with_database = storage is not None and storage.database
    apart = ["preparing, final checkpoint, audit"] if with_database else ["layout"] if storage is not None else []
    apart += ["loading, restoring, checking"] if any(isinstance(part.plan, TpccPlan) for part in parts) else []
    print(f"time: {time}, {', '.join(apart)} and report apart")


def _target_lines(target: AnyTarget) -> list[str]:
    """The target of all parts that have none of their own, in words."""
    if isinstance(target, DatabaseTarget):
        return [f"database {database.name}: {database.spec.display}" for database in target.databases]
    new = {volume.spec.name for volume in target.to_lay_out}
    lines = []
    for volume in target.volumes:
        facts = [str(volume.spec.path or "no medium"), format_bytes(volume.size_bytes), "+".join(volume.roles)]
        facts += ["to be laid out"] if volume.spec.name in new else []
        lines.append(f"volume {volume.spec.name}: {', '.join(facts)}")
    return lines


def _plan_document(
    verb: str,
    target: AnyTarget,
    parts: Sequence[Part],
    placed: Mapping[str, Sequence[Placed]],
    study: dict[str, Any] | None,
) -> dict[str, Any]:
    """The document of `--dry-run --json`."""
    shortest, longest = (None if math.isinf(seconds) else seconds for seconds in estimate_s(parts))
    document: dict[str, Any] = {
        "schema_version": 1,
        "verb": verb,
        "estimate": {"shortest_s": shortest, "longest_s": longest},
    } | _target_document(target)
    if isinstance(target, Target):
        document["estimate"]["layout_bytes"] = target.layout_bytes
    plans = {part.name: part.plan.model_dump(mode="json") for part in parts}
    asked = [plan for name, plan in plans.items() if name != CACHE_SPAN]
    # What `--plan` takes back; the cache-span part belongs to the option of its own.
    document |= {"plan": asked[0]} if len(asked) == 1 else {}
    document |= {"parts": [{"name": name, "plan": plan} for name, plan in plans.items()]} if len(plans) > 1 else {}
    if study is not None:
        document |= {"study": study, "parts": [part_report(part) for part in parts]}
    for part in parts:
        if isinstance(part.plan, IntegrityPlan):
            files = placed[part.name]
            document["files"] = [
                {key: value for key, value in vars(file).items() if key != "held"} | {"path": str(file.path)}
                for file in files
            ]
            document["memory_bytes"] = memory_of(part.plan, files).needed_bytes
            document["understood"] = list(part.understood)
    return document


def _target_document(target: AnyTarget) -> dict[str, Any]:
    if isinstance(target, DatabaseTarget):
        return {
            "databases": [
                {"name": database.name, "target": database.spec.display, "kind": database.spec.kind}
                for database in target.databases
            ]
        }
    volumes = [
        {
            "name": volume.name,
            "path": str(volume.spec.path),
            "roles": list(volume.roles),
            "size_bytes": volume.size_bytes,
        }
        for volume in target.volumes
    ]
    return {"volumes": volumes}


def _transactions_lines(part: Part, plan: TpccPlan) -> list[str]:
    """A part on databases in words."""
    size = "those that are loaded, else 10" if plan.warehouses is None else f"{plan.warehouses:,}"
    load = f"{plan.users:,} users" if plan.rate is None else f"{plan.rate:,.0f} transactions per s, {plan.arrivals}"
    if plan.search.axis != "none":
        load = f"search on {plan.search.axis} from {plan.search.first_load:,.0f} to {plan.search.last_load:,.0f}"
    warmup, measured = plan.timing.warmup_length_s, plan.timing.duration_s
    on = f"; target: {part.target_text}" if part.target_text is not None else ""
    return [
        f"part {part.name}: {part.title}; warehouses: {size}; {', then '.join(plan.actions)}{on}",
        f"  {load}; {plan.mode}; limits: {', '.join(plan.limits) or 'none'}",
        f"  each point: {format_duration(warmup)} warm-up, {format_duration(measured)} measured",
    ]


def _part_lines(part: Part, files: Sequence[Placed]) -> list[str]:
    """A part in words."""
    limits = ", ".join(part.plan.limits) or "none"
    if isinstance(part.plan, Plan):
        on = f"; target: {part.target_text}" if part.target_text is not None else ""
        lines = [f"part {part.name}: {part.title}; limits: {limits}; search: {part.plan.search.axis}{on}"]
        return lines + [f"  {workload.title}" for workload in part.plan.workloads()]
    if isinstance(part.plan, TpccPlan):
        return _transactions_lines(part, part.plan)
    cycles = f"{part.plan.cycles} times" if part.plan.cycles else "until interrupted"
    lines = [
        f"part {part.name}: {part.title}; {cycles}: prepare, stress for {format_duration(part.plan.timing.stress_s)},"
        " checkpoint, audit of every page"
    ]
    for file in files:
        begins = f" from {format_bytes(file.base_bytes)}" if file.base_bytes else ""
        grows = f", may grow to {format_bytes(file.max_bytes)}" if file.can_grow else ""
        kind = "log" if file.log else "data"
        lines.append(f"  {kind} {file.name}: {file.path}{begins}, {format_bytes(file.size_bytes)}{grows}")
    prepared = sum(file.size_bytes for file in files)
    return [
        *lines,
        f"  preparing writes {format_bytes(prepared)}",
        f"  needs {format_bytes(memory_of(part.plan, files).needed_bytes)} of memory",
    ]
