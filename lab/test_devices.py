"""Kinds of devices: what Assay says of each, what it refuses, and whether it reads, writes and verifies on it.

One machine has all disks; each kind makes its device of them and takes it down for the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.disks import Disk
from lab.kinds import Kind, two_paths
from lab.machine import SHARE, Done, Machine

DISKS = (
    Disk(name="VB0", physical_block_bytes=4096),
    Disk(name="VB1"),
    Disk(name="VB2"),
    Disk(name="VB3"),
    Disk(name="VB4K", logical_block_bytes=4096, physical_block_bytes=4096),
    Disk(name="VBWT", write_cache=False),
    Disk(name="SCSI", bus="virtio-scsi", wwn=0x5000C50015EA71AC, rotations_per_minute=7200),
    Disk(name="TWOPORTS", bus="virtio-scsi", wwn=0x5000C50015EA71AD, ports=2),
    Disk(name="NVME", bus="nvme", logical_block_bytes=4096, physical_block_bytes=4096),
)

PROFILE = (
    "--block",
    "8K",
    "--read",
    "100",
    "--random",
    "100",
    "--queue-depth",
    "4",
    "--duration",
    "2s",
    "--warmup",
    "0s",
)
QUIET = ("--no-report", "--quiet", "--json", "-o", SHARE / "runs")


@dataclass(frozen=True, kw_only=True)
class KnownKind(Kind):
    """A kind that Assay describes; the name in /sys is what its path leads to.

    Attributes
    ----------
    members
        Disks beneath it.
    queue, identity
        What its facts must say.
    """

    members: tuple[str, ...] = ()
    queue: Mapping[str, Any] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)


def raid(level: str, *members: str) -> KnownKind:
    """Return an md array, without a bitmap and with all of it in step already."""
    disks = " ".join(f"/dev/{member}" for member in members)
    return KnownKind(
        device="/dev/md0",
        members=members,
        make="modprobe -a raid1 raid10 raid456; yes | mdadm --create /dev/md0 --bitmap=none --assume-clean"
        f" --level={level} --raid-devices={len(members)} {disks}",
        unmake=f"mdadm --stop /dev/md0; mdadm --zero-superblock {disks}",
    )


LVM = "--config 'activation{udev_sync=0 udev_rules=0} devices{obtain_device_list_from_udev=0 use_devicesfile=0}'"

KINDS = {
    "virtio-blk 512e": KnownKind(
        device="/dev/vda",
        queue={"logical_block_bytes": 512, "physical_block_bytes": 4096, "write_cache": "write back"},
        identity={"serial": "VB0"},
    ),
    "virtio-blk 4Kn": KnownKind(
        device="/dev/vde",
        queue={"logical_block_bytes": 4096, "physical_block_bytes": 4096},
        identity={"serial": "VB4K"},
    ),
    "virtio-blk without a write cache": KnownKind(device="/dev/vdf", queue={"write_cache": "write through"}),
    "virtio-scsi, rotational": KnownKind(
        device="/dev/sda",
        queue={"rotational": True},
        identity={"serial": "SCSI", "wwn": "naa.5000c50015ea71ac"},
    ),
    "NVMe 4Kn": KnownKind(
        device="/dev/nvme0n1", queue={"rotational": False, "logical_block_bytes": 4096}, identity={"serial": "NVME"}
    ),
    "md RAID 1": raid("1", "vda", "vdb"),
    "md RAID 5": raid("5", "vda", "vdb", "vdc"),
    "md RAID 6": raid("6", "vda", "vdb", "vdc", "vdd"),
    "md RAID 10": raid("10", "vda", "vdb", "vdc", "vdd"),
    "LVM": KnownKind(
        device="/dev/mapper/lab-lv",
        members=("vdb",),
        make=f"modprobe dm_mod; pvcreate {LVM} -qyff /dev/vdb; vgcreate {LVM} -q lab /dev/vdb;"
        f" lvcreate {LVM} -qy -Zn -L 32M -n lv lab",
        unmake=f"vgchange {LVM} -qan lab; vgremove {LVM} -qf lab; pvremove {LVM} -qff /dev/vdb",
    ),
    "LUKS": KnownKind(
        device="/dev/mapper/secret",
        members=("vdb",),
        make="modprobe dm_crypt; printf x | cryptsetup luksFormat -q"
        " --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/vdb -;"
        " printf x | cryptsetup open --type luks --key-file - /dev/vdb secret",
        unmake="cryptsetup close secret",
    ),
    "thin volume": KnownKind(
        device="/dev/mapper/thin",
        members=("dm-1", "dm-0", "vdb", "vdc"),
        make='modprobe dm_thin_pool; dmsetup create meta --table "0 8192 linear /dev/vdb 0";'
        ' dmsetup create pool --table "0 $(cat /sys/block/vdc/size) thin-pool /dev/mapper/meta /dev/vdc 128 0";'
        ' dmsetup message pool 0 "create_thin 0"; dmsetup create thin --table "0 98304 thin /dev/mapper/pool 0"',
        unmake="dmsetup remove thin; dmsetup remove pool; dmsetup remove meta",
    ),
    "multipath, two ports": KnownKind(
        device="/dev/mapper/mp",
        members=("sdb", "sdc"),
        make=two_paths("mp", "sdb", "sdc"),
        unmake="dmsetup remove mp",
        identity={"wwn": "mpath-lab"},
    ),
}


@pytest.fixture(scope="module")
def lab(machine: Callable[..., Machine]) -> Machine:
    return machine(*DISKS).boot()


@pytest.fixture(scope="module", params=list(KINDS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kind(lab: Machine, name: str) -> Iterator[KnownKind]:
    kind = KINDS[name]
    with kind.made(lab):
        yield kind
    disks = [member for member in kind.members if not member.startswith("dm-")]
    wipe = " ".join(f"/dev/{disk}" for disk in disks) or kind.device
    lab.shell(
        f"for disk in {wipe}; do dd if=/dev/zero of=$disk bs=1M oflag=direct status=none 2>/dev/null || true; done"
    )


def refused(done: Done, *words: str) -> bool:
    """Whether a command was refused in one line that has these words."""
    (line,) = done.stderr.splitlines()
    return done.code == 2 and line.startswith("assay: ") and all(word in line for word in words)


@pytest.mark.lab(
    line="Kinds of devices: {name}: profile, facts, recorder",
    proves="a load reads it, facts, stack and identity are the kernel's, and the recorder counts it",
    cannot="that real devices tell the kernel the truth about themselves",
)
def test_a_profile_knows_the_device(lab: Machine, kind: KnownKind, observed: Callable[[str], None]) -> None:
    done = lab.assay("profile", kind.device, *PROFILE, *QUIET)
    assert done.code in (0, 1, 5), done.stderr
    (point,) = done.document["points"]
    run = lab.share / str(done.document["run_folder"]).removeprefix(f"{SHARE}/")
    (volume,) = json.loads((run / "run.json").read_text())["target"]["volumes"]
    in_sys = lab.in_sys(kind.device)

    observed(
        f"stack {' on '.join([volume['device_stack'][0], ', '.join(volume['device_stack'][1:])]).removesuffix(' on ')}"
    )
    assert point["read"]["count"] > 0
    assert point["errors"]["count"] == 0
    assert volume["device"] == in_sys
    assert set(volume["device_stack"]) == {in_sys, *kind.members}
    assert {key: volume["queue"][key] for key in kind.queue} == kind.queue
    assert {key: volume["identity"][key] for key in kind.identity} == kind.identity
    assert recorded(run, in_sys)


def recorded(run: Any, device: str) -> bool:
    """Whether the run's series counts reads of the device."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows = pq.read_table(run / "series.parquet")
    found = rows.filter(pc.and_(pc.equal(rows["source"], "block"), pc.equal(rows["entity"], device)))
    return bool(pc.sum(found["value"]).as_py())


