"""Notes, stores and folders of served arrays that another user planted: root neither follows nor unmounts any of them.

Everything that mounts does so in the mount namespace of the tests (`conftest.py`).
"""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.base.errors import AssayError, NotAnswering, UsageError
from assay.targets.arrays.live import folder, loops, volumes
from assay.targets.arrays.live.place import ArrayNote, ArrayPlace
from assay_command import Bench

STRANGER = 12345
ARRAY = ("array", "serve", "ps6100xv?raid=5&volumes=data:1,log:1", "--size", "128M", "--duration", "0.1s")

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK) or not Path("/dev/loop-control").exists(),
    reason="mounts and users of others take root, /dev/fuse and loop devices",
)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that every user may write to, as /tmp."""
    made = tmp_path / "shared"
    made.mkdir()
    made.chmod(0o1777)
    return made


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A file system and a loop device of somebody else."""
    image, place = tmp_path / "image", tmp_path / "theirs"
    place.mkdir()
    with image.open("w+b") as file:
        file.truncate(128 << 20)
        with loops.attached(file.fileno(), str(image)) as number:
            subprocess.run(("mkfs.ext4", "-q", loops.device_path(number)), check=True, capture_output=True)
            onto = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            loops.mount_ext4(number, onto)
            os.close(onto)
            yield place, number
            loops.unmount(str(place))


def plant_note(at: Path, text: str | bytes, uid: int = 0) -> Path:
    note = at.with_name(f".{at.name}.assay-array")
    note.write_bytes(text if isinstance(text, bytes) else text.encode())
    note.chmod(0o600)
    os.chown(note, uid, uid)
    return note


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Owner, mode and bytes of each file below a folder, and of the folder."""

    def seen(path: Path) -> tuple[int, int, bytes]:
        status = path.lstat()
        return status.st_uid, status.st_mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else b""

    return {str(path): seen(path) for path in (folder, *folder.rglob("*"))}


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def test_a_note_says_nothing_that_is_unmounted_or_detached(
    bench: Bench, shared: Path, mounted: tuple[Path, int]
) -> None:
    """`umount -a` and `losetup -d -D` were run of a note's words, and whatever path or device stood there."""
    place, number = mounted
    (shared / "group").mkdir()
    store = shared / "group.store"
    words = {"loops": ["-D", f"/dev/loop{number}"], "mounts": ["-a", str(place)], "is_new": True}
    note = plant_note(shared / "group", json.dumps({"store": str(store), "pid": 1, **words}))

    cleaned = bench.assay("array", "clean", "--at", shared / "group")

    assert (cleaned.code, cleaned.stdout) == (0, f"{shared}/group: nothing was left but the note\n")
    assert str(place) in mounts()
    assert Path(f"/sys/block/loop{number}/loop/backing_file").exists()
    assert not note.exists()


@pytest.mark.parametrize("how", ["another user's", "a link", "a second name", "others may write", "a pipe", "a folder"])
def test_a_note_that_this_user_did_not_write_is_refused(bench: Bench, shared: Path, how: str) -> None:
    """The owner was asked by a path that was followed, and the file was opened again after."""
    (shared / "group").mkdir()
    text = json.dumps({"store": str(shared / "group.store"), "pid": 1, "is_new": True})
    note = plant_note(shared / "group", text, STRANGER if how == "another user's" else 0)
    if how == "a link":
        note.rename(shared / "real")
        note.symlink_to("real")
    elif how == "a second name":
        os.link(note, shared / "second")
    elif how == "others may write":
        note.chmod(0o666)
    elif how in ("a pipe", "a folder"):
        note.unlink()
        os.mkfifo(note) if how == "a pipe" else note.mkdir()

    for verb in ("clean", "status"):
        refused = bench.assay("array", verb, "--at", shared / "group")
        assert refused.code == 2, refused
        assert str(note) in refused.complaint
    assert (shared / "group").exists()
    assert os.path.lexists(note)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "null",
        "{}",
        '{"store": 5, "pid": 1}',
        '{"store": ["/x"], "pid": 1}',
        '{"store": "relative", "pid": 1}',
        '{"store": "/x\\u0000y", "pid": 1}',
        '{"store": "/x", "pid": "one"}',
        '{"store": "/x", "pid": -1}',
        '{"store": "/x", "pid": 1e400}',
        '{"store": "/x", "pid": 1, "is_new": "yes"}',
        "[" * 100_000,
        '{"store": "/' + "x" * 20_000 + '", "pid": 1}',
        b"\xff\xfe\x00",
    ],
)
def test_a_note_of_wrong_types_is_one_line(bench: Bench, shared: Path, text: str | bytes) -> None:
    """Three notes in seven were a fault of Assay itself."""
    (shared / "group").mkdir()
    plant_note(shared / "group", text)

    for command in (("array", "clean"), ("array", "pull", "member0/disk1"), ARRAY):
        outcome = bench.assay(*command, "--at", shared / "group")
        assert outcome.code == 2, outcome
        assert "is damaged" in outcome.complaint


