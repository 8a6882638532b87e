"""DuckDB: its file is found, made, locked, saved and restored; sessions of one process share it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from assay.base.errors import IoFailed, NotSupported, OpenFailed, OutOfMemory, RefusedTarget
from assay.targets.databases import ConnectionLost, open_database, parse_database
from assay.targets.databases.common.target import choose_databases
from assay.targets.databases.duckdb.database import Duckdb
from assay.telemetry.collectors import DuckdbCollector, activity, database_collectors
from assay.workloads.tpcc.tables import TABLES

Made = Callable[[str], Duckdb]

OPENED_BY_ANOTHER = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('FROM duckdb_tables()')"


@pytest.fixture
def duckdb_of() -> Iterator[Made]:
    """The database of a file, not opened; all are closed afterwards."""
    made: list[Duckdb] = []

    def make(target: object) -> Duckdb:
        database = open_database(parse_database(f"duckdb:{target}", {}), TABLES)
        assert isinstance(database, Duckdb)
        made.append(database)
        return database

    yield make
    for database in made:
        database.close()


@pytest.fixture
def database(duckdb_of: Made, tmp_path: Path) -> Duckdb:
    """An open database with two tables."""
    database = duckdb_of(f"{tmp_path}/db.duckdb?threads=2&memory_limit=200MB")
    database.open()
    database.create_table("assay_schema", "CREATE TABLE assay_schema (k varchar(32) NOT NULL, v varchar(255) NOT NULL)")
    database.create_table("history", "CREATE TABLE history (h_w_id integer NOT NULL, h_data varchar(24))")
    return database


def others_may_open(file: Path) -> bool:
    done = subprocess.run([sys.executable, "-c", OPENED_BY_ANOTHER, file], capture_output=True, check=False)
    return done.returncode == 0


def test_a_missing_file_is_made_and_found_again(duckdb_of: Made, tmp_path: Path) -> None:
    database = duckdb_of(f"{tmp_path}/db.duckdb?threads=1&temp_directory={tmp_path}")
    database.open()
    assert os.listdir(tmp_path) == ["db.duckdb"]
    assert (tmp_path / "db.duckdb").stat().st_mode & 0o777 == 0o600
    facts = database.facts()
    assert facts["settings"]["threads"] == "1"
    assert facts["settings"]["temp_directory"] == str(tmp_path)
    assert facts["settings_given"]["threads"] == "1"
    assert set(database.storage_paths()) == {"data", "log", "temp"}
    database.create_table("history", "CREATE TABLE history (h integer)")
    database.close()
    database.open()
    assert database.marked_tables() == {"history"}


def test_the_file_is_held_from_opening_to_closing(database: Duckdb, tmp_path: Path) -> None:
    """Copies read the file too, and closing a file ends the process's locks on it."""
    file = tmp_path / "db.duckdb"
    assert not others_may_open(file)
    database.save()
    assert not others_may_open(file)
    database.restore()
    assert not others_may_open(file)
    database.close()
    assert others_may_open(file)


def test_a_file_that_another_process_has_open_is_refused(database: Duckdb, tmp_path: Path) -> None:
    database.close()
    code = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "db.duckdb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(RefusedTarget, match=f"process {other.pid} has .*db.duckdb open; end it"):
            database.open()
    database.open()
    assert database.marked_tables() == {"history", "assay_schema"}


def test_sessions_share_the_database_and_end_with_it(database: Duckdb) -> None:
    session = database.new_session()
    with session.transaction():
        session.execute("INSERT INTO history VALUES (1, %s)", ("100 %",))
        assert database.query("SELECT count(*) FROM history") == [(0,)]
    with contextlib.suppress(IoFailed), session.transaction():
        session.execute("INSERT INTO history VALUES (2, 'two')")
        session.execute("INSERT INTO history VALUES (NULL, 'none')")
    session.append("history", pa.record_batch([[3, 4], ["three", None]], names=["h_w_id", "h_data"]))
    assert database.query("SELECT * FROM history ORDER BY 1") == [(1, "100 %"), (3, "three"), (4, None)]
    database.save()
    with pytest.raises(ConnectionLost):
        session.query("SELECT 1")
    with pytest.raises(NotSupported, match="takes no connections"):
        database.connection()


def test_a_statement_is_ended_from_another_thread(database: Duckdb) -> None:
    session = database.new_session()
    ended: list[Exception] = []

    def run() -> None:
        try:
            session.query("SELECT count(*) FROM range(100000000) a, range(1000) b WHERE a.range + b.range = 3")
        except IoFailed as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        session.cancel()
        time.sleep(0.05)
    assert "Interrupted" in str(ended[0])
    assert session.query("SELECT 1") == [(1,)]


