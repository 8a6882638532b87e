"""What results say of host and volumes, on this machine and on machines drawn as folders."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.targets.files.safety import ExaminedVolume, examine
from assay.targets.files.spec import VolumeSpec, parse_targets
from assay.targets.host import device_of, host_facts, memory_bytes, queue_facts, volume_facts
from assay.targets.kernel import Kernel

MIB = 1024**2
HOST_KEYS = {"hostname", "kernel", "distribution", "cpu_model", "cpu_count", "memory_bytes", "virtualization", "python"}
VOLUME_KEYS = {
    "name", "path", "kind", "role", "size_bytes", "state", "bytes_laid_out", "created_by_assay", "file_system",
    "mount_options", "device", "device_stack", "model", "queue",
}  # fmt: skip
QUEUE_KEYS = {
    "scheduler", "nr_requests", "rotational", "write_cache", "logical_block_bytes", "physical_block_bytes",
    "max_io_bytes", "read_ahead_bytes",
}  # fmt: skip


def write(root: Path, files: dict[str, str]) -> Kernel:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return Kernel(proc=root / "proc", sys=root / "sys")


def file_on(device: tuple[int, int], path: str = "/data/f") -> ExaminedVolume:
    return ExaminedVolume(
        spec=VolumeSpec(name="f", kind="file", path=Path(path)), path=Path(path), exists=True, size_bytes=4096,
        created_by_assay=True, fully_allocated=True, logical_block_bytes=512, physical_block_bytes=4096,
        free_bytes=MIB, is_empty=False, device_id=device,
    )  # fmt: skip


def test_the_facts_of_this_host_are_those_of_the_manifest() -> None:
    facts = host_facts()

    assert set(facts) == HOST_KEYS
    assert facts["memory_bytes"] > MIB
    assert facts["cpu_count"] >= 1
    json.dumps(facts)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc/cpuinfo": "flags\t\t: fpu sse"}, None),
        ({"proc/cpuinfo": "flags\t\t: fpu hypervisor"}, "unknown hypervisor"),
        ({"proc/cpuinfo": "flags\t\t: hypervisor", "sys/class/dmi/id/sys_vendor": "QEMU"}, "kvm"),
        ({"proc/cpuinfo": "flags\t\t: hypervisor", "sys/class/dmi/id/sys_vendor": "VMware, Inc."}, "vmware"),
        ({"proc/cpuinfo": "flags\t\t: hypervisor", "sys/class/dmi/id/product_name": "Virtual Machine"}, "hyper-v"),
        ({"proc/cpuinfo": "flags\t\t: sse", "sys/class/dmi/id/sys_vendor": "Amazon EC2"}, None),
        ({"proc/cpuinfo": "CPU part : 0xd0c", "sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "kvm"),
        ({"proc/cpuinfo": "CPU part : 0xd0c", "sys/class/dmi/id/product_name": "m7g.metal"}, None),
        ({"sys/hypervisor/type": "xen"}, "xen"),
    ],
)
def test_virtualization_is_told_from_bare_metal(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    assert host_facts(write(tmp_path, files))["virtualization"] == expected


def test_memory_is_the_machines_or_the_control_groups_where_lower(tmp_path: Path) -> None:
    kernel = write(tmp_path, {"proc/meminfo": "MemTotal:       16000 kB", "proc/self/cgroup": "0::/a/b"})
    assert memory_bytes(kernel) == 16000 * 1024

    write(tmp_path, {"sys/fs/cgroup/a/b/memory.max": "max", "sys/fs/cgroup/a/memory.max": "8192000"})
    assert memory_bytes(kernel) == 8192000

    write(tmp_path, {"proc/self/cgroup": "4:memory:/c", "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "4096000"})
    assert memory_bytes(kernel) == 4096000


def test_the_facts_of_a_file_here_are_those_of_the_manifest(tmp_path: Path) -> None:
    (spec,) = parse_targets([str(tmp_path / "f")], sizes="1M")
    facts = volume_facts(examine(spec, writes=True))

    assert set(facts) - {"note"} == VOLUME_KEYS
    assert ("note" in facts) == (facts["device"] is None)
    assert facts["queue"] is None or set(facts["queue"]) == QUEUE_KEYS
    assert (facts["name"], facts["kind"], facts["size_bytes"], facts["state"]) == ("f", "file", MIB, "fresh")
    assert facts["file_system"]
    json.dumps(facts)


def test_null_has_no_device_and_no_file_system() -> None:
    (spec,) = parse_targets(["null:"])
    facts = volume_facts(examine(spec, writes=True))

    assert set(facts) == VOLUME_KEYS
    assert (facts["path"], facts["device"], facts["queue"], facts["file_system"]) == (None, None, None, None)


def test_the_device_counted_is_one_of_diskstats(tmp_path: Path) -> None:
    name = device_of(tmp_path / "not" / "yet" / "there")
    if name is None:
        pytest.skip("the temporary folder is on no single block device")

    assert name in {line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()}


def stacked_machine(root: Path) -> Kernel:
    """A file system on a logical volume over a partition and a whole disk."""
    devices = {"sda": "8:0", "sda/sda3": "8:3", "sdb": "8:16", "dm-0": "253:0"}
    kernel = write(
        root,
        {f"sys/devices/{name}/dev": number for name, number in devices.items()}
        | {
            "sys/devices/sda/sda3/partition": "3",
            "sys/devices/sda/device/vendor": "ATA",
            "sys/devices/sda/device/model": "SAMSUNG MZ7",
            "sys/devices/sdb/device/vendor": "DELL",
            "sys/devices/sdb/device/model": "PERC H755",
            "sys/devices/dm-0/queue/scheduler": "none",
            "sys/devices/sda/queue/scheduler": "none [mq-deadline] kyber",
            "proc/self/mountinfo": "1 0 253:0 / /data rw,noatime - xfs /dev/mapper/vg-lv rw,noquota,password=x",
        },
    )
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/block").mkdir()
    for name, number in devices.items():
        (root / "sys/dev/block" / number).symlink_to(root / "sys/devices" / name)
    (root / "sys/devices/dm-0/slaves").mkdir()
    for name in ("sda/sda3", "sdb"):
        (root / "sys/devices/dm-0/slaves" / Path(name).name).symlink_to(root / "sys/devices" / name)
    return kernel


def test_a_stack_is_listed_and_its_top_is_what_diskstats_counts(tmp_path: Path) -> None:
    facts = volume_facts(file_on((253, 0)), stacked_machine(tmp_path))

    assert facts["device"] == "dm-0"
    assert facts["device_stack"] == ["dm-0", "sda3", "sdb", "sda"]
    assert facts["model"] == "DELL PERC H755, SAMSUNG MZ7"
    assert facts["queue"]["scheduler"] == "none"


def test_a_partition_is_counted_by_its_disk_whose_queue_it_uses(tmp_path: Path) -> None:
    facts = volume_facts(file_on((8, 3)), stacked_machine(tmp_path))

    assert (facts["device"], facts["device_stack"]) == ("sda", ["sda3", "sda"])
    assert facts["queue"]["scheduler"] == "mq-deadline"
    assert facts["model"] == "SAMSUNG MZ7"


def test_mount_options_are_those_of_mount_and_file_system_without_secrets(tmp_path: Path) -> None:
    facts = volume_facts(file_on((253, 0)), stacked_machine(tmp_path))

    assert facts["file_system"] == "xfs"
    assert facts["mount_options"] == "rw,noatime,noquota,password=***"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("1 0 0:40 / /data rw - btrfs /dev/none rw", "btrfs may spread a file over several devices"),
        ("1 0 0:40 / /data rw - overlay overlay rw,lowerdir=/l", "overlay lies on other file systems"),
        ("1 0 0:40 / /data rw - nfs4 server:/x rw,vers=4.2", "nfs4 has no block device on this host"),
        ("1 0 0:40 / /data rw - fuse.sshfs u@h:/ rw", "fuse.sshfs has no block device on this host"),
        ("1 0 0:40 / /data rw - tmpfs none rw", "tmpfs is memory, not storage"),
        ("", "the mount of this file system is not visible"),
    ],
)
def test_where_no_single_device_counts_the_io_a_note_says_why(tmp_path: Path, line: str, note: str) -> None:
    facts = volume_facts(file_on((0, 40)), write(tmp_path, {"proc/self/mountinfo": line}))

    assert (facts["device"], facts["device_stack"], facts["queue"]) == (None, [], None)
    assert facts["note"].startswith(note)


def test_queue_settings_are_in_bytes_and_null_where_the_kernel_is_silent(tmp_path: Path) -> None:
    settings = {
        "scheduler": "[none] mq-deadline", "nr_requests": "256", "rotational": "1", "write_cache": "write back",
        "logical_block_size": "512", "physical_block_size": "4096", "max_sectors_kb": "4096", "read_ahead_kb": "128",
    }  # fmt: skip
    write(tmp_path, {f"disk/queue/{name}": value for name, value in settings.items()})

    assert queue_facts(tmp_path / "disk") == {
        "scheduler": "none", "nr_requests": 256, "rotational": True, "write_cache": "write back",
        "logical_block_bytes": 512, "physical_block_bytes": 4096, "max_io_bytes": 4 * MIB, "read_ahead_bytes": 131072,
    }  # fmt: skip
    assert set(queue_facts(tmp_path / "none").values()) == {None}


def test_a_file_on_a_loop_device_is_followed_to_the_disk_beneath(
    folder: Path,
    loop_device: Callable[[int], Path],
    mounted: Callable[..., Path],
    tool: Callable[[str], str],
    run: Callable[..., str],
) -> None:
    device = loop_device(8 * MIB)
    run(tool("mkfs.ext4"), "-q", device)
    (spec,) = parse_targets([str(mounted(device) / "f")])
    facts = volume_facts(examine(spec, writes=True))
    beneath = device_of(folder)

    assert (facts["device"], facts["file_system"]) == (device.name, "ext4")
    assert facts["device_stack"][0] == device.name
    assert beneath is None or beneath in facts["device_stack"]


def test_the_facts_of_a_device_are_its_own(loop_device: Callable[[int], Path]) -> None:
    device = loop_device(MIB)
    (spec,) = parse_targets([str(device)])
    facts = volume_facts(examine(spec, overwrite=[str(device)], writes=True))

    assert (facts["kind"], facts["device"], facts["size_bytes"]) == ("device", device.name, MIB)
    assert (facts["file_system"], facts["mount_options"], facts["state"]) == (None, None, "unknown")
    assert device_of(device) == device.name
    assert os.path.exists(f"/sys/block/{facts['device']}")
