"""A night of `verify`: all users on a file system on RAID whose disks fail and are rebuilt.

LAB_NIGHT_HOURS says how long (8; 0.1 is a look at whether it works).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from lab.disks import Disk
from lab.machine import SHARE, Machine

HOURS = float(os.environ.get("LAB_NIGHT_HOURS", "8"))
DISKS = tuple(Disk(name=f"MD{number}", size_mib=128) for number in range(4))
MEMBERS = tuple(f"/dev/vd{letter}" for letter in "abcd")

REBUILT = """
cd /sys/block/md0/md
until [ $(cat degraded) = 0 ] && [ $(cat sync_action) = idle ]; do
    waited=$((${waited:-0} + 1))
    [ $waited -lt 900 ] || { cat /proc/mdstat >&2; dmesg | grep -A 12 "blocked for more" | head -60 >&2; exit 1; }
    sleep 1
done
"""
"""Wait until the spare has been filled. `mdadm --wait` may miss the end, and wait for ever."""


@pytest.mark.night
@pytest.mark.lab(
    line="Night: verify with all users, files that grow and shrink, on ext4 on RAID 10 with a spare",
    proves="no page is wrong while disks fail, are rebuilt on the spare and come back as spares, again and again",
    cannot="disks that fail slowly, or that return wrong data to the rebuild",
)
def test_verify_through_failures_and_rebuilds(machine: Callable[..., Machine], observed: Callable[[str], None]) -> None:
    lab = machine(*DISKS).boot()
    lab.shell(
        "modprobe raid10; yes | mdadm --create /dev/md0 --level=10 --raid-devices=3 --spare-devices=1 --bitmap=none"
        f" --assume-clean {' '.join(MEMBERS)} >&2; mkfs.ext4 -qF /dev/md0; mkdir /run/night; mount /dev/md0 /run/night"
    )
    seconds = max(int(HOURS * 3600), 60)
    running = lab.start(
        "assay", "verify", "/run/night", "--size", "32M", "--memory", "4M", "--duration", f"{seconds}s",
        "--long-io", "300s", "--io-timeout", "900s", "--no-report", "--quiet", "--json", "-o", SHARE / "runs",
    )  # fmt: skip
    rebuilt = 0
    while not running.ended:
        member = MEMBERS[rebuilt % len(MEMBERS)]
        # What fails is an active disk; the one that comes back is the spare of the next failure.
        lab.shell(
            f"mdadm --quiet /dev/md0 --fail {member}; {REBUILT} mdadm --quiet /dev/md0 --remove {member};"
            f" mdadm --quiet --zero-superblock {member}; mdadm --quiet /dev/md0 --add {member}; sleep 5"
        )
        rebuilt += 1
    done = running.end()
    observed(f"{seconds / 3600:.2g} hours, {rebuilt} disks failed and rebuilt; exit code {done.code}")
    assert done.code == 0, done.stderr
    integrity = done.document["integrity"]
    observed(f"{integrity['pages_verified']:,} pages verified, {integrity['resizes']} resizes")
    lab.shell("umount /run/night; mdadm --stop /dev/md0")
