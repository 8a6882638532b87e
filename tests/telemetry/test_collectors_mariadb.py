"""MariaDB's collector on a real server, and what only other versions have on rows as they are documented."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.common.table_set import NO_TABLES
from assay.telemetry.collectors import MariadbCollector, activity, database_collectors, hottest
from assay.telemetry.collectors.database import Counters
from servers.fixtures import Connect
from servers.mariadb import MariadbServer

SECOND_NS = 10**9
DEADLINE_S = 60.0


@pytest.fixture
def database(mariadb: MariadbServer, connect: Connect) -> Database:
    return connect(mariadb.fresh_database())


@pytest.fixture
def collector(database: Database) -> Iterator[MariadbCollector]:
    (found,) = database_collectors([database])
    assert isinstance(found, MariadbCollector)
    yield found
    found.close()


def work(database: Database) -> None:
    database.execute("CREATE TABLE IF NOT EXISTS t (a int PRIMARY KEY AUTO_INCREMENT, b varchar(600)) ENGINE = InnoDB")
    session = database.new_session()
    for _ in range(5):
        session.execute("BEGIN")
        session.execute("INSERT INTO t (b) SELECT repeat('x', 500) FROM seq_1_to_40")
        session.execute("COMMIT")
    session.execute("BEGIN")
    session.execute("ROLLBACK")
    session.close()


def grown(before: Counters | None, after: Counters | None, metric: str) -> float:
    assert before is not None
    assert after is not None
    return sum(value - before.counts[key] for key, value in after.counts.items() if key[1] == metric)


def test_what_the_server_did_is_counted(database: Database, collector: MariadbCollector) -> None:
    before = collector.sample()
    work(database)
    after = collector.sample()
    assert grown(before, after, "commits_count") == 5
    assert grown(before, after, "rollbacks_count") == 1
    assert grown(before, after, "log_bytes") > 5 * 40 * 500
    assert grown(before, after, "log_writes_count") >= 5
    assert grown(before, after, "page_requests_count") > 200
    assert grown(before, after, "deadlocks_count") == 0
    assert before is not None
    assert before.gauges[database.name, "checkpoint_age_bytes"] >= 0
    assert before.gauges[database.name, "sessions_active_count"] >= 1


def test_writes_are_told_of_each_partition_of_a_table(
    mariadb: MariadbServer, database: Database, collector: MariadbCollector
) -> None:
    database.execute(
        "CREATE TABLE parts (a int PRIMARY KEY, b varchar(600)) ENGINE = InnoDB"
        " PARTITION BY RANGE (a) (PARTITION low VALUES LESS THAN (1000), PARTITION high VALUES LESS THAN MAXVALUE)"
    )
    before = collector.sample()
    database.execute("INSERT INTO parts SELECT 1000 + seq, repeat('x', 500) FROM seq_1_to_2000")
    mariadb.execute(f"FLUSH TABLES {database.connection().database}.parts FOR EXPORT")
    after = collector.sample()
    assert before is not None
    assert after is not None
    written = {entity: value - before.counts.get((entity, metric), 0.0)
               for (entity, metric), value in after.counts.items() if metric == "file_written_bytes"}  # fmt: skip
    name = database.name
    assert written[f"{name}/parts#P#high"] > 2000 * 500 > written[f"{name}/parts#P#low"]


def test_who_waits_for_a_row_is_told_of_its_table(database: Database, collector: MariadbCollector) -> None:
    database.execute("CREATE TABLE hot (a int PRIMARY KEY, b int) ENGINE = InnoDB")
    database.execute("INSERT INTO hot VALUES (1, 0)")
    holder, waiter = database.new_session(), database.new_session()
    holder.execute("BEGIN")
    holder.execute("UPDATE hot SET b = 1")
    thread = threading.Thread(target=waiter.execute, args=("UPDATE hot SET b = 2",))
    thread.start()
    place = (f"{database.name}/{database.connection().database}/hot", "lock_waiting_count")
    try:
        deadline = time.monotonic() + DEADLINE_S
        found = collector.sample()
        while found is not None and place not in found.gauges and time.monotonic() < deadline:
            found = collector.sample()
        assert found is not None
        assert found.gauges[place] == 1
        assert found.gauges[database.name, "waits_lock_share"] > 0
    finally:
        holder.execute("ROLLBACK")
        thread.join()
        holder.close()
        waiter.close()
    assert collector.missing == []


def test_what_a_user_may_not_see_is_said_with_what_grants_it(mariadb: MariadbServer) -> None:
    url = mariadb.fresh_database()
    name = url.rpartition("/")[2]
    mariadb.execute("CREATE OR REPLACE USER weak@'%' IDENTIFIED BY 'w'")
    mariadb.execute(f"GRANT ALL ON {name}.* TO weak@'%'")
    (found,) = database_collectors([
        open_database(parse_database(f"mariadb://weak:w@127.0.0.1:{mariadb.port}/{name}"), NO_TABLES)
    ])  # fmt: skip
    try:
        found.sample()
    finally:
        found.close()
        mariadb.execute("DROP USER weak@'%'")
    assert [text.partition("; GRANT ")[2] for text in found.missing] == [
        "SELECT ON performance_schema.* TO that user", "PROCESS ON *.* TO that user",
    ]  # fmt: skip


def test_readings_name_the_database(database: Database, collector: MariadbCollector) -> None:
    before = collector.sample()
    work(database)
    found = list(collector.readings(before, collector.sample(), SECOND_NS))
    assert {reading.entity for reading in found if reading.metric != "file_written_bytes"} == {database.name}
    assert {reading.kind for reading in found} == {"delta", "gauge"}


def test_a_killed_server_costs_samples_and_is_recorded_again(
    mariadb: MariadbServer, collector: MariadbCollector
) -> None:
    before = collector.sample()
    mariadb.kill9()
    assert collector.sample() is None
    mariadb.restart()
    deadline = time.monotonic() + DEADLINE_S
    after = collector.sample()
    while after is None and time.monotonic() < deadline:
        after = collector.sample()
    assert after is not None
    assert list(collector.readings(before, after, SECOND_NS)) == []
    assert list(collector.readings(after, collector.sample(), SECOND_NS)) != []


def test_hottest_statements_and_tables_are_those_of_the_time_between(database: Database) -> None:
    before = activity([database])
    work(database)
    after = activity([database])
    assert after.notices == ()
    statements, tables = hottest(before, after)
    insert = next(found for found in statements if found["text"].startswith("INSERT INTO"))
    assert insert["calls_count"] == 5
    assert insert["database"] == database.name
    assert next(found for found in tables if found["table"] == "t")["inserted_count"] == 200


def test_calls_of_procedures_are_among_them_once(database: Database) -> None:
    database.execute("CREATE TABLE t (a int) ENGINE = InnoDB")
    database.execute("CREATE PROCEDURE adding() INSERT INTO t SELECT * FROM seq_1_to_1000")
    before = activity([database])
    for _ in range(3):
        database.execute("CALL adding()")
    statements, _ = hottest(before, activity([database]))
    assert [(found["text"], found["calls_count"]) for found in statements if "adding" in found["text"]] == [
        ("CALL adding", 3)
    ]


def test_assays_own_looks_are_not_among_them(database: Database) -> None:
    before = activity([database])
    database.query("SELECT 1")
    assert not any("performance_schema" in found["text"] for found in hottest(before, activity([database]))[0])


def test_a_statement_that_may_hold_a_password_is_not_kept(database: Database) -> None:
    database.execute("CREATE USER somebody IDENTIFIED BY 'hidden'")
    database.execute("DROP USER somebody")
    assert not any("hidden" in str(record["text"]) for record in activity([database]).statements.values())


class Scripted:
    """A server whose status variables and rows of files are given."""

    def __init__(self, status: dict[str, str], files: Sequence[tuple[Any, ...]] | None) -> None:
        self.status, self.files = status, files

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        del params
        if "global variables" in sql:
            return [("performance_schema", "ON")] if self.files is not None else []
        if "by_instance" in sql:
            return []
        if "file_summary" in sql:
            return list(self.files or ())
        return list(self.status.items())

    def close(self) -> None:
        pass


def test_a_server_that_times_its_log_gives_the_latency_of_a_flush() -> None:
    files = [
        ("wait/io/file/innodb/innodb_log_file", 1, 10, 20, 400_000, 10, 5_000_000_000),
        ("wait/io/file/innodb/innodb_data_file", 4, 8_000_000_000, 0, 0, 1, 1),
    ]
    status = {"Innodb_os_log_fsyncs": "11", "Innodb_log_writes": "19", "Uptime": "5"}
    collector = MariadbCollector(lambda: Scripted(status, files), {"tpcc": "db"})
    found = collector.read(Scripted(status, files))
    assert found.counts == {
        ("db", "log_writes_count"): 20,
        ("db", "log_write_time_ns"): 400,
        ("db", "log_flushes_count"): 10,
        ("db", "log_flush_time_ns"): 5e6,
        ("db", "timed_reads_count"): 4,
        ("db", "read_time_ns"): 8e6,
    }


def test_without_the_performance_schema_flushes_are_counted_and_not_timed() -> None:
    server = Scripted({"Innodb_os_log_fsyncs": "11", "Com_commit": "3", "Uptime": "5"}, None)
    found = MariadbCollector(lambda: server, {"tpcc": "db"}).read(server)
    assert found.counts == {("db", "commits_count"): 3, ("db", "log_flushes_count"): 11}


def test_an_uptime_that_goes_back_is_a_restart_even_if_the_counters_grew() -> None:
    collector = MariadbCollector(lambda: Scripted({}, None), {"tpcc": "db"})
    found = [collector.read(Scripted({"Com_commit": count, "Uptime": uptime}, None))
             for count, uptime in (("1", "9"), ("2", "10"), ("50", "1"))]  # fmt: skip
    assert found[0].identity == found[1].identity != found[2].identity
