"""Runs: the mix, the counts and the rates that the contract promises, and databases that stay consistent under them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from engine import (
    HAMMERDB,
    QUICK,
    READING,
    STRICT,
    TRANSACTIONS,
    Database,
    Run,
    Server,
    loaded,
    run_plan,
    running,
    socket_of,
)

from assay._core import Histogram

MODES: dict[str, dict[str, Any]] = {
    "procedures": {"procedures": True},
    "statements-pipelined": {"procedures": False, "pipeline": True},
    "statements-one-by-one": {"procedures": False, "pipeline": False},
}
ORDER_STATUS_CYCLE_S = 2 + 10
"""Keying and thinking."""


@pytest.fixture
def database(server: Server) -> Database:
    return loaded(server)


def assert_share(count: int, of: int, share: float) -> None:
    """As many as chance allows: six standard deviations."""
    assert abs(count - of * share) <= 6 * math.sqrt(of * share * (1 - share)) + 1, (count, of, share)


def whole_run(run: Run, transactions: int) -> None:
    """Wait for so many transactions and for one of each kind."""
    run.until(lambda run: run.done() >= transactions and all(run.count("committed", kind) for kind in TRANSACTIONS))


@pytest.mark.parametrize("mode", MODES)
def test_client_and_server_count_the_same_new_orders(server: Server, mode: str) -> None:
    database = loaded(server)
    before = database.next_orders()
    plan = run_plan(database, users=6, **MODES[mode])
    if mode == "statements-pipelined":
        plan["databases"][0]["connection"] |= {"host": None, "socket": socket_of(server), "tls": "disable"}
    with running(plan) as run, database.session() as session:
        whole_run(run, 400)
        # While a lock keeps every user from going on, nothing is counted on one side only.
        session.execute("START TRANSACTION")
        districts = session.execute("SELECT d_next_o_id FROM district FOR UPDATE")
        difference = sum(int(next_order) for (next_order,) in districts) - before
        run.until(lambda run: run.count("committed", "new_order") >= difference)
        run.ticks(3)
        assert run.count("committed", "new_order") == difference
        session.execute("ROLLBACK")
        run.ticks(1)

        assert (run.status["state"], run.status["error"], run.status["connected"]) == ("running", None, 6)
        assert run.status["gaps"] == []
        figures = run.point()
        assert figures["errors"] == {
            "count": 0,
            "kinds": {"deadlock": 0, "serialization": 0, "connection": 0, "other": 0},
            "example": None,
        }
        for kind, figure in figures["by_transaction"].items():
            for outcome, name in (
                ("committed", "count"),
                *((name, name) for name in ("rolled_back", "retried", "failed")),
            ):
                assert figure[name] == run.count(outcome, kind)
            histogram = Histogram.from_base64(figure["histogram"])
            assert histogram.count == figure["count"] + figure["rolled_back"]
        assert sum(run.count("rolled_back", kind) for kind in TRANSACTIONS if kind != "new_order") == 0
        new_orders = run.count("committed", "new_order") + run.count("rolled_back", "new_order")
        assert_share(run.count("rolled_back", "new_order"), new_orders, 0.01)
        for kind, weight in zip(TRANSACTIONS, HAMMERDB, strict=True):
            count = run.count("committed", kind) + run.count("rolled_back", kind)
            assert_share(count, run.done(), weight / sum(HAMMERDB))
        assert figures["total"]["count"] == run.done() == figures["databases"][0]["count"]
        assert figures["databases"][0]["new_order_count"] == run.count("committed", "new_order")
        assert figures["client_cpu_ns"] > 0
        # Neither an open loop nor thinking users: nothing waits for its time.
        assert (figures["schedule"], figures["backlog"], figures["service_latency_ns"]) == (None, None, None)
        assert run.end()["state"] == "ended"
    assert database.failing(QUICK) == set()


def test_a_deck_gives_the_mix_exactly(database: Database) -> None:
    plan = run_plan(database, users=1, mix=STRICT, deck=True, nurand_items=True, home="district")
    with running(plan) as run:
        run.until(lambda run: run.done() >= 250)
        decks, rest = divmod(run.done(), sum(STRICT))
        for kind, cards in zip(TRANSACTIONS, STRICT, strict=True):
            count = run.count("committed", kind) + run.count("rolled_back", kind)
            # Of the deck in hand some are dealt already.
            assert decks * cards + max(0, rest - sum(STRICT) + cards) <= count <= decks * cards + min(cards, rest)
        assert run.count("retried") == run.count("failed") == 0


@pytest.mark.parametrize("isolation", ["repeatable-read", "serializable"])
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_what_users_do_to_each_other_is_tried_again_and_nothing_is_lost(database: Database, isolation: str) -> None:
    before = database.next_orders()
    changes: dict[str, Any] = {"users": 16, "home": "all", "procedures": False, "isolation": isolation}
    # Readers of MariaDB lock rows only where transactions are to be serializable.
    conflicts = isolation == "serializable" or database.dialect == "postgresql"
    with running(run_plan(database, retries=1000, **changes)) as run:
        whole_run(run, 250)
        if conflicts:
            run.until(lambda run: run.count("retried") > 0)
        figures = run.point()
        assert (figures["errors"]["count"], run.count("failed")) == (0, 0)
        assert sum(figure["retried"] for figure in figures["by_transaction"].values()) == run.count("retried")
        run.end()
        committed = run.count("committed", "new_order")
    # What ended after the last whole tick is on the server only.
    assert committed <= database.next_orders() - before

    with running(run_plan(database, retries=0, **changes)) as run:
        run.until(lambda run: run.done() >= 100 and (run.count("failed") > 0 or not conflicts))
        errors = run.point()["errors"]
        assert run.status["state"] == "running"
        assert (run.count("failed") > 0) >= conflicts
        assert run.count("retried") == 0
        assert errors["count"] == run.count("failed")
        assert errors["kinds"]["deadlock"] + errors["kinds"]["serialization"] == errors["count"]
    assert database.failing(QUICK) == set()


def test_an_open_loop_holds_its_rate(database: Database) -> None:
    rate = 100.0
    plan = run_plan(database, users=8, mix=READING, load={"kind": "open", "rate": rate, "poisson": True})
    with running(plan) as run:
        run.until(lambda run: run.status["complete_ticks"] >= 5)
        run.ticks(20)
        figures = run.point(5)
        expected = rate * (run.status["complete_ticks"] - 5) / 10
        # Besides chance, those under way at either end.
        assert abs(figures["total"]["count"] - expected) <= 4 * math.sqrt(expected) + 8
        assert figures["schedule"]["waits"] > 0
        assert figures["schedule"]["lag_p99_ns"] > 0
        assert figures["errors"]["count"] == 0
        assert figures["service_latency_ns"]["mean"] <= figures["total"]["latency_ns"]["mean"]
        run.end()
        # All arrivals but those of the last moment had been taken.
        backlog = run.point(5)["backlog"]
        assert backlog is None or backlog["unfinished"] <= rate


def test_thinking_users_share_connections(database: Database) -> None:
    users, scale = 200, 0.1
    plan = run_plan(database, users=users, connections=2, threads=1, think_scale=scale, mix=READING)
    with running(plan) as run:
        run.until(lambda run: run.status["complete_ticks"] >= 10)
        run.ticks(15)
        figures = run.point(10)
        assert (run.status["connected"], figures["threads"]) == (2, 1)
        seconds = (run.status["complete_ticks"] - 10) / 10
        # A user is always in its cycle or waiting for an answer, to which waiting for a connection belongs.
        cycle_s = ORDER_STATUS_CYCLE_S * scale + figures["total"]["latency_ns"]["mean"] / 1e9
        assert figures["total"]["count"] == pytest.approx(users / cycle_s * seconds, rel=0.3)
        assert 0 < figures["schedule"]["kept_share"] <= 1
        assert figures["schedule"]["waits"] > 0
        assert figures["errors"]["count"] == 0
        assert run.end()["state"] == "ended"


def test_thousands_of_users_think_on_a_few_connections(database: Database) -> None:
    plan = run_plan(
        database, users=2000, connections=4, think_scale=1.0, mix=STRICT, deck=True, nurand_items=True, home="district"
    )
    with running(plan) as run:
        run.until(lambda run: run.done() >= 50)
        assert (run.status["connected"], run.count("failed")) == (4, 0)
        ended = run.end()
        assert (ended["state"], ended["error"]) == ("ended", None)


@pytest.mark.parametrize("threads", [1, 2])
def test_users_are_spread_over_databases(postgresql18: Server, mariadb: Server, threads: int) -> None:
    databases = [loaded(postgresql18), loaded(mariadb)]
    before = [database.next_orders() for database in databases]
    with running(run_plan(*databases, users=4, threads=threads)) as run:
        run.until(lambda run: all(place["new_order_count"] >= 50 for place in run.poll().point()["databases"]))
        assert (run.status["connected"], run.status["state"]) == (4, "running")
        figures = run.point()
        assert [place["name"] for place in figures["databases"]] == ["db1", "db2"]
        assert sum(place["count"] for place in figures["databases"]) == figures["total"]["count"]
        assert figures["threads"] == threads
        run.end()
        counted = [place["new_order_count"] for place in run.point()["databases"]]
    after = [database.next_orders() for database in databases]
    assert all(0 < count <= now - then for count, now, then in zip(counted, after, before, strict=True))
