"""Multipath: what is seen of each path, and what becomes of a run whose paths are lost and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lab.disks import Disk
from lab.machine import SHARE, Machine

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
    lab = machine(Disk(name="TWOPORTS", bus="virtio-scsi", wwn=0x5000C50015EA71AD, ports=2)).boot()
    lab.shell("modprobe -a dm_multipath dm_round_robin")
    return lab


@pytest.fixture(autouse=True)
def multipath(lab: Machine) -> Iterator[None]:
    lab.shell(
        "blocks=$(cat /sys/block/sda/size); first=$(cat /sys/block/sda/dev); second=$(cat /sys/block/sdb/dev);"
        ' dmsetup create mp -u mpath-lab --table "0 $blocks multipath 1 queue_if_no_path'
        ' 0 1 1 round-robin 0 2 1 $first 1 $second 1"'
    )
    yield
    lab.shell("dmsetup remove --retry mp")


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
    return lab.reads(MAP) + lab.writes(MAP)


def series(run: Path, source: str, metric: str) -> dict[str, float]:
    """Return the largest value of a metric by entity."""
    rows = pq.read_table(run / "series.parquet")
    rows = rows.filter(pc.and_(pc.equal(rows["source"], source), pc.equal(rows["metric"], metric)))
    largest: dict[str, float] = {}
    for entity, value in zip(rows["entity"].to_pylist(), rows["value"].to_pylist(), strict=True):
        largest[entity] = max(largest.get(entity, value), value)
    return largest


@pytest.mark.lab(
    line="Paths: one of two is lost under a profile",
    proves="the load goes on without an error; the recorder tells rates by path and that one has failed",
    cannot="how long a failed path's I/Os take to be given up by a real link",
)
def test_a_profile_goes_on_when_a_path_is_lost(lab: Machine, observed: Callable[[str], None]) -> None:
    running = lab.start("assay", "profile", MAP, *LOAD, *OUTPUT)
    lab.wait_for_run(running)
    lab.wait_until(lambda: io_count(lab) > 1000, running)
    lose(lab, PATHS[1])
    done = running.end()
    restore(lab, PATHS[1])

    assert done.code in (0, 1), done.stderr
    (point,) = done.document["points"]
    run = lab.share / str(done.document["run_folder"]).removeprefix(f"{SHARE}/")
    failed = series(run, "multipath", "paths_failed_count")
    metrics = pq.read_table(run / "series.parquet", columns=["entity", "metric"])
    by_path = {str(entity) for entity in metrics["entity"].to_pylist() if "/" in str(entity)}
    observed(
        f"{point['read']['count']:,} reads, {point['errors']['count']} errors; recorded {', '.join(sorted(by_path))}"
    )
    assert point["errors"]["count"] == 0
    assert set(failed.values()) == {1.0}
    assert {entity.rpartition("/")[2] for entity in by_path} >= set(PATHS)


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
