"""`assay array serve` of hosts with flash over data nodes: blocks stored once, disks that go, room reclaimed."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from serving import SIZE, Served, aligned, direct, pattern, read, serving

from mounting import needs_fuse

if TYPE_CHECKING:
    from assay_command import Bench

pytestmark = needs_fuse

HOSTS = "datrium-dvx?hosts=2&volumes=data:1,log:1"
SMALL = f"{HOSTS}&log.container=256KiB"
"""Containers of 256 KiB go to disks soon."""
MIB = 1 << 20


def incompressible(count: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(count)


def verified(served: Served) -> int:
    bench = served.bench
    volumes = ("--volume", f"data={served.data},log={served.folder / 'log01'}")
    allowed = [text for path in served.folder.iterdir() for text in ("--overwrite", str(path))]
    return bench.verify(*volumes, *allowed, "--duration", "1s").code


def write(served: Served, content: bytes, at: int = 0) -> None:
    with direct(served.data) as file:
        for place in range(0, len(content), MIB):
            os.pwritev(file, [aligned(content[place : place + MIB])], at + place)


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_bytes_snapshots_power_cuts_and_disks_of_an_array_with_flash_in_its_hosts(bench: Bench) -> None:
    before, after = incompressible(4 * MIB, 1), incompressible(MIB, 2)
    with serving(bench, array=SMALL) as served:
        assert sorted(path.name for path in served.folder.iterdir()) == ["data01", "log01"]
        write(served, before)
        # The same bytes at another place take nothing, and zeroes do not either.
        write(served, before, at=4 * MIB)
        write(served, bytes(MIB), at=12 * MIB)
        pool = served.status()["pool"]
        assert (pool["used_bytes"], pool["unique_bytes"], pool["deduplication"]) == (8 * MIB, 4 * MIB, 2.0)
        assert pool["missing_pieces"] == 0
        assert served.command("snapshot", "monday").code == 0
        write(served, after)
        assert "0 acknowledged bytes lost" in served.command("cut-power").stdout
        assert served.command("restore").stdout == "power restored\n"
        with direct(served.data) as file:
            assert read(file, MIB, 0) == after
        served.running.wait_until(lambda: not served.status()["in_use"])
        assert served.command("revert", "monday").code == 0
        assert "its pieces are restored on other disks" in served.command("pull", "node0-disk3").stdout
        served.running.wait_until(lambda: "restored: no piece is missing" in served.running.stderr)
        # Two more of twelve may go at once.
        for disk in ("node0/disk5", "node0/disk7"):
            told = served.command("pull", disk, "--no-spare").stdout
            assert "lost" not in told
        with direct(served.data) as file:
            assert b"".join(read(file, MIB, at * MIB) for at in range(8)) == before * 2
        status = served.status()
        assert (status["state"], [host["name"] for host in status["hosts"]]) == ("degraded", ["host0", "host1"])
        assert status["pool"]["missing_pieces"] > 0
        assert verified(served) == 0
        shown = served.command("status").stdout
    assert "host0: " in shown
    assert "node0: [###.#.#.####]" in shown
    assert "pool: " in shown


@pytest.mark.slow(reason="the quick test beside it serves the same array")
def test_bytes_outlive_a_server_that_is_killed_and_other_arrays_are_refused_the_store(bench: Bench) -> None:
    content, folder = incompressible(3 * MIB), bench.folder / "array"
    with bench.started("array", "serve", SMALL, "--at", folder, "--size", SIZE, forked=False) as running:
        served = Served(bench, running, folder)
        running.wait_until(lambda: "served until" in running.stderr)
        write(served, content)
        assert served.command("pull", "node0/disk0", "--no-spare").code == 0
        running.process.kill()
        running.process.wait()
    assert bench.assay("array", "clean", "--at", folder).code == 0
    with serving(bench, array=SMALL) as served, direct(served.data) as file:
        assert served.status()["members"][0]["disks"][0]["state"] == "absent"
        assert b"".join(read(file, MIB, at * MIB) for at in range(3)) == content
        assert "missing pieces are restored" in served.command("insert").stdout
        served.running.wait_until(lambda: "restored: no piece is missing" in served.running.stderr)
        assert served.status()["state"] == "healthy"
    for array, complaint in (("ps6100xv?volumes=data:1,log:1", "no store"), (f"{SMALL}&nodes=2", "disks: 12, not 24")):
        other = bench.assay("array", "serve", array, "--at", folder, "--size", SIZE)
        assert (other.code, complaint in other.complaint) == (2, True), other.complaint


@pytest.mark.slow(reason="the quick test beside it serves the same array")
def test_a_third_lost_disk_takes_blocks_with_it_and_says_so(bench: Bench) -> None:
    content = incompressible(8 * MIB)
    with serving(bench, array=SMALL) as served:
        write(served, content)
        for disk in ("1", "2"):
            assert served.command("pull", disk, "--no-spare").stdout == f"node0/disk{disk}: pulled\n"
        told = served.command("pull", "3", "--no-spare").stdout
        lost = served.status()["pool"]["lost_blocks"]
        assert lost > 0
        assert told == f"node0/disk3: pulled; {lost} blocks are lost, and reading them fails\n"
        failed = 0
        with direct(served.data) as file:
            for at in range(0, len(content), 4096):
                try:
                    assert read(file, 4096, at) == content[at : at + 4096]
                except OSError:
                    failed += 1
        assert failed == lost


@pytest.mark.slow(reason="crates/array-live/tests/logged reclaims without end")
def test_a_small_pool_is_reclaimed_and_answers_that_there_is_no_room_once_all_of_it_is_live(bench: Bench) -> None:
    with serving(bench, "--room", "8M", array=SMALL) as served:
        write(served, incompressible(4 * MIB))
        # Every other block anew: each container stays half live until what is live of it is moved.
        with direct(served.data) as file:
            for at in range(0, 4 * MIB, 8192):
                os.pwritev(file, [aligned(incompressible(4096, at + 2))], at)
        pool = served.status()["pool"]
        assert pool["reclaimed_containers"] > 0
        with pytest.raises(OSError, match="No space"):
            write(served, incompressible(12 * MIB, 99))
        with direct(served.data) as file:
            assert len(read(file, MIB, 0)) == MIB


@pytest.mark.parametrize(("cache", "lost"), [("volatile", False), ("lying", True)])
@pytest.mark.slow(reason="crates/array-live/tests/logged cuts the power of such memories")
def test_a_power_cut_takes_what_a_memory_without_battery_holds(bench: Bench, cache: str, lost: bool) -> None:
    with serving(bench, "--cache", cache, array=HOSTS) as served, direct(served.data) as file:
        os.pwritev(file, [aligned(pattern(64 << 10))], 0)
        os.fsync(file)
        told = served.command("cut-power").stdout
        assert ("0 acknowledged bytes" not in told) == lost
        served.command("restore")
        assert (read(file, 64 << 10, 0) == bytes(64 << 10)) == lost


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_commands_that_such_an_array_does_not_have_are_refused_in_a_line(bench: Bench) -> None:
    with serving(bench, array=HOSTS) as served:
        for arguments, complaint in (
            (("fail-controller",), "fail-controller: the second controller of a data node is not modelled"),
            (("fail-path",), "are one network here"),
            (("mend-paths",), "are one network here"),
            (("add-member",), "serve it with nodes=N"),
            (("fill",), "give a smaller one with --room"),
            (("slow", "path0", "x2"), "slow a disk"),
            (("pull", "node1/disk0"), "there are node0/disk0 to node0/disk11"),
            (("pull", "member0/disk0"), "no such disk"),
            (("insert",), "every slot has a disk"),
            (("insert", "node0/disk4"), "node0/disk4: the slot has a disk"),
            (("corrupt", "node0/disk1", "4K"), "node0/disk1: nothing was written there"),
            (("revert", "monday"), "there is none"),
        ):
            outcome = served.command(*arguments)
            assert (outcome.code, complaint in outcome.complaint) == (2, True), (arguments, outcome)
        assert served.command("slow", "node0-disk2", "x20").stdout == "node0/disk2: 20 times slower\n"
        assert served.status()["slowed"] == [{"name": "node0/disk2", "times": 20}]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((f"{HOSTS}&reclamation=yes",), "give the store a --room"),
        ((f"{HOSTS}&snapshots=3",), "assay array snapshot"),
        ((HOSTS, "--no-sums"), "known by their fingerprints"),
        ((HOSTS, "--room", "1M"), "--room: "),
        ((f"{HOSTS}&log.parity_pieces=1",), "is served with 2 pieces of parity"),
    ],
)
def test_what_such_an_array_cannot_be_served_with_is_refused(
    bench: Bench, arguments: tuple[str, ...], complaint: str
) -> None:
    outcome = bench.assay("array", "serve", *arguments, "--at", "array")
    assert (outcome.code, complaint in outcome.complaint) == (2, True), outcome.complaint
    assert not (bench.folder / "array").exists()
