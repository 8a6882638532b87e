"""A second round of planting in an embedded database's folder: other names, other kinds of things, other timings.

The attackers are another user of the machine, and who has the rights of the server's own user: the latter owns the data
directory, and so what its `postmaster.pid` says.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from database_folders import STRANGER, contents, is_whole, make, need_root, opened
from mount_namespace import mount_namespace

from assay.base.errors import RefusedTarget
from assay.targets.databases.embedded.server import stop_stray
from assay_command import Bench

CHECK = ("oltp", "tpcc", "check", "--no-report")


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


# Mounts beneath, which have the number of the same file system


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a saved state, its log elsewhere; mounts on it end with their namespace."""
    folder = tmp_path_factory.mktemp("mounted")
    with opened(make(folder / "db", f"&wal={folder}/wal")) as running:
        running.save()
    return folder / "db"


@pytest.mark.parametrize(
    "place",
    [
        "data-1/base",
        "data-1/pg_tblspc",
        "data-1/PG_VERSION",
        "saved-1/global",
        "saved-1/PG_VERSION",
        "../wal/*/summaries",
    ],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_mount_beneath_is_refused(tmp_path: Path, database: Path, victim: Path, place: str) -> None:
    (path,) = database.parent.glob(f"db/{place}") if "*" not in place else database.parent.glob(place[3:])
    with mount_namespace() as namespace:
        namespace.tool("mount", "--bind", victim / "precious" if path.is_file() else victim, path)
        words = (*CHECK[:2], f"embedded:{database}", *CHECK[2:])
        outcome = namespace.assay(tmp_path, *words, "-o", tmp_path / "results")

    assert outcome.code == 2, outcome.stderr
    assert outcome.stderr.splitlines()[-1].endswith(
        f"{path} is a mount; remove it if you know it, or give another folder"
    )


def test_the_mounted_database_survived_all_of_this(database: Path) -> None:
    assert is_whole(database)


# Things that are neither files nor folders, and second names


def unix_socket(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, _: Path) -> None:
        (database / name).unlink(missing_ok=True)
        # The path of a socket is short.
        here = os.getcwd()
        os.chdir((database / name).parent)
        try:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(Path(name).name)
        finally:
            os.chdir(here)

    return plant


def link(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, victim: Path) -> None:
        (database / name).unlink(missing_ok=True)
        (database / name).symlink_to(victim / "precious")

    return plant


def second_name(name: str) -> Callable[[Path, Path], None]:
    def plant(database: Path, victim: Path) -> None:
        (database / name).unlink(missing_ok=True)
        (database / name).hardlink_to(victim / "precious")

    return plant


def device(database: Path, _: Path) -> None:
    need_root()
    os.mknod(database / "data-1/global/1", 0o600 | 0o020000, os.makedev(1, 3))


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    **{f"a socket at {name}": unix_socket(name) for name in ("server.log", "state.json", "data-1/.s.PGSQL.5432")},
    **{f"a link at {name}": link(name) for name in
       ("data-1/postmaster.pid", "data-1/postmaster.opts", "data-1/pg_hba.conf", "data-1/pg_hba.conf.assay",
        "data-1/backup_label", "data-1/tablespace_map", "data-1/pg_tblspc/1663", "data-1/log",
        "saved-1/recovery.signal", ".assay-database.assay", "server.log.2")},
    **{f"a second name at {name}": second_name(name) for name in
       ("data-1/postmaster.pid", "data-1/pg_ident.conf", "data-1/base/1/2619", "saved-1/global/pg_control",
        "data-1/pg_wal/000000010000000000000001", ".assay-database")},
    "a device": device,
}  # fmt: skip


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_is_refused(planted_in: Path, victim: Path, planted: str) -> None:
    PLANTED[planted](planted_in, victim)
    words = r"is a link|is not Assay's|second name|is no file|is neither a file|is not empty and holds no database"
    with pytest.raises(RefusedTarget, match=words), opened(planted_in):
        pass


