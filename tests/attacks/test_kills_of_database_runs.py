"""Runs that are killed at moments that nobody chose: no orphan, nothing left behind, the next run works.

The attack is kill -9, SIGHUP, SIGTERM, and SIGSTOP before a kill, at a random moment of a verb's work.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from database_folders import SMALL

from assay_command import Bench, Started
from slow_marks import mostly_slow

QUICK = ("--warmup", "0s", "--duration", "1s")
VERBS = {
    "tpcc": (
        *("oltp", "tpcc", f"embedded:{{}}/db?{SMALL}", "load", "save", "run", "restore", "check", *QUICK),
        *("--warehouses", "1", "--users", "4"),
    ),
    "dss": ("dss", "tpch", "duckdb:{}/db", "load", "save", "run", "restore", "check", "--scale", "0.02"),
    "mailbox": (
        *("mailbox", "{}/f.dat", "--mailboxes", "10", "--mailbox-size", "3M", "--databases", "1", *QUICK),
        *("--checkpoint-depth", "256K", "--iops-per-mailbox", "20"),
    ),
}
SIGNALS = {"KILL": (signal.SIGKILL,), "HUP": (signal.SIGHUP,), "STOP": (signal.SIGSTOP, signal.SIGKILL)}


def at_work_in(folder: Path) -> list[str]:
    """Processes whose command line or folder names a folder."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = os.readlink(f"/proc/{name}/cwd")
        except OSError:
            continue
        if int(name) != os.getpid() and (str(folder) in words or where.startswith(str(folder))):
            found.append(words)
    return found


def wait_until_alone(folder: Path) -> None:
    deadline = time.monotonic() + 60
    while left := at_work_in(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("verb", "how"),
    mostly_slow(
        [(verb, how) for verb in VERBS for how in SIGNALS],
        [("dss", "KILL"), ("mailbox", "HUP")],
        reason="each verb and signal ends what it started in the same way",
    ),
)
@pytest.mark.slow(reason="seconds of attacks; quicker ones of the kind run in make test")
def test_a_killed_run_leaves_nothing_and_the_next_one_works(bench: Bench, verb: str, how: str) -> None:
    seed = int(os.environ.get("ASSAY_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
    chance = random.Random(seed)
    target = bench.target.parent
    words = [word.replace("{}", str(target)) for word in VERBS[verb]]
    for _ in range(2):
        with bench.started(*words, "--no-report", "-o", bench.results, forked=False) as running:
            end_at(running, chance.uniform(0.5, 6.0), SIGNALS[how])
        wait_until_alone(target)

    outcome = bench.assay(*words, "--no-report", "-o", bench.results)

    assert outcome.code in (0, 1, 5), f"seed {seed}: {outcome.stderr}"
    wait_until_alone(target)
    if verb == "tpcc":
        names = {path.name for path in (target / "db").iterdir()} - {"server.log.1"}
        assert names == {".assay-database", "lock", "server.log", "state.json", *data_and_saved(names)}, f"seed {seed}"
    if verb == "dss":
        assert [path.name for path in target.iterdir() if not path.name.startswith("db.assay-saved-")] == ["db"]


def data_and_saved(names: set[str]) -> list[str]:
    (data,) = (name for name in names if name.startswith("data-"))
    (saved,) = (name for name in names if name.startswith("saved-"))
    return [data, saved]


def end_at(running: Started, after_s: float, numbers: tuple[signal.Signals, ...]) -> None:
    assert isinstance(running.process, subprocess.Popen)
    try:
        running.process.wait(after_s)
    except subprocess.TimeoutExpired:
        for number in numbers:
            running.process.send_signal(number)
        running.process.wait(60)