def test_too_little_memory_is_said(database: Duckdb) -> None:
    database.execute("SET max_temp_directory_size = '1MB'")
    with pytest.raises(OutOfMemory, match="raise memory_limit") as error:
        database.query("SELECT count(*) FROM (SELECT list(range) FROM range(100000000) GROUP BY range)")
    assert "\n" not in str(error.value)
    assert database.query("SELECT count(*) FROM history") == [(0,)]


def test_statements_reach_no_other_files(database: Duckdb) -> None:
    for statement in ("SELECT * FROM read_text('/etc/passwd')", "ATTACH '/tmp/other.duckdb'", "INSTALL tpch"):
        with pytest.raises(IoFailed, match="Permission Error"):
            database.execute(statement)


def test_what_hangs_on_the_tables_is_listed_and_not_saved(database: Duckdb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "assay.targets.databases.duckdb.database.own_columns", lambda *_: {"history": {"h_w_id", "h_data"}}
    )
    monkeypatch.setattr("assay.targets.databases.duckdb.database.own_indexes", lambda *_: frozenset({"history_own"}))
    assert database.others_on_tables() == []
    database.execute("CREATE INDEX history_own ON history (h_w_id)")
    database.save()
    for statement in (
        "CREATE INDEX added ON history (h_data)",
        "CREATE VIEW seen AS SELECT 1 AS one",
        "CREATE SCHEMA shop",
        "CREATE SEQUENCE numbers",
        "CREATE TYPE mood AS ENUM ('good')",
        "CREATE MACRO plus(a) AS a + 1",
    ):
        database.execute(statement)
    others = ["macro plus", "schema shop", "sequence numbers", "type mood", "view seen"]
    assert database.others_on_tables() == ["index history.added", *others]
    for work in (database.save, database.restore):
        with pytest.raises(NotSupported, match=r"holds what is not Assay's \(macro plus, schema shop"):
            work()


def test_a_checkpoint_gives_back_what_was_dropped(database: Duckdb) -> None:
    database.execute("INSERT INTO history SELECT range, hash(range)::varchar FROM range(300000)")
    database.checkpoint()
    before = database.bytes_used()
    database.execute("DROP TABLE history; DROP TABLE assay_schema")
    database.checkpoint()
    assert database.bytes_used() < before / 3


def test_a_broken_instance_is_opened_again(database: Duckdb) -> None:
    assert not database.revive()
    assert database._base is not None
    database._base.close()
    assert database.revive()
    assert database.marked_tables() == {"history", "assay_schema"}
    database.close()
    assert not database.revive()


def test_memory_files_and_log_are_recorded(database: Duckdb) -> None:
    (collector,) = database_collectors([database])
    assert isinstance(collector, DuckdbCollector)
    try:
        before = collector.sample()
        database.execute("INSERT INTO history SELECT range, 'some text' FROM range(100000)")
        after = collector.sample()
        readings = {one.metric: one.value for one in collector.readings(before, after, 10**9)}
    finally:
        collector.close()
    assert {one for one in readings if not one.startswith(("memory_", "observing_"))} == {
        "temp_files_count", "temp_bytes", "database_bytes", "log_file_bytes",
    }  # fmt: skip
    assert readings["memory_used_bytes"] > 0
    assert before is not None
    assert readings["log_file_bytes"] + readings["database_bytes"] > sum(
        value for (_, metric), value in before.gauges.items() if metric in ("log_file_bytes", "database_bytes")
    )
    assert activity([database]).statements == {}


def test_a_run_opens_and_leaves_it_as_any_database(tmp_path: Path) -> None:
    target = choose_databases([f"duckdb:{tmp_path}/db"], TABLES)
    shown: list[str] = []
    try:
        target.open(0, shown.append)
        target.open(4, shown.append)
        assert [volume["name"] for volume in target.facts()["volumes"]] == ["db-data", "db-log", "db-temp"]
        assert target.facts()["volumes"][0]["created_by_assay"]
        assert target.is_local
    finally:
        target.close()
    assert set(shown) == {"opening db"}
    assert others_may_open(tmp_path / "db")


@pytest.mark.parametrize("at", [".", "no/db", "notes.txt/db"])
def test_a_path_that_can_be_no_file_is_refused(duckdb_of: Made, tmp_path: Path, at: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises((RefusedTarget, OpenFailed), match=r"is a folder; give a file|does not exist; create it"):
        duckdb_of(tmp_path / at).open()
    assert os.listdir(tmp_path) == ["notes.txt"]
