"""Facts of the host and of each volume, as results carry them (docs/results.md, `host` and `target.volumes`).

Sources: proc(5), the kernel's Documentation/ABI/stable/sysfs-block, os-release(5), and the vendors' DMI strings that
systemd-detect-virt(1) documents.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.files.safety import ExaminedVolume
from assay.targets.kernel import (
    DeviceNumber,
    Kernel,
    Mount,
    block_device_at,
    device_number,
    disk_of,
    is_partition,
    read_number,
    read_text,
    slaves_of,
    stack_of,
)

_HYPERVISORS = (
    ("qemu", "kvm"), ("kvm", "kvm"), ("amazon ec2", "kvm"), ("google", "kvm"), ("openstack", "kvm"),
    ("digitalocean", "kvm"), ("vmware", "vmware"), ("virtualbox", "virtualbox"), ("innotek", "virtualbox"),
    ("virtual machine", "hyper-v"), ("xen", "xen"), ("bochs", "bochs"), ("parallels", "parallels"),
    ("bhyve", "bhyve"), ("nutanix", "kvm"), ("firecracker", "kvm"),
)  # fmt: skip
"""What DMI vendor and product names contain, and the hypervisor it means."""

_SECRET_OPTION = re.compile(r"^([^=]*(?:pass|secret|token|cred|key)[^=]*)=.*$", re.IGNORECASE)
"""Mount options whose value never goes into results."""

_LOOP_DEPTH_MAX = 4
"""Loop devices on files on loop devices: how far they are followed."""


def host_facts(kernel: Kernel | None = None) -> dict[str, Any]:
    """Return the manifest's `host`: hostname, kernel, distribution, CPU, memory, virtualization, Python.

    `memory_bytes` is what this process may use: the machine's memory, or its control group's limit where lower.
    """
    tables = kernel or Kernel()
    return {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "distribution": _distribution(),
        "cpu_model": _cpu_model(tables),
        "cpu_count": os.cpu_count() or 1,
        "memory_bytes": memory_bytes(tables),
        "virtualization": _virtualization(tables),
        "python": platform.python_version(),
    }


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu_model(kernel: Kernel) -> str:
    """Return the model name as /proc/cpuinfo has it; Arm servers have none there and give their architecture."""
    text = read_text(kernel.proc / "cpuinfo") or ""
    match = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$", text, re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else platform.machine()


def memory_bytes(kernel: Kernel | None = None) -> int:
    """Memory this process may use, page cache included: `MemTotal`, or the control group's limit where lower."""
    tables = kernel or Kernel()
    match = re.search(r"^MemTotal:\s*([0-9]+) kB", read_text(tables.proc / "meminfo") or "", re.MULTILINE)
    total = int(match[1]) * 1024 if match else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([total, *_memory_limits(tables)])


def _memory_limits(kernel: Kernel) -> list[int]:
    return [limit for _, _, limit in _memory_groups(kernel)]


