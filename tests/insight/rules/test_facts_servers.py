"""Facts of servers that really run: what each tells, what it does not, and what was changed on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.base.errors import AssayError, UsageError
from assay.insight.rules.facts.databases import database_subjects
from assay.insight.rules.facts.runs import MeasuredStorage
from assay.insight.rules.registry import FAMILIES, RULES
from assay.insight.rules.rule import PracticeRule, Subject, check
from servers.mariadb import MariadbServer
from servers.mssql import MssqlServer
from servers.postgresql import PostgresqlServer

MEASURED = MeasuredStorage(iops=50_000.0, write_bytes_per_s=1e9, random_cost=1.3, origin="a profile")


def server_at(url: str, found: MeasuredStorage | None = None) -> Subject:
    (server,) = (one for one in database_subjects(url, found) if one.kind == "database")
    return server


def lacking(server: Subject, rules: tuple[PracticeRule, ...]) -> dict[str, str]:
    """Facts that rules read and the server did not tell, with the reason."""
    names = {name for rule in rules for name in (*rule.reads, *(one.fact for one in rule.applies))}
    return {name: server.gap([name]) for name in sorted(names) if name not in server.facts}


def found(*subjects: Subject) -> set[str]:
    return {one.rule.id for one in check(subjects, RULES).findings}


# PostgreSQL


def test_postgresql_tells_all_that_its_rules_read(postgresql: PostgresqlServer) -> None:
    server = server_at(postgresql.url, MEASURED)
    gaps = lacking(server, FAMILIES["postgresql"])

    # Without checksums there are none that fail, and a new server may have made no checkpoint.
    assert set(gaps) <= {"checksum_failures", "checkpoints_requested_share", "data_is_flash"}
    assert all(gaps.values())
    assert server.get("shared_buffers_bytes") == 32 << 20
    assert server.get("max_wal_size_bytes") == 256 << 20
    assert server.get("checkpoint_timeout_s") == 300.0
    assert server.get("max_slot_wal_keep_size") == -1
    assert server.get("inactive_slots") == []
    assert "postgresql-random-page-cost" in found(server)


def test_what_is_set_wrong_in_postgresql_is_found_and_then_mended(postgresql18: PostgresqlServer) -> None:
    bad = {"checkpoint_timeout": "30s", "full_page_writes": "off", "log_statement": "all", "synchronous_commit": "off"}
    for name, value in bad.items():
        postgresql18.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    postgresql18.execute("SELECT pg_reload_conf()")
    postgresql18.execute("SELECT pg_create_physical_replication_slot('left_behind')")
    broken = {
        "postgresql-checkpoint-timeout", "postgresql-full-page-writes", "postgresql-log-statement",
        "postgresql-synchronous-commit", "postgresql-slots",
    }  # fmt: skip
    try:
        told = found(server_at(postgresql18.url))
    finally:
        for name in bad:
            postgresql18.execute(f"ALTER SYSTEM RESET {name}")
        postgresql18.execute("SELECT pg_reload_conf()")
        postgresql18.execute("SELECT pg_drop_replication_slot('left_behind')")

    assert broken <= told
    assert not broken & found(server_at(postgresql18.url))


def test_where_postgresql_lies_is_known(postgresql18: PostgresqlServer) -> None:
    (layout,) = (one for one in database_subjects(postgresql18.url, None) if one.kind == "layout")

    assert layout.get("data_mounts")
    if "data_devices" in layout.facts:
        assert "layout-log-apart" in found(layout)
    else:
        assert layout.missing["data_devices"] == "no single device counts the I/O of its folder"


def test_a_user_without_rights_leaves_gaps_and_no_passes(postgresql18: PostgresqlServer) -> None:
    postgresql18.execute("CREATE ROLE nosy LOGIN PASSWORD 'x'")
    try:
        server = server_at(postgresql18.url_of("postgres", user="nosy", password="x"))
        told = check([server], FAMILIES["postgresql"])
    finally:
        postgresql18.execute("DROP ROLE nosy")

    # Where its files lie only members of pg_read_all_settings see.
    assert "GRANT pg_read_all_settings" in server.missing["data_is_flash"]
    assert {one.rule.id for one in told.not_checked} >= {"postgresql-random-page-cost"}
    assert all(one.reason for one in told.not_checked)


def test_without_a_profile_rules_that_measure_say_so(postgresql18: PostgresqlServer) -> None:
    told = check([server_at(postgresql18.url)], FAMILIES["postgresql"])

    reasons = {one.rule.id: one.reason for one in told.not_checked}
    assert reasons["postgresql-write-pressure"] == "not measured; give a run of assay profile with --profile RUN"


# MariaDB


def test_mariadb_tells_all_that_its_rules_read(mariadb: MariadbServer) -> None:
    server = server_at(mariadb.url, MEASURED)

    # One that has just started has opened nothing yet.
    assert set(lacking(server, FAMILIES["mariadb"])) <= {"data_is_flash", "opened_tables_per_s"}
    assert server.engine == "mariadb"
    assert server.get("innodb_buffer_pool_size") == 64 << 20
    assert server.get("redo_bytes") == 64 << 20
    assert {"mariadb-flush-method", "mariadb-binlog", "mariadb-io-capacity"} <= found(server)


def test_what_is_set_wrong_in_mariadb_is_found_and_then_mended(mariadb: MariadbServer) -> None:
    bad = {"innodb_flush_log_at_trx_commit": 2, "innodb_file_per_table": 0, "innodb_autoextend_increment": 1}
    good = {"innodb_flush_log_at_trx_commit": 1, "innodb_file_per_table": 1, "innodb_autoextend_increment": 64}
    broken = {"mariadb-flush-log", "mariadb-file-per-table", "mariadb-autoextend"}
    for name, value in bad.items():
        mariadb.execute(f"SET GLOBAL {name} = {value}")
    try:
        told = found(server_at(mariadb.url))
    finally:
        for name, value in good.items():
            mariadb.execute(f"SET GLOBAL {name} = {value}")

    assert broken <= told
    assert not broken & found(server_at(mariadb.url))


# SQL Server


def test_sql_server_is_read_and_what_it_hides_does_not_pass(mssql: MssqlServer) -> None:
    pytest.importorskip("pymssql")
    mssql.fresh_database()
    server = server_at(mssql.url)
    told = check([server], FAMILIES["mssql"])

    assert all(one.reason for one in told.not_checked)
    assert len(told.passed) + len(told.findings) + len(told.not_checked) >= len(FAMILIES["mssql"]) - 2
    if "Babelfish" in mssql.version():
        # Its sys.master_files is empty: no rule about files may pass for that.
        gaps = {one.rule.id for one in told.not_checked}
        assert {"mssql-growth-percent", "mssql-system-drive", "mssql-log-apart", "mssql-read-latency"} <= gaps
    else:
        assert set(lacking(server, FAMILIES["mssql"])) <= {"workload", "data_is_flash"}


def test_every_database_of_sql_server_is_looked_at(mssql: MssqlServer) -> None:
    pytest.importorskip("pymssql")
    mssql.fresh_database()

    origin = server_at(mssql.url).facts["columnstore_indexes"].origin

    # master and msdb are always there, and one was made.
    count = int(origin.removeprefix("the catalogues of ").partition(" ")[0])
    assert count >= 3


# What cannot be asked


@pytest.mark.parametrize("kind", ["embedded", "duckdb"])
def test_a_check_makes_no_database(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UsageError, match="is not there; assay check changes nothing, and makes none"):
        database_subjects(f"{kind}:{tmp_path}/none", None)

    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_away_is_one_line() -> None:
    with pytest.raises(AssayError) as caught:
        database_subjects("postgresql://tester:secret@127.0.0.1:1/postgres", None)

    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
