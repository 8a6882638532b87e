"""Session-scoped servers; a test is skipped where the programs of one are missing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.targets.databases.programs import shipped_programs
from servers.mariadb import MariadbServer
from servers.mssql import VARIABLE, MssqlServer
from servers.postgresql import PostgresqlServer
from servers.process import folder_of_files

DEBIAN_POSTGRESQL = Path("/usr/lib/postgresql")


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
