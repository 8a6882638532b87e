"""Databases as people write them elsewhere are answered with the target that they mean; no answer holds a password."""

from __future__ import annotations

import pytest

from assay.targets.databases.common.spec import parse_database
from assay.targets.databases.common.spelling import no_database

SERVERS = [
    ("host=localhost dbname=x", "postgresql://USER@localhost/x"),
    ("dbname = 'two words' hostaddr=10.0.0.1 port=5433", "postgresql://USER@10.0.0.1:5433/two words"),
    ("user=me password='s3cret word' host=db1 dbname=x sslmode=require", "postgresql://me@db1/x"),
    ("jdbc:postgresql://db1:5433/x?user=u&password=s3cret", "postgresql://u@db1:5433/x"),
    ("jdbc:mysql://db1/x", "mariadb://USER@db1/x"),
    ("jdbc:sqlserver://db1:1433;databaseName=x;user=sa;password=s3cret", "mssql://sa@db1:1433/x"),
    ("Server=tcp:db1,1433;Initial Catalog=x;User Id=u;Password=s3cret", "mssql://u@db1:1433/x"),
    ("Data Source=db1\\SQL2022;Database=x;Integrated Security=true", "mssql://USER@db1/x"),
    ("Host=db1;Username=u;Password=s3cret;Database=x", "postgresql://u@db1/x"),
    ("Server=db1;Port=3306;Database=x;Uid=u;Pwd=s3cret", "mariadb://u@db1:3306/x"),
    ("db1:5432/x", "postgresql://USER@db1:5432/x"),
    ("[::1]:3306/x", "mariadb://USER@[::1]:3306/x"),
    ("db1:1433", "mssql://USER@db1:1433/DATABASE"),
]


@pytest.mark.parametrize(("text", "meant"), SERVERS)
def test_a_connection_string_is_answered_with_the_target_that_it_means(text: str, meant: str) -> None:
    told = str(no_database(text))
    assert told.endswith(f"; write {meant}")
    assert "s3cret" not in told
    assert parse_database(meant, {}).host in text.lower()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("bench", "target 'bench' is no database; write postgresql://USER@HOST/bench, mariadb://USER@HOST/bench"),
        ("./x.duckdb", "target './x.duckdb' is no database; write duckdb:./x.duckdb"),
        ("/srv/db", "write embedded:/srv/db for a server of Assay's own there"),
        ("my.cnf", "files of options and services are not read"),
        ("service=prod", "what stands in pg_service.conf"),
        ("jdbc:oracle:thin:scott/s3cret@h:1521:x", "a JDBC URL is no target; write postgresql://USER@HOST/DATABASE"),
        ("jdbc:duckdb:/srv/x", "write duckdb:/srv/x"),
        ("jdbc:mysql://h:99999/x", "a JDBC URL is no target"),
        ("oracle://scott:s3cret@h/x", "target oracle:... is no database"),
        ("Server=;Password=s3cret x", "write postgresql://USER@HOST/DATABASE"),
    ],
)
def test_what_means_no_server_is_answered_with_how_databases_are_written(text: str, told: str) -> None:
    answer = str(no_database(text))
    assert told in answer
    assert "\n" not in answer
    assert "s3cret" not in answer
