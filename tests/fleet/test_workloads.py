"""Each kind of workload over two hosts: each host has its own databases, and the figures are those of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.workloads.registry import workload_named
from assay.workloads.tpch.scores import throughput_score
from assay_command import ANSWERED, Bench

HOSTS = ("--hosts", "local,local")
SLOW = "two agents as processes; that its figures come together runs by default"


def over(bench: Bench, *words: str | Path) -> dict[str, Any]:
    done = bench.assay(*words, *HOSTS, "--json", "--quiet", "--no-report", "-o", bench.results, timeout_s=280)
    assert done.code in ANSWERED, done.stderr
    return done.document


def own_figures(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    (point,) = document["points"]
    return [host["point"][key] for host in point["hosts"]]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def database(name: str, reads: float, writes: float) -> dict[str, Any]:
    streams = {"database_read": reads, "database_write": writes, "log_write": 10.0}
    rates = {
        key: {"per_s": value, "bytes_mean": 4096.0, "latency_mean_ns": value * 1e6, "latency_peak_ns": None}
        for key, value in streams.items()
    }
    return {"name": name, "server": 1, "passive": False, "transactional_iops": reads + writes, **rates}


def test_mailbox_databases_keep_their_figures_and_ratios_are_those_of_all() -> None:
    mailbox = workload_named("mailbox")
    points = []
    for host, (reads, writes) in (("a", (60.0, 30.0)), ("b", (40.0, 20.0))):
        own = {"databases": [database("db1", reads, writes)], "servers": [{"name": "server1", "mailboxes": 5}],
               "ratios": {"read_write": {"value": 9.0, "expected": [1.5, 2.0]}}, "mailboxes": 5}  # fmt: skip
        points.append({"mailbox": mailbox.of_host(own, host), "measured_s": 1.0})
    found = mailbox.merged(points)["mailbox"]
    assert [(one["name"], one["transactional_iops"]) for one in found["databases"]] == [
        ("a:db1", 90.0),
        ("b:db1", 60.0),
    ]
    assert [one["name"] for one in found["servers"]] == ["a:server1", "b:server1"]
    assert found["mailboxes"] == 10
    assert found["ratios"]["read_write"] == {"value": 2.0, "expected": [1.5, 2.0]}
    assert found["ratios"]["database_log"]["value"] == 7.5


def test_a_run_of_queries_is_one_test_of_the_streams_of_all_hosts() -> None:
    told = [{"scale": 0.01, "runs": [{"throughput": score, "composite": None, "point_ids": ["p0001"]}],
             "throughput": score} for score in (417.0, 466.0)]  # fmt: skip
    found = workload_named("tpch").merged_told(told, [{"id": "p0001", "dss": {"throughput": 833.7}}])
    assert found["throughput"] == 833.7
    assert found["runs"] == [{"throughput": 833.7, "composite": None, "point_ids": ["p0001"]}]


@pytest.mark.parametrize("option", ["--hosts", "--cluster"])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_assess_is_of_one_host(bench: Bench, option: str) -> None:
    done = bench.assay("assess", bench.folder, option, "local,local")
    assert done.code == 2
    assert f"{option}: assess examines the storage of the host it runs on" in done.complaint
    assert bench.runs == []


@pytest.mark.slow(reason=SLOW)
def test_mailboxes(bench: Bench) -> None:
    for name in ("m-1", "m-2"):
        (bench.folder / name).mkdir()
    words = ("--mailboxes", "20", "--mailbox-size", "3M", "--databases", "2", "--checkpoint-depth", "256K")
    load = ("--iops-per-mailbox", "20", "--warmup", "1s", "--duration", "3s")
    found = over(bench, "mailbox", bench.folder / "m-{number}.dat", *words, *load)
    told = found["mailbox"]
    own = own_figures(found, "mailbox")
    assert [one["mailboxes"] for one in own] == [10, 10]
    assert told["achieved_iops"] == pytest.approx(sum(one["achieved_iops"] for one in own))
    names = {"local-1:db1", "local-1:db2", "local-2:db1", "local-2:db2"}
    assert {one["name"] for one in told["databases"]} == names
    assert sum(one["transactional_iops"] for one in told["databases"]) == pytest.approx(told["achieved_iops"])
    assert (told["bad_pages"], told["verified"]) == (0, True)


@pytest.mark.slow(reason=SLOW)
def test_streams_of_queries(bench: Bench) -> None:
    words = ("load", "run", "check", "--scale", "0.01", "--test", "throughput", "--streams", "2")
    found = over(bench, "dss", "tpch", f"duckdb:{bench.folder}/d-{{number}}.duckdb", *words)
    (point,) = found["points"]
    score = throughput_score(2, point["measured_s"], scale=0.01)
    assert point["dss"]["throughput"] == found["dss"]["throughput"] == score
    assert {query["database"] for query in found["dss"]["queries"]} == {"d-1", "d-2"}
    assert sum(query["ended_by"] == "done" for query in found["dss"]["queries"]) == 44


@pytest.mark.slow(reason=SLOW)
@pytest.mark.parametrize(
    ("kind", "size", "figure"),
    [
        ("tpcc", ("--warehouses", "1"), "nopm"),
        ("brokerage", ("--customers", "1000", "--days", "1"), "trade_results_per_s"),
    ],
)
def test_transactions(bench: Bench, kind: str, size: tuple[str, ...], figure: str) -> None:
    words = ("load", "run", "check", *size, "--users", "4", "--duration", "4s", "--warmup", "1s")
    found = over(bench, "oltp", kind, f"embedded:{bench.folder}/pg-{{number}}", *words)
    own = own_figures(found, "oltp")
    assert [one["users"] for one in own] == [2, 2]
    assert found["oltp"][figure] == pytest.approx(sum(one[figure] for one in own))
    assert {one["database"] for one in found["oltp"]["conditions"]} == {"pg-1", "pg-2"}
    assert all(one["met"] for one in found["oltp"]["conditions"] if one["met"] is not None)
    assert json.loads((Path(found["run_folder"]) / "run.json").read_text())["status"] == "done"
