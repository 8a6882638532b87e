"""A SQL Server that somebody runs for the tests."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pymssql

VARIABLE = "ASSAY_TEST_MSSQL"
"""Names the server: `mssql://USER:PASSWORD@HOST:PORT/DATABASE` of a user who may create databases."""


class MssqlServer:
    """Gives databases of the tests' own and drops them afterwards; it is neither started nor stopped.

    Attributes
    ----------
    port
        As the URL has it.
    url
        Of a database that is always there, password included.
    """

    scheme = "mssql"

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.username is not None
        self._host = parts.hostname
        self._user = unquote(parts.username)
        self._password = unquote(parts.password or "")
        self._query = f"?{parts.query}" if parts.query else ""
        self.port = parts.port or 1433
        self._numbers = itertools.count(1)
        self._databases: list[str] = []

    def fresh_database(self) -> str:
        """Make an empty database; gives its URL, password included."""
        name = f"assay_test_{os.getpid()}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        self._databases.append(name)
        return self.url_of(name)

    def url_of(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        """URL of a database, of the server's user unless another is named."""
        name = quote(self._user if user is None else user, safe="")
        secret = quote(self._password if password is None else password, safe="")
        return f"{self.scheme}://{name}:{secret}@{self._host}:{self.port}/{database}{self._query}"

    def version(self) -> str:
        """What the server says it is."""
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@version")
            return str(cursor.fetchall()[0][0])

    def execute(self, sql: str) -> None:
        """Run a statement in the database `master`."""
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(sql)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = pymssql.connect(
            server=self._host,
            port=str(self.port),
            user=self._user,
            password=self._password,
            database="master",
            autocommit=True,
            tds_version="7.4",
        )
        try:
            yield connection
        finally:
            connection.close()

    def drop_databases(self) -> None:
        """Drop what `fresh_database` made; sessions on it have ended."""
        while self._databases:
            name = self._databases.pop()
            self.execute(f"DROP DATABASE IF EXISTS {name}")
