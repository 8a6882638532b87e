"""`assay oltp tpcc` on real servers: the same commands on each, and what happens when a server or a user ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from assay.base.errors import AssayError
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
from assay_command import Bench, Outcome
from servers.process import PASSWORD, ServerProcess

SHORT = ("--warmup", "0.5s", "--duration", "1s", "--users", "4")


def oltp(bench: Bench, *arguments: str | Path, timeout_s: float = 200) -> Outcome:
    return bench.assay("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results, timeout_s=timeout_s)


def by_id(oltp: dict[str, Any]) -> dict[int, bool]:
    return {condition["id"]: condition["met"] for condition in oltp["conditions"]}


@pytest.mark.parametrize(
    "server",
    [
        "postgresql15",
        pytest.param("postgresql18", marks=pytest.mark.slow(reason="the embedded server below is one of these")),
        "mariadb",
    ],
    indirect=True,
)
def test_one_command_loads_runs_and_checks(bench: Bench, server: ServerProcess) -> None:
    outcome = oltp(bench, server.fresh_database(), "--warehouses", "1", *SHORT, "--json")

    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert by_id(found) == {number: True for number in range(1, 13) if number != 11}
    assert found["load"]["rows"] > 500_000
    assert found["nopm"] > 0
    assert found["tpm_client"] > found["nopm"]
    assert found["tpm_server"] > 0
    assert found["client_cpu_ns_per_transaction"] > 0
    assert found["errors"]["kinds"]["other"] == 0
    assert found["by_transaction"]["new_order"]["latency_ns"]["p90"] > 0
    assert found["databases"][0]["version"] is not None
    (point,) = outcome.document["points"]
    assert point["load"] == {"users": 4}
    assert PASSWORD not in outcome.stdout + outcome.stderr
    for path in bench.run.rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "server",
    ["postgresql18", pytest.param("mariadb", marks=pytest.mark.slow(reason="the test above runs on it"))],
    indirect=True,
)
def test_a_database_is_loaded_saved_run_on_restored_and_dropped(bench: Bench, server: ServerProcess) -> None:
    url = server.loaded_database()
    assert oltp(bench, url, "save").code == 0
    refused = oltp(bench, url, "load", "--warehouses", "2")
    assert (refused.code, "holds 1 warehouse of" in refused.stderr, "drop" in refused.stderr) == (2, True, True)

    ran = oltp(bench, url, "load", "run", "check", *SHORT, "--statements", "--preset", "strict", "--json")
    assert ran.code == 0, ran.stderr
    assert by_id(ran.document["oltp"]) == {number: True for number in range(1, 13) if number != 11}
    assert any("had been loaded before" in notice for notice in ran.document["notices"])

    # The eleventh holds only where nothing has run.
    restored = oltp(bench, url, "restore", "check", "--json")
    assert by_id(restored.document["oltp"]) == dict.fromkeys(range(1, 13), True)

    assert oltp(bench, url, "drop").code == 0
    unloaded = oltp(bench, url, "run")
    assert (unloaded.code, "load them first" in unloaded.stderr) == (2, True)


def test_a_violation_is_found_and_has_its_exit_code(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.loaded_database()
    execute(url, "UPDATE warehouse SET w_ytd = w_ytd + 1")

    outcome = oltp(bench, url, "check", "--json")
    assert outcome.code == 4
    assert [number for number, is_met in by_id(outcome.document["oltp"]).items() if not is_met] == [1, 8]
    assert outcome.stderr.splitlines()[-1] == "assay: consistency conditions are violated 2 times"


def execute(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_tables_that_assay_did_not_make_are_refused_and_stay(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    execute(url, "CREATE TABLE stock (mine int)")
    for action in ("load", "drop"):
        refused = oltp(bench, url, action)
        assert (refused.code, "stock" in refused.stderr, "did not make" in refused.stderr) == (2, True, True)
    execute(url, "INSERT INTO stock VALUES (1)")


@pytest.mark.slow(reason="tests/oltp/test_engine_server_lost.py kills servers without a command")
def test_a_server_killed_during_a_run_is_waited_for_and_nothing_is_lost(bench: Bench, mortal: ServerProcess) -> None:
    url = mortal.loaded_database()
    arguments = (url, "run", "check", "--warmup", "0.5s", "--duration", "6s", "--users", "4", "--json")
    with bench.started("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        mortal.kill9()
        mortal.restart()
        outcome = running.end(120)
    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert found["gaps"]
    assert found["gaps"][0]["to_utc_ns"] > found["gaps"][0]["from_utc_ns"]
    assert found["errors"]["kinds"]["connection"] > 0
    assert set(by_id(found).values()) == {True}
    assert any("was away for" in notice for notice in outcome.document["notices"])
    assert not any("users saw" in notice for notice in outcome.document["notices"])


@pytest.mark.slow(reason="waits until a frozen server counts as lost, as tests/oltp does without a command")
def test_a_server_that_stands_still_ends_the_run_and_is_no_good_point(
    bench: Bench, postgresql18: ServerProcess
) -> None:
    url = postgresql18.loaded_database()
    arguments = (url, "run", "--warmup", "0.5s", "--duration", "9s", "--users", "4", "--json")
    with bench.started("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        with postgresql18.frozen():
            outcome = running.end(120)
    assert outcome.code == 3, outcome.stderr
    assert "stopped answering" in outcome.stderr.splitlines()[-1]
    assert "no transaction ended for" in "\n".join(outcome.document["notices"])


@pytest.mark.slow(reason="test_dss_attacked.py kills a load through the same loader")
def test_a_server_killed_during_a_load_ends_it_and_the_same_command_goes_on(
    bench: Bench, mortal: ServerProcess
) -> None:
    url = mortal.fresh_database()
    arguments = (url, "load", "check", "--warehouses", "2", "--reconnect", "1s", "--json")
    with bench.started("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: chunks(url) > 5, every_s=0.05)
        mortal.kill9()
        outcome = running.end(120)
    assert outcome.code == 3, outcome.stderr
    assert "goes on where it was" in outcome.stderr.splitlines()[-1]
    mortal.restart()
    again = oltp(bench, *arguments)
    assert again.code == 0, again.stderr
    assert again.document["oltp"]["load"]["resumed"] is True
    assert by_id(again.document["oltp"]) == dict.fromkeys(range(1, 13), True)


def chunks(url: str) -> int:
    """How many chunks are loaded; 0 before there are tables."""
    database = open_database(parse_database(url, {}), TABLES)
    try:
        database.open()
        return len(database.schema().chunks)
    except AssayError:
        return 0
    finally:
        database.close()


def test_ctrl_c_drops_the_point_and_resume_goes_on(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.loaded_database()
    arguments = ("--warehouses", "1", "--search", "users", "--end", "2", "--repeats", "0", "--no-restore")
    timing = ("--warmup", "0.2s", "--duration", "1s", "--limit", "response.p90<60s")
    with bench.started("oltp", "tpcc", url, *arguments, *timing, "--no-report", "-o", bench.results) as running:
        running.wait_until(bench.point_lines)
        running.process.send_signal(signal.SIGINT)
        outcome = running.end(60)
    assert outcome.code == 130
    kept = bench.point_lines()
    os.environ["PGPASSWORD"] = PASSWORD
    try:
        again = bench.assay("oltp", "tpcc", "--resume", bench.run, "--no-report", "--json", timeout_s=120)
    finally:
        del os.environ["PGPASSWORD"]
    assert again.code == 0, again.stderr
    assert bench.point_lines()[: len(kept)] == kept
    assert len(again.document["answers"]) == 1
    manifest = json.loads((bench.run / "run.json").read_text())
    assert manifest["oltp"]["actions_done"] == {"tpcc": ["load", "run", "check"]}


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_more_users_than_connections_are_refused_before_anything_is_written(
    bench: Bench, postgresql18: ServerProcess
) -> None:
    url = postgresql18.loaded_database()
    refused = oltp(bench, url, "run", "--users", "5000")
    assert refused.code == 2
    assert "max_connections" in refused.stderr.splitlines()[-1]
    assert "--connections" in refused.stderr.splitlines()[-1]
    shared = oltp(bench, url, "run", "--users", "300", "--connections", "8", "--warmup", "0.5s", "--duration", "1s")
    assert shared.code == 0, shared.stderr


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda url: url.replace(PASSWORD, "wrong"), 2, ("password", "tester")),
        (lambda url: url.rpartition("/")[0] + "/nowhere", 2, ("nowhere",)),
    ],
)
def test_wrong_passwords_and_unknown_databases_are_one_line(
    bench: Bench, server: ServerProcess, change: Callable[[str], str], code: int, words: tuple[str, ...]
) -> None:
    outcome = oltp(bench, change(server.fresh_database()), "load", "--quiet")
    assert (outcome.code, bench.runs) == (code, [])
    assert all(word in outcome.complaint for word in words), outcome.complaint
    assert PASSWORD not in outcome.complaint
    assert "wrong@" not in outcome.complaint
    assert ":wrong" not in outcome.complaint


def test_a_user_without_rights_is_told_so(bench: Bench, postgresql18: ServerProcess) -> None:
    url = postgresql18.fresh_database()
    postgresql18.execute("DROP ROLE IF EXISTS reader")
    postgresql18.execute("CREATE ROLE reader LOGIN PASSWORD 'look'")
    outcome = oltp(bench, url.replace(f"tester:{PASSWORD}", "reader:look"), "load", "--quiet")
    assert (outcome.code, bench.runs) == (2, [])
    assert "may not create tables" in outcome.complaint
    assert "look" not in outcome.complaint


@pytest.mark.slow(reason="two whole loads; shares are tested with the plan")
def test_two_databases_share_warehouses_and_users(
    bench: Bench, postgresql18: ServerProcess, mariadb: ServerProcess
) -> None:
    urls = (postgresql18.loaded_database(), mariadb.fresh_database())
    outcome = oltp(bench, *urls, "--warehouses", "2", *SHORT, "--json")
    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    assert [one["kind"] for one in found["databases"]] == ["postgresql", "mariadb"]
    assert all(one["nopm"] > 0 for one in found["databases"])
    assert found["nopm"] == pytest.approx(sum(one["nopm"] for one in found["databases"]))
    assert {one["id"] for one in found["conditions"]} == {number for number in range(1, 13) if number != 11}


# Embedded


@pytest.mark.slow(reason="tests/cli/test_storage_and_database.py makes and uses one")
def test_the_embedded_server_is_made_used_and_stopped(bench: Bench) -> None:
    target = f"embedded:{bench.folder}/pg"
    outcome = oltp(bench, target, "--warehouses", "1", *SHORT, "--json")
    assert outcome.code == 0, outcome.stderr
    assert set(by_id(outcome.document["oltp"]).values()) == {True}
    storage = outcome.document["oltp"]["storage"]
    assert storage["log_bytes_per_transaction"] > 0
    assert 0 < storage["server_cpu_share"] <= 1
    volumes = outcome.document["target"]["volumes"]
    assert {"data", "log"} <= {volume["role"] for volume in volumes}
    assert not list((bench.folder / "pg").glob("*/postmaster.pid"))


@pytest.mark.slow(reason="MariaDB is killed here, an embedded server without a command in tests/targets")
def test_a_killed_embedded_server_is_started_again(bench: Bench) -> None:
    target = f"embedded:{bench.folder}/pg"
    oltp(bench, target, "load", "--warehouses", "1")
    arguments = (target, "run", "check", "--warmup", "0.5s", "--duration", "6s", "--users", "4", "--json")
    with bench.started("oltp", "tpcc", *arguments, "--no-report", "-o", bench.results) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        (file,) = (bench.folder / "pg").glob("*/postmaster.pid")
        os.kill(int(file.read_text().splitlines()[0]), signal.SIGKILL)
        outcome = running.end(120)
    assert outcome.code == 0, outcome.stderr
    assert outcome.document["oltp"]["gaps"]
    assert set(by_id(outcome.document["oltp"]).values()) == {True}
    assert any("was started again" in notice for notice in outcome.document["notices"])


def test_an_open_loop_counts_from_the_intended_start(bench: Bench, postgresql18: ServerProcess) -> None:
    rate = ("--rate", "20", "--arrivals", "constant", *SHORT)
    outcome = oltp(bench, postgresql18.loaded_database(), "run", *rate, "--json")
    assert outcome.code == 0, outcome.stderr
    (point,) = outcome.document["points"]
    assert point["load"] == {"rate": 20.0, "arrivals": "constant", "users": 4}
    assert point["offered"]["rate"] == 20.0
    assert point["service_latency_ns"] is not None


@pytest.mark.slow(reason="tests/targets fills the disk of an embedded server without a command")
def test_a_full_disk_under_the_server_ends_the_work_with_one_line(bench: Bench, mounted: Callable[..., Path]) -> None:
    place = mounted("-t", "tmpfs", "-o", "size=600m", "none")
    target = f"embedded:{place}/pg"
    assert oltp(bench, target, "load", "--warehouses", "1").code == 0
    refused = oltp(bench, target, "drop", "load", "--warehouses", "200")
    assert (refused.code, "--warehouses" in refused.stderr.splitlines()[-1]) == (3, True)

    arguments = (target, "run", "--warmup", "0.5s", "--duration", "30s", "--no-report", "-o", bench.results)
    with bench.started("oltp", "tpcc", *arguments) as running:
        running.wait_until(lambda: "measuring" in running.stderr)
        with (place / "filler").open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 20))
        outcome = running.end(120)
    assert outcome.code == 3
    assert "space" in outcome.stderr.splitlines()[-1]

    (place / "filler").unlink()
    checked = oltp(bench, target, "check", "--json")
    assert checked.code == 0, checked.stderr
    assert set(by_id(checked.document["oltp"]).values()) == {True}
