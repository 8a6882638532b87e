"""Loading a run: flat frames of whatever is there, null where nothing was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from assay.apps.api import Run, load
from assay.base.errors import RunFolderError
from assay.record.run_folder import RunFolder
from series_rows import SCHEMA, batches_of

LATENCY_NS = {
    "mean": 83000.5, "p50": 80000, "p90": 90000, "p95": 95000, "p99": 99000, "p99_9": 99900, "p99_99": 99990,
    "max": 120000,
}  # fmt: skip


def direction(count: int, iops: float) -> dict[str, Any]:
    return {
        "count": count,
        "iops": iops,
        "bytes_per_s": iops * 8192,
        "latency_ns": LATENCY_NS,
        "histogram": "HISTFAAAAA==",
    }


POINT: dict[str, Any] = {
    "id": "p0001", "key": "ab" * 32, "part": "oltp", "repeat": 0, "purpose": "grid",
    "started_utc_ns": 1795169200 * 10**9, "warmup_s": 1.0, "measured_s": 5, "ended_by": "steady",
    "workload": {
        "kind": "io", "name": "8 KiB random 70/30", "role": "data", "block_bytes": 8192, "read_share": 0.7,
        "random_share": 1,
    },
    "load": {"queue_depth": 8, "workers": 12, "outstanding": 96},
    "read": direction(700, 3500), "write": direction(300, 1500.0), "total": direction(1000, 5000.0), "flush": None,
    "errors": {"count": 2, "kinds": {"EIO": 2}},
    "steady": {"reached": True, "window_s": 4.0, "slope_share": 0.01, "half_width_share": 0.02},
    "generator": {"cpu_share": 0.3, "schedule_lag_p99_ns": None, "clock_ns": 11, "saturated": False},
    "limits": [
        {"limit": "read.mean<=20ms", "scope": "data/f", "value": 83000.0, "unit": "ns", "met": True},
        {"limit": "cpu<80%", "scope": "host", "value": None, "unit": "share", "met": None},
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "profile", {})


def test_an_empty_run_has_empty_frames_with_all_columns(folder: RunFolder) -> None:
    run = load(folder.path)
    assert run.manifest["status"] == "running"
    assert run.points_raw == []
    for frame in (run.points, run.answers, run.verdict, run.series):
        assert frame.height == 0
        assert frame.width > 0
    assert run.series.columns == SCHEMA.names
    assert run.points.schema["read_latency_p99_ns"] == pl.Float64
    assert run.points.schema["met"] == pl.Boolean


def test_a_point_becomes_a_flat_row(folder: RunFolder) -> None:
    folder.append_point(POINT)
    run = load(folder.path)
    assert run.points_raw == [POINT]
    (found,) = run.points.to_dicts()
    expected = {
        "id": "p0001", "part": "oltp", "workload": "8 KiB random 70/30", "block_bytes": 8192, "read_share": 0.7,
        "random_share": 1.0, "queue_depth": 8, "workers": 12, "outstanding": 96, "rate": None, "iops": 5000.0,
        "read_count": 700, "write_iops": 1500.0, "total_bytes_per_s": 40960000.0, "read_latency_mean_ns": 83000.5,
        "write_latency_p50_ns": 80000.0, "read_latency_p99_ns": 99000.0, "total_latency_p99_99_ns": 99990.0,
        "read_latency_max_ns": 120000.0, "flush_count": None, "met": True, "steady_reached": True, "saturated": False,
        "errors_count": 2, "measured_s": 5.0,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("met", "expected"),
    [([], None), ([None], None), ([True, None], True), ([True, False], False), ([False, None], False)],
)
def test_a_point_meets_its_limits_if_all_that_could_be_judged_are_met(
    folder: RunFolder, met: list[bool | None], expected: bool | None
) -> None:
    folder.append_point({**POINT, "limits": [{"limit": "read.mean<=20ms", "met": each} for each in met]})
    assert load(folder.path).points["met"].to_list() == [expected]


def test_what_a_point_lacks_is_null(folder: RunFolder) -> None:
    folder.append_point({**POINT, "write": None, "load": {"rate": 5000.0, "arrivals": "poisson", "workers": 1}})
    mixed = {"load": {"kind": "mixed"}, "workload": {"block_bytes": {"512": 0.5, "4096": 0.5}}}
    folder.append_point({**POINT, "key": "mixed", **mixed})
    folder.append_point({"id": "p0003"})
    points = load(folder.path).points
    assert points["write_iops"].to_list() == [None, 1500.0, None]
    assert points["rate"].to_list() == [5000.0, None, None]
    assert points["outstanding"].to_list() == [None, None, None]
    assert points["block_bytes"].to_list() == [8192, None, None]
    assert points["workload"].to_list() == ["8 KiB random 70/30", None, None]
    assert points["met"].to_list() == [True, True, None]


def test_answers_and_verdict_are_frames(folder: RunFolder) -> None:
    answer = {
        "workload": POINT["workload"],
        "part": "oltp",
        "axis": "outstanding",
        "point_ids": ["p0001", "p0002"],
        "max": {"outstanding": 96, "iops": 5037.0, "bytes_per_s": 41263104.0, "point_id": "p0001"},
        "first_failing": None,
        "limited_by": "axis end",
        "interval_95": [4900.0, 5170.0],
        "non_monotone": False,
    }
    verdict = {"question": "log", "limit": "write.mean<=5ms", "value": 1, "unit": "ns", "met": None, "meaning": "holds"}
    folder.update(answers=[answer, {**answer, "max": None, "interval_95": None}], verdict=[verdict])
    run = load(folder.path)
    assert run.answers["max_outstanding"].to_list() == [96, None]
    assert run.answers["max_iops"].to_list() == [5037.0, None]
    assert run.answers["first_failing_point_id"].to_list() == [None, None]
    assert run.answers["interval_95_low"].to_list() == [4900.0, None]
    assert run.answers["interval_95_high"].to_list() == [5170.0, None]
    assert run.answers["workload"].to_list() == ["8 KiB random 70/30"] * 2
    assert run.verdict.to_dicts() == [{**verdict, "value": 1.0}]


def test_series_are_read_from_segments_and_from_the_parquet_file(folder: RunFolder) -> None:
    values: list[Any] = [7, "wall", 10**9, "client", "h", "host", "cpu", "", "user_share", "gauge", 0.5]
    row = dict(zip(SCHEMA.names, values, strict=True))
    writer = folder.series_writer()
    writer.write(batches_of([row]))
    assert load(folder.path).series.to_dicts() == [row]
    writer.compact()
    assert load(folder.path).series.to_dicts() == [row]


def test_a_run_cut_off_by_a_crash_loads_what_was_finished(folder: RunFolder) -> None:
    folder.append_point(POINT)
    with (folder.path / "points.jsonl").open("a") as file:
        file.write(json.dumps(POINT)[:200])
    (folder.path / "series").mkdir()
    (folder.path / "series" / "0123456789abcdef.arrow.part").write_bytes(b"\xff\xff\xff\xff\x10")
    run = load(folder.path)
    assert run.points.height == 1
    assert run.series.height == 0


def test_a_run_is_loaded_while_another_process_holds_its_lock(folder: RunFolder) -> None:
    folder.lock()
    assert isinstance(load(str(folder.path)), Run)


def test_what_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"has no run\.json"):
        load(tmp_path)


def test_importing_the_loader_and_the_run_folder_imports_no_heavy_package() -> None:
    code = "import sys, assay.record.load; print({'polars', 'arro3', 'numpy'} & set(sys.modules))"
    source = Path(__file__).parents[2] / "python"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")
