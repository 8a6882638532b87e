"""Scripts in pgbench's language on servers: the cases of pgbench's own tests, and the same tables as pgbench leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any

import pytest
from engine import Database, run_plan, running

from assay import _core
from assay.base.errors import AssayError, UsageError
from assay.workloads.sql.scripts import BUILT_IN, pgbench_statements
from servers.mariadb import MariadbServer
from servers.mssql import MssqlServer
from servers.postgresql import PostgresqlServer

SEED = 5432


@pytest.fixture(scope="module")
def database(postgresql18: PostgresqlServer) -> Database:
    return Database(postgresql18.fresh_database(), 1)


def plan_of(database: Database, *scripts: str, **changes: Any) -> dict[str, Any]:
    named = [{"name": f"s{number}.sql", "text": text} for number, text in enumerate(scripts, 1)]
    own = {"workload": "sql", "scripts": named, "defines": [], "protocol": "prepared", "mix": [1] * len(scripts)}
    return run_plan(database, users=1, procedures=False, retries=0, seed=SEED, **own) | changes


def passes(database: Database, *scripts: str, times: int = 1, **changes: Any) -> dict[str, tuple[int, int]]:
    """Let one user run so many transactions, one after the other."""
    return _core.oltp_serial(json.dumps(plan_of(database, *scripts, **changes)), times, 1)


def shown(database: Database, capfd: pytest.CaptureFixture[str], script: str, **changes: Any) -> list[str]:
    """What a script's `debug()` shows."""
    passes(database, script, **changes)
    return [line.partition(": ")[2] for line in capfd.readouterr().err.splitlines() if line.startswith("debug(")]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_rows_become_variables(database: Database, capfd: pytest.CaptureFixture[str], protocol: str) -> None:
    script = r"""-- test gset
SELECT \gset
SELECT 0 AS i0 \gset
\set i debug(:i0)
SELECT 1 AS i1, 2 AS i2 \gset
\set i debug(:i1)
\set i debug(:i2)
SELECT 3 AS i3 \gset x_
\set i debug(:x_i3)
SELECT 0 AS i4, 4 AS i4 \gset
\set i debug(:i4)
SELECT 8 AS i6 UNION SELECT 9 ORDER BY 1 DESC \aset
\set i debug(:i6)
SELECT 5432 AS i8 WHERE FALSE \aset
"""
    values = [f"int {value}" for value in (0, 1, 2, 3, 4, 8)]
    assert shown(database, capfd, script, protocol=protocol) == values


def test_the_simple_protocol_takes_joined_statements_and_quoted_variables(
    database: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    script = r"""\; \; SELECT 0 AS i5 \; SELECT 5 AS i5 \; \; \gset
\set i debug(:i5)
\; SELECT 6 AS i6 \; SELECT 7 AS i7 \; \aset
\set i debug(:i6)
\set i debug(:i7)
\set v0 NULL
\set v1 TRUE
\set v3 -54.21E-2
SELECT :v0, :v1, :v3, ':nothing_sets_this';
SELECT ':v3' AS t, :v3 AS n \gset
\set i debug(:t = :n)
"""
    values = ["int 5", "int 6", "int 7", "boolean true"]
    assert shown(database, capfd, script, protocol="simple") == values


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_pipelines_of_any_isolation(database: Database, protocol: str) -> None:
    many = "select 1;\n" * 10
    passes(database, f"\\startpipeline\n{many}\\endpipeline\n", protocol=protocol, times=3)
    begun = f"BEGIN ISOLATION LEVEL SERIALIZABLE;\n{many}\\syncpipeline\n{many}END;\n"
    passes(database, f"\\startpipeline\n{begun}\\endpipeline\n", protocol=protocol, times=3)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("SELECT 5432 AS fail UNION SELECT 5433 ORDER BY 1 \\gset", r"\\gset: expected one row, got 2"),
        ("SELECT WHERE FALSE \\gset", "expected one row, got 0"),
        ("DROP TABLE IF EXISTS no_such_table \\gset", "expected one row, got 0"),
        ("SELECT 1 \\gset", r"error storing into variable \?column\?"),
        ('SELECT 1 AS "bad name!" \\gset', "error storing into variable bad name!"),
        ("SELECT 1;\nSELECT 1 + ;", r"s1\.sql:2: syntax error.*42601"),
        ("\\startpipeline\n\\startpipeline\nSELECT 1;", "s1.sql:2: already in pipeline mode"),
        ("\\endpipeline\nSELECT 1;", "not in pipeline mode"),
        ("\\startpipeline\nselect 1 \\gset f\n\\endpipeline", "gset is not allowed in pipeline mode"),
        ("\\startpipeline\nselect 1;", "end of script reached with pipeline open"),
        ("\\startpipeline\nselect 1/0;\n\\endpipeline", "division by zero.*22012"),
        ("BEGIN;SELECT 1;", "end of script reached without completing the last transaction"),
        ("\\sleep :nosuchvariable\nSELECT 1;", 'sleep: undefined variable "nosuchvariable"'),
        ("\\set i 1/0\nSELECT 1;", "s1.sql:1: division by zero"),
        ("COPY pg_class FROM STDIN;", "COPY"),
        ("select '{ invalid ' as value \\gset\nselect :value::jsonb;", "invalid input syntax for type json"),
        ("select 42 as value1, '1a' as value2 \\gset\nselect :value1::smallint, :value2::smallint;", "smallint"),
    ],
)
def test_what_fails_is_told_with_script_and_line(database: Database, script: str, told: str) -> None:
    with pytest.raises(AssayError, match=told):
        passes(database, script)


