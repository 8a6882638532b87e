"""Multipath: what becomes of a run whose paths are lost and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from assay.record.flight import read_recording
from lab.disks import Disk
from lab.kinds import Kind, two_paths
from lab.machine import RECORDS, SHARE, Machine

MAP = "/dev/mapper/mp"
PATHS = ("sda", "sdb")
OUTPUT = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")
LOAD = (
    "--block",
    "8K",
    "--read",
    "100",
    "--random",
    "100",
    "--queue-depth",
    "4",
    "--warmup",
    "0s",
    "--duration",
    "20s",
)

LOST_S = 5.0
"""How long no path is there: longer than any hiccup of the emulator, shorter than what `verify` calls a long I/O."""


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    return machine(Disk(name="TWOPORTS", bus="virtio-scsi", wwn=0x5000C50015EA71AD, ports=2)).boot()


@pytest.fixture(autouse=True)
def multipath(lab: Machine) -> Iterator[None]:
    kind = Kind(device=MAP, make=two_paths("mp", "sda", "sdb"), unmake="dmsetup remove --retry mp")
    with kind.made(lab):
        yield


def lose(lab: Machine, path: str) -> None:
    """Switch a path off; its I/Os fail, and the map takes another path."""
    lab.shell(f"echo offline >/sys/block/{path}/device/state")


def restore(lab: Machine, path: str) -> None:
    """Switch a path on, and tell the map, as multipathd would."""
    lab.shell(
        f"echo running >/sys/block/{path}/device/state;"
        f' dmsetup message mp 0 "reinstate_path $(cat /sys/block/{path}/dev)"'
    )


def io_count(lab: Machine) -> int:
    """Return how many reads and writes the map has completed."""
    return lab.ios(MAP)


@pytest.mark.lab(
    line="Paths: one of two is lost under a profile",
    proves="the load goes on over the other path without an error",
    cannot="how long a failed path's I/Os take to be given up by a real link",
)
def test_a_profile_goes_on_when_a_path_is_lost(lab: Machine, observed: Callable[[str], None]) -> None:
    running = lab.start("assay", "profile", MAP, *LOAD, *OUTPUT)
    lab.wait_for_run(running)
    lab.wait_until(lambda: io_count(lab) > 1000, running)
    lose(lab, PATHS[1])
    before = io_count(lab)
    done = running.end()
    after_loss = io_count(lab) - before
    restore(lab, PATHS[1])

    assert done.code in (0, 1, 5), done.stderr
    (point,) = done.document["points"]
    observed(f"{point['read']['count']:,} reads, {point['errors']['count']} errors; {after_loss:,} I/Os after the loss")
    assert point["errors"]["count"] == 0
    assert after_loss > 0


@pytest.mark.lab(
    line="Paths: all are lost under verify and come back (queue_if_no_path)",
    proves="I/Os wait, none fails, and every page is right afterwards: exit code 0",
    cannot="a pause as long as a real fabric's",
)
def test_verify_passes_when_all_paths_come_back(lab: Machine, observed: Callable[[str], None]) -> None:
    running = lab.start(
        "assay", "verify", MAP, "--overwrite", MAP, "--size", "16M", "--memory", "2M", "--duration", "30s", *OUTPUT
    )
    lab.wait_for_run(running)
    lab.wait_until(lambda: io_count(lab) > 500, running)
    for path in PATHS:
        lose(lab, path)
    before = io_count(lab)
    time.sleep(LOST_S)
    waited = io_count(lab) - before
    for path in PATHS:
        restore(lab, path)
    done = running.end()
    observed(f"exit code {done.code}; {waited} I/Os completed in {LOST_S:.0f} s without a path")
    assert done.code == 0, done.stderr
    assert max(entry["slowest_io_ms"] for entry in done.document["integrity"]["files"]) >= LOST_S * 1e3 / 2


@pytest.mark.lab(
    line="Paths: rates by path under `assay record`, one of two lost",
    proves="the recorder counts each path's own I/Os, and that one of them has failed",
    cannot="rates of a real fabric",
)
def test_the_recorder_counts_each_path(lab: Machine, observed: Callable[[str], None]) -> None:
    # SQLite's log needs memory that is shared through its file, which the share has not.
    recording = lab.start("assay", "record", "start", "/tmp/recording", "--no-processes", "--for", "60s")
    lab.wait_until(lambda: lab.run(*RECORDS).code == 0, recording)
    running = lab.start("assay", "profile", MAP, *LOAD, *OUTPUT)
    lab.wait_for_run(running)
    lab.wait_until(lambda: io_count(lab) > 1000, running)
    lose(lab, PATHS[1])
    running.end()
    restore(lab, PATHS[1])
    recording.end().checked()
    lab.shell("cp -r /tmp/recording /run/lab/recording")

    rows = read_recording(lab.share / "recording").records()
    reads = {
        path: sum(
            row["value"] or 0.0
            for row in rows
            if row["source"] == "path" and row["entity"].endswith(f"/{path}") and row["metric"] == "read_ios_count"
        )
        for path in PATHS
    }
    failed = max(row["value"] for row in rows if row["metric"] == "paths_failed_count")
    told = ", ".join(f"{count:,.0f} over {path}" for path, count in reads.items())
    observed(f"reads: {told}; paths failed at most: {failed:.0f}")
    assert 0 < reads[PATHS[1]] < reads[PATHS[0]]
    assert failed == 1