@pytest.fixture
def planted_in(whole: Path) -> Iterator[Path]:
    """The database of the module under a name of its own; what a test plants there goes with the test."""
    kept = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file() and not path.is_symlink()}
    owners = {path: path.lstat() for path in whole.rglob("*")}
    yield whole
    for path in sorted(whole.rglob("*"), reverse=True):
        is_as_it_was = path in owners and stat.S_IFMT(path.lstat().st_mode) == stat.S_IFMT(owners[path].st_mode)
        if not is_as_it_was or (path in kept and path.lstat().st_nlink != 1):
            path.unlink()
    for path, content in kept.items():
        if not path.exists():
            path.write_bytes(content)
            path.chmod(owners[path].st_mode & 0o777)
            os.chown(path, owners[path].st_uid, owners[path].st_gid)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a saved state; each test leaves it as it was."""
    folder = make(tmp_path_factory.mktemp("again") / "db")
    with opened(folder) as running:
        running.save()
    return folder


def test_the_database_survived_all_of_this(whole: Path) -> None:
    assert is_whole(whole)


# Links that flip while the folder is opened


FLIP = """
while :; do
    for target in "$2" "$3"; do ln -sfn "$target" "$1.new" && mv -T "$1.new" "$1"; done
    [ -z "$said" ] && said=1 && echo ready
done
"""


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_link_that_flips_is_never_followed(public_bench: Bench, victim: Path) -> None:
    need_root()
    shared = public_bench.folder
    shared.chmod(0o1777)
    (shared / "own").mkdir()
    before = contents(make(shared / "own/db"))
    words = ["/bin/sh", "-c", FLIP, "sh", str(shared / "way"), str(shared / "own"), str(victim)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, user=STRANGER, group=STRANGER, extra_groups=[], cwd="/", start_new_session=True
    ) as flipping:
        try:
            assert flipping.stdout is not None
            assert flipping.stdout.readline() == b"ready\n"
            for name in ("db", "new"):
                for _ in range(50):
                    with (
                        pytest.raises(RefusedTarget, match=f"belongs to user {STRANGER}"),
                        opened(shared / "way" / name),
                    ):
                        pass
        finally:
            os.killpg(flipping.pid, signal.SIGKILL)
    assert contents(shared / "own/db") == before
    assert [path.name for path in (shared / "own").iterdir()] == ["db"]


# What the server's user may write into `postmaster.pid`


@contextmanager
def sleeping(uid: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a user that stands in a folder."""
    # A shell starts jobs in the background with the signal ignored.
    words = ["env", "--default-signal=INT", "/bin/sh", "-c", "echo up; exec sleep 600"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[], cwd=folder) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            yield process
        finally:
            process.kill()


def test_a_process_of_another_user_that_stands_in_the_data_is_not_stopped(tmp_path: Path) -> None:
    need_root()
    data = tmp_path / "data-1"
    data.mkdir()
    # The administrator has gone there to look; the server's user writes the number of the administrator's shell.
    with sleeping(0, data) as process:
        (data / "postmaster.pid").write_text(f"{process.pid}\n")
        stop_stray(data, {STRANGER})
        assert process.poll() is None
        for number in ("-1", "0", "1", "9" * 5000, "\u0661", "12 34", ""):
            (data / "postmaster.pid").write_text(f"{number}\n")
            stop_stray(data, {0, STRANGER})
        assert process.poll() is None
        # One of the server's user is its server.
        (data / "postmaster.pid").write_text(f"{process.pid}\n")
        stop_stray(data, {0})
        assert process.wait(60) == -signal.SIGINT


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_number_that_another_process_has_by_now_keeps_no_database_from_starting(tmp_path: Path) -> None:
    need_root()
    folder = make(tmp_path / "db")
    with opened(folder) as database:
        pid = database.server_pid()
        assert pid is not None
        launcher = database._server._process  # type: ignore[union-attr]
        assert launcher is not None
        owner = (folder / "data-1").stat().st_uid
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, launcher.pid, os.WEXITED | os.WNOWAIT)
        # After a crash numbers begin anew, and the server's user may have processes besides.
        with sleeping(owner, Path("/")) as other:
            file = folder / "data-1/postmaster.pid"
            file.write_text(re.sub(r"^\d+", str(other.pid), file.read_text()))
            assert database.revive()
            assert database.query("SELECT one FROM kept") == [(1,)]
            assert other.poll() is None


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_killed_server_leaves_no_memory_behind(tmp_path: Path) -> None:
    need_root()
    folder = make(tmp_path / "db")
    with opened(folder) as database:
        pid = database.server_pid()
        assert pid is not None
        mapped = {*re.findall(r"/dev/shm/(PostgreSQL\.\d+)", Path(f"/proc/{pid}/maps").read_text())}
        assert mapped
        assert mapped.isdisjoint(os.listdir("/dev/shm"))
        database.lose_power()
        assert mapped.isdisjoint(os.listdir("/dev/shm"))
        database.regain_power()
        assert database.query("SELECT one FROM kept") == [(1,)]
