"""Who uses a block device or a file already: mounts, swap, holders, loop devices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from assay.targets.kernel import (
    DeviceNumber,
    Kernel,
    block_device_at,
    disk_of,
    holders_of,
    is_partition,
    number_of,
    partitions_of,
)


def use_of_device(kernel: Kernel, device: DeviceNumber) -> str | None:
    """Say how a device is in use: itself, one of its partitions, or the disk it is a partition of.

    Other partitions of the same disk may be in use: they are other data.

    Returns
    -------
    str or None
        Words that follow the device's name, such as `is mounted on /data (ext4)`; None if no use is known. The
        kernel's own exclusive open finds what these tables do not show, such as mounts in other containers.
    """
    related = dict(_related(kernel, device))
    for mount in kernel.mounts():
        for number in (mount.device, block_device_at(mount.source)):
            if number in related:
                return f"{related[number]}is mounted on {mount.mount_point} ({mount.file_system})"
    for swap in kernel.swaps():
        number = None if swap.is_file else block_device_at(swap.path)
        if number is not None and number in related:
            return f"{related[number]}is active swap space"
    for number, whose in related.items():
        directory = kernel.directory(number)
        holders = holders_of(directory) if directory is not None else []
        if holders:
            return f"{whose}is held by {', '.join(holders)} (device mapper, md RAID or bcache)"
    return None


def _related(kernel: Kernel, device: DeviceNumber) -> Iterator[tuple[DeviceNumber, str]]:
    """Numbers whose use is a use of `device`, each with the words that say whose it is."""
    yield device, ""
    directory = kernel.directory(device)
    if directory is None:
        return
    if is_partition(directory):
        disk = disk_of(directory)
        number = number_of(disk)
        if number is not None:
            yield number, f"is a partition of {disk.name}, which "
    for partition in partitions_of(directory):
        number = number_of(partition)
        if number is not None:
            yield number, f"has a partition {partition.name} that "
    files = dict(kernel.loop_files())
    behind = files.pop(disk_of(directory).name, None)
    for name in [name for name, backing in files.items() if backing == behind]:
        number = block_device_at(f"/dev/{name}")
        if number is not None:
            yield number, f"has the same file behind it as {name}, which "


def use_of_file(kernel: Kernel, path: Path, status: os.stat_result) -> str | None:
    """Say how the kernel uses a regular file: behind a loop device, or as swap; None if it does not."""
    for name, backing in kernel.loop_files():
        if _is_same(path, status, backing):
            return f"is the file behind /dev/{name}"
    for swap in kernel.swaps():
        if swap.is_file and _is_same(path, status, swap.path):
            return "is active swap space"
    return None


def _is_same(path: Path, status: os.stat_result, other: str) -> bool:
    if other == str(path):
        return True
    try:
        return os.path.samestat(status, os.stat(other))
    except (OSError, ValueError):
        # The kernel may name a file of another mount namespace, or a deleted one.
        return False
