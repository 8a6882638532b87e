"""Any flush of a `verify` run may be the last thing that a disk did: what it held agrees with the crash journal.

The target and its journal lie on one disk whose writes are logged, so that each prefix has the journal of its moment.
The machine writes; this host replays and judges.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.disks import Disk
from lab.machine import ROOT, SHARE, Machine
from lab.write_log import Replay

POINTS = int(os.environ.get("LAB_FLUSHES", "40"))
"""Flushes that are judged, chosen by a seed; 0: all."""

CONTROLS = 10
DISK = Disk(name="LOGGED", size_mib=80, logged=True)
TARGET_MIB = 16
MEASURE = ("--size", "8M", "--memory", "2M", "--no-report", "--quiet")


@pytest.fixture(scope="module", params=["write-through", "fdatasync"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def replay(machine: Callable[..., Machine], way: str) -> Replay:
    """Work of a short run, whose power is cut."""
    lab = machine(DISK)
    (lab.share / "plan.toml").write_text(f"write_through = {str(way == 'write-through').lower()}\n")
    lab.boot()
    sectors = TARGET_MIB << 11
    lab.shell(
        f"modprobe dm_mod; dmsetup create target --table '0 {sectors} linear /dev/vda 0';"
        f' dmsetup create journal --table "0 $(($(cat /sys/block/vda/size) - {sectors})) linear /dev/vda {sectors}";'
        " mkfs.ext4 -qF /dev/mapper/journal; mkdir /run/journal; mount -t ext4 /dev/mapper/journal /run/journal"
    )
    target = "/dev/mapper/target"
    done = lab.assay(
        "verify", target, "--overwrite", target, *MEASURE, "--plan", SHARE / "plan.toml", "--duration", "2s",
        "--crash-journal", "/run/journal/kept", "-o", SHARE / "runs",
    )  # fmt: skip
    done.checked()
    lab.cut()
    return Replay(lab.stores[DISK.name].log_path, lab.folder / "replayed.img", DISK.size_mib << 20)


def journal_of(image: Path, kept: Path) -> bool:
    """Take the journal out of an image, as the file system's own recovery leaves it; gives whether it is there."""
    part = kept.with_suffix(".ext4")
    with image.open("rb") as whole, part.open("wb") as file:
        whole.seek(TARGET_MIB << 20)
        file.write(whole.read())
    kept.unlink(missing_ok=True)
    subprocess.run(["e2fsck", "-fy", part], capture_output=True, check=False)
    subprocess.run(["debugfs", "-R", f"dump /kept {kept}", part], capture_output=True, check=False)
    return kept.exists() and kept.stat().st_size > 1 << 12


def judged(image: Path, kept: Path, runs: Path) -> int:
    """Return the exit code of `--after-crash` on the first part of an image."""
    target = kept.with_suffix(".target")
    with image.open("rb") as whole, target.open("wb") as file:
        file.write(whole.read(TARGET_MIB << 20))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "assay", "verify", target, *MEASURE, "--after-crash", kept, "-o", runs]
    return subprocess.run(command, capture_output=True, check=False, env=environment).returncode


@pytest.mark.lab(
    line="Power cuts: every flush of a write log (blklogwrites) as the last, {way}",
    proves="what the disk held at each flush agrees with the journal of that moment, and an older target does not",
    cannot="orders of writes between two flushes other than the one that came",
)
def test_every_prefix_agrees_with_its_journal(replay: Replay, way: str, observed: Callable[[str], None]) -> None:
    image = replay.image
    kept, runs = image.with_name("kept"), image.with_name("runs")
    chosen: Any = range(1, replay.flushes + 1)
    if POINTS and replay.flushes > POINTS:
        chosen = [*sorted(random.Random(way).sample(chosen[:-1], POINTS - 1)), replay.flushes]
    codes: list[int] = []
    older: list[Path] = []
    for number in chosen:
        replay.to(number)
        if journal_of(image, kept):
            codes.append(judged(image, kept, runs))
            if codes[-1] == 0 and len(codes) % max(POINTS // CONTROLS, 1) == 0:
                older.append(image.with_name(f"older-{number}.img"))
                older[-1].write_bytes(image.read_bytes()[: TARGET_MIB << 20])
    observed(f"{len(codes)} of {replay.flushes:,} flushes judged; exit codes {sorted(set(codes))}")
    # A journal that is the end's beside a target that lost everything since: what is judged can be told apart.
    accused = [judged(one, kept, runs) for one in older[:-1]]
    observed(f"{accused.count(4)} of {len(accused)} targets older than the journal accused")
    assert codes
    assert set(codes) == {0}
    assert accused.count(4) * 2 >= len(accused) > 0
