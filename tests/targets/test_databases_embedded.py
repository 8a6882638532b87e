"""The embedded PostgreSQL: a folder of its own, one server on it, and nothing lost however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from assay.errors import NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases import open_database, parse_database, server
from assay.targets.databases.cluster import MARK
from assay.targets.databases.embedded import EmbeddedPostgresql
from assay.targets.databases.server import Identity

SMALL = "set.shared_buffers=32MB&set.max_wal_size=128MB&set.min_wal_size=32MB"

Embedded = Callable[..., EmbeddedPostgresql]


@pytest.fixture
def embedded() -> Iterator[Embedded]:
    """Make the database of a folder; all are closed afterwards."""
    made: list[EmbeddedPostgresql] = []

    def make(folder: Path, options: str = "") -> EmbeddedPostgresql:
        database = open_database(parse_database(f"embedded:{folder}?{SMALL}{options}"))
        assert isinstance(database, EmbeddedPostgresql)
        made.append(database)
        return database

    yield make
    for database in made:
        database.close()


def fill(database: EmbeddedPostgresql, rows: int = 1000) -> None:
    database.execute(f"CREATE TABLE filled AS SELECT g, repeat('x', 100) FROM generate_series(1, {rows}) AS g")


def rows_of(database: EmbeddedPostgresql) -> int:
    return int(database.query("SELECT count(*) FROM filled")[0][0])


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Life


def test_a_database_outlives_its_server(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    pid = database.server_pid()
    assert pid is not None
    database.close()
    assert not Path(f"/proc/{pid}").exists()
    again = embedded(tmp_path / "db")
    again.open()
    assert rows_of(again) == 1000


def test_the_server_is_tuned_durable_and_watched(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db", "&set.work_mem=5MB")
    database.open(connections=200)
    settings = database.facts()["settings"]
    expected = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "track_io_timing": "on",
                "track_wal_io_timing": "on", "shared_buffers": "32MB", "work_mem": "5MB"}  # fmt: skip
    assert settings.items() >= expected.items()
    assert database.facts()["version"].startswith("18.")
    assert database.facts()["connections_free"] >= 200
    assert database.query("SELECT count(*) FROM pg_stat_statements")[0][0] > 0
    assert database.query("SHOW listen_addresses") == [("",)]


def test_more_connections_are_to_be_had_by_opening_again(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    assert database.facts()["max_connections"] == 100
    database.open(connections=150)
    assert database.facts()["connections_free"] >= 150
    assert rows_of(database) == 1000


def test_a_killed_server_recovers_what_was_committed(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    assert not database.revive()
    for _ in range(2):
        pid = database.server_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, database._server._process.pid, os.WEXITED | os.WNOWAIT)  # type: ignore[union-attr]
        assert database.revive()
        assert rows_of(database) == 1000
    assert "was not properly shut down" in (tmp_path / "db/server.log").read_text()


HOLD = """
import os, sys
from assay.targets.databases import open_database, parse_database
database = open_database(parse_database(sys.argv[1]))
database.open()
print(database.server_pid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the database of `tmp_path/db` open."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, f"embedded:{tmp_path}/db?{SMALL}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_two_processes_never_share_a_folder(tmp_path: Path, embedded: Embedded, holder: subprocess.Popen[str]) -> None:
    assert holder.stdout is not None
    assert holder.stdout.readline()
    with pytest.raises(UsageError, match=f"in use by another run of Assay \\(process {holder.pid}\\)"):
        embedded(tmp_path / "db").open()


def test_a_server_whose_owner_was_killed_makes_way(
    tmp_path: Path, embedded: Embedded, holder: subprocess.Popen[str]
) -> None:
    assert holder.stdout is not None
    stray = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    database = embedded(tmp_path / "db")
    database.open()
    assert database.server_pid() != stray
    assert not Path(f"/proc/{stray}").exists()


def test_a_server_whose_launcher_was_killed_too_makes_way(
    tmp_path: Path, embedded: Embedded, holder: subprocess.Popen[str]
) -> None:
    assert holder.stdout is not None
    stray = int(holder.stdout.readline())
    launcher = int(Path(f"/proc/{stray}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(launcher, signal.SIGKILL)
    holder.kill()
    holder.wait()
    database = embedded(tmp_path / "db")
    database.open()
    assert database.server_pid() not in (stray, None)


def test_the_socket_is_short_and_ours_however_long_the_path(tmp_path: Path, embedded: Embedded) -> None:
    folder = tmp_path / ("long" * 20) / ("name" * 20)
    folder.parent.mkdir()
    database = embedded(folder)
    database.open()
    path = database.connection().socket
    assert path is not None
    assert len(path) <= server.SOCKET_PATH_BYTES_MAX
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    database.close()
    assert not Path(path).parent.exists()


def test_nobody_else_gets_in(tmp_path: Path, embedded: Embedded) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    database = embedded(tmp_path / "db")
    database.open()
    place = database.connection()
    assert place.socket is not None
    # Even if the folder of the socket were open to all.
    Path(place.socket).parent.chmod(0o755)
    Path(place.socket).chmod(0o777)
    script = f"""
import psycopg
try:
    psycopg.connect(host={str(Path(place.socket).parent)!r}, user="assay", dbname="assay")
except psycopg.OperationalError as error:
    print(error)
"""
    for uid in (65534, 12345):
        readable = shutil.which("python3", path="/usr/bin")
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        if done.returncode:
            pytest.skip(f"an unprivileged user may not run this environment's Python ({readable})")
        assert "Peer authentication failed" in done.stdout


# The log elsewhere


def test_the_log_may_be_elsewhere(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db", f"&wal={tmp_path}/wal")
    database.open()
    paths = database.storage_paths()
    assert Path(paths["log"]).parent == tmp_path / "wal"
    assert Path(paths["data"]).parent == tmp_path / "db"
    fill(database)
    database.save()
    fill_more = "INSERT INTO filled SELECT g, 'more' FROM generate_series(1, 500) AS g"
    database.execute(fill_more)
    database.restore()
    assert rows_of(database) == 1000
    assert [path for path in (tmp_path / "wal").iterdir() if path.name != MARK] == [
        Path(database.storage_paths()["log"])
    ]
    database.close()
    # It is found again without being named, and not moved by naming another.
    again = embedded(tmp_path / "db")
    again.open()
    assert Path(again.storage_paths()["log"]).parent == tmp_path / "wal"
    again.close()
    with pytest.raises(UsageError, match=f"its log is in {tmp_path}/wal already"):
        embedded(tmp_path / "db", f"&wal={tmp_path}/other").open()


def test_two_databases_may_share_a_folder_for_logs(tmp_path: Path, embedded: Embedded) -> None:
    first = embedded(tmp_path / "a", f"&wal={tmp_path}/wal")
    first.open()
    fill(first)
    second = embedded(tmp_path / "b", f"&wal={tmp_path}/wal")
    second.open()
    assert rows_of(first) == 1000
    first.close()
    second.close()
    first = embedded(tmp_path / "a")
    first.open()
    assert rows_of(first) == 1000


# The saved state


def test_what_is_saved_comes_back_bit_by_bit(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    with pytest.raises(UsageError, match="nothing is saved"):
        database.restore()
    assert database.saved() is None
    database.save()
    (saved,) = (tmp_path / "db").glob("saved-*")
    before = files_of(saved)
    for _ in range(2):
        database.execute("DROP TABLE filled")
        database.restore()
        assert rows_of(database) == 1000
    database.close()
    assert files_of(saved) == before
    # What a restored server starts from: stopped at once it has changed nothing but what says that it ran.
    fresh = embedded(tmp_path / "db")
    fresh._cluster.take()
    fresh._cluster.change(data=None)
    fresh._cluster.tidy()
    fresh._copy_back()
    assert fresh._cluster.data is not None
    assert files_of(fresh._cluster.data) == before
    again = embedded(tmp_path / "other")
    again.open()
    assert again.saved() is None


def test_saving_again_replaces_and_dropping_leaves_nothing(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    database.save()
    database.execute("DELETE FROM filled")
    database.save()
    assert len(list((tmp_path / "db").glob("saved-*"))) == 1
    database.restore()
    assert rows_of(database) == 0
    saved = database.saved()
    assert saved is not None
    assert saved["warehouses"] is None
    database.drop_saved()
    assert database.saved() is None
    assert list((tmp_path / "db").glob("saved-*")) == []


def test_a_restore_that_is_cut_short_is_finished_by_the_next_start(
    tmp_path: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    database.save()
    database.execute("DELETE FROM filled")

    def cut_short(_: Path, copy: Path) -> int:
        copy.mkdir()
        (copy / "PG_VERSION").write_text("18")
        raise OSError(28, "No space left on device", str(copy / "base"))

    with monkeypatch.context() as patched:
        patched.setattr("assay.targets.databases.embedded.copy_tree", cut_short)
        with pytest.raises(OutOfSpace, match="no room is left for"):
            database.restore()
        database.close()
    again = embedded(tmp_path / "db")
    again.open()
    assert rows_of(again) == 1000
    assert len(list((tmp_path / "db").glob("data-*"))) == 1


def test_a_save_that_is_cut_short_leaves_the_one_before_and_the_server(
    tmp_path: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    database.save()
    database.execute("DELETE FROM filled")

    def cut_short(source: Path, copy: Path) -> int:
        shutil.copytree(source, copy)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("assay.targets.databases.embedded.copy_tree", cut_short)
        with pytest.raises(KeyboardInterrupt):
            database.save()
    assert rows_of(database) == 0
    database.restore()
    assert rows_of(database) == 1000
    assert len(list((tmp_path / "db").glob("saved-*"))) == 1


def test_tablespaces_are_not_saved_and_are_cleared_by_a_restore(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    fill(database)
    database.save()
    space = tmp_path / "space"
    space.mkdir()
    (space / "not-ours").write_text("kept")
    space.chmod(0o700)
    for _ in range(2):
        (space / "not-ours").unlink()
        database.execute(f"CREATE TABLESPACE elsewhere LOCATION '{space}'")
        (space / "not-ours").write_text("kept")
        database.execute("ALTER TABLE filled SET TABLESPACE elsewhere")
        assert database.storage_paths()["data:elsewhere"] == str(space)
        with pytest.raises(NotSupported, match="has tablespaces"):
            database.save()
        database.restore()
        assert rows_of(database) == 1000
        assert [path.name for path in space.iterdir()] == ["not-ours"]


# What is refused


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path, embedded: Embedded) -> None:
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(RefusedTarget, match="is not empty and holds no database of Assay"):
        embedded(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    with pytest.raises(RefusedTarget, match=f"the folder {tmp_path}/none does not exist"):
        embedded(tmp_path / "none/db").open()
    with pytest.raises(RefusedTarget, match="is not a folder"):
        embedded(tmp_path / "precious").open()
    with pytest.raises(RefusedTarget, match="is not empty"):
        embedded(tmp_path / "db", f"&wal={tmp_path}").open()


def test_somebody_elses_cluster_is_not_taken_for_ours(tmp_path: Path, embedded: Embedded) -> None:
    (tmp_path / "PG_VERSION").write_text("18")
    (tmp_path / MARK).write_text("forged")
    with pytest.raises(RefusedTarget, match="is not empty"):
        embedded(tmp_path).open()


def test_too_little_room_is_said_before_anything_is_made(
    tmp_path: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.targets.databases.cluster.free_bytes_of", lambda _: 10 * 1024**2)
    with pytest.raises(OutOfSpace, match=r"10 MiB free .* a database needs 256 MiB to begin with"):
        embedded(tmp_path / "db").open()


def test_a_full_disk_is_said(embedded: Embedded, mounted: Callable[..., Path]) -> None:
    disk = mounted("-t", "tmpfs", "-o", "size=300m", "none")
    database = embedded(disk / "db")
    database.open()
    with pytest.raises(OutOfSpace, match="no space is left under the server"):
        fill(database, 3_000_000)
    database.execute("CREATE TABLE few AS SELECT 1")
    database.close()
    with (disk / "ballast").open("wb") as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))
            ballast.flush()
    with pytest.raises(OutOfSpace, match="free some") as error:
        embedded(disk / "db").open()
    assert "\n" not in str(error.value)
    (disk / "ballast").unlink()
    again = embedded(disk / "db")
    again.open()
    assert again.query("SELECT count(*) FROM few") == [(1,)]
    again.execute("CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
    with pytest.raises(OutOfSpace, match=r"the saved state needs .* are free"):
        again.save()
    assert again.query("SELECT count(*) FROM few") == [(1,)]


def test_why_the_server_does_not_start_is_one_line(tmp_path: Path, embedded: Embedded) -> None:
    database = open_database(parse_database(f"embedded:{tmp_path}/db?set.shared_buffers=lots"))
    with pytest.raises(OpenFailed, match=r"does not start: .*shared_buffers.*; see .*server\.log") as error:
        database.open()
    assert "\n" not in str(error.value)
    # The folder is free again, and as good as new.
    embedded(tmp_path / "db").open()


def test_a_database_of_another_version_is_refused(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    database.close()
    (tmp_path / "db/data-1/PG_VERSION").write_text("17\n")
    with pytest.raises(NotSupported, match=r"was made by PostgreSQL 17, this is 18\."):
        embedded(tmp_path / "db").open()


def test_a_damaged_state_is_refused(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    database.close()
    (tmp_path / "db/state.json").write_text("{")
    with pytest.raises(RefusedTarget, match="damaged or of another version"):
        embedded(tmp_path / "db").open()


# Root


@pytest.fixture
def closed_home() -> Iterator[Path]:
    """A home that only root may enter."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    home = Path(tempfile.mkdtemp(prefix="assay-home-"))
    home.chmod(0o700)
    yield home
    shutil.rmtree(home)


@pytest.fixture
def closed_programs(closed_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PostgreSQL's programs below that home."""
    package = server.shipped_programs().parents[1]
    copy = closed_home / "venv"
    for source in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("*.a", "include", "pgxs"))
    programs = copy / package.name / "pginstall/bin"
    monkeypatch.setattr(server, "shipped_programs", lambda: programs)
    monkeypatch.setattr("assay.targets.databases.embedded.shipped_programs", lambda: programs)
    return copy


@pytest.mark.usefixtures("closed_programs")
def test_root_runs_it_in_a_namespace_below_a_closed_home(closed_home: Path, embedded: Embedded) -> None:
    database = embedded(closed_home / "db")
    database.open()
    if database.facts()["runs_as"] != "namespace":
        pytest.skip("user namespaces are refused here")
    fill(database)
    database.save()
    database.restore()
    assert rows_of(database) == 1000
    assert (closed_home / "db").stat().st_uid == 0


@pytest.mark.usefixtures("closed_programs")
@pytest.mark.parametrize("is_open", [False, True])
def test_root_runs_it_as_nobody_where_namespaces_are_refused(
    closed_home: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch, is_open: bool
) -> None:
    def nothing() -> Identity | None:
        return None

    monkeypatch.setattr(server, "_namespace_identity", nothing)
    folder = Path(tempfile.mkdtemp(prefix="assay-open-")) if is_open else closed_home / "all"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    try:
        database = embedded(folder / "db")
        database.open()
        assert database.facts()["runs_as"] == "user"
        pid = database.server_pid()
        status = Path(f"/proc/{pid}/status").read_text()
        assert "Uid:\t65534\t65534\t65534\t65534" in status
        # Where everybody may enter, the server keeps none of root's rights.
        assert (f"CapEff:\t{0:016x}" in status) == is_open
        fill(database)
        database.save()
        database.restore()
        assert rows_of(database) == 1000
        database.close()
        monkeypatch.undo()
        # The same folder under another user of the server.
        again = embedded(folder / "db")
        again.open()
        assert rows_of(again) == 1000
        again.close()
    finally:
        if is_open:
            shutil.rmtree(folder)


def test_the_connection_of_the_core_is_the_socket(tmp_path: Path, embedded: Embedded) -> None:
    database = embedded(tmp_path / "db")
    database.open()
    plan = database.connection().core_plan()
    assert plan["host"] is None
    assert plan["password"] is None
    folder, _, name = plan["socket"].rpartition("/")
    assert name == ".s.PGSQL.5432"
    with psycopg.connect(host=folder, user=plan["user"], dbname=plan["database"]) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