def test_cleaning_takes_only_what_lies_where_the_array_put_it(shared: Path, mounted: tuple[Path, int]) -> None:
    """A file system that somebody else mounted below the array's folder, or on top of the array's own, stays."""
    theirs, number = mounted
    with ArrayPlace.open(shared / "group") as place:
        os.close(place.make_mounts())
        (place.mounts / "data01").mkdir()
        onto = os.open(place.mounts / "data01", os.O_RDONLY | os.O_DIRECTORY)
        loops.mount_ext4(number, onto)
        os.close(onto)
        try:
            assert volumes.unmount_volumes(place) == []
            assert f"{place.mounts}/data01" in mounts()
            assert str(theirs) in mounts()
        finally:
            loops.unmount(str(place.mounts / "data01"))


def a_store_of_another_user(shared: Path, _victim: Path) -> None:
    (shared / "group.store").mkdir()
    os.chown(shared / "group.store", STRANGER, STRANGER)


def a_store_that_others_may_write_to(shared: Path, _victim: Path) -> None:
    (shared / "group.store").mkdir()
    (shared / "group.store").chmod(0o777)


def a_link_as_store(shared: Path, victim: Path) -> None:
    (shared / "group.store").symlink_to(victim)


def a_link_to_nowhere_as_store(shared: Path, victim: Path) -> None:
    (shared / "group.store").symlink_to(victim / "new")


def a_link_as_folder_of_file_systems(shared: Path, victim: Path) -> None:
    (shared / "group.mnt").symlink_to(victim)


def another_users_folder_of_file_systems(shared: Path, victim: Path) -> None:
    (shared / "group.mnt").mkdir()
    (shared / "group.mnt" / "data01").symlink_to(victim)
    os.chown(shared / "group.mnt", STRANGER, STRANGER)


def a_link_where_a_file_system_goes(shared: Path, victim: Path) -> None:
    (shared / "group.mnt").mkdir()
    (shared / "group.mnt" / "data01").symlink_to(victim)


def a_link_as_folder(shared: Path, victim: Path) -> None:
    (shared / "group").symlink_to(victim)


def another_users_folder(shared: Path, _victim: Path) -> None:
    (shared / "group").mkdir()
    os.chown(shared / "group", STRANGER, STRANGER)


def a_way_that_others_may_write_to(shared: Path, _victim: Path) -> None:
    shared.chmod(0o777)


def a_way_of_another_user(shared: Path, _victim: Path) -> None:
    os.chown(shared, STRANGER, STRANGER)


@pytest.mark.parametrize(
    "plant",
    [
        a_store_of_another_user,
        a_store_that_others_may_write_to,
        a_link_as_store,
        a_link_to_nowhere_as_store,
        a_link_as_folder_of_file_systems,
        another_users_folder_of_file_systems,
        a_link_where_a_file_system_goes,
        a_link_as_folder,
        another_users_folder,
        a_way_that_others_may_write_to,
        a_way_of_another_user,
    ],
)
def test_what_another_user_planted_is_neither_used_nor_mounted_over(
    bench: Bench, tmp_path: Path, shared: Path, plant: Callable[[Path, Path], None]
) -> None:
    """A volume was mounted over the folder that a planted link named, and its root was given to another user."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("precious")
    plant(shared, victim)
    before = contents(tmp_path / "victim")
    planted = sorted(path.name for path in shared.iterdir())

    outcome = bench.assay(*ARRAY, "--at", shared / "group", "--mkfs", "ext4", "--owner", "nobody")

    assert outcome.code == 2, outcome
    assert str(shared) in outcome.complaint
    assert contents(victim) == before
    assert str(shared) not in mounts()
    # A store that was made first may stay; the note and the folder do not.
    assert {path.name for path in shared.iterdir()} - {*planted, "group.store"} == set()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_others_read_no_byte_of_a_volume(bench: Bench, shared: Path, umask: int) -> None:
    """Stores were 0755 and their images 0644: another user found a row's text in them."""
    before = os.umask(umask)
    try:
        with bench.started(*ARRAY[:-2], "--at", shared / "group", "--mkfs", "ext4", "--owner", "12345") as running:
            running.wait_until(lambda: "served until" in running.stderr)
            place = shared / "group.mnt" / "data01"
            assert (place.stat().st_uid, stat.S_IMODE(place.stat().st_mode)) == (12345, 0o700)
            assert stat.S_IMODE((shared / "group.mnt").stat().st_mode) == 0o711
            assert stat.S_IMODE((shared / "group" / "data01").stat().st_mode) == 0o600
            assert stat.S_IMODE((shared / ".group.assay-array").stat().st_mode) == 0o600
            running.process.terminate()
            assert running.end().code == 130
    finally:
        os.umask(before)
    found = {
        path.name: mode
        for path in (shared / "group.store", *(shared / "group.store").rglob("*"))
        if (mode := stat.S_IMODE(path.lstat().st_mode)) & 0o077
    }
    assert found == {}
    assert [path.name for path in shared.iterdir()] == ["group.store"]


