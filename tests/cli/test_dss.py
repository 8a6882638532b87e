"""`assay dss tpch` on real databases: the same answers on each, and what happens when something ends them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from assay_command import Bench, Outcome
from servers.process import ServerProcess

QUICK = ("--scale", "0.01")
QUERY_KEYS = {
    "database", "stream", "query", "started_utc_ns", "seconds", "rows", "bytes_read", "temp_bytes", "temp_files",
    "ended_by", "error", "read_bytes_per_s", "read_size_mean_bytes", "read_latency_mean_ns", "device_queue",
    "cpu_share",
}  # fmt: skip


def dss(bench: Bench, *arguments: str | Path, report: bool = False) -> Outcome:
    shown = () if report else ("--no-report",)
    return bench.assay("dss", "tpch", *arguments, *shown, "-o", bench.results, timeout_s=200)


@pytest.fixture
def column_store(bench: Bench) -> str:
    """A DuckDB that is loaded at scale 0.01."""
    target = f"duckdb:{bench.folder}/t.duckdb"
    assert dss(bench, target, "load", *QUICK).code == 0
    return target


@pytest.mark.parametrize(
    ("scale", "orders"),
    [
        ("0.01", 15_000),
        pytest.param("0.1", 150_000, marks=pytest.mark.slow(reason="three engines load ten times as much")),
    ],
)
@pytest.mark.slow(reason="loads three engines")
def test_three_engines_give_the_same_answers_before_and_after_refreshing(
    bench: Bench, mariadb: ServerProcess, scale: str, orders: int
) -> None:
    targets = [f"duckdb:{bench.folder}/t.duckdb", f"embedded:{bench.folder}/pg", mariadb.fresh_database()]

    first = dss(bench, *targets, "load", "check", "--scale", scale, "--json")
    assert first.code == 0, first.stderr
    answers = first.document["dss"]["answers"]
    assert [one for one in answers if not one["met"]] == []
    assert {(one["query"], one["against"]) for one in answers} == {(number, "t") for number in range(1, 23)}
    assert len(answers) == 44
    rows = {(one["database"], one["table"]): one["count"] for one in first.document["dss"]["rows"]}
    assert rows["t", "orders"] == rows["pg", "orders"] == orders

    for target in targets:
        ran = dss(bench, target, "run", "--test", "power", "--queries", "6", "--json")
        assert ran.code == 0, ran.stderr
        assert [one["set"] for one in ran.document["dss"]["refresh"]] == [1, 1]
    again = dss(bench, *targets, "check", "--json")
    assert again.code == 0, again.stderr
    assert [one for one in again.document["dss"]["answers"] if not one["met"]] == []
    counts = {(one["database"], one["table"]): one["count"] for one in again.document["dss"]["rows"]}
    assert counts["t", "orders"] == orders
    assert counts["t", "lineitem"] == counts["pg", "lineitem"]


def test_both_tests_have_scores_and_a_report(bench: Bench, column_store: str) -> None:
    outcome = dss(bench, column_store, "run", "--streams", "2", "--json", report=True)

    assert outcome.code == 0, outcome.stderr
    found = outcome.document["dss"]
    power, throughput = outcome.document["points"]
    assert (power["load"], throughput["load"]) == ({"streams": 1}, {"streams": 2})
    assert found["composite"] == pytest.approx((found["power"] * found["throughput"]) ** 0.5)
    assert len(power["dss"]["queries"]) == 22
    assert set(power["dss"]["queries"][0]) == QUERY_KEYS
    # Each stream in the order that the specification gives it.
    orders = {stream: [] for stream in (0, 1, 2)}
    for one in (*power["dss"]["queries"], *throughput["dss"]["queries"]):
        orders[one["stream"]].append(one["query"])
    assert [orders[stream][:3] for stream in (0, 1, 2)] == [[14, 2, 9], [21, 3, 18], [6, 17, 14]]
    # Refresh sets advance and are never used again: one of the power test, one for each stream.
    assert [one["set"] for one in found["refresh"] if one["function"] == "rf1"] == [1, 2, 3]
    assert len(power["dss"]["plans"]) == 22
    page = (Path(outcome.document["run_folder"]) / "report.html").read_text()
    assert all(word in page for word in ("Queries and storage over time", "tpch-times", "not compliant"))


@pytest.mark.slow(reason="starts a server 22 times")
def test_a_cold_test_starts_the_server_anew_before_each_query(bench: Bench) -> None:
    target = f"embedded:{bench.folder}/pg"
    assert dss(bench, target, "load", "--scale", "0.002").code == 0

    outcome = dss(bench, target, "run", "--test", "power", "--cache", "cold", "--queries", "1,6,14", "--json")

    assert outcome.code == 0, outcome.stderr
    (power,) = outcome.document["points"]
    assert [one["ended_by"] for one in power["dss"]["queries"]] == ["done"] * 3
    assert power["dss"]["not_dropped"] == []
    # What the tables hold is read from files again, and nothing thought that the server had been killed.
    assert all(one["bytes_read"] > 100_000 for one in power["dss"]["queries"])
    assert not [notice for notice in outcome.document["notices"] if "ended during the work" in notice]
    log = Path(bench.folder, "pg", "server.log").read_text()
    assert "already exists" not in log
    assert log.count("ready to accept connections") == 1 + 1 + 3


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_query_that_takes_too_long_is_ended_and_the_run_goes_on(bench: Bench, column_store: str) -> None:
    outcome = dss(bench, column_store, "run", "--test", "power", "--query-timeout", "1us", "--json")

    queries = outcome.document["dss"]["queries"]
    assert (len(queries), {one["ended_by"] for one in queries}) == (22, {"timeout"})
    assert outcome.document["dss"]["power"] is None
    assert any("no score" in notice for notice in outcome.document["notices"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("load", "--scale", "0.02"), 2, "holds scale 0.01, not 0.02"),
        (("load", "--scale", "100000"), 2, "holds scale 0.01"),
        (("restore",), 2, "no saved state"),
        (("run", "--partition", "lineitem:l_shipdate:4"), 3, "has no partitions"),
        (("run", "--queries", "23"), 2, "22"),
        (("run", "--scale", "0"), 2, "--scale"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    bench: Bench, column_store: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    outcome = dss(bench, column_store, *arguments)
    assert outcome.code == code
    assert said in outcome.stderr.splitlines()[-1]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_what_is_not_there_or_not_ours_is_refused(bench: Bench, column_store: str) -> None:
    unloaded = dss(bench, f"duckdb:{bench.folder}/new.duckdb", "run")
    assert (unloaded.code, "load one first" in unloaded.stderr) == (2, True)

    too_large = dss(bench, f"duckdb:{bench.folder}/new.duckdb", "load", "--scale", "90000")
    assert (too_large.code, "need about" in too_large.stderr) == (3, True)

    with duckdb.connect(f"{bench.folder}/foreign.duckdb") as connection:
        connection.execute("CREATE TABLE orders (number int)")
    foreign = dss(bench, f"duckdb:{bench.folder}/foreign.duckdb", "load", *QUICK)
    assert (foreign.code, "did not make" in foreign.stderr) == (2, True)

    with duckdb.connect(f"{bench.folder}/t.duckdb") as connection:
        connection.execute("DELETE FROM assay_chunk")
    lost = dss(bench, column_store, "run", "--test", "power")
    assert (lost.code, "counts the refresh sets" in lost.stderr) == (2, True)


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_refresh_sets_go_on_when_the_tables_hold_again_what_they_held_at_first(bench: Bench, column_store: str) -> None:
    with duckdb.connect(f"{bench.folder}/t.duckdb") as connection:
        connection.execute("INSERT INTO assay_chunk (kind, unit, part, row_count) SELECT f, s, 0, 0 FROM (VALUES"
                           " ('rf1'), ('rf2')) AS functions (f), range(1, 4001) AS sets (s)")  # fmt: skip
    outcome = dss(bench, column_store, "run", "check", "--test", "power", "--queries", "6", "--json")
    assert outcome.code == 0, outcome.stderr
    assert [one["set"] for one in outcome.document["dss"]["refresh"]] == [4001, 4001]
    assert [one for one in outcome.document["dss"]["rows"] if not one["met"]] == []


def test_wrong_rows_are_found(bench: Bench, column_store: str) -> None:
    with duckdb.connect(f"{bench.folder}/t.duckdb") as connection:
        connection.execute("DELETE FROM lineitem WHERE l_orderkey = 1")
    outcome = dss(bench, column_store, "check", "--json")
    assert outcome.code == 4
    assert [one["table"] for one in outcome.document["dss"]["rows"] if not one["met"]] == ["lineitem"]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_column_stores_and_tables_of_another_workload_are_refused_on_rows(bench: Bench) -> None:
    target = f"embedded:{bench.folder}/pg"
    refused = dss(bench, target, "load", "--columnstore", "lineitem", *QUICK)
    assert (refused.code, "keeps tables by rows alone" in refused.stderr) == (3, True)
    assert dss(bench, target, "load", *QUICK).code == 0
    other = bench.assay("oltp", "tpcc", target, "load", "--warehouses", "1", "-o", bench.results)
    assert (other.code, "another workload" in other.stderr) == (2, True)


def test_a_search_finds_the_least_memory_and_goes_on_where_it_was_interrupted(bench: Bench) -> None:
    store = f"duckdb:{bench.folder}/t.duckdb"
    ask = ("--search", "memory", "--start", "128M", "--queries", "2,6,18", "--limit", "failed<=0")

    outcome = dss(bench, store, "load", "run", "--scale", "0.002", *ask, "--json")

    assert outcome.code == 0, outcome.stderr
    (answer,) = outcome.document["answers"]
    tried = [point["load"]["memory_bytes"] for point in outcome.document["points"]]
    assert tried == [(128 << 20) >> place for place in range(len(tried))]
    # DuckDB ends a query that its limit leaves no room for, and the run is no failure for that.
    assert answer["edge"]["memory_bytes"] == 2 * answer["first_failing"]["memory_bytes"] == 2 * tried[-1]
    (line,) = [line for line in outcome.document["verdict"] if line["limit"]]
    assert line["meaning"].startswith("no query fails from ")
    assert (line["met"], line["value"]) == (True, answer["edge"]["memory_bytes"])
    folder = Path(outcome.document["run_folder"])
    kept = (folder / "points.jsonl").read_text().splitlines(keepends=True)
    (folder / "points.jsonl").write_text("".join(kept[:2]))
    again = bench.assay("dss", "tpch", "--resume", folder, "--json", "--no-report")
    assert again.document["answers"][0]["edge"]["memory_bytes"] == answer["edge"]["memory_bytes"]
    assert [point["id"] for point in again.document["points"]][:2] == ["p0001", "p0002"]


@pytest.mark.slow(reason="loads a server of its own")
def test_of_mariadb_the_least_memory_is_found_without_which_temporary_tables_go_to_disk(
    bench: Bench, mariadb: ServerProcess
) -> None:
    outcome = dss(
        bench, mariadb.fresh_database(), "load", "run", "--scale", "0.004", "--search", "memory", "--start", "16M",
        "--queries", "1,10,13,16,18", "--json",
    )  # fmt: skip

    assert outcome.code == 0, outcome.stderr
    (answer,) = outcome.document["answers"]
    assert answer["limited_by"] == "spilled<=0"
    assert answer["first_failing"]["queries_spilled"] > 0
    assert answer["first_failing"]["memory_bytes"] >= 16 << 10
