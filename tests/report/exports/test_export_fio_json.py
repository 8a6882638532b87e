"""The fio JSON export: what tools made for fio read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.report.exports import save_export
from assay.report.exports.fio_json import fio_bucket_ns

Points = Callable[..., dict[str, Any]]


def exported(manifest: dict[str, Any], points: list[dict[str, Any]], folder: Path) -> dict[str, dict[str, Any]]:
    paths = save_export("fio-json", manifest, points, folder)
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in paths}


@given(st.integers(0, 2**33))
def test_a_bucket_s_midpoint_is_within_fio_s_error_bound(latency_ns: int) -> None:
    bucket = fio_bucket_ns(latency_ns)
    assert abs(bucket - latency_ns) <= latency_ns / 128
    assert fio_bucket_ns(bucket) == bucket


def test_buckets_are_exact_below_128_ns_and_the_last_one_takes_the_rest() -> None:
    assert [fio_bucket_ns(value) for value in range(128)] == list(range(128))
    assert fio_bucket_ns(2**40) == fio_bucket_ns(2**34 - 1)


def test_a_mix_has_the_options_that_readers_ask_for(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    documents = exported(manifest, [make_point()], tmp_path)
    assert set(documents) == {"fio.json", "data-8k-randrw70/randrw-8-2.json"}
    (job,) = documents["data-8k-randrw70/randrw-8-2.json"]["jobs"]
    options = {"rw": "randrw", "bs": "8k", "iodepth": "8", "numjobs": "2", "rwmixread": "70", "direct": "1"}
    assert job["job options"] == options
    assert all(isinstance(value, str) for value in job["job options"].values())


@pytest.mark.parametrize(
    ("workload", "options"),
    [
        ({"read_share": 1.0}, {"rw": "randread"}),
        ({"read_share": 0.0}, {"rw": "randwrite"}),
        ({"read_share": 1.0, "random_share": 0.0}, {"rw": "read"}),
        ({"read_share": 0.0, "random_share": 0.0}, {"rw": "write"}),
        ({"sync": "fdatasync", "sync_every": 4}, {"fdatasync": "4"}),
        ({"read_share": 0.5, "random_share": 0.0}, {"rw": "rw", "rwmixread": "50"}),
        ({"read_share": 0.5, "random_share": 0.3}, {"rw": "randrw", "percentage_random": "30"}),
        ({"block_bytes": {"512": 0.25, "4096": 0.75}}, {"bs": "4k", "bssplit": "512/25:4k/75"}),
        ({"io_mode": "buffered", "sync": "dsync"}, {"direct": "0", "sync": "dsync"}),
        ({"block_bytes": 2**20}, {"bs": "1m"}),
    ],
)  # fmt: skip
def test_a_workload_becomes_job_options(
    workload: dict[str, Any], options: dict[str, str], manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    (job,) = exported(manifest, [make_point(**workload)], tmp_path)["fio.json"]["jobs"]
    assert options.items() <= job["job options"].items()


def test_an_open_loop_has_its_rate_per_job_and_the_mean_in_flight_as_depth(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    point = make_point(load={"rate": 5000.0, "arrivals": "poisson", "workers": 2})
    point["total"] |= {"iops": 5000.0, "latency_ns": point["total"]["latency_ns"] | {"mean": 2e6}}
    (job,) = exported(manifest, [point], tmp_path)["fio.json"]["jobs"]
    # Little's law: 5,000 a second x 2 ms = 10 in flight, 5 for each of the two jobs.
    expected = {"iodepth": "5", "numjobs": "2", "rate_iops": "2500", "rate_process": "poisson"}
    assert expected.items() <= job["job options"].items()
    assert "open loop" in job["desc"]


def test_a_direction_carries_counts_rates_latency_percentiles_and_bins(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    point = make_point()
    (job,) = exported(manifest, [point], tmp_path)["fio.json"]["jobs"]
    read, measured = job["read"], point["read"]
    assert (read["total_ios"], read["iops"], read["bw_bytes"]) == (700, 140.0, 140 * 8192)
    assert (read["io_bytes"], read["runtime"], read["bw"]) == (700 * 8192, 5000, 1120)
    assert read["lat_ns"]["mean"] == pytest.approx(measured["latency_ns"]["mean"])
    assert read["lat_ns"]["N"] == 700
    assert 0 < read["lat_ns"]["stddev"] < 2 * read["lat_ns"]["mean"]
    assert sum(read["clat_ns"]["bins"].values()) == 700
    assert all(int(value) == fio_bucket_ns(int(value)) for value in read["clat_ns"]["bins"])
    assert read["clat_ns"]["percentile"]["99.000000"] == pytest.approx(measured["latency_ns"]["p99"], rel=0.01)
    percentiles = list(read["clat_ns"]["percentile"].values())
    assert percentiles == sorted(percentiles)
    assert len(percentiles) == 17
    # Batches of 130, 140 and 150 a second deviate by 10; bandwidth by 10 blocks of 8 KiB.
    assert (read["iops_min"], read["iops_max"], read["iops_samples"]) == (130, 150, 3)
    assert read["iops_stddev"] == pytest.approx(10.0)
    assert read["bw_dev"] == pytest.approx(80.0)
    assert job["trim"]["total_ios"] == 0


def test_the_coarse_distribution_adds_up_to_all_ios(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    (job,) = exported(manifest, [make_point()], tmp_path)["fio.json"]["jobs"]
    shares = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
    assert sum(shares) == pytest.approx(100.0)
    assert list(job["latency_ms"])[-1] == ">=2000"


def test_repeats_and_other_workloads_do_not_overwrite_each_other(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    points = [
        make_point("p0001"), make_point("p0002", seed=9), make_point("p0003", block_bytes=4096),
        make_point("p0004", load={"queue_depth": 1, "workers": 2, "outstanding": 2}),
    ]  # fmt: skip
    documents = exported(manifest, points, tmp_path)
    assert set(documents) == {
        "fio.json", "data-8k-randrw70/randrw-8-2.json", "data-8k-randrw70-p0002/randrw-8-2.json",
        "data-4k-randrw70/randrw-8-2.json", "data-8k-randrw70/randrw-1-2.json",
    }  # fmt: skip
    assert [job["jobname"] for job in documents["fio.json"]["jobs"]] == ["p0001", "p0002", "p0003", "p0004"]


def test_activities_that_ran_at_once_are_jobs_of_one_file(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    point, other = make_point(), make_point(read_share=0.0, random_share=0.0, block_bytes=65536, role="log")
    load = {"queue_depth": 4, "workers": 1, "outstanding": 4}
    foreground = {"name": "reads", **point["workload"], "load": load} | {"name": "reads"}
    log = {**other["workload"], "name": "log", "load": load | {"queue_depth": 1}}
    point["workload"] = {"kind": "io", "name": "database ../x", "activities": [foreground, log]}
    point["load"] = {"kind": "mixed"}
    point["activities"] = [
        {"name": "reads", "role": "data", **{side: point[side] for side in ("read", "write", "total")}},
        {"name": "log", "role": "log", **{side: other[side] for side in ("read", "write", "total")}},
    ]
    documents = exported(manifest, [point], tmp_path)
    (name,) = set(documents) - {"fio.json"}
    assert name == "mixed-database-..-x/randrw-4-1.json"
    assert [(job["jobname"], job["job options"]["rw"]) for job in documents[name]["jobs"]] == [
        ("reads", "randrw"),
        ("log", "write"),
    ]


def test_a_point_without_any_io_is_left_out(manifest: dict[str, Any], make_point: Points, tmp_path: Path) -> None:
    point = make_point() | {"read": None, "write": None, "total": None}
    assert exported(manifest, [point], tmp_path)["fio.json"]["jobs"] == []


def test_fio_plot_reads_every_file_with_its_own_parser(
    manifest: dict[str, Any], make_point: Points, tmp_path: Path
) -> None:
    pytest.importorskip("fio_plot", reason="fio-plot is not installed")
    from fio_plot.fiolib import jsonimport, jsonparsing

    def read(settings: dict[str, Any]) -> list[dict[str, Any]]:
        files = jsonimport.list_json_files(settings)
        (directory,) = jsonparsing.parse_json_data(settings, jsonimport.import_json_dataset(settings, files))
        rows: list[dict[str, Any]] = directory["data"]
        return rows

    loads = [{"queue_depth": depth, "workers": 2, "outstanding": 2 * depth} for depth in (1, 8, 32)]
    points = [make_point(f"p000{at}", load=load, seed=at) for at, load in enumerate(loads)]
    points.append(make_point("p0009", read_share=1.0))
    exported(manifest, points, tmp_path)
    settings = {
        "input_directory": [str(tmp_path / "data-8k-randrw70")], "rw": "randrw", "iodepth": [1, 8, 32], "numjobs": [2],
        "filter": ["read"], "include_hosts": None, "exclude_hosts": None, "compare_graph": False,
    }  # fmt: skip
    rows = read(settings)
    assert [int(row["iodepth"]) for row in rows] == [1, 8, 32]
    for row, point in zip(rows, points, strict=False):
        assert (row["type"], row["rw"], row["bs"], row["numjobs"]) == ("read", "randrw", "8k", "2")
        assert row["iops"] == point["read"]["iops"]
        assert row["lat"] == pytest.approx(point["read"]["latency_ns"]["mean"])
        assert row["lat_stddev"] > 0
        assert row["cpu_usr"] == 25.0
    assert [row["iops"] for row in read(settings | {"filter": ["write"]})] == [
        point["write"]["iops"] for point in points[:3]
    ]
