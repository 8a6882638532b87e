"""Health of drives, from the drive to the answer: QEMU's NVMe is asked with nvme-cli and with smartctl."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.disks import Disk
from lab.machine import SHARE, Machine

DRIVE = Disk(name="HEALTH", bus="nvme", logical_block_bytes=4096, physical_block_bytes=4096)
PROFILE = ("--block", "8K", "--read", "100", "--queue-depth", "1", "--duration", "2s", "--warmup", "0s")
QUIET = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    return machine(DRIVE).boot()


def drive_of(lab: Machine) -> dict[str, Any]:
    """The drive as a run keeps it."""
    done = lab.assay("profile", "/dev/nvme0n1", *PROFILE, *QUIET).checked()
    run = lab.share / str(done.document["run_folder"]).removeprefix(f"{SHARE}/")
    (drive,) = json.loads((run / "run.json").read_text())["target"]["drives"]
    assert drive["name"] == "nvme0n1"
    return dict(drive)


@pytest.mark.lab(
    line="Drives: NVMe: health and atomic writes",
    proves="a run keeps SMART, formats, write cache and the atomic limit of the drive, read by nvme-cli",
    cannot="throttling, wear and the log pages of vendors, which QEMU does not have; with Debian 12's own kernel also"
    " `queue/atomic_write_*`, which Linux has from 6.11 on",
)
def test_a_run_keeps_the_health_of_its_drive(lab: Machine, observed: Callable[[str], None]) -> None:
    drive = drive_of(lab)
    after = drive["after"]
    observed(f"{drive['model']}, {after['temperature_celsius']:.0f} degrees, {drive['atomic_writes']}")
    assert (drive["told_by"], drive["model"]) == ("nvme-cli", "QEMU NVMe Ctrl")
    # Constants of hw/nvme: 323 K, a warning at 343 K, and AWUPF 0, which is one block.
    assert (after["temperature_celsius"], drive["warning_celsius"]) == (50.0, 70.0)
    assert (after["critical_warnings"], after["media_errors"]) == ([], 0)
    assert after["host_read_bytes"] >= drive["before"]["host_read_bytes"]
    assert drive["atomic_writes"]["power_fail_bytes"] == 4096
    told = lab.shell("cat /sys/block/nvme0n1/queue/atomic_write_unit_max_bytes 2>/dev/null || echo none").strip()
    assert drive["atomic_writes"].get("unit_max_bytes") == (None if told == "none" else int(told))
    assert drive["volatile_write_cache"] is True
    assert [one["block_bytes"] for one in drive["formats"] if one["in_use"]] == [4096]
    assert drive["points_watched"]
    assert drive["points_hot"] == []


@pytest.mark.lab(
    line="Drives: NVMe: purge by format",
    proves="a namespace that is named twice is formatted as a whole before the run writes, and refused where it is not",
    cannot="what a format does to flash",
)
def test_a_purge_formats_the_namespace(lab: Machine, observed: Callable[[str], None]) -> None:
    at = 4 << 20
    read = f"blockdev --flushbufs /dev/nvme0n1; dd if=/dev/nvme0n1 bs=8 skip={at} count=1 2>/dev/null"
    lab.shell(f"echo -n WASTHERE | dd of=/dev/nvme0n1 bs=8 seek={at} conv=fsync 2>/dev/null")
    asked = ("--size", "8M", "--overwrite", "/dev/nvme0n1", "--precondition", "purge", "--purge", "format")

    refused = lab.assay("profile", "/dev/nvme0n1", *PROFILE, *asked, *QUIET)
    assert refused.code == 2
    assert "allow it by name with --yes-format /dev/nvme0n1" in refused.stderr
    assert "WASTHERE" in lab.shell(read)

    done = lab.assay("profile", "/dev/nvme0n1", *PROFILE, *asked, "--yes-format", "/dev/nvme0n1", *QUIET).checked()
    (state,) = {json.dumps(point["state"]) for point in done.document["points"]}
    observed(state)
    assert json.loads(state)["purge"] == "format"
    assert "WASTHERE" not in lab.shell(read)


@pytest.mark.lab(
    line="Drives: NVMe: a warning",
    proves="a drive that warns is a finding of check, and a bad note of a run; smartctl says the same",
    cannot="that a drive warns before it fails",
)
def test_a_drive_that_warns_is_found(lab: Machine, observed: Callable[[str], None]) -> None:
    lab.set_property("nvme-d0", "smart_critical_warning", 4)
    try:
        done = lab.assay("check", "/dev/nvme0n1", "--only", "drives", "--json")
        found = {one["rule"]: one["found"] for one in done.document["findings"]}
        observed(str(found))
        assert found["drive-critical-warning"] == "reliability degraded"
        assert drive_of(lab)["after"]["critical_warnings"] == ["reliability degraded"]
        told = json.loads(lab.run("smartctl", "--json", "--health", "/dev/nvme0n1").stdout)
        assert told["smart_status"]["nvme"]["value"] == 4
    finally:
        lab.set_property("nvme-d0", "smart_critical_warning", 0)
