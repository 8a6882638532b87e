"""The embedded PostgreSQL: a folder of its own, one server on it, and nothing lost however it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from embedded_database import SMALL, Embedded, fill, rows_of

from assay.base.errors import NotSupported, OpenFailed, OutOfSpace, RefusedTarget, UsageError
from assay.targets.databases import open_database, parse_database
from assay.targets.databases.common.own_folder import MARK
from assay.targets.databases.embedded import server
from assay.targets.databases.embedded.identity import ServerUser
from assay.targets.databases.embedded.programs import Programs
from assay.workloads.tpcc.tables import TABLES

# Life


def test_a_database_outlives_its_server(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
    database.open()
    fill(database)
    pid = database.server_pid()
    assert pid is not None
    database.close()
    assert not Path(f"/proc/{pid}").exists()
    again = embedded(database_folder / "db")
    again.open()
    assert rows_of(again) == 1000


def test_a_server_that_does_not_stop_cleanly_is_stopped_at_once(tmp_path: Path) -> None:
    stubborn = tmp_path / "stubborn"
    # No shell: it cannot trap what was ignored when it began, as in a job in the background.
    stubborn.write_text(
        f"#!{sys.executable}\nimport signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGQUIT, lambda *_: sys.exit(7))\nprint('up', flush=True)\nwhile True: time.sleep(0.05)\n"
    )
    stubborn.chmod(0o700)
    programs = Programs(
        bin=tmp_path, identity=ServerUser(kind="self", uid=os.geteuid(), gid=os.getegid(), client="client")
    )
    command = programs.command("stubborn", lifeline=True, patience_s=0.2)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            process.stdin.close()
            assert process.wait(60) == 7
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_the_server_is_tuned_durable_and_watched(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db", "&set.work_mem=5MB")
    database.open(connections=200)
    settings = database.facts()["settings"]
    expected = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "track_io_timing": "on",
                "track_wal_io_timing": "on", "shared_buffers": "32MB", "work_mem": "5MB"}  # fmt: skip
    assert settings.items() >= expected.items()
    assert database.facts()["version"].startswith("18.")
    assert database.facts()["connections_free"] >= 200
    assert database.query("SELECT count(*) FROM pg_stat_statements")[0][0] > 0
    assert database.query("SHOW listen_addresses") == [("",)]


def test_more_connections_are_to_be_had_by_opening_again(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
    database.open()
    fill(database)
    assert database.facts()["max_connections"] == 100
    database.open(connections=150)
    assert database.facts()["connections_free"] >= 150
    assert rows_of(database) == 1000


def test_a_killed_server_recovers_what_was_committed(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
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
    assert "was not properly shut down" in (database_folder / "db/server.log").read_text()


def test_a_server_is_revived_whether_or_not_its_users_are_back_already(
    database_folder: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = embedded(database_folder / "db", "&set.max_connections=20")
    database.open(connections=10)
    pid = database.server_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, database._server._process.pid, os.WEXITED | os.WNOWAIT)  # type: ignore[union-attr]
    users = []
    make = database._make_database

    def come_back() -> None:
        make()
        users.extend(database.new_session() for _ in range(10))

    monkeypatch.setattr(database, "_make_database", come_back)
    assert database.revive()
    assert users[0].query("SELECT 1") == [(1,)]
    for user in users:
        user.close()


HOLD = """
import os, sys
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
database = open_database(parse_database(sys.argv[1]), TABLES)
database.open()
print(database.server_pid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(database_folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the database of `database_folder/db` open."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, f"embedded:{database_folder}/db?{SMALL}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_two_processes_never_share_a_folder(
    database_folder: Path, embedded: Embedded, holder: subprocess.Popen[str]
) -> None:
    assert holder.stdout is not None
    assert holder.stdout.readline()
    with pytest.raises(UsageError, match=f"in use by another run of Assay \\(process {holder.pid}\\)"):
        embedded(database_folder / "db").open()


@pytest.mark.parametrize(
    "launcher_too", [pytest.param(False, marks=pytest.mark.slow(reason="with its launcher, less is left")), True]
)
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_server_whose_owner_was_killed_makes_way(
    database_folder: Path, embedded: Embedded, holder: subprocess.Popen[str], launcher_too: bool
) -> None:
    assert holder.stdout is not None
    stray = int(holder.stdout.readline())
    left_behind = Path(Path(f"{database_folder}/db/data-1/postmaster.pid").read_text().splitlines()[4])
    assert left_behind.exists()
    if launcher_too:
        os.kill(int(Path(f"/proc/{stray}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
    holder.kill()
    holder.wait()
    database = embedded(database_folder / "db")
    database.open()
    assert database.server_pid() not in (stray, None)
    assert launcher_too or not Path(f"/proc/{stray}").exists()
    assert not left_behind.exists()


def test_the_socket_is_short_and_ours_however_long_the_path(database_folder: Path, embedded: Embedded) -> None:
    folder = database_folder / ("long" * 20) / ("name" * 20)
    folder.parent.mkdir()
    database = embedded(folder)
    database.open()
    path = database.connection().socket
    assert path is not None
    assert len(path) <= server.SOCKET_PATH_BYTES_MAX
    assert Path(path).parent.stat().st_mode & 0o777 == 0o700
    database.close()
    assert not Path(path).parent.exists()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_nobody_else_gets_in(database_folder: Path, embedded: Embedded) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    database = embedded(database_folder / "db")
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


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_the_log_may_be_elsewhere(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db", f"&wal={database_folder}/wal")
    database.open()
    paths = database.storage_paths()
    assert Path(paths["log"]).parent == database_folder / "wal"
    assert Path(paths["data"]).parent == database_folder / "db"
    fill(database)
    database.save()
    fill_more = "INSERT INTO filled SELECT g, 'more' FROM generate_series(1, 500) AS g"
    database.execute(fill_more)
    database.restore()
    assert rows_of(database) == 1000
    assert [path for path in (database_folder / "wal").iterdir() if path.name != MARK] == [
        Path(database.storage_paths()["log"])
    ]
    database.close()
    # It is found again without being named, and not moved by naming another.
    again = embedded(database_folder / "db")
    again.open()
    assert Path(again.storage_paths()["log"]).parent == database_folder / "wal"
    again.close()
    with pytest.raises(UsageError, match=f"its log is in {database_folder}/wal already"):
        embedded(database_folder / "db", f"&wal={database_folder}/other").open()


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_two_databases_may_share_a_folder_for_logs(database_folder: Path, embedded: Embedded) -> None:
    first = embedded(database_folder / "a", f"&wal={database_folder}/wal")
    first.open()
    fill(first)
    second = embedded(database_folder / "b", f"&wal={database_folder}/wal")
    second.open()
    assert rows_of(first) == 1000
    first.close()
    second.close()
    first = embedded(database_folder / "a")
    first.open()
    assert rows_of(first) == 1000


# What is refused


def test_a_folder_with_other_things_in_it_is_left_alone(database_folder: Path, embedded: Embedded) -> None:
    (database_folder / "precious").write_text("mine")
    with pytest.raises(RefusedTarget, match="is not empty and holds no database of Assay"):
        embedded(database_folder).open()
    assert [path.name for path in database_folder.iterdir()] == ["precious"]
    with pytest.raises(RefusedTarget, match=f"the folder {database_folder}/none does not exist"):
        embedded(database_folder / "none/db").open()
    with pytest.raises(RefusedTarget, match="is not a folder"):
        embedded(database_folder / "precious").open()
    with pytest.raises(RefusedTarget, match="is not empty"):
        embedded(database_folder / "db", f"&wal={database_folder}").open()


def test_somebody_elses_cluster_is_not_taken_for_ours(database_folder: Path, embedded: Embedded) -> None:
    (database_folder / "PG_VERSION").write_text("18")
    (database_folder / MARK).write_text("forged")
    with pytest.raises(RefusedTarget, match="is not empty"):
        embedded(database_folder).open()


def test_too_little_room_is_said_before_anything_is_made(
    database_folder: Path, embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.targets.databases.common.own_folder.free_bytes_of", lambda _: 10 * 1024**2)
    with pytest.raises(OutOfSpace, match=r"10 MiB free .* a database needs 256 MiB to begin with"):
        embedded(database_folder / "db").open()


def fill_disk(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_full_disk_is_said(mounted: Callable[..., Path], embedded: Embedded) -> None:
    disk = mounted("-t", "tmpfs", "-o", "size=300m", "none")
    database = embedded(disk / "db")
    database.open()
    with pytest.raises(OutOfSpace, match="no space is left under the server"):
        fill(database, 3_000_000)
    database.execute("CREATE TABLE few AS SELECT 1")
    database.close()
    fill_disk(disk / "ballast")
    with pytest.raises(OutOfSpace, match="free some") as error:
        embedded(disk / "db").open()
    assert "\n" not in str(error.value)
    (disk / "ballast").unlink(missing_ok=True)
    again = embedded(disk / "db")
    again.open()
    assert again.query("SELECT count(*) FROM few") == [(1,)]
    again.execute("CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 60000)")
    with pytest.raises(OutOfSpace, match=r"the saved state needs .* are free"):
        again.save()
    assert again.query("SELECT count(*) FROM few") == [(1,)]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_a_server_without_room_stops_at_once_and_recovers_with_room(
    mounted: Callable[..., Path], embedded: Embedded
) -> None:
    disk = mounted("-t", "tmpfs", "-o", "size=300m", "none")
    database = embedded(disk / "db")
    database.open()
    database.execute("CREATE TABLE few AS SELECT 1")
    fill_disk(disk / "ballast")
    database.close()
    # A clean stop would have said "fast".
    assert "received immediate shutdown request" in (disk / "db/server.log").read_text()
    (disk / "ballast").unlink()
    again = embedded(disk / "db")
    again.open()
    assert again.query("SELECT count(*) FROM few") == [(1,)]
    again.close()
    assert "received fast shutdown request" in (disk / "db/server.log").read_text()


def test_why_the_server_does_not_start_is_one_line(database_folder: Path, embedded: Embedded) -> None:
    database = open_database(parse_database(f"embedded:{database_folder}/db?set.shared_buffers=lots"), TABLES)
    with pytest.raises(OpenFailed, match=r"does not start: .*shared_buffers.*; see .*server\.log") as error:
        database.open()
    assert "\n" not in str(error.value)
    # The folder is free again, and as good as new.
    embedded(database_folder / "db").open()


def test_another_version_and_a_damaged_state_are_refused(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
    database.open()
    database.close()
    (database_folder / "db/data-1/PG_VERSION").write_text("17\n")
    with pytest.raises(NotSupported, match=r"was made by PostgreSQL 17, this is 18\."):
        embedded(database_folder / "db").open()
    (database_folder / "db/state.json").write_text("{")
    with pytest.raises(RefusedTarget, match="damaged or of another version"):
        embedded(database_folder / "db").open()


def test_the_connection_of_the_core_is_the_socket(database_folder: Path, embedded: Embedded) -> None:
    database = embedded(database_folder / "db")
    database.open()
    plan = database.connection().core_plan()
    assert plan["host"] is None
    assert plan["password"] is None
    folder, _, name = plan["socket"].rpartition("/")
    assert name == ".s.PGSQL.5432"
    with psycopg.connect(host=folder, user=plan["user"], dbname=plan["database"]) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
