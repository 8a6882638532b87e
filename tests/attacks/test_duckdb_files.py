"""What has the name of a DuckDB file, or lies where DuckDB writes, and is not Assay's: it stays as it is."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from assay.base.errors import AssayError, NotSupported, OpenFailed, RefusedTarget
from assay.targets.databases import Database, open_database, parse_database
from assay.workloads.tpcc.tables import TABLES


def of(path: Path, options: str = "") -> Database:
    return open_database(parse_database(f"duckdb:{path}{options}", {}), TABLES)


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    database = of(path)
    try:
        database.open()
        yield database
    finally:
        database.close()


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of everything in a folder; of a link where it leads."""
    return {
        str(path): (path.lstat().st_mode, os.readlink(path).encode() if path.is_symlink() else path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def refused(path: Path, message: str, kind: type[AssayError] = RefusedTarget, options: str = "") -> None:
    """Opening is refused in one line, and changes nothing in the folder."""
    before = contents(path.parent)
    with pytest.raises(kind, match=message) as error:
        of(path, options).open()
    assert "\n" not in str(error.value)
    assert contents(path.parent) == before


def duckdb_file(path: Path, *statements: str, log: bool = False) -> Path:
    """A DuckDB file as its user left it; its last statements are in its log where that is asked for."""
    with duckdb.connect(path) as connection:
        if log:
            connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        for statement in statements:
            connection.execute(statement)
    return path


# Files of others


@pytest.mark.parametrize("content", [b"", b"DUCK", b"Dear diary, " * 1000], ids=["empty", "short", "text"])
def test_a_file_that_is_no_database_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine"
    path.write_bytes(content)
    refused(path, "mine is no DuckDB file; give a file that does not exist yet")


@pytest.mark.parametrize("log", [False, True])
def test_a_database_with_tables_of_others_is_only_read(tmp_path: Path, log: bool) -> None:
    path = duckdb_file(tmp_path / "sales.duckdb", "CREATE TABLE invoices (i int)", log=log)
    assert (tmp_path / "sales.duckdb.wal").exists() == log
    refused(path, r"holds tables that Assay did not make \(invoices\)")


def test_a_table_in_another_schema_is_seen(tmp_path: Path) -> None:
    path = duckdb_file(tmp_path / "db", "CREATE SCHEMA shop", "CREATE TABLE shop.history (i int)")
    refused(path, r"did not make \(history\)")


def test_a_database_of_a_newer_version_stays(tmp_path: Path) -> None:
    path = duckdb_file(tmp_path / "db")
    header = bytearray(path.read_bytes())
    # DuckDB's checksum of a header: words times a constant, all of them combined by exclusive or.
    before = checksum_part(header)
    header[12:20] = struct.pack("<Q", 5000)
    checksum = struct.unpack_from("<Q", header)[0] ^ before ^ checksum_part(header)
    path.write_bytes(struct.pack("<Q", checksum) + header[8:])
    refused(path, f"written by a newer DuckDB than {duckdb.__version__}.*; update the package duckdb", NotSupported)


def checksum_part(header: bytes) -> int:
    first, second = (word * 0xBF58476D1CE4E5B9 % 2**64 for word in struct.unpack_from("<QQ", header, 8))
    return first ^ second


def test_a_damaged_database_stays(tmp_path: Path) -> None:
    path = duckdb_file(tmp_path / "db", "CREATE TABLE t AS SELECT range FROM range(1000)")
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    path.write_bytes(damaged)
    refused(path, r"db is damaged \(Corrupt database file.*\); if it is Assay's, delete it", OpenFailed)


# Names that lead elsewhere


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    duckdb_file(tmp_path / "real")
    (tmp_path / "db").symlink_to("real")
    refused(tmp_path / "db", "db is a link; give the file that it leads to")


def test_a_file_with_a_second_name_is_refused(tmp_path: Path) -> None:
    os.link(duckdb_file(tmp_path / "real"), tmp_path / "db")
    refused(tmp_path / "db", "has a second name")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "db")
    refused(tmp_path / "db", "is not a file of this user's own")


def test_a_file_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    duckdb_file(tmp_path / "db").chmod(0o666)
    refused(tmp_path / "db", "may be written to by other users; chmod go-w")


def test_a_folder_in_which_others_may_exchange_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    refused(tmp_path / "open" / "db", "may be written to by other users")


def test_a_folder_in_which_others_may_make_links_is_refused(tmp_path: Path) -> None:
    # The attack: a link of the log's name, or a folder of the temporary files', made after the look and before the use.
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    refused(tmp_path / "shared" / "db", "who could put links where DuckDB writes; make a folder of your own in it")
    refused(tmp_path / "db", "who could put links where", options=f"?temp_directory={tmp_path}/shared")


@pytest.mark.parametrize("suffix", [".wal", ".tmp"])
def test_a_log_that_others_may_write_to_is_not_replayed(tmp_path: Path, suffix: str) -> None:
    with opened(tmp_path / "db"):
        pass
    duckdb_file(tmp_path / "db").chmod(0o600)
    (tmp_path / f"db{suffix}").mkdir() if suffix == ".tmp" else (tmp_path / f"db{suffix}").touch()
    (tmp_path / f"db{suffix}").chmod(0o777)
    refused(tmp_path / "db", f"db{suffix} may be written to by other users; chmod go-w")


@pytest.mark.parametrize("suffix", [".wal", ".wal.checkpoint", ".wal.recovery"])
def test_a_log_without_its_database_stays(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"db{suffix}").write_bytes(b"kept by its owner")
    refused(tmp_path / "db", "is the log of a database that is not there")


@pytest.mark.parametrize("suffix", [".wal", ".wal.checkpoint", ".wal.recovery", ".tmp"])
def test_a_link_where_it_writes_is_refused(tmp_path: Path, suffix: str) -> None:
    duckdb_file(tmp_path / "db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"another's")
    (tmp_path / f"db{suffix}").symlink_to(elsewhere)
    refused(tmp_path / "db", "stands where DuckDB writes")


def test_a_folder_for_temporary_files_must_be_there(tmp_path: Path) -> None:
    refused(tmp_path / "db", "nowhere does not exist", options=f"?temp_directory={tmp_path}/nowhere")


# Saved states


def rows(path: Path) -> tuple[list[tuple[object, ...]], object]:
    """What the database holds, and the state that is saved."""
    with opened(path) as database:
        saved = database.saved()
        return database.query("SELECT h FROM history"), saved and saved["seed"]


def load(database: Database, number: int) -> None:
    """Tables that hold one number."""
    if "history" not in database.tables():
        database.create_table("history", "CREATE TABLE history (h integer)")
        database.create_table("assay_schema", "CREATE TABLE assay_schema (k varchar, v varchar)")
        database.execute("INSERT INTO assay_schema VALUES ('state', 'loaded'), ('seed', '0'), ('warehouses', '1')")
        database.execute("INSERT INTO history VALUES (0)")
    database.execute("UPDATE history SET h = %s", (number,))
    database.execute("UPDATE assay_schema SET v = %s WHERE k = 'seed'", (number,))


KILLED = """
import os, signal, sys
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
from assay.targets.databases.common import saved_folders
from assay.targets.databases.duckdb import database as duckdb, file as duckdb_file
path, work, place, after = sys.argv[1:]
module, _, name = place.rpartition(".")
owner = {"duckdb": duckdb, "duckdb_file": duckdb_file, "os": os, "folder": saved_folders.SavedFolder}[module]
original = getattr(owner, name)
def killed(*arguments, **keywords):
    if after == "after":
        original(*arguments, **keywords)
    os.kill(os.getpid(), signal.SIGKILL)
opened = open_database(parse_database("duckdb:" + path, {}), TABLES)
opened.open()
setattr(owner, name, killed)
getattr(opened, work)()
"""


OTHER_MOMENTS = pytest.mark.slow(reason="other moments of a save and a restore are tried")


@pytest.mark.parametrize(
    ("work", "place", "after"),
    [
        pytest.param("save", "duckdb.copy_open_file", "after", marks=OTHER_MOMENTS),
        pytest.param("save", "folder.finish", "before", marks=OTHER_MOMENTS),
        ("save", "folder.finish", "after"),
        pytest.param("save", "os.unlink", "after", marks=OTHER_MOMENTS),
        pytest.param("restore", "duckdb.copy_file", "after", marks=OTHER_MOMENTS),
        ("restore", "os.rename", "before"),
        pytest.param("restore", "os.rename", "after", marks=OTHER_MOMENTS),
        ("drop_saved", "os.unlink", "after"),
    ],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_kill_leaves_the_old_state_or_the_new(tmp_path: Path, work: str, place: str, after: str) -> None:
    path = tmp_path / "db"
    with opened(path) as database:
        load(database, 1)
        database.save()
        load(database, 2)
    done = subprocess.run([sys.executable, "-c", KILLED, path, work, place, after], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    holds, saved = rows(path)
    assert holds in ([(2,)], [(1,)] if work == "restore" else None)
    assert saved in {"save": (1, 2), "restore": (1,), "drop_saved": (1, None)}[work]
    # What was left behind is tidied up by what is done next.
    with opened(path) as database:
        load(database, 3)
        database.save()
        database.restore()
        assert [name for name in os.listdir(tmp_path) if name != "db"] == [
            name for name in os.listdir(tmp_path) if name.startswith("db.assay-saved-")
        ][:1]
        database.drop_saved()
    assert os.listdir(tmp_path) == ["db"]
    assert rows(path) == ([(3,)], None)


def test_a_folder_with_the_name_of_a_saved_state_is_not_restored(tmp_path: Path) -> None:
    path, planted = tmp_path / "db", tmp_path / "db.assay-saved-7"
    planted.mkdir()
    (planted / "manifest.json").write_text('{"facts": {}}')
    (planted / "assay.json").write_text('{"made_by": "Assay", "folder": 1}')
    duckdb_file(planted / "database", "CREATE TABLE planted (i int)")
    before = contents(planted)
    with opened(path) as database:
        load(database, 1)
        assert database.saved() is None
        database.save()
        database.restore()
        database.drop_saved()
    assert contents(planted) == before