@pytest.mark.parametrize(
    "name", ["group", "a b\nc", "tab\there", "back\\slash", "x\\040y", "-D", "ünï", "%s", 'quo"te', "n" * 242]
)
def test_what_a_killed_server_left_is_found_again_and_taken_away(bench: Bench, shared: Path, name: str) -> None:
    """Loop devices of a folder whose server is gone have lost its path: such a device goes with its mount."""
    at = shared / name
    before = loop_devices()
    with bench.started(*ARRAY[:-2], "--at", at, "--mkfs", "ext4", forked=False) as running:
        running.wait_until(lambda: "served until" in running.stderr)
        running.process.kill()
        running.process.wait()
    assert "is there already" in (again := bench.assay(*ARRAY, "--at", at)).complaint or "was killed" in again.complaint

    cleaned = bench.assay("array", "clean", "--at", at, "--json")

    assert cleaned.code == 0
    assert {str(at.parent / f"{name}.mnt" / volume) for volume in ("data01", "log01")} <= set(
        cleaned.document["undone"]
    )
    assert [path.name for path in shared.iterdir()] == [f"{name}.store"]
    assert str(shared) not in mounts()
    assert loop_devices() == before


def loop_devices() -> list[str]:
    return sorted(str(path) for path in Path("/sys/block").glob("loop*/loop/backing_file"))


def test_a_note_that_finds_no_room_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k", "none", full), check=True)
    try:
        (full / "filling").write_bytes(bytes(64 << 10))
        outcome = bench.assay(*ARRAY, "--at", full / "group")
        assert (outcome.code, "No space" in outcome.complaint) == (3, True)
        assert [path.name for path in full.iterdir()] == ["filling"]
    finally:
        subprocess.run(("umount", full), check=True)


def test_a_volume_that_holds_another_file_system_is_not_formatted(bench: Bench, shared: Path) -> None:
    with bench.started(*ARRAY[:-2], "--at", shared / "group") as running:
        running.wait_until(lambda: "served until" in running.stderr)
        with (shared / "group" / "data01").open("r+b") as volume:
            volume.write(b"XFSB")
        running.process.terminate()
        running.end()

    outcome = bench.assay(*ARRAY, "--at", shared / "group", "--mkfs", "ext4")

    assert (outcome.code, "data01: holds XFS" in outcome.complaint) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--at", "/"), "has no name of its own"),
        (("--at", ".."), "has no name of its own"),
        (("--at", "n" * 250), "longer than"),
        (("--at", "caf\udce9"), "no UTF-8"),
        (("--at", "group", "--store", "caf\udce9"), "no UTF-8"),
        (("--at", "group", "--owner", "no such\nuser", "--mkfs", "ext4"), "there is no user"),
        (("--at", "group", "--owner", "4294967295", "--mkfs", "ext4"), "there is no user"),
        (("--at", "-a"), ""),
    ],
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_odd_names_are_refused_or_are_names(bench: Bench, arguments: tuple[str, ...], complaint: str) -> None:
    """`--at /` was a fault of Assay itself."""
    outcome = bench.assay(*ARRAY, *arguments)

    if complaint:
        assert (outcome.code, complaint in outcome.complaint) == (2, True)
    else:
        assert outcome.code == 0
    for verb in ("clean", "status"):
        assert bench.assay("array", verb, *arguments[:2]).code == 2


def test_a_log_is_not_written_through_a_link_that_comes_meanwhile(bench: Bench, tmp_path: Path, shared: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    command = (*ARRAY[:-2], "--at", shared / "group", "--log", shared / "log.json")
    with bench.started(*command) as running:
        running.wait_until(lambda: "served until" in running.stderr)
        (shared / "log.json").symlink_to(victim)
        running.process.terminate()
        assert running.end().code == 3
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "answer",
    [
        b"[]\n",
        b"7\n",
        b"{}}\n",
        b'{"refused": 5}\n',
        b'{"done": 1, "more": 2}\n',
        b"[" * 200_000 + b"\n",
        b"\xff\n",
        b"",
    ],
)
def test_what_answers_instead_of_a_server_is_told_in_one_line(tmp_path: Path, answer: bytes) -> None:
    store = tmp_path / "store"
    store.mkdir()
    with ArrayPlace.open(tmp_path / "group") as place, socket.socket(socket.AF_UNIX) as server:
        place.write_note(ArrayNote(store=str(store), pid=1))
        server.bind(str(store / "control.sock"))
        server.listen()

        def answered() -> None:
            connection, _ = server.accept()
            with connection:
                connection.makefile("rb").readline()
                connection.sendall(answer)

        thread = threading.Thread(target=answered)
        thread.start()
        with pytest.raises((NotAnswering, UsageError)) as told:
            folder.ask(tmp_path / "group", {"command": "status"})
        thread.join()
        assert isinstance(told.value, AssayError)
        assert "\n" not in str(told.value)
