"""What a user has beside an embedded database, or in its place, is never deleted; nor is what others left in /run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from database_folders import SMALL, STRANGER, contents, is_whole, make, need_root, opened

from assay.base.errors import OpenFailed, RefusedTarget
from assay.targets.databases.embedded.temporary import _SAYS, TemporaryFolder, remove_left_behind
from assay_command import Bench


def users_folder(path: Path) -> Path:
    """A folder of the user's with something in it."""
    (path / "photos").mkdir(parents=True)
    (path / "photos/one.jpg").write_text("mine")
    return path


LIKE_2024 = pytest.mark.slow(reason="a number that Assay did not give is tried with data-2024")


@pytest.mark.parametrize(
    "name",
    ["data-2024", pytest.param("saved-7", marks=LIKE_2024), pytest.param("data-1.bak", marks=LIKE_2024), "notes"],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_assay_does_not_know_is_left_alone(bench: Bench, tmp_path: Path, name: str) -> None:
    folder = make(tmp_path / "db")
    before = contents(users_folder(folder / name))

    outcome = bench.assay("oltp", "tpcc", f"embedded:{folder}", "drop", "--no-report", "-o", bench.results)

    assert outcome.code == 2
    assert f"{folder / name} is not Assay's" in outcome.stderr
    assert contents(folder / name) == before
    shutil.rmtree(folder / name)
    assert is_whole(folder)


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_appears_while_the_server_runs_survives(tmp_path: Path) -> None:
    folder, log = tmp_path / "db", tmp_path / "log"
    with opened(folder, f"&wal={log}") as database:
        name = json.loads((folder / "state.json").read_text())["id"]
        theirs = [folder / "data-2", folder / "data-2024", folder / "saved-1", log / f"{name}-wal-3", log / "diary"]
        before = [contents(users_folder(path)) for path in theirs]
        database.execute("CREATE TABLE kept AS SELECT 1 AS one")
        database.save()
        database.restore()
        database.save()
        database.drop_saved()
        assert database.query("SELECT one FROM kept") == [(1,)]
    assert [contents(path) for path in theirs] == before
    ours = {path.name for path in folder.iterdir() if path.is_dir()} - {path.name for path in theirs}
    assert ours == {json.loads((folder / "state.json").read_text())["data"]}


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_name_that_was_assays_is_not_enough(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with opened(folder) as database:
        database.execute("CREATE TABLE kept AS SELECT 1 AS one")
        database.save()
        (saved,) = folder.glob("saved-*")
        # What Assay made is gone, and what has its name is the user's.
        shutil.rmtree(saved)
        before = contents(users_folder(saved))
        database.drop_saved()
        assert contents(saved) == before
    with pytest.raises(RefusedTarget, match="saved-1 is not Assay's"), opened(folder):
        pass
    assert contents(saved) == before


@pytest.mark.parametrize("name", ["data-1", pytest.param("saved-1", marks=pytest.mark.slow(reason="as data-1"))])
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_folder_in_the_place_of_what_counts_is_neither_used_nor_deleted(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "db"
    with opened(folder) as database:
        database.execute("CREATE TABLE kept AS SELECT 1 AS one")
        database.save()
    os.rename(folder / name, tmp_path / "away")
    shutil.copytree(tmp_path / "away", folder / name)
    before = contents(folder / name)

    with pytest.raises(RefusedTarget, match=f"{name} is not the folder that Assay made"), opened(folder):
        pass
    assert contents(folder / name) == before
    shutil.rmtree(folder / name)
    with pytest.raises(OpenFailed, match=f"{name}: No such file"), opened(folder):
        pass
    os.rename(tmp_path / "away", folder / name)
    assert is_whole(folder)


HARDER = pytest.mark.slow(reason="a link as the folder of all is the hardest")


@pytest.mark.parametrize(
    "stands",
    [
        pytest.param("a link", marks=HARDER),
        pytest.param("a folder with things in it", marks=HARDER),
        "a link as the folder of all",
    ],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_tablespace_takes_no_folder_of_the_users(tmp_path: Path, stands: str) -> None:
    theirs = users_folder(tmp_path / "theirs")
    users_folder(theirs / "PG_18_202506291")
    before = contents(theirs)
    places = tmp_path / "places"
    with opened(tmp_path / "db") as database:
        if stands == "a link as the folder of all":
            (tmp_path / "links").mkdir()
            places = tmp_path / "links" / "places"
            places.symlink_to(theirs)
        else:
            places.mkdir()
            if stands == "a link":
                (places / "one").symlink_to(theirs)
            else:
                shutil.copytree(theirs, places / "one")
                before |= contents(places / "one")
        with pytest.raises(RefusedTarget, match="move it away, or name another directory"):
            database.make_place(places / "one")
    after = contents(theirs) | (contents(places / "one") if stands == "a folder with things in it" else {})
    assert after == before


@pytest.mark.slow(reason="only folders of earlier versions take this way")
def test_a_state_of_an_earlier_assay_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with opened(folder, f"&wal={tmp_path}/log") as database:
        database.execute("CREATE TABLE kept AS SELECT 1 AS one")
        database.save()
        database.execute("DROP TABLE kept")
    state = json.loads((folder / "state.json").read_text())
    first = {"format": 1} | {key: state[key] for key in ("id", "data", "saved", "wal")}
    (folder / "state.json").write_text(json.dumps(first))
    if os.geteuid() == 0:
        with pytest.raises(RefusedTarget, match="was run by an earlier Assay as user"), opened(folder):
            pass
        for tree in (folder, tmp_path / "log"):
            for path in tree.rglob("*"):
                os.chown(path, 0, 0, follow_symlinks=False)

    with opened(folder) as database:
        database.restore()
    assert is_whole(folder)
    assert json.loads((folder / "state.json").read_text())["format"] == 2


# Folders for temporary files


def left_behind(base: Path, text: bytes = _SAYS) -> Path:
    """What a process that was killed leaves: its lock is there and not locked."""
    folder = base / f"assay-run-{len(list(base.iterdir())):08d}"
    (folder / "s").mkdir(parents=True)
    (folder / "lock").write_bytes(text)
    return folder


def test_only_what_is_proven_to_be_left_behind_is_removed(tmp_path: Path) -> None:
    base = tmp_path / "run"
    base.mkdir()
    theirs = users_folder(tmp_path / "theirs")
    stale = left_behind(base)
    (stale / "s/link").symlink_to(theirs)
    kept = [left_behind(base, b"mine"), left_behind(base), left_behind(base), left_behind(base), left_behind(base)]
    (kept[1] / "lock").unlink()
    (kept[2] / "lock").unlink()
    (kept[2] / "lock").symlink_to(stale / "lock")
    (kept[3] / "lock").unlink()
    os.mkfifo(kept[3] / "lock")
    held = os.open(kept[4] / "lock", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (base / "assay-run-link0000").symlink_to(theirs)
    kept += [users_folder(base / "assay-run-2024"), users_folder(base / "assay-x1234567"), theirs]
    if os.geteuid() == 0:
        kept += [left_behind(base), left_behind(base)]
        os.chown(kept[-1], STRANGER, STRANGER)
        os.chown(kept[-2] / "lock", STRANGER, STRANGER)
    own = TemporaryFolder(str(base))

    remove_left_behind([str(base), str(tmp_path / "none")])

    assert not stale.exists()
    assert all(path.is_dir() for path in (*kept, own.path))
    assert (theirs / "photos/one.jpg").read_text() == "mine"
    own.remove()
    assert not own.path.exists()
    os.close(held)


HOLD = """
import sys
from assay.targets.databases import open_database, parse_database
from assay.workloads.tpcc.tables import TABLES
database = open_database(parse_database(sys.argv[1]), TABLES)
database.open()
print(database.connection().socket, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_what_a_killed_run_left_is_gone_after_the_next(tmp_path: Path) -> None:
    # Short enough for a socket's path.
    base = Path(tempfile.mkdtemp(prefix="assay-"))
    environment = os.environ | {"XDG_RUNTIME_DIR": str(base)}
    command = [sys.executable, "-c", HOLD, f"embedded:{tmp_path}/db?{SMALL}"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        socket = Path(holder.stdout.readline().strip())
        assert socket.is_relative_to(base)
        # Neither the run nor its launcher can tidy up.
        (launcher,) = psutil.Process(holder.pid).children()
        (server,) = launcher.children()
        for process in (launcher, psutil.Process(holder.pid)):
            process.send_signal(signal.SIGKILL)
    server.send_signal(signal.SIGQUIT)
    psutil.wait_procs([server])
    (left,) = base.iterdir()
    assert left.name.startswith("assay-run-")

    with subprocess.Popen(
        [*command[:-1], f"embedded:{tmp_path}/other?{SMALL}"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as following:  # fmt: skip
        assert following.stdout is not None
        assert following.stdout.readline()
        assert not left.exists()
        (launcher,) = psutil.Process(following.pid).children()
        following.kill()
    # It ends the server, then tidies up what its killed run can not.
    psutil.wait_procs([launcher])
    assert list(base.iterdir()) == []
    base.rmdir()


@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_base_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_root()
    base = Path(tempfile.mkdtemp(prefix="assay-"))
    base.chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with opened(tmp_path / "db"):
        assert list(base.iterdir()) == []
    base.rmdir()


LIKE_A_COMMA = pytest.mark.slow(reason="a comma is no name of a configuration either")


@pytest.mark.parametrize(
    "name",
    [b"one,two", pytest.param(b"two\nlines", marks=LIKE_A_COMMA), pytest.param(b"no text \xff", marks=LIKE_A_COMMA)],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_base_that_no_configuration_can_name_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    base = Path(tempfile.mkdtemp(prefix="assay-")) / os.fsdecode(name)
    base.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with opened(tmp_path / "db"):
        assert list(base.iterdir()) == []
    base.rmdir()
    base.parent.rmdir()


@pytest.mark.slow(reason="a base that no configuration can name is not used either")
def test_a_base_that_depends_on_the_folder_one_is_in_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", ".")
    monkeypatch.chdir(tmp_path)
    with opened(tmp_path / "db"):
        assert [path.name for path in tmp_path.iterdir()] == ["db"]
