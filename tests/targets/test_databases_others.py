"""What of a server is not Assay's: other schemas, other tables, rights, saved states of others; it all stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import NotSupported, RefusedTarget
from assay.targets.databases import Database
from assay.targets.databases.mariadb.tablespace_copy import TablespaceCopy
from assay.telemetry.collectors import postgresql as postgresql_collector
from assay.workloads.databases.loading import _finish as finish_load
from assay.workloads.databases.loading import drop_loaded
from servers.fixtures import Connect
from servers.loading import Quiet, load
from servers.process import PASSWORD, ServerProcess


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


def with_users_tables(server: ServerProcess, connect: Connect) -> Database:
    """A database whose users have tables of the workload's names in `public`; Assay is to use another schema."""
    url = server.fresh_database()
    owner = connect(url)
    owner.execute("CREATE TABLE orders (number int CONSTRAINT orders_pkey PRIMARY KEY)")
    owner.execute("INSERT INTO orders VALUES (7)")
    owner.execute("CREATE TABLE shelves (number int CONSTRAINT stock_pkey PRIMARY KEY)")
    owner.execute('CREATE SCHEMA "Bench"')
    server.execute(f'ALTER DATABASE {name_of(url)} SET search_path = "Bench", public')
    return connect(url)


# Other schemas


def test_tables_of_other_schemas_are_neither_dropped_nor_taken_for_ours(
    postgresql: ServerProcess, connect: Connect
) -> None:
    database = with_users_tables(postgresql, connect)
    assert database.schema().kind == "absent"
    load(database)
    assert database.query("SELECT schemaname FROM pg_tables WHERE tablename = 'orders' ORDER BY 1") == [
        ("Bench",),
        ("public",),
    ]
    drop_loaded(database)
    assert database.tables() == []
    drop_loaded(database)
    assert database.query("SELECT number FROM public.orders") == [(7,)]


def test_a_session_made_again_looks_into_one_schema_as_well(postgresql: ServerProcess, connect: Connect) -> None:
    database = with_users_tables(postgresql, connect)
    postgresql.execute(
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{database.spec.database}'"
    )
    assert database.query("SHOW search_path") == [('"Bench"',)]
    session = database.new_session()
    assert session.query("SHOW search_path") == [('"Bench"',)]
    session.close()


def test_without_a_schema_nothing_can_be_loaded(postgresql: ServerProcess, connect: Connect) -> None:
    url = postgresql.fresh_database()
    postgresql.execute(f"ALTER DATABASE {name_of(url)} SET search_path = nowhere")
    with pytest.raises(RefusedTarget, match="may not create tables here"):
        connect(url).check_rights()


def test_statements_are_found_wherever_the_extension_is(postgresql: ServerProcess, connect: Connect) -> None:
    url = postgresql.fresh_database()
    connect(url).execute('CREATE SCHEMA "Other"; CREATE EXTENSION pg_stat_statements SCHEMA "Other"')
    database = connect(url)
    database.query("SELECT 1 AS asked_here")
    texts = [str(record["text"]) for record in postgresql_collector.statements(database.query).values()]
    assert any("asked_here" in text for text in texts)


def test_indexes_of_other_schemas_do_not_stand_for_ours(postgresql: ServerProcess, connect: Connect) -> None:
    database = with_users_tables(postgresql, connect)
    load(database)
    names = {row[0] for row in database.query("SELECT indexname FROM pg_indexes WHERE schemaname = 'Bench'")}
    assert {"orders_pkey", "stock_pkey"} <= names
    # A load that was cut short at its end builds none of them again.
    finish_load(database, 2, display=Quiet(), interrupt=threading.Event())


def test_indexes_of_other_tables_do_not_stand_for_ours(connect: Connect, request: pytest.FixtureRequest) -> None:
    database = connect(request.getfixturevalue("mariadb").fresh_database())
    database.execute("CREATE TABLE invoices (c_last int, KEY customer_name (c_last))")
    load(database)
    assert any(row[2] == "customer_name" for row in database.query("SHOW INDEX FROM customer"))
    finish_load(database, 2, display=Quiet(), interrupt=threading.Event())


# Other tables


