"""Databases in memory, and a compiled core that reports what a test wrote, in the form of `RowsLoad` and `OltpRun`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from assay.base.errors import NotSupported, UsageError
from assay.targets.databases import SchemaState
from assay.workloads.tpcc.application import TPCC
from assay.workloads.tpcc.tables import TABLES

CONDITIONS = [(f"condition.{number}", f"-- title: rule {number}\nSELECT {number}") for number in range(1, 13)]
FILES = {
    "schema": [(name, f"CREATE TABLE {name}") for name in ("assay_schema", "assay_chunk", "item")],
    "indexes": [("stock_pkey", "ALTER TABLE stock"), ("orders_customer", "CREATE INDEX orders_customer")],
    "procedures": [("assay_payment", "CREATE FUNCTION assay_payment")],
    "drop": [("item", "DROP TABLE item"), ("assay_schema", "DROP TABLE assay_schema")],
    "conditions": CONDITIONS,
}


def oltp_sql(kind: str, dialect: str, file: str) -> list[tuple[str, str]]:
    assert (kind, dialect) == (TABLES.rows, "postgresql")
    return FILES[file]


class MemoryDatabase:
    """A database that knows only what became of its warehouses."""

    dialect = "postgresql"
    table_set = TABLES
    is_own = in_process = False
    server = ("postgresql", "db", 1)

    def refuse_host(self) -> None: ...

    def __init__(self, name: str = "shop", **schema: Any) -> None:
        self.name = name
        self.spec = SimpleNamespace(
            array=None, directory=None, file=None,
            kind="postgresql", display=f"postgresql://tester@db/{name}", recorded=name, host=None, database="d",
        )  # fmt: skip
        self.there = SchemaState(**{"kind": "absent", **schema})
        self.copy: SchemaState | None = None
        self.notices: list[str] = []
        self.said: list[str] = []
        self.connections_free: int | None = 97
        self.paths: dict[str, str] = {}
        self.violated: dict[int, int] = {}
        self.new_orders = 3000.0
        self.can_save = True
        self.indexes: list[str] = []
        self.closed = 0
        self.is_down = False
        self.asked_connections = 0

    def open(self, *, connections: int = 0) -> None:
        self.asked_connections = connections

    def close(self) -> None:
        self.closed += 1

    def revive(self) -> bool:
        was_down, self.is_down = self.is_down, False
        return was_down

    def hold(self) -> None:
        """No other run can get at it."""

    def refuse_drop(self) -> None:
        """All of it is Assay's."""

    def create_table(self, name: str, statement: str) -> None:
        assert statement == f"CREATE TABLE {name}"
        self.execute(statement)

    def usual_places(self) -> tuple[str, ...]:
        return ()

    def connection(self) -> Any:
        plan = {"kind": "postgresql", "host": "db", "user": "tester", "password": "secret", "database": self.name}
        return SimpleNamespace(core_plan=lambda: plan, kind="postgresql", socket=None, host="db", port=1, database="d")

    def check_rights(self) -> None:
        self.said.append("rights")

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "kind": "postgresql", "version": "18.1", "max_connections": 100, "settings": {},
                "connections_free": self.connections_free, "is_local": False}  # fmt: skip

    def schema(self) -> SchemaState:
        return self.there

    def query(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "pg_tablespace" in sql:
            return []
        assert not params
        if "pg_indexes" in sql:
            return [(name,) for name in self.indexes]
        number = int(sql.rsplit(" ", 1)[1])
        violations = self.violated.get(number, 0)
        return [(10, violations, "district 3" if violations else None)]

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        self.said.append(" ".join([sql.splitlines()[0], *map(str, params)]))
        if sql.startswith("DROP TABLE assay_schema"):
            self.there = SchemaState(kind="absent")
        elif sql.startswith("INSERT") and params[0] == "warehouses":
            self.there = SchemaState(kind="partial", scale=int(str(params[1])))
        elif sql.startswith("INSERT") and params[0] == "seed":
            self.there = SchemaState(kind="partial", scale=self.there.scale, seed=int(str(params[1])))
        elif sql.startswith("UPDATE assay_schema") and "'state'" in sql:
            there = self.there
            self.there = SchemaState(kind="complete", scale=there.scale, seed=there.seed, state=str(params[0]))

    def execute_many_parallel(self, statements: Sequence[str], connections: int, progress: Any = None) -> None:
        assert connections
        for number, statement in enumerate(statements, start=1):
            self.execute(statement)
            progress(number, len(statements))

    def counters(self) -> dict[str, float]:
        return {"transactions_count": self.new_orders * 2.3, "new_order_count": self.new_orders}

    def bytes_used(self) -> int:
        return 1 << 30

    def storage_paths(self) -> dict[str, str]:
        return self.paths

    def loading(self) -> AbstractContextManager[None]:
        return nullcontext()

    def checkpoint(self) -> None:
        self.said.append("checkpoint")

    def vacuum_analyze(self, progress: Any = None) -> None:
        progress(1, 1)
        self.said.append("vacuum")

    def save(self) -> None:
        if not self.can_save:
            raise NotSupported("shop: cannot be copied here")
        self.said.append("save")
        self.copy = self.there

    def restore(self) -> None:
        if self.copy is None:
            raise UsageError("nothing is saved")
        self.said.append("restore")
        self.there = self.copy

    def saved(self) -> dict[str, Any] | None:
        return None if self.copy is None else {"warehouses": self.copy.scale, "seed": self.copy.seed}

    def drop_saved(self) -> None:
        self.copy = None


def loaded(warehouses: int = 10, seed: int = 1, state: str = "loaded") -> dict[str, Any]:
    return {"kind": "complete", "scale": warehouses, "seed": seed, "state": state}


def load_report(**fields: Any) -> dict[str, Any]:
    return {
        "state": "done", "error": None, "rows": 5_000, "bytes": 500_000, "rows_total": 10_000, "chunks_done": 20,
        "chunks_total": 41, "chunks_skipped": 0, "elapsed_ns": 2 * 10**9, "cpu_ns": 10**9, "reconnects": 0, **fields,
    }  # fmt: skip


class ScriptedLoad:
    """Gives its reports one after the other, the last one for ever."""

    def __init__(self, *reports: dict[str, Any]) -> None:
        self.reports = list(reports) or [load_report()]
        self.asked: list[dict[str, Any]] = []
        self.is_stopped = False

    def __call__(self, plan_json: str) -> ScriptedLoad:
        self.asked.append(json.loads(plan_json))
        return self

    def poll(self) -> str:
        return json.dumps(self.reports.pop(0) if len(self.reports) > 1 else self.reports[0])

    def finish(self, timeout_s: float) -> str:
        assert timeout_s > 0
        self.is_stopped = True
        return self.poll()


def latencies(ns: float) -> dict[str, float]:
    return dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"), ns)


def run_report(**fields: Any) -> dict[str, Any]:
    return {
        "state": "running", "error": None, "connected": 4, "complete_ticks": 0, "now_ns": 0, "reconnecting": 0,
        "started_utc_ns": 1_700_000_000 * 10**9, "ticks": [], "cpu_ns": [], "gaps": [], **fields,
    }  # fmt: skip


class ScriptedRun:
    """Users on databases in memory: every poll a tick is over, in which `nopm(plan)` holds."""

    def __init__(
        self,
        nopm: Callable[[dict[str, Any]], float] = lambda plan: plan["users"] * 600.0,
        *,
        databases: Sequence[MemoryDatabase] = (),
        latency_ns: Callable[[dict[str, Any]], float] = lambda plan: 1e6 * plan["users"],
        figures: dict[str, Any] | None = None,
        reports: dict[int, dict[str, Any]] | None = None,
    ) -> None:
        self.nopm, self.latency_ns, self.databases = nopm, latency_ns, databases
        self.figures, self.reports = figures or {}, reports or {}
        self.asked: list[dict[str, Any]] = []
        self.measured_from: list[int] = []
        self.windows: list[tuple[int, int]] = []
        self.ratio = 2.323
        self.finished = 0
        self.loses = 0.0
        """New orders that are acknowledged and are not there."""

    def __call__(self, plan_json: str) -> ScriptedRun:
        self.asked.append(json.loads(plan_json))
        self.polls = 0
        return self

    @property
    def plan(self) -> dict[str, Any]:
        return self.asked[-1]

    def tick(self, number: int) -> list[dict[str, Any]]:
        seconds = self.plan["interval_ns"] / 1e9
        count = round(self.nopm(self.plan) / 60 * seconds)
        for database in self.databases:
            database.new_orders += count - self.loses
        latency = self.latency_ns(self.plan)
        common = {"tick": number, "database": 0, "rolled_back": 1, "retried": 0, "failed": 0, "committed": count}
        common |= {f"{name}_ns": latency for name in ("mean", "p50", "p90", "p99", "max")}
        idle = {f"{name}_ns": None for name in ("mean", "p50", "p90", "p99", "max")}
        return [{**common, "transaction": "new_order"}, {**common, **idle, "committed": 0, "transaction": "payment"}]

    def poll(self) -> str:
        number, self.polls = self.polls, self.polls + 1
        time.sleep(0)
        return json.dumps(run_report(ticks=self.tick(number), complete_ticks=number + 1) | self.reports.get(number, {}))

    def measure_from(self, tick: int) -> None:
        self.measured_from.append(tick)

    def finish(self, timeout_s: float) -> str:
        assert timeout_s > 0
        self.finished += 1
        return json.dumps(run_report(state="ended", complete_ticks=self.polls + 1))

    def point(self, from_tick: int, to_tick: int) -> str:
        self.windows.append((from_tick, to_tick))
        seconds = (to_tick - from_tick) * self.plan["interval_ns"] / 1e9
        nopm, latency = self.nopm(self.plan), self.latency_ns(self.plan)
        count = nopm * self.ratio / 60 * seconds
        one = {"count": round(nopm / 60 * seconds), "per_s": nopm / 60, "rolled_back": 1, "retried": 0, "failed": 0,
               "latency_ns": latencies(latency), "histogram": ""}  # fmt: skip
        return json.dumps(
            {
                "by_transaction": dict.fromkeys(TPCC.transactions, one),
                "total": {"count": count, "per_s": count / seconds, "latency_ns": latencies(latency), "histogram": ""},
                "databases": [
                    {"name": database["name"], "new_order_count": nopm / 60 * seconds / len(self.plan["databases"]),
                     "count": 1}
                    for database in self.plan["databases"]
                ],
                "errors": {"count": 0, "kinds": {"deadlock": 0, "serialization": 0, "connection": 0, "other": 0},
                           "example": None},
                "client_cpu_ns": 10**8, "threads": 1, "fullest_thread_share": 0.1, "service_latency_ns": None,
                "gaps": {"count": 0, "longest_ns": 0, "total_ns": 0, "ios": 0},
                "schedule": None, "backlog": None, **self.figures,
            }
        )  # fmt: skip
