"""Power cuts under `assay verify --crash-journal`: an honest disk is never accused, a lying one is convicted.

In each round every arrangement works on a disk of its own, whose power is cut at a random moment of its own. After some
rounds the machine's power is cut as well; it boots again, judges all disks, and they serve the next rounds.

LAB_ROUNDS says how many rounds there are (17), LAB_ROUNDS_PER_BOOT how many of them come before the machine's power is
cut (6). LAB_SEED (1) begins their seeds: round N has seed LAB_SEED + N.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lab.disks import Disk
from lab.machine import SHARE, Machine, Running

ROUNDS = int(os.environ.get("LAB_ROUNDS", "17"))
SEED = int(os.environ.get("LAB_SEED", "1"))
ROUNDS_PER_BOOT = int(os.environ.get("LAB_ROUNDS_PER_BOOT", "6"))

BLOCKS_FIRST = 2
"""A journal has grown so far when the disk that is to be sent no flushes is sent its last one."""

BLOCKS_MORE = (1, 80)
"""By how many blocks of 255 writes it has grown when the disk's power goes; preparing writes some 35 of them."""

SIZE_MIB = 8
FORCED = {"ext4": "-F", "xfs": "-f"}
"""What makes mkfs write over what it finds."""

MEASURE = ("--size", f"{SIZE_MIB}M", "--memory", "2M", "--no-report", "--quiet")
EMULATION_PROVES_NOT = "how a real disk's cache loses power: here every unflushed write is lost, never a part of them"


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """What the journal is kept of.

    Attributes
    ----------
    file_system
        Empty: the raw disk.
    stops_flushing
        The guest is told in the middle of the run that the disk has no cache, a lie; it sends no flush any more.
    """

    disk: Disk
    file_system: str = ""
    write_through: bool = True
    stops_flushing: bool = False

    def twin(self, number: int) -> Disk:
        """Return the disk of a round."""
        return replace(self.disk, name=f"{self.disk.name}{number % ROUNDS_PER_BOOT}")

    @property
    def lies(self) -> bool:
        """Whether the storage loses what it acknowledged as durable."""
        return self.disk.cache == "lying" or self.stops_flushing


ARRANGEMENTS = {
    "raw disk, write-through": Arrangement(disk=Disk(name="RAW", cache="volatile")),
    "raw disk, fdatasync": Arrangement(disk=Disk(name="RAWSYNC", cache="volatile"), write_through=False),
    "ext4, write-through": Arrangement(disk=Disk(name="EXT", cache="volatile", size_mib=128), file_system="ext4"),
    "xfs, fdatasync": Arrangement(
        disk=Disk(name="XFS", cache="volatile", size_mib=320), file_system="xfs", write_through=False
    ),
    "raw disk that ignores flushes": Arrangement(disk=Disk(name="LIAR", cache="lying")),
    "raw disk that is sent no flushes": Arrangement(disk=Disk(name="MUTE", cache="volatile"), stops_flushing=True),
}


@dataclass
class Judged:
    """What `--after-crash` said of each cut: exit codes, writes acknowledged, and pages promised."""

    codes: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    promised: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the line of the results."""
        codes = ", ".join(f"{self.codes.count(code)} x {code}" for code in sorted(set(self.codes)))
        cuts = "1 cut" if len(self.codes) == 1 else f"{len(self.codes)} cuts"
        return (
            f"{cuts} after {min(self.acknowledged):,} to {max(self.acknowledged):,} acknowledged writes;"
            f" exit codes {codes}"
        )


@pytest.fixture(scope="module")
def judged(machine: Callable[..., Machine]) -> Mapping[str, Judged]:
    """Cut the power in each round, and judge every disk of it."""
    found = {name: Judged() for name in ARRANGEMENTS}
    lab = machine(*(arrangement.twin(turn) for turn in range(ROUNDS_PER_BOOT) for arrangement in ARRANGEMENTS.values()))
    (lab.share / "fdatasync.toml").write_text("write_through = false\n")
    lab.boot()
    for first in range(0, ROUNDS, ROUNDS_PER_BOOT):
        rounds = range(first, min(first + ROUNDS_PER_BOOT, ROUNDS))
        for number in rounds:
            cut_each(lab, {name: begin(lab, name, number) for name in ARRANGEMENTS}, number)
        lab.cut()
        lab.boot()
        for number in rounds:
            judge(lab, number, found)
    return found


def target(lab: Machine, arrangement: Arrangement, number: int) -> str:
    """Return what `verify` works on, mounted if it is a file system."""
    disk = arrangement.twin(number).name
    device = lab.device(disk)
    if not arrangement.file_system:
        return device
    lab.shell(f"mkdir -p /run/{disk} && mount -t {arrangement.file_system} {device} /run/{disk}")
    return f"/run/{disk}"


def journal(name: str, number: int) -> str:
    """Return the name of a cut's journal in the share."""
    return f"{ARRANGEMENTS[name].disk.name}-{number}.journal"


