"""One seed leaves the same rows in all 33 tables, as statements and as procedures, on every database."""

from __future__ import annotations

import datetime
import decimal
import functools
import hashlib
import json
from typing import Any

import pytest
from engine import SEED, Server, load_plan, loading
from test_brokerage_engine import CUSTOMERS, MIX, SHAPE, Brokerage

from assay._core import oltp_serial, row_counts
from servers.mssql import MssqlServer

STEPS, STEP_NS = 3200, 250_000_000
"""Thirteen minutes of trading: data are maintained once a minute, in twelve tables in turn."""


def plain(value: Any) -> str:
    """A value as every driver gives it."""
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, bool):
        return str(int(value))
    return str(value).rstrip()


def digests(database: Brokerage) -> dict[str, tuple[int, str]]:
    """The number of rows of each table, and a digest of their values, whatever their order."""
    found = {}
    for table in row_counts("brokerage", CUSTOMERS, json.dumps(SHAPE)):
        with database.session() as session:
            rows = ["|".join(map(plain, row)) for row in session.execute(f"SELECT * FROM {table}")]
        found[table] = (len(rows), hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest())
    return found


@functools.cache
def left_by(server: Server, procedures: bool) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, str]]]:
    """What a serial run does and leaves behind."""
    database = Brokerage(server.fresh_database(), warehouses=CUSTOMERS)
    database.files("drop", "schema")
    with loading(load_plan(database, workload="brokerage", **SHAPE)) as load:
        load.end()
    # Babelfish cannot compare texts by bytes in the checks of foreign keys.
    keeps_references = not (isinstance(server, MssqlServer) and "Babelfish" in server.version())
    database.files("indexes", *(["foreign_keys"] if keeps_references else []), "procedures")
    plan = database.plan(users=1, procedures=procedures, mix=MIX, rows_seed=SEED)
    counts = oltp_serial(json.dumps(plan), STEPS, STEP_NS)
    assert database.broken() == {}
    return counts, digests(database)


def same_rows(**servers: Server) -> None:
    """Runs on all servers in both modes do the same and leave the same, whatever the first did."""
    runs = {
        (name, mode): left_by(server, mode == "procedures")
        for name, server in servers.items()
        for mode in ("statements", "procedures")
    }
    first_counts, first_rows = next(iter(runs.values()))
    assert all(committed > 0 for committed, _ in first_counts.values()), first_counts
    assert first_counts["trade_order"][1] > 0
    for run, (counts, rows) in runs.items():
        assert counts == first_counts, run
        assert {table: rows[table] for table in rows if rows[table] != first_rows[table]} == {}, run


@pytest.mark.slow(reason="runs thirteen minutes of trading step by step, four times")
def test_statements_and_procedures_leave_the_same_rows_on_every_database(postgresql15: Server, mariadb: Server) -> None:
    same_rows(postgresql=postgresql15, mariadb=mariadb)


@pytest.mark.slow(reason="waits for a server elsewhere; the others are compared without it")
def test_a_server_of_another_dialect_has_the_same_rows(postgresql15: Server, mssql: Server) -> None:
    same_rows(postgresql=postgresql15, mssql=mssql)
