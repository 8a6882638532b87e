"""`assay array serve` and commands to it: real bytes, faults that `assay verify` finds, and nothing left behind."""

from __future__ import annotations

import array
import errno
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from serving import ARRAY, SIZE, VOLUME_BYTES, Served, aligned, direct, mounts, pattern, read, serving

from mounting import needs_fuse

if TYPE_CHECKING:
    from assay_command import Bench

pytestmark = needs_fuse


def test_a_volume_is_a_disk_of_its_size_and_nothing_else(bench: Bench) -> None:
    with serving(bench) as served:
        assert sorted(path.name for path in served.folder.iterdir()) == ["data01", "log01"]
        assert served.data.stat().st_size == VOLUME_BYTES
        content = pattern(64 << 10)
        with direct(served.data) as file:
            assert os.pwritev(file, [aligned(content)], 12 << 10) == len(content)
            os.fsync(file)
            assert read(file, len(content), 12 << 10) == content
            # At its end a disk gives what is left, and takes no more.
            assert len(read(file, 8192, VOLUME_BYTES - 4096)) == 4096
            with pytest.raises(OSError, match=r"No space|too large") as full:
                os.pwritev(file, [aligned(bytes(4096))], VOLUME_BYTES)
            assert full.value.errno in (errno.ENOSPC, errno.EFBIG)
            with pytest.raises(OSError, match="Invalid") as torn:
                os.pwritev(file, [memoryview(aligned(bytes(4096)))[:100]], 0)
            assert torn.value.errno == errno.EINVAL
            with pytest.raises(OSError, match="not permitted"):
                os.ftruncate(file, 4096)
            # The C library tries it with small writes then, which O_DIRECT refuses.
            with pytest.raises(OSError, match=r"not supported|Invalid"):
                os.posix_fallocate(file, 0, VOLUME_BYTES * 2)
        with direct(served.data, os.O_DSYNC) as file:
            assert os.pwritev(file, [aligned(content)], 0) == len(content)
        with served.data.open("r+b", buffering=0) as file:
            # Through the page cache any bytes can be written, as on a block device.
            file.seek(1001)
            file.write(b"unaligned")
        assert served.data.read_bytes()[1001:1010] == b"unaligned"
        with pytest.raises(PermissionError):
            (served.folder / "data01").unlink()
        with pytest.raises(PermissionError):
            (served.folder / "other").touch()
        assert served.status()["lateness"]["count"] > 0


def test_a_pulled_disk_is_rebuilt_and_every_page_is_right(bench: Bench) -> None:
    with serving(bench) as served:
        volumes = ("--volume", f"data={served.data},log={served.folder / 'log01'}")
        allowed = [text for path in served.folder.iterdir() for text in ("--overwrite", str(path))]
        pulls = served.command("pull", "member0/disk3", "--no-spare")
        assert (pulls.code, pulls.stdout) == (0, "member0/disk3: pulled\n")
        degraded = bench.verify(*volumes, *allowed, "--duration", "1s", "--json")
        assert (degraded.code, degraded.document["integrity"]["passed"]) == (0, True)
        assert "rebuild begins" in served.command("insert").stdout
        served.running.wait_until(lambda: "member0/disk3: rebuilt" in served.running.stderr)
        # Only now may another go: what was rebuilt makes up for it.
        assert "lost" not in served.command("pull", "member0/disk5", "--no-spare").stdout
        content = pattern(1 << 20)
        with direct(served.data) as file:
            os.pwritev(file, [aligned(content)], 0)
            assert read(file, len(content), 0) == content


