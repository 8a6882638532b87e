"""A database's folder with things in it that another user put there: nothing in it is run, followed or changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from database_folders import STRANGER, contents, is_whole, make, need_root, opened

from assay.base.errors import AssayError
from assay_command import Bench, Outcome

COMMANDS = ("archive_command", "restore_command", "archive_cleanup_command", "recovery_end_command")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Assay; each test leaves it as it was."""
    folder = tmp_path_factory.mktemp("planted")
    return make(folder / "db", f"&wal={folder}/wal")


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of files that must stay as they are."""
    folder = tmp_path / "victim"
    (folder / "PG_18_202506291").mkdir(parents=True)
    for name in ("precious", "PG_18_202506291/precious"):
        (folder / name).write_text("precious " * 100)
        (folder / name).chmod(0o640)
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def checked(bench: Bench, folder: Path) -> Outcome:
    return bench.assay("oltp", "tpcc", f"embedded:{folder}", "check", "--no-report", "-o", bench.results)


def said(outcome: Outcome) -> str:
    """The line that says what is wrong; before it stands that the server is to be started."""
    *_, line = outcome.stderr.splitlines()
    assert line.startswith("assay: embedded:")
    return line


def plant_commands(data: Path, command: str) -> None:
    """Let a cluster run a command as soon as it starts, in every file that it reads."""
    settings = "".join(f"{name} = '{command}'\n" for name in COMMANDS) + "archive_mode = on\n"
    (data / "postgresql.conf").write_text(settings)
    (data / "postgresql.auto.conf").write_text(settings + "shared_preload_libraries = 'evil'\n")
    (data / "recovery.signal").touch()
    (data / "standby.signal").touch()


def give(tree: Path, uid: int) -> None:
    for path in (tree, *tree.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.mark.parametrize("how", ["a folder of another's", "a way that others may write to", "a link of another's"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_planted_cluster_runs_nothing(bench: Bench, tmp_path: Path, how: str) -> None:
    need_root()
    shared = tmp_path / "shared"
    shared.mkdir()
    planted = make(shared / "assay-postgresql")
    proof = tmp_path / "proof"
    plant_commands(planted / "data-1", f"id -u > {proof}; false")
    if how == "a folder of another's":
        shared.chmod(0o1777)
        give(planted, STRANGER)
    elif how == "a way that others may write to":
        shared.chmod(0o777)
    else:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        planted.rename(elsewhere / "assay-postgresql")
        shared.chmod(0o1777)
        planted.symlink_to(elsewhere / "assay-postgresql")
        os.chown(planted, STRANGER, STRANGER, follow_symlinks=False)
        planted = elsewhere / "assay-postgresql"
    before = contents(planted)

    outcome = bench.assay("assess", shared, "--only", "transactions", "--budget", "20s", "-o", bench.results)

    assert outcome.code == 2, outcome.stderr
    assert "embedded:" in outcome.stderr.splitlines()[-1]
    assert not proof.exists()
    assert contents(planted) == before


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_configuration_is_assays_own_at_each_start(database: Path, tmp_path: Path) -> None:
    data = database / "data-1"
    proof = tmp_path / "proof"
    plant_commands(data, f"id -u > {proof}; false")
    with (data / "pg_hba.conf").open("a") as file:
        file.write("host all all all trust\n")
    if os.geteuid() == 0:
        give(data, data.stat().st_uid)

    with opened(database) as running:
        assert {name: running.query(f"SHOW {name}") for name in COMMANDS} == {
            name: [("(disabled)",)] if name == "archive_command" else [("",)] for name in COMMANDS
        }
        assert running.query("SHOW shared_preload_libraries") == [("pg_stat_statements",)]
        assert running.query("SELECT pg_is_in_recovery()") == [(False,)]
        assert running.query("SELECT count(*) FROM pg_hba_file_rules") == [(2,)]
        for name in ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"):
            status = (data / name).stat()
            assert (status.st_uid, status.st_mode & 0o027) == (os.geteuid(), 0)
        # The superuser of the database cannot bring them back.
        with pytest.raises(AssayError, match="ALTER SYSTEM is not allowed"):
            running.execute(f"ALTER SYSTEM SET archive_command = 'touch {proof}'")
        running.execute("SELECT pg_switch_wal()")
    assert not proof.exists()


# Links and other things in the folder


def link_over(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, victim: Path) -> None:
        (database / name).unlink(missing_ok=True)
        (database / name).symlink_to(victim / "precious")

    return plant


def hard_link_over(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, victim: Path) -> None:
        (database / name).unlink(missing_ok=True)
        (database / name).hardlink_to(victim / "precious")

    return plant


def pipe_over(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, _: Path) -> None:
        (database / name).unlink(missing_ok=True)
        os.mkfifo(database / name)

    return plant


def folder_link(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, victim: Path) -> None:
        if (database / name).is_symlink():
            (database / name).unlink()
        (database / name).symlink_to(victim)

    return plant


def data_is_a_link(database: Path, victim: Path) -> None:
    (database / "data-1").rename(victim.parent / "moved")
    (database / "data-1").symlink_to(victim.parent / "moved")


def data_is_another(database: Path, victim: Path) -> None:
    (database / "data-1").rename(victim.parent / "moved")
    shutil.copytree(victim, database / "data-1")


def a_folder_of_the_users(database: Path, victim: Path) -> None:
    shutil.copytree(victim, database / "data-2024")


def something_of_another(database: Path, _: Path) -> None:
    need_root()
    (database / "data-1/base/pgsql_tmp").mkdir()
    os.chown(database / "data-1/base/pgsql_tmp", STRANGER, STRANGER)


def says(**values: object) -> Callable[[Path, Path], None]:
    def plant(database: Path, _: Path) -> None:
        state = json.loads((database / "state.json").read_text())
        (database / "state.json").write_text(json.dumps(state | values))

    return plant


def state_is(text: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, _: Path) -> None:
        (database / "state.json").write_text(text)

    return plant


WORDS = (
    "is a link|has a second name|is no file|is neither a file|is not Assay's|is not the folder that Assay made"
    "|belongs to user 12345|is damaged or of another version|is not empty and holds no database"
)

PLANTED: dict[str, Callable[[Path, Path], None]] = {
    **{f"a link over {name}": link_over(name) for name in
       ("server.log", "server.log.1", "lock", "state.json", "state.json.new", ".assay-database")},
    **{f"a second name over {name}": hard_link_over(name) for name in ("server.log", "lock", "data-1/PG_VERSION")},
    **{f"a pipe over {name}": pipe_over(name) for name in ("server.log", "lock", "state.json", "data-1/PG_VERSION")},
    **{f"a link to a folder at {name}": folder_link(name) for name in
       ("data-7", "saved-1", "assay-tablespaces", "data-1/pg_wal", "data-1/pg_tblspc/16400", "data-1/base/1234567",
        "data-1/pg_wal/archive_status2")},
    "a link in the place of the data": data_is_a_link,
    "another folder in the place of the data": data_is_another,
    "a folder of the user's": a_folder_of_the_users,
    "something of another user's": something_of_another,
    "a state with a way out": says(data="../victim"),
    "a state with a folder that is none": says(saved={"folder": ".", "bytes": 1}),
    "a state with another log": says(wal="relative"),
    "a state of other types": says(folders=[1], data=3),
    "a state that is deep": state_is("[" * 60_000),
    "a state that is large": state_is(" " * 70_000 + "{}"),
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_refused_and_leads_nowhere(bench: Bench, database: Path, victim: Path, planted: str) -> None:
    with put_back(database, victim.parent / "moved"):
        PLANTED[planted](database, victim)

        outcome = checked(bench, database)

        assert outcome.code == 2, outcome.stderr
        assert re.search(WORDS, said(outcome)), outcome.stderr


@contextmanager
def put_back(database: Path, moved: Path) -> Iterator[None]:
    """Make the folder afterwards what it was before, for the next test."""
    data, log = database / "data-1", database / "data-1/pg_wal"
    names = ("server.log", "lock", "state.json", ".assay-database", "data-1/PG_VERSION")
    kept = {name: (database / name).read_bytes() for name in names}
    before = set(database.parent.rglob("*"))
    owner, target = data.stat(), os.readlink(log)
    try:
        yield
    finally:
        if moved.exists():
            data.unlink() if data.is_symlink() else shutil.rmtree(data)
            moved.rename(data)
        for path in sorted(database.parent.rglob("*"), reverse=True):
            if path not in before:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, text in kept.items():
            (database / name).unlink(missing_ok=True)
            (database / name).write_bytes(text)
        os.chown(database / "data-1/PG_VERSION", owner.st_uid, owner.st_gid)
        if os.readlink(log) != target:
            log.unlink()
            log.symlink_to(target)


def test_the_database_survived_all_of_this(database: Path) -> None:
    assert is_whole(database)


# The way to the folder


@pytest.mark.parametrize(
    ("mode", "is_accepted"), [(0o755, True), (0o1777, True), (0o777, False), (0o775, False), (0o757, False)]
)
def test_the_way_is_this_users_or_roots_alone(bench: Bench, tmp_path: Path, mode: int, is_accepted: bool) -> None:
    way = tmp_path / "way"
    (way / "inner").mkdir(parents=True)
    make(way / "inner/db")
    if os.geteuid() == 0:
        os.chown(way, 0, 12)
    way.chmod(mode)

    outcome = checked(bench, way / "inner/db")

    # An accepted one has nothing to check, which is said by another line.
    assert (outcome.code, "may be written to by other users" in outcome.stderr) == (2, not is_accepted)
    if not is_accepted:
        assert f"chmod go-w {way}" in said(outcome)


@pytest.mark.parametrize("place", ["way", "way/inner", "way/inner/db", "log"])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_neither_folder_nor_way_is_anothers(bench: Bench, tmp_path: Path, place: str) -> None:
    need_root()
    (tmp_path / "way/inner").mkdir(parents=True)
    make(tmp_path / "way/inner/db", f"&wal={tmp_path}/log")
    os.chown(tmp_path / place, STRANGER, STRANGER)

    outcome = checked(bench, tmp_path / "way/inner/db")

    assert outcome.code == 2
    assert f"{tmp_path / place} belongs to user {STRANGER}" in said(outcome)


def test_an_access_list_counts_as_others(bench: Bench, tmp_path: Path) -> None:
    if shutil.which("setfacl") is None:
        pytest.skip("setfacl is not installed")
    (tmp_path / "way").mkdir()
    make(tmp_path / "way/db")
    subprocess.run(["setfacl", "-m", f"u:{STRANGER}:rwx", tmp_path / "way"], check=True)

    outcome = checked(bench, tmp_path / "way/db")

    assert (outcome.code, "may be written to by other users" in outcome.stderr) == (2, True)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_links_of_ones_own_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real/deep").mkdir(parents=True)
    (tmp_path / "short").symlink_to("real/../real/deep")
    (tmp_path / "shorter").symlink_to(tmp_path / "short")
    make(tmp_path / "shorter/db", f"&wal={tmp_path}/shorter/wal")
    assert (tmp_path / "real/deep/db/data-1").is_dir()
    assert is_whole(tmp_path / "real/deep/db")
    (tmp_path / "shorter").unlink()
    (tmp_path / "shorter").symlink_to("shorter")
    with pytest.raises(Exception, match="Too many levels of symbolic links"), opened(tmp_path / "shorter/db"):
        pass
