"""What every kind of database does alike: one contract, run on each server there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.base.errors import AssayError, ExitCode, IoFailed, NotSupported, OpenFailed, RefusedTarget, UsageError
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.mariadb import database as mariadb_kind
from assay.targets.databases.postgresql import database as postgresql_kind
from assay.workloads.tpcc.tables import TABLES
from servers.process import PASSWORD, ServerProcess

SMALL = "set.shared_buffers=32MB&set.max_wal_size=128MB&set.min_wal_size=32MB"

Connect = Callable[[str], Database]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """The database of a URL, not opened; all are closed afterwards."""
    made: list[Database] = []

    def make(url: str) -> Database:
        made.append(open_database(parse_database(url, {}), TABLES))
        return made[-1]

    yield make
    for database in made:
        database.close()


@pytest.fixture(params=["postgresql15", "postgresql18", "mariadb", "embedded", "duckdb", "mssql"])
def database(request: pytest.FixtureRequest, connect: Connect, database_folder: Path) -> Database:
    """An empty database, open."""
    if request.param == "embedded":
        url = f"embedded:{database_folder}/db?{SMALL}"
    elif request.param == "duckdb":
        url = f"duckdb:{database_folder}/db.duckdb?threads=2&memory_limit=200MB"
    elif request.param == "mssql":
        pytest.importorskip("pymssql")
        url = request.getfixturevalue("mssql").fresh_database()
    else:
        url = request.getfixturevalue(request.param).fresh_database()
    made = connect(url)
    made.open()
    return made


def load(database: Database, *, state: str = "loaded", warehouses: int = 2) -> None:
    """Tables as a load leaves them, as far as the administration looks at them."""
    tables = {
        "assay_schema": "(k varchar(32) NOT NULL, v varchar(255) NOT NULL,"
        " CONSTRAINT assay_schema_pkey PRIMARY KEY (k))",
        "assay_chunk": "(kind varchar(16) NOT NULL, w_id int NOT NULL, part int NOT NULL, row_count bigint NOT NULL,"
        " CONSTRAINT assay_chunk_pkey PRIMARY KEY (kind, w_id, part))",
        "district": "(d_w_id int NOT NULL, d_id int NOT NULL, d_next_o_id int NOT NULL,"
        " CONSTRAINT district_pkey PRIMARY KEY (d_w_id, d_id))",
        "history": "(h_w_id int NOT NULL, h_data varchar(24) NOT NULL)",
    }
    for name, columns in tables.items():
        database.create_table(name, f"CREATE TABLE {name} {columns}")
    values = {"format": "1", "warehouses": str(warehouses), "seed": "7", "state": state}
    for item in values.items():
        database.execute("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", item)
    for warehouse in range(1, warehouses + 1):
        database.execute("INSERT INTO assay_chunk VALUES ('stock', %s, 1, 10000)", (warehouse,))
        database.execute("INSERT INTO district VALUES (%s, 1, 3001)", (warehouse,))
        database.execute("INSERT INTO history VALUES (%s, '100%% sure')", (warehouse,))


def test_it_says_what_it_is(database: Database) -> None:
    facts = database.facts()
    assert facts.keys() >= {
        "name", "kind", "version", "version_text", "max_connections", "connections_free", "settings",
    }  # fmt: skip
    if not database.in_process:
        assert 0 < facts["connections_free"] <= facts["max_connections"]
    assert facts["version"] in facts["version_text"]
    assert database.dialect in ("postgresql", "mariadb", "mysql", "mssql", "duckdb")
    assert all(isinstance(value, str) for value in facts["settings"].values())


def test_an_empty_database_has_nothing_of_ours(database: Database) -> None:
    assert database.schema().kind == "absent"
    database.check_rights()
    assert database.tables() == []
    assert "new_order_count" not in database.counters()
    assert database.saved() is None


def test_the_schema_says_how_far_a_load_came(database: Database) -> None:
    load(database, state="loading")
    schema = database.schema()
    assert (schema.kind, schema.scale, schema.seed, schema.format) == ("partial", 2, 7, "1")
    assert schema.chunks == {("stock", 1, 1), ("stock", 2, 1)}
    assert schema.tables == ("district", "history")
    for state, kind in (("loaded", "complete"), ("ran", "complete"), ("restoring", "broken"), ("?", "partial")):
        database.execute("UPDATE assay_schema SET v = %s WHERE k = 'state'", (state,))
        assert database.schema().kind == kind


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE warehouse (id int)",
        "CREATE TABLE assay_chunk (id int)",
        "CREATE TABLE assay_schema (version int)",
        "CREATE VIEW stock AS SELECT 1 AS one",
    ],
)
def test_tables_that_are_not_ours_are_foreign(database: Database, statement: str) -> None:
    database.execute(statement)
    assert database.schema().kind == "foreign"
    if "VIEW" in statement:
        database.execute("DROP VIEW stock")


def test_counters_grow_with_what_is_done(database: Database) -> None:
    load(database)
    before = database.counters()
    assert before["new_order_count"] == 6002
    database.execute("UPDATE district SET d_next_o_id = d_next_o_id + 1")
    database.checkpoint()
    database.vacuum_analyze()
    after = database.counters()
    assert after["new_order_count"] == 6004
    assert database.in_process or after["transactions_count"] >= before["transactions_count"]
    assert database.bytes_used() > 16384


def test_the_saved_state_comes_back(database: Database) -> None:
    if "Babelfish" in str(database.facts().get("version_text")):
        pytest.skip("a TDS server that has no BACKUP")
    load(database)
    before = {table: sorted(database.query(f"SELECT * FROM {table}")) for table in database.tables()}
    assert len(before) == 4
    with pytest.raises(UsageError, match="nothing is saved; load and save first"):
        database.restore()
    database.save()
    saved = database.saved()
    assert saved is not None
    assert (saved["warehouses"], saved["seed"], saved["state"]) == (2, 7, "loaded")
    for damage in ("UPDATE district SET d_next_o_id = 9", "DROP TABLE history", "DELETE FROM assay_schema"):
        database.execute(damage)
        database.restore()
        assert {table: sorted(database.query(f"SELECT * FROM {table}")) for table in database.tables()} == before
        assert database.schema().kind == "complete"
    database.execute("UPDATE assay_schema SET v = '3' WHERE k = 'warehouses'")
    database.save()
    saved = database.saved()
    assert saved is not None
    assert saved["warehouses"] == 3
    database.drop_saved()
    assert database.saved() is None
    database.drop_saved()
    with pytest.raises(UsageError, match="nothing is saved"):
        database.restore()
    assert database.schema().scale == 3


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_statements_run_in_parallel_and_fail_together(database: Database) -> None:
    load(database)
    seen: list[tuple[int, int]] = []
    statements = [f"CREATE INDEX i{number} ON district (d_next_o_id)" for number in range(4)]
    database.execute_many_parallel(statements, 3, lambda done, total: seen.append((done, total)))
    assert sorted(seen) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(AssayError, match=r"refused a statement: .*i[0-3]") as error:
        database.execute_many_parallel(statements, 2)
    assert "\n" not in str(error.value)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("assay-statement")]


def test_a_wrong_statement_is_one_line(database: Database) -> None:
    with pytest.raises(IoFailed, match="the server refused a statement") as error:
        database.query("SELECT\nnonsense FROM nowhere")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(database.spec.display)


def test_values_are_never_part_of_the_statement(database: Database) -> None:
    for value in ("'; DROP TABLE x; --", "100%", "%s", "\\", '"'):
        assert database.query("SELECT %s", (value,)) == [(value,)] or database.query(
            "SELECT cast(%s AS varchar(40))", (value,)
        ) == [(value,)]
    assert database.query("SELECT 5 % 3") == [(2,)]
    # Without values nothing in a text is a place for one.
    for text in ("%special%requests%", "100 %%", "%d"):
        assert database.query(f"SELECT '{text}'") == [(text,)]


# Servers that may be stopped and have other users


def test_it_is_found_where_it_stores(server: ServerProcess, connect: Connect) -> None:
    database = connect(server.fresh_database())
    database.open()
    paths = database.storage_paths()
    assert Path(paths["data"]).is_relative_to(server.folder)
    assert Path(paths["log"]).is_relative_to(server.folder)
    assert database.server_pid() == server.pid
    assert database.notices == []


def test_a_server_elsewhere_has_no_folders_here(server: ServerProcess, connect: Connect) -> None:
    database = connect(server.fresh_database().replace("127.0.0.1", "localhost"))
    database.open()
    assert database.is_local
    object.__setattr__(database.spec, "host", "db.example")
    assert database.storage_paths() == {}
    assert "is not on this host" in database.notices[0]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_lost_connection_is_made_again_for_a_question(server: ServerProcess, connect: Connect) -> None:
    database = connect(server.fresh_database())
    database.open()
    load(database)
    server.kill9()
    with pytest.raises(OpenFailed) as error:
        database.query("SELECT 1")
    assert error.value.exit_code == ExitCode.TARGET_FAILED
    server.restart()
    assert database.query("SELECT count(*) FROM district") == [(2,)]
    server.restart()
    with pytest.raises(OpenFailed, match="the connection was lost"):
        database.execute("UPDATE district SET d_next_o_id = 1")
    assert database.counters()["new_order_count"] == 6002


def test_what_is_wrong_with_a_target_is_said(server: ServerProcess, connect: Connect) -> None:
    """Each with one line, without the password."""
    scheme, port = server.scheme, server.port
    is_postgresql = scheme == "postgresql"
    no_socket = "host=/none" if is_postgresql else "socket=/none/x.sock"
    address = f"127.0.0.1:{port}"
    for url, kind, message in (
        (f"{scheme}://tester:s3kr1t@{address}/mysql", UsageError, "the password of user 'tester' is wrong"),
        (f"{scheme}://stranger:s3kr1t@{address}/mysql", UsageError, "the password of user 'stranger' is wrong"),
        (f"{scheme}://tester@{address}/mysql", UsageError, "password of user 'tester'"),
        (server.url_of("nowhere"), UsageError, "there is no database 'nowhere' on the server; create it first"),
        (f"{scheme}://u:s3kr1t@127.0.0.1:1/db", OpenFailed, "no server answers at 127.0.0.1:1 (Connection refused)"),
        (f"{scheme}://u:s3kr1t@host.invalid/db", OpenFailed, "there is no host 'host.invalid'"),
        (f"{scheme}://u:s3kr1t@/db?{no_socket}", OpenFailed, "no server answers at /none/"),
        (server.url + "?sslmode=require", NotSupported, "TLS as asked (sslmode=require) is not to be had"),
    ):
        with pytest.raises(kind) as error:
            connect(url).open()
        assert message in str(error.value)
        assert "\n" not in str(error.value)
        assert "s3kr1t" not in str(error.value)
        assert PASSWORD not in str(error.value)


def test_more_connections_than_the_server_allows_are_refused(server: ServerProcess, connect: Connect) -> None:
    with pytest.raises(
        UsageError, match=r"1000 connections are needed, the server allows [68]0, of which \d+ are free"
    ):
        connect(server.url).open(connections=1000)
    connect(server.url).open(connections=10)


def test_saving_again_while_others_connect_to_the_server(server: ServerProcess, connect: Connect) -> None:
    database = connect(server.fresh_database())
    database.open()
    load(database)
    # Sessions of Assay's own in the database, such as those of a recorder, make way and come back.
    other = connect(server.url_of(database.spec.database))
    other.open()
    elsewhere = connect(server.fresh_database())
    elsewhere.open()
    database.save()
    database.restore()
    assert other.query("SELECT count(*) FROM district") == [(2,)]
    assert elsewhere.schema().kind == "absent"


def test_an_old_server_is_refused(server: ServerProcess, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_kind, "VERSION_MIN", 19)
    monkeypatch.setitem(mariadb_kind.VERSION_MIN, "mariadb", (12, 0))
    with pytest.raises(NotSupported, match=r"is (PostgreSQL|MariaDB) 1\d\..* is the oldest that is supported"):
        connect(server.url).open()


def add_guest(server: ServerProcess, database: str) -> str:
    """A user who may connect to a database and no more."""
    if server.scheme == "postgresql":
        server.execute("DROP ROLE IF EXISTS guest")
        server.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    else:
        server.execute(f"CREATE OR REPLACE USER guest@'%' IDENTIFIED BY '{PASSWORD}'")
        server.execute(f"GRANT SELECT ON {database}.* TO guest@'%'")
    return server.url_of(database, user="guest")


def test_a_user_without_rights_is_told_so_and_does_without(server: ServerProcess, connect: Connect) -> None:
    url = server.fresh_database()
    database = connect(add_guest(server, url.rpartition("/")[2]))
    database.open()
    with pytest.raises(RefusedTarget, match=r"user 'guest' may not create .*tables here; GRANT"):
        database.check_rights()
    assert database.schema().kind == "absent"
    assert database.counters()["transactions_count"] >= 0
    assert database.bytes_used() >= 0
    admin = connect(url)
    admin.open()
    load(admin)
    database.checkpoint()
    assert "may not" in database.notices[-1]
    with pytest.raises((NotSupported, RefusedTarget, UsageError)):
        database.save()


def test_the_saved_state_of_others_is_left_alone(connect: Connect, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgresql18")
    url = server.fresh_database()
    name = url.rpartition("/")[2]
    database = connect(url)
    database.open()
    load(database)
    other = connect(url)
    other.open()
    other.execute("SET application_name = 'psql'")
    with pytest.raises(RefusedTarget, match=r"in use by others \(psql\); end their sessions"):
        database.save()
    other.close()
    server.execute(f"CREATE DATABASE {name}_assay_saved")
    with pytest.raises(RefusedTarget, match="that Assay did not make"):
        database.save()
    database.drop_saved()
    assert connect(server.url_of(f"{name}_assay_saved")).open() is None


def test_a_restore_of_tablespaces_cut_short_is_not_taken_for_a_loaded_database(
    connect: Connect, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = request.getfixturevalue("mariadb")
    database = connect(server.fresh_database())
    database.open()
    load(database)
    database.save()

    def cut_short(source: Path, copy: Path) -> None:
        raise OSError(28, "No space left on device", str(copy), None, str(source))

    with monkeypatch.context() as patched:
        patched.setattr("assay.targets.databases.mariadb.tablespace_copy.copy_file", cut_short)
        with pytest.raises(AssayError, match="no room is left for"):
            database.restore()
        assert database.schema().kind == "broken"
        with pytest.raises(UsageError, match="a restore was cut short; restore again, or drop"):
            database.save()
    assert database.saved() is not None
    database.restore()
    assert database.schema().kind == "complete"
    assert database.counters()["new_order_count"] == 6002


def test_the_password_file_of_libpq_serves_the_core_too(
    connect: Connect, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = request.getfixturevalue("postgresql18")
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{server.port}:*:tester:{PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    database = connect(f"postgresql://tester@127.0.0.1:{server.port}/postgres")
    database.open()
    assert database.connection().core_plan()["password"] == PASSWORD
    assert PASSWORD not in repr(database.connection())
