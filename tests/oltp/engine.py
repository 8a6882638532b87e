"""Databases that the engine itself loaded, plans for it, and runs that go on until something is the case."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sql_sessions import TABLES, Session, columns

from assay._core import OltpRun, RowsLoad, oltp_sql
from servers.mariadb import MariadbServer
from servers.mssql import MssqlServer
from servers.postgresql import PostgresqlServer

Server = PostgresqlServer | MariadbServer | MssqlServer

"""Fixtures of the servers on which the contract holds."""

TRANSACTIONS = ("new_order", "payment", "order_status", "delivery", "stock_level")
HAMMERDB = [10, 10, 1, 1, 1]
STRICT = [45, 43, 4, 4, 4]
READING = [0, 0, 1, 0, 0]
"""For what is about time, so that a slow disk does not matter."""

SEED = 1
ALL_CONDITIONS = range(1, 13)
AFTER_RUNS = [number for number in ALL_CONDITIONS if number != 11]
"""Conditions that hold at any time."""
QUICK = [number for number in AFTER_RUNS if number not in (6, 7, 10, 12)]
"""Those of them that do not look at every order line."""

TIMEOUT_S = 60.0
"""How long anything may take; nothing takes that long unless it hangs."""

WAREHOUSE_COLUMNS = {
    "warehouse": "w_id", "district": "d_w_id", "customer": "c_w_id", "history": "h_w_id", "orders": "o_w_id",
    "new_order": "no_w_id", "order_line": "ol_w_id", "stock": "s_w_id",
}  # fmt: skip

FIRST_32_BITS = {
    "postgresql": "('x' || substr(md5({text}), 1, 8))::bit(32)::bigint",
    "mariadb": "CAST(conv(substr(md5({text}), 1, 8), 16, 10) AS unsigned)",
}
TEXT_TYPE = {"postgresql": "text", "mariadb": "char"}


@dataclass(frozen=True)
class Database:
    """A database on one of the tests' servers, with the workload's tables."""

    url: str
    warehouses: int

    @property
    def dialect(self) -> str:
        return urlsplit(self.url).scheme

    @contextmanager
    def session(self) -> Iterator[Session]:
        session = Session(self.url)
        try:
            yield session
        finally:
            session.close()

    def make_tables(self) -> None:
        self._run_files("drop", "schema")

    def finish_tables(self) -> None:
        """What follows a load: indexes, procedures, statistics."""
        self._run_files("indexes", "procedures")
        with self.session() as session:
            for table in TABLES:
                session.execute(f"ANALYZE {'' if self.dialect == 'postgresql' else 'TABLE '}{table}")

    def _run_files(self, *files: str) -> None:
        with self.session() as session:
            for file in files:
                for _, text in oltp_sql("tpcc", self.dialect, file):
                    session.execute(text)

    def connection(self, **changes: object) -> dict[str, Any]:
        """For plans."""
        parts = urlsplit(self.url)
        return {
            "kind": self.dialect, "host": parts.hostname, "port": parts.port, "user": parts.username,
            "password": parts.password, "database": parts.path.lstrip("/"),
            **changes,
        }  # fmt: skip

    def chunks(self) -> list[tuple[str, int, int]]:
        """Chunks that are there."""
        with self.session() as session:
            return [(str(k), int(w), int(p)) for k, w, p in session.execute("SELECT kind, w_id, part FROM assay_chunk")]

    def failing(self, conditions: Iterable[int]) -> set[int]:
        """Which of these consistency conditions do not hold."""
        names = {f"condition.{number}": number for number in conditions}
        with self.session() as session:
            found = {
                names[name]: session.execute(text)[0]
                for name, text in oltp_sql("tpcc", self.dialect, "conditions")
                if name in names
            }
        assert len(found) == len(names)
        assert all(int(checked) > 0 for checked, _, _ in found.values())
        return {number for number, (_, violations, _) in found.items() if int(violations)}

    def next_orders(self) -> int:
        """Sum of the districts' next order numbers."""
        with self.session() as session:
            return int(session.execute("SELECT sum(d_next_o_id) FROM district")[0][0])

    def contents(self, *tables: str, where: str = "") -> dict[str, tuple[int, int]]:
        """Of tables how many rows they have, and a sum over them that is the same for the same rows on every server."""
        found = {}
        with self.session() as session:
            for table in tables or TABLES:
                text_type = TEXT_TYPE[self.dialect]
                # A key that only some dialects have is left out.
                cells = [f"coalesce(CAST({name} AS {text_type}), '-')" for name in columns("postgresql")[table]]
                digest = FIRST_32_BITS[self.dialect].format(text=f"concat_ws('|', {', '.join(cells)})")
                ((count, total),) = session.execute(f"SELECT count(*), sum({digest}) FROM {table} {where}")
                found[table] = (int(count), int(total or 0))
        return found

    def contents_of_first_warehouse(self) -> dict[str, tuple[int, int]]:
        """The same of items and of the rows of the first warehouse."""
        found = self.contents("item")
        for table, column in WAREHOUSE_COLUMNS.items():
            found |= self.contents(table, where=f"WHERE {column} = 1")
        return found


def socket_of(server: Server) -> str:
    """Path of a server's socket."""
    name = f".s.PGSQL.{server.port}" if isinstance(server, PostgresqlServer) else "mariadb.sock"
    return str(server.folder / name)


def load_plan(*databases: Database, **changes: Any) -> dict[str, Any]:
    """Load what is missing by four connections on two threads, unless changed."""
    return {
        "databases": [
            {"name": f"db{number}", "connection": database.connection(), "warehouses": database.warehouses, "done": []}
            for number, database in enumerate(databases, 1)
        ],
        "connections": 4,
        "threads": 2,
        "seed": SEED,
        "reconnect_s": TIMEOUT_S,
        **changes,
    }


