"""The brokerage workload on real servers: its rows, its transactions, and the exchange that answers orders."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from engine import SEED, Database, Server, load_plan, loading, run_plan, running

from assay._core import oltp_sql, row_counts

CUSTOMERS, DAYS = 100, 1
SHAPE = {"days": DAYS, "news_bytes": 1000}
MIX = [0, 190, 180, 140, 130, 101, 80, 49, 20, 0, 0]
TRANSACTIONS = (
    "trade_result", "trade_status", "market_watch", "security_detail", "customer_position", "trade_order",
    "trade_lookup", "broker_volume", "trade_update", "market_feed", "data_maintenance",
)  # fmt: skip
ORDERS_ONLY = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


class Brokerage(Database):
    """A database with the tables of a brokerage."""

    def files(self, *files: str) -> None:
        with self.session() as session:
            for file in files:
                for _, text in oltp_sql("brokerage", self.dialect, file):
                    session.execute(text)

    def asked(self, file: str) -> dict[str, tuple[int, int, Any]]:
        """What conditions say: how many were checked, how many break them, one of these."""
        with self.session() as session:
            rows = {name: session.execute(text)[0] for name, text in oltp_sql("brokerage", self.dialect, file)}
        return {name: (int(checked), int(broken), example) for name, (checked, broken, example) in rows.items()}

    def broken(self) -> dict[str, tuple[int, int, Any]]:
        """Conditions and references that do not hold."""
        found = self.asked("conditions") | self.asked("references")
        return {name: told for name, told in found.items() if told[1]}

    def count(self, table: str, where: str = "") -> int:
        with self.session() as session:
            return int(session.execute(f"SELECT count(*) FROM {table} {where}")[0][0])

    def next_trade(self) -> int:
        with self.session() as session:
            return int(session.execute("SELECT max(t_id) FROM trade")[0][0]) + 1

    def plan(self, **changes: Any) -> dict[str, Any]:
        """Four users without pauses, unless changed."""
        return run_plan(
            self,
            **{
                "workload": "brokerage", "rows_seed": SEED, "days": DAYS, "next_trades": [self.next_trade()],
                "mix": MIX, "deck": True, "procedures": False, **changes,
            },
        )  # fmt: skip


@functools.cache
def loaded(server: Server) -> Brokerage:
    """A database of a server that tests share, loaded by several connections."""
    database = Brokerage(server.fresh_database(), warehouses=CUSTOMERS)
    database.files("drop", "schema")
    with loading(load_plan(database, workload="brokerage", **SHAPE)) as load:
        status = load.end()
    assert (status["state"], status["error"]) == ("done", None)
    database.files("indexes", "foreign_keys", "procedures")
    return database


@functools.cache
def counted(server: Server) -> dict[str, int]:
    """Rows of each table as loaded, and that conditions and references hold."""
    database = loaded(server)
    assert database.broken() == {}
    return {table: database.count(table) for table in row_counts("brokerage", CUSTOMERS, json.dumps(SHAPE))}


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_every_table_is_loaded_and_consistent(server: Server) -> None:
    drawn = {"customer_account", "account_permission", "watch_item", "trade_history", "cash_transaction",
             "holding_history", "holding", "holding_summary"}  # fmt: skip
    expected = row_counts("brokerage", CUSTOMERS, json.dumps(SHAPE))
    found = counted(server)
    assert len(found) == 33
    assert {name: count for name, count in found.items() if name not in drawn} == {
        name: count for name, count in expected.items() if name not in drawn
    }
    for name in drawn:
        assert found[name] == pytest.approx(expected[name], rel=0.4), name


@pytest.mark.parametrize("procedures", [False, True], ids=["statements", "procedures"])
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_all_transactions_run_and_the_exchange_answers_orders(server: Server, procedures: bool) -> None:
    counted(server)
    database = loaded(server)
    trades, results = database.count("trade"), database.count("settlement")
    with running(database.plan(procedures=procedures)) as run:
        run.until(
            lambda run: run.counts["trade_result", "committed"] >= 30 and run.counts["market_feed", "committed"] >= 1
        )
        run.end()
    assert run.status["state"] == "ended", run.status
    figures = run.point()
    assert figures["errors"]["example"] is None, figures["errors"]
    assert run.counts["data_maintenance", "failed"] == 0
    for name in TRANSACTIONS[:-1]:
        assert run.counts[name, "committed"] > 0, name
        assert run.counts[name, "failed"] == 0, name
    assert database.count("trade") - trades >= run.counts["trade_order", "committed"]
    assert database.count("settlement") - results >= run.counts["trade_result", "committed"]
    assert database.broken() == {}


def test_intended_rollbacks_are_no_failures_and_leave_nothing(server: Server) -> None:
    counted(server)
    database = loaded(server)
    with running(database.plan(mix=ORDERS_ONLY)) as run:
        run.until(lambda run: run.counts["trade_order", "rolled_back"] >= 2)
        run.end()
    assert run.counts["trade_order", "failed"] == 0
    assert run.counts["trade_result", "committed"] > 0, "results come without new requests of users"
    assert database.broken() == {}