def chunk_at(descriptor: int, at: int) -> bytes | None:
    """A chunk, or none where it is lost."""
    try:
        return read(descriptor, 64 << 10, at)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return None


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_second_disk_of_raid_5_takes_data_with_it_and_says_so(bench: Bench) -> None:
    with serving(bench) as served, direct(served.data) as file:
        content = pattern(8 << 20)
        os.pwritev(file, [aligned(content)], 0)
        served.command("pull", "member0/disk3", "--no-spare")
        told = served.command("pull", "member0/disk4", "--no-spare").stdout
        lost = served.status()["members"][0]["lost_chunks"]
        assert lost > 0
        assert f"{lost} chunks of data are lost" in told
        events = [event["what"] for event in served.status()["events"]]
        warned = next(at for at, what in enumerate(events) if f"with it {lost} chunks of data go" in what)
        assert events[warned + 1].startswith("member0/disk4: pulled")
        found = [chunk_at(file, at) for at in range(0, len(content), 64 << 10)]
        failed = found.count(None)
        assert all(chunk in (None, content[at * 65536 :][:65536]) for at, chunk in enumerate(found))
        assert 0 < failed < 128


@pytest.mark.parametrize(
    ("cache", "code"),
    [
        ("battery", 0),
        pytest.param("volatile", 0, marks=pytest.mark.slow(reason="tests/store cuts the power of such caches")),
        ("lying", 4),
    ],
)
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_a_power_cut_takes_what_a_cache_that_lies_has_acknowledged(bench: Bench, cache: str, code: int) -> None:
    with serving(bench, "--cache", cache) as served:
        volumes = ("--volume", f"data={served.data},log={served.folder / 'log01'}")
        allowed = [text for path in served.folder.iterdir() for text in ("--overwrite", str(path))]
        journal = bench.folder / "journal"
        assert bench.verify(*volumes, *allowed, "--duration", "1s", "--crash-journal", journal).code == 0
        assert "power cut" in served.command("cut-power").stdout
        assert served.command("restore").stdout == "power restored\n"
        after = bench.verify(*volumes, *allowed, "--after-crash", journal, "--json")
        assert after.code == code
        if code:
            assert "acknowledged" in after.stderr


@pytest.mark.parametrize(("sums", "code"), [("--no-sums", 4), ("--sums", 0)])
@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_silent_corruption_is_found_by_verify_where_the_array_has_no_sums(bench: Bench, sums: str, code: int) -> None:
    with serving(bench, sums) as served:
        volumes = ("--volume", f"data={served.data},log={served.folder / 'log01'}")
        allowed = [text for path in served.folder.iterdir() for text in ("--overwrite", str(path))]
        journal = bench.folder / "journal"
        assert bench.verify(*volumes, *allowed, "--duration", "1s", "--crash-journal", journal).code == 0
        told = served.command("corrupt", "member0/disk3", "64K").stdout
        assert "corrupted" in told
        after = bench.verify(*volumes, *allowed, "--after-crash", journal, "--json")
        assert after.code == code
        assert (served.status()["members"][0]["healed_blocks"] > 0) == (code == 0)


def test_a_snapshot_brings_back_what_was_there_once_nothing_is_in_use(bench: Bench) -> None:
    with serving(bench) as served:
        before, after = pattern(256 << 10, 1), pattern(256 << 10, 2)
        with direct(served.data) as file:
            os.pwritev(file, [aligned(before)], 0)
            assert served.command("snapshot", "monday").code == 0
            os.pwritev(file, [aligned(after)], 0)
            refused = served.command("revert", "monday")
            assert (refused.code, "data01 in use" in refused.complaint) == (2, True)
        # The kernel tells of the last close in its own time.
        served.running.wait_until(lambda: not served.status()["in_use"])
        assert served.command("revert", "monday").code == 0
        with direct(served.data) as file:
            assert read(file, len(before), 0) == before


