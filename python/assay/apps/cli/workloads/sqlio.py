"""`assay sqlio`: the classic command line and the classic output."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import App, usual
from assay.apps.cli.console import Console, EndSignals, complain, leave_at_once, print_json, say
from assay.apps.cli.running import outlook
from assay.apps.service import execution
from assay.base.errors import ExitCode, NotAnswering, UsageError
from assay.base.units import format_duration, parse_duration
from assay.base.windows_paths import parse_maps
from assay.run.execute import new_folder, run_document
from assay.run.request import TargetRequest
from assay.targets.files.spec import is_model
from assay.targets.files.target import StorageTarget
from assay.targets.files.volume import OpenVolume
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.io.sqlio import PlanFacts, SqlioCommand, read_sqlio
from assay.workloads.io.sqlio_batch import BatchLine, read_batch, with_hint
from assay.workloads.io.sqlio_text import FileSize, format_sqlio, measurements_from_point
from assay.workloads.plan import Part

EXAMPLES = """
Examples:

`assay sqlio -kW -s360 -frandom -o32 -b8 -LS -Fparam.txt`

`assay sqlio -kR -s30 -fsequential -o8 -b64 testfile.dat`

`assay sqlio -kR -s360 -frandom -o32 -b8 -LS -BH "model:ps6100xv?volumes=12"`

