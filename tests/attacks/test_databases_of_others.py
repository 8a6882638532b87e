"""Databases, folders and tables that have the names Assay uses and are not Assay's: they survive every action."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from assay.base.errors import AssayError, IoFailed, RefusedTarget
from assay.targets.databases import Database
from assay.targets.databases.common.layout import TableLayout, make_folder
from assay.targets.databases.kinds import lay_out, take_down
from assay.targets.databases.mariadb.tablespace_copy import folder_name
from assay.targets.databases.postgresql.template_copy import TemplateCopy
from assay.workloads.databases.loading import drop_loaded
from assay_command import Bench, Outcome
from servers.fixtures import Connect
from servers.loading import load
from servers.process import ServerProcess


@pytest.fixture
def loaded(postgresql: ServerProcess, connect: Connect) -> Database:
    database = connect(postgresql.fresh_database())
    load(database)
    return database


def oltp(bench: Bench, *arguments: str) -> Outcome:
    return bench.assay("oltp", "tpcc", *arguments, "--no-report", "--quiet", "-o", bench.results)


def url_of(server: ServerProcess, database: Database) -> str:
    return server.url_of(database.spec.database)


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


def names(database: Database) -> list[str]:
    found = database.query("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (database.spec.database,))
    return sorted(str(row[0]) for row in found)


# PostgreSQL: databases


@pytest.mark.parametrize(
    "suffix", [pytest.param("_assay_part", marks=pytest.mark.slow(reason="as _assay_old")), "_assay_old"]
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_database_with_the_name_of_a_copy_survives(
    postgresql: ServerProcess, loaded: Database, bench: Bench, suffix: str
) -> None:
    name = loaded.spec.database + suffix
    loaded.save()
    postgresql.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(postgresql.url_of(name), autocommit=True) as connection:
        connection.execute("CREATE TABLE precious AS SELECT 42 AS answer")
    said = f"a database '{name}' is there that Assay did not make; rename it, or drop it yourself"
    for work in (loaded.save, loaded.restore):
        with pytest.raises(RefusedTarget, match=said):
            work()
    outcome = oltp(bench, url_of(postgresql, loaded), "save")
    assert (outcome.code, outcome.complaint.endswith(said)) == (2, True)
    drop_loaded(loaded)
    assert names(loaded) == [loaded.spec.database, name]
    assert rows(postgresql.url_of(name), "SELECT answer FROM precious") == [(42,)]


@pytest.mark.parametrize("comment", ["saved by Assay", 'saved by Assay: {"database": "another"}', "saved by Assay: []"])
def test_a_comment_that_only_looks_like_a_mark_is_none(
    postgresql: ServerProcess, loaded: Database, comment: str
) -> None:
    name = f"{loaded.spec.database}_assay_old"
    postgresql.execute(f"CREATE DATABASE {name}")
    postgresql.execute(f"COMMENT ON DATABASE {name} IS '{comment}'")
    with pytest.raises(RefusedTarget, match="is there that Assay did not make"):
        loaded.save()
    loaded.drop_saved()
    assert name in names(loaded)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_a_killed_save_leaves_is_cleaned_up(postgresql18: ServerProcess, connect: Connect, bench: Bench) -> None:
    database = connect(postgresql18.fresh_database())
    load(database)
    name, url = database.spec.database, url_of(postgresql18, database)
    database.close()
    with psycopg.connect(postgresql18.url) as gate:
        # CREATE DATABASE waits for the end of this transaction.
        gate.execute(f"COMMENT ON DATABASE {name} IS 'held'".encode())
        with bench.started("oltp", "tpcc", url, "save", "--no-report", "-o", bench.results) as running:
            running.wait_until(lambda: rows(postgresql18.url, WAITING))
            running.process.kill()
            running.process.wait()
        # The server works on, and the run's lock is still held by it.
        outcome = oltp(bench, url, "save")
        assert (outcome.code, f"process {running.process.pid}" in outcome.complaint) == (2, True)
        gate.rollback()
    part = f"{name}_assay_part"
    while not rows(postgresql18.url, f"SELECT 1 FROM pg_database WHERE datname = '{part}'"):
        pass
    while rows(postgresql18.url, "SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'assay, %'"):
        pass
    assert oltp(bench, url, "save").code == 0
    assert names(connect(url)) == [name, f"{name}_assay_saved"]


WAITING = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE DATABASE%' AND wait_event_type = 'Lock'"


def test_what_an_interrupted_replacement_leaves_is_cleaned_up(
    loaded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = loaded.spec.database
    loaded.save()

    def cut_short(*_: object) -> None:
        raise IoFailed("the server went away")

    for work in (loaded.restore, loaded.save):
        with monkeypatch.context() as patched:
            patched.setattr(TemplateCopy, "_drop", cut_short)
            with pytest.raises(IoFailed):
                work()
        assert names(loaded) == [name, f"{name}_assay_old", f"{name}_assay_saved"]
        loaded.save()
        assert names(loaded) == [name, f"{name}_assay_saved"]
        assert loaded.schema().kind == "complete"


def test_tables_without_a_mark_are_not_replaced_by_a_restore(loaded: Database) -> None:
    loaded.save()
    loaded.execute("DROP TABLE stock; CREATE TABLE stock AS SELECT 42 AS answer")
    with pytest.raises(RefusedTarget, match=r"holds tables that Assay did not make \(stock\)"):
        loaded.restore()
    assert loaded.query("SELECT answer FROM stock") == [(42,)]


# Tables


@pytest.mark.parametrize("name", ["postgresql15", "mariadb"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_table_that_took_the_place_of_assays_is_not_dropped(
    connect: Connect, bench: Bench, request: pytest.FixtureRequest, name: str
) -> None:
    server: ServerProcess = request.getfixturevalue(name)
    database = connect(server.fresh_database())
    load(database)
    database.execute("DROP TABLE stock")
    database.execute("CREATE TABLE stock AS SELECT 42 AS answer")
    before = sorted(database.tables())
    outcome = oltp(bench, url_of(server, database), "drop")
    assert outcome.code == 2
    assert "holds tables that Assay did not make (stock); name an empty database" in outcome.complaint
    for work in (drop_loaded, load, lambda one: one.save()):
        with pytest.raises(RefusedTarget, match=r"did not make \(stock\)"):
            work(database)
    assert sorted(database.tables()) == before
    assert database.query("SELECT answer FROM stock") == [(42,)]


def test_a_table_to_try_rights_with_is_assays_own(connect: Connect, request: pytest.FixtureRequest) -> None:
    for name in ("postgresql18", "mariadb"):
        database = connect(request.getfixturevalue(name).fresh_database())
        database.execute("CREATE TABLE assay_rights AS SELECT 42 AS answer")
        with contextlib.suppress(AssayError):
            database.check_rights()
        assert database.query("SELECT answer FROM assay_rights") == [(42,)]


def test_a_tablespace_with_the_name_of_assays_survives(postgresql18: ServerProcess, connect: Connect) -> None:
    database = connect(postgresql18.fresh_database())
    load(database)
    name = f"assay_{database.spec.database}_1"
    folder = postgresql18.folder / "precious"
    folder.mkdir()
    os.chown(folder, *postgresql18.programs.identity.owner)
    database.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
    with pytest.raises(RefusedTarget, match=f"a tablespace '{name}' is there that Assay did not make"):
        lay_out(database, TableLayout(places=2), scale=1, connections=2)
    take_down(database)
    assert database.query("SELECT spcname FROM pg_tablespace WHERE spcname = %s", (name,)) == [(name,)]
    database.execute(f"DROP TABLESPACE {name}")
    lay_out(database, TableLayout(places=2), scale=1, connections=2)
    drop_loaded(database)
    take_down(database)
    assert database.query("SELECT spcname FROM pg_tablespace WHERE spcname ~ '^assay_'") == []


# MariaDB: folders beside its data


def test_folders_with_the_name_of_a_copy_survive(
    connect: Connect, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = request.getfixturevalue("mariadb")
    database = connect(server.fresh_database())
    load(database)
    database.save()
    stem = f"assay-saved-data-{database.spec.database}-"
    own = server.folder / f"{stem}1"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    made = {number: server.folder / f"{stem}{number}" for number in (0, 2, 5, 9, 11)}
    # One by hand, an empty one, a link, a copy of Assay's own, and one whose files others may change.
    made[0].mkdir()
    made[2].mkdir()
    made[5].symlink_to(elsewhere)
    shutil.copytree(own, made[9])
    shutil.copytree(own, made[11])
    (made[11] / "assay.json").write_text(json.dumps({"made_by": "Assay", "folder": made[11].stat().st_ino}))
    made[11].chmod(0o777)
    for number in (0, 5, 9, 11):
        (made[number] / "precious.txt").write_text("42")
    before = {path: path.read_bytes() for folder in made.values() for path in folder.glob("*")}

    for work in (database.save, database.restore, database.save, database.drop_saved):
        work()
        assert {path: path.read_bytes() for folder in made.values() for path in folder.glob("*")} == before
    assert made[5].is_symlink()
    assert made[2].is_dir()
    assert sorted(server.folder.glob(f"{stem}*")) == sorted(made.values())
    made[5].unlink()
    for number in (0, 2, 9, 11):
        shutil.rmtree(made[number])


def test_files_that_came_into_a_folder_of_assays_survive(connect: Connect, request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("mariadb")
    database = connect(server.fresh_database())
    load(database)
    database.save()
    (folder,) = server.folder.glob(f"assay-saved-data-{database.spec.database}-*")
    (folder / "precious.txt").write_text("42")
    database.drop_saved()
    assert database.saved() is None
    assert (folder / "precious.txt").read_text() == "42"
    assert f"{folder} holds files that are not Assay's; they stay there" in database.notices[-1]
    shutil.rmtree(folder)


def test_a_planted_manifest_is_not_run(connect: Connect, request: pytest.FixtureRequest) -> None:
    """Definitions of tables are statements: those of a folder that others could write are not taken."""
    server = request.getfixturevalue("mariadb")
    database = connect(server.fresh_database())
    load(database)
    database.execute("CREATE TABLE precious AS SELECT 42 AS answer")
    folder = server.folder / f"assay-saved-data-{database.spec.database}-3"
    folder.mkdir()
    facts = {"warehouses": 1, "seed": 7, "state": "loaded", "saved_utc": ""}
    tables = {"assay_schema": "DROP TABLE precious"}
    (folder / "manifest.json").write_text(json.dumps({"facts": facts, "tables": tables, "schema": [], "others": []}))
    assert database.saved() is None
    with pytest.raises(AssayError, match="nothing is saved"):
        database.restore()
    assert database.query("SELECT answer FROM precious") == [(42,)]
    shutil.rmtree(folder)


def test_a_folder_that_a_server_only_names_is_not_written_to(
    tmp_path: Path, connect: Connect, mariadb: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The attack: a server of another user on this host says that its data are where root's are.
    if os.geteuid() != 0:
        pytest.skip("whose files are out of reach is refused already")
    database = connect(mariadb.fresh_database())
    load(database)
    tmp_path.chmod(0o755)
    stranger = tmp_path / "data"
    (stranger / folder_name(database.spec.database)).mkdir(parents=True)
    os.chown(stranger, 12345, 12345)
    ask = database.query

    def lie(sql: str, params: Sequence[object] = ()) -> list[tuple[object, ...]]:
        return [("datadir", str(stranger))] if params == ("datadir",) else ask(sql, params)

    pid = database.server_pid()
    monkeypatch.setattr(database, "query", lie)
    monkeypatch.setattr(database, "server_pid", lambda: pid)
    with pytest.raises(RefusedTarget, match="which is no folder of the server's user"):
        database.save()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize("named", ["a pipe", "a device without end", "a link", "text"])
def test_a_file_that_a_server_names_is_not_waited_for(
    tmp_path: Path, connect: Connect, mariadb: ServerProcess, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    database = connect(mariadb.fresh_database())
    file = tmp_path / "server.pid"
    if named == "a pipe":
        os.mkfifo(file)
    elif named == "a device without end":
        file = Path("/dev/zero")
    elif named == "a link":
        file.symlink_to("/proc/self/stat")
    else:
        file.write_text("9" * 10_000_000)
    ask = database.query

    def lie(sql: str, params: Sequence[object] = ()) -> list[tuple[object, ...]]:
        return [("pid_file", str(file))] if params == ("pid_file",) else ask(sql, params)

    monkeypatch.setattr(database, "query", lie)
    assert database.server_pid() is None


@pytest.mark.parametrize("planted", ["a link", "a link one below", "a folder of root's", "a file"])
def test_a_place_that_a_servers_user_exchanged_is_not_given_away(
    tmp_path: Path, connect: Connect, postgresql18: ServerProcess, planted: str
) -> None:
    # The attack: root makes a place for tables beside the server's data, where its user has put a link to root's files.
    if os.geteuid() != 0:
        pytest.skip("only root gives folders away")
    database = connect(postgresql18.fresh_database())
    data, victim = tmp_path / "server/data", tmp_path / "victim"
    data.mkdir(parents=True)
    victim.mkdir()
    (victim / "precious").write_text("precious")
    os.chown(data, 12345, 12345)
    places = tmp_path / "server/assay-tablespaces"
    if planted == "a link":
        places.symlink_to(victim)
    elif planted == "a file":
        places.write_text("kept")
    else:
        places.mkdir()
        os.chown(places, 12345, 12345)
        if planted == "a link one below":
            (places / "1").symlink_to(victim)
        else:
            shutil.copytree(victim, places / "1")

    with pytest.raises(RefusedTarget, match="is a link, a file, or a folder that is not the server's"):
        make_folder(database, data, places / "1")

    assert (victim.stat().st_uid, (victim / "precious").read_text()) == (0, "precious")
    assert [path.lstat().st_uid for path in places.glob("1") if planted == "a folder of root's"] in ([], [0])
