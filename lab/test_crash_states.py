"""What drives have after power cuts is among the states that `assay crash` enumerates for the promises that they keep.

Each drive is a disk of the machine that QEMU reaches by NBD (lab/cut_disk.py). It keeps its promises by what it does,
and chooses nothing from a list of states; whether what it has is such a state is judged from the log of its requests
alone. In each round every kind of drive works on a disk of its own, and loses its power at a moment of its own. In the
last round before a boot the machine loses its power, and all its disks with it. The next boot goes on with what the
disks have.

LAB_STATES says how many cuts there are (104), LAB_STATES_SEED (1) begins their seeds. 40 of them come with each boot.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from assay.insight.crash.membership import CrashJudge, Membership, SeenVolume
from assay.insight.crash.promises import LIAR, Promises
from assay.insight.crash.write_log import read_write_log
from lab.disks import Disk, Store
from lab.machine import MADE, ROOT, Machine

CUTS = int(os.environ.get("LAB_STATES", "104"))
SEED = int(os.environ.get("LAB_STATES_SEED", "1"))
ROUNDS_PER_BOOT = 5
ACTIONS = (300, 2000)
"""Of a drive until its power fails."""

LOG_BYTES = 1_500_000
"""Each log has grown to this size when the machine loses its power."""

SIZE_MIB = {"raw": 4, "ext4": 12}
LOADS = ("raw", "ext4")
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
NAMES = tuple(ARRANGEMENTS)
ROUNDS = -(-CUTS // len(NAMES))


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


def disk(place: int, turn: int) -> Disk:
    """The disk of a kind of drive in a round of a boot; in the last round the machine's power fails."""
    arrangement = ARRANGEMENTS[NAMES[place]]
    return Disk(
        name=f"STATE{place}T{turn}",
        size_mib=SIZE_MIB[load(place, turn)],
        write_cache=arrangement.write_cache,
        drive=arrangement.drive,
        seed=SEED * 1000 + place * ROUNDS_PER_BOOT + turn,
        actions=ACTIONS if turn < ROUNDS_PER_BOOT - 1 else None,
    )


def load(place: int, turn: int) -> str:
    """What writes to a disk."""
    return LOADS[(place + turn) % len(LOADS)]


@pytest.fixture(scope="module")
def seen(machine: Callable[..., Machine]) -> Mapping[str, Seen]:
    """Cut the power of each disk in each round, and judge what it has."""
    found = {name: Seen() for name in NAMES}
    lab = machine(*(disk(place, turn) for turn in range(ROUNDS_PER_BOOT) for place in range(len(NAMES))))
    for first in range(0, ROUNDS, ROUNDS_PER_BOOT):
        turns = range(ROUNDS_PER_BOOT - min(ROUNDS_PER_BOOT, ROUNDS - first), ROUNDS_PER_BOOT)
        lab.boot()
        for turn in turns:
            cut_each(lab, turn, SEED + first)
        lab.cut()
        for turn in turns:
            for place, name in enumerate(NAMES):
                judge(lab.stores[disk(place, turn).name], ARRANGEMENTS[name], found[name], f"{name}, boot {lab.boots}")
    return found


def cut_each(lab: Machine, turn: int, seed: int) -> None:
    """Let all drives of a round work until each has lost its power, or can lose it with the machine."""
    stores = [lab.stores[disk(place, turn).name] for place in range(len(NAMES))]
    at_work = [
        lab.start(sys.executable, "-S", "-E", LOAD, load(place, turn), lab.device(store.disk.name), str(seed))
        for place, store in enumerate(stores)
    ]

    def is_over() -> bool:
        for store, running in zip(stores, at_work, strict=True):
            assert not running.ended or store.has_lost_power, f"it ended before the cut: {running.end()}"
        if stores[0].disk.actions is None:
            return all(store.log_path.stat().st_size > LOG_BYTES for store in stores)
        return all(store.has_lost_power for store in stores)

    lab.wait_until(is_over, every_s=0.1)
    if stores[0].disk.actions is not None:
        for running in at_work:
            lab.kill(running)


def judge(store: Store, arrangement: Arrangement, seen: Seen, cut: str) -> None:
    """CrashJudge what a disk has."""
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
        seen.unexplained.append(f"{cut}, {store.disk.name}: {seen.found[-1]}")
        KEPT.mkdir(parents=True, exist_ok=True)
        for path in (store.log_path, store.base_path, store.path):
            shutil.copy(path, KEPT)


@pytest.mark.parametrize("name", NAMES)
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
    assert all(allowed * 2 <= cuts for allowed in seen[name].allowed.values())
