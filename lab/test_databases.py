"""Power cuts under `assay oltp`: a database on an honest disk keeps what it acknowledged; what a lying one loses shows.

A server's disk loses its power under load, and the server is killed with it. The users wait, and go on when the server
has recovered; Assay compares what they were told with what is there, and the conditions are checked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from lab.databases import LOST, Loaded, Server, loaded, missing_server, transactions
from lab.disks import Disk
from lab.folder import Folder
from lab.machine import SHARE, Done, Machine, Running

DURATION_S = 90
WRITES = (100, 400)
"""By how many writes a database's disk has been written when it loses power; the seed chooses."""

OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
DISKS = {
    "honest": Disk(name="HONEST", cache="volatile", size_mib=640),
    "lying": Disk(name="LYING", cache="lying", size_mib=640),
}
FAILING = Disk(name="FAILING", size_mib=640)


@dataclass(frozen=True)
class Outcome:
    """What became of a database.

    Attributes
    ----------
    recovered
        The server started again.
    """

    recovered: bool
    run: Done
    check: Done | None

    @property
    def notices(self) -> list[str]:
        """What the run said of itself."""
        return list(self.run.document["notices"]) if self.run.code in (0, 1, 5) else []

    @property
    def lost(self) -> list[str]:
        """What shows that the disk lost something."""
        found = [notice for notice in self.notices if LOST in notice]
        if not self.recovered:
            found.append("the server does not start again")
        if self.run.code not in (0, 1, 5):
            found.append(f"the run ended with {self.run.code}: {self.run.stderr.strip().splitlines()[-1]}")
        if self.check is not None and self.check.code != 0:
            found.append(f"the check ended with {self.check.code}: {self.check.stderr.strip().splitlines()[-1]}")
        return found


@pytest.fixture(scope="module", params=["PostgreSQL", "MariaDB"])
def kind(request: pytest.FixtureRequest) -> str:
    if why := missing_server(request.param):
        pytest.skip(why)
    return str(request.param)


@pytest.fixture(scope="module")
def database(kind: str) -> Iterator[Loaded]:
    folder = Folder("assay-lab-database-")
    try:
        yield loaded(kind, folder.path)
    finally:
        folder.remove()


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine], database: Loaded) -> Machine:
    """The machine, with a database on each disk."""
    disks = (*DISKS.values(), FAILING)
    lab = machine(*disks, memory_mib=2048)
    for disk in disks:
        database.put_on(lab.stores[disk.name].path)
    return lab.boot()


@pytest.fixture(scope="module")
def outcomes(lab: Machine, kind: str, database: Loaded) -> dict[str, Outcome]:
    """Cut the power of both disks under load."""
    servers = {name: Server(lab, disk, database, 5500 + port) for port, (name, disk) in enumerate(DISKS.items())}
    running, recovered = {}, {}
    for name, server in servers.items():
        assert server.start(), server.process
        device = lab.device(server.disk.name)
        # The first run ends while the second database loses its power.
        running[name] = begin(lab, server)
        enough = lab.writes(device) + random.Random(f"{kind} {name}").randint(*WRITES)
        lab.wait_until(partial(has_written, lab, device, enough), running[name])
        server.lose_power()
        recovered[name] = server.start()
        if not recovered[name]:
            lab.kill(running[name])
    found = {}
    for name, server in servers.items():
        run = running[name].end()
        check = lab.assay("oltp", "tpcc", server.url, "check", *OUTPUT) if recovered[name] else None
        found[name] = Outcome(recovered=recovered[name], run=run, check=check)
        server.stop()
    return found


def begin(lab: Machine, server: Server) -> Running:
    """Let users begin on a server's database."""
    running = lab.start(
        "assay", "oltp", "tpcc", server.url, "run", "--users", "2", "--warmup", "1s",
        "--duration", f"{DURATION_S}s", "--reconnect", "1200s", *OUTPUT,
    )  # fmt: skip
    lab.wait_for_run(running)
    return running


def has_written(lab: Machine, device: str, enough: int) -> bool:
    """Whether a device has completed so many writes."""
    return lab.writes(device) >= enough


def said(outcome: Outcome) -> str:
    """Return the line of the results."""
    if outcome.run.code not in (0, 1, 5):
        return "; ".join(outcome.lost)
    oltp: Any = outcome.run.document["oltp"]
    away_s = sum((gap["to_utc_ns"] - gap["from_utc_ns"]) / 1e9 for gap in oltp["gaps"] if gap["to_utc_ns"])
    conditions = outcome.check.document["oltp"]["conditions"] if outcome.check and outcome.check.code in (0, 4) else []
    held = sum(condition["met"] for condition in conditions)
    words = (
        f"{transactions(outcome.run):,} transactions, server away for {away_s:.0f} s;"
        f" {held} of {len(conditions)} conditions hold"
    )
    return "; ".join([words, *outcome.lost])


@pytest.mark.lab(
    line="Power cuts: {kind} under oltp, honest disk",
    proves="the server recovers, has every transaction it acknowledged, and the conditions hold",
    cannot="cuts that hit the server's host as well, or a cache that keeps a part of what was not flushed",
)
def test_a_database_on_an_honest_disk_keeps_everything(
    outcomes: dict[str, Outcome], observed: Callable[[str], None]
) -> None:
    honest = outcomes["honest"]
    observed(said(honest))
    assert honest.run.code in (0, 1, 5), honest.run.stderr
    assert honest.run.document["oltp"]["gaps"]
    assert not honest.lost


@pytest.mark.lab(
    line="Power cuts: {kind} under oltp, disk that ignores flushes",
    proves="what a lying disk loses of a database shows: in the run's notices or the check, or the server is lost",
    cannot="how much a real liar loses",
)
def test_what_a_lying_disk_loses_of_a_database_shows(
    outcomes: dict[str, Outcome], observed: Callable[[str], None]
) -> None:
    observed(said(outcomes["lying"]))
    assert outcomes["lying"].lost


@pytest.mark.lab(
    line="Faults: every I/O fails from a moment on (dm-error beneath {kind}), oltp",
    proves="the server gives up, and the run ends in one line when it has waited for it: exit code 3",
    cannot="",
)
def test_oltp_ends_when_the_disk_of_its_server_fails(
    lab: Machine, database: Loaded, observed: Callable[[str], None]
) -> None:
    disk = lab.device(FAILING.name)
    lab.shell(f'modprobe dm_mod; dmsetup create failing --table "0 $(blockdev --getsz {disk}) linear {disk} 0"')
    server = Server(lab, FAILING, database, 5510, device="/dev/mapper/failing")
    assert server.start(), server.process
    running = lab.start(
        "assay", "oltp", "tpcc", server.url, "run", "--users", "2", "--warmup", "1s",
        "--duration", "600s", "--reconnect", "10s", *OUTPUT,
    )  # fmt: skip
    lab.wait_for_run(running)
    before = lab.writes(disk)
    lab.wait_until(lambda: lab.writes(disk) > before + WRITES[0], running)
    lab.shell(
        f"dmsetup suspend --noflush --nolockfs failing;"
        f' dmsetup reload failing --table "0 $(blockdev --getsz {disk}) error"; dmsetup resume failing'
    )
    done = running.end()
    last = (done.stderr.strip().splitlines() or [""])[-1]
    observed(f"exit code {done.code}: {last}")
    server.stop()
    assert done.code == 3, done.stderr
    assert last.startswith("assay: ")
