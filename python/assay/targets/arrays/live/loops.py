"""Loop devices and mounts by system call: of numbers and descriptors that this process holds, without a program.

Constants and layouts: the kernel's `include/uapi/linux/loop.h` and `mount.h`; loop(4), mount(2), umount2(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator

from assay.base.errors import IoFailed, NotSupported
from assay.base.paths import printable

LOOP_MAJOR = 7
"""Major number of loop devices (Documentation/admin-guide/devices.txt)."""
_ATTEMPTS_MAX = 64
"""Free loop devices that other processes may take before this one gives up."""

_LOOP_SET_FD, _LOOP_SET_STATUS64 = 0x4C00, 0x4C04
_LOOP_SET_DIRECT_IO, _LOOP_CONFIGURE, _LOOP_CTL_GET_FREE = 0x4C08, 0x4C0A, 0x4C82
_LO_FLAGS_AUTOCLEAR, _LO_FLAGS_DIRECT_IO = 4, 16
_INFO = struct.Struct("=5Q4I64s64s32s2Q")
"""`struct loop_info64`."""
_CONFIG = struct.Struct(f"=2I{_INFO.size}s64x")
"""`struct loop_config`."""

_MS_NOSUID, _MS_NODEV, _MS_NOATIME = 2, 4, 1024
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8

_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def attached(volume: int, name: str) -> Iterator[int]:
    """Put a free loop device with direct I/O on an open file; gives its number.

    The device goes with its last user: with this context, or with the mount where its file system is mounted by then.
    So a process that is killed leaves no device.

    Parameters
    ----------
    volume
        Descriptor of the file, open for reading and writing.
    name
        The file's path: what the device shows as its own name.

    Raises
    ------
    NotSupported
        There are no loop devices here.
    IoFailed
        The kernel refuses the file.
    """
    try:
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NotSupported(f"loop devices: /dev/loop-control: {error.strerror}; load the module loop") from error
    try:
        number, device = _configured(control, volume, name)
    except OSError as error:
        raise IoFailed(f"{printable(name)}: a loop device cannot be put on it: {error.strerror}") from error
    finally:
        os.close(control)
    try:
        yield number
    finally:
        os.close(device)


def _configured(control: int, volume: int, name: str) -> tuple[int, int]:
    """Number and descriptor of a loop device that was free and is on the file now."""
    for _ in range(_ATTEMPTS_MAX):
        number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
        device = opened(number)
        try:
            _configure(device, volume, name)
        except OSError as error:
            os.close(device)
            if error.errno != errno.EBUSY:
                raise
        else:
            return number, device
    raise IoFailed(f"{printable(name)}: other processes take every free loop device")


def _configure(device: int, volume: int, name: str) -> None:
    shown = os.fsencode(name)[:63]
    flags = _LO_FLAGS_AUTOCLEAR | _LO_FLAGS_DIRECT_IO
    info = _INFO.pack(0, 0, 0, 0, 0, 0, 0, 0, flags, shown, b"", b"", 0, 0)
    try:
        fcntl.ioctl(device, _LOOP_CONFIGURE, _CONFIG.pack(volume, 0, info))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTTY):
            raise
        # Kernels before 5.8 have no LOOP_CONFIGURE.
        fcntl.ioctl(device, _LOOP_SET_FD, volume)
        fcntl.ioctl(device, _LOOP_SET_STATUS64, info)
        with contextlib.suppress(OSError):
            fcntl.ioctl(device, _LOOP_SET_DIRECT_IO, 1)


def opened(number: int) -> int:
    """Open a loop device; whoever has it open keeps it on its file.

    Raises
    ------
    OSError
        There is none of this number.
    """
    device = os.open(device_path(number), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(device)
    if not stat.S_ISBLK(status.st_mode) or os.major(status.st_rdev) != LOOP_MAJOR:
        os.close(device)
        raise OSError(errno.ENODEV, "is no loop device", device_path(number))
    return device


def device_path(number: int) -> str:
    """Path of a loop device.

    Examples
    --------
    >>> device_path(3)
    '/dev/loop3'
    """
    return f"/dev/loop{number:d}"


def mount_ext4(number: int, place: int) -> None:
    """Mount the ext4 of a loop device onto an open folder.

    Parameters
    ----------
    place
        Descriptor of the folder: the mount lands on this folder, whatever has its name by now.

    Raises
    ------
    OSError
        The kernel refuses it.
    """
    flags = ctypes.c_ulong(_MS_NOATIME | _MS_NOSUID | _MS_NODEV)
    device, folder = device_path(number).encode(), f"/proc/self/fd/{place:d}".encode()
    _checked(_libc.mount(device, folder, b"ext4", flags, b"nodiscard"))


def unmount(place: str, *, lazily: bool = False) -> None:
    """Unmount the file system at a path whose last component is no link.

    Parameters
    ----------
    lazily
        Whether users of the file system keep it until they close their files.

    Raises
    ------
    OSError
        `EINVAL` where nothing is mounted there, `EBUSY` where it is in use.
    """
    flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazily else 0)
    _checked(_libc.umount2(os.fsencode(place), flags))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
