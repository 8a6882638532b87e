"""A session on SQL Server, and what its errors mean. Not verified on SQL Server."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from assay.base.errors import AssayError, IoFailed, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases.common.answers import ROWS_ONCE, UNLIKE_ANSWERS, bounded, not_understood, said
from assay.targets.databases.common.connection import ConnectionLost, Row
from assay.targets.databases.common.spec import DatabaseSpec

_DENIED = frozenset({229, 230, 262, 297, 300, 916, 1088, 2760, 3906, 3908, 15247})
_FULL = frozenset({1101, 1105, 9002, 3257})
_MISSING = frozenset({208, 40515, 33557097})
"""No such table, no such way to another database; and Babelfish's number for all that SQL Server does not know."""
_LOST = frozenset({20003, 20004, 20006, 20017, 20047, 10054, 6005, 596})
_LIBRARY = re.compile(r"\s*DB-Lib error message (\d+)")
"""How a text begins that FreeTDS gives by itself; one of the server's begins with what the server said."""

CLOSE_S = 5.0
"""How long the end of a session waits for a statement that another thread runs in it."""


class NotOffered(IoFailed):
    """A statement asks for what the server does not have."""


class SqlServerSession:
    """One connection; errors come as those of `assay.base.errors`."""

    def __init__(
        self, spec: DatabaseSpec, driver: ModuleType, connection: Any, another: Callable[[], SqlServerSession]
    ) -> None:
        self._spec = spec
        self._driver = driver
        self._connection = connection
        self._another = another
        self._at_work = threading.Lock()
        """Held by the thread that runs a statement: FreeTDS aborts the process if another closes it meanwhile."""
        self._number = int(self.query("SELECT @@SPID")[0][0])

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        with self._at_work:
            try:
                with self._connection.cursor() as cursor:
                    yield cursor
            except self._driver.Error as error:
                raise statement_error(self._spec, error) from error
            except UNLIKE_ANSWERS as error:
                raise not_understood(self._spec.display, error) from error

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        with self._cursor() as cursor:
            _run(cursor, sql, params)
            chunks = iter(lambda: [tuple(row) for row in cursor.fetchmany(ROWS_ONCE)], [])
            return bounded(self._spec.display, chunks, self._give_up)

    def _give_up(self) -> None:
        """End the connection while rows of it still come; FreeTDS would read them to their end."""
        with contextlib.suppress(self._driver.Error):
            self._connection.close()

    def column(self, sql: str, params: Sequence[object] = (), *, name: str) -> list[object]:
        """Return one column of a statement's rows, by its name."""
        with self._cursor() as cursor:
            _run(cursor, sql, params)
            place = [description[0] for description in cursor.description].index(name)
            return [row[place] for row in cursor.fetchall()]

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement; rows and messages it gives are read to their end, for BACKUP works while they come."""
        with self._cursor() as cursor:
            _run(cursor, sql, params)
            while cursor.nextset():
                pass

    def cancel(self) -> None:
        """End the session by KILL from another one; without that right (ALTER ANY CONNECTION) the statement ends first.

        A session without a statement is left alone.
        """
        if self._at_work.locked():
            with contextlib.suppress(AssayError), contextlib.closing(self._another()) as other:
                other.execute(f"KILL {self._number}")

    def abort(self) -> None:
        """End what runs in this session: nothing ends more of it."""
        self.cancel()

    def close(self) -> None:
        """End the session, unless a statement goes on in it for longer than `CLOSE_S`."""
        if self._at_work.acquire(timeout=CLOSE_S):
            try:
                with contextlib.suppress(self._driver.Error):
                    self._connection.close()
            finally:
                self._at_work.release()


def _run(cursor: Any, sql: str, params: Sequence[object]) -> None:
    """Run a statement; without parameters the driver is given none, or it takes `%s` in texts for places of some."""
    if params:
        cursor.execute(sql, tuple(params))
    else:
        cursor.execute(sql)


def _code_and_text(spec: DatabaseSpec, error: Exception) -> tuple[int, str]:
    """Number and first line of what the server or FreeTDS says.

    The number that comes with a text of FreeTDS alone may be an earlier connection's: the text has the right one.
    """
    arguments = error.args[0] if error.args and isinstance(error.args[0], tuple) else error.args
    number = arguments[0] if arguments and isinstance(arguments[0], int) else -1
    raw = arguments[1] if len(arguments) > 1 else str(error)
    text = said(raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw))
    if of_library := _LIBRARY.match(text):
        number = int(of_library[1])
    line = re.sub(r"DB-Lib error message .*", "", text, flags=re.DOTALL).strip().partition("\n")[0]
    line = line or text.strip().partition("\n")[0]
    return number, spec.password.removed_from(line) if spec.password is not None else line


def connect_error(spec: DatabaseSpec, error: Exception) -> AssayError:
    """Error of a connection that did not come about."""
    number, line = _code_and_text(spec, error)
    if number == 18456:
        return UsageError(
            f"{spec.display}: the password of user {spec.user!r} is wrong, or there is no such user; check URL and "
            "MSSQL_PASSWORD"
        )
    if number in (4060, 911):
        return UsageError(
            f"{spec.display}: there is no database {spec.database!r} on the server that user {spec.user!r} may use; "
            "create it first"
        )
    if number in (20009, 20002, 20012, 20013, 20003):
        return OpenFailed(
            f"{spec.display}: no server answers at {spec.host}:{spec.port}, or not as asked (sslmode={spec.tls}); "
            "check address and port, and that it runs"
        )
    return OpenFailed(f"{spec.display}: cannot be connected to: {line}; check the server and its log")


def statement_error(spec: DatabaseSpec, error: Exception) -> AssayError:
    """Error of a statement that failed."""
    number, line = _code_and_text(spec, error)
    if number in _LOST or type(error).__name__ == "InterfaceError":
        return ConnectionLost(f"{spec.display}: the connection was lost ({line}); check the server and its log")
    if number in _FULL:
        return OutOfSpace(f"{spec.display}: no space is left under the server ({line}); free some, or load less")
    if number in _DENIED:
        return RefusedTarget(f"{spec.display}: user {spec.user!r} may not do this: {line}")
    kind = NotOffered if number in _MISSING else IoFailed
    return kind(f"{spec.display}: the server refused a statement: {line}")
