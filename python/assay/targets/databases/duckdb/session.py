"""A session on DuckDB, which runs in this process, and what its errors mean."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from assay.base.errors import AssayError, IoFailed, NotSupported, OpenFailed, OutOfMemory, OutOfSpace, RefusedTarget
from assay.base.paths import printable
from assay.targets.databases.common.connection import ConnectionLost, Row
from assay.targets.databases.common.spec import DatabaseSpec


class DuckdbSession:
    """One connection within this process; errors come as those of `assay.base.errors`.

    A thread at a time may use it; `cancel` and `close` may be called from any thread at any time.
    """

    def __init__(self, spec: DatabaseSpec, connection: duckdb.DuckDBPyConnection) -> None:
        self._spec = spec
        self._connection = connection
        self._lock = threading.RLock()

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        with self._lock, self._errors():
            return self._run(sql, params).fetchall()

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run statements that give no rows."""
        with self._lock, self._errors():
            self._run(sql, params)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: all statements within are committed together, or none."""
        with self._lock:
            self.execute("BEGIN")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def append(self, table: str, rows: Any) -> None:
        """Add rows to a table: an Arrow table or batch whose columns have the table's order."""
        with self._lock, self._errors():
            self._connection.register("assay_rows", rows)
            try:
                self._connection.execute(f"INSERT INTO {table} SELECT * FROM assay_rows")
            finally:
                self._connection.unregister("assay_rows")

    def cancel(self) -> None:
        """End the statement that runs in this session."""
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def abort(self) -> None:
        """End what runs in this session: nothing ends more of it."""
        self.cancel()

    def close(self) -> None:
        """End the session, and the statement that runs in it."""
        self.cancel()
        with self._lock:
            self._connection.close()

    def _run(self, sql: str, params: Sequence[object]) -> duckdb.DuckDBPyConnection:
        if not params:
            return self._connection.execute(sql)
        return self._connection.execute(re.sub(r"%([s%])", lambda mark: "?%"[mark[1] == "%"], sql), list(params))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            self._roll_back()
            raise statement_error(self._spec, error) from error

    def _roll_back(self) -> None:
        # Most statements are transactions of their own, and leave none behind.
        with contextlib.suppress(duckdb.Error):
            self._connection.rollback()


def _line(error: duckdb.Error) -> str:
    return str(error).strip().partition("\n")[0]


def open_error(spec: DatabaseSpec, path: Path, error: duckdb.Error) -> AssayError:
    """Error of a file that DuckDB does not open."""
    text, shown = str(error), printable(path)
    if "created with a newer version" in text:
        return NotSupported(
            f"{spec.display}: {shown} was written by a newer DuckDB than {duckdb.__version__}, which runs here; update"
            " the package duckdb, or give another file"
        )
    if "Could not set lock" in text:
        return RefusedTarget(f"{spec.display}: another process has {shown} open; end it, or give another file")
    if "not a valid DuckDB database" in text:
        return RefusedTarget(f"{spec.display}: {shown} is no DuckDB file; give a file that does not exist yet")
    if "No space left on device" in text:
        return OutOfSpace(f"{spec.display}: no space is left for {shown}; free some")
    if "Corrupt" in text:
        return OpenFailed(
            f"{spec.display}: {shown} is damaged ({_line(error)}); if it is Assay's, delete it and its log, then load "
            "again, or restore what is saved"
        )
    return OpenFailed(f"{spec.display}: DuckDB does not open {shown}: {_line(error)}; check it, or give another file")


def statement_error(spec: DatabaseSpec, error: duckdb.Error) -> AssayError:
    """Error of a statement that failed."""
    line = _line(error)
    if "No space left on device" in str(error):
        return OutOfSpace(f"{spec.display}: no space is left under the database ({line}); free some, or load less")
    if isinstance(error, duckdb.OutOfMemoryException):
        return OutOfMemory(f"{spec.display}: {line}; raise memory_limit, or give temporary files more room")
    if isinstance(error, (duckdb.ConnectionException, duckdb.FatalException)):
        return ConnectionLost(f"{spec.display}: the session is lost ({line}); open the database again")
    return IoFailed(f"{spec.display}: the server refused a statement: {line}")
