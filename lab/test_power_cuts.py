"""Power cuts under `assay verify --crash-journal`: an honest disk is never accused, a lying one is convicted.

All arrangements work in one machine, so that one cut hits them all. Each has two disks, which take turns: the next boot
judges one, and the other is made anew to be at work in the next cut.

LAB_CUTS says how often the power is cut (4), LAB_SEED (1) begins the seeds: cut number N has seed LAB_SEED + N.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab.disks import Disk
from lab.machine import SHARE, Machine, Running

CUTS = int(os.environ.get("LAB_CUTS", "4"))
SEED = int(os.environ.get("LAB_SEED", "1"))
BLOCKS_FIRST = 2
"""All journals have grown so far when the disk that is to be sent no flushes is sent its last one."""

BLOCKS_MORE = (1, 40)
"""By how many blocks of 255 writes, for each arrangement, they have grown when the power goes; the seed chooses."""

MEASURE = ("--size", "8M", "--memory", "2M", "--no-report", "--quiet")
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

    @property
    def lies(self) -> bool:
        """Whether the storage loses what it acknowledged as durable."""
        return self.disk.cache == "lying" or self.stops_flushing

    def twin(self, number: int) -> Disk:
        """Return the disk of every second cut."""
        return Disk(name=f"{self.disk.name}{number % 2}", cache=self.disk.cache, size_mib=self.disk.size_mib)


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
    """What `--after-crash` said of each cut: the exit codes, and how many writes had been acknowledged."""

    codes: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    promised: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the line of the results."""
        codes = ", ".join(f"{self.codes.count(code)} x {code}" for code in sorted(set(self.codes)))
        cuts = "1 cut" if len(self.codes) == 1 else f"{len(self.codes)} cuts"
        return f"{cuts}, {sum(self.acknowledged):,} writes acknowledged; exit codes {codes}"


@pytest.fixture(scope="module")
def judged(machine: Callable[..., Machine]) -> Mapping[str, Judged]:
    """Cut the power as often as asked, and judge every cut of every arrangement."""
    found = {name: Judged() for name in ARRANGEMENTS}
    lab = machine(*(arrangement.twin(turn) for arrangement in ARRANGEMENTS.values() for turn in (0, 1)))
    for number in range(CUTS + 1):
        for arrangement in ARRANGEMENTS.values():
            make_disk(lab.stores[arrangement.twin(number).name].path, arrangement)
        lab.boot()
        if number > 0:
            judge(lab, number - 1, found)
        if number < CUTS:
            work_until_the_cut(lab, number)
        lab.cut()
    return found


def make_disk(path: Path, arrangement: Arrangement) -> None:
    """Empty a disk that is off, and make its file system."""
    with path.open("r+b") as image:
        image.truncate(0)
        image.truncate(arrangement.disk.size_mib << 20)
    if arrangement.file_system:
        options = {"ext4": "-qF", "xfs": "-qf"}[arrangement.file_system]
        subprocess.run([f"mkfs.{arrangement.file_system}", options, path], check=True)


def target(lab: Machine, arrangement: Arrangement, number: int) -> str:
    """Return what `verify` works on in a cut, mounted if it is a file system."""
    disk = arrangement.twin(number)
    device = lab.device(disk.name)
    if not arrangement.file_system:
        return device
    lab.shell(f"mkdir -p /run/{disk.name} && mount -t {arrangement.file_system} {device} /run/{disk.name}")
    return f"/run/{disk.name}"


def journal(arrangement: Arrangement, number: int) -> str:
    """Return the name of a cut's journal in the share."""
    return f"{arrangement.disk.name}-{number}.journal"


def work_until_the_cut(lab: Machine, number: int) -> None:
    """Let all arrangements work until their journals have grown to the size that the seed says."""
    seed = SEED + number
    blocks = random.Random(seed).randint(*BLOCKS_MORE) * len(ARRANGEMENTS)
    (lab.share / "fdatasync.toml").write_text("write_through = false\n")
    at_work: dict[str, Running] = {}
    for name, arrangement in ARRANGEMENTS.items():
        place = target(lab, arrangement, number)
        options = ["--overwrite", place] if not arrangement.file_system else []
        options += [] if arrangement.write_through else ["--plan", str(SHARE / "fdatasync.toml")]
        at_work[name] = lab.start(
            "assay", "verify", place, *MEASURE, *options, "--duration", "3600s", "--seed", str(seed),
            "--crash-journal", SHARE / journal(arrangement, number), "-o", SHARE / "runs",
        )  # fmt: skip

    journals = {name: lab.share / journal(arrangement, number) for name, arrangement in ARRANGEMENTS.items()}

    def sizes() -> list[int]:
        return [path.stat().st_size >> 12 if path.exists() else 0 for path in journals.values()]

    for running in at_work.values():
        lab.wait_until(lambda: min(sizes()) >= BLOCKS_FIRST, running, every_s=0.02)
    for arrangement in ARRANGEMENTS.values():
        if arrangement.stops_flushing:
            disk = Path(lab.device(arrangement.twin(number).name)).name
            lab.shell(f"echo 'write through' >/sys/block/{disk}/queue/write_cache")
    so_far = sum(sizes())
    for running in at_work.values():
        lab.wait_until(lambda: sum(sizes()) >= so_far + blocks, running, every_s=0.02)


def judge(lab: Machine, number: int, found: Mapping[str, Judged]) -> None:
    """Ask `--after-crash` of every arrangement, on the disks that the cut hit."""
    asked = {
        name: lab.start(
            "assay", "verify", target(lab, arrangement, number), *MEASURE, "--json",
            "--after-crash", SHARE / journal(arrangement, number), "-o", SHARE / "runs",
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
        else:
            found[name].said.append(done.stderr.splitlines()[-1])


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
    assert judged[name].codes == [0] * CUTS, judged[name].said
    assert min(judged[name].promised) > 0


@pytest.mark.parametrize("name", [name for name, arrangement in ARRANGEMENTS.items() if arrangement.lies])
@pytest.mark.lab(
    line="Power cuts: {name}",
    proves="a disk that loses what it acknowledged as durable is convicted, so that a pass above means something",
    cannot="how likely a real liar is caught: it may lose less than its whole cache",
)
def test_a_lying_disk_is_convicted(judged: Mapping[str, Judged], name: str, observed: Callable[[str], None]) -> None:
    observed(judged[name].text)
    assert judged[name].codes.count(4) * 2 >= CUTS, judged[name].said
