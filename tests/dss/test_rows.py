"""Rows of the TPC-H-like data set: in every database the same ones, whichever way they come."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import duckdb
import psycopg
import pyarrow as pa
import pymysql
import pytest

from assay import _core
from assay.base.errors import UsageError
from assay.targets.databases.common.columns import record_batch
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

if TYPE_CHECKING:
    from assay.workloads.tpch.shapes import Dss

KIND = "tpch"
# At the smallest scale there is.
SCALE = 1
KEYS = {
    "region": 1, "nation": 1, "supplier": 1, "customer": 1, "part": 1, "partsupp": 2, "orders": 1, "lineitem": (1, 4),
}  # fmt: skip
"""Columns of the primary keys by place, or how many columns from the first one on."""
TYPES = {"int64": "bigint", "decimal128(15, 2)": "decimal(15,2)", "date32[day]": "date", "string": "varchar(200)"}
DEADLINE_S = 120

Chunk = tuple[str, int, int]
Rows = dict[str, list[tuple[Any, ...]]]


def batches(chunks: list[Chunk], rows_max: int, scale: int = SCALE) -> list[tuple[str, pa.RecordBatch]]:
    """All batches of chunks, each with its table."""
    found = []
    for chunk in chunks:
        of_chunk = _core.ChunkRows(KIND, scale, 1, chunk)
        while batch := of_chunk.next_batch(rows_max):
            table, rows, columns = batch
            made = pa.record_batch(record_batch(rows, columns))
            made.validate(full=True)
            found.append((table, made))
    return found


def rows_of(made: list[tuple[str, pa.RecordBatch]]) -> Rows:
    rows: Rows = defaultdict(list)
    for table, batch in made:
        rows[table] += [tuple(row.values()) for row in batch.to_pylist()]
    return {table: sorted(of_table) for table, of_table in rows.items()}


def tables() -> dict[str, str]:
    """Statements that make the tables, from the columns of their first batches."""
    made = {}
    for table, batch in batches(_core.chunks_of(KIND, SCALE), 1):
        columns = [f"{field.name} {TYPES[str(field.type)]} NOT NULL" for field in batch.schema]
        key = KEYS[table]
        names = batch.schema.names
        of_key = [names[place - 1] for place in key] if isinstance(key, tuple) else names[:key]
        made[table] = f"CREATE TABLE {table} ({', '.join(columns)}, PRIMARY KEY ({', '.join(of_key)}))"
    chunk = "CREATE TABLE assay_chunk (kind varchar(20), unit int, part int, row_count bigint,"
    return made | {"assay_chunk": f"{chunk} PRIMARY KEY (kind, unit, part))"}


def load(url: str, chunks: list[Chunk] | None = None) -> dict[str, Any]:
    """Load the rows, or those of some chunks, and return the last report."""
    parts = urlsplit(url)
    connection = {
        "kind": parts.scheme, "host": parts.hostname, "port": parts.port, "user": parts.username,
        "password": parts.password, "database": parts.path.lstrip("/"),
    }  # fmt: skip
    database = {"name": "one", "connection": connection, "scale": SCALE, "chunks": chunks}
    plan = {"workload": KIND, "databases": [database], "connections": 2, "seed": 1, "reconnect_s": 10}
    loading = _core.RowsLoad(json.dumps(plan))
    deadline = time.monotonic() + DEADLINE_S
    while (report := json.loads(loading.poll()))["state"] == "running":
        assert time.monotonic() < deadline, report
        time.sleep(0.01)
    assert (report["state"], report["error"]) == ("done", None)
    return dict(report)


@pytest.fixture(params=["postgresql18", "mariadb"])
def server(request: pytest.FixtureRequest) -> PostgresqlServer | MariadbServer:
    found: PostgresqlServer | MariadbServer = request.getfixturevalue(request.param)
    return found


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_every_database_gets_the_same_rows(server: PostgresqlServer | MariadbServer) -> None:
    url = server.fresh_database()
    parts = urlsplit(url)
    session: Any = (
        psycopg.connect(url, autocommit=True)
        if parts.scheme == "postgresql"
        else pymysql.connect(
            host=parts.hostname, port=parts.port or 0, user=parts.username, password=parts.password or "",
            database=parts.path.lstrip("/"), autocommit=True,
        )
    )  # fmt: skip
    with closing(session), session.cursor() as cursor:
        for statement in tables().values():
            cursor.execute(statement)
        report = load(url)
        inserted = load(url, [("rf1", 1, 1)])
        chunks = _core.chunks_of(KIND, SCALE)
        expected = rows_of(batches([*chunks, ("rf1", 1, 1)], 1000))
        for table, rows in expected.items():
            cursor.execute(f"SELECT * FROM {table}")
            assert sorted(cursor.fetchall()) == rows, table
        cursor.execute("SELECT kind, unit, part FROM assay_chunk")
        assert sorted(cursor.fetchall()) == sorted([*chunks, ("rf1", 1, 1)])
    assert report["rows"] + inserted["rows"] == sum(map(len, expected.values()))
    assert report["rows"] == pytest.approx(report["rows_total"], rel=0.02)
    assert (inserted["chunks_done"], inserted["chunks_total"]) == (1, 1)


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_duckdb_takes_batches_as_they_are() -> None:
    made = batches(_core.chunks_of(KIND, SCALE), 700)
    with duckdb.connect() as connection:
        for statement in tables().values():
            connection.execute(statement)
        for table, batch in made:
            connection.execute(f"INSERT INTO {table} SELECT * FROM batch")
            assert batch.num_rows <= 700
        for table, rows in rows_of(made).items():
            assert sorted(connection.execute(f"SELECT * FROM {table}").fetchall()) == rows


def test_the_rows_of_other_workloads_are_columns_too() -> None:
    chunk = _core.ChunkRows("tpcc", 1, 1, ("orders", 1, 1))
    while found := chunk.next_batch(10_000):
        table, rows, columns = found
        batch = pa.record_batch(record_batch(rows, columns))
        batch.validate(full=True)
        if table == "orders":
            # Orders from 2101 on have no carrier yet.
            assert [row.as_py() is None for row in batch["o_carrier_id"]] == [False] * 2100 + [True] * 900
            assert batch["o_entry_d"][0].as_py().isoformat() == "2025-01-01T00:00:00"
        if table == "order_line":
            delivered = [row.as_py() is not None for row in batch["ol_delivery_d"]]
            assert delivered == [row.as_py() < 2101 for row in batch["ol_o_id"]]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: _core.ChunkRows("sales", 1, 1, ("fixed", 0, 1)), "no data set"),
        (lambda: _core.ChunkRows(KIND, 0, 1, ("fixed", 0, 1)), "accepted: 1 to"),
        (lambda: _core.ChunkRows(KIND, 1, 1, ("fixed", 0, 2)), "not one of tpch"),
        (lambda: _core.ChunkRows(KIND, 1, 1, ("orders", 1, 1)), "not one of tpch"),
        (lambda: _core.ChunkRows(KIND, 1, 1, ("rf1", 0, 1)), "not one of tpch"),
        (lambda: _core.ChunkRows(KIND, 1, 1, ("fixed", 0, 1)).next_batch(0), "accepted: 1 to"),
        (lambda: _core.ChunkRows(KIND, 1, 1, ("fixed", 0, 1)).next_batch(1_000_001), "accepted: 1 to"),
        (lambda: _core.chunks_of(KIND, 0), "accepted: 1 to"),
        (lambda: _core.row_counts("sales", 1), "no data set"),
        (lambda: _core.tpch_answer(23), "accepted: 1 to 22"),
        (lambda: _core.tpch_refresh_keys(1000, 0), "not one"),
        (lambda: _core.tpch_refresh_keys(0, 1), "not one"),
        (lambda: _core.tpch_refresh_keys(1000, 1, 3), "not one"),
    ],
)
def test_what_there_is_not_is_refused(ask: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ask()


def test_rows_that_are_not_known_are_not_told_as_right_and_answers_not_compared_are_not_met() -> None:
    from assay.workloads.tpch.workload import _checked_line

    rows = [
        {"database": "a", "table": name, "count": 5, "expected": None if name == "lineitem" else 5, "met": True}
        for name in ("nation", "lineitem")
    ]
    line = _checked_line(cast("Dss", {"rows": rows}))
    assert (line["met"], line["value"]) == (None, None)
    assert line["meaning"] == (
        "answers were not compared; 1 of 2 tables have the rows they should have; of lineitem the number is not known"
    )
    answers = [{"query": 1, "met": True}]
    right = _checked_line(cast("Dss", {"rows": rows[:1], "answers": answers}))
    assert (right["met"], right["meaning"]) == (
        True,
        "all 1 answers are right, and all tables have the rows they should have",
    )
