"""File systems on the volumes of a served array: made, mounted through loop devices, mounted anew, taken away.

What is there is asked of the kernel each time: mounts directly in this array's folder of file systems, of loop devices
on this array's volumes. Nothing else is ever unmounted. A loop device goes with its mount.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pwd
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import IoFailed, NotSupported, RefusedTarget, UsageError
from assay.base.paths import plain, printable
from assay.base.programs import require_program
from assay.targets.arrays.live import loops
from assay.targets.arrays.live.place import ArrayPlace
from assay.targets.files.signatures import find_signatures
from assay.targets.kernel import DeviceNumber, Kernel

RELEASE_S = 5.0
"""How long the end of the last use of a mount may take."""
_LOOK_S = 0.1
_EXT = "ext2/ext3/ext4"
_EXT4_IOC_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
"""Linux, fs/ext4/ext4.h: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Mounted:
    """The file system of a volume.

    Attributes
    ----------
    volume
        Name of the volume.
    number
        Of the loop device.
    times
        How often the file system is mounted there, each mount over the one before.
    """

    volume: str
    number: int
    times: int


def mounted(place: ArrayPlace, kernel: Kernel | None = None) -> list[Mounted]:
    """File systems on the volumes of an array, as the kernel tells now, by volume."""
    kernel = kernel or Kernel()
    backing = dict(kernel.loop_files())
    devices: dict[Path, list[DeviceNumber]] = {}
    for mount in kernel.mounts():
        path = Path(mount.mount_point)
        if path.parent == place.mounts:
            devices.setdefault(path, []).append(mount.device)
    found = []
    for path, stacked in devices.items():
        # What somebody else mounted on top stays, and so does what it covers.
        major, number = stacked[-1]
        file = backing.get(f"loop{number}", "").removesuffix(" (deleted)")
        # A folder whose server is gone is no part of the path any more.
        if major == loops.LOOP_MAJOR and file in (str(place.folder / path.name), f"/{path.name}"):
            times = next((at for at, one in enumerate(reversed(stacked)) if one != stacked[-1]), len(stacked))
            found.append(Mounted(path.name, number, times))
    return sorted(found, key=lambda one: one.volume)


def owner_of(name: str) -> int:
    """Number of the user whose the file systems are to be.

    Raises
    ------
    UsageError
        There is no such user.
    """
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        if name.isdecimal() and int(name) < 2**32 - 1:
            return int(name)
    raise UsageError(f"--owner: there is no user {plain(name)}; name a user of this host, or a user's number")


def refuse_mkfs() -> None:
    """Refuse file systems on volumes where they cannot be made or mounted.

    Raises
    ------
    NotSupported
        This takes root, or a program is missing.
    """
    if os.geteuid() != 0:
        raise NotSupported("--mkfs: loop devices and mounts take root; leave it out and use the files")
    require_program("--mkfs", "mkfs.ext4", otherwise="or leave it out and use the files")


def mount_volumes(place: ArrayPlace, volumes: Sequence[str], *, owner: int | None = None) -> None:
    """Put ext4 on each volume through a loop device, unless it has it, and mount it.

    Parameters
    ----------
    owner
        Number of the user whose the file systems are.

    Raises
    ------
    NotSupported
        This takes root, or a program is missing.
    RefusedTarget
        A volume holds something else, or a place where one is to be mounted is taken.
    IoFailed
        A program or the kernel failed.
    """
    refuse_mkfs()
    folder = place.make_mounts()
    try:
        for name in volumes:
            # Made here and now: nobody else has put anything where the file system is mounted.
            os.mkdir(name, 0o700, dir_fd=folder)
            _mount_volume(place, folder, name)
            if owner is not None:
                _give(folder, name, owner)
    finally:
        os.close(folder)


def _mount_volume(place: ArrayPlace, folder: int, name: str) -> None:
    shown = place.open_shown()
    try:
        volume = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=shown)
    finally:
        os.close(shown)
    try:
        with loops.attached(volume, str(place.folder / name)) as number:
            _format(number, name)
            _mount(folder, name, number)
    finally:
        os.close(volume)
    if not any((one.volume, one.number) == (name, number) for one in mounted(place)):
        with contextlib.suppress(OSError):
            loops.unmount(str(place.mounts / name))
        raise NotSupported(
            f"volume {name}: /sys does not show which file {loops.device_path(number)} is on, so that the file system"
            " could not be taken away again; mount sysfs, or leave --mkfs out"
        )


