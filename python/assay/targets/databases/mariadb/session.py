"""A session on MariaDB or MySQL, and what their errors mean."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from assay.base.errors import AssayError, IoFailed, NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.common.answers import ROWS_ONCE, UNLIKE_ANSWERS, bounded, not_understood, said
from assay.targets.databases.common.connection import ConnectionLost, Row, shut
from assay.targets.databases.common.spec import DatabaseSpec

_DENIED = frozenset({1044, 1142, 1143, 1227, 1290, 1370, 1419, 1792, 1836})
_LOST = frozenset({0, 1053, 1077, 1927, 2006, 2013, 2014, 2055})
_FULL = frozenset({1021, 1114})


class MariadbSession:
    """One connection; errors come as those of `assay.base.errors`."""

    def __init__(
        self,
        spec: DatabaseSpec,
        connection: pymysql.connections.Connection[Any],
        new_session: Callable[[], MariadbSession],
    ) -> None:
        self._spec = spec
        self._connection = connection
        self._new_session = new_session
        self._thread: int = connection.thread_id()  # type: ignore[no-untyped-call] # the stubs leave it out

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        with self._errors():
            cursor = self._connection.cursor(SSCursor)
            try:
                cursor.execute(sql, tuple(params) or None)
                chunks = iter(lambda: list(cursor.fetchmany(ROWS_ONCE)), [])
                return bounded(self._spec.display, chunks, self.abort)
            finally:
                _leave(cursor)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except pymysql.Error as error:
            raise statement_error(self._spec, error) from error
        except UNLIKE_ANSWERS as error:
            raise not_understood(self._spec.display, error) from error

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement that gives no rows."""
        with self._errors(), self._connection.cursor() as cursor:
            cursor.execute(sql, tuple(params) or None)

    def execute_together(self, statements: Sequence[tuple[str, Sequence[object]]]) -> None:
        """Run statements in one transaction."""
        with self._errors():
            self._connection.begin()
            with self._connection.cursor() as cursor:
                for sql, params in statements:
                    cursor.execute(sql, tuple(params) or None)
            self._connection.commit()

    def cancel(self) -> None:
        """End the statement that runs in this session."""
        with contextlib.suppress(AssayError), contextlib.closing(self._new_session()) as other:
            other.execute(f"KILL QUERY {self._thread}")

    def abort(self) -> None:
        """End the connection under a statement that nothing else ends."""
        # The driver has no other way to its socket.
        held = getattr(self._connection, "_sock", None)
        if held is not None:
            shut(held.fileno())

    def close(self) -> None:
        """End the session."""
        # The server may be gone, or have ended it.
        with contextlib.suppress(pymysql.Error):
            self._connection.close()


def _leave(cursor: SSCursor) -> None:
    """Close a cursor; one whose answer cannot be read to its end has nothing left to close."""
    try:
        cursor.close()
    except (pymysql.Error, *UNLIKE_ANSWERS):
        # The driver would read on when it frees them.
        if (result := getattr(cursor, "_result", None)) is not None:
            result.unbuffered_active = False
        cursor.connection = None  # type: ignore[assignment] # as the driver's own `close` does


def _said(spec: DatabaseSpec, error: Exception) -> str:
    text = said(str(error.args[1] if len(error.args) > 1 else error)).strip().partition("\n")[0]
    return spec.password.removed_from(text) if spec.password is not None else text


def _code(error: Exception) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else -1


def connect_error(spec: DatabaseSpec, error: Exception) -> AssayError:
    """Error of a connection that did not come about."""
    code, said = _code(error), _said(spec, error)
    where = spec.socket or f"{spec.host}:{spec.port}"
    if code in (1045, 1698):
        return UsageError(
            f"{spec.display}: the password of user {spec.user!r} is wrong or missing, or there is no such user here; "
            "check URL and MYSQL_PWD"
        )
    if code == 1049:
        return UsageError(f"{spec.display}: there is no database {spec.database!r} on the server; create it first")
    if code == 1044:
        return UsageError(
            f"{spec.display}: user {spec.user!r} may not use database {spec.database!r}, if there is one; create it, "
            f"then GRANT ALL ON {spec.database}.* TO {spec.user}"
        )
    if code in (1040, 1203):
        return OpenFailed(
            f"{spec.display}: the server has no connection left; end some sessions, or raise max_connections"
        )
    if code == 2026 or isinstance(getattr(error, "original_exception", None), ssl.SSLError):
        return NotSupported(f"{spec.display}: TLS as asked (sslmode={spec.tls}) is not to be had: {said}")
    cause = getattr(error, "original_exception", error)
    if isinstance(cause, socket.gaierror):
        return OpenFailed(f"{spec.display}: there is no host {spec.host!r}; check its name")
    if isinstance(cause, OSError):
        why = cause.strerror or ("timed out" if isinstance(cause, TimeoutError) else str(cause))
        return OpenFailed(
            f"{spec.display}: no server answers at {where} ({why}); check address and port, and that it runs"
        )
    return OpenFailed(f"{spec.display}: cannot be connected to: {said}; check the server and its log")


def statement_error(spec: DatabaseSpec, error: Exception) -> AssayError:
    """Error of a statement that failed."""
    code, said = _code(error), _said(spec, error)
    if code in _LOST or isinstance(error, pymysql.InterfaceError):
        return ConnectionLost(f"{spec.display}: the connection was lost ({said}); check the server and its log")
    if code in _FULL:
        return OutOfSpace(f"{spec.display}: no space is left under the server ({said}); free some, or load less")
    if code in _DENIED:
        return RefusedTarget(f"{spec.display}: user {spec.user!r} may not do this: {said}")
    return IoFailed(f"{spec.display}: the server refused a statement: {said}")
