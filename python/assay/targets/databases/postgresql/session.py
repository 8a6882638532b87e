"""A session on PostgreSQL, and what its errors mean."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Mapping, Sequence

import psycopg

from assay.base.errors import AssayError, IoFailed, NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.common.answers import ROWS_ONCE, UNLIKE_ANSWERS, bounded, chunks_of, not_understood, said
from assay.targets.databases.common.connection import ConnectionLost, Row, shut
from assay.targets.databases.common.spec import DatabaseSpec

CONNECT_TIMEOUT_S = 10

# What the driver warns of is an error of ours, in one line.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CHUNKS = psycopg.pq.version() >= 170000
"""Whether libpq gives many rows at once before it has all of them."""


class PostgresqlSession:
    """One connection; errors come as those of `assay.base.errors`."""

    def __init__(self, spec: DatabaseSpec, connection: psycopg.Connection[Row]) -> None:
        self._spec = spec
        self._connection = connection

    @property
    def driver(self) -> psycopg.Connection[Row]:
        """The driver's connection."""
        return self._connection

    def query(self, sql: str, params: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        try:
            with self._connection.cursor() as cursor:
                rows = cursor.stream(sql.encode(), params or None, size=ROWS_ONCE if _CHUNKS else 1)
                # Closed before the stream is: that would ask the server to cancel, and read on.
                return bounded(self._spec.display, chunks_of(rows), self._connection.close)
        except psycopg.Error as error:
            raise statement_error(self._spec, error) from error
        except UNLIKE_ANSWERS as error:
            raise not_understood(self._spec.display, error) from error

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement that gives no rows."""
        try:
            self._connection.execute(sql.encode(), params or None)
        except psycopg.Error as error:
            raise statement_error(self._spec, error) from error

    def execute_together(self, statements: Sequence[str]) -> None:
        """Run statements in one transaction."""
        try:
            with self._connection.transaction():
                for statement in statements:
                    self._connection.execute(statement.encode())
        except psycopg.Error as error:
            raise statement_error(self._spec, error) from error

    def cancel(self) -> None:
        """End the statement that runs in this session."""
        try:
            self._connection.cancel_safe(timeout=CONNECT_TIMEOUT_S)
        except psycopg.Error:
            self.close()

    def abort(self) -> None:
        """End the connection under a statement that nothing else ends."""
        with contextlib.suppress(psycopg.Error):
            shut(self._connection.fileno())

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def _line(spec: DatabaseSpec, error: psycopg.Error) -> str:
    """What the server or the driver says, its first line, without a password."""
    text = said(error.diag.message_primary or str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    # libpq lists each address it tried; the last line is the server's own word where it got that far.
    line = next((line for line in lines if "FATAL" in line), lines[0])
    line = re.sub(r"^(?:connection (?:failed|is bad): )?(?:connection to server .*? failed: )?", "", line)
    line = re.sub(r"^(?:FATAL|ERROR):\s*", "", line)
    return spec.password.removed_from(line) if spec.password is not None else line


_CONNECT_ERRORS: Sequence[tuple[str, type[AssayError], str]] = (
    (
        r"password authentication failed",
        UsageError,
        "the password of user {user!r} is wrong, or there is no such user; check URL, PGPASSWORD or the password file",
    ),
    (
        r"no password supplied",
        UsageError,
        "the server wants a password of user {user!r}; give it in PGPASSWORD or the password file of libpq",
    ),
    (
        r"(peer|ident) authentication failed",
        UsageError,
        "the server lets only the system's user {user!r} in here; run as that user, or connect by host and password",
    ),
    (r"database .* does not exist", UsageError, "there is no database {database!r} on the server; create it first"),
    (r"role .* does not exist", UsageError, "there is no user {user!r} on the server; create it or name another"),
    (
        r"permission denied for database",
        RefusedTarget,
        "user {user!r} may not connect ({line}); GRANT CONNECT ON DATABASE to that user",
    ),
    (
        r"no pg_hba.conf entry",
        UsageError,
        "pg_hba.conf lets user {user!r} not in from here this way; add a line there, or change sslmode",
    ),
    (
        r"does not support SSL|certificate verify failed|root certificate|sslmode|server certificate",
        NotSupported,
        "TLS as asked (sslmode={tls}) is not to be had: {line}",
    ),
    (
        r"too many clients|remaining connection slots|too many connections",
        OpenFailed,
        "the server has no connection left; end some sessions, or raise max_connections",
    ),
    (
        r"could not translate host name|Name or service not known|failed to resolve host",
        OpenFailed,
        "there is no host {host!r}; check its name",
    ),
    (
        r"Connection refused|No such file or directory|timeout|timed out|No route|unreachable",
        OpenFailed,
        "no server answers at {where} ({line}); check address and port, and that it runs",
    ),
)


def connect_error(spec: DatabaseSpec, error: psycopg.Error) -> AssayError:
    """Error of a connection that did not come about."""
    line = _line(spec, error)
    words: Mapping[str, object] = {
        "user": spec.user,
        "database": spec.database,
        "tls": spec.tls,
        "host": spec.host,
        "where": spec.socket or spec.directory or f"{spec.host}:{spec.port}",
        "line": line,
    }
    for pattern, kind, text in _CONNECT_ERRORS:
        if re.search(pattern, said(str(error)), re.IGNORECASE):
            return kind(f"{spec.display}: {text.format(**words)}")
    return OpenFailed(f"{spec.display}: cannot be connected to: {line}; check the server and its log")


def statement_error(spec: DatabaseSpec, error: psycopg.Error) -> AssayError:
    """Error of a statement that failed."""
    line = _line(spec, error)
    state = error.sqlstate or ""
    if state in ("57P01", "57P02", "57P03") or (isinstance(error, psycopg.OperationalError) and not state):
        return ConnectionLost(f"{spec.display}: the connection was lost ({line}); check the server and its log")
    if state == "53100":
        return OutOfSpace(f"{spec.display}: no space is left under the server ({line}); free some, or load less")
    if state in ("42501", "25006"):
        return RefusedTarget(f"{spec.display}: user {spec.user!r} may not do this: {line}")
    return IoFailed(f"{spec.display}: the server refused a statement: {line}")
