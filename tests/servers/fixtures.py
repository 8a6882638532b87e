"""Session-scoped servers; a test is skipped where the programs of one are missing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.base.errors import AssayError
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.embedded.programs import shipped_programs
from assay.workloads.tpcc.tables import TABLES
from servers.mariadb import MariadbServer
from servers.mssql import VARIABLE, MssqlServer
from servers.postgresql import PostgresqlServer
from servers.process import ServerProcess, folder_of_files

DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")

Connect = Callable[[str], Database]


@pytest.fixture(scope="session")
def postgresql15() -> Iterator[PostgresqlServer]:
    """The distribution's PostgreSQL: 15 on Debian 12, and where there are several."""
    found = sorted(DEBIAN_POSTGRESQL.glob("*/bin/postgres"), key=lambda path: path.parts[-3] != "15")
    if not found:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    yield from _postgresql(found[0].parent)


@pytest.fixture(scope="session")
def postgresql18() -> Iterator[PostgresqlServer]:
    """PostgreSQL 18, of which the embedded one is made."""
    yield from _postgresql(shipped_programs())


def _postgresql(programs: Path) -> Iterator[PostgresqlServer]:
    with folder_of_files("assay-pg-") as folder:
        server = PostgresqlServer(folder, programs)
        try:
            server.start()
            yield server
        finally:
            server.stop()
            if server.programs.copy is not None:
                server.programs.copy.remove()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """MariaDB as the distribution has it."""
    if MariadbServer.program() is None:
        pytest.skip("MariaDB is not installed (apt-get install mariadb-server-core)")
    with tempfile.TemporaryDirectory(prefix="assay-maria-") as folder:
        server = MariadbServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def mssql() -> Iterator[MssqlServer]:
    """SQL Server, where somebody runs one for the tests."""
    url = os.environ.get(VARIABLE, "")
    if not url:
        pytest.skip(f"{VARIABLE} names no SQL Server")
    server = MssqlServer(url)
    try:
        yield server
    finally:
        server.drop_databases()


@pytest.fixture(scope="module", params=["postgresql15", "postgresql18", "mariadb"])
def server(request: pytest.FixtureRequest) -> ServerProcess:
    """Each server of the tests' own."""
    found: ServerProcess = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module", params=["postgresql15", "postgresql18"])
def postgresql(request: pytest.FixtureRequest) -> PostgresqlServer:
    """Each PostgreSQL."""
    found: PostgresqlServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["postgresql15", "mariadb"])
def mortal(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    """A server that a test may kill."""
    found: ServerProcess = request.getfixturevalue(request.param)
    yield found
    found.restart()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """The open database of a URL; all are closed afterwards."""
    made: list[Database] = []

    def make(url: str) -> Database:
        made.append(open_database(parse_database(url, {}), TABLES))
        made[-1].open()
        return made[-1]

    yield make
    for database in made:
        with contextlib.suppress(AssayError):
            database.close()
