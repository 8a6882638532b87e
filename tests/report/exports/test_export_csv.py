"""The CSV export: one row a point, flat names, base units."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.record.load import POINT_COLUMNS
from assay.report.exports import save_export
from assay.report.exports.csv import COLUMNS, export_csv


def rows(manifest: dict[str, Any], points: list[dict[str, Any]]) -> list[dict[str, str]]:
    out = io.StringIO(newline="")
    export_csv(manifest, points, out)
    return list(csv.DictReader(io.StringIO(out.getvalue(), newline=""), strict=True))


def test_a_row_has_the_point_s_values_under_flat_names(
    manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]]
) -> None:
    point = make_point()
    (row,) = rows(manifest, [point])
    assert row["run_id"] == manifest["run_id"]
    assert (row["id"], row["block_bytes"], row["outstanding"]) == ("p0001", "8192", "16")
    assert row["workload"] == '8 KiB "random" 70/30'
    assert float(row["read_latency_p99_ns"]) == point["read"]["latency_ns"]["p99"]
    assert float(row["write_iops"]) == point["write"]["iops"]
    assert float(row["iops"]) == point["total"]["iops"]
    assert (row["steady_reached"], row["saturated"]) == ("true", "false")


def test_the_names_are_those_of_the_data_frame() -> None:
    assert set(POINT_COLUMNS) <= set(COLUMNS)


def test_what_was_not_measured_is_an_empty_cell(
    manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]]
) -> None:
    (row,) = rows(manifest, [make_point(read_share=1.0, load={"rate": 5000.0, "arrivals": "poisson", "workers": 1})])
    assert row["write_iops"] == row["write_latency_p99_ns"] == row["queue_depth"] == row["service_latency_p99_ns"] == ""
    assert (row["rate"], row["arrivals"]) == ("5000.0", "poisson")


def test_a_mix_of_block_sizes_has_a_column_of_its_own(
    manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]]
) -> None:
    (row,) = rows(manifest, [make_point(block_bytes={"512": 0.5, "4096": 0.5})])
    assert row["block_bytes"] == ""
    assert row["block_mix"] == '{"4096": 0.5, "512": 0.5}'


def test_missed_limits_are_named_and_what_could_not_be_judged_is_not(
    manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]]
) -> None:
    point = make_point()
    (row,) = rows(manifest, [point])
    assert (row["met"], row["limits_missed"]) == ("false", "write.mean<=1ms (data/f)")
    point["limits"] = point["limits"][2:]
    assert rows(manifest, [point])[0]["met"] == ""


def test_a_point_cut_short_still_has_a_row(manifest: dict[str, Any]) -> None:
    (row,) = rows(manifest, [{"id": "p0001", "load": {"kind": "mixed"}, "total": None}])
    assert row["id"] == "p0001"
    assert row["iops"] == ""


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_is_never_a_formula_and_a_number_stays_one(
    sign: str, manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]]
) -> None:
    point = make_point(name=f"{sign}1+1")
    point["steady"]["slope_share"] = -0.25
    point["limits"] = [{"limit": f"{sign}2", "scope": "data", "value": 1.0, "unit": "ns", "met": False}]
    (row,) = rows({**manifest, "run_id": f"{sign}3"}, [point])
    assert row["workload"] == f"'{sign}1+1"
    assert row["run_id"] == f"'{sign}3"
    assert row["limits_missed"].startswith(f"'{sign}2")
    assert row["steady_slope_share"] == "-0.25"


def test_saving_makes_the_folder_and_names_the_file(manifest: dict[str, Any], tmp_path: Path) -> None:
    (path,) = save_export("csv", manifest, [{"id": "p0001"}, {"id": "p0002"}], tmp_path / "new" / "folder")
    lines = path.read_bytes().split(b"\r\n")
    assert len(lines) == 4
    assert lines[-1] == b""


@pytest.mark.parametrize("name", ["csv", "fio-json", "openmetrics"])
def test_every_export_takes_manifest_points_and_a_folder_and_returns_its_files(
    name: str, manifest: dict[str, Any], make_point: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    paths = save_export(name, manifest, [make_point(), make_point("p0002", read_share=1.0)], tmp_path / name)
    assert paths
    assert all(path.is_relative_to(tmp_path / name) and path.stat().st_size > 0 for path in paths)
    assert sorted(paths) == sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["csv", "fio-json", "openmetrics"])
def test_a_run_without_points_exports_too(name: str, manifest: dict[str, Any], tmp_path: Path) -> None:
    assert save_export(name, manifest, [], tmp_path / name)
