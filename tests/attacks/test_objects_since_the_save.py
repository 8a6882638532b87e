"""What others made in a database after its state was saved: a restore that would lose it is refused and lists it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from assay.base.errors import NotSupported, RefusedTarget
from assay.targets.databases import OWN_TABLES, Database, open_database, parse_database
from assay.targets.databases.common.layout import TableLayout
from assay.targets.databases.kinds import lay_out
from assay.targets.databases.postgresql.objects import lost_by_restoring
from assay.targets.databases.postgresql.template_copy import TemplateCopy
from assay.workloads.databases.loading import drop_loaded
from assay.workloads.tpcc.tables import TABLES
from servers.loading import load
from servers.process import PASSWORD, ServerProcess


@contextlib.contextmanager
def opened(url: str) -> Iterator[Database]:
    database = open_database(parse_database(url, {}), TABLES)
    try:
        database.open()
        yield database
    finally:
        database.close()


@contextlib.contextmanager
def loaded(server: ServerProcess) -> Iterator[Database]:
    """A database as it was saved."""
    with opened(server.fresh_database()) as database:
        load(database)
        database.save()
        yield database


@pytest.fixture(scope="module")
def database(postgresql: ServerProcess) -> Iterator[Database]:
    """One that every test leaves as it was saved."""
    with loaded(postgresql) as database:
        yield database
        database.restore()


@pytest.fixture(scope="module")
def saved_state(postgresql: ServerProcess, database: Database) -> str:
    """URL of what is saved."""
    return postgresql.url_of(f"{database.spec.database}_assay_saved")


@pytest.fixture(scope="module")
def mariadb_database(mariadb: ServerProcess) -> Iterator[Database]:
    with loaded(mariadb) as database:
        yield database


@dataclass(frozen=True)
class Case:
    """An object: how it is made, what the refusal calls it, and what is true while it is there."""

    make: str
    name: str
    gone: str
    hangs: bool = False
    """Whether it hangs on Assay's tables."""