def _format(number: int, name: str) -> None:
    """Put ext4 on the loop device of an empty volume; a volume that holds ext4 stays as it is."""
    device = os.open(loops.device_path(number), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        size_bytes = os.lseek(device, 0, os.SEEK_END)
        found = find_signatures(lambda offset, length: os.pread(device, length, offset), size_bytes)
    except OSError as error:
        raise IoFailed(f"volume {name}: cannot be read: {error.strerror}") from error
    finally:
        os.close(device)
    if found == [_EXT]:
        return
    if found:
        raise RefusedTarget(
            f"volume {name}: holds {', '.join(found)}; --mkfs puts ext4 on empty volumes alone; take another store"
        )
    # Neither discards nor a journal longer than need be: both would be written at the array's pace.
    options = "nodiscard,lazy_itable_init=1,lazy_journal_init=1"
    program = require_program(f"volume {name}", "mkfs.ext4")
    command = (program, "-q", "-m", "0", "-J", "size=16", "-E", options, "--", loops.device_path(number))
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise IoFailed(f"volume {name}: mkfs.ext4: {plain(lines[-1]) if lines else f'exit code {done.returncode}'}")


def _mount(folder: int, name: str, number: int) -> None:
    onto = os.open(name, _FOLDER, dir_fd=folder)
    try:
        loops.mount_ext4(number, onto)
    except OSError as error:
        raise IoFailed(f"volume {name}: ext4 on it cannot be mounted: {error.strerror}") from error
    finally:
        os.close(onto)


def _give(folder: int, name: str, owner: int) -> None:
    """Give the root of a file system to a user, who alone may look into it."""
    root = os.open(name, _FOLDER, dir_fd=folder)
    try:
        os.fchown(root, owner, -1)
        os.fchmod(root, 0o700)
    finally:
        os.close(root)


def shut_down(path: Path) -> None:
    """Take a file system's host away from it: what was not flushed never reaches the volume.

    Raises
    ------
    NotSupported
        The kernel cannot do it.
    """
    opened = os.open(path, _FOLDER)
    try:
        fcntl.ioctl(opened, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
    except OSError as error:
        raise NotSupported(f"{printable(path)}: a power cut of the host cannot be had here: {error.strerror}") from None
    finally:
        os.close(opened)


def mount_again(place: ArrayPlace) -> None:
    """Mount the file systems anew that were shut down; each goes through its journal.

    Raises
    ------
    IoFailed
        One is still in use, or cannot be mounted any more.
    """
    folder = place.open_mounts()
    try:
        for one in mounted(place):
            path = str(place.mounts / one.volume)
            # Whoever has the device open keeps it on its file.
            device = loops.opened(one.number)
            try:
                if not _released(path, one.times):
                    raise IoFailed(f"{printable(path)}: is still in use after the power cut")
                _mount(folder, one.volume, one.number)
                is_alive = _is_alive(folder, one.volume)
                if not is_alive:
                    loops.unmount(path)
            finally:
                os.close(device)
            if not is_alive:
                # Another mount namespace has a copy of the old mount, and with it the file system that was shut down.
                _mount_volume(place, folder, one.volume)
    finally:
        os.close(folder)


def _is_alive(folder: int, name: str) -> bool:
    """Whether a file system takes writes."""
    probe = ".assay-probe"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    root = os.open(name, _FOLDER, dir_fd=folder)
    try:
        opened = os.open(probe, flags, 0o600, dir_fd=root)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
        os.unlink(probe, dir_fd=root)
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def unmount_volumes(place: ArrayPlace) -> list[str]:
    """Take file systems away; returns which. What is still used is detached, and goes when its last user does."""
    undone = []
    for one in reversed(mounted(place)):
        path = str(place.mounts / one.volume)
        if not _released(path, one.times):
            with contextlib.suppress(OSError):
                loops.unmount(path, lazily=True)
        undone.append(path)
    place.remove_mounts()
    return undone


def _released(path: str, mounts: int) -> bool:
    """Unmount all that is mounted at a path; says whether nothing is any more."""
    deadline = time.monotonic() + RELEASE_S
    while mounts:
        try:
            loops.unmount(path)
            mounts -= 1
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
    return True
