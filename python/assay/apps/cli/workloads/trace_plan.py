"""`assay trace plan`: a synthetic plan of a trace, and how faithful it is."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.apps.cli import options as opt
from assay.apps.cli.commands import usual
from assay.apps.cli.console import say
from assay.base.errors import UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.record.shapes.point import Point
    from assay.traces.character.whole import TraceCharacter
    from assay.workloads.io.from_trace import PlanOfTrace
    from assay.workloads.plan import Part

EXAMPLES = """
Examples:

`assay trace plan orders.trace > orders.toml; assay profile /data/f --plan orders.toml`

`assay trace plan orders.trace --on model:ps6100xv -o orders.toml`
"""

MODEL = "model:nvme-mirror"
PLANNED, REPLAYED = "planned", "replayed"
"""Parts that stand beside each other."""


@usual("--on", "--check", "--output")
def plan_trace(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace, captured or imported.")],
    on: Annotated[str, typer.Option("--on", metavar="MODEL", help="The model that the plan is tried on.")] = MODEL,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Say how faithful the plan is.")] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan there (standard output).")
    ] = None,
    debug: opt.Debug = False,
) -> None:
    """Make a plan that asks for what a trace asks for, and say how near it comes on a model."""
    del debug
    from assay.report.files import replace_file
    from assay.traces.character.whole import characterise
    from assay.traces.file import read_trace
    from assay.workloads.io.from_trace import plan_of_trace

    if check and not on.startswith("model:"):
        raise UsageError(f"--on: {on} is no model; give one as model:NAME, or --no-check")
    found = characterise(read_trace(trace))
    if not found.counts["reads"] + found.counts["writes"]:
        raise UsageError(f"{printable(trace)}: holds no I/O that reads or writes")
    made = plan_of_trace(found, trace.stem)
    if output is None:
        print(made.toml(), end="")
    else:
        replace_file(output, made.toml().encode())
    for text in made.left_out:
        say(f"note: {text}")
    if check:
        _say_how_faithful(made, found, trace, on)


def _say_how_faithful(made: PlanOfTrace, found: TraceCharacter, trace: Path, on: str) -> None:
    """Run the plan on a model, and the trace beside it, and say on standard error how they differ."""
    points = _measured(made, trace, on)
    synthetic, replayed = points[PLANNED], points.get(REPLAYED)
    say(f"plan on {on} against {'the trace there' if replayed else 'the trace'}:")
    for name, wanted, got in _compared(synthetic, replayed, found):
        difference = f"{(got - wanted) / wanted:+.1%}" if wanted else "-"
        say(f"  {name}: {wanted:,.4g} in the trace, {got:,.4g} in the plan, {difference}")
    if replayed is None:
        say("  latencies are not compared: the trace was measured on other storage")


def _compared(synthetic: Point, replayed: Point | None, found: TraceCharacter) -> Sequence[tuple[str, float, float]]:
    """Name, value of the trace and value of the plan of each figure."""
    rows: list[tuple[str, float, float]] = []
    beside: Point | None = replayed
    for own, other, side, count, moved in (
        (synthetic.get("read"), beside and beside.get("read"), "read", found.counts["reads"], found.read_bytes),
        (synthetic.get("write"), beside and beside.get("write"), "write", found.counts["writes"], found.write_bytes),
    ):
        if not count or not own:
            continue
        iops, bytes_per_s = own.get("iops") or 0.0, own.get("bytes_per_s") or 0.0
        rows.append((f"{side} IOPS", count / found.seconds, iops))
        rows.append((f"{side} KiB", moved / count / 1024, bytes_per_s / iops / 1024 if iops else 0.0))
        if other:
            before, after = other["latency_ns"], own["latency_ns"]
            rows.append((f"{side} mean us", (before.get("mean") or 0) / 1e3, (after.get("mean") or 0) / 1e3))
            rows.append((f"{side} p99 us", (before.get("p99") or 0) / 1e3, (after.get("p99") or 0) / 1e3))
    return rows


def _measured(made: PlanOfTrace, trace: Path, on: str) -> dict[str, Point]:
    """The last point of the plan, and of a replay of the trace where that is known, on the model."""
    from assay.apps.cli.running import OutputOptions, start
    from assay.apps.cli.taken import taking
    from assay.record.points import current_points
    from assay.record.run_folder import RunFolder
    from assay.run.request import TargetRequest

    parts = _parts(made, trace, on)
    with tempfile.TemporaryDirectory() as folder, taking(["trace", "plan", str(trace)]) as taken:
        start("profile", TargetRequest(paths=[on]), parts, OutputOptions(output=Path(folder), report=False, quiet=True))
        assert taken.folder is not None
        points = current_points(RunFolder.open(taken.folder).points())
    return {str(point.get("part")): point for point in points}


def _parts(made: PlanOfTrace, trace: Path, on: str) -> list[Part[Any]]:
    from assay.targets.arrays.model.configuration import configure
    from assay.targets.arrays.model.options import parse_model_target
    from assay.workloads.plan import Part
    from assay.workloads.replay.plan import ReplayPlan

    array = configure(*parse_model_target(on.removeprefix("model:")))
    usable = array.usable_bytes
    plan = made.plan()
    region = [0.0, min(made.span_bytes / usable, 1.0)]
    activities = tuple({**{key: value for key, value in one.items() if key not in ("sync", "sync_every")},
                        "region": region} for one in plan.activity)  # fmt: skip
    on_model = plan.model_copy(update={"size": None, "activity": activities})
    replayed = ReplayPlan.model_validate({"traces": [str(trace)], "fit": "fold"})
    return [Part(name=PLANNED, title="Plan of the trace", plan=on_model),
            Part(name=REPLAYED, title="The trace itself", plan=replayed)]  # fmt: skip
