"""What is read from the kernel's tables, on machines drawn as folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.targets.files.device_use import use_of_device
from assay.targets.kernel import Kernel, parse_mountinfo, parse_swaps

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 8:17 / /mnt/my\040disk rw,noatime shared:9 master:2 - xfs /dev/sdb1 rw,logbufs=8
41 27 0:51 /sub /srv rw - btrfs /dev/assay-none rw,subvol=/sub
42 41 8:33 / /srv/deep rw - ext4 /dev/sdc1 rw
broken line
"""


class Machine:
    """Folders that look like /proc and /sys of a machine."""

    def __init__(self, root: Path) -> None:
        self.kernel = Kernel(proc=root / "proc", sys=root / "sys")
        for folder in ("proc/self", "sys/block", "sys/class/block", "sys/dev/block", "sys/devices"):
            (root / folder).mkdir(parents=True)
        self.mounts("")

    def mounts(self, text: str) -> None:
        (self.kernel.proc / "self/mountinfo").write_text(text)

    def device(self, name: str, number: str, *, disk: str | None = None, slaves: tuple[str, ...] = ()) -> Path:
        parent = self.kernel.sys / "devices"
        folder = parent / disk / name if disk else parent / name
        folder.mkdir(parents=True)
        (folder / "dev").write_text(number + "\n")
        (self.kernel.sys / "dev/block" / number).symlink_to(folder)
        (self.kernel.sys / "class/block" / name).symlink_to(folder)
        (folder / "holders").mkdir()
        if disk:
            (folder / "partition").write_text("1\n")
        else:
            (folder / "slaves").mkdir()
            (self.kernel.sys / "block" / name).symlink_to(folder)
        for slave in slaves:
            below = next(parent.rglob(slave))
            (folder / "slaves" / slave).symlink_to(below)
            (below / "holders" / name).symlink_to(folder)
        return folder


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_mounts_are_read_with_their_escapes_and_optional_fields() -> None:
    mounts = parse_mountinfo(MOUNTS)

    assert [mount.mount_point for mount in mounts] == ["/proc", "/", "/mnt/my disk", "/srv", "/srv/deep"]
    assert (mounts[2].device, mounts[2].file_system, mounts[2].source) == ((8, 17), "xfs", "/dev/sdb1")
    assert (mounts[2].options, mounts[2].super_options) == ("rw,noatime", "rw,logbufs=8")


def test_swaps_are_read_without_their_heading() -> None:
    text = "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n/swap\\040file file 1 0 -3\n"

    assert [(swap.path, swap.is_file) for swap in parse_swaps(text)] == [("/dev/sda2", False), ("/swap file", True)]


@given(st.text())
def test_no_text_upsets_the_readers(text: str) -> None:
    parse_swaps(text)
    assert all(mount.mount_point for mount in parse_mountinfo(text))


@pytest.mark.parametrize(
    ("number", "path", "mount_point"),
    [
        ((254, 0), "/home/f", "/"),
        ((8, 17), "/mnt/my disk/f", "/mnt/my disk"),
        ((0, 99), "/srv/f", "/srv"),  # a btrfs subvolume's files have a number no mount has
        ((0, 99), "/srvx/f", "/"),
        ((8, 33), "/srv/deep/f", "/srv/deep"),
        ((8, 33), "/elsewhere", "/srv/deep"),
    ],
)
def test_the_mount_of_a_file_is_found(machine: Machine, number: tuple[int, int], path: str, mount_point: str) -> None:
    machine.mounts(MOUNTS)
    mount = machine.kernel.mount_of(number, path)

    assert mount is not None
    assert mount.mount_point == mount_point


def test_a_later_mount_covers_an_earlier_one(machine: Machine) -> None:
    machine.mounts("1 0 8:1 / /a rw - ext4 /dev/x rw\n2 1 8:1 / /a ro - ext4 /dev/x rw\n")
    mount = machine.kernel.mount_of((8, 1), "/a/f")

    assert mount is not None
    assert mount.options == "ro"


class TestUseOfDevices:
    @pytest.fixture(autouse=True)
    def _disks(self, machine: Machine) -> None:
        machine.device("sda", "8:0")
        machine.device("sda1", "8:1", disk="sda")
        machine.device("sda2", "8:2", disk="sda")
        machine.device("sdb", "8:16")

    def test_a_free_disk_is_free(self, machine: Machine) -> None:
        assert use_of_device(machine.kernel, (8, 16)) is None
        assert use_of_device(machine.kernel, (99, 99)) is None

    def test_a_mounted_partition_is_in_use_and_so_is_its_disk_but_not_its_neighbour(self, machine: Machine) -> None:
        machine.mounts("1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n")

        assert use_of_device(machine.kernel, (8, 1)) == "is mounted on /data (ext4)"
        assert use_of_device(machine.kernel, (8, 0)) == "has a partition sda1 that is mounted on /data (ext4)"
        assert use_of_device(machine.kernel, (8, 2)) is None

    def test_a_held_disk_is_in_use_and_so_are_its_partitions(self, machine: Machine) -> None:
        machine.device("dm-0", "253:0", slaves=("sda",))

        assert (use_of_device(machine.kernel, (8, 0)) or "").startswith("is held by dm-0")
        assert (use_of_device(machine.kernel, (8, 2)) or "").startswith("is a partition of sda, which is held by dm-0")

    def test_a_disk_with_a_held_partition_is_in_use(self, machine: Machine) -> None:
        machine.device("md0", "9:0", slaves=("sda2",))

        assert (use_of_device(machine.kernel, (8, 0)) or "").startswith("has a partition sda2 that is held by md0")
        assert use_of_device(machine.kernel, (8, 1)) is None

    def test_a_mount_that_names_the_device_only_as_its_source_is_found(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("assay.targets.files.device_use.block_device_at", {"/dev/sdb": (8, 16)}.get)
        machine.mounts("1 0 0:51 / /data rw - btrfs /dev/sdb rw\n")

        assert use_of_device(machine.kernel, (8, 16)) == "is mounted on /data (btrfs)"

    def test_a_swap_partition_is_in_use(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("assay.targets.files.device_use.block_device_at", {"/dev/sda2": (8, 2)}.get)
        (machine.kernel.proc / "swaps").write_text("Filename\n/dev/sda2 partition 1 0 -2\n")

        assert use_of_device(machine.kernel, (8, 2)) == "is active swap space"
        assert use_of_device(machine.kernel, (8, 0)) == "has a partition sda2 that is active swap space"


def test_a_device_is_found_where_a_container_hides_the_links_by_number(machine: Machine) -> None:
    disk = machine.device("sda", "8:0")
    partition = machine.device("sda1", "8:1", disk="sda")
    for link in (machine.kernel.sys / "dev/block").iterdir():
        link.unlink()

    assert machine.kernel.directory((8, 0)) == disk
    assert machine.kernel.directory((8, 1)) == partition
    assert machine.kernel.directory((8, 2)) is None


def test_a_closed_folder_of_links_hides_no_device(folder: Path, unprivileged) -> None:
    machine = Machine(folder)
    disk = machine.device("sda", "8:0")
    (machine.kernel.sys / "dev/block").chmod(0)

    with unprivileged():
        assert machine.kernel.directory((8, 0)) == disk


def test_the_tables_of_this_machine_are_understood() -> None:
    kernel = Kernel()

    assert any(mount.mount_point == "/" for mount in kernel.mounts())
    assert (
        kernel.mount_of((os.major(os.stat("/proc").st_dev), os.minor(os.stat("/proc").st_dev)), "/proc/self")
        is not None
    )