def run_plan(*databases: Database, **changes: Any) -> dict[str, Any]:
    """Four users who call procedures, without pauses, unless changed."""
    return {
        "databases": [
            {"name": f"db{number}", "connection": database.connection(), "warehouses": database.warehouses}
            for number, database in enumerate(databases, 1)
        ],
        "users": 4, "connections": None, "threads": None, "load": {"kind": "closed"}, "mix": HAMMERDB, "deck": False,
        "nurand_items": False, "home": "warehouse", "think_scale": 0.0, "procedures": True, "pipeline": True,
        "isolation": "default", "retries": 10, "reconnect_s": TIMEOUT_S, "seed": 7, "interval_ns": 100_000_000,
        **changes,
    }  # fmt: skip


@dataclass
class Load:
    """A load in progress, and its last status."""

    core: RowsLoad
    status: dict[str, Any]

    def until(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until something is true of the status, or the load is over."""
        deadline = time.monotonic() + TIMEOUT_S
        while not reached(self._poll()) and self.status["state"] == "running":
            assert time.monotonic() < deadline, self.status
            time.sleep(0.005)
        return self.status

    def end(self) -> dict[str, Any]:
        """Wait until it is over."""
        return self.until(lambda _: False)

    def _poll(self) -> dict[str, Any]:
        self.status = json.loads(self.core.poll())
        return self.status


@contextmanager
def loading(plan: dict[str, Any]) -> Iterator[Load]:
    """A load that ends with the block."""
    load = Load(RowsLoad(json.dumps(plan)), {})
    try:
        yield load
    finally:
        load.core.finish(TIMEOUT_S)


class Run:
    """Users at work, and what was counted since they began."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.core = OltpRun(json.dumps(plan))
        self.status: dict[str, Any] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self._last_counting_tick = -1

    def until(self, reached: Callable[[Run], bool]) -> None:
        """Wait until something is true of the run, or it is over."""
        deadline = time.monotonic() + TIMEOUT_S
        while not reached(self.poll()) and self.status["state"] in ("connecting", "running"):
            assert time.monotonic() < deadline, (self.status, self.counts)
            time.sleep(0.01)

    def poll(self) -> Run:
        self._take(self.core.poll())
        return self

    def end(self) -> dict[str, Any]:
        self._take(self.core.finish(TIMEOUT_S))
        return self.status

    def count(self, outcome: str, *transactions: str) -> int:
        """How many transactions, of these kinds or of all, ended so in the ticks that are complete."""
        return sum(self.counts[transaction, outcome] for transaction in transactions or TRANSACTIONS)

    def done(self) -> int:
        return self.count("committed") + self.count("rolled_back")

    def ticks(self, count: int) -> None:
        """Let so many more ticks pass."""
        wanted = self.status["complete_ticks"] + count
        self.until(lambda run: run.status["complete_ticks"] >= wanted)

    def point(self, from_tick: int = 0) -> dict[str, Any]:
        """Figures of all complete ticks from one on."""
        figures: dict[str, Any] = json.loads(self.core.point(from_tick, self.status["complete_ticks"]))
        return figures

    def _take(self, text: str) -> None:
        self.status = json.loads(text)
        for tick in self.status["ticks"]:
            for outcome in ("committed", "rolled_back", "retried", "failed"):
                self.counts[tick["transaction"], outcome] += tick[outcome]


@contextmanager
def running(plan: dict[str, Any]) -> Iterator[Run]:
    """A run that ends with the block."""
    run = Run(plan)
    try:
        yield run
    finally:
        run.end()


def assert_failed(status: dict[str, Any], kind: str, *words: str) -> None:
    """It ended for a reason, in one line that has these words and no password."""
    assert status["state"] == "failed", status
    text = status["error"]["text"]
    assert (status["error"]["kind"], len(text.splitlines())) == (kind, 1), text
    assert not [word for word in words if word not in text], text
    assert "s3cret" not in json.dumps(status)


@dataclass(frozen=True)
class Loaded:
    """A database that tests share, and what it was before any of them ran transactions on it."""

    database: Database
    status: dict[str, Any]
    contents: dict[str, tuple[int, int]]
    """Of items and of the first warehouse."""
    rows: dict[str, int]
    lines: dict[tuple[int, int], int]
    """Order lines by warehouse and district."""
    failing: set[int]


@functools.cache
def first_load(server: Server) -> Loaded:
    """Load a database once per server, by several connections and without a break."""
    # Two where they cost little, so that there are remote warehouses.
    database = Database(server.fresh_database(), warehouses=2 if isinstance(server, PostgresqlServer) else 1)
    database.make_tables()
    with loading(load_plan(database)) as load:
        status = load.end()
    assert (status["state"], status["error"]) == ("done", None)
    database.finish_tables()
    with database.session() as session:
        rows = {table: int(session.execute(f"SELECT count(*) FROM {table}")[0][0]) for table in TABLES}
        by_district = session.execute("SELECT ol_w_id, ol_d_id, count(*) FROM order_line GROUP BY ol_w_id, ol_d_id")
    return Loaded(
        database=database,
        status=status,
        contents=database.contents_of_first_warehouse(),
        rows=rows,
        lines={(int(warehouse), int(district)): int(count) for warehouse, district, count in by_district},
        failing=database.failing(ALL_CONDITIONS),
    )


def loaded(server: Server) -> Database:
    """The database of a server that tests share."""
    return first_load(server).database
