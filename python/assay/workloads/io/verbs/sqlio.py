"""`assay sqlio`: the classic command line and the classic output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.console import Console, Signals, leave_at_once, say
from assay.errors import NotAnswering, UsageError
from assay.run.execute import new_folder, print_json, run_document
from assay.run.request import Request, refuse_model
from assay.service import execution
from assay.targets.storage.target import StorageTarget
from assay.workloads.io.plan import Plan, load_plan
from assay.workloads.io.sqlio import PlanFacts, SqlioCommand, read_sqlio
from assay.workloads.io.sqlio_text import FileSize, format_sqlio, measurements_from_point
from assay.workloads.workload import Part

EXAMPLES = """
Examples:

`assay sqlio -kW -s360 -frandom -o32 -b8 -LS -Fparam.txt`

`assay sqlio -kR -s30 -fsequential -o8 -b64 testfile.dat`
"""

CONTEXT: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}

SIZE_DEFAULT_BYTES = 256 << 20
"""Size of a file that neither exists nor has a size in the parameter file."""


def sqlio(
    context: typer.Context,
    arguments: Annotated[list[str] | None, typer.Argument(help="Classic flags and files.", metavar="FLAGS")] = None,
    overwrite: Annotated[
        list[str] | None, typer.Option("--overwrite", help="Allow writing to this existing file.")
    ] = None,
    yes_destroy: Annotated[
        list[str] | None, typer.Option("--yes-destroy", help="Also if the device carries a signature.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", help="Where the run folder is made.")] = Path("assay-results"),
    json: Annotated[bool, typer.Option("--json", help="One JSON document instead of the classic output.")] = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html and report.pdf.")] = False,
    help_wanted: Annotated[bool, typer.Option("--help", help="Show this message and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks instead of one-line errors.")] = False,
) -> None:
    """Take SQLIO's flags (-k -s -f -o -b -i -t -L -B -S -F ...), print SQLIO's output."""
    del debug
    if help_wanted:
        typer.echo(context.get_help())
        return
    command = read_sqlio(list(arguments or []) + list(context.args))
    for notice in command.notices:
        say(f"assay: {notice}")
    facts = command.to_plan_facts()
    refuse_model([file.path for file in facts.files])
    request = Request(
        paths=list(dict.fromkeys(file.path for file in facts.files)),
        overwrite=overwrite or [],
        yes_destroy=yes_destroy or [],
    )
    target = _choose(request, facts)
    plan = _plan(facts, target)
    part = Part(name="sqlio", title="SQLIO", plan=plan)
    target_sizes = _file_sizes(command, target)
    folder = new_folder(output, "sqlio", sys.argv[1:], request.to_dict(), [part])
    signals = Signals()
    with Console() as console:
        run = execution(
            folder,
            target,
            [part],
            display=console,
            interrupt=signals.interrupt,
            keeps_interrupted=True,
            with_report=report,
            uninterruptible=signals,
        )
        code = run.run()
    if json:
        print(print_json(run_document(folder)), flush=True)
    elif run.points:
        print(format_sqlio(command, measurements_from_point(run.points[-1], file_sizes=target_sizes)), flush=True)
    if run.error is not None:
        say(f"assay: {run.error}")
    if isinstance(run.error, NotAnswering):
        leave_at_once(code)
    sys.exit(int(code))


def _choose(request: Request, facts: PlanFacts) -> StorageTarget:
    plan = load_plan(
        {"activity": [{"read_share": 1.0 if file.operation == "read" else 0.0} for file in facts.files]}, source="sqlio"
    )
    wanted: dict[str, int] = {}
    for file in facts.files:
        size_bytes = file.size_bytes or (os.path.getsize(file.path) if os.path.isfile(file.path) else 0)
        wanted[file.path] = max(size_bytes or SIZE_DEFAULT_BYTES, file.span_bytes or 0)
    return request.choose([Part(name="sqlio", title="SQLIO", plan=plan)], by_path=wanted)


def _plan(facts: PlanFacts, target: StorageTarget) -> Plan:
    names = {str(volume.spec.path): volume for volume in target.volumes}
    activities = []
    for position, file in enumerate(facts.files):
        volume = names[os.path.abspath(file.path)]
        start_bytes = file.start_block * file.block_bytes
        end_bytes = min(file.span_bytes or volume.size_bytes, volume.size_bytes)
        if start_bytes + file.block_bytes > end_bytes:
            raise UsageError(f"-S{file.start_block}: begins at or beyond the end of {file.path}")
        activities.append(
            {
                "name": f"file{position}",
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
    sizes = {str(volume.spec.path): volume.size_bytes for volume in target.volumes}
    before = {str(volume.spec.path): volume.size_bytes or 0 for volume in target.examined}
    shown = []
    for pool in command.pools:
        path = os.path.abspath(pool.path)
        grown = before[path] if before[path] < sizes[path] else None
        shown.append(FileSize(path=pool.path, size_bytes=sizes[path], grown_from_bytes=grown))
    return shown