def _memory_groups(kernel: Kernel) -> list[tuple[Path, str, int]]:
    """Folder, file and limit of the process's control group and of those above it.

    Files are cgroup v2's `memory.max` and v1's `memory.limit_in_bytes`.
    """
    limits = []
    for line in (read_text(kernel.proc / "self/cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers not in ("", "memory"):
            continue
        root = kernel.sys / "fs/cgroup" / controllers
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            limit = read_number(folder / name)
            if limit is not None and limit > 0:
                limits.append((folder, name, limit))
            if folder == root:
                break
    return limits


def free_memory_bytes(kernel: Kernel | None = None) -> int:
    """Memory this process can still get: what the system has available, within its control group and its own limit."""
    tables = kernel or Kernel()
    match = re.search(r"^MemAvailable:\s*([0-9]+) kB", read_text(tables.proc / "meminfo") or "", re.MULTILINE)
    free = [int(match[1]) * 1024] if match else [os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    free += [limit - used for limit, used in _memory_used(tables)]
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if address_space != resource.RLIM_INFINITY:
        pages = int((read_text(tables.proc / "self/statm") or "0").split()[0])
        free.append(address_space - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(free), 0)


def _memory_used(kernel: Kernel) -> list[tuple[int, int]]:
    """Limits of the control groups this process is in, each with what is used of it and cannot be reclaimed."""
    return [(limit, _used_bytes(folder, name)) for folder, name, limit in _memory_groups(kernel)]


def _used_bytes(folder: Path, limit_name: str) -> int:
    is_unified = limit_name == "memory.max"
    used = read_number(folder / ("memory.current" if is_unified else "memory.usage_in_bytes")) or 0
    key = "inactive_file" if is_unified else "total_inactive_file"
    match = re.search(rf"^{key} ([0-9]+)$", read_text(folder / "memory.stat") or "", re.MULTILINE)
    return max(used - (int(match[1]) if match else 0), 0)


def _virtualization(kernel: Kernel) -> str | None:
    """Return the hypervisor, `unknown hypervisor` if only the CPU tells that there is one, None on bare metal."""
    kind = read_text(kernel.sys / "hypervisor/type")
    if kind:
        return kind
    dmi = kernel.sys / "class/dmi/id"
    names = " ".join(read_text(dmi / name) or "" for name in ("sys_vendor", "product_name", "bios_vendor")).lower()
    cpuinfo = read_text(kernel.proc / "cpuinfo") or ""
    is_guest = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None
    # x86 guests show the flag; a cloud's bare-metal host has the cloud's DMI names without it. Arm has no flag.
    may_be_guest = is_guest or (not re.search(r"^flags\s*:", cpuinfo, re.MULTILINE) and ".metal" not in names)
    known = next((hypervisor for text, hypervisor in _HYPERVISORS if text in names), None)
    if known is not None and may_be_guest:
        return known
    return "unknown hypervisor" if is_guest else None


def volume_facts(examined: ExaminedVolume, kernel: Kernel | None = None) -> dict[str, Any]:
    """Return the manifest's `target.volumes[]` of one volume.

    `state` is `fresh` for a file yet to be made and `unknown` otherwise, and `bytes_laid_out` is 0, until the runner
    knows better. `device` is the disk whose line in /proc/diskstats counts the volume's I/O; `device_stack` lists it
    and what it is built on, a partition first. Where no single device counts it, `device` is None and `note` says why.

    Raises
    ------
    NotAnswering
        The file system does not answer.
    """
    tables = kernel or Kernel()
    spec = examined.spec
    facts: dict[str, Any] = {
        "name": spec.name,
        "path": str(spec.path) if spec.path is not None else None,
        "kind": spec.kind,
        "role": spec.role,
        "size_bytes": spec.size_bytes if spec.size_bytes is not None else examined.size_bytes,
        "state": "unknown" if examined.exists else "fresh",
        "bytes_laid_out": 0,
        "created_by_assay": examined.created_by_assay,
        "file_system": None,
        "mount_options": None,
        "device": None,
        "device_stack": [],
        "model": spec.array.label if spec.array is not None else None,
        "queue": None,
    }
    if examined.path is None or examined.device_id is None:
        return facts
    if examined.free_bytes is None:
        directory = tables.directory(examined.device_id)
        note = {"note": "the kernel shows no such device in /sys"}
        return facts | (_device_facts(tables, directory) if directory is not None else note)
    return facts | _file_system_facts(tables, examined.device_id, str(examined.path))


def folder_facts(path: str | os.PathLike[str], kernel: Kernel | None = None) -> dict[str, Any]:
    """Facts of the storage that a folder lies on, with the keys that `volume_facts` has for a volume in a file.

    Raises
    ------
    NotAnswering
        The file system does not answer.
    OSError
        The folder cannot be looked at.
    """
    tables = kernel or Kernel()
    status = answer_within(ANSWER_TIMEOUT_S, lambda: os.stat(path), what=str(path))
    storage: dict[str, Any] = {"file_system": None, "mount_options": None, "device": None, "device_stack": []}
    storage |= {"model": None, "queue": None}
    return storage | _file_system_facts(tables, device_number(status.st_dev), os.path.realpath(path))


def _file_system_facts(kernel: Kernel, device: DeviceNumber, path: str) -> dict[str, Any]:
    """The file system a path is on, and the device beneath it."""
    mount = kernel.mount_of(device, path)
    facts: dict[str, Any] = {}
    if mount is not None:
        facts = {"file_system": mount.file_system, "mount_options": _mount_options(mount)}
    directory, note = _directory_beneath(kernel, device, mount)
    return facts | (_device_facts(kernel, directory) if directory is not None else {"note": note})


def device_of(path: str | os.PathLike[str], kernel: Kernel | None = None) -> str | None:
    """Name of the disk whose line in /proc/diskstats counts the I/O on a path, such as `vda` or `dm-0`.

    Parameters
    ----------
    path
        A file, a folder or a device; of a path that does not exist yet, its nearest folder counts.

    Returns
    -------
    str or None
        None for network, memory, layered and several-device file systems, and where the kernel does not tell.

    Raises
    ------
    NotAnswering
        The file system does not answer.
    """
    tables = kernel or Kernel()

    def look() -> Path | None:
        resolved = Path(os.path.realpath(path))
        number = block_device_at(str(resolved))
        if number is not None:
            return tables.directory(number)
        nearest = next(folder for folder in (resolved, *resolved.parents) if folder.exists())
        device = device_number(os.stat(nearest).st_dev)
        return _directory_beneath(tables, device, tables.mount_of(device, str(nearest)))[0]

    directory = answer_within(ANSWER_TIMEOUT_S, look, what=str(path))
    return disk_of(directory).name if directory is not None else None


def _directory_beneath(kernel: Kernel, device: DeviceNumber, mount: Mount | None) -> tuple[Path | None, str]:
    """Folder in /sys of the one device a file system lies on, or the words that say why there is none."""
    directory = kernel.directory(device)
    if directory is not None:
        return directory, ""
    if mount is None:
        return None, "the mount of this file system is not visible"
    kind = mount.file_system
    if kind in ("btrfs", "bcachefs", "zfs"):
        return None, f"{kind} may spread a file over several devices; no single device counts its I/O"
    if kind in ("overlay", "aufs", "ecryptfs"):
        return None, f"{kind} lies on other file systems; no single device counts its I/O"
    if kind in ("tmpfs", "ramfs"):
        return None, f"{kind} is memory, not storage"
    directory = kernel.directory(mount.device)
    if directory is not None:
        return directory, ""
    return None, f"{kind} has no block device on this host"


def _mount_options(mount: Mount) -> str:
    """Options of the mount and of its file system, each once, without values that may be secrets."""
    options = dict.fromkeys([*mount.options.split(","), *mount.super_options.split(",")])
    return ",".join(_SECRET_OPTION.sub(r"\1=***", option) for option in options if option)


def _device_facts(kernel: Kernel, directory: Path) -> dict[str, Any]:
    disk = disk_of(directory)
    stack = _whole_stack(kernel, directory)
    return {
        "device": disk.name,
        "device_stack": list(dict.fromkeys(member.name for member in stack)),
        "model": _models(stack),
        "queue": queue_facts(disk),
    }


def _whole_stack(kernel: Kernel, directory: Path, depth: int = 0) -> list[Path]:
    """Everything a device is built on, through the files behind loop devices."""
    stack = stack_of(directory)
    for member in list(stack):
        backing = read_text(member / "loop/backing_file")
        if backing is None or depth >= _LOOP_DEPTH_MAX:
            continue
        try:
            device = device_number(os.stat(backing).st_dev)
        except (OSError, ValueError):
            continue
        beneath, _ = _directory_beneath(kernel, device, kernel.mount_of(device, backing))
        if beneath is not None:
            stack += _whole_stack(kernel, beneath, depth + 1)
    return stack


def _models(stack: list[Path]) -> str | None:
    """Models of the physical devices at the bottom, each once, or None; virtio disks have none."""
    models = []
    for member in stack:
        if is_partition(member) or slaves_of(member):
            continue
        model = read_text(member / "device/model")
        vendor = read_text(member / "device/vendor") or ""
        if model:
            # SATA disks call their vendor "ATA", PCI and virtio devices give a number: neither names a maker.
            is_named = vendor and vendor != "ATA" and not vendor.startswith("0x")
            models.append(f"{vendor} {model}" if is_named else model)
    return ", ".join(dict.fromkeys(models)) or None


def queue_facts(disk: Path) -> dict[str, Any]:
    """Return a disk's queue settings, from its folder in /sys; None for each one this kernel does not show."""
    queue = disk / "queue"
    scheduler = read_text(queue / "scheduler")
    chosen = re.search(r"\[([^\]]+)\]", scheduler or "")
    rotational = read_number(queue / "rotational")
    return {
        "scheduler": chosen[1] if chosen else scheduler,
        "nr_requests": read_number(queue / "nr_requests"),
        "rotational": None if rotational is None else rotational == 1,
        "write_cache": read_text(queue / "write_cache"),
        "logical_block_bytes": read_number(queue / "logical_block_size"),
        "physical_block_bytes": read_number(queue / "physical_block_size"),
        "max_io_bytes": _kib(read_number(queue / "max_sectors_kb")),
        "read_ahead_bytes": _kib(read_number(queue / "read_ahead_kb")),
    }


def _kib(value: int | None) -> int | None:
    return None if value is None else value * 1024


def devices_by_role(paths: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Block devices that count the I/O of each role; folders no single device counts are left out.

    Parameters
    ----------
    paths
        `storage_paths()` of each database: folders by role, where `data:NAME` is data and `temp` is tempdb.

    Raises
    ------
    NotAnswering
        A file system does not answer.
    """
    found: dict[str, list[str]] = {}
    for folders in paths:
        for name, folder in folders.items():
            role = name.partition(":")[0]
            device = device_of(folder)
            devices = found.setdefault("tempdb" if role == "temp" else role, [])
            if device is not None and device not in devices:
                devices.append(device)
    return {role: devices for role, devices in found.items() if devices}


def roles_by_device(devices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Role of each device for recorders, joined by `+` where it has several.

    Examples
    --------
    >>> roles_by_device({"data": ["vda", "vdb"], "log": ["vda"]})
    {'vda': 'data+log', 'vdb': 'data'}
    """
    roles: dict[str, list[str]] = {}
    for role, names in devices.items():
        for name in names:
            roles.setdefault(name, []).append(role)
    return {name: "+".join(found) for name, found in roles.items()}
