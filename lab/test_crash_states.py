"""What drives have after power cuts is among the states that `assay crash` enumerates for the promises that they keep.

Each drive is a disk of the machine that QEMU reaches by NBD (lab/cut_disk.py). It keeps its promises by what it does,
and chooses nothing from a list of states; whether what it has is such a state is judged from the log of its requests
alone. Each kind of drive is there twice, under a file system and without one. A drive loses its power at a moment of
its own, is judged, and is switched on again; the machine's requests wait so long, and its work goes on. At the end the
machine loses its power, and all drives with it. It boots again and goes on with what they have.

LAB_STATES says how many cuts there are (104), LAB_STATES_SEED (1) begins their seeds.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from assay.insight.crash.membership import CrashJudge, Membership, SeenVolume
from assay.insight.crash.promises import LIAR, Promises
from assay.insight.crash.write_log import read_write_log
from lab.disks import Disk, Store
from lab.machine import MADE, ROOT, Machine

CUTS = int(os.environ.get("LAB_STATES", "104"))
SEED = int(os.environ.get("LAB_STATES_SEED", "1"))
CUTS_PER_BOOT = 4
"""Of each drive, the last one of them with the machine."""

REQUESTS = (30, 200)
"""Of a drive until its power fails."""

LOG_BYTES = 300_000
"""Each log has grown to this size when the machine loses its power."""

SIZE_MIB = {"raw": 4, "ext4": 12}
LOAD = ROOT / "lab" / "cut_load.py"
KEPT = MADE / "states"
"""Where a state that no promise explains is kept, with its log."""

CANNOT = "what the cache of a real drive loses, and in which order it writes back"


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """A kind of drive.

    Attributes
    ----------
    drive
        Its name in `tests/cut_drive.py`.
    kept
        The promises that it keeps.
    broken
        Promises that it does not keep, by name.
    write_cache
        Whether the guest is told of a cache. Without one QEMU forces each write, if the drive knows FUA.
    """

    drive: str
    kept: Promises
    broken: Mapping[str, Promises] = field(default_factory=dict)
    write_cache: bool = True


DURABLE = {"writes durable at once": Promises(volatile_cache=False)}
ARRANGEMENTS = {
    "write-through": Arrangement(drive="write-through", kept=Promises(volatile_cache=False), write_cache=False),
    "volatile, torn at 512 B": Arrangement(
        drive="torn at 512 B",
        kept=Promises(),
        broken={**DURABLE, "4 KiB atomic": Promises(atomic_bytes=4096), "order": Promises(order="submitted")},
    ),
    "volatile, torn at 4 KiB": Arrangement(
        drive="torn at 4 KiB",
        kept=Promises(atomic_bytes=4096),
        broken={**DURABLE, "16 KiB atomic": Promises(atomic_bytes=16384)},
    ),
    "volatile, atomic 16 KiB": Arrangement(drive="atomic 16 KiB", kept=Promises(atomic_bytes=16384), broken=DURABLE),
    "volatile, in order": Arrangement(drive="in order", kept=Promises(order="submitted"), broken=DURABLE),
    "volatile, each write forced": Arrangement(drive="torn at 512 B", kept=Promises(), write_cache=False),
    "lying about FUA": Arrangement(
        drive="lying", kept=Promises(fua=False), broken={"FUA honoured": Promises()}, write_cache=False
    ),
    "lying": Arrangement(drive="lying", kept=LIAR, broken={"flush honoured": Promises()}),
}
CUTS_EACH = -(-CUTS // (2 * len(ARRANGEMENTS)))


@dataclass
class Seen:
    """The states of a kind of drive.

    Attributes
    ----------
    unexplained
        Cuts after which the promises that the drive keeps do not allow what it has.
    allowed
        Of each promise that it does not keep how many states would be allowed all the same.
    """

    requests: list[int] = field(default_factory=list)
    found: list[Membership] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)

    @property
    def text(self) -> str:
        """The line of the results."""
        outstanding, kept, torn = (
            sum(getattr(one, what) for one in self.found) for what in ("outstanding", "kept", "torn")
        )
        return (
            f"{len(self.found)} cuts after {min(self.requests):,} to {max(self.requests):,} requests;"
            f" {outstanding:,} outstanding: {kept:,} there, {torn:,} in part, {outstanding - kept - torn:,} lost;"
            f" {len(self.found) - len(self.unexplained)} of {len(self.found)} states are among those enumerated"
        )


@dataclass(frozen=True, kw_only=True)
class Served:
    """A drive of the machine: its kind, and what works on it."""

    name: str
    load: str
    disk: Disk


def drives() -> list[Served]:
    """Each kind of drive, with each load."""
    found: list[Served] = []
    for name, arrangement in ARRANGEMENTS.items():
        for load, size_mib in SIZE_MIB.items():
            number = len(found)
            disk = Disk(
                name=f"STATE{number}",
                size_mib=size_mib,
                write_cache=arrangement.write_cache,
                drive=arrangement.drive,
                seed=SEED * 1000 + number,
            )
            found.append(Served(name=name, load=load, disk=disk))
    return found


@pytest.fixture(scope="module")
def seen(machine: Callable[..., Machine]) -> Mapping[str, Seen]:
    """Cut the power of each drive, alone and with the machine, and judge what it has."""
    found = {name: Seen() for name in ARRANGEMENTS}
    served = drives()
    lab = machine(*(one.disk for one in served))
    for first in range(0, CUTS_EACH, CUTS_PER_BOOT):
        alone = min(CUTS_PER_BOOT, CUTS_EACH - first) - 1
        for store in lab.stores.values():
            store.requests = REQUESTS if alone else None
        lab.boot()
        work(lab, served, alone, found)
        lab.cut()
        for one in served:
            judge(lab.stores[one.disk.name], one, found)
    return found


def work(lab: Machine, served: Sequence[Served], alone: int, found: Mapping[str, Seen]) -> None:
    """Let all drives work until each has lost its power so often, and can lose it with the machine."""
    words = [word for one in served for word in (one.load, lab.device(one.disk.name))]
    at_work = lab.start(sys.executable, "-S", "-E", LOAD, str(SEED * 100 + lab.boots), *words)
    left = {one.disk.name: alone for one in served}

    def is_over() -> bool:
        for one in served:
            store = lab.stores[one.disk.name]
            if left[store.disk.name] and store.has_lost_power:
                judge(store, one, found)
                left[store.disk.name] -= 1
                store.requests = REQUESTS if left[store.disk.name] else None
                store.power_on()
        return not any(left.values()) and all(
            store.log_path.stat().st_size > LOG_BYTES for store in lab.stores.values()
        )

    lab.wait_until(is_over, at_work, every_s=0.1)


def judge(store: Store, served: Served, found: Mapping[str, Seen]) -> None:
    """Judge what a drive has."""
    arrangement, seen = ARRANGEMENTS[served.name], found[served.name]
    with (
        SeenVolume(store.base_path, "base") as base,
        SeenVolume(store.path, "image") as image,
        read_write_log(store.log_path, store.disk.size_mib << 20) as log,
    ):
        of = CrashJudge(log, base, image)
        seen.found.append(of.membership(arrangement.kept))
        seen.requests.append(len(log.requests))
        for name, promises in arrangement.broken.items():
            seen.allowed[name] += of.membership(promises).is_allowed
    if not seen.found[-1].is_allowed:
        seen.unexplained.append(f"{served.name}, {served.load}, {store.disk.name}: {seen.found[-1]}")
        KEPT.mkdir(parents=True, exist_ok=True)
        for path in (store.log_path, store.base_path, store.path):
            shutil.copy(path, KEPT)


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.lab(
    line="Crash states: {name}",
    proves="what the drive has after each cut is a state that is enumerated for the promises that it keeps",
    cannot=CANNOT,
)
def test_what_a_drive_has_is_among_the_enumerated_states(
    seen: Mapping[str, Seen], name: str, observed: Callable[[str], None]
) -> None:
    observed(seen[name].text)
    assert not seen[name].unexplained, "the model of promises is wrong"
    assert sum(one.outstanding for one in seen[name].found) > 0


@pytest.mark.parametrize("name", [name for name, arrangement in ARRANGEMENTS.items() if arrangement.broken])
@pytest.mark.lab(
    line="Crash states: {name}, judged by promises that it does not keep",
    proves="the judgement tells states apart: a drive is convicted of a promise that it breaks",
    cannot=CANNOT,
)
def test_what_a_drive_has_breaks_promises_that_it_does_not_keep(
    seen: Mapping[str, Seen], name: str, observed: Callable[[str], None]
) -> None:
    cuts = len(seen[name].found)
    for promise, allowed in seen[name].allowed.items():
        observed(f"{promise}: broken after {cuts - allowed} of {cuts} cuts")
    # Not each cut shows it: a drive may just have had nothing to lose, or nothing that was torn.
    assert all(allowed < cuts for allowed in seen[name].allowed.values())
