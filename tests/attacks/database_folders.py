"""Embedded databases to attack: made quickly, without a workload in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.targets.databases import open_database, parse_database
from assay.targets.databases.embedded.database import EmbeddedPostgresql
from assay.workloads.tpcc.tables import TABLES

SMALL = "set.shared_buffers=32MB&set.max_wal_size=128MB&set.min_wal_size=32MB"
STRANGER = 12345
"""A user of no name who attacks."""


@contextmanager
def opened(folder: Path, options: str = "") -> Iterator[EmbeddedPostgresql]:
    """The database of a folder, running."""
    database = open_database(parse_database(f"embedded:{folder}?{SMALL}{options}"), TABLES)
    assert isinstance(database, EmbeddedPostgresql)
    try:
        database.open()
        yield database
    finally:
        database.close()


def make(folder: Path, options: str = "") -> Path:
    """A database of Assay in a folder, stopped; gives the folder."""
    with opened(folder, options) as database:
        database.execute("CREATE TABLE kept AS SELECT 1 AS one")
    return folder


def is_whole(folder: Path) -> bool:
    """Whether the database still starts and holds what it held."""
    with opened(folder) as database:
        return database.query("SELECT one FROM kept") == [(1,)]


def contents(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Owner, group, mode and bytes of everything in a folder, and of the folder."""
    return {
        str(path): (status.st_uid, status.st_gid, status.st_mode, path.read_bytes() if path.is_file() else b"")
        for path in (folder, *sorted(folder.rglob("*")))
        for status in (path.lstat(),)
    }


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, whom others attack")
