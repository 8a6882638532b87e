"""Databases in folders, for the tests of the embedded PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from assay.targets.databases.embedded.database import EmbeddedPostgresql

SMALL = "set.shared_buffers=32MB&set.max_wal_size=128MB&set.min_wal_size=32MB"

Embedded = Callable[..., EmbeddedPostgresql]


def fill(database: EmbeddedPostgresql, rows: int = 1000) -> None:
    """Make a table with rows in it."""
    database.execute(f"CREATE TABLE filled AS SELECT g, repeat('x', 100) FROM generate_series(1, {rows}) AS g")


def rows_of(database: EmbeddedPostgresql) -> int:
    """How many rows the table has."""
    return int(database.query("SELECT count(*) FROM filled")[0][0])
