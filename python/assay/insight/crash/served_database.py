"""A server of its own and its load, as the program that is tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

from assay.base.errors import AssayError, IoFailed
from assay.insight.crash.own_server import OwnServer, ServerNotStarted
from assay.insight.crash.subject import CrashFinding
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.table_set import TableSet


class DatabaseLoad(Protocol):
    """What clients do on a server, and what must hold afterwards.

    Attributes
    ----------
    title
        For people; empty: it is the usual one.
    tables
        Its tables; without names, all that are there are checked.
    """

    title: str
    tables: TableSet

    def prepare(self, server: OwnServer) -> None:
        """Make the tables on a server that runs."""
        ...

    def run(self, server: OwnServer, told: Callable[[str], None]) -> None:
        """Run the clients; `told` is called when a client was told something."""
        ...

    def commits(self, told: Sequence[str]) -> int:
        """How many commits so many acknowledgements tell of."""
        ...

    def wrong(self, server: OwnServer, session: Session, told: Sequence[str]) -> CrashFinding | None:
        """What does not hold after a crash before which clients had been told this."""
        ...


class ServedDatabase:
    """A server and its load."""

    def __init__(self, server: OwnServer, load: DatabaseLoad, *, checks_pages: bool) -> None:
        """Know both.

        Parameters
        ----------
        checks_pages
            Whether all pages and indexes are checked, beside what the load asks.
        """
        self._server, self._load, self._checks_pages = server, load, checks_pages
        self.title = ", ".join(word for word in (server.title, load.title) if word)

    def prepare(self, place: Path) -> None:
        """Initialise the server and make the tables."""
        server = self._server
        server.initialise(place)
        try:
            with server.running(place, "prepare", ends_cleanly=True):
                with closing(server.database(self._load.tables).new_session()) as session:
                    server.make_ready(session)
                self._load.prepare(server)
        except ServerNotStarted as error:
            raise IoFailed(f"the load: {error}") from None

    def load(self, place: Path, told: Callable[[str], None]) -> None:
        """Run the clients to their end."""
        try:
            with self._server.running(place, "load"):
                self._load.run(self._server, told)
        except ServerNotStarted as error:
            raise IoFailed(f"the load: {error}") from None

    def commits(self, told: Sequence[str]) -> int:
        """As the load counts them."""
        return self._load.commits(told)

    def recover(self, place: Path, told: Sequence[str]) -> None:
        """Start the server, which recovers and syncs what it writes, and kill it."""
        del told
        with suppress(ServerNotStarted), self._server.running(place, "recover"):
            pass

    def check(self, place: Path, told: Sequence[str]) -> CrashFinding | None:
        """Start the server, which recovers, and ask for everything that must hold."""
        server = self._server
        reads_files = self._checks_pages and server.checks_files()
        try:
            with server.running(place, "check", ends_cleanly=reads_files):
                found = self._asked(told)
        except ServerNotStarted as error:
            return CrashFinding(kind="start", message=str(error))
        except AssayError as error:
            return CrashFinding(kind="corrupt", message=server.why_ended() or str(error))
        if found is None and reads_files and (damaged := server.damaged_file(place)):
            return CrashFinding(kind="corrupt", message=damaged)
        return found

    def _asked(self, told: Sequence[str]) -> CrashFinding | None:
        database = self._server.database(self._load.tables)
        with closing(database), closing(database.new_session()) as session:
            found = self._load.wrong(self._server, session, told)
            if found is not None or not self._checks_pages:
                return found
            tables = self._load.tables.names or database.tables()
            damaged = self._server.damage(session, tables)
            return CrashFinding(kind="corrupt", message=damaged) if damaged else None

    def close(self) -> None:
        """Remove what lies outside the volume."""
        self._server.close()