CASES = {
    "function": Case("CREATE FUNCTION f() RETURNS int RETURN 1", "function public.f()", "FUNCTION f"),
    "procedure": Case("CREATE PROCEDURE p() BEGIN ATOMIC END", "procedure public.p()", "PROCEDURE p"),
    "aggregate": Case(
        "CREATE AGGREGATE a(int) (sfunc = int4pl, stype = int)", "aggregate public.a(", "AGGREGATE a(int)"
    ),
    "enum": Case("CREATE TYPE t AS ENUM ('one')", "type public.t", "TYPE t"),
    "composite": Case("CREATE TYPE t AS (one int)", "type public.t", "TYPE t"),
    "domain": Case("CREATE DOMAIN d AS int CHECK (value > 0)", "type public.d", "DOMAIN d"),
    "schema": Case("CREATE SCHEMA shop", "schema shop", "SCHEMA shop"),
    "publication": Case("CREATE PUBLICATION p", "publication p", "PUBLICATION p"),
    "publication of a table": Case(
        "CREATE PUBLICATION p FOR TABLE stock", "publication p", "PUBLICATION p", hangs=True
    ),
    "subscription": Case(
        "CREATE SUBSCRIPTION s CONNECTION 'dbname=x' PUBLICATION p WITH (connect = false, slot_name = NONE)",
        "subscription s", "SUBSCRIPTION s",
    ),
    "event trigger": Case(
        "CREATE FUNCTION f() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';"
        " CREATE EVENT TRIGGER e ON ddl_command_end WHEN TAG IN ('CREATE CAST') EXECUTE FUNCTION f()",
        "event trigger e", "EVENT TRIGGER e; DROP FUNCTION f",
    ),
    "wrapper": Case("CREATE FOREIGN DATA WRAPPER w", "foreign-data wrapper w", "FOREIGN DATA WRAPPER w"),
    "server and mapping": Case(
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
        " CREATE USER MAPPING FOR PUBLIC SERVER s",
        "user mapping public on server s", "FOREIGN DATA WRAPPER w CASCADE",
    ),
    "language": Case("CREATE LANGUAGE l HANDLER plpgsql_call_handler", "language l", "LANGUAGE l"),
    "cast": Case(
        "CREATE TYPE t AS (one int); CREATE FUNCTION f(t) RETURNS int RETURN 1;"
        " CREATE CAST (t AS int) WITH FUNCTION f(t)",
        "cast (public.t AS integer)", "TYPE t CASCADE",
    ),
    "operator": Case(
        "CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq)", "operator public.===(",
        "OPERATOR === (int, int)",
    ),
    "operator family": Case(
        "CREATE OPERATOR FAMILY o USING btree", "operator family public.o", "OPERATOR FAMILY o USING btree"
    ),
    "collation": Case("CREATE COLLATION c FROM \"C\"", "collation public.c", "COLLATION c"),
    "conversion": Case(
        "CREATE CONVERSION c FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8", "conversion public.c", "CONVERSION c"
    ),
    "text search": Case(
        "CREATE TEXT SEARCH CONFIGURATION c (copy = simple)", "text search configuration public.c",
        "TEXT SEARCH CONFIGURATION c",
    ),
    "dictionary": Case(
        "CREATE TEXT SEARCH DICTIONARY d (template = simple)", "text search dictionary public.d",
        "TEXT SEARCH DICTIONARY d",
    ),
    "extension": Case(
        "CREATE EXTENSION pg_stat_statements", "extension pg_stat_statements", "EXTENSION pg_stat_statements"
    ),
    "access method": Case(
        "CREATE ACCESS METHOD m TYPE TABLE HANDLER heap_tableam_handler", "access method m", "ACCESS METHOD m"
    ),
    "default rights": Case(
        "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO pg_monitor", "default acl for role tester",
        "",
    ),
    "policy": Case("CREATE POLICY p ON stock", "policy p on public.stock", "POLICY p ON stock", hangs=True),
    "rule": Case(
        "CREATE RULE r AS ON DELETE TO stock DO ALSO NOTHING", "rule r on public.stock", "RULE r ON stock", hangs=True
    ),
    "trigger": Case(
        "CREATE TRIGGER t AFTER DELETE ON stock EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "trigger t on public.stock", "TRIGGER t ON stock", hangs=True,
    ),
    "statistics": Case(
        "CREATE STATISTICS s ON s_i_id, s_w_id FROM stock", "statistics object public.s", "STATISTICS s", hangs=True
    ),
    "index": Case("CREATE INDEX i ON stock (s_quantity)", "index public.i", "INDEX i", hangs=True),
    "constraint": Case(
        "ALTER TABLE stock ADD CONSTRAINT c CHECK (s_quantity > 0)", "table constraint c on public.stock",
        "", hangs=True,
    ),
    "column": Case("ALTER TABLE stock ADD colour int", "column colour of table public.stock", "", hangs=True),
    "function on a table": Case(
        "CREATE FUNCTION f(stock) RETURNS int RETURN 1", "function public.f(public.stock)", "FUNCTION f", hangs=True
    ),
    "comment": Case("COMMENT ON COLUMN stock.s_quantity IS 'mine'", "comment on table public.stock", ""),
    "row security": Case("ALTER TABLE stock ENABLE ROW LEVEL SECURITY", "row security of table public.stock", ""),
    "comment on a schema": Case("COMMENT ON SCHEMA public IS 'mine'", "comment on schema public", ""),
    "rights": Case("GRANT SELECT ON stock TO pg_monitor", "rights on table public.stock", ""),
    "rights on the schema": Case("GRANT CREATE ON SCHEMA public TO pg_monitor", "schema public", ""),
    "replication slot": Case(
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput')", "replication slot s", ""
    ),
}  # fmt: skip

UNDO = {
    "default rights": "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM pg_monitor",
    "constraint": "ALTER TABLE stock DROP CONSTRAINT c",
    "column": "ALTER TABLE stock DROP colour",
    "comment": "COMMENT ON COLUMN stock.s_quantity IS NULL",
    "row security": "ALTER TABLE stock DISABLE ROW LEVEL SECURITY",
    "comment on a schema": "COMMENT ON SCHEMA public IS 'standard public schema'",
    "rights": "REVOKE SELECT ON stock FROM pg_monitor",
    "rights on the schema": "REVOKE CREATE ON SCHEMA public FROM pg_monitor",
    "replication slot": "SELECT pg_drop_replication_slot('s')",
}
"""What takes a thing away that has no DROP of its own."""


def number_of(database: Database) -> object:
    """Which database it is: a restore would have put another in its place."""
    return database.query("SELECT oid FROM pg_database WHERE datname = current_database()")


# PostgreSQL


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_an_object_made_since_the_save_stands_against_a_restore(
    database: Database, saved_state: str, kind: str
) -> None:
    case, before = CASES[kind], number_of(database)
    database.execute(case.make)
    try:
        with pytest.raises(NotSupported, match="restoring would lose what came since the state was saved") as refused:
            database.restore()
        assert case.name in str(refused.value)
        assert "\n" not in str(refused.value)
        if case.hangs:
            with pytest.raises(RefusedTarget, match="what is not Assay's hangs on its tables") as kept:
                drop_loaded(database)
            assert case.name in str(kept.value)
            assert {*TABLES.names, *OWN_TABLES} <= set(database.tables())
        else:
            database.refuse_drop()
        assert number_of(database) == before
    finally:
        # It is still there, and nothing else stood against the restore.
        database.execute(UNDO.get(kind) or f"DROP {case.gone}")
    with opened(saved_state) as saved:
        assert lost_by_restoring(database.query, saved.query, TABLES) == []


