"""PostgreSQL's collector on real servers, old and new: counters mean what was done, restarts cost samples only."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from assay.record.machines import OF_ONE_DATABASE
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.common.table_set import NO_TABLES
from assay.telemetry.collectors import PostgresqlCollector, activity, database_collectors, hottest
from assay.telemetry.collectors import postgresql as collectors_postgresql
from assay.telemetry.collectors.database import Counters
from assay.telemetry.collectors.postgresql import counters_sql
from assay.telemetry.recorder import Recorder
from assay.workloads.tpcc.tables import TABLES
from servers.fixtures import Connect
from servers.postgresql import PostgresqlServer

SECOND_NS = 10**9
DEADLINE_S = 60.0

STATISTICS_MET_S = 1.1
"""Sessions report what they did at most once a second."""


def metrics_of(sql: str) -> set[str]:
    return set(re.findall(r"\('([a-z_]+)',", sql))


@pytest.mark.parametrize("version", range(14, 19))
def test_it_is_known_which_figures_are_one_databases(version: int) -> None:
    own, of_databases = OF_ONE_DATABASE["postgresql"], metrics_of(collectors_postgresql._DATABASE)
    assert "commits_count" in of_databases <= own
    of_server = metrics_of(counters_sql(version, 8192)) - of_databases
    assert "log_bytes" in of_server
    assert not own & of_server


@pytest.fixture
def database(postgresql: PostgresqlServer, connect: Connect) -> Database:
    return connect(postgresql.fresh_database())


@pytest.fixture
def collector(database: Database) -> Iterator[PostgresqlCollector]:
    (found,) = database_collectors([database])
    assert isinstance(found, PostgresqlCollector)
    yield found
    found.close()


def work(database: Database, *, rows: int = 200) -> None:
    database.execute("CREATE TABLE IF NOT EXISTS t (a int PRIMARY KEY, b text)")
    for first in range(0, rows, 50):
        database.execute(
            "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(%s::int, %s::int) i"
            " ON CONFLICT (a) DO UPDATE SET b = ''",
            (first, first + 49),
        )
    time.sleep(STATISTICS_MET_S)
    # A session reports at its next statement.
    database.query("SELECT count(*) FROM t")


def between(collector: PostgresqlCollector, before: Counters | None) -> dict[tuple[str, str], float]:
    after = collector.sample()
    assert after is not None
    return {(found.entity, found.metric): found.value for found in collector.readings(before, after, SECOND_NS)}


def grown(before: Counters | None, after: Counters | None, metric: str) -> float:
    assert before is not None
    assert after is not None
    return sum(value - before.counts[key] for key, value in after.counts.items() if key[1] == metric)


def times_short_flushes(database: Database) -> bool:
    """Whether a flush of the log takes time however short: before version 18 each counts whole microseconds alone,
    and a file system in memory takes none."""
    return int(str(database.query("SELECT current_setting('server_version_num')")[0][0])) >= 180000


def test_what_a_database_did_is_counted(database: Database, collector: PostgresqlCollector) -> None:
    before = collector.sample()
    work(database)
    database.checkpoint()
    # The checkpointer counts a checkpoint shortly after it has told that it is done.
    deadline = time.monotonic() + DEADLINE_S
    while not grown(before, after := collector.sample(), "checkpoints_count"):
        assert time.monotonic() < deadline
    assert grown(before, after, "commits_count") >= 4
    assert grown(before, after, "page_requests_count") > 200
    assert grown(before, after, "log_bytes") > 200 * 500
    assert grown(before, after, "log_flushes_count") >= 4
    assert grown(before, after, "log_flush_time_ns") > 0 or not times_short_flushes(database)
    assert grown(before, after, "checkpoint_written_bytes") >= 8192
    assert grown(before, after, "written_bytes") >= 8192
    assert grown(before, after, "deadlocks_count") == 0


def test_readings_name_the_database_and_have_latencies(database: Database, collector: PostgresqlCollector) -> None:
    before = collector.sample()
    work(database)
    found = between(collector, before)
    assert {entity for entity, _ in found} == {database.name}
    latency_ns = found.get((database.name, "log_flush_latency_mean_ns"), 0.0)
    assert latency_ns < DEADLINE_S * SECOND_NS
    assert latency_ns > 0 or not times_short_flushes(database)
    assert found[database.name, "size_bytes"] > 2**20
    assert found[database.name, "observing_latency_ns"] > 0


def test_the_same_metrics_stand_for_all_versions(collector: PostgresqlCollector) -> None:
    before = collector.sample()
    assert before is not None
    metrics = {metric for _, metric in before.counts}
    expected = """commits_count rollbacks_count deadlocks_count page_requests_count page_reads_count temp_bytes
        read_bytes reads_count written_bytes writes_count log_bytes log_full_pages_count log_writes_count
        log_flushes_count log_flush_time_ns checkpoints_count checkpoint_written_bytes"""
    assert set(expected.split()) <= metrics


def test_sessions_at_work_are_shared_out_among_what_they_wait_for(
    database: Database, collector: PostgresqlCollector
) -> None:
    collector.sample()
    waiting, holding = database.new_session(), database.new_session()
    database.execute("CREATE TABLE locked (a int)")
    holding.execute("BEGIN")
    holding.execute("LOCK TABLE locked")
    thread = threading.Thread(target=lambda: waiting.query("SELECT count(*) FROM locked"))
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    gauges: Any = {}
    while not gauges.get((database.name, "waits_lock_share")) and time.monotonic() < deadline:
        sample = collector.sample()
        assert sample is not None
        gauges = sample.gauges
    holding.execute("COMMIT")
    thread.join()
    waiting.close()
    holding.close()
    assert gauges[database.name, "waits_lock_share"] > 0
    shares = [value for (_, metric), value in gauges.items() if metric.startswith("waits_")]
    assert sum(shares) == pytest.approx(1)


def test_a_killed_server_costs_samples_and_is_recorded_again(
    postgresql: PostgresqlServer, collector: PostgresqlCollector
) -> None:
    before = collector.sample()
    assert before is not None
    postgresql.kill9()
    assert collector.sample() is None
    assert list(collector.readings(before, None, SECOND_NS)) == []
    postgresql.restart()
    deadline = time.monotonic() + DEADLINE_S
    after = collector.sample()
    while after is None and time.monotonic() < deadline:
        after = collector.sample()
    assert after is not None
    # The server began to count anew: nothing is said about the time between.
    assert list(collector.readings(before, after, SECOND_NS)) == []
    again = collector.sample()
    assert list(collector.readings(after, again, SECOND_NS)) != []


def test_observing_does_not_keep_the_database_from_being_saved(
    database: Database, collector: PostgresqlCollector
) -> None:
    assert collector.sample() is not None
    database.create_table("assay_schema", "CREATE TABLE assay_schema (k text, v text)")
    database.save()
    try:
        assert collector.sample() is not None
        database.restore()
        assert collector.sample() is not None
    finally:
        database.drop_saved()


def test_databases_of_one_server_share_a_collector_and_its_figures_stand_once(postgresql: PostgresqlServer) -> None:
    databases = [open_database(parse_database(postgresql.fresh_database()), TABLES) for _ in range(2)]
    for database in databases:
        database.open()
    (collector,) = database_collectors(databases)
    sample = collector.sample()
    collector.close()
    for database in databases:
        database.close()
    assert sample is not None
    names = [database.name for database in databases]
    assert {entity for entity, metric in sample.counts if metric == "commits_count"} == set(names)
    assert [entity for entity, metric in sample.counts if metric == "log_bytes"] == names[:1]


def test_hottest_statements_and_tables_are_those_of_the_time_between(database: Database) -> None:
    database.execute("CREATE EXTENSION pg_stat_statements")
    work(database)
    before = activity([database])
    database.query("SELECT count(*) AS asked FROM t WHERE b = 'y'")
    work(database, rows=100)
    after = activity([database])
    assert before.notices == ()
    statements, tables = hottest(before, after)
    texts = [found["text"] for found in statements]
    assert any("asked" in text for text in texts)
    assert any(text.startswith("INSERT INTO t") for text in texts)
    insert = next(found for found in statements if found["text"].startswith("INSERT INTO t"))
    assert insert["calls_count"] == 2
    assert insert["mean_ns"] > 0
    assert insert["database"] == database.name
    assert tables[0]["table"] == "t"
    assert tables[0]["updated_count"] == 100
    assert tables[0]["page_requests_count"] > 0


def test_a_statement_that_may_hold_a_password_is_not_kept(database: Database) -> None:
    database.execute("CREATE EXTENSION pg_stat_statements")
    before = activity([database])
    database.execute("CREATE ROLE somebody PASSWORD 'hidden'")
    database.execute("DROP ROLE somebody")
    found = activity([database])
    assert not any("hidden" in str(record["text"]) for record in found.statements.values())
    assert "hidden" not in str(hottest(before, found))


def test_without_the_extension_there_are_no_statements(database: Database) -> None:
    assert activity([database]).statements == {}


@pytest.mark.parametrize("version", [14, 15, 16, 17, 18])
def test_every_version_is_asked_for_what_it_has(version: int) -> None:
    sql = counters_sql(version, 8192)
    assert ("pg_stat_checkpointer" in sql) == (version >= 17)
    assert ("pg_stat_io" in sql) == (version >= 16)
    assert ("wal_sync_time" in sql) == (version < 18)
    assert ("op_bytes" in sql) == (version in (16, 17))
    assert "{" not in sql


def test_a_version_that_is_too_old_is_refused() -> None:
    with pytest.raises(ValueError, match=r"PostgreSQL 13"):
        counters_sql(13, 8192)


def test_what_a_user_may_not_see_is_said_with_what_grants_it(postgresql: PostgresqlServer) -> None:
    url = postgresql.fresh_database()
    postgresql.execute("CREATE ROLE weak LOGIN PASSWORD 'w'")
    (found,) = database_collectors([
        open_database(parse_database(re.sub("//[^@]*@", "//weak:w@", url)), NO_TABLES)
    ])  # fmt: skip
    recorder = Recorder([found])
    try:
        recorder.sample()
    finally:
        found.close()
        postgresql.execute("DROP ROLE weak")
    (notice,) = recorder.notices
    assert notice.endswith("hidden from its user; GRANT pg_monitor TO weak")