def test_saving_and_restoring_leave_other_tables_alone(postgresql: ServerProcess, connect: Connect) -> None:
    database = connect(postgresql.fresh_database())
    load(database)
    database.save()
    for statement, names, gone in (
        ("CREATE TABLE invoices (i int)", "invoices", "TABLE invoices"),
        ("CREATE VIEW balances AS SELECT 1 AS one", "balances", "VIEW balances"),
        ("CREATE SEQUENCE numbers", "numbers", "SEQUENCE numbers"),
        (
            "CREATE SCHEMA shop; CREATE TABLE shop.orders (i serial)",
            "shop.orders, shop.orders_i_seq",
            "SCHEMA shop CASCADE",
        ),
        (
            "CREATE TABLE a (i int) PARTITION BY RANGE (i); CREATE TABLE a_1 PARTITION OF a DEFAULT",
            "a, a_1",
            "TABLE a",
        ),
        (
            "CREATE TABLE d (); CREATE TABLE c (); CREATE TABLE b (); CREATE TABLE a ()",
            "a, b, c, … 4 in all",
            "TABLE a, b, c, d",
        ),
    ):
        database.execute(statement)
        for work in (database.save, database.restore):
            with pytest.raises(NotSupported) as error:
                work()
            assert f"not Assay's ({names}), which saving and restoring would roll back" in str(error.value)
        database.execute(f"DROP {gone}")
    database.restore()


def test_partitions_and_extensions_do_not_stand_against_saving(postgresql: ServerProcess, connect: Connect) -> None:
    database = connect(postgresql.fresh_database())
    load(database)
    database.execute("CREATE EXTENSION pg_stat_statements")
    database.save()
    database.execute("DROP TABLE history")
    database.create_table("history", "CREATE TABLE history (h_w_id int) PARTITION BY RANGE (h_w_id)")
    database.execute("CREATE TABLE history_p1 PARTITION OF history DEFAULT")
    database.restore()
    assert "history_p1" not in database.tables()


# What the catalogue of the server says about a database

CATALOGUE = """
SELECT pg_get_userbyid(datdba), datconnlimit, shobj_description(d.oid, 'pg_database'),
  ARRAY(SELECT a::text FROM unnest(datacl) a ORDER BY 1),
  ARRAY(SELECT setrole::regrole::text || unnest(setconfig) FROM pg_db_role_setting WHERE setdatabase = d.oid ORDER BY 1)
FROM pg_database d WHERE datname = current_database()
"""


@pytest.fixture
def guest(postgresql: ServerProcess) -> Iterator[str]:
    """A role of the server; what is granted to it must be gone by the end."""
    name = 'Guest "1"'
    quoted = '"' + name.replace('"', '""') + '"'
    postgresql.execute(f"CREATE ROLE {quoted}")
    yield quoted
    postgresql.execute(f"DROP ROLE {quoted}")


def test_a_restore_keeps_rights_and_settings_of_the_database(
    postgresql: ServerProcess, connect: Connect, guest: str
) -> None:
    url = postgresql.fresh_database()
    name = name_of(url)
    database = connect(url)
    load(database)
    database.save()
    assert database.query(CATALOGUE) == [("tester", -1, None, [], [])]
    database.restore()
    assert database.query(CATALOGUE) == [("tester", -1, None, [], [])]
    for statement in (
        f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
        f"REVOKE TEMPORARY ON DATABASE {name} FROM tester",
        f"GRANT CONNECT ON DATABASE {name} TO {guest} WITH GRANT OPTION",
        f"ALTER DATABASE {name} CONNECTION LIMIT 17",
        f"COMMENT ON DATABASE {name} IS 'whose ''it'' is'",
        f"ALTER DATABASE {name} SET work_mem = '5MB'",
        f'ALTER ROLE {guest} IN DATABASE {name} SET search_path = one, "Two"',
    ):
        database.execute(statement)
    before = database.query(CATALOGUE)
    assert len(before[0][3]) == 2
    assert len(before[0][4]) == 2
    database.restore()
    assert database.query(CATALOGUE) == before
    # Who may not look into the database may not look into its copy.
    database.save()
    copy = connect(postgresql.url_of(f"{name}_assay_saved"))
    assert copy.query(CATALOGUE)[0][3] == before[0][3]
    copy.close()
    database.drop_saved()
    database.close()
    postgresql.execute(f"DROP DATABASE {name}")


