"""Random fault scripts on a served array, while fio, `assay verify` and PostgreSQL write to it: all find every byte.

    .venv/bin/python benches/array_faults.py --first 1 --seeds 50 -o benches/results/array-faults.md

Takes root, FUSE, loop devices and fio. Each seed draws a RAID policy, members and a script within what the policy
bears: disks are pulled and put in, disks and paths slow down, paths and controllers are lost and come back, the
array's power is cut, and a second member joins where there is one. Some seeds run on hosts with flash, where one
disk or two are pulled at a time and a small pool is reclaimed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import AssayError
from assay.targets.arrays.live.events import command_of
from assay.targets.arrays.live.process import ServedArray
from assay.targets.arrays.live.spec import parse_served

FILERS = range(37, 1000, 4)
"""Seeds that run on a write-anywhere filer."""
HOSTS_WITH_FLASH = range(35, 1000, 4)
"""Seeds that run on hosts with flash over data nodes."""
ASSAY = (sys.executable, "-m", "assay")
LAST_S = 6.0
"""How long faults come."""
END_S = 600.0
"""How long what runs on the array may take."""


@dataclass
class Outcome:
    """What became of a seed."""

    seed: int
    array: str
    events: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def row(self) -> str:
        """A row of the table."""
        found = "all bytes" if not self.failures else "; ".join(self.failures)
        kinds = ", ".join(f"{self.count(kind)} {kind}" for kind in KINDS if self.count(kind))
        return f"| {self.seed} | `{self.array}` | {kinds} | {found} | {self.seconds:.0f} |"

    def count(self, kind: str) -> int:
        """Events of a kind."""
        return sum(event.startswith(kind) for event in self.events)


KINDS = ("pull", "insert", "slow", "fail-path", "fail-controller", "cut-power", "add-member")


class Script:
    """Faults drawn one after the other, from what the array is at that moment."""

    def __init__(self, array: ServedArray, draw: random.Random, outcome: Outcome) -> None:
        self._array, self._draw, self._outcome = array, draw, outcome
        self._back: list[tuple[float, str]] = []

    def run(self) -> None:
        """Faults until the time is over; then all that is lost comes back."""
        ends_at = time.monotonic() + LAST_S
        while time.monotonic() < ends_at:
            self._bring_back(time.monotonic())
            self._one()
            time.sleep(self._draw.uniform(0.2, 1.2))
        self._bring_back(float("inf"))
        # Chunks that move onto a member do so while all is verified.
        while (state := self._array.ask({"command": "counters"})["state"]) not in ("healthy", "rebalancing"):
            if state == "degraded":
                self._do("insert")
            time.sleep(0.3)

    def _one(self) -> None:
        counters = self._array.ask({"command": "counters"})
        members = counters["members"]
        disks = self._draw.choice(members)["disks"]
        disk = self._draw.choice(disks)["name"]
        is_whole = all(one["state"] == "present" for one in disks)
        kinds = ["pull", "pull", "insert", "slow", "slow", "path", "controller", "power"]
        has_pool = "pool" in counters
        if has_pool:
            is_whole = counters["state"] == "healthy"
            kinds = [kind for kind in kinds if kind not in ("path", "controller")]
        elif len(members) == 1:
            kinds += ["member", "member"]
        kind = self._draw.choice(kinds)
        waiting = {words for _, words in self._back}
        if kind == "pull" and is_whole:
            # Parity of a pool makes up for two disks. Where the second is the first, it is refused.
            for pulled in [disk, self._draw.choice(disks)["name"]] if has_pool else [disk]:
                self._do(f"pull {pulled}{self._draw.choice(('', ' keep-spare'))}")
        elif kind == "insert" and counters["state"] == "degraded":
            self._do("insert")
        elif kind == "slow":
            what = disk if has_pool else self._draw.choice((disk, "path0"))
            self._do(f"slow {what} x{self._draw.randrange(2, 20)}", f"slow {what} x1")
        elif kind in ("path", "controller") and "mend-paths" not in waiting:
            self._do(f"fail-{kind}", "mend-paths")
        elif kind == "power" and "restore" not in waiting:
            self._do("cut-power", "restore")
        elif kind == "member":
            self._do("add-member")

    def _do(self, words: str, undone: str = "") -> None:
        try:
            self._array.ask(command_of(words))
        except AssayError:
            # What is under way already, such as a rebuild, refuses some.
            return
        self._outcome.events.append(words)
        if undone:
            self._back.append((time.monotonic() + self._draw.uniform(0.3, 2.0), undone))

    def _bring_back(self, until: float) -> None:
        for due in [one for one in self._back if one[0] <= until]:
            self._back.remove(due)
            self._array.ask(command_of(due[1]))


def fio(folder: Path, seed: int, *, verifies: bool) -> list[str]:
    """The command that writes a file once in random order, or that verifies it."""
    blocks = "--bssplit=4k/40:12k/20:32k/20:128k/20" if seed in HOSTS_WITH_FLASH else "--bs=8k"
    return [
        "fio", "--name=faults", "--verify_state_save=0", f"--filename={folder}/fio", "--size=48M", blocks,
        "--rw=randwrite", "--direct=1", "--ioengine=psync", "--numjobs=1", f"--randseed={seed}",
        "--verify=crc32c", "--verify_fatal=1", "--fsync=64", "--output-format=terse",
        "--verify_only" if verifies else "--do_verify=0",
    ]  # fmt: skip


def run_seed(seed: int, base: Path) -> Outcome:
    """One seed, from an empty store."""
    draw = random.Random(seed)
    raid, members = draw.choice(("10", "50", "5", "6")), draw.choice((1, 2))
    array_text, own = f"ps6100xv?raid={raid}&members={members}", "cache=64MiB"
    if seed in FILERS:
        # Sums, diagonal parity and blocks that move.
        array_text = "fas2040?raid=dp"
    elif seed in HOSTS_WITH_FLASH:
        # Containers are full soon, and the pool is, so that they are reclaimed.
        array_text, own = f"datrium-dvx?hosts=2&nodes={members}", "log.container=1MiB&room=1G"
    folder = base / f"seed{seed}"
    text = f"{array_text}&{own}&volumes=data:3,log:1&size=6G"
    array = ServedArray(parse_served(f"array:{text}&at={folder}"), mounted=True)
    outcome = Outcome(seed, array_text.removeprefix("ps6100xv?"))
    began = time.monotonic()
    array.start()
    try:
        _put_to_work(array, draw, outcome, base)
    finally:
        array.stop()
        shutil.rmtree(array.spec.store, ignore_errors=True)
    outcome.seconds = time.monotonic() - began
    return outcome


def _put_to_work(array: ServedArray, draw: random.Random, outcome: Outcome, base: Path) -> None:
    places = [array.place_of(name) for name in ("data01", "data02", "data03", "log01")]
    database = f"embedded:{places[2]}/pg?wal={places[3]}/wal"
    runs = ("-o", str(base / "runs"), "--no-report", "--quiet")
    oltp = (*ASSAY, "oltp", "tpcc", database)
    _check(subprocess.run((*oltp, "load", "--warehouses", "1", *runs), capture_output=True, text=True), "load", outcome)
    length = f"{LAST_S:g}s"
    works = {
        "fio": fio(places[0], outcome.seed, verifies=False),
        "assay verify": [*ASSAY, "verify", str(places[1]), "--size", "48M", "--duration", length, *runs],
        "PostgreSQL": [*oltp, "run", "check", "--users", "4", "--warmup", "1s", "--duration", length, *runs],
    }
    started = {
        name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in works.items()
    }
    try:
        Script(array, draw, outcome).run()
        for name, process in started.items():
            said, _ = process.communicate(timeout=END_S)
            _check(subprocess.CompletedProcess(works[name], process.returncode, said, ""), name, outcome)
    finally:
        for process in started.values():
            process.kill()
    verified = subprocess.run(fio(places[0], outcome.seed, verifies=True), capture_output=True, text=True)
    _check(verified, "fio's verify", outcome)


def _check(done: subprocess.CompletedProcess[str], what: str, outcome: Outcome) -> None:
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        outcome.failures.append(f"{what} ended with {done.returncode}: {(lines or ['no word'])[-1][:200]}")


def page(outcomes: Sequence[Outcome]) -> str:
    """The page with all outcomes."""
    failed = [one.seed for one in outcomes if one.failures]
    told = f"{len(failed)} of {len(outcomes)} failed: {failed}" if failed else f"all {len(outcomes)} found every byte"
    rows = "\n".join(one.row for one in outcomes)
    return f"""# Fault scripts on served arrays

`benches/array_faults.py`: fio (randwrite, verify=crc32c), `assay verify` and PostgreSQL (TPC-C-like, its conditions)
write at the same time to file systems on one served array with a battery-backed cache, while a script of random
faults goes on for {LAST_S:g} s. {len(outcomes)} seeds: {told}.

| seed | array | faults | found | seconds |
|---|---|---|---|---|
{rows}
"""


def main() -> int:
    """Run the seeds; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="assay-faults-") as base:
        for seed in range(given.first, given.first + given.seeds):
            outcomes.append(run_seed(seed, Path(base)))
            print(
                json.dumps({"seed": seed, "events": outcomes[-1].events, "failures": outcomes[-1].failures}), flush=True
            )
            if given.output is not None:
                given.output.write_text(page(outcomes))
    return int(any(one.failures for one in outcomes))


if __name__ == "__main__":
    sys.exit(main())
