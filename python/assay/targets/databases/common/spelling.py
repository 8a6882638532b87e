"""How people write a database elsewhere, and how it is written here.

Connection strings of libpq, JDBC and ADO.NET, `HOST:PORT/DATABASE`, files and bare names are answered with the target
that they mean. They are not taken as they are: a password in one would stand in the list of processes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from assay.base.errors import UsageError
from assay.targets.databases.common.spec import PORTS, SPELT

_PAIRS = re.compile(r"\s*(?P<key>[a-z_]+)\s*=\s*(?:'(?P<quoted>[^']*)'|(?P<plain>[^\s']*))(?=\s|$)")
_PLACE = re.compile(
    r"(?:(?P<user>[\w.-]+)(?::[^@]*)?@)?"
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/(?P<database>[\w$-]*))?"
)
_SERVERS = ("postgresql", "mariadb", "mssql")
_KINDS = {str(PORTS[kind]): kind for kind in _SERVERS}
_LIBPQ = frozenset({"host", "hostaddr", "port", "dbname", "user", "password", "sslmode", "service", "passfile"})
_JDBC = {"postgresql": "postgresql", "mariadb": "mariadb", "mysql": "mariadb", "sqlserver": "mssql"}
_HOSTS = ("server", "data source", "address", "addr", "network address", "host", "hostname")
_DATABASES = ("database", "initial catalog", "databasename", "dbname")
_USERS = ("user id", "uid", "user", "username", "user name")


def no_database(text: str) -> UsageError:
    """The error of a target that is no database, with the spelling of the one that it means.

    No message holds what may be a password.

    Examples
    --------
    >>> print(no_database("host=db1 dbname=orders user=me password=secret"))
    a connection string of libpq is no target; write postgresql://me@db1/orders
    >>> print(no_database("db1:3306/orders"))
    target 'db1:3306/orders' is no database; write mariadb://USER@db1:3306/orders
    """
    found = _libpq(text) or _jdbc(text) or _ado(text)
    if found is not None:
        what, meant = found
        return UsageError(f"{what} is no target; write {meant}")
    named = f"target {text!r} is no database" if re.fullmatch(r"[\w./:\[\]-]{1,255}", text) else "target is no database"
    place = None if "://" in text else _PLACE.fullmatch(text)
    if place is not None and (place["port"] or place["user"]):
        host, port, user, database = (place[name] or "" for name in ("host", "port", "user", "database"))
        kind = _KINDS.get(port)
        meant = _url(kind or "postgresql", host, port, user, database)
        return UsageError(f"{named}; write {meant}" if kind else f"{named}; write its kind, such as {meant}")
    if text.startswith("//"):
        return UsageError(f"{named}; write {_kinds('DATABASE')}")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        return UsageError(f"target {text.partition(':')[0]}:... is no database; write {_kinds('DATABASE')}")
    if text.endswith((".duckdb", ".ddb")):
        return UsageError(f"{named}; write duckdb:{text}")
    if text.endswith((".cnf", ".ini")) or text.startswith("service="):
        return UsageError(f"{named}; files of options and services are not read; write {_kinds('DATABASE')}")
    if "/" in text or text in (".", ".."):
        return UsageError(f"{named}; write embedded:{text} for a server of Assay's own there, or {_kinds('DATABASE')}")
    shown = text if re.fullmatch(r"[\w-]{1,63}", text) else "DATABASE"
    return UsageError(f"{named}; write {_kinds(shown)}")


def _kinds(database: str) -> str:
    servers = [f"{kind}://USER@HOST/{database}" for kind in _SERVERS]
    return f"{', '.join(servers)}, {SPELT['duckdb']} or {SPELT['embedded']}"


def _url(kind: str, host: str, port: str, user: str, database: str) -> str:
    """A target of a server; what is not known stands in capitals."""
    where = f"{host or 'HOST'}:{port}" if port else host or "HOST"
    return f"{kind}://{user or 'USER'}@{where}/{database or 'DATABASE'}"


def _libpq(text: str) -> tuple[str, str] | None:
    """A string of libpq ("Connection Strings", PostgreSQL documentation, 34.1.1)."""
    pairs, at = {}, 0
    while match := _PAIRS.match(text, at):
        pairs[match["key"]] = match["quoted"] if match["quoted"] is not None else match["plain"]
        at = match.end()
    if at < len(text.rstrip()) or not pairs or not _LIBPQ & pairs.keys():
        return None
    if "service" in pairs:
        return "a service of libpq", f"what stands in pg_service.conf: {_url('postgresql', '', '', '', '')}"
    host = pairs.get("host") or pairs.get("hostaddr") or "localhost"
    found = _url("postgresql", host, pairs.get("port", ""), pairs.get("user", ""), pairs.get("dbname", ""))
    return "a connection string of libpq", found


def _jdbc(text: str) -> tuple[str, str] | None:
    scheme, _, rest = text.partition(":")
    if scheme.lower() != "jdbc":
        return None
    name = rest.partition(":")[0].lower()
    if name == "duckdb":
        return "a JDBC URL", f"duckdb:{rest.partition(':')[2] or 'PATH'}"
    kind = _JDBC.get(name)
    if kind is None:
        return "a JDBC URL", _kinds("DATABASE")
    server, *settings = rest.split(";")
    try:
        url = urlsplit(server)
        host, port = url.hostname or "", str(url.port or "")
    except ValueError:
        return "a JDBC URL", _kinds("DATABASE")
    told = {key.lower(): value for key, value in parse_qsl(url.query)} | _settings(settings)
    user, database = _first(told, _USERS), url.path.strip("/") or _first(told, _DATABASES)
    return "a JDBC URL", _url(kind, host, port, user, database)


def _ado(text: str) -> tuple[str, str] | None:
    """A string of ADO.NET: SQL Server's has a port behind a comma, those of Npgsql and MySQL a key for it."""
    told = _settings(text.split(";")) if "=" in text and ";" in text else {}
    server = _first(told, _HOSTS)
    if not server:
        return None
    host, _, port = server.removeprefix("tcp:").partition(",")
    port = port.strip() or told.get("port", "")
    is_postgresql = "host" in told or port == "5432"
    kind = "mariadb" if port == "3306" else "postgresql" if is_postgresql else "mssql"
    what = "a connection string of ADO.NET"
    return what, _url(kind, host.strip().partition("\\")[0], port, _first(told, _USERS), _first(told, _DATABASES))


def _settings(items: list[str]) -> dict[str, str]:
    pairs = (item.partition("=") for item in items if "=" in item)
    return {" ".join(key.lower().split()): value.strip() for key, _, value in pairs}


def _first(told: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((told[key] for key in keys if told.get(key)), "")