def test_bytes_outlive_the_server_and_another_array_is_refused_its_store(bench: Bench) -> None:
    content = pattern(128 << 10)
    with serving(bench) as served, direct(served.data) as file:
        os.pwritev(file, [aligned(content)], 0)
        arguments = ("--store", bench.folder / "array.store", "--size", SIZE)
        second = bench.assay("array", "serve", ARRAY, "--at", bench.folder / "b", *arguments)
        assert (second.code, "another server has this store" in second.complaint) == (2, True)
        taken = bench.assay("array", "serve", ARRAY, "--at", served.folder)
        assert (taken.code, "served there already" in taken.complaint) == (2, True)
    with serving(bench) as served, direct(served.data) as file:
        assert read(file, len(content), 0) == content
    raid6 = ARRAY.replace("raid=5", "raid=6")
    other = bench.assay("array", "serve", raid6, "--at", bench.folder / "array", "--size", SIZE)
    assert (other.code, "the store is of another array" in other.complaint) == (2, True)


def test_a_killed_server_leaves_no_io_that_hangs_and_clean_takes_the_rest(bench: Bench) -> None:
    folder = bench.folder / "array"
    with bench.started("array", "serve", ARRAY, "--at", folder, "--size", SIZE, forked=False) as running:
        running.wait_until(lambda: "served until" in running.stderr)
        with direct(folder / "data01") as file:
            running.process.kill()
            running.process.wait()
            with pytest.raises(OSError, match=r"not connected|aborted|Input/output"):
                read(file, 4096, 0)
    gone = bench.assay("array", "status", "--at", folder)
    assert (gone.code, "assay array clean" in gone.complaint) == (2, True)
    refused = bench.assay("array", "serve", ARRAY, "--at", folder, "--size", SIZE)
    assert (refused.code, "assay array clean" in refused.complaint) == (2, True)
    assert bench.assay("array", "clean", "--at", folder).code == 0
    assert str(folder) not in mounts()
    assert not folder.exists()
    assert not (bench.folder / ".array.assay-array").exists()


def write_all(file: int) -> None:
    for at in range(0, VOLUME_BYTES, 1 << 20):
        os.pwritev(file, [aligned(pattern(1 << 20))], at)


