"""`assay oltp sql` from the command line to its plan and its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from assay.base.errors import UsageError
from assay.workloads.sql.loading import batches_of
from assay_command import Bench, Outcome
from servers.fixtures import Connect
from servers.postgresql import PostgresqlServer

TARGET = "postgresql://tester@db.invalid/shop"
SHORT = ("--warmup", "0.2s", "--duration", "1s", "--users", "2")


@pytest.fixture
def script(bench: Bench) -> Path:
    path = bench.folder / "order.sql"
    path.write_text("\\set id random(1, :most)\nUPDATE orders SET amount = amount + 1 WHERE id = :id;\n")
    return path


def sql(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("oltp", "sql", *arguments, timeout_s=200)


def planned(bench: Bench, *arguments: str | Path) -> dict[str, Any]:
    outcome = sql(bench, TARGET, *arguments, "--dry-run", "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    plan: dict[str, Any] = outcome.document["plan"]
    return plan


def test_words_and_options_are_the_plan(bench: Bench, script: Path) -> None:
    plan = planned(
        bench, f"{script}@3", "select", "-D", "most=9", "-D", "x=a=b", "-M", "simple", "-s", "4", "--max-tries", "3",
        "--think", "2s", "--users", "5",
    )  # fmt: skip
    assert [(one["name"], one["weight"]) for one in plan["scripts"]] == [("order.sql", 3), ("select-only", 1)]
    assert plan["scripts"][0]["text"] == script.read_text()
    assert plan["defines"] == [["most", "9"], ["x", "a=b"]]
    assert (plan["protocol"], plan["scale"], plan["retries"], plan["think_s"]) == ("simple", 4, 2, 2.0)
    assert (plan["actions"], plan["users"]) == (["run"], 5)
    assert planned(bench, "tpcb-like", "--init", "pgbench")["actions"] == ["load", "run"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no target; name a database first"),
        ((TARGET,), "no script; name a file of SQL"),
        (("a.sql", TARGET), "no target; name a database first"),
        ((TARGET, "no-such-file.sql"), "no-such-file.sql: cannot be read"),
        ((TARGET, "s"), "s: may mean simple-update or select-only"),
        ((TARGET, "select-only@one"), "accepted: FILE@WEIGHT"),
        ((TARGET, "select-only@0"), "every weight is 0"),
        ((TARGET, "select-only", "tpcb", "select-only@2"), "is given twice"),
        ((TARGET, "select-only", "-D", "foobla"), "invalid variable definition"),
        ((TARGET, "select-only", "-D", "1a=2"), "invalid variable name (1a)"),
        ((TARGET, "select-only", "-M", "no-such-mode"), "no-such-mode"),
        ((TARGET, "select-only", "--max-tries", "0"), "accepted: 1 to"),
        ((TARGET, "select-only", "load"), "there is nothing to load"),
        ((TARGET, "select-only", "check"), "'check': accepted for SQL of one's own"),
        ((TARGET, "select-only", "--rate", "10", "--think", "1s"), "a rate and thinking times exclude each other"),
        ((TARGET, "bad.sql"), "bad.sql:2: \\if without matching \\endif"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(bench: Bench, arguments: tuple[str, ...], told: str) -> None:
    (bench.folder / "bad.sql").write_text("SELECT 1;\n\\if 1\n")
    outcome = sql(bench, *(word.replace("bad.sql", f"{bench.folder}/bad.sql") for word in arguments), "--dry-run")
    assert (outcome.code, told in outcome.complaint) == (2, True), outcome.stderr


def test_files_make_the_tables_and_scripts_run_on_them(
    bench: Bench, script: Path, postgresql18: PostgresqlServer
) -> None:
    url = postgresql18.fresh_database()
    schema = bench.folder / "schema.sql"
    schema.write_text(
        "CREATE TABLE orders (id int PRIMARY KEY, amount int);\n"
        "INSERT INTO orders SELECT n, 0 FROM generate_series(1, 100) AS n;\n"
    )
    wanted = ("--init", schema, "-D", "most=100", "--no-report", "--json", "-o", bench.results)
    outcome = sql(bench, url, f"{script}@3", "select-only@0", *wanted, *SHORT)
    assert outcome.code == 0, outcome.stderr
    found = outcome.document["oltp"]
    (point,) = outcome.document["points"]
    assert found["by_transaction"]["order.sql"]["count"] > 0
    assert found["by_transaction"]["select-only"]["count"] == 0
    assert found["tps"] == pytest.approx(found["tpm_client"] / 60)
    assert (found["errors"]["count"], point["workload"]["mix"]) == (0, {"order.sql": 3, "select-only": 0})

    # The tables are there, and every load of a search begins with them as they were made.
    search = ("--search", "users", "--end", "2", "--limit", "response.p90<10s")
    again = sql(bench, url, script, *wanted, "--warmup", "0.1s", "--duration", "0.5s", *search)
    assert again.code == 0, again.stderr
    assert any("had been made before" in notice for notice in again.document["notices"])
    assert again.document["answers"][0]["max"]["tps"] > 0
    assert not any("did not start from the same state" in notice for notice in again.document["notices"])

    schema.write_text("CREATE TABLE others (id int);\n")
    refused = sql(bench, url, script, *wanted)
    assert (refused.code, "other files made its tables" in refused.stderr) == (2, True)


def test_tables_of_others_are_used_as_they_are(bench: Bench, script: Path, postgresql18: PostgresqlServer) -> None:
    url = postgresql18.fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders AS SELECT n AS id, 0 AS amount FROM generate_series(1, 10) AS n")
    broken = bench.folder / "broken.sql"
    broken.write_text("\\if :client_id = 0\nSELECT no_such_column FROM orders;\n\\endif\nSELECT 1;\n")
    wanted = ("--no-report", "--json", "-o", bench.results, "-D", "most=10", "--retries", "5")
    outcome = sql(bench, url, script, *wanted, *SHORT)
    assert outcome.code == 0, outcome.stderr
    with psycopg.connect(url, autocommit=True) as connection:
        ((tables,),) = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchall()
        ((amount,),) = connection.execute("SELECT sum(amount) FROM orders").fetchall()
    assert (tables, amount > 0) == (1, True)
    ended = sql(bench, url, broken, *wanted, *SHORT)
    notice = next(notice for notice in ended.document["notices"] if "ended at an error" in notice)
    assert "1 of 2 users ended at an error (42703 1)" in notice
    assert "broken.sql:2:" in notice


@pytest.mark.parametrize("kind", ["mariadb", "mssql"])
def test_scripts_run_on_servers_of_other_dialects(
    bench: Bench, request: pytest.FixtureRequest, connect: Connect, kind: str
) -> None:
    server = request.getfixturevalue(kind)
    url = server.fresh_database()
    wanted = ("--no-report", "--json", "-o", bench.results, "--warmup", "0.2s", "--duration", "1s", "--users", "1")
    outcome = sql(bench, url, "tpcb-like", "--init", "pgbench", *wanted)
    assert outcome.code == 0, outcome.stderr
    assert outcome.document["oltp"]["errors"]["count"] == 0
    sums = {
        int(str(connect(url).query(f"SELECT sum({column}) FROM {table}")[0][0]))
        for table, column in (
            ("pgbench_accounts", "abalance"),
            ("pgbench_branches", "bbalance"),
            ("pgbench_tellers", "tbalance"),
            ("pgbench_history", "delta"),
        )
    }
    assert len(sums) == 1


def test_a_batch_of_sql_server_stays_whole() -> None:
    loop = "declare @i int = 1; while @i < 3 begin\n  set @i = @i + 1; end"
    text = f"create table a (id int);\ngo\n{loop}\n GO 2 \n\nGO\nselect 1"
    assert batches_of("a.sql", text) == ["create table a (id int);", loop, loop, "select 1"]
    with pytest.raises(UsageError, match=r"a.sql, line 2: GO 10001 is too often; accepted: up to 10000"):
        batches_of("a.sql", "select 1\nGO 10001")
