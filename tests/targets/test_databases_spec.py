"""What database targets mean, and what is said of those that mean nothing."""

from __future__ import annotations

import string
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.base.secrets import Secret
from assay.targets.databases import is_database, parse_database, parse_databases

NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=0x17F), min_size=1, max_size=12)
HOSTS = st.from_regex(r"[a-z][a-z0-9.-]{0,20}[a-z0-9]", fullmatch=True)


@given(
    scheme=st.sampled_from(["postgresql", "postgres", "mariadb", "mysql", "mssql"]),
    user=NAMES.filter(lambda text: text.isprintable()),
    password=NAMES.filter(lambda text: text.isprintable()),
    host=HOSTS,
    port=st.integers(1, 65535),
    database=NAMES.filter(lambda text: text.isprintable()),
)
def test_a_url_is_read_as_it_was_written(
    scheme: str, user: str, password: str, host: str, port: int, database: str
) -> None:
    encoded = [quote(text, safe="") for text in (user, password, database)]
    spec = parse_database(f"{scheme}://{encoded[0]}:{encoded[1]}@{host}:{port}/{encoded[2]}", {})
    assert (spec.user, spec.host, spec.port, spec.database) == (user, host, port, database)
    assert spec.password == Secret(password)
    assert spec.display == f"{scheme}://{encoded[0]}@{host}:{port}/{encoded[2]}"
    assert parse_database(spec.display, {}).password is None


def outcome(text: str) -> str:
    """All that is shown of a target: what it was read as, or why it was not."""
    try:
        return repr(parse_database(text, {}))
    except UsageError as error:
        return str(error)


MARKED = st.text(string.ascii_letters + string.digits + ":/?#@&=%[].-_ \t\n\\'\"", max_size=30)


@given(scheme=st.sampled_from(["postgresql", "mariadb", "mysql", "mssql"]), before=MARKED, after=MARKED)
def test_no_message_and_no_display_holds_what_may_be_a_password(scheme: str, before: str, after: str) -> None:
    secret = "Qz7hunter2Qz"
    shown = outcome(f"{scheme}://me:{before}{secret}{after}@host/db")
    assert secret not in shown
    assert "\n" not in shown


@given(rest=MARKED)
def test_anything_is_read_or_refused_in_one_line(rest: str) -> None:
    for scheme in (
        "embedded:",
        "duckdb:",
        "postgresql:",
        "postgresql://",
        "mariadb://u:p@",
        "mssql://u@h/",
        "spanner://u:p@",
    ):
        assert "\n" not in outcome(scheme + rest)


@pytest.mark.parametrize(
    ("text", "port", "socket"),
    [
        ("postgresql://u@h/db", 5432, None),
        ("mariadb://u@h/db", 3306, None),
        ("mysql://u@h/db", 3306, None),
        ("mssql://u@h/db", 1433, None),
        ("postgresql://u@h:6000/db", 6000, None),
        ("postgresql://u@/db?host=/run/pg&port=6000", 6000, "/run/pg/.s.PGSQL.6000"),
        ("postgresql://u@%2Frun%2Fpg/db", 5432, "/run/pg/.s.PGSQL.5432"),
        ("postgresql:///db", 5432, "/var/run/postgresql/.s.PGSQL.5432"),
        ("mariadb://u@/db?socket=/run/m.sock", 3306, "/run/m.sock"),
        ("mariadb://u@/db", 3306, "/run/mysqld/mysqld.sock"),
    ],
)
def test_ports_and_sockets_have_the_servers_defaults(text: str, port: int, socket: str | None) -> None:
    spec = parse_database(text, {})
    assert (spec.port, spec.socket) == (port, socket)
    assert (spec.host is None) == (socket is not None)
    assert spec.tls == ("disable" if socket else "prefer")


def test_an_address_of_ip6_is_one() -> None:
    spec = parse_database("postgresql://u@[fe80::1]:6000/db", {})
    assert (spec.host, spec.port) == ("fe80::1", 6000)


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("postgresql://u@h/db", "PGPASSWORD"),
        ("mariadb://u@h/db", "MYSQL_PWD"),
        ("mysql://u@h/db", "MYSQL_PWD"),
        ("mssql://u@h/db", "MSSQL_PASSWORD"),
    ],
)
def test_passwords_come_from_the_environment_too(text: str, variable: str) -> None:
    assert parse_database(text, {variable: "of-the-environment"}).password == Secret("of-the-environment")
    own = text.replace("u@", "u:of-the-url@")
    assert parse_database(own, {variable: "of-the-environment"}).password == Secret("of-the-url")
    assert parse_database(f"{text}?password=o%26n", {}).password == Secret("o&n")


