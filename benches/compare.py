"""How often `assay compare` calls identical runs changed, and how often it finds a change that was planted.

    python benches/compare.py --folder /data [--pairs 200] [--busy] [--kinds file,null,model,database]

Runs of one setup are made one after the other, then compared: one against one, and three against three. A planted
change multiplies rates and divides latencies of one side by a factor; the noise is that of the real runs. With `--busy`
both processors compute meanwhile. The table goes to benches/results/compare.json, with the deviation from run to run
that `assay.record.intervals.BETWEEN_RUNS` is to cover.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.apps.api import profile
from assay.insight.compare import compare_runs
from assay.insight.differences import ComparedRun, Side
from assay.record.points import current_points
from assay.record.run_folder import RunFolder

ROOT = Path(__file__).parents[1]
TIMING = {"warmup_s": 0.2, "duration_s": 1.0}
FACTORS = (1.1, 1.2)
ACTIVITY = {"block_bytes": 8192, "read_share": 0.7, "queue_depth": 8}


def measured(target: str, results: Path, *, seed: int = 0, size: str | None = None) -> ComparedRun:
    """A run with one point."""
    run = profile(target, plan={"seed": seed, "timing": TIMING, "activity": [ACTIVITY]}, output=results, size=size)
    return ComparedRun({"run_id": run.path.name}, current_points(RunFolder.open(run.path).whole_points()))


def of_database(folder: Path, results: Path) -> ComparedRun:
    """A run of transactions on an embedded PostgreSQL, which is loaded once."""
    before = set(results.iterdir()) if results.exists() else set()
    words = ["oltp", "tpcc", f"embedded:{folder / 'pg'}", "--warehouses", "1", "--users", "2", "--warmup", "0s"]
    command = [sys.executable, "-m", "assay", *words, "--duration", "3s", "--no-report", "-o", str(results)]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = set(results.iterdir()) - before
    folder_of_run = RunFolder.open(made)
    return ComparedRun(folder_of_run.manifest, current_points(folder_of_run.whole_points()))


KINDS: dict[str, Callable[[Path, Path, int], ComparedRun]] = {
    "file": lambda folder, results, _: measured(str(folder / "compare.dat"), results, size="64M"),
    "null": lambda _folder, results, _: measured("null:?latency=200us", results),
    "model": lambda _folder, results, seed: measured("model:nvme-mirror", results, seed=seed),
    "database": lambda folder, results, _: of_database(folder, results),
}


def planted(run: ComparedRun, factor: float) -> ComparedRun:
    """A run whose rates are so many times as large and whose latencies are so many times as small."""

    def changed(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: changed(held, name if name != "latency_ns" else "latency") for name, held in value.items()}
        if isinstance(value, list):
            return [changed(held, key) for held in value]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        return value * factor if key in ("iops", "bytes_per_s", "nopm", "tpm_client") else value

    return ComparedRun(run.manifest, [changed(copy.deepcopy(point), "") for point in run.points])


def first_status(a: list[ComparedRun], b: list[ComparedRun]) -> str:
    """What is said of the first figure: of I/O its rate."""
    found = compare_runs([Side(tuple(a)), Side(tuple(b))]).differences
    return found[0].status if found else "nothing"


def shares(runs: list[ComparedRun], each: int, factor: float) -> dict[str, Any]:
    """How often sides of so many neighbouring runs are called changed."""
    groups = [runs[at : at + each] for at in range(0, len(runs) - each + 1, each)]
    pairs = list(zip(groups[::2], groups[1::2], strict=False))
    found = [first_status(a, [planted(run, factor) for run in b] if factor != 1 else b) for a, b in pairs]
    changed = found.count("changed")
    return {"pairs": len(pairs), "changed": changed, "share": changed / max(len(pairs), 1)}


def between_runs(runs: list[ComparedRun]) -> float:
    """Standard deviation of the logarithm of the rate from run to run."""
    rates = []
    for run in runs:
        point = run.points[0]
        total = point.get("total")
        rate = total["iops"] if total else point["oltp"]["nopm"]
        rates.append(math.log(rate))
    return statistics.stdev(rates)


@contextmanager
def neighbours(wanted: bool) -> Iterator[None]:
    """Both processors at work beside the runs."""
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


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--kinds", default="file,null,model")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--output", type=Path, default=ROOT / "benches" / "results" / "compare.json")
    asked = parser.parse_args()
    table = json.loads(asked.output.read_text()) if asked.output.exists() else {"host": platform.platform(), "rows": {}}
    with tempfile.TemporaryDirectory(dir=asked.folder) as scratch, neighbours(asked.busy):
        for kind in asked.kinds.split(","):
            runs = []
            for number in range(2 * asked.pairs):
                runs.append(KINDS[kind](Path(scratch), Path(scratch) / "results", number))
                print(f"{kind}: run {number + 1} of {2 * asked.pairs}", end="\r", file=sys.stderr)
            row: dict[str, Any] = {"runs": len(runs), "between_runs": between_runs(runs)}
            row["identical, 1 against 1"] = shares(runs, 1, 1.0)
            row["identical, 3 against 3"] = shares(runs, 3, 1.0)
            for factor in FACTORS:
                row[f"planted {factor:g}, 3 against 3"] = shares(runs, 3, factor)
            table["rows"][f"{kind}, {'busy' if asked.busy else 'idle'}"] = row
            print(f"\n{kind}: {json.dumps(row)}")
    asked.output.parent.mkdir(exist_ok=True)
    asked.output.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
