"""Temporary files of the embedded PostgreSQL on a volume of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_database import SMALL, fill, rows_of

from assay.targets.databases import open_database, parse_databases
from assay.targets.databases.embedded.database import EmbeddedPostgresql
from assay.workloads.tpcc.tables import TABLES


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[EmbeddedPostgresql]:
    """The database of an array whose mounts are folders; a sort of it has little memory."""
    array = f"ps6100xv?volumes=data:1,temp:1&at={folder}/group"
    (spec,) = parse_databases([f"embedded+array:{array}&{SMALL}&set.work_mem=64kB"], {})
    database = open_database(spec, TABLES)
    assert isinstance(database, EmbeddedPostgresql)
    try:
        database.open()
        yield database
    finally:
        database.close()


def spills(database: EmbeddedPostgresql) -> bool:
    """Sort more than fits into memory: whether the volume of temporary files was written to."""
    temp = Path(database.storage_paths()["temp"])
    for left in temp.glob("PG_*/pgsql_tmp"):
        left.rmdir()
    database.query("SELECT count(*) FROM (SELECT g FROM generate_series(1, 50000) AS g ORDER BY md5(g::text)) AS s")
    return any(temp.glob("PG_*/pgsql_tmp"))


@pytest.fixture
def mounts(database_folder: Path) -> Path:
    """Where the file systems of an array would be."""
    made = database_folder / "group.mnt"
    for name in ("data01", "tempdb01"):
        (made / name).mkdir(parents=True)
    return made


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_what_does_not_fit_into_memory_goes_to_the_volume_of_temporary_files(mounts: Path) -> None:
    with opened(mounts.parent) as database:
        assert Path(database.storage_paths()["temp"]).is_relative_to(mounts / "tempdb01")
        assert Path(database.storage_paths()["data"]).is_relative_to(mounts / "data01")
        assert spills(database)
        fill(database)
        # It holds nothing that a saved state would miss.
        database.save()
        database.execute("DELETE FROM filled")
        database.restore()
        assert rows_of(database) == 1000
        assert spills(database)
    with opened(mounts.parent) as database:
        assert spills(database)
