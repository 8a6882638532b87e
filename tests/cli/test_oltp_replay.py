"""`assay oltp replay` from a log to what became of its statements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from assay_command import Bench, Outcome
from servers.mariadb import MariadbServer
from servers.postgresql import PostgresqlServer

TARGET = "postgresql://tester@db.invalid/shop"

KEPT = ("--no-report", "--json")


def replay(bench: Bench, *arguments: str | Path) -> Outcome:
    return bench.assay("oltp", "replay", *arguments, timeout_s=200)


def csv_line(ms: int, session: int, text: str, *, detail: str = "", code: str = "00000", statement: str = "") -> str:
    """A line of a csvlog of version 15."""

    def quoted(value: str) -> str:
        return '"' + value.replace('"', '""') + '"' if value else ""

    at = f"2026-11-27 10:00:{ms // 1000:02}.{ms % 1000:03} UTC"
    severity = "LOG" if code == "00000" else "ERROR"
    return (
        f'{at},"u","shop",{session},"[local]",abc.{session},1,"SELECT",2026-11-27 09:59:59 UTC,3/1,0,{severity},{code},'
        f'{quoted(text)},{quoted(detail)},,,,,{quoted(statement)},,,"app","client backend",,0\n'
    )


@pytest.fixture
def log(bench: Bench) -> Path:
    """Two sessions: one reads with a parameter and writes in a transaction, one meets errors."""
    path = bench.folder / "postgresql.csv"
    lines = [
        csv_line(100, 1, "duration: 1.000 ms  statement: BEGIN"),
        csv_line(120, 1, "duration: 1.000 ms  execute S_1: SELECT amount FROM orders WHERE id = $1",
                 detail="parameters: $1 = '7'"),
        csv_line(140, 1, "duration: 1.000 ms  statement: UPDATE orders SET amount = amount + 1 WHERE id = 7"),
        csv_line(160, 1, "duration: 1.000 ms  statement: COMMIT"),
        csv_line(200, 2, "duplicate key", code="23505", statement="INSERT INTO orders VALUES (7, 0)"),
        csv_line(220, 2, "duration: 500.000 ms  statement: SELECT gone FROM elsewhere"),
        csv_line(240, 2, "relation does not exist", code="42P01", statement="SELECT * FROM nowhere"),
        csv_line(260, 2, "duration: 1.000 ms  statement: COPY orders FROM STDIN"),
        *(csv_line(400 + 40 * n, 2, f"duration: 0.001 ms  statement: SELECT sum(amount) + {n} FROM orders")
          for n in range(20)),
    ]  # fmt: skip
    path.write_text("".join(lines))
    return path


def orders(server: PostgresqlServer) -> str:
    url = server.fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, amount int)")
        connection.execute("INSERT INTO orders SELECT n, 0 FROM generate_series(1, 100) AS n")
    return url


def amount_of(url: str, number: int) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT amount FROM orders WHERE id = %s", (number,)).fetchone()
    assert row is not None
    return int(row[0])


def test_a_dry_run_says_what_the_log_holds(bench: Bench, log: Path) -> None:
    outcome = replay(bench, TARGET, log, "--dry-run", "--json")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.document["plan"]["logs"] == [str(log)]
    told = replay(bench, TARGET, log, "--dry-run").stdout
    assert "csvlog: 25 statements" in told
    assert "2 sessions" in told
    assert "2 writes (run them with --writes)" in told
    assert "COPY and LOAD DATA" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "no target; name a database first"),
        ((TARGET,), "no log; name one behind the database"),
        ((TARGET, "no-such.csv"), "no-such.csv"),
        ((TARGET, TARGET), "on one database"),
        (("x.csv", TARGET), "no target"),
    ],
)
def test_what_is_missing_is_told(bench: Bench, arguments: tuple[str, ...], told: str) -> None:
    outcome = replay(bench, *arguments)
    assert outcome.code == 2
    assert told in outcome.stderr


def test_a_file_that_is_no_log_is_refused(bench: Bench) -> None:
    path = bench.folder / "notes.txt"
    path.write_text("hello\n")
    outcome = replay(bench, TARGET, path)
    assert outcome.code == 2
    assert "is no log of statements" in outcome.stderr


def statements_of(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.stderr
    (point,) = outcome.document["points"]
    found: dict[str, Any] = point["statements"]
    return found


def test_sessions_only_read_unless_they_may_write(bench: Bench, log: Path, postgresql18: PostgresqlServer) -> None:
    url = orders(postgresql18)
    outcome = replay(bench, url, log, *KEPT, "-o", bench.results)
    found = statements_of(outcome)
    assert amount_of(url, 7) == 0
    assert found["log"]["left_out"]["writes (run them with --writes)"] == 2
    assert (found["done"], found["unfinished"], found["sessions_done"]) == (25, 0, 2)
    # It failed in the log, too; the other did not.
    assert found["failed_alike"] == 1
    assert [(one["recorded"], one["replayed"], one["count"]) for one in found["different"]] == [("", "42P01", 1)]
    assert (found["lateness"]["count"], found["log"]["sessions_most"]) == (25, 2)
    by_text = {one["text"]: one for one in found["compared"]}
    sums = by_text["select sum(amount) + ? from orders"]
    assert (sums["recorded_ns"]["count"], sums["kind"]) == (20, "reads")
    # Of statements that take less than the way to the server the times may be unknown.
    assert sums["times"] is None or sums["interval_95"][0] <= sums["times"] <= sums["interval_95"][1]
    assert found["round_trip_ns"] > 0
    assert by_text["select amount from orders where id = ?"]["replayed_ns"]["count"] == 1
    kinds = outcome.document["points"][0]["oltp"]["by_transaction"]
    assert (kinds["reads"]["count"], kinds["control"]["count"], kinds["reads"]["failed"]) == (21, 2, 1)
    assert not any(word == "7" for one in found["compared"] for word in one["text"].split())


def test_writes_run_in_their_transactions(bench: Bench, log: Path, postgresql18: PostgresqlServer) -> None:
    url = orders(postgresql18)
    found = statements_of(replay(bench, url, log, "--writes", "--speed", "2", *KEPT, "-o", bench.results))
    assert amount_of(url, 7) == 1
    # The key that was there is there again.
    assert (found["failed_alike"], found["speed"], found["done"]) == (2, 2.0, 27)


@pytest.mark.slow  # the test of PostgreSQL proves the replay; the core's tests prove the formats
def test_a_slow_log_runs_on_mariadb(bench: Bench, mariadb: MariadbServer) -> None:
    path = bench.folder / "slow.log"
    entry = (
        "# User@Host: u[u] @ localhost []\n# Thread_id: {session}  Schema: shop  QC_hit: No\n"
        "# Query_time: 0.000100  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 0\nSET timestamp={at};\n{text};\n"
    )
    texts = ["SELECT 1", "SET autocommit=0", "SELECT 'a\\'b;', 2", "DELETE FROM nowhere", "SELECT * FROM nowhere"]
    path.write_text("".join(entry.format(session=n % 2, at=1795773600, text=text) for n, text in enumerate(texts)))
    found = statements_of(replay(bench, mariadb.fresh_database(), path, *KEPT, "-o", bench.results))
    assert (found["done"], found["log"]["by_second"]) == (4, True)
    assert [(one["recorded"], one["replayed"]) for one in found["different"]] == [("", "42S02")]
    refused = replay(bench, TARGET.replace("postgresql", "mariadb"), path, "--dry-run", "--json")
    assert json.loads(refused.stdout)["plan"]["logs"] == [str(path)]


@pytest.mark.slow  # the test of PostgreSQL proves the replay; this one proves a log that a server wrote
def test_the_general_log_of_a_server_runs_on_it_again(bench: Bench, mariadb: MariadbServer) -> None:
    first, copy = mariadb.fresh_database(), mariadb.fresh_database()
    path = mariadb.data / "general.log"
    databases = [url.rpartition("/")[2] for url in (first, copy)]
    for database in databases:
        mariadb.execute(f"CREATE TABLE {database}.orders (id int PRIMARY KEY, amount int, note text)")
    mariadb.execute(f"SET GLOBAL general_log_file='{path}'")
    mariadb.execute("SET GLOBAL general_log=1")
    try:
        connection = pymysql.connect(user="root", unix_socket=str(mariadb.socket), database=databases[0])
        with connection, connection.cursor() as cursor:
            for number in range(5):
                cursor.execute(
                    "INSERT INTO orders VALUES (%s, %s, %s)", (number, 10, "it's\n a 'note'; -- not the end")
                )
            cursor.execute("UPDATE orders SET amount = amount + 1 WHERE id < 3")
            connection.commit()
            cursor.execute("SELECT sum(amount) FROM orders")
    finally:
        mariadb.execute("SET GLOBAL general_log=0")
    words = (path, "--writes", "--from-database", databases[0], *KEPT, "-o", bench.results)
    found = statements_of(replay(bench, copy, *words))
    assert (found["different"], found["failed_alike"], found["lost"]) == ([], 0, 0)
    with pymysql.connect(user="root", unix_socket=str(mariadb.socket)) as connection, connection.cursor() as cursor:
        sums = []
        for database in databases:
            cursor.execute(f"SELECT sum(amount), sum(length(note)), count(*) FROM {database}.orders")
            sums.append(cursor.fetchone())
    assert sums[0] == sums[1]
    assert sums[0] is not None
    assert sums[0][2] == 5


@pytest.mark.slow  # several replays
def test_a_search_finds_how_many_times_as_fast_statements_hold(
    bench: Bench, log: Path, postgresql18: PostgresqlServer
) -> None:
    # A statement that fails in another way than it did is an error of the load.
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if "elsewhere" not in line))
    words = ("--search", "speed", "--limit", "response.p99<60s", "--end", "4", "--repeats", "0")
    outcome = replay(bench, orders(postgresql18), log, *words, *KEPT, "-o", bench.results)
    (answer,) = outcome.document["answers"]
    assert answer["axis"] == "speed"
    speeds = [point["statements"]["speed"] for point in outcome.document["points"]]
    assert speeds[0] == 1
    # Where the host was too busy for sessions to begin in time, nothing faster is tried.
    assert max(speeds) > 1 or outcome.document["points"][0]["generator"]["saturated"]
    assert all(point["statements"]["round_trip_ns"] > 0 for point in outcome.document["points"])
