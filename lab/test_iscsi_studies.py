"""Studies of the published kind on the kernel's initiator: a database on disks of a served array, small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from lab.databases import LOST, Loaded, Server, transactions
from lab.disks import Disk
from lab.fabric import PORTALS, Array, Initiator
from lab.machine import SHARE, Done, Running

MODEL = "ps6100xv?raid=10&members=1&volumes=data:2"
SIZE = "2G"
VOLUMES = ("data01", "data02")
OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
ENDED = (0, 1, 5)
"""Exit codes of a run that came to its end; an emulated processor meets no limits."""
STUDY = (
    "--levels", "beside=quiet,checkpoints", "--quick", "--set", "warehouses=1", "--set", "users=2",
    "--set", "warmup=2s", "--set", "duration=20s", "--set", "restores=never",
)  # fmt: skip
LEVELS = 2
WRITES_BETWEEN_SNAPSHOTS = 100
SNAPSHOTS = 3


@pytest.fixture
def servers(array: Array, initiator: Initiator, database: Loaded) -> Iterator[list[Server]]:
    """A database on each volume, over as many paths as there are portals; none of them is started."""
    if initiator.paths():
        initiator.log_out()
    for volume in VOLUMES:
        database.put_on(array.volume(volume), within=array.within)
    attach(initiator)
    with ExitStack() as stack:
        made = []
        for port, volume in enumerate(VOLUMES, start=5530):
            device = initiator.device(volume, len(PORTALS))
            made.append(Server(initiator.lab, Disk(name=volume), database, port, device=device))
            stack.callback(made[-1].stop)
        yield made


def attach(initiator: Initiator) -> None:
    """Log in to all volumes by the group's address."""
    initiator.discover(len(PORTALS))
    initiator.log_in().checked()
    for volume in VOLUMES:
        initiator.device(volume, len(PORTALS))


def run_users(initiator: Initiator, servers: list[Server], users: int) -> Done:
    """Let users work on databases."""
    return initiator.lab.assay(
        "oltp", "tpcc", *(server.url for server in servers), "run", "--users", str(users), "--warmup", "2s",
        "--duration", "20s", *OUTPUT,
    )  # fmt: skip


def check(initiator: Initiator, server: Server) -> Done:
    """Check the consistency conditions of a database."""
    return initiator.lab.assay("oltp", "tpcc", server.url, "check", *OUTPUT)


def lost(done: Done) -> list[str]:
    """What a run says of acknowledged transactions that are not there."""
    return [notice for notice in done.document["notices"] if LOST in notice]


@pytest.mark.lab(
    line="iSCSI: oltp-scaling by hand: one database on one member, two with twice the users on two",
    proves="the published kind of study runs on the kernel's initiator: a member joins, a second database with as many"
    " users more runs beside the first, and every condition holds",
    cannot="how much two members carry",
)
def test_a_second_member_takes_a_second_database(
    array: Array, initiator: Initiator, servers: list[Server], observed: Callable[[str], None]
) -> None:
    assert len(array.status["members"]) == 1
    assert servers[0].start(), servers[0].process
    one = run_users(initiator, servers[:1], 2)
    array.command("add-member")
    assert servers[1].start(), servers[1].process
    two = run_users(initiator, servers, 4)
    checks = [check(initiator, server) for server in servers]
    observed(f"1 member, 1 database, 2 users: {transactions(one):,} transactions in 20 s")
    observed(f"2 members, 2 databases, 4 users: {transactions(two):,}")
    assert len(array.status["members"]) == 2
    for run in (one, two):
        assert run.code in ENDED, run.stderr
        assert not lost(run)
    assert [done.code for done in checks] == [0, 0], checks


@pytest.mark.lab(
    line="iSCSI: the study steady-state on PostgreSQL, while snapshots of the array are taken",
    proves="the published kind of study runs on the kernel's initiator; transactions go on through snapshots; the"
    " database recovers from a snapshot that was taken under load, and its conditions hold",
    cannot="how far transactions dip",
)
def test_transactions_go_on_beside_snapshots(
    array: Array, initiator: Initiator, servers: list[Server], observed: Callable[[str], None]
) -> None:
    server = servers[0]
    assert server.start(), server.process
    running = initiator.lab.start("assay", "study", "run", "steady-state", server.url, *STUDY, *OUTPUT)
    initiator.lab.wait_for_run(running)
    device = initiator.device(VOLUMES[0], len(PORTALS))
    taken = 0
    while taken < SNAPSHOTS and has_written_more(initiator, device, running):
        array.command("snapshot", f"hourly-{taken}")
        taken += 1
    done = running.end()
    found = {one["title"]: one["values"]["nopm"]["value"] for one in done.document["study"]["results"]}
    whole = check(initiator, server)
    server.stop()
    initiator.log_out()

    array.command("revert", "hourly-0")
    attach(initiator)
    recovers = server.start()
    again = check(initiator, server)
    observed("; ".join(f"{level}: {value:,.0f} new orders a minute" for level, value in found.items()))
    observed(f"{taken} snapshots; reverted to the first: the check ends with {again.code}")
    assert done.code in ENDED, done.stderr
    assert len(found) == LEVELS
    assert taken > 1
    assert not lost(done)
    assert whole.code == 0, whole.stderr
    assert recovers, server.process
    assert again.code == 0, again.stderr


def has_written_more(initiator: Initiator, device: str, running: Running) -> bool:
    """Wait until a device has completed more writes; gives whether that was before a run ended."""
    lab = initiator.lab
    enough = lab.writes(device) + WRITES_BETWEEN_SNAPSHOTS
    lab.wait_until(lambda: running.ended or lab.writes(device) > enough, every_s=1.0)
    return not running.ended
