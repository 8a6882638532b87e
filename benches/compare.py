"""How often `assay compare` calls identical runs changed, and how often it finds a change that was planted.

    python benches/compare.py [--kinds model,file,database] [--load idle|spinning|shared] [--seconds 1]
                               [--folder /data]

Runs of one setup are made one after the other, with one short point each, and kept in the folder, so that a bench that
was broken off goes on. They are then compared: one against one, without and with other runs of the target; three
against three; and three against three in pairs. A planted change multiplies the rates of one side by
a factor; the noise is that of the real runs. `--load` names what else the machine does, for the table: `spinning` keeps
every processor busy itself, `shared` says that others use the machine. `--runs 0` judges the runs that were kept. The
table goes to benches/results/compare.md, with the deviation from run to run that
`assay.record.intervals.BETWEEN_RUNS` is to cover.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import os
import platform
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.apps.service import execution
from assay.base.progress import SILENT
from assay.insight.compare import compare_runs
from assay.insight.differences import ComparedRun, ComparedSide
from assay.run.execute import new_folder
from assay.run.request import TargetRequest
from assay.run.targets import choose_targets
from assay.targets.arrays.live.process import arrays_of_run
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named

ROOT = Path(__file__).parents[1]
FACTORS = (1.1, 1.2)
ACTIVITY = {"block_bytes": 8192, "read_share": 0.7, "queue_depth": 8}
TPCC = {"users": 2, "connections": 2, "warehouses": 1}
RUNS: Mapping[str, int] = {"model": 1200, "file": 1200, "null": 1200, "database": 480}
"""Runs of each kind: of 1,200 come 600 pairs of single runs and 200 of three; those of databases take longest."""
HISTORY = 8
"""Runs before a pair that stand for the history of its target."""


def measured(kind: str, target: str, plan: Mapping[str, Any], results: Path, size: str | None = None) -> ComparedRun:
    """A run with one point; its folder is removed."""
    workload = workload_named(kind)
    base = workload.preset(workload.preset_default).model_dump(mode="json", exclude_unset=True) if kind != "io" else {}
    part = Part(name=kind, title=kind, plan=workload.load_plan({**base, **plan}, source="bench"))
    request = TargetRequest(paths=[target], size=size)
    with arrays_of_run():
        chosen, parts = choose_targets(request, [part], None)
        with new_folder(results, "bench", ["bench"], request.to_dict(), parts) as folder:
            run = execution(folder, chosen, parts, display=SILENT, interrupt=threading.Event(), with_report=False)
            run.run()
    shutil.rmtree(folder.path)
    if run.error is not None:
        raise run.error
    return ComparedRun({"run_id": folder.path.name}, run.points)


def of_database(folder: Path, number: int, seconds: float) -> ComparedRun:
    """A run of transactions on an embedded PostgreSQL as the first one loaded it: without a restore it grows."""
    actions = ["run"] if number else ["load", "save", "run"]
    timing = {"warmup_s": 0, "duration_s": seconds}
    plan = {**TPCC, "actions": actions, "restores": "always", "timing": timing}
    return measured("tpcc", f"embedded:{folder / 'pg'}", plan, folder / "results")


def of_blocks(target: str, size: str | None = None) -> Callable[[Path, int, float], ComparedRun]:
    """A run of reads and writes; its seed is the number of the run."""

    def run(folder: Path, number: int, seconds: float) -> ComparedRun:
        timing = {"warmup_s": 0.2, "duration_s": seconds}
        plan = {"activity": [ACTIVITY], "timing": timing, "seed": number}
        return measured("io", target.format(folder=folder), plan, folder / "results", size)

    return run


KINDS: dict[str, Callable[[Path, int, float], ComparedRun]] = {
    "file": of_blocks("{folder}/compare.dat", "64M"),
    "null": of_blocks("null:?latency=200us"),
    "model": of_blocks("model:nvme-mirror"),
    "database": of_database,
}


def collected(kind: str, load: str, folder: Path, count: int, seconds: float) -> list[ComparedRun]:
    """So many runs of a kind: those that were kept, and new ones until there are enough."""
    kept = folder / f"runs-{kind}-{load}-{seconds:g}s.jsonl"
    lines = kept.read_text().splitlines()[: count or None] if kept.exists() else []
    runs = [ComparedRun({"run_id": str(number)}, json.loads(line)) for number, line in enumerate(lines)]
    with kept.open("a") as file:
        for number in range(len(runs), count):
            run = KINDS[kind](folder, number, seconds)
            file.write(json.dumps(run.points) + "\n")
            file.flush()
            runs.append(run)
            print(f"{kind}: run {number + 1} of {count}", end="\r", file=sys.stderr)
    return runs


def planted(run: ComparedRun, factor: float) -> ComparedRun:
    """A run whose rates are so many times as large."""

    def changed(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: changed(held, name) for name, held in value.items()}
        if isinstance(value, list):
            return [changed(held, key) for held in value]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        return value * factor if key in ("iops", "bytes_per_s", "nopm", "tpm_client") else value

    return (
        run if factor == 1 else ComparedRun(run.manifest, [changed(copy.deepcopy(point), "") for point in run.points])
    )


def between_runs(runs: Sequence[ComparedRun], distance: int = 1) -> float:
    """Standard deviation of the logarithm of the rate between runs so far apart."""
    totals = [run.points[0].get("total") for run in runs]
    rates = [one["iops"] if one else run.points[0]["oltp"]["nopm"] for one, run in zip(totals, runs, strict=True)]
    steps = [math.log(b / a) for a, b in zip(rates, rates[distance:], strict=False) if a and b]
    return math.sqrt(statistics.fmean(step**2 for step in steps) / 2)


@contextmanager
def neighbours(wanted: bool) -> Iterator[None]:
    """All processors at work beside the runs."""
    count = os.cpu_count() or 1
    others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count if wanted else 0)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()


def _spin() -> None:
    while True:
        sum(range(10_000))


def judged(runs: Sequence[ComparedRun], factor: float, each: int, how: str = "") -> str:
    """How often neighbouring sides of so many runs are called changed."""
    found, stands, pairs = 0, 0, 0
    for at in range(0, len(runs) - 2 * each + 1, 2 * each):
        block = runs[at : at + 2 * each]
        a, b = (block[::2], block[1::2]) if how == "in pairs" else (block[:each], block[each:])
        others = runs[max(at - HISTORY, 0) : at] if how == "with history" else []
        sides = [ComparedSide(tuple(a)), ComparedSide(tuple(planted(run, factor) for run in b) if factor != 1 else b)]
        comparison = compare_runs(sides, history=[ComparedSide(tuple(others))], paired=how == "in pairs")
        first = comparison.compared[0]
        pairs += 1
        found += first.status == "changed"
        stands += any(row.stands for row in comparison.compared)
    return f"{found} of {pairs} ({found / max(pairs, 1):.1%}); any stands out: {stands}"


ROWS = [
    ("identical, 1 against 1", 1.0, 1, ""),
    ("identical, 1 against 1, 8 other runs known", 1.0, 1, "with history"),
    ("identical, 3 against 3", 1.0, 3, ""),
    ("identical, 3 against 3, in pairs", 1.0, 3, "in pairs"),
    *((f"{factor - 1:.0%} planted, 3 against 3{', ' + how if how else ''}", factor, 3, how)
      for factor in FACTORS for how in ("", "in pairs")),
]  # fmt: skip
"""What is asked of the runs: what is planted, how many runs a side has, and how they are compared."""


def write_table(path: Path, name: str, runs: Sequence[ComparedRun]) -> None:
    """Replace the rows of one kind of runs, which has this name."""
    title = f"## {name}"
    text = path.read_text() if path.exists() else f"# Identical runs compared\n\n{platform.platform()}\n"
    head, *others = text.split("\n## ")
    others = [one for one in others if not f"## {one}".startswith(title + "\n")]
    deviations = f"{between_runs(runs):.1%} between neighbours, {between_runs(runs, 100):.1%} between runs 100 apart"
    lines = [name, "", f"{len(runs)} runs; standard deviation of the rate {deviations}.", ""]
    lines += ["| runs | called changed |", "|---|---|"]
    for asked, factor, each, how in ROWS:
        lines.append(f"| {asked} | {judged(runs, factor, each, how)} |")
        print(f"{name}: {asked}: {lines[-1].split('|')[2].strip()}", flush=True)
    path.write_text("\n## ".join([head, *sorted([*others, "\n".join(lines) + "\n"])]))


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "assay-compare")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kinds", default="model,file,database")
    parser.add_argument("--load", choices=("idle", "spinning", "shared"), default="idle")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--output", type=Path, default=ROOT / "benches" / "results" / "compare.md")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    with neighbours(asked.load == "spinning"):
        for kind in asked.kinds.split(","):
            count = RUNS[kind] if asked.runs is None else asked.runs
            runs = collected(kind, asked.load, asked.folder, count, asked.seconds)
            length = "" if asked.seconds == 1 else f", points of {asked.seconds:g} s"
            write_table(asked.output, f"{kind}, {asked.load}{length}", runs)


if __name__ == "__main__":
    main()