def test_scripts_that_cannot_run_are_refused_before_anything_connects() -> None:
    nowhere = Database("postgresql://tester@db.invalid:1/shop", 1)
    for script, told in [("\\if 1", "without matching"), ("\\shell true", "no command of this host"), ("", "empty")]:
        with pytest.raises(UsageError, match=told):
            passes(nowhere, script)


def made(postgresql18: PostgresqlServer) -> Database:
    database = Database(postgresql18.fresh_database(), 1)
    with database.session() as session:
        for statement in pgbench_statements("postgresql", 1):
            session.execute(statement)
        session.execute("CREATE TABLE drawn (u bigint, e bigint, g bigint, z bigint, h bigint, p bigint)")
    return database


DRAWN = r"""\set u random(1000, 1999)
\set e random_exponential(2000, 2999, 2.0)
\set g random_gaussian(3000, 3999, 3.0)
\set z random_zipfian(4000, 4999, 1.5)
\set h hash(:u)
\set p permute(:z, 100000)
INSERT INTO drawn VALUES (:u, :e, :g, :z, :h, :p);
"""


@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
def test_the_tables_afterwards_are_those_of_pgbench(postgresql18: PostgresqlServer, tmp_path: Any) -> None:
    scripts = [BUILT_IN["tpcb-like"].format(begin="BEGIN", end="END"), DRAWN]
    theirs, ours = made(postgresql18), made(postgresql18)
    files = []
    for number, (text, weight) in enumerate(zip(scripts, (3, 2), strict=True)):
        (tmp_path / f"{number}.sql").write_text(text)
        files += ["-f", f"{tmp_path / f'{number}.sql'}@{weight}"]
    place = theirs.connection()
    subprocess.run(
        ["pgbench", "-n", "-M", "prepared", "-c", "1", "-j", "1", "-t", "200", f"--random-seed={SEED}", *files,
         "-h", str(place["host"]), "-p", str(place["port"]), "-U", str(place["user"]), str(place["database"])],
        check=True, capture_output=True, env={**os.environ, "PGPASSWORD": str(place["password"])},
    )  # fmt: skip
    done = passes(ours, *scripts, times=200, mix=[3, 2])
    assert sum(committed for committed, _ in done.values()) == 200

    def rows(database: Database, query: str) -> list[Any]:
        with database.session() as session:
            return [tuple(row) for row in session.execute(query)]

    for query in (
        "SELECT aid, abalance FROM pgbench_accounts WHERE abalance <> 0 ORDER BY aid",
        "SELECT tid, tbalance FROM pgbench_tellers ORDER BY tid",
        "SELECT bid, bbalance FROM pgbench_branches",
        "SELECT tid, bid, aid, delta FROM pgbench_history ORDER BY mtime",
        "SELECT * FROM drawn ORDER BY ctid",
    ):
        found = rows(ours, query)
        assert found
        assert found == rows(theirs, query), query


