"""Two runs on one database: the second is refused with the holder's name, and nothing of the first is disturbed."""

from __future__ import annotations

import os

import psycopg
import pytest

from assay.base.errors import RefusedTarget
from assay.targets.databases import open_database, parse_database
from assay.targets.databases.common.run_lock import PostgresqlRunLock
from assay.workloads.tpcc.tables import TABLES
from assay_command import Bench, Outcome
from servers.fixtures import Connect
from servers.loading import load
from servers.process import PASSWORD, ServerProcess


def oltp(bench: Bench, *arguments: str) -> Outcome:
    return bench.assay("oltp", "tpcc", *arguments, "--no-report", "--quiet", "-o", bench.results)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_the_second_run_is_refused_with_the_holders_name(server: ServerProcess, connect: Connect, bench: Bench) -> None:
    url = server.fresh_database()
    first = connect(url)
    first.hold()
    outcome = oltp(bench, url, "load", "--warehouses", "1")
    assert (outcome.code, bench.runs) == (2, [])
    assert f"another run is at work on it (assay, process {os.getpid()}, since 2" in outcome.complaint
    assert "UTC, on " in outcome.complaint
    # Nothing was made, and the first works on, with any number of sessions.
    assert first.tables() == []
    load(first)
    first.hold()
    # Other databases of the server are free.
    connect(server.fresh_database()).hold()
    first.close()
    second = connect(url)
    second.hold()
    with pytest.raises(RefusedTarget, match="another run is at work on it"):
        connect(url).hold()


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_command_holds_its_database_from_beginning_to_end(
    postgresql18: ServerProcess, connect: Connect, bench: Bench
) -> None:
    url = postgresql18.fresh_database()
    database = connect(url)
    load(database)
    database.close()
    with psycopg.connect(postgresql18.url) as gate:
        # Copying the database waits for the end of this transaction.
        gate.execute(f"COMMENT ON DATABASE {database.spec.database} IS 'held'".encode())
        with bench.started("oltp", "tpcc", url, "save", "--no-report", "-o", bench.results) as running:
            running.wait_until(lambda: held_by(postgresql18, running.process.pid))
            second = open_database(parse_database(url, {}), TABLES)
            with pytest.raises(RefusedTarget, match=rf"\(assay, process {running.process.pid}, since 2"):
                second.hold()
            gate.rollback()
            assert running.end().code == 0
    second.hold()
    second.close()


def held_by(server: ServerProcess, pid: int) -> bool:
    with psycopg.connect(server.url, autocommit=True) as connection:
        sql = "SELECT 1 FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory'"
        found = connection.execute(f"{sql} AND application_name LIKE 'assay, process {pid},%'".encode())
        return bool(found.fetchall())


def test_the_lock_outlasts_saving_and_restoring(server: ServerProcess, connect: Connect) -> None:
    url = server.fresh_database()
    database = connect(url)
    load(database)
    database.hold()
    for work in (database.save, database.restore, database.drop_saved):
        work()
        with pytest.raises(RefusedTarget, match="another run is at work on it"):
            connect(url).hold()


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_it_is_taken_again_after_the_server_was_away(mortal: ServerProcess, connect: Connect) -> None:
    url = mortal.fresh_database()
    first, second = connect(url), connect(url)
    first.hold()
    mortal.restart()
    first.hold()
    with pytest.raises(RefusedTarget):
        second.hold()
    mortal.restart()
    # Who comes first has it: the first run is told before it does anything more.
    second.hold()
    with pytest.raises(RefusedTarget, match=f"process {os.getpid()}"):
        first.hold()
    with pytest.raises(RefusedTarget):
        first.save()


def test_it_is_a_connection_that_counts(server: ServerProcess, connect: Connect) -> None:
    database = connect(server.fresh_database())
    before = database.facts()["connections_free"]
    database.hold()
    assert database.facts()["connections_free"] == before - 1


def test_a_user_who_may_not_connect_elsewhere_has_it_in_the_database(
    postgresql18: ServerProcess, connect: Connect
) -> None:
    postgresql18.execute(f"CREATE ROLE inner_user LOGIN CREATEDB PASSWORD '{PASSWORD}'")
    postgresql18.execute("CREATE DATABASE inner_base OWNER inner_user")
    postgresql18.execute("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC")
    try:
        url = postgresql18.url_of("inner_base", user="inner_user")
        database = connect(url)
        load(database)
        database.hold()
        assert isinstance(database.run_lock, PostgresqlRunLock)
        assert database.run_lock.is_inside
        # The copy needs the database free of sessions, the lock's included.
        for work in (database.save, database.restore):
            work()
            with pytest.raises(RefusedTarget, match="another run is at work on it"):
                connect(url).hold()
        database.drop_saved()
        database.close()
    finally:
        postgresql18.execute("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
        postgresql18.execute("DROP DATABASE inner_base WITH (FORCE)")
        postgresql18.execute("DROP ROLE inner_user")


def test_the_holder_is_named_as_far_as_the_server_tells(
    postgresql18: ServerProcess, mariadb: ServerProcess, connect: Connect
) -> None:
    """PostgreSQL shows the names of others' sessions to all, MariaDB to those who may see them."""
    postgresql18.execute(f"CREATE ROLE onlooker LOGIN PASSWORD '{PASSWORD}'")
    url = postgresql18.fresh_database()
    connect(url).hold()
    onlooker = connect(url.replace("tester:", "onlooker:"))
    with pytest.raises(RefusedTarget, match=rf"at work on it \(assay, process {os.getpid()}, since"):
        onlooker.hold()
    onlooker.close()
    postgresql18.execute("DROP ROLE onlooker")

    url = mariadb.fresh_database()
    connect(url).hold()
    mariadb.execute(f"CREATE USER onlooker@'%' IDENTIFIED BY '{PASSWORD}'")
    mariadb.execute(f"GRANT ALL ON {url.rpartition('/')[2]}.* TO onlooker@'%'")
    with pytest.raises(RefusedTarget, match=r"at work on it \(connection [0-9]+\)"):
        connect(url.replace("tester:", "onlooker:")).hold()
    mariadb.execute("DROP USER onlooker@'%'")
