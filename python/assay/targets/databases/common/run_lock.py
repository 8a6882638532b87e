"""One run at a time on a database: a lock of the server's own, in a session that lives as long as the run.

The server lets go of it when the session ends, however that comes about. A session that was lost, as when the server
restarts, is opened again and takes the lock again before the next point and before anything is dropped or replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from assay.base.errors import AssayError, RefusedTarget
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.spec import DatabaseSpec

if TYPE_CHECKING:
    # Their drivers are loaded when a database is opened.
    from assay.targets.databases.mariadb.session import MariadbSession
    from assay.targets.databases.mssql.session import SqlServerSession
    from assay.targets.databases.postgresql.session import PostgresqlSession

S = TypeVar("S", bound=Session)

TRIES = 3
"""A holder that leaves between the refusal and the question who it is lets the next try through."""

IDLE_S_MAX = 31_536_000
"""Longest `wait_timeout` of MariaDB and MySQL."""


class RunLock(ABC, Generic[S]):
    """The lock of one database.

    Parameters
    ----------
    spec
        The database.
    new_session
        Connects once more, as the database's own `new_session` does.

    Attributes
    ----------
    session
        The one that has the lock, or had it last; None before and after.
    holder
        What the session calls itself, where the server shows it to those who are refused.
    """

    def __init__(self, spec: DatabaseSpec, new_session: Callable[..., S]) -> None:
        self._display = spec.display
        self._database = spec.database
        self._new_session = new_session
        digest = hashlib.sha256(f"assay run on {spec.database}".encode()).digest()
        self._number = int.from_bytes(digest[:8], "big", signed=True)
        # MariaDB takes 64 characters, SQL Server shows 32.
        self._name = f"assay {self._number:x}"
        self.session: S | None = None
        began = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        # PostgreSQL keeps 63 bytes: the end of a long host name may be cut, the rest may not.
        self.holder = f"assay, process {os.getpid()}, since {began}, on {socket.gethostname()}"

    @abstractmethod
    def _open(self) -> S:
        """Open a session for the lock, under the holder's name."""

    @abstractmethod
    def _take(self, session: S) -> bool:
        """Take the lock if it is free; for the session that has it this only asks the server once more."""

    @abstractmethod
    def _holder_of(self, session: S) -> str | None:
        """Who has the lock, as far as the server tells; None if it is free by now."""

    def hold(self) -> None:
        """Take the lock, or make sure that it is still held.

        Raises
        ------
        RefusedTarget
            Another run has it.
        AssayError
            The server cannot be asked.
        """
        if self.session is not None:
            with contextlib.suppress(AssayError):
                if self._take(self.session):
                    return
            self.release()
        self.session = self._open()
        try:
            for _ in range(TRIES):
                if self._take(self.session):
                    return
                holder = self._holder_of(self.session)
                if holder is not None:
                    raise RefusedTarget(
                        f"{self._display}: another run is at work on it ({holder}); let that end first, or name "
                        "another database"
                    )
            raise RefusedTarget(f"{self._display}: other runs come and go on it; try again when they have ended")
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others in; harmless where the lock is not held."""
        session, self.session = self.session, None
        if session is not None:
            session.close()


class PostgresqlRunLock(RunLock["PostgresqlSession"]):
    """An advisory lock in the database `postgres`: a session in the database itself would keep it from being copied.

    A user who may not connect to `postgres` has it in the database itself, and lets go of it while that is copied.
    Locks belong to a database, so that such a run and one of another user do not see each other.

    Attributes
    ----------
    is_inside
        Whether the session is in the database itself.
    """

    is_inside = False

    def _open(self) -> PostgresqlSession:
        try:
            session = self._new_session("postgres", application_name=self.holder)
            self.is_inside = self._database == "postgres"
        except AssayError:
            session = self._new_session(application_name=self.holder)
            self.is_inside = True
        # It is idle for hours, and a client that is gone must not hold it for two of them.
        for setting in ("idle_session_timeout = 0", "tcp_keepalives_idle = 60", "tcp_keepalives_interval = 10"):
            session.execute(f"SET {setting}")
        return session

    def _take(self, session: PostgresqlSession) -> bool:
        return bool(session.query("SELECT pg_try_advisory_lock(%s)", (self._number,))[0][0])

    def _holder_of(self, session: PostgresqlSession) -> str | None:
        # Keys of 64 bits are shown as two halves (objsubid 1).
        rows = session.query(
            "SELECT coalesce(nullif(a.application_name, ''), 'session ' || l.pid)"
            " FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid"
            " WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted"
            " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND l.classid = %s::bigint::oid AND l.objid = %s::bigint::oid",
            (self._number >> 32 & 0xFFFFFFFF, self._number & 0xFFFFFFFF),
        )
        return str(rows[0][0]) if rows else None


class MariadbRunLock(RunLock["MariadbSession"]):
    """A lock by name, which belongs to the server."""

    def _open(self) -> MariadbSession:
        session = self._new_session(program_name=self.holder)
        session.execute(f"SET SESSION wait_timeout = {IDLE_S_MAX}")
        return session

    def _take(self, session: MariadbSession) -> bool:
        return bool(session.query("SELECT GET_LOCK(%s, 0)", (self._name,))[0][0])

    def _holder_of(self, session: MariadbSession) -> str | None:
        (number,) = session.query("SELECT IS_USED_LOCK(%s)", (self._name,))[0]
        if number is None:
            return None
        asked = (
            "SELECT attr_value FROM performance_schema.session_connect_attrs"
            " WHERE processlist_id = %s AND attr_name = 'program_name'",
            "SELECT concat('connection of ', user, ' from ', host) FROM information_schema.processlist WHERE id = %s",
        )
        for sql in asked:
            with contextlib.suppress(AssayError):
                for row in session.query(sql, (number,)):
                    return str(row[0])
        return f"connection {number}"


class SqlServerRunLock(RunLock["SqlServerSession"]):
    """An application lock in `master`: a session in the database itself would be ended by a restore."""

    def _open(self) -> SqlServerSession:
        return self._new_session("master", application_name=self.holder)

    def _take(self, session: SqlServerSession) -> bool:
        rows = session.query(
            "DECLARE @found int; EXECUTE @found = sp_getapplock @Resource = %s, @LockMode = 'Exclusive',"
            " @LockOwner = 'Session', @LockTimeout = 0, @DbPrincipal = 'public'; SELECT @found",
            (self._name,),
        )
        return int(rows[0][0]) >= 0

    def _holder_of(self, session: SqlServerSession) -> str | None:
        try:
            rows = session.query(
                "SELECT s.program_name FROM sys.dm_tran_locks AS l"
                " JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id"
                " WHERE l.resource_type = 'APPLICATION' AND l.request_status = 'GRANT'"
                " AND charindex('[' + %s + ']', l.resource_description) > 0",
                (self._name,),
            )
        except AssayError:
            return "VIEW SERVER STATE would show which"
        return str(rows[0][0]) if rows else None