@pytest.mark.lab(
    line="Kinds of devices: {name}: safety rules",
    proves="members, file systems and mounts are refused, whatever the options allow",
    cannot="anything of devices shared between hosts",
)
def test_what_is_used_is_refused(lab: Machine, kind: KnownKind, observed: Callable[[str], None]) -> None:
    write = (*PROFILE[:2], "--read", "0", *PROFILE[4:], *QUIET)
    for member in kind.members:
        disk = f"/dev/{member}"
        assert refused(lab.assay("profile", disk, *write, "--overwrite", disk, "--yes-destroy", disk), "is held by")
    assert refused(lab.assay("profile", kind.device, *write), "--overwrite")

    lab.shell(f"mkfs.ext4 -qF {kind.device} && mkdir -p /run/mounted")
    assert refused(lab.assay("profile", kind.device, *write, "--overwrite", kind.device), "ext4", "--yes-destroy")
    lab.shell(f"mount -t ext4 {kind.device} /run/mounted")
    allowed = ("--overwrite", kind.device, "--yes-destroy", kind.device)
    assert refused(lab.assay("profile", kind.device, *write, *allowed), "is mounted on /run/mounted")
    lab.shell(f"umount /run/mounted && wipefs -qa {kind.device}")
    observed(f"{len(kind.members)} members held; file system and mount refused")


@pytest.mark.lab(
    line="Kinds of devices: {name}: verify",
    proves="pages come back as they were written, through every layer of this kind",
    cannot="that the firmware of a real device keeps pages as well",
)
def test_verify_passes(lab: Machine, kind: KnownKind, observed: Callable[[str], None]) -> None:
    done = lab.assay(
        "verify", kind.device, "--overwrite", kind.device, "--size", "16M", "--memory", "2M", "--duration", "3s", *QUIET
    )
    assert done.code == 0, done.stderr
    observed(f"{done.document['integrity']['pages_verified']:,} pages verified")