def begin(lab: Machine, name: str, number: int) -> Running:
    """Let `verify` begin on an arrangement."""
    arrangement = ARRANGEMENTS[name]
    device = lab.device(arrangement.twin(number).name)
    if arrangement.file_system:
        lab.shell(f"mkfs.{arrangement.file_system} -q {FORCED[arrangement.file_system]} {device}")
    else:
        lab.shell(f"dd if=/dev/zero of={device} bs=1M count={SIZE_MIB} oflag=direct status=none")
    place = target(lab, arrangement, number)
    if arrangement.stops_flushing:
        lab.shell(f"echo 'write back' >/sys/block/{Path(place).name}/queue/write_cache")
    options = ["--overwrite", place] if not arrangement.file_system else []
    options += [] if arrangement.write_through else ["--plan", str(SHARE / "fdatasync.toml")]
    return lab.start(
        "assay", "verify", place, *MEASURE, *options, "--duration", "3600s", "--seed", SEED + number,
        "--crash-journal", SHARE / journal(name, number), "-o", SHARE / "runs",
    )  # fmt: skip


def cut_each(lab: Machine, at_work: Mapping[str, Running], number: int) -> None:
    """Cut each disk's power when the journal of its arrangement has grown to the size that the seed says."""
    ahead = {name: random.Random(f"{SEED + number} {name}").randint(*BLOCKS_MORE) for name in at_work}
    muted: set[str] = set()
    journals = {name: lab.share / journal(name, number) for name in at_work}

    def look() -> bool:
        for name in list(ahead):
            assert not at_work[name].ended, f"it ended before the cut: {at_work[name].end()}"
            blocks = journals[name].stat().st_size >> 12 if journals[name].exists() else 0
            if blocks < BLOCKS_FIRST:
                continue
            if ARRANGEMENTS[name].stops_flushing and name not in muted:
                muted.add(name)
                disk = Path(lab.device(ARRANGEMENTS[name].twin(number).name)).name
                lab.shell(f"echo 'write through' >/sys/block/{disk}/queue/write_cache")
                ahead[name] += journals[name].stat().st_size >> 12
            elif blocks >= BLOCKS_FIRST + ahead[name]:
                lab.cut_disk(ARRANGEMENTS[name].twin(number).name)
                del ahead[name]
                lab.kill(at_work[name])
        return not ahead

    lab.wait_until(look, every_s=0.02)


def judge(lab: Machine, number: int, found: Mapping[str, Judged]) -> None:
    """Ask `--after-crash` of every arrangement, on the disks that the cut hit."""
    asked = {
        name: lab.start(
            "assay", "verify", target(lab, arrangement, number), *MEASURE, "--json",
            "--after-crash", SHARE / journal(name, number), "-o", SHARE / "runs",
        )
        for name, arrangement in ARRANGEMENTS.items()
    }  # fmt: skip
    for name, running in asked.items():
        done = running.end()
        found[name].codes.append(done.code)
        if done.code in (0, 4):
            kept = done.document["integrity"]["journal"]
            found[name].acknowledged.append(kept["acknowledged"])
            found[name].promised.append(kept["promised_pages"])
        if done.code != 0:
            found[name].said.append((done.stderr.splitlines() or [""])[-1])
    for arrangement in ARRANGEMENTS.values():
        if arrangement.file_system:
            lab.shell(f"umount /run/{arrangement.twin(number).name}")


@pytest.mark.parametrize("name", [name for name, arrangement in ARRANGEMENTS.items() if not arrangement.lies])
@pytest.mark.lab(
    line="Power cuts: {name}",
    proves="an honest disk with a volatile cache is not accused after so many cuts",
    cannot=EMULATION_PROVES_NOT,
)
def test_an_honest_disk_is_never_accused(
    judged: Mapping[str, Judged], name: str, observed: Callable[[str], None]
) -> None:
    observed(judged[name].text)
    assert judged[name].codes == [0] * ROUNDS, judged[name].said
    assert sum(judged[name].promised) > 0


@pytest.mark.parametrize("name", [name for name, arrangement in ARRANGEMENTS.items() if arrangement.lies])
@pytest.mark.lab(
    line="Power cuts: {name}",
    proves="a disk that loses what it acknowledged as durable is convicted, so that a pass above means something",
    cannot="how likely a real liar is caught: it may lose less than its whole cache",
)
def test_a_lying_disk_is_convicted(judged: Mapping[str, Judged], name: str, observed: Callable[[str], None]) -> None:
    observed(judged[name].text)
    assert judged[name].codes.count(4) * 2 >= ROUNDS, judged[name].said