def test_a_database_that_the_server_does_not_drop_is_not_replaced(database: Database) -> None:
    before = number_of(database)
    database.execute(f"ALTER DATABASE {database.spec.database} IS_TEMPLATE true")
    try:
        with pytest.raises(NotSupported, match="the database is a template"):
            database.restore()
        assert number_of(database) == before
    finally:
        database.execute(f"ALTER DATABASE {database.spec.database} IS_TEMPLATE false")


def test_a_path_of_others_does_not_lead_to_their_functions(postgresql: ServerProcess) -> None:
    """The owner of a database may put a schema before the server's own: nothing of it is run as who connects."""
    url = postgresql.fresh_database()
    with opened(url) as database:
        name = database.spec.database
        database.execute("CREATE SCHEMA trap")
        for function, result in (
            ("set_config(text, text, boolean)", "text"), ("current_schema()", "name"), ("quote_ident(name)", "text"),
        ):  # fmt: skip
            body = f"SELECT 1/0; SELECT 'x'::{result}"
            database.execute(f"CREATE FUNCTION trap.{function} RETURNS {result} LANGUAGE sql AS $${body}$$")
        database.execute(f"ALTER DATABASE {name} SET search_path = trap, pg_catalog")
    with opened(url) as database:
        assert database.query("SHOW search_path") == [("trap",)]
        assert database.marked_tables() == set()


def test_large_objects_stand_against_saving_as_well(database: Database) -> None:
    ((number,),) = database.query("SELECT lo_from_bytea(0, 'precious')")
    for work in (database.save, database.restore):
        with pytest.raises(NotSupported, match=rf"not Assay's \(large object {number}\), which saving and restoring"):
            work()
    assert database.query("SELECT lo_get(%s)", (number,)) == [(b"precious",)]
    database.query("SELECT lo_unlink(%s)", (number,))


def test_many_objects_are_counted(database: Database) -> None:
    database.execute("; ".join(f"CREATE FUNCTION f{number}() RETURNS int RETURN 1" for number in range(7)))
    with pytest.raises(NotSupported, match=r"\(function public\.f0\(\), .*, function public\.f2\(\), … 7 in all\)"):
        database.restore()
    database.execute("; ".join(f"DROP FUNCTION f{number}" for number in range(7)))


def test_what_was_there_at_the_save_comes_back_and_is_no_loss_until_it_changes(postgresql18: ServerProcess) -> None:
    with loaded(postgresql18) as database:
        for case in (CASES["function"], CASES["enum"], CASES["index"], CASES["column"], CASES["extension"]):
            database.execute(case.make)
        database.save()
        database.execute("UPDATE assay_schema SET v = 'ran' WHERE k = 'state'")
        # What a run does to the tables changes nothing of that.
        database.vacuum_analyze()
        database.restore()
        assert database.query("SELECT f(), 'one'::t::text") == [(1, "one")]
        for change, name in (
            ("CREATE OR REPLACE FUNCTION f() RETURNS int RETURN 2", "function public.f()"),
            ("ALTER TYPE t ADD VALUE 'two'", "type public.t"),
        ):
            database.execute(change)
            with pytest.raises(NotSupported) as refused:
                database.restore()
            assert f"saved ({name})" in str(refused.value)
            database.save()
        database.execute("DROP FUNCTION f")
        database.restore()
        assert database.query("SELECT f()") == [(2,)]


def test_loading_again_is_no_loss(postgresql18: ServerProcess) -> None:
    with loaded(postgresql18) as database:
        load(database)
        database.restore()