def test_an_embedded_database_has_folders_and_settings(tmp_path: Path) -> None:
    spec = parse_database(f"embedded:{tmp_path}/a/../db?wal={tmp_path}/wal&set.shared_buffers=1GB", {})
    assert spec.directory == tmp_path / "db"
    assert spec.wal_directory == tmp_path / "wal"
    assert spec.settings == {"shared_buffers": "1GB"}
    assert spec.name == "db"


def test_a_duckdb_has_a_file_and_options(tmp_path: Path) -> None:
    spec = parse_database(f"duckdb:{tmp_path}/a/../db.duckdb?memory_limit=1.5 gib&temp_directory={tmp_path}/t/../u", {})
    assert (spec.file, spec.name) == (tmp_path / "db.duckdb", "db")
    assert spec.settings == {"memory_limit": "1.5 gib", "temp_directory": f"{tmp_path}/u"}
    assert parse_database(spec.recorded, {}).settings == spec.settings
    with pytest.raises(UsageError, match="given twice"):
        parse_databases(["duckdb:/a/db", "duckdb:/a/./db?threads=2"], {})


def test_names_are_unique_in_a_system() -> None:
    specs = parse_databases(["embedded:/a/db", "embedded:/b/db", "postgresql://u@h/db"], {})
    assert [spec.name for spec in specs] == ["db", "db-2", "db-3"]
    with pytest.raises(UsageError, match="given twice"):
        parse_databases(["mariadb://u:secret@h/db", "mysql://v@h/db"], {})
    with pytest.raises(UsageError, match="given twice"):
        parse_databases(["embedded:/a/db", "embedded:/a/./db"], {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("embedded:", "embedded: needs a folder"),
        ("embedded:/x?wall=/y", r"no option 'wall'; did you mean 'wal'\?"),
        ("embedded:/x?wal=", "option 'wal' needs a value: a folder"),
        ("embedded:/x?wal=/x/y", "lies within /x"),
        ("embedded:/x?set.shared_bufers=1GB", r"'shared_bufers' is no setting .*did you mean 'shared_buffers'\?"),
        ("embedded:/x?set.fsync=on&set.fsync=off", "given twice"),
        ("duckdb:", "duckdb: needs a file"),
        ("duckdb:/x/", "duckdb: needs a file"),
        ("duckdb:?threads=2", "duckdb: needs a file"),
        ("duckdb:/x?thread=2", r"no option 'thread'; did you mean 'threads'\?"),
        ("duckdb:/x?threads=0", "'threads' is threads of a query, a whole number; not '0'"),
        ("duckdb:/x?memory_limit=much", "'memory_limit' is most memory"),
        ("duckdb:/x?access_mode=read_only", "no option 'access_mode'; accepted: memory_limit, threads"),
        ("postgresql:db", "is written postgresql://USER@HOST:PORT/DATABASE"),
        ("postgresql://u@h", "names no database"),
        ("postgresql://u@h/", "names no database"),
        ("postgresql://u@h:0/db", "port is not a number from 1 to 65535"),
        ("postgresql://u@h:70000/db", "port is not a number from 1 to 65535"),
        ("postgresql://u:pw", "port is not a number"),
        ("postgresql://u@h/db?sslmode=allow", "'sslmode' is one of disable, prefer, require"),
        ("postgresql://u@/db?host=/run&sslmode=require", "a socket on this machine has no TLS"),
        ("postgresql://u@h/db?sslrootcert=/etc/passwd", "needs sslmode=verify-ca or verify-full"),
        ("postgresql://u@h/db?sslrootcert=/none/x.pem&sslmode=verify-full", "/none/x.pem is no file"),
        ("postgresql://u@h/db?host=g", "names two hosts"),
        ("mariadb://u@h/db?socket=m.sock", "full path"),
        ("mariadb://u@h/db?charset=utf8", "no option of that name; accepted: sslmode"),
        ("mariadb://u@h/db?sockt=/x", r"no option 'sockt'; did you mean 'socket'\?"),
        ("mssql://h/db", "names no user"),
        ("mssql://u@/db", "names no host"),
        ("postgresql://u/x@h/db", "must be percent-encoded"),
        ("postgresql://u@h/d\tb", "holds a control character"),
        ("oracle://u:pw@h/db", "target oracle:... is no database"),
        ("postgrsql://u:pw@h/db", r"did you mean postgresql:\?"),
        ("/srv/db", "target '/srv/db' is no database"),
        ("postgresql://u:ASSAY_SECRET_99@h/db", "ASSAY_SECRET_99 stands for a password that is not kept; .*PGPASSWORD"),
    ],
)
def test_what_is_not_understood_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        parse_database(text, {})
    assert "pw" not in str(error.value)


def test_databases_are_told_from_storage() -> None:
    assert is_database("mysql://u@h/db")
    assert is_database("EMBEDDED:x")
    assert not is_database("file:x")
    assert not is_database("/srv/postgresql://x")
    assert not is_database("postgresql")
