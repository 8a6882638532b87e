"""How a database is connected to, and what a session on it can do, whatever its kind."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from assay.base.errors import OpenFailed
from assay.base.secrets import Secret
from assay.targets.databases.common.facts import CoreConnection
from assay.targets.databases.common.spec import DatabaseSpec, TlsMode

Dialect = Literal["postgresql", "mariadb", "mysql", "mssql", "duckdb", "spark"]
Row = tuple[Any, ...]
Progress = Callable[[int, int], None]
"""Told how many steps are done, and of how many."""

APPLICATION_NAME = "assay"
"""What sessions of Assay call themselves, where a server shows it; those of the load begin with it too."""


ServerKind = Literal["postgresql", "mariadb", "mssql"]


@dataclass(frozen=True, kw_only=True)
class ConnectionPlan:
    """What a driver needs to connect; the password shows only in `core_plan`.

    Attributes
    ----------
    socket
        Full path of the server's socket; then `host` is None.
    tls
        In the words of libpq's `sslmode`.
    tls_ca
        File with the certificates that are trusted.
    """

    kind: ServerKind
    host: str | None
    port: int
    socket: str | None
    user: str
    password: Secret | None
    database: str
    tls: TlsMode
    tls_ca: str | None

    @classmethod
    def of(cls, kind: ServerKind, spec: DatabaseSpec, password: Secret | None) -> Self:
        """The connection that a database's URL names."""
        return cls(
            kind=kind,
            host=spec.host,
            port=spec.port,
            socket=spec.socket,
            user=spec.user,
            password=password,
            database=spec.database,
            tls=spec.tls,
            tls_ca=spec.tls_ca,
        )

    def core_plan(self) -> CoreConnection:
        """Return the connection as the core takes it, the password in the clear: never print or keep it."""
        return {
            "kind": self.kind,
            "host": self.host,
            "port": self.port,
            "socket": self.socket,
            "user": self.user,
            "password": self.password.reveal() if self.password is not None else None,
            "database": self.database,
            "tls": self.tls,
            "tls_ca": self.tls_ca,
        }


class Session(Protocol):
    """One connection for statements of administration, each committed at once. Values are marked by `%s`."""

    def query(self, sql: str, params: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement."""
        ...

    def execute(self, sql: str, params: Sequence[object] = ()) -> None:
        """Run a statement that gives no rows."""
        ...

    def cancel(self) -> None:
        """End the statement that runs in this session, from another thread."""
        ...

    def abort(self) -> None:
        """End the connection under a statement that nothing else ends, from another thread."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


def shut(descriptor: int) -> None:
    """Shut a socket that another thread waits on, which so learns that nothing more comes."""
    with suppress(OSError, ValueError), socket.socket(fileno=os.dup(descriptor)) as held:
        held.shutdown(socket.SHUT_RDWR)


class ConnectionLost(OpenFailed):
    """A session ended, because the server did or closed it; a new one may be opened."""
