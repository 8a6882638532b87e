"""What verbs that measure share: an execution made of options, and its output."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from assay.apps.cli.console import Console, EndSignals, complain, leave_at_once, print_end, print_event, print_json, say
from assay.apps.cli.exporting import export_all, rehearse_exports
from assay.apps.cli.options import parse_exports
from assay.apps.cli.taken import command_words, taken_now
from assay.apps.service import execution, first_examined
from assay.base.errors import ExitCode, NotAnswering, RunFolderError, UsageError
from assay.base.extras import PDF, require
from assay.base.paths import printable
from assay.base.units import count_of, format_bytes, format_duration
from assay.document.elements import Block
from assay.document.terminal import Details, notes_and_details, show
from assay.fleet.choosing import choose_over_hosts
from assay.fleet.target import end_hosts
from assay.record.points import current_points
from assay.record.run_folder import RunFolder
from assay.record.shapes.study import Study
from assay.report.answer import answer_of
from assay.run.chains import in_order, points_least
from assay.run.execute import Execution, exit_code_of, failures_told, new_folder, run_document
from assay.run.notices import gravest_first
from assay.run.part import estimate_s, part_from_report, part_report
from assay.run.request import PERMISSIONS, TargetRequest
from assay.run.resumed import refuse_other_targets, refuse_strange_folder
from assay.run.targets import choose_targets
from assay.run.verdict import conclusions_of, verdict_of_run
from assay.targets.arrays.live.process import arrays_of_run
from assay.targets.files.target import StorageTarget
from assay.targets.target import Target
from assay.workloads.capabilities import MeasuresIo, OnDatabases
from assay.workloads.plan import Part
from assay.workloads.registry import workload_of, workloads_of
from assay.workloads.workload import SpreadTarget, workload_at

GIVEN_ANEW = frozenset(
    {
        "resume_run",
        "json",
        "json_stream",
        "dry_run",
        "report",
        "paper",
        "export",
        "quiet",
        "details",
        "no_color",
        "debug",
        "overwrite",
        "yes_destroy",
        "yes_format",
    }
    | {"password_stdin"}
)
"""Parameters that a resumed run does not take from its folder."""


@dataclass(kw_only=True)
class OutputOptions:
    """Options of output: what a command shows and writes."""

    output: Path
    json: bool = False
    json_stream: bool = False
    """Whether points are printed as they end, a line of JSON each."""
    dry_run: bool = False
    report: bool = True
    paper: bool = False
    export: list[str] = field(default_factory=list)
    quiet: bool = False
    details: bool = False
    title: str | None = None
    """What the run is called."""
    command: Sequence[str] = ()
    """Words of the command that runs: `oltp tpcc`, `study run`."""
    notices: list[str] = field(default_factory=list)
    """What the verb has to say about the run itself."""
    repeat: int | None = None
    """How often all is done."""
    paired: bool = False
    """Whether two targets are measured in turns."""
    times: int = 1
    """How many runs the outlook tells of; none where it was told before."""
    group: Path | None = None
    """The folder of the repeats that a run is one of: their end shows what the run would show."""

    def validate(self) -> None:
        """Refuse unknown exports, and a paper without what typesets it, before anything is measured."""
        self.export = parse_exports(self.export)
        if self.json_stream and (self.json or self.dry_run):
            other = "--json" if self.json else "--dry-run"
            raise UsageError(f"--json-stream and {other} exclude each other: the one prints points as they end")
        if self.paper:
            require("--paper", *PDF)


def start(
    verb: str,
    request: TargetRequest,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    study: Study | None = None,
    told: Callable[[], Mapping[str, object]] | None = None,
) -> None:
    """Run new work to its end and exit.

    Parameters
    ----------
    study
        What the manifest says of a study before it runs.
    told
        Gives what else the manifest says; asked when the folder is made.
    """
    with arrays_of_run():
        code = begin(verb, request, parts, options, study, told)
        if code is not None and taken_now() is None:
            sys.exit(int(code))


def begin(
    verb: str,
    request: TargetRequest,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    study: Study | None = None,
    told: Callable[[], Mapping[str, object]] | None = None,
    *,
    place: Callable[[], Path] | None = None,
    signals: EndSignals | None = None,
) -> ExitCode | None:
    """Run new work to its end; None where only the plan was to be shown.

    Parameters
    ----------
    study, told
        See `start`.
    place
        Gives the folder for the run folder where it is not that of the options; asked when nothing is refused.
    signals
        Those that the verb looks after already.
    """
    options.validate()
    request.dry_run = options.dry_run
    target, parts = _chosen(request, parts)
    with ExitStack() as stack:
        stack.callback(end_hosts, target)
        target.notices += options.notices
        if options.dry_run:
            show_plan(verb, target, parts, options, study)
            return None
        rehearse_exports(options.export, parts)
        stack.enter_context(examined_first(target, in_order(parts, study)[0], {}, options))
        output = options.output if place is None else place()
        folder = new_folder(output, verb, command_words(), request.to_dict(), parts, study)
        facts = {**(told() if told is not None else {}), **({"title": options.title} if options.title else {})}
        if facts:
            folder.update(**facts)
        if not options.quiet and options.times:
            say(outlook(target, parts, options.group or folder.path, options.times))
        return carry_out(folder, target, parts, options, signals, yes_destroy=request.yes_destroy)


@contextmanager
def examined_first(
    target: Target, first: Part[Any], manifest: Mapping[str, Any], options: OutputOptions
) -> Iterator[None]:
    """Examine the target of the part that runs first, so that what is refused leaves no run folder."""
    with ExitStack() as stack:
        with Console(quiet=options.quiet) as console:
            stack.enter_context(first_examined(target, first, manifest, console))
        yield


def resume(verb: str, path: Path, options: OutputOptions, context: typer.Context) -> None:
    """Go on with a run folder and exit.

    Raises
    ------
    RunFolderError
        It is not a run of this verb.
    UsageError
        Options were given that the run has decided already.
    """
    with arrays_of_run():
        code = go_on(verb, path, options, context)
        if code is not None:
            sys.exit(int(code))


def go_on(
    verb: str, path: Path, options: OutputOptions, context: typer.Context, signals: EndSignals | None = None
) -> ExitCode | None:
    """Go on with a run folder to its end; see `resume`. None where only the plan was to be shown."""
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
        return show_finished(folder, parts, options)
    refuse_strange_folder(folder)
    if not options.dry_run:
        folder.lock()
    permitted = {name: context.params.get(name) or [] for name in PERMISSIONS}
    try:
        request = TargetRequest.from_dict(manifest["request"], **permitted)
    except TypeError as error:
        raise RunFolderError(
            f"--resume {path}: its request is not one of `assay {verb}`; the folder was changed"
        ) from error
    request.dry_run = options.dry_run
    sizes = {volume["name"]: volume["size_bytes"] for volume in manifest["target"]["volumes"]}
    target, parts = _chosen(request, parts, sizes)
    with ExitStack() as stack:
        stack.callback(end_hosts, target)
        return _go_on(verb, folder, request, target, parts, options, signals)


def _chosen(
    request: TargetRequest, parts: Sequence[Part[Any]], sizes: dict[str, int] | None = None
) -> tuple[Target, list[Part[Any]]]:
    """Choose the targets of a run, here or over hosts."""
    return (choose_over_hosts if request.is_spread else choose_targets)(request, parts, sizes)


def _go_on(
    verb: str,
    folder: RunFolder,
    request: TargetRequest,
    target: Target,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    signals: EndSignals | None,
) -> ExitCode | None:
    """Go on with a run whose targets are the same as at its beginning."""
    path, manifest, study = folder.path, folder.manifest, folder.manifest.get("study")
    own = [part.target for part in parts if part.target is not None]
    for part in parts:
        on_databases = isinstance(workload_of(part.plan), OnDatabases)
        if ((part.target or target).runs_on == "databases") != on_databases:
            raise RunFolderError(f"--resume {path}: part {part.name} does not fit its target; the folder was changed")
    refuse_other_targets(folder, [target, *own], request.overwrite)
    if options.dry_run:
        show_plan(verb, target, parts, options, study)
        return None
    first = in_order(parts, study)[0]
    with examined_first(target, first, manifest, options):
        return carry_out(folder, target, parts, options, signals, yes_destroy=request.yes_destroy)


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


def show_finished(folder: RunFolder, parts: Sequence[Part[Any]], options: OutputOptions) -> ExitCode:
    """Show a run in which nothing is left to measure, and end as it did; its files stay as they are."""
    say(f"assay: {folder.path} is finished: nothing was measured again")
    points, answers = current_points(folder.points()), folder.manifest["answers"]
    manifest = folder.manifest
    is_study = bool(manifest.get("study"))
    conclusions = conclusions_of(parts, points, manifest, is_study=is_study)
    verdict = verdict_of_run(
        parts, points, answers, conclusions, is_study=is_study, need=manifest.get("need"),
        contract=manifest.get("contract"),
    )  # fmt: skip
    code = exit_code_of(verdict, manifest)
    code = export_all(options.export if points else [], folder, code)
    _print_folder(folder, options)
    return code


def carry_out(
    folder: RunFolder,
    target: Target,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    signals: EndSignals | None = None,
    *,
    yes_destroy: Sequence[str] = (),
) -> ExitCode:
    """Run and show the outcome.

    `signals` are those that a verb looks after already; `yes_destroy` is what a command to go on has to repeat.
    """
    taken = taken_now()
    signals = signals or EndSignals(heard=taken is None)
    with Console(quiet=options.quiet, stream=options.json_stream) as console:
        run = execution(
            folder,
            target,
            parts,
            display=console,
            interrupt=signals.interrupt,
            with_report=options.report,
            with_paper=options.paper,
            uninterruptible=signals,
            yes_destroy=yes_destroy,
        )
        code = run.run()
        console.phase("done" if run.error is None else "ended early")
    code = export_all(options.export if run.points else [], folder, code)
    if taken is not None:
        taken.folder, taken.error = folder.path, run.error
        return code
    _print_outcome(run, options)
    if isinstance(run.error, NotAnswering):
        leave_at_once(code)
    return code


def _print_folder(folder: RunFolder, options: OutputOptions) -> None:
    if options.json_stream:
        print_event("end", document={**run_document(folder), "points": []})
        return
    if options.group is not None:
        return
    if options.json:
        print(print_json(run_document(folder)), flush=True)
        return
    manifest, points = folder.manifest, current_points(folder.points())
    blocks: list[Block | Details] = [*answer_of(manifest, points)]
    if not options.quiet:
        told = gravest_first(manifest["notices"], points, manifest.get("target") or {}, manifest.get("answers") or [])
        blocks += notes_and_details(told, report=(folder.path / "report.html").exists())
    show(blocks, details=options.details)
    if not options.quiet:
        print_end(folder.path, folder.manifest)


def _print_outcome(run: Execution, options: OutputOptions) -> None:
    folder = run.folder
    for failure in failures_told(run.told):
        say(f"assay: {failure}")
    _print_folder(folder, options)
    if run.error is not None:
        complain(run.error.exit_code, str(run.error))
        goes_on = run.can_go_on or options.group is not None
        if run.error.exit_code is ExitCode.INTERRUPTED and not goes_on and not run.points:
            say(f"assay: no point was finished; begin anew with: {shlex.join(['assay', *command_words()])}")
        if run.error.exit_code is ExitCode.INTERRUPTED and goes_on:
            again = [
                "assay",
                *options.command,
                "--resume",
                printable(options.group or folder.path),
                *run.permissions_again,
            ]
            say(f"assay: go on with: {shlex.join(again)}")


def outlook(target: Target, parts: Sequence[Part[Any]], folder: Path, times: int = 1) -> str:
    """One line of what a run is about to do: points, time, what getting ready writes and where, where results are."""
    counts = [points_least(part.plan) for part in parts]
    known = sum(count for count in counts if count is not None)
    words = [f"at least {count_of(known, 'point')}"] if known else []
    if times > 1:
        words = [", each ".join([f"{times} runs", *words])]
    words.append(_time_words(target, parts, times))
    if target.layout_bytes:
        files = target.to_lay_out if isinstance(target, StorageTarget) else []
        volumes = ", ".join(printable(volume.spec.path) for volume in files if volume.spec.path is not None)
        words.append(f"layout writes {format_bytes(target.layout_bytes)}{f' to {volumes}' if volumes else ''}")
    words += dict.fromkeys(filter(None, (_writes(part, part.target or target) for part in parts)))
    return f"{'; '.join(words)}; results in {printable(folder)}"


def _writes(part: Part[Any], target: Target) -> str:
    """What getting a part ready writes and where; hosts lay out and load by themselves."""
    return "" if isinstance(target, SpreadTarget) else workload_of(part.plan).writes(part, target)


def _time_words(target: Target, parts: Sequence[Part[Any]], times: int = 1) -> str:
    """How long parts take in so many runs, and what comes besides."""
    shortest, longest = (times * seconds for seconds in estimate_s(parts))
    ends = list(dict.fromkeys(format_duration(seconds) for seconds in (shortest, longest) if not math.isinf(seconds)))
    time = "until interrupted" if math.isinf(longest) else " to ".join(ends)
    if _is_virtual(target, parts):
        return f"{time} of the model's time, which passes some hundred times faster"
    apart = dict.fromkeys(what for workload in workloads_of(parts) for what in workload.apart)
    return f"{time}, {', '.join(apart)} and report apart"


def _is_virtual(target: Target, parts: Sequence[Part[Any]]) -> bool:
    """Whether all parts run on models."""
    return all((part.target or target).is_virtual for part in parts)


def show_plan(
    verb: str,
    target: Target,
    parts: Sequence[Part[Any]],
    options: OutputOptions,
    study: Study | None = None,
) -> None:
    """Show what would be done; nothing is written, and no server is asked or started."""
    if options.json:
        print(print_json(_plan_document(verb, target, parts, study, options.times)))
        return
    if study is not None:
        print(f"study {study['name']}: {study['question']}")
    if any(part.target is None for part in parts):
        for line in target.lines():
            print(line)
    for line in _part_lines(target, parts, whole=options.details):
        print(line)
    lays_out = any(isinstance(workload, MeasuresIo) for workload in workloads_of(parts))
    if target.layout_bytes is not None and lays_out and not _is_virtual(target, parts):
        print(f"layout: writes {format_bytes(target.layout_bytes)}")
    if options.times > 1:
        print(f"runs: {options.times}, one after the other")
    print(f"time: {_time_words(target, parts, options.times)}")


LINES_SHOWN = 20
"""Lines on parts that are printed without --details."""


def _part_lines(target: Target, parts: Sequence[Part[Any]], *, whole: bool) -> Iterator[str]:
    """What each part does, a line each where all of it is too much, and once what holds for several."""
    told = [workload_at(workload_of(part.plan), on).lines(part, on) for part in parts for on in [part.target or target]]
    notices = [line for lines in told for line in lines if line.startswith("note: ")]
    told = [[line for line in lines if line not in notices] for lines in told]
    left = sum(len(lines) - 1 for lines in told)
    shown = whole or left + len(told) <= LINES_SHOWN
    for lines in told:
        yield from lines if shown else lines[:1]
    yield from dict.fromkeys(notices)
    if not shown:
        yield f"{left} more lines on these parts: --details"


def _plan_document(
    verb: str,
    target: Target,
    parts: Sequence[Part[Any]],
    study: Study | None,
    times: int,
) -> dict[str, Any]:
    """The document of `--dry-run --json`."""
    shortest, longest = (None if math.isinf(seconds) else times * seconds for seconds in estimate_s(parts))
    document: dict[str, Any] = {
        "schema_version": 1,
        "verb": verb,
        "estimate": {"shortest_s": shortest, "longest_s": longest},
        **target.document(),
    }
    if target.layout_bytes is not None:
        document["estimate"]["layout_bytes"] = target.layout_bytes
    plans = {part.name: part.plan.model_dump(mode="json") for part in parts}
    asked = [plans[part.name] for part in parts if not part.aside]
    # What `--plan` takes back; a part aside belongs to an option of its own.
    document |= {"plan": asked[0]} if len(asked) == 1 else {}
    document |= {"parts": [{"name": name, "plan": plan} for name, plan in plans.items()]} if len(plans) > 1 else {}
    if study is not None:
        document |= {"study": study, "parts": [part_report(part) for part in parts]}
    for part in parts:
        on = part.target or target
        document |= workload_at(workload_of(part.plan), on).document(part, on)
    return document
