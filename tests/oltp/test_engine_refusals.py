"""What cannot be run or loaded ends with one line, which has no password in it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from engine import Database, Server, assert_failed, load_plan, loaded, loading, run_plan, running

from assay._core import OltpRun, RowsLoad
from assay.base.errors import UsageError

PASSWORD = "not-the-t0p-s3cret"


@pytest.fixture(scope="module")
def empty(server: Server) -> Database:
    return Database(server.fresh_database(), 1)


@pytest.fixture(scope="module")
def unused_port() -> int:
    """Nobody listens there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_of_run(plan: dict[str, Any]) -> dict[str, Any]:
    with running(plan) as run:
        run.until(lambda _: False)
    return run.status


def end_of_load(plan: dict[str, Any]) -> dict[str, Any]:
    with loading(plan) as load:
        return load.end()


ENDS = {"run": (run_plan, end_of_run), "load": (load_plan, end_of_load)}


@pytest.mark.parametrize("what", ENDS)
@pytest.mark.parametrize("wrong", ["password", "user", "database", "port", "socket"])
def test_a_server_that_does_not_let_in_is_named_with_its_reason(
    empty: Database, unused_port: int, what: str, wrong: str
) -> None:
    plan_of, end_of = ENDS[what]
    plan = plan_of(empty)
    changes = {
        "password": {"password": PASSWORD},
        "user": {"user": "nobody_known"},
        "database": {"database": "not_there"},
        "port": {"port": unused_port},
        "socket": {"socket": "/nowhere/server.sock"},
    }[wrong]
    plan["databases"][0]["connection"] |= changes
    place = {"port": f"127.0.0.1:{unused_port}", "socket": "/nowhere/server.sock"}.get(wrong, "127.0.0.1:")
    said = {"database": "not_there", "user": "nobody_known"}.get(wrong, "")
    assert_failed(end_of(plan), "open", place, said)


@pytest.mark.parametrize("procedures", [True, False])
def test_a_run_without_tables_says_what_is_missing(empty: Database, procedures: bool) -> None:
    # MariaDB prepares a call of a procedure that does not exist.
    late = procedures and empty.dialect == "mariadb"
    assert_failed(end_of_run(run_plan(empty, procedures=procedures)), "other" if late else "open", "exist")


def test_a_load_without_tables_says_what_is_missing(empty: Database) -> None:
    assert_failed(end_of_load(load_plan(empty)), "other", "assay_chunk", "exist")


def test_more_users_than_the_server_takes_are_refused(server: Server) -> None:
    database = loaded(server)
    assert_failed(end_of_run(run_plan(database, users=100)), "open", "oo many c")
    # Those that were let in are gone again.
    with running(run_plan(database)) as run:
        run.until(lambda run: run.done() > 0)
        assert run.status["state"] == "running"


IMPOSSIBLE_RUNS: list[tuple[dict[str, Any], str]] = [
    ({"users": 0}, "users: accepted: 1 to 100000"),
    ({"users": 100_001}, "users: accepted: 1 to 100000"),
    ({"connections": 0}, "connections: accepted"),
    ({"connections": 5}, "connections: accepted"),
    ({"threads": 0}, "threads: at least one"),
    ({"mix": [0, 0, 0, 0, 0]}, "mix: weights"),
    ({"mix": [10_001, 1, 1, 1, 1]}, "mix: weights"),
    ({"load": {"kind": "open", "rate": 0.0, "poisson": True}}, "rate: accepted"),
    ({"load": {"kind": "open", "rate": 10.0, "poisson": True}, "think_scale": 1.0}, "exclude each other"),
    ({"think_scale": -1.0}, "think_scale: accepted"),
    ({"interval_ns": 1}, "interval_ns: at least a millisecond"),
    ({"reconnect_s": -1.0}, "reconnect_s: accepted"),
    ({"databases": []}, "needs a database"),
    # What does not fit in kind is named by its place only.
    ({"mix": [1, 2, 3]}, "mix: one weight for each of 5 transactions"),
    ({"home": "away"}, "not understood at line 1"),
    ({"isolation": "snapshot"}, "not understood at line 1"),
    ({"seed": "t0p-s3cret"}, "not understood at line 1"),
]
IMPOSSIBLE_LOADS: list[tuple[dict[str, Any], str]] = [
    ({"connections": 0}, "1 to 1000 connections"),
    ({"connections": 1001}, "1 to 1000 connections"),
    ({"databases": []}, "a load needs a database"),
    ({"threads": 0}, "threads: at least one"),
    ({"seed": -1}, "not understood at line 1"),
]
NOWHERE = Database("postgresql://tester:t0p-s3cret@127.0.0.1:1/nowhere", 1)


@pytest.mark.parametrize(
    ("kind", "plan", "changes", "message"),
    [
        *((OltpRun, run_plan(NOWHERE), *refused) for refused in IMPOSSIBLE_RUNS),
        *((RowsLoad, load_plan(NOWHERE), *refused) for refused in IMPOSSIBLE_LOADS),
    ],
)
def test_an_impossible_plan_is_refused(
    kind: Callable[[str], object], plan: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        kind(json.dumps(plan | changes))
    assert "s3cret" not in str(refused.value)