`assay sqlio --batch study.cmd --rest 60s --map 'Q:\\=./data'`
"""

CONTEXT: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}

SIZE_DEFAULT_BYTES = 256 << 20
"""Size of a file that neither exists nor has a size in the parameter file."""

app = App()


@app.command(epilog=EXAMPLES, context_settings=CONTEXT, add_help_option=False)
@usual("--batch", "--rest", "--map", "--overwrite", "--create", "--title", "--output", "--json", "--report", "--quiet")
def sqlio(
    context: typer.Context,
    arguments: Annotated[list[str] | None, typer.Argument(help="Classic flags and files.", metavar="FLAGS")] = None,
    batch: Annotated[
        str | None,
        typer.Option("--batch", help="Run the sqlio commands of this file, one a line, in turn."),
    ] = None,
    rest: Annotated[
        str | None, typer.Option("--rest", help="Pause between commands of --batch that set none (0s).")
    ] = None,
    begin: Annotated[int, typer.Option("--from-line", help="Begin at this line of --batch.", metavar="N")] = 1,
    path_map: Annotated[
        list[str] | None, typer.Option("--map", help=r"Local folder of a Windows path: 'Q:\\=./data'.")
    ] = None,
    overwrite: Annotated[
        list[str] | None, typer.Option("--overwrite", help="Allow writing to this existing file.")
    ] = None,
    yes_destroy: Annotated[
        list[str] | None, typer.Option("--yes-destroy", help="Also if the device carries a signature.")
    ] = None,
    create: opt.Create = False,
    title: opt.Title = None,
    output: Annotated[Path, typer.Option("--output", help="Parent folder of the run folder.")] = Path("assay-results"),
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of the classic output.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html and report.pdf.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    no_color: opt.NoColor = False,
    help_wanted: Annotated[bool, typer.Option("--help", help="Show this message and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks instead of one-line errors.")] = False,
) -> None:
    """Take SQLIO's flags (-k -s -f -o -b -i -t -L -B -S -F ...), print SQLIO's output."""
    del debug, no_color
    if help_wanted:
        typer.echo(context.get_help())
        return
    words = [*(arguments or []), *context.args]
    maps = parse_maps(path_map or [])
    shown = SqlioOptions(
        overwrite=overwrite or [], yes_destroy=yes_destroy or [], create=create, title=title, output=output, json=json,
        report=report, quiet=quiet,
    )  # fmt: skip
    signals = EndSignals()
    if batch is None:
        if rest is not None or begin != 1:
            raise UsageError("--rest, --from-line: say how to run a --batch, and none is given")
        sys.exit(int(_run(with_hint(read_sqlio(words, maps)), shown, signals)))
    if words or json:
        raise UsageError("--batch: its lines have the flags, and each command has a run folder; give neither here")
    rest_s = parse_duration(rest, what="--rest") / 1e9 if rest is not None else 0.0
    commands = [(line, command) for line, command in read_batch(batch, maps) if line.number >= begin]
    sys.exit(int(_run_batch(batch, commands, rest_s, shown, signals)))


@dataclass(frozen=True, kw_only=True)
class SqlioOptions:
    """What a command may write to, and what it shows."""

    overwrite: list[str]
    yes_destroy: list[str]
    create: bool
    title: str | None
    output: Path
    json: bool
    report: bool
    quiet: bool


def _run_batch(
    batch: str,
    commands: Sequence[tuple[BatchLine, SqlioCommand]],
    rest_s: float,
    shown: SqlioOptions,
    signals: EndSignals,
) -> ExitCode:
    """Run the commands one after the other; the first that fails or is interrupted ends the batch."""
    if not commands:
        raise UsageError(f"--from-line: {batch} has no command from there on")
    on_models = all(is_model(pool.path) for _, command in commands for pool in command.pools)
    for number, (line, command) in enumerate(commands):
        pause_s = (rest_s if line.rest_s is None else line.rest_s) if number and not on_models else 0.0
        say(f"assay: {batch}, line {line.number}, command {number + 1} of {len(commands)}")
        if pause_s:
            say(f"assay: resting {format_duration(pause_s)}")
        code = ExitCode.INTERRUPTED
        try:
            if not signals.interrupt.wait(pause_s):
                code = _run(command, shown, signals)
        finally:
            if code is not ExitCode.DONE:
                say(f"assay: go on with: assay sqlio --batch {shlex.quote(batch)} --from-line {line.number}")
        if code is not ExitCode.DONE:
            return code
    return ExitCode.DONE


def _run(command: SqlioCommand, shown: SqlioOptions, signals: EndSignals) -> ExitCode:
    """Run a command and print its output."""
    for notice in command.notices:
        say(f"assay: {notice}")
    facts = command.to_plan_facts()
    request = TargetRequest(
        paths=list(dict.fromkeys(file.path for file in facts.files)),
        overwrite=shown.overwrite,
        yes_destroy=shown.yes_destroy,
        create=shown.create,
    )
    target = _choose(request, facts)
    plan = _plan(facts, target)
    part = Part(name="sqlio", title="SQLIO", plan=plan)
    target_sizes = _file_sizes(command, target)
    folder = new_folder(shown.output, "sqlio", sys.argv[1:], request.to_dict(), [part])
    if shown.title is not None:
        folder.update(title=shown.title)
    if not shown.quiet:
        say(outlook(target, [part], folder.path))
    with Console(quiet=shown.quiet) as console:
        run = execution(
            folder,
            target,
            [part],
            display=console,
            interrupt=signals.interrupt,
            keeps_interrupted=True,
            with_report=shown.report,
            uninterruptible=signals,
        )
        code = run.run()
    if shown.json:
        print(print_json(run_document(folder)), flush=True)
    elif run.points:
        print(format_sqlio(command, measurements_from_point(run.points[-1], file_sizes=target_sizes)), flush=True)
    if run.error is not None:
        complain(run.error.exit_code, str(run.error))
    if isinstance(run.error, NotAnswering):
        leave_at_once(code)
    return code


def _choose(request: TargetRequest, facts: PlanFacts) -> StorageTarget:
    activities = [{"read_share": 1.0 if file.operation == "read" else 0.0} for file in facts.files]
    plan = load_plan({"activity": activities}, source="sqlio")
    wanted: dict[str, int] = {}
    for file in facts.files:
        size_bytes = file.size_bytes or (os.path.getsize(file.path) if os.path.isfile(file.path) else 0)
        wanted[file.path] = max(size_bytes or SIZE_DEFAULT_BYTES, file.span_bytes or 0)
    return request.choose([Part(name="sqlio", title="SQLIO", plan=plan)], by_path=wanted)


def _volumes(path: str, target: StorageTarget) -> list[OpenVolume]:
    """The volumes that a file of the command stands for: all of a model, or the one at the path."""
    if is_model(path):
        return list(target.volumes)
    return [volume for volume in target.volumes if str(volume.spec.path) == os.path.abspath(path)]


def _plan(facts: PlanFacts, target: StorageTarget) -> IoPlan:
    activities: list[dict[str, Any]] = []
    for file, volume in [(one, volume) for one in facts.files for volume in _volumes(one.path, target)]:
        start_bytes = file.start_block * file.block_bytes
        end_bytes = min(file.span_bytes or file.size_bytes or volume.size_bytes, volume.size_bytes)
        if start_bytes + file.block_bytes > end_bytes:
            raise UsageError(f"-S{file.start_block}: begins at or beyond the end of {file.path}")
        activities.append(
            {
                "name": f"file{len(activities)}",
                "volume": volume.name,
                "block_bytes": file.block_bytes,
                "read_share": 1.0 if file.operation == "read" else 0.0,
                "random_share": 1.0 if file.access == "random" else 0.0,
                "stride_bytes": file.stripe_blocks * file.block_bytes if file.stripe_blocks else None,
                "region": [start_bytes / volume.size_bytes, end_bytes / volume.size_bytes],
                "queue_depth": file.outstanding,
                "workers": file.threads,
                "io_mode": facts.io_mode,
                "sync": facts.sync,
            }
        )
    timing = {"warmup_s": 0, "duration_s": facts.duration_s}
    return load_plan({"name": "sqlio", "title": "SQLIO", "timing": timing, "activity": activities}, source="sqlio")


def _file_sizes(command: SqlioCommand, target: StorageTarget) -> list[FileSize]:
    before = {volume.spec.path: volume.size_bytes or 0 for volume in target.examined}
    shown = []
    for pool in command.pools:
        volumes = _volumes(pool.path, target)
        size_bytes = sum(volume.size_bytes for volume in volumes)
        found_bytes = size_bytes if is_model(pool.path) else before[volumes[0].spec.path]
        grown = found_bytes if found_bytes < size_bytes else None
        shown.append(FileSize(path=pool.path, size_bytes=size_bytes, grown_from_bytes=grown))
    return shown