def test_what_may_not_be_put_back_stands_against_a_restore(
    postgresql: ServerProcess, connect: Connect, guest: str
) -> None:
    postgresql.execute(f"CREATE ROLE plain LOGIN CREATEDB PASSWORD '{PASSWORD}'")
    postgresql.execute("CREATE DATABASE plainly OWNER plain")
    database = connect(postgresql.url_of("plainly", user="plain"))
    load(database)
    database.save()
    postgresql.execute(f"ALTER ROLE {guest} IN DATABASE plainly SET work_mem = '5MB'")
    with pytest.raises(NotSupported, match="may not put back what is set for the database"):
        database.restore()
    assert database.query("SELECT datname FROM pg_database WHERE datname ~ '^plainly' ORDER BY 1") == [
        ("plainly",),
        ("plainly_assay_saved",),
    ]
    postgresql.execute(f"ALTER ROLE {guest} IN DATABASE plainly RESET ALL")
    database.restore()
    database.drop_saved()
    database.close()
    postgresql.execute("DROP DATABASE plainly")
    postgresql.execute("DROP ROLE plain")


# Names


def test_databases_with_long_names_have_saved_states_of_their_own(postgresql: ServerProcess, connect: Connect) -> None:
    long = "a_database_whose_name_is_as_long_as_names_may_be_here_at_all"
    first, second, short = f"{long}_1", f"{long}_2", long[:51]
    saved: dict[str, Any] = {}
    for name in (first, second, short):
        postgresql.execute(f"CREATE DATABASE {name}")
        database = connect(postgresql.url_of(name))
        assert database.saved() is None
        load(database)
        database.save()
        saved[name] = database.saved()
        assert saved[name].keys() == {"warehouses", "seed", "state", "saved_utc"}
    database = connect(postgresql.url_of(first))
    database.restore()
    database.drop_saved()
    assert connect(postgresql.url_of(second)).saved() == saved[second]


def test_a_saved_state_of_another_database_is_not_restored(postgresql: ServerProcess, connect: Connect) -> None:
    url, other = postgresql.fresh_database(), postgresql.fresh_database()
    database = connect(url)
    load(database)
    database.save()
    postgresql.execute(f"ALTER DATABASE {name_of(url)}_assay_saved RENAME TO {name_of(other)}_assay_saved")
    assert connect(other).saved() is None
    with pytest.raises(RefusedTarget, match="that Assay did not make"):
        connect(other).save()


def test_servers_whose_data_lie_side_by_side_have_saved_states_of_their_own(
    connect: Connect, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("mariadb")
    database = connect(server.fresh_database())
    load(database)
    database.save()
    beside: Any = TablespaceCopy(database, database.new_session, server.folder / "data2")  # type: ignore[arg-type]
    assert beside.saved() is None
    beside.drop()
    assert database.saved() is not None
    (folder,) = server.folder.glob(f"assay-saved-*-{database.spec.database}-*")
    assert folder.name == f"assay-saved-data-{database.spec.database}-1"
    database.drop_saved()


# What the environment says to libpq


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PGHOSTADDR", "127.0.0.2"),
        ("PGOPTIONS", "-c search_path=pg_catalog"),
        ("PGTARGETSESSIONATTRS", "standby"),
    ],
)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_the_environment_does_not_lead_elsewhere(
    connect: Connect, request: pytest.FixtureRequest, database_folder: Path, monkeypatch: pytest.MonkeyPatch,
    variable: str, value: str,
) -> None:  # fmt: skip
    server = request.getfixturevalue("postgresql18")
    url = server.fresh_database()
    monkeypatch.setenv(variable, value)
    small = "set.shared_buffers=32MB&set.max_wal_size=128MB&set.min_wal_size=32MB"
    for found in (url, f"embedded:{database_folder}/db?{small}"):
        database = connect(found)
        assert database.query("SHOW search_path") == [("public",)]
        database.check_rights()
