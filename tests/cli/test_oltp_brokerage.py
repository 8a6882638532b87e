"""`assay oltp brokerage` on real servers, and what happens when a server or a user ends it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from assay_command import Bench, Outcome
from servers.process import PASSWORD, ServerProcess

SMALL = ("--customers", "100", "--days", "1", "--news-bytes", "1000")
SHORT = ("--warmup", "0.5s", "--duration", "2s", "--users", "4")


def brokerage(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("oltp", "brokerage", *arguments, "--no-report", "-o", bench.results, timeout_s=200)


def by_id(oltp: dict[str, Any]) -> dict[int, bool]:
    return {condition["id"]: condition["met"] for condition in oltp["conditions"]}


@pytest.mark.parametrize(
    "server",
    [
        "postgresql15",
        pytest.param("postgresql18", marks=pytest.mark.slow(reason="as PostgreSQL 15")),
        pytest.param("mariadb", marks=pytest.mark.slow(reason="tests/oltp runs the transactions on it")),
    ],
    indirect=True,
)
def test_one_command_loads_runs_and_checks(bench: Bench, server: ServerProcess) -> None:
    url = server.fresh_database()
    outcome = brokerage(bench, url, *SMALL, *SHORT, "--json")

    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert by_id(found) == dict.fromkeys(range(1, 6), True)
    assert found["load"]["customers"] == found["customers"] == 100
    assert found["trade_results_per_s"] > 0
    assert found["errors"]["count"] == 0
    told = found["by_transaction"]
    assert sum(told[name]["count"] for name in told) == pytest.approx(found["tpm_client"] / 60 * 2, rel=0.02)
    assert told["trade_status"]["count"] > told["trade_update"]["count"] > 0
    assert {name: told[name]["pass_latency"] for name in told if told[name]["count"]} == {
        name: told[name]["latency_ns"]["p90"] < 2e9 for name in told if told[name]["count"]
    }
    assert told["data_maintenance"]["pass_mix"] is None
    assert isinstance(told["trade_result"]["pass_mix"], bool)
    assert outcome.document["points"][0]["workload"]["customers"] == 100

    # What the first run left open is cancelled, and the rows that are there are used.
    again = brokerage(bench, url, "load", "run", "check", "--rate", "50", *SHORT, "--json")
    assert again.code == 0, again.stderr
    assert any("100 customers had been loaded before" in notice for notice in again.document["notices"])
    assert set(by_id(again.document["oltp"]).values()) == {True}
    refused = brokerage(bench, url, "run", "--days", "2")
    assert (refused.code, "was loaded with days 1, not 2" in refused.stderr) == (2, True)


@pytest.mark.slow(reason="connects again, as test_oltp_databases.py does by default")
def test_a_server_killed_in_the_middle_is_waited_for_and_all_conditions_hold(
    bench: Bench, mortal: ServerProcess
) -> None:
    url = mortal.fresh_database()
    assert brokerage(bench, url, "load", *SMALL).code == 0
    arguments = (url, "run", "check", "--warmup", "0.5s", "--duration", "6s", "--users", "4", "--json")
    with bench.started("oltp", "brokerage", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        mortal.kill9()
        mortal.restart()
        outcome = running.end(120)
    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert found["gaps"]
    assert found["errors"]["kinds"]["connection"] > 0
    assert set(by_id(found).values()) == {True}
    assert not any("users saw" in notice for notice in outcome.document["notices"])


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_ctrl_c_while_the_market_holds_orders_leaves_the_data_consistent(
    bench: Bench, postgresql18: ServerProcess
) -> None:
    url = postgresql18.fresh_database()
    assert brokerage(bench, url, "load", *SMALL).code == 0
    arguments = (url, "run", "--duration", "60s", "--users", "4", "--mix", "trade_order=1")
    with bench.started("oltp", "brokerage", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "trade results/s" in running.stderr)
        running.process.send_signal(signal.SIGINT)
        outcome = running.end(60)
    assert outcome.code == 130
    checked = brokerage(bench, url, "check", "--json")
    assert checked.code == 0, checked.stderr
    assert set(by_id(checked.document["oltp"]).values()) == {True}


@pytest.mark.slow(reason="waits until a run counts as stalled")
def test_a_run_in_which_nothing_ends_ends_with_its_cause(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    assert brokerage(bench, url, "load", *SMALL).code == 0
    arguments = (url, "run", "--warmup", "0.5s", "--duration", "60s", "--users", "4", "--mix", "trade_status=1")
    with bench.started("oltp", "brokerage", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        with psycopg.connect(url) as connection:
            connection.execute("LOCK TABLE trade")
            outcome = running.end(120)
    assert outcome.code == 3, outcome.stderr
    assert "no transaction ended for 10 s" in outcome.stderr.splitlines()[-1]
    assert "wait for locks or for storage" in outcome.stderr.splitlines()[-1]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_lost_row_is_found_and_has_its_exit_code(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    assert brokerage(bench, url, "load", *SMALL).code == 0
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE broker SET b_num_trades = b_num_trades - 1")
        connection.execute("DELETE FROM news_xref")
    outcome = brokerage(bench, url, "check", "--json")
    assert outcome.code == 4
    assert [number for number, is_met in by_id(outcome.document["oltp"]).items() if not is_met] == [1, 5]
    assert "news_xref: 0 rows, expected 100" in str(outcome.document["oltp"]["conditions"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--customers", "150"), "a broker serves 100 customers"),
        (("--customers", "40"), "give 100"),
        (("--days", "301"), "days"),
        (("--mix", "trade_orders=10"), "did you mean 'trade_order'?"),
        (("--mix", "trade_result=10"), "unknown transaction"),
        (("--users", "4", "--connections", "8"), "give at most one for each user"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(bench: Bench, arguments: tuple[str, ...], words: str) -> None:
    outcome = brokerage(bench, f"embedded:{bench.folder}/pg", *arguments)
    assert (outcome.code, bench.runs) == (2, [])
    assert words in outcome.complaint, outcome.complaint


def test_more_than_there_is_room_for_is_refused_with_what_fits(bench: Bench) -> None:
    outcome = brokerage(bench, f"embedded:{bench.folder}/pg", "load", "--customers", "10000000", "--days", "300")
    assert outcome.code == 3
    said = outcome.stderr.splitlines()[-1]
    assert "10,000,000 customers need about" in said
    assert "or fewer" in said


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_users_and_clerks_beyond_the_connections_are_refused(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    assert brokerage(bench, url, "load", *SMALL).code == 0
    refused = brokerage(bench, url, "run", "--users", "5000")
    assert refused.code == 2
    assert "max_connections" in refused.stderr.splitlines()[-1]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_tables_of_another_workload_are_refused(bench: Bench, postgresql18: ServerProcess) -> None:
    refused = brokerage(bench, postgresql18.loaded_database(), "load", *SMALL)
    assert (refused.code, "another workload of Assay's" in refused.stderr) == (2, True)
    assert PASSWORD not in refused.stderr


@pytest.mark.parametrize(
    "server",
    [
        pytest.param("postgresql15", marks=pytest.mark.slow(reason="tests/targets saves and restores on each server")),
        pytest.param("mariadb", marks=pytest.mark.slow(reason="copies each of 33 tables")),
    ],
    indirect=True,
)
def test_the_state_as_loaded_comes_back_with_all_keys(bench: Bench, server: ServerProcess) -> None:
    url = server.fresh_database()
    assert brokerage(bench, url, "load", "save", *SMALL).code == 0
    assert brokerage(bench, url, "run", *SHORT).code == 0
    restored = brokerage(bench, url, "restore", "check", "--json")
    assert restored.code == 0, restored.stderr
    assert set(by_id(restored.document["oltp"]).values()) == {True}
    again = brokerage(bench, url, "run", "check", *SHORT, "--json")
    assert again.code == 0, again.stderr
    assert set(by_id(again.document["oltp"]).values()) == {True}
    assert brokerage(bench, url, "drop").code == 0


@pytest.mark.parametrize(
    ("server", "are_kept"),
    [("postgresql15", True), pytest.param("mariadb", False, marks=pytest.mark.slow(reason="copies each of 33 tables"))],
    indirect=["server"],
)
def test_the_hottest_table_is_partitioned_by_trades_and_whole_again_after_a_restore(
    bench: Bench, server: ServerProcess, are_kept: bool
) -> None:
    url = server.fresh_database()
    layout = bench.folder / "layout.toml"
    layout.write_text('kind = "brokerage"\nlayout = { partition_table = "hottest", partition_ways = 3, trace_s = 1 }\n')
    outcome = brokerage(bench, url, "load", "run", "check", *SMALL, *SHORT, "--plan", layout, "--json")
    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert set(by_id(found).values()) == {True}
    partition = outcome.document["points"][0]["oltp"]["layout"]["databases"][0]["partition"]
    assert partition["table"] == found["hottest"]["table"]
    assert len(partition["first_keys"]) == 2
    assert ("dropped_foreign_keys" in partition) is not are_kept
    assert found["trade_results_per_s"] > 0

    plain = brokerage(bench, url, "restore", "run", "check", *SHORT, "--json")
    assert plain.code == 0, plain.stderr
    assert set(by_id(plain.document["oltp"]).values()) == {True}
    assert plain.document["points"][0]["oltp"]["layout"] is None