def test_root_mounts_without_fusermount_and_a_killed_server_leaves_no_mount(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The programs of administrators are found without PATH, and fusermount3 is none of these.
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = bench.folder / "array"
    with serving(bench) as served:
        content = pattern(8192)
        with direct(served.data) as file:
            assert os.pwritev(file, [aligned(content)], 0) == len(content)
            assert read(file, len(content), 0) == content
        assert f"{folder} rw,nosuid,nodev,noexec" in mounts()
        (child,) = psutil.Process(served.running.process.pid).children()
        assert any(argument.endswith("/fuse_mounter.py") for argument in child.cmdline())
    with bench.started("array", "serve", ARRAY, "--at", folder, "--size", SIZE, forked=False) as running:
        running.wait_until(lambda: "served until" in running.stderr)
        (child,) = psutil.Process(running.process.pid).children()
        running.process.kill()
        child.wait(60)
        assert str(folder) not in mounts()
    assert bench.assay("array", "clean", "--at", folder).code == 0


def test_a_store_without_room_says_so_and_goes_on(bench: Bench) -> None:
    with serving(bench, "--room", "4M") as served, direct(served.data) as file:
        with pytest.raises(OSError, match="No space"):
            write_all(file)
        assert read(file, 1 << 20, 0) == pattern(1 << 20)


def test_status_says_what_each_volume_was_asked_for_and_how_late_answers_were(bench: Bench) -> None:
    with serving(bench) as served, direct(served.data) as file:
        os.pwritev(file, [aligned(pattern(8192))], 0)
        for _ in range(3):
            read(file, 4096, 0)
        status = served.status()
    counted = status["volumes"][0]["served"]
    assert [counted[each] for each in ("reads", "read_bytes", "writes", "write_bytes")] == [3, 3 * 4096, 1, 8192]
    assert counted["read_ns"] > 0
    assert status["lateness"]["count"] == 4
    assert status["floor_ns"] > 0


def write_synced(path: Path, mebibytes: int) -> None:
    with path.open("wb") as file:
        for _ in range(mebibytes):
            file.write(pattern(1 << 20))
            file.flush()
            os.fsync(file.fileno())


@pytest.mark.slow(reason="a store without room is tried without a file system")
def test_a_file_system_in_a_store_without_room_fails_and_nothing_hangs(bench: Bench) -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("there are no loop devices here")
    with serving(bench, "--mkfs", "ext4", "--room", "48M", size="256M") as served:
        with pytest.raises(OSError, match=r"No space|Input/output|Read-only"):
            write_synced(bench.folder / "array.mnt" / "data01" / "much", 96)
        told = [event["what"] for event in served.status()["events"]]
        assert told.count("data01: the store has no room left") == 1


def test_a_filled_store_answers_that_there_is_no_room_sooner(bench: Bench) -> None:
    with serving(bench, "--room", "64M", array="fas2040?volumes=data:1", size="64M") as served:
        told = served.command("fill", "94%").stdout
        assert "94 % of the pool's places are used" in told
        assert "94 % of the store's room is used" in told
        with direct(served.data) as file, pytest.raises(OSError, match="No space"):
            write_all(file)
        less = served.command("fill", "20%")
        assert (less.code, "used already" in less.complaint) == (2, True)


def test_what_is_planned_happens_and_is_logged(bench: Bench) -> None:
    events = bench.folder / "events.toml"
    events.write_text('[[event]]\nat = "0.2s"\ndo = "pull 3"\n[[event]]\nat = "0.1s"\ndo = "slow path0 x4"\n')
    log = bench.folder / "log.json"
    with serving(bench, "--events", str(events), "--log", str(log)) as served:
        served.running.wait_until(lambda: "member0/disk3: rebuilt" in served.running.stderr)
        assert served.status()["slowed"] == [{"name": "path0", "times": 4}]
    told = [event["what"] for event in json.loads(log.read_text())["events"]]
    assert told[:2] == ["path0: 4 times slower", "member0/disk3: pulled"]


@pytest.mark.parametrize(
    "array",
    [
        ARRAY,
        pytest.param(
            "datrium-dvx?hosts=2&volumes=data:1,log:1", marks=pytest.mark.slow(reason="the mounts are those of a group")
        ),
    ],
)
@pytest.mark.slow(reason="databases on served arrays have file systems")
def test_a_file_system_on_a_volume_is_taken_away_with_the_array(bench: Bench, array: str) -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("there are no loop devices here")
    with serving(bench, "--mkfs", "ext4", array=array, size="128M") as served:
        place = bench.folder / "array.mnt" / "data01"
        assert os.path.ismount(place)
        write_synced(place / "note", 8)
        assert served.command("pull", "3").code == 0
    assert str(served.folder) not in mounts()
    assert not (bench.folder / "array.mnt").exists()
    loops = subprocess.run(
        ("losetup", "--list", "--noheadings", "--output", "BACK-FILE"), capture_output=True, text=True
    )
    assert str(served.folder) not in loops.stdout
    with serving(bench, "--mkfs", "ext4", array=array, size="128M"):
        assert (bench.folder / "array.mnt" / "data01" / "note").read_bytes() == pattern(1 << 20) * 8


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nosuch",), "unknown"),
        ((ARRAY, "--cache", "paper"), "accepted: battery, volatile, lying"),
        ((ARRAY, "--mkfs", "fat"), "accepted: ext4"),
        ((ARRAY, "--owner", "nobody"), "give --mkfs ext4 too"),
        ((f"{ARRAY}&state=degraded",), "assay array pull"),
        ((f"{ARRAY}&volume_size=1GiB", "--size", "1G"), "give one of them"),
        ((ARRAY, "--events", "e.toml"), "did you mean 'event'?"),
        ((ARRAY, "--log", "e.toml"), "is there already"),
        ((ARRAY, "--at", "full"), "is not empty"),
        ((ARRAY, "--at", "e.toml"), "is no folder"),
        ((ARRAY, "--store", "full"), "is not empty and no store"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_mounted(
    bench: Bench, arguments: tuple[str, ...], complaint: str
) -> None:
    (bench.folder / "e.toml").write_text('[[evnt]]\nat = "1s"\ndo = "pull 3"\n')
    (bench.folder / "full").mkdir()
    (bench.folder / "full" / "something").touch()
    at = () if "--at" in arguments else ("--at", "array")

    outcome = bench.assay("array", "serve", *arguments, *at)

    assert outcome.code == 2
    assert complaint in outcome.complaint
    assert str(bench.folder) not in mounts()
    assert not (bench.folder / "array").exists()


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_commands_that_make_no_sense_are_refused_by_the_array(bench: Bench) -> None:
    with serving(bench) as served:
        for arguments, complaint in (
            (("pull", "member0/disk99"), "there are member0/disk0 to member0/disk"),
            (("pull", "member7/disk1"), "no such disk"),
            (("insert",), "every slot has a disk"),
            (("restore",), "the power is not cut"),
            (("mend-paths",), "no path or controller is lost"),
            (("slow", "path99", "x2"), "no such path"),
            (("slow", "member0/disk1", "fast"), "slow DISK|PATH xTIMES"),
            (("corrupt", "member0/disk1", "4K"), "nothing was written there"),
            (("revert", "monday"), "there is none"),
            (("snapshot", "a/b"), "letters, digits"),
            (("fill",), "blocks of this array lie in place"),
            (("fill", "100%"), "between 1 and 95 %"),
            (("fill", "much"), "write fill [SHARE%]"),
        ):
            outcome = served.command(*arguments)
            assert (outcome.code, complaint in outcome.complaint) == (2, True), (arguments, outcome)
        assert served.command("fail-path").code == 0
        assert "lost already" in served.command("fail-controller").complaint
        assert served.command("mend-paths").code == 0
    nothing = bench.assay("array", "pull", "member0/disk1", "--at", bench.folder / "array")
    assert (nothing.code, "no array is served there" in nothing.complaint) == (2, True)


def test_a_disk_cannot_be_put_in_while_another_is_rebuilt(bench: Bench) -> None:
    with serving(bench, array="ps6100xv?raid=6&volumes=data:1", size="16G") as served:
        for disk in ("member0/disk3", "member0/disk5"):
            assert served.command("pull", disk, "--no-spare").code == 0
        assert "rebuild begins" in served.command("insert", "member0/disk3").stdout
        refused = served.command("insert", "member0/disk5")
        assert (refused.code, "a rebuild is under way" in refused.complaint) == (2, True)


def test_volumes_that_are_mounted_are_not_reverted(bench: Bench) -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("there are no loop devices here")
    with serving(bench, "--mkfs", "ext4", size="128M") as served:
        assert served.command("snapshot", "monday").code == 0
        refused = served.command("revert", "monday")
        assert (refused.code, "in use; unmount or close them first" in refused.complaint) == (2, True)


@pytest.mark.slow(reason="tests/logged kills filers")
def test_blocks_of_a_filer_lie_where_they_went_after_a_kill_too(bench: Bench) -> None:
    filer, folder, blocks = "fas2040?volumes=data:1&cache=1MiB", bench.folder / "array", 768
    content = bytearray(pattern(blocks * 4096))

    def moved() -> dict[int, int]:
        numbers = array_of_numbers(bench.folder / "array.store" / "member0-places")
        return {block: place - 1 for block, place in enumerate(numbers[1:]) if place > 0}

    with bench.started("array", "serve", filer, "--at", folder, "--size", SIZE, forked=False) as running:
        running.wait_until(lambda: "served until" in running.stderr)
        with direct(folder / "data01") as file:
            # Two in three blocks, one of each two neighbours after the other's round.
            for block in (*range(2, blocks, 3), *range(0, blocks, 3)):
                os.pwritev(file, [aligned(bytes(content[block * 4096 : (block + 1) * 4096]))], block * 4096)
            for block in range(1, blocks, 3):
                content[block * 4096 : (block + 1) * 4096] = read(file, 4096, block * 4096)
            running.wait_until(lambda: len(moved()) > blocks // 2)
            running.process.kill()
            running.process.wait()
    places = moved()
    assert len(set(places.values())) == len(places)
    assert any(places.get(block + 1) not in (None, place + 1) for block, place in places.items())
    assert bench.assay("array", "clean", "--at", folder).code == 0
    with serving(bench, array=filer) as served, direct(served.data) as file:
        assert read(file, len(content), 0) == content
        for disk in ("member0/disk0", "member0/disk1"):
            assert served.command("pull", disk, "--no-spare").code == 0
        assert read(file, len(content), 0) == content
        assert {**places, **moved()} == moved()


def array_of_numbers(path: Path) -> array.array[int]:
    """Numbers of eight bytes, as they lie in a file of a store: after its head, each below a sum of two bytes."""
    numbers = array.array("Q")
    numbers.frombytes(path.read_bytes()[4096:])
    return array.array("Q", [number & ((1 << 48) - 1) for number in numbers])


ALONE = "ps6100xv?raid=5&members=1&volumes=data:1,log:1"


@pytest.mark.slow(reason="tests/store moves blocks to new members")
def test_a_member_that_joins_takes_its_share_of_every_byte(bench: Bench) -> None:
    content = pattern(VOLUME_BYTES)
    with serving(bench, array=ALONE) as served, direct(served.data) as file:
        os.pwritev(file, [aligned(content)], 0)
        assert served.command("add-member").stdout.startswith("member1: joins the group")
        served.running.wait_until(lambda: "member1: has its share" in served.running.stderr)
        assert (served.status()["state"], served.status()["rebalance"]) == ("healthy", None)
        assert served.command("pull", "member1/disk2").code == 0
        assert read(file, VOLUME_BYTES, 0) == content
    two = ALONE.replace("members=1", "members=2")
    other = bench.assay("array", "serve", two, "--at", bench.folder / "array", "--size", SIZE)
    assert (other.code, "members: 1, not 2" in other.complaint) == (2, True)


@pytest.mark.slow(reason="tests/store kills stores while chunks move")
def test_a_server_that_is_killed_while_chunks_move_goes_on_where_it_stood(bench: Bench) -> None:
    content, folder = pattern(VOLUME_BYTES), bench.folder / "array"
    with bench.started("array", "serve", ALONE, "--at", folder, "--size", "16G", forked=False) as running:
        served = Served(bench, running, folder)
        running.wait_until(lambda: "served until" in running.stderr)
        with direct(served.data) as file:
            os.pwritev(file, [aligned(content)], 0)
            assert served.command("add-member").code == 0
            # One member after the other; and what moves is no snapshot.
            for arguments in (("add-member",), ("snapshot", "monday")):
                refused = served.command(*arguments)
                assert (refused.code, "is being filled" in refused.complaint) == (2, True)
            assert "member1: chunks move onto it" in served.command("status").stdout
            assert read(file, VOLUME_BYTES, 0) == content
            running.process.kill()
            running.process.wait()
    assert bench.assay("array", "clean", "--at", folder).code == 0
    with serving(bench, array=ALONE, size="16G") as served, direct(served.data) as file:
        status = served.status()
        assert [member["name"] for member in status["members"]] == ["member0", "member1"]
        assert status["rebalance"]["member"] == "member1"
        assert read(file, VOLUME_BYTES, 0) == content


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        ("sata-jbod?raid=10&volumes=data:1", "no group that another one could join"),
        ("fas3070?volumes=data:1", "no group that could grow"),
        ("ps6100xv?raid=data:10,log:50&volumes=data:1,log:1", "roles have members of their own"),
    ],
)
def test_arrays_that_are_no_group_get_no_member(bench: Bench, array: str, complaint: str) -> None:
    with serving(bench, array=array) as served:
        refused = served.command("add-member")
        assert (refused.code, complaint in refused.complaint) == (2, True), refused.complaint