def test_a_user_ends_at_an_error_and_the_others_go_on(database: Database) -> None:
    script = "\\if :client_id = 2\nSELECT 1/0;\n\\elif :client_id = 3\n\\set x 1/0\n\\endif\nSELECT 1;\n"
    with running(plan_of(database, script, users=4, interval_ns=20_000_000)) as run:
        run.until(lambda run: run.count("failed", "s1.sql") >= 2 and run.count("committed", "s1.sql") > 200)
        figures = json.loads(run.core.point(0, 10**6))
    assert run.status["state"] == "ended"
    assert (figures["errors"]["codes"], figures["errors"]["ended_users"]) == ({"22012": 1, "script": 1}, 2)
    with running(plan_of(database, "SELECT 1/0;", users=2)) as run:
        run.until(lambda _: False)
    assert run.status["state"] == "failed"
    assert "every user ended at an error: s1.sql:1: division by zero" in run.status["error"]["text"]


def test_a_serialisation_failure_is_tried_again_with_the_same_numbers(database: Database) -> None:
    with database.session() as session:
        session.execute("CREATE TABLE IF NOT EXISTS tried (one int)")
        session.execute("CREATE SEQUENCE IF NOT EXISTS attempts")
    script = """\\set r random(1, 1000000000)
SELECT nextval('attempts') AS attempt \\gset
\\if :attempt = 1
DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$;
\\endif
INSERT INTO tried VALUES (:r);
"""
    with running(plan_of(database, script, retries=1, interval_ns=20_000_000)) as run:
        run.until(lambda run: run.count("committed", "s1.sql") >= 1)
    assert run.count("retried", "s1.sql") == 1
    stream_first = passes(database, "\\set r random(1, 1000000000)\nINSERT INTO tried VALUES (:r);")
    assert stream_first
    with database.session() as session:
        ((same,),) = session.execute("SELECT count(*) FROM tried GROUP BY one ORDER BY 1 DESC LIMIT 1")
    assert int(same) >= 2


@pytest.mark.slow(reason="a server of its own; PostgreSQL runs the same")
def test_the_same_scripts_run_on_mariadb(mariadb: MariadbServer, capfd: pytest.CaptureFixture[str]) -> None:
    database = Database(mariadb.fresh_database(), 1)
    with database.session() as session:
        for statement in pgbench_statements("mariadb", 1):
            session.execute(statement)
    script = BUILT_IN["tpcb-like"].format(begin="START TRANSACTION", end="COMMIT")
    for protocol in ("simple", "extended", "prepared"):
        passes(database, script, times=20, protocol=protocol)
    with database.session() as session:
        ((count, total),) = session.execute("SELECT count(*), sum(delta) FROM pgbench_history")
        ((balance,),) = session.execute("SELECT sum(abalance) FROM pgbench_accounts")
    assert (int(count), int(total)) == (60, int(balance))
    kept = "SELECT 3 AS a, 'gr\u00f6\u00dfer' AS t \\gset\n\\set x debug(:a)\nSELECT :t AS u \\gset\n"
    assert shown(database, capfd, kept) == ["int 3"]
    with pytest.raises(AssayError, match="without completing the last transaction"):
        passes(database, "START TRANSACTION;\nSELECT 1;")
    with pytest.raises(UsageError, match="pipelines are for PostgreSQL alone"):
        passes(database, "\\startpipeline\nSELECT 1;\n\\endpipeline")


@pytest.mark.slow(reason="a server of its own; PostgreSQL runs the same")
def test_statements_reach_sql_server(mssql: MssqlServer) -> None:
    database = Database(mssql.fresh_database(), 1)
    passes(database, "\\set a random(1, 9)\nSELECT :a;\n", times=2)
