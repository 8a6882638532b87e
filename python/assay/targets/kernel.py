"""What the kernel says about mounts, swap and block devices (`/proc` and `/sys`).

Formats: proc(5) and proc_pid_mountinfo(5) for `mountinfo` and `swaps`, the kernel's Documentation/ABI (`sysfs-block`,
`stable/sysfs-block`) for `/sys/dev/block`, `holders`, `slaves` and `queue`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import NotSupported

DeviceNumber = tuple[int, int]
"""Major and minor number."""


def need_proc(what: str) -> None:
    """Refuse work that looks after processes where the kernel's table of them is not to be seen.

    Raises
    ------
    NotSupported
        `/proc` is not mounted.
    """
    if not os.path.exists("/proc/self/stat"):
        raise NotSupported(f"/proc: is not mounted, and {what} needs it; mount it (mount -t proc proc /proc)")


SECTOR_BYTES = 512
"""The unit of `/sys/.../size`, whatever the device's own block is."""

_STACK_DEPTH_MAX = 16
"""Deeper stacks of device-mapper, md and loop devices do not occur; the bound keeps a cycle from looping for ever."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One line of `mountinfo`."""

    device: DeviceNumber
    mount_point: str
    options: str
    file_system: str
    source: str
    super_options: str


@dataclass(frozen=True, kw_only=True)
class Swap:
    """One line of `swaps`."""

    path: str
    is_file: bool


def unescape(text: str) -> str:
    r"""Undo the octal escapes the kernel writes for blanks and backslashes.

    Examples
    --------
    >>> unescape("/mnt/my\\040disk")
    '/mnt/my disk'
    """
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def parse_mountinfo(text: str) -> list[Mount]:
    """Mounts in the order they were made; lines of an unknown form are left out."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, trailer = before.split(), after.split()
        if not separator or len(fields) < 6 or len(trailer) < 2:
            continue
        major, _, minor = fields[2].partition(":")
        mounts.append(
            Mount(
                device=(int(major), int(minor)),
                mount_point=unescape(fields[4]),
                options=fields[5],
                file_system=trailer[0],
                source=unescape(trailer[1]),
                super_options=trailer[2] if len(trailer) > 2 else "",
            )
        )
    return mounts


def parse_swaps(text: str) -> list[Swap]:
    """Active swap areas; the first line is a heading."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return [Swap(path=unescape(row[0]), is_file=row[1] == "file") for row in rows if len(row) >= 2]


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """The kernel's tables below two roots, which tests replace."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")

    def mounts(self) -> list[Mount]:
        """Mounts this process can see."""
        return parse_mountinfo(read_text(self.proc / "self/mountinfo") or "")

    def swaps(self) -> list[Swap]:
        """Active swap areas."""
        return parse_swaps(read_text(self.proc / "swaps") or "")

    def directory(self, device: DeviceNumber) -> Path | None:
        """Return the device's own folder below `/sys`, links resolved; None if the kernel has no such block device."""
        number, links = f"{device[0]}:{device[1]}", self.sys / "dev/block"
        if os.path.exists(links / number):
            return (links / number).resolve()
        if not _names(links):
            # Containers of podman hide these links (containers-common, `DefaultMaskedPaths`), yet not the devices.
            for entry in _entries(self.sys / "class/block"):
                if read_text(entry / "dev") == number:
                    return entry.resolve()
        return None

    def loop_files(self) -> list[tuple[str, str]]:
        """Return the name of each active loop device and the path of the file behind it."""
        found = []
        for path in sorted((self.sys / "block").glob("loop*/loop/backing_file")):
            backing = read_text(path)
            if backing:
                found.append((path.parent.parent.name, backing))
        return found

    def mount_of(self, device: DeviceNumber, path: str) -> Mount | None:
        """Find the mount that holds `path`, a resolved path on a file system whose `st_dev` is `device`.

        The number decides. btrfs subvolumes and some overlays give files a number no mount has; the longest mount
        point that leads to the path decides there. Later mounts cover earlier ones.
        """
        mounts = self.mounts()
        leading = [mount for mount in mounts if _leads_to(mount.mount_point, path)]
        for candidates in (
            [mount for mount in leading if mount.device == device],
            [mount for mount in mounts if mount.device == device],
            leading,
        ):
            if candidates:
                return max(enumerate(candidates), key=lambda item: (len(item[1].mount_point), item[0]))[1]
        return None


def _leads_to(mount_point: str, path: str) -> bool:
    return mount_point == "/" or path == mount_point or path.startswith(mount_point + "/")


def read_text(path: Path) -> str | None:
    """Return the stripped text of a small kernel file; None if it is missing, unreadable or gives an error."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the whole number in a small kernel file, or None."""
    text = read_text(path)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]+", text) else None


def device_number(value: int) -> DeviceNumber:
    """Major and minor of an `st_dev` or `st_rdev`."""
    return os.major(value), os.minor(value)


def block_device_at(path: str) -> DeviceNumber | None:
    """Return the number of the block device at a path below /dev, such as a mount's source; None if there is none."""
    if not path.startswith("/dev/"):
        # A mount's source may be a server's path; looking at it could hang.
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return device_number(status.st_rdev) if stat.S_ISBLK(status.st_mode) else None


def number_of(directory: Path) -> DeviceNumber | None:
    """Major and minor of a device's folder below `/sys`."""
    major, separator, minor = (read_text(directory / "dev") or "").partition(":")
    return (int(major), int(minor)) if separator else None


def is_partition(directory: Path) -> bool:
    """Whether the folder is that of a partition; its parent is then the disk."""
    return (directory / "partition").exists()


def disk_of(directory: Path) -> Path:
    """Return the whole disk's folder, which has the queue and the model."""
    return directory.parent if is_partition(directory) else directory


def partitions_of(directory: Path) -> list[Path]:
    """Folders of the partitions the kernel knows on a disk."""
    return [child for child in _entries(directory) if is_partition(child)]


def holders_of(directory: Path) -> list[str]:
    """Names of the device-mapper, md or bcache devices built on this one."""
    return _names(directory / "holders")


def slaves_of(directory: Path) -> list[str]:
    """Names of the devices this device-mapper or md device is built on."""
    return _names(directory / "slaves")


def _names(directory: Path) -> list[str]:
    return [entry.name for entry in _entries(directory)]


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def stack_of(directory: Path) -> list[Path]:
    """Return the device and everything it is built on, top first, each once.

    A partition is followed by its disk, a device-mapper or md device by its slaves.
    """
    found: list[Path] = []
    waiting = [(directory, 0)]
    while waiting:
        current, depth = waiting.pop(0)
        if current in found or depth > _STACK_DEPTH_MAX:
            continue
        found.append(current)
        waiting += [(below, depth + 1) for below in _directly_below(current)]
    return found


def _directly_below(directory: Path) -> Iterable[Path]:
    if is_partition(directory):
        return [directory.parent]
    # The links in `slaves` lead to partitions too, which `/sys/block` does not list.
    return [(directory / "slaves" / name).resolve() for name in slaves_of(directory)]
