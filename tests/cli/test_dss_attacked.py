"""`assay dss tpch` when something ends it: a killed server, Ctrl-C, a load that is cut short, too little memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from assay.targets.databases import open_database, parse_database
from assay.workloads.tpch.tables import TABLES
from assay_command import Bench, Outcome, Started
from servers.process import PASSWORD, ServerProcess

QUICK = ("--scale", "0.01")
THROUGHPUT = ("run", "--test", "throughput", "--streams", "2")
BLOCKED = (
    "SELECT count(DISTINCT pid) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND query LIKE '-- query % of stream %'"
)


def arguments(*given: str | Path) -> tuple[str | Path, ...]:
    return "dss", "tpch", *given, "--no-report", "--json"


def dss(bench: Bench, *given: str | Path) -> Outcome:
    return bench.assay(*arguments(*given), "-o", bench.results, timeout_s=200)


def ended(outcome: Outcome) -> list[tuple[int, str]]:
    """Streams of the queries that failed, and how."""
    queries = outcome.document["dss"]["queries"]
    return sorted((one["stream"], one["ended_by"]) for one in queries if one["ended_by"] != "done")


@contextmanager
def stuck(bench: Bench, url: str) -> Iterator[tuple[Started, psycopg.Connection[Any]]]:
    """A throughput test whose two streams both wait for a table that another session has locked."""
    with (
        psycopg.connect(url) as holder,
        psycopg.connect(url, autocommit=True) as observer,
        bench.started(*arguments(url, *THROUGHPUT, "--no-refresh"), "-o", bench.results) as running,
    ):
        holder.execute("LOCK TABLE lineitem, orders, partsupp, customer IN ACCESS EXCLUSIVE MODE")
        running.wait_until(lambda: observer.execute(BLOCKED).fetchall() == [(2,)])
        yield running, holder


@pytest.mark.parametrize("mortal", ["postgresql18"], indirect=True)
@pytest.mark.slow(reason="tests/dss has answers of servers that are gone")
def test_a_server_killed_in_the_middle_of_streams_costs_the_queries_that_ran(
    bench: Bench, mortal: ServerProcess
) -> None:
    url = mortal.fresh_database()
    assert dss(bench, url, "load", *QUICK).code == 0
    with stuck(bench, url) as (running, holder):
        mortal.kill9()
        holder.close()
        mortal.restart()
        outcome = running.end(120)

    assert outcome.code == 0, outcome.stderr
    assert ended(outcome) == [(1, "error"), (2, "error")]
    assert len(outcome.document["dss"]["queries"]) == 44
    assert outcome.document["dss"]["throughput"] is None
    assert any("incomplete and has no score" in notice for notice in outcome.document["notices"])


@pytest.mark.slow(reason="other runs are interrupted and resumed anyway")
def test_ctrl_c_in_the_middle_of_streams_drops_the_test_and_resume_runs_it(
    bench: Bench, postgresql18: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgresql18.fresh_database()
    assert dss(bench, url, "load", *QUICK).code == 0
    (loaded,) = bench.runs
    with stuck(bench, url) as (running, _):
        running.process.send_signal(signal.SIGINT)
        outcome = running.end(60)
    assert outcome.code == 130, outcome.stderr
    (interrupted,) = [run for run in bench.runs if run != loaded]
    assert bench.point_lines() == []

    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    again = bench.assay(*arguments("--resume", interrupted), timeout_s=120)
    assert again.code == 0, again.stderr
    assert ended(again) == []
    assert len(again.document["dss"]["queries"]) == 44


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_load_that_is_killed_goes_on_chunk_by_chunk(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    with (
        psycopg.connect(url, autocommit=True) as observer,
        bench.started(*arguments(url, "load", "--scale", "0.3"), "-o", bench.results) as running,
    ):
        running.wait_until(lambda: chunks(observer) > 2, every_s=0.01)
        running.process.kill()
        running.process.wait()
        kept = chunks(observer)
    assert kept > 2
    again = dss(bench, url, "load", "check", "--scale", "0.3")
    assert again.code == 0, again.stderr
    assert again.document["dss"]["load"]["resumed"] is True
    counted = {one["table"]: (one["count"], one["met"]) for one in again.document["dss"]["rows"]}
    assert counted["orders"] == (450_000, True)
    assert all(met for _, met in counted.values())


def chunks(observer: psycopg.Connection[Any]) -> int:
    """How many chunks are loaded; 0 before there are tables."""
    if observer.execute("SELECT to_regclass('assay_chunk')").fetchall() == [(None,)]:
        return 0
    return int(observer.execute("SELECT count(*) FROM assay_chunk").fetchall()[0][0])


@pytest.mark.slow(reason="the load above is killed in the same way")
def test_a_load_into_duckdb_that_is_killed_goes_on(bench: Bench) -> None:
    target = f"duckdb:{bench.folder}/t.duckdb"
    log = bench.folder / "t.duckdb.wal"
    with bench.started(*arguments(target, "load", "--scale", "0.3"), "-o", bench.results) as running:
        # Commits are in the log until the checkpoint at the end.
        running.wait_until(lambda: log.exists() and log.stat().st_size > 1 << 20, every_s=0.01)
        running.process.kill()
        running.process.wait()
    again = dss(bench, target, "load", "check", "--scale", "0.3")
    assert again.code == 0, again.stderr
    assert all(one["met"] for one in again.document["dss"]["rows"])
    database = open_database(parse_database(target, {}), TABLES)
    try:
        database.open()
        assert database.schema().kind == "complete"
    finally:
        database.close()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_query_without_memory_is_told_and_the_run_goes_on(bench: Bench) -> None:
    target = f"duckdb:{bench.folder}/t.duckdb"
    assert dss(bench, target, "load", "--scale", "0.1").code == 0
    # With one thread what a query needs does not depend on who runs when.
    starved = f"{target}?threads=1&memory_limit=16MB&max_temp_directory_size=0B"
    outcome = dss(bench, starved, "run", "--test", "power", "--no-refresh")

    assert outcome.code == 0, outcome.stderr
    queries = outcome.document["dss"]["queries"]
    failed = [one for one in queries if one["ended_by"] == "error"]
    assert len(queries) == 22
    assert 0 < len(failed) < 22
    assert all("memory_limit" in one["error"] for one in failed)
    assert outcome.document["dss"]["power"] is None


def test_more_than_there_is_space_for_is_refused_with_what_is_needed(bench: Bench) -> None:
    target = f"duckdb:{bench.folder}/t.duckdb"
    refused = dss(bench, target, "load", "--scale", "90000")
    assert refused.code == 3
    (line,) = refused.stderr.splitlines()[-1:]
    assert "need about" in line
    assert "free" in line
    assert not (bench.folder / "t.duckdb").exists()