def test_what_comes_while_the_state_is_copied_brings_the_database_back(
    postgresql18: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of many gigabytes takes minutes, and others may come and go meanwhile."""
    with loaded(postgresql18) as database:
        name, before = database.spec.database, number_of(database)
        database.execute(f"COMMENT ON DATABASE {name} IS 'of the shop'")
        copy = TemplateCopy._copy

        def with_a_visitor(self: TemplateCopy, session: object, source: str, made: str) -> None:
            copy(self, session, source, made)  # type: ignore[arg-type]
            with psycopg.connect(postgresql18.url_of(name), autocommit=True) as visitor:
                visitor.execute("CREATE FUNCTION f() RETURNS int RETURN 1")
                process = Path(f"/proc/{visitor.info.backend_pid}")
            while process.exists():
                time.sleep(0.01)

        monkeypatch.setattr(TemplateCopy, "_copy", with_a_visitor)
        with pytest.raises(NotSupported, match=r"saved \(function public\.f\(\)\)"):
            database.restore()
        assert number_of(database) == before
        assert database.query("SELECT f(), shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s",
                              (name,)) == [(1, "of the shop")]  # fmt: skip
        found = database.query("SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY 1", (name,))
        assert found == [(name,), (f"{name}_assay_saved",)]


def test_a_layout_does_not_take_along_what_hangs_on_a_table(postgresql18: ServerProcess) -> None:
    with loaded(postgresql18) as database:
        database.execute(CASES["trigger"].make)
        with pytest.raises(RefusedTarget, match=r"hangs on its tables \(trigger t on public\.stock\)"):
            lay_out(database, TableLayout(table="stock", ways=2), scale=2, connections=2)
        database.execute("DROP TRIGGER t ON stock")
        lay_out(database, TableLayout(table="stock", ways=2), scale=2, connections=2)
        # Partitions, their indexes and keys are Assay's own.
        assert "stock_p2" in database.tables()
        database.refuse_drop()
        database.restore()
        assert "stock_p2" not in database.tables()
        drop_loaded(database)


def test_a_user_who_may_not_see_everything_is_told(postgresql18: ServerProcess) -> None:
    postgresql18.execute(f"CREATE ROLE seldom LOGIN CREATEDB PASSWORD '{PASSWORD}'")
    postgresql18.execute("CREATE DATABASE seldom OWNER seldom")
    with opened(postgresql18.url_of("seldom", user="seldom")) as database:
        load(database)
        database.save()
        server_side = postgresql18.url_of("seldom")
        with psycopg.connect(server_side, autocommit=True) as admin:
            admin.execute(b"REVOKE SELECT ON pg_cast FROM PUBLIC")
            admin.execute(b"CREATE EXTENSION postgres_fdw; CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw;"
                          b" CREATE USER MAPPING FOR seldom SERVER s OPTIONS (password 'x')")  # fmt: skip
        with pytest.raises(NotSupported, match="user mapping seldom on server s"):
            database.restore()
        assert any("may not read pg_cast, so what it holds is not looked for" in one for one in database.notices)
        database.drop_saved()
    postgresql18.execute("DROP DATABASE seldom")
    postgresql18.execute("DROP ROLE seldom")


# MariaDB: tables are replaced, everything else stays


MARIADB = {
    "trigger": (
        "CREATE TRIGGER t AFTER DELETE ON stock FOR EACH ROW SET @x = 1", "trigger t on stock", "DROP TRIGGER t"
    ),
    "column": ("ALTER TABLE stock ADD colour int", "column stock.colour", "ALTER TABLE stock DROP colour"),
    "index": ("CREATE INDEX i ON stock (s_quantity)", "index stock.i (s_quantity)", "DROP INDEX i ON stock"),
    "constraint": (
        "ALTER TABLE stock ADD CONSTRAINT c CHECK (s_quantity > 0)", "constraint stock.c",
        "ALTER TABLE stock DROP CONSTRAINT c",
    ),
    "foreign key": (
        "CREATE TABLE visits (w int, CONSTRAINT of_w FOREIGN KEY (w) REFERENCES warehouse (w_id))", "visits.of_w",
        "DROP TABLE visits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MARIADB)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_hangs_on_tables_of_mariadb_stands_against_a_restore(mariadb_database: Database, kind: str) -> None:
    make, name, drop = MARIADB[kind]
    database = mariadb_database
    database.execute(make)
    try:
        with pytest.raises(NotSupported, match="restoring would lose what came since the state was saved") as refused:
            database.restore()
        with pytest.raises(RefusedTarget, match="what is not Assay's hangs on its tables") as kept:
            drop_loaded(database)
        assert name in str(refused.value)
        assert name in str(kept.value)
        assert {*TABLES.names, *OWN_TABLES} <= set(database.tables())
        if kind in ("trigger", "foreign key"):
            with pytest.raises(NotSupported, match="saving and restoring would roll back"):
                database.save()
    finally:
        database.execute(drop)
    database.restore()


def test_other_objects_of_mariadb_survive_a_restore(mariadb_database: Database) -> None:
    database = mariadb_database
    made = ("VIEW v AS SELECT s_quantity FROM stock", "FUNCTION f() RETURNS int RETURN 1", "SEQUENCE s",
            "EVENT e ON SCHEDULE EVERY 1 YEAR DO SET @x = 1", "TABLE invoices (i int)")  # fmt: skip
    for one in made:
        database.execute(f"CREATE {one}")
    database.restore()
    for one in made:
        database.execute("DROP " + " ".join(one.removesuffix("()").split()[:2]).removesuffix("()"))


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_was_in_definitions_of_mariadb_at_the_save_is_no_loss(mariadb: ServerProcess) -> None:
    with loaded(mariadb) as database:
        for kind in ("column", "index"):
            database.execute(MARIADB[kind][0])
        database.save()
        database.restore()
        assert "index stock.i (s_quantity)" in database.others_on_tables()
        lay_out(database, TableLayout(table="stock", ways=2), scale=2, connections=2)
        database.restore()
