"""Exports never cost a measurement: they are tried before it, and one that fails costs no other and no verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.apps.cli.exporting import rehearse_exports
from assay.base.errors import AssayError, UsageError
from assay.record import durable
from assay.report import exports
from assay.report.exports import EXPORTS, rehearse
from assay.report.exports.rehearsal import expected_point
from assay.workloads.io.plan import load_plan
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named
from assay_command import Bench

BURSTS = {
    "timing": {"warmup_s": 0, "duration_s": 0.6},
    "activity": [
        {"name": "reads", "queue_depth": 2, "read_share": 1},
        {"name": "checkpoint", "read_share": 0, "burst_interval_s": 0.2, "burst_bytes": "64K"},
        {"name": "stream", "read_share": 0, "random_share": 0, "rate": 200},
    ],
}


def part(plan: Any) -> Part:
    return Part(name="p", title="P", plan=plan)


def test_every_export_of_checkpoint_bursts_is_written_after_the_run(bench: Bench) -> None:
    plan = bench.folder / "plan.json"
    plan.write_text(json.dumps(BURSTS))
    done = bench.profile(bench.target, "--size", "16M", "--plan", plan, "--export", ",".join(EXPORTS))
    assert done.code == 0, done.stderr
    told = json.loads((bench.run / "fio.json").read_text())
    jobs = {job["jobname"]: job for job in told["jobs"]}
    assert set(jobs) == {"reads", "checkpoint", "stream"}
    assert (
        jobs["checkpoint"]["desc"]
        == "checkpoint; bursts, latency from the intended start; iodepth is the mean number in flight"
    )
    assert int(jobs["checkpoint"]["job options"]["iodepth"]) >= 1
    assert {"points.csv", "openmetrics.txt"} <= {path.name for path in bench.run.iterdir()}


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_every_plan_that_comes_with_assay_can_be_exported(name: str) -> None:
    plans = [workload_named("io").preset(preset) for preset in workload_named("io").presets()]
    plans += [
        load_plan(BURSTS, source="bursts"),
        workload_named("tpcc").load_plan({}, source="tpcc"),
        workload_named("integrity").load_plan({}, source="v"),
    ]
    rehearse_exports([name], [part(plan) for plan in plans])


def fails(manifest: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    del manifest
    return {"points.csv": str([point["nowhere"] for point in points])}


def test_what_cannot_be_expressed_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPORTS, "csv", fails)
    with pytest.raises(
        UsageError, match=r"--export csv: cannot express what this plan measures \(KeyError: 'nowhere'\)"
    ):
        rehearse_exports(["csv"], [part(load_plan(BURSTS, source="bursts"))])
    with pytest.raises(UsageError, match="--export csv"):
        rehearse(["csv"], [expected_point(1, {"kind": "io"}, {})])


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_one_that_fails_at_the_end_is_one_line_and_code_3(bench: Bench) -> None:
    """The real command, with an export broken only for points that were measured."""
    broken = bench.folder / "broken.py"
    broken.write_text(
        "from assay.report import exports\n"
        "def fails(manifest, points):\n"
        "    return {'points.csv': '' if 'run_id' not in manifest else manifest['nowhere']}\n"
        "exports.EXPORTS['csv'] = fails\n"
        "from assay.apps.cli import main\n"
        "main()\n"
    )
    load = ["--queue-depth", "1", "--warmup", "0s", "--duration", "0.3s"]
    arguments = ["profile", "null:", *load, "--no-report", "-o", bench.results, "--export", "csv,openmetrics", "--json"]
    done = subprocess.run([sys.executable, broken, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
    assert line.startswith(f"assay: --export csv: {bench.run}/points.csv cannot be made of these points (KeyError")
    assert (bench.run / "openmetrics.txt").exists()
    assert json.loads(done.stdout)["status"] == "done"


def test_points_that_are_no_io_are_left_out_and_said(bench: Bench) -> None:
    done = bench.verify(bench.target, "--size", "8M", "--duration", "1s", "--export", "fio-json,csv")
    assert done.code == 0, done.stderr
    assert "fio-json: 4 points of transactions or of verifying are no jobs of fio" in done.stderr
    assert json.loads((bench.run / "fio.json").read_text())["jobs"] == []
    assert len((bench.run / "points.csv").read_text().splitlines()) == 5


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "points.csv").write_text("the one before")

    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write_whole", full)
    with pytest.raises(AssayError, match=r"cannot write .*/points\.csv: No space left"):
        exports.save_export("csv", {}, [expected_point(1, {"kind": "io", "block_bytes": 1}, {})], tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the one before"]
