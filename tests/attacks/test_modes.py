"""What holds bytes of a target or a database is its user's alone, whatever the umask.

The attack is another user who reads, or with a umask of 000 writes: rows in a database's files and logs, in saved
states and in what does not fit into memory, pages in files of storage, in evidence and in journals.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from database_folders import SMALL

from assay.base.paths import create_anew
from assay.record.folder import Folder
from assay.targets.databases import open_database, parse_database
from assay.targets.databases.duckdb.database import Duckdb
from assay.targets.databases.spark.folder import ChunkWriter, SparkFolder
from assay.workloads.tpcc.tables import TABLES
from assay_command import Bench
from slow_marks import mostly_slow

CONFIGURATION = {"postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"}
"""The server's own user reads them by its group, and cannot change them."""

SHOWN = {".lock", "errors.xml", "points.jsonl", "run.json", "series.parquet"}
"""What a run folder says to all who may enter it."""

TPCC = ("--warehouses", "1", "--users", "2", "--warmup", "0s", "--duration", "1s")
MAILBOXES = (
    *("--mailboxes", "10", "--mailbox-size", "3M", "--databases", "1", "--checkpoint-depth", "256K"),
    *("--iops-per-mailbox", "20", "--warmup", "0s", "--duration", "1s"),
)

COMMANDS = {
    "oltp embedded": (
        "oltp",
        "tpcc",
        f"embedded:{{}}/db?{SMALL}&wal={{}}/wal",
        "load",
        "save",
        "run",
        "restore",
        *TPCC,
    ),
    "dss duckdb": ("dss", "tpch", "duckdb:{}/db", "load", "save", "run", "restore", "--scale", "0.01"),
    "profile": ("profile", "{}/f.dat", "--size", "16M", "--block", "8K", "--warmup", "0s", "--duration", "300ms"),
    "verify": ("verify", "{}/f.dat", "--size", "32M", "--duration", "1s", "--crash-journal", "{}/journal"),
    "verify with evidence": ("verify", "faulty:{}/f.dat?torn=1e-2", "--size", "32M", "--duration", "1s"),
    "mailbox": ("mailbox", "{}/f.dat", *MAILBOXES),
}


def is_private(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode) or stat.S_IMODE(status.st_mode) in (0o700, 0o600)


def open_to_others(folder: Path) -> list[str]:
    """What other users may read or write in a folder."""
    return [
        f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in sorted(folder.rglob("*"))
        if not is_private(path.lstat())
        and not (path.name in CONFIGURATION and stat.S_IMODE(path.stat().st_mode) == 0o640)
    ]


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        assert os.umask(before) == mask


@pytest.mark.parametrize(
    ("verb", "mask"),
    mostly_slow(
        [*((verb, "000") for verb in COMMANDS), ("dss duckdb", "022"), ("verify", "077")],
        [("profile", "000"), ("verify", "077"), ("verify with evidence", "000"), ("dss duckdb", "022")],
        reason="a database of each kind is private in tests/targets",
    ),
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_others_read_nothing_that_a_verb_makes(bench: Bench, verb: str, mask: str) -> None:
    target = bench.target.parent
    target.chmod(0o700)
    words = [word.replace("{}", str(target)) for word in COMMANDS[verb]]
    under = ("sh", "-c", f'umask {mask}; exec "$@"', "sh")

    outcome = bench.assay(*words, "--no-report", "-o", bench.results, prefix=under)

    assert outcome.code in ((4,) if verb == "verify with evidence" else (0, 1, 5)), outcome.stderr
    assert open_to_others(target) == []
    shown = {path.name for path in bench.run.rglob("*") if not is_private(path.lstat())}
    assert shown <= SHOWN, shown
    # Reports, points and series are for others to read, as far as the user's umask lets them.
    assert stat.S_IMODE((bench.run / "points.jsonl").stat().st_mode) == 0o644 & ~int(mask, 8)
    assert stat.S_IMODE((bench.run / "run.json").stat().st_mode) == 0o644 & ~int(mask, 8)


def test_what_a_duckdb_writes_while_it_is_open_is_private(tmp_path: Path) -> None:
    with umask(0):
        database = open_database(
            parse_database(f"duckdb:{tmp_path}/db?memory_limit=64MB&threads=1&max_temp_directory_size=1GB", {}), TABLES
        )
        assert isinstance(database, Duckdb)
        try:
            database.open()
            database.execute(
                "CREATE TABLE rows AS SELECT range AS i, range::text || repeat('x', 200) AS t FROM range(10)"
            )
            database.execute("CREATE TEMP TABLE spilled AS SELECT range AS i, hash(range) AS h FROM range(20000000)")
            made = {path.name for path in tmp_path.rglob("*")}
            assert {"db", "db.wal", "db.tmp"} < made
            assert open_to_others(tmp_path) == []
            database.save()
            assert open_to_others(tmp_path) == []
            # What Assay makes meanwhile is as the user's umask has it.
            run = tmp_path / "run"
            run.mkdir()
            folder = Folder.open(run)
            os.close(folder.create("points"))
            folder.folder("series", make=True).close()
            os.close(create_anew(run / "page"))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()}
            assert modes == {"points": 0o644, "page": 0o644, "series": 0o755}
        finally:
            database.close()


@pytest.mark.parametrize(("shared", "folders", "files"), [(False, 0o700, 0o600), (True, 0o755, 0o644)])
def test_tables_of_spark_are_private_unless_a_cluster_reads_them(
    tmp_path: Path, shared: bool, folders: int, files: int
) -> None:
    import pyarrow as pa

    with umask(0):
        folder = SparkFolder(tmp_path / "db", "spark", shared=shared)
        folder.take()
        try:
            folder.make("region")
            writer = ChunkWriter(folder)
            writer.append("region", pa.record_batch({"r_regionkey": [1]}))
            writer.commit()
        finally:
            folder.release()
    (parquet,) = (tmp_path / "db/region").iterdir()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "db", tmp_path / "db/region", parquet)]
    assert modes == [folders, folders, files]
