"""Databases with the tables of the workload in them, on each of the tests' servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sql_sessions import Session


@pytest.fixture(scope="module", params=["postgresql15", "postgresql18", "mariadb"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of the test module's own."""
    return str(request.getfixturevalue(request.param).fresh_database())


@pytest.fixture(scope="module")
def _loaded_once(database_url: str) -> Iterator[Session]:
    session = Session(database_url)
    session.load()
    yield session
    session.close()


@pytest.fixture
def loaded(_loaded_once: Session) -> Iterator[Session]:
    """A small consistent database and a transaction in it that is undone after the test."""
    _loaded_once.execute("START TRANSACTION")
    yield _loaded_once
    _loaded_once.execute("ROLLBACK")


@pytest.fixture
def fresh(database_url: str) -> Iterator[Session]:
    """A small consistent database, made anew for the test."""
    session = Session(database_url)
    session.load()
    yield session
    session.close()
