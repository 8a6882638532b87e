"""Copies of folders: blocks are shared where the file system can (reflinks), holes, owners and modes are kept."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

_FICLONE = 0x40049409
"""ioctl_ficlone(2)."""

_NO_REFLINK = frozenset({errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.ENOSYS})
_CHUNK_BYTES = 64 * 1024**2


def copy_tree(source: Path, copy: Path, progress: Callable[[int], None] | None = None) -> int:
    """Copy a folder's files and folders; what it links to is copied in place of the link. Nothing is synced.

    Parameters
    ----------
    copy
        Must not exist.
    progress
        Told the bytes of each file as it is done.

    Returns
    -------
    int
        Bytes of the files, holes included.

    Raises
    ------
    OSError
        No room, no permission.
    """
    return _copy_folder(source, copy, _Cloning(), progress or (lambda _: None))


class _Cloning:
    """Whether reflinks are still worth trying; the first refusal settles it."""

    def __init__(self) -> None:
        self.may_work = True


def copy_file(source: Path, copy: Path) -> None:
    """Copy one file; `copy` must not exist."""
    _copy_file(source, copy, _Cloning())


def _copy_folder(source: Path, copy: Path, cloning: _Cloning, progress: Callable[[int], None]) -> int:
    status = os.stat(source)
    copy.mkdir(mode=0o700)
    total_bytes = 0
    with os.scandir(source) as entries:
        for entry in entries:
            place = copy / entry.name
            if entry.is_dir():
                total_bytes += _copy_folder(Path(entry.path), place, cloning, progress)
            elif stat.S_ISREG(entry.stat().st_mode):
                size_bytes = _copy_file(Path(entry.path), place, cloning)
                total_bytes += size_bytes
                progress(size_bytes)
    _take_over(status, copy)
    return total_bytes


def _copy_file(source: Path, copy: Path, cloning: _Cloning) -> int:
    with source.open("rb") as reader, copy.open("xb") as writer:
        status = os.fstat(reader.fileno())
        if not (cloning.may_work and _clone(reader.fileno(), writer.fileno(), cloning)):
            _copy_data(reader.fileno(), writer.fileno(), status.st_size)
    _take_over(status, copy)
    return status.st_size


def _clone(reader: int, writer: int, cloning: _Cloning) -> bool:
    try:
        fcntl.ioctl(writer, _FICLONE, reader)
    except OSError as error:
        if error.errno not in _NO_REFLINK:
            raise
        cloning.may_work = False
        return False
    return True


def can_clone(folder: Path) -> bool:
    """Whether the file system of a folder makes reflinks, found out by making one."""
    with tempfile.TemporaryFile(dir=folder) as source, tempfile.TemporaryFile(dir=folder) as copy:
        source.write(bytes(4096))
        source.flush()
        return _clone(source.fileno(), copy.fileno(), _Cloning())


def _copy_data(reader: int, writer: int, size_bytes: int) -> None:
    os.ftruncate(writer, size_bytes)
    end = 0
    while end < size_bytes:
        try:
            begin = os.lseek(reader, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                # Nothing but a hole is left.
                return
            raise
        end = os.lseek(reader, begin, os.SEEK_HOLE)
        _copy_range(reader, writer, begin, end)


def _copy_range(reader: int, writer: int, begin: int, end: int) -> None:
    place = begin
    while place < end:
        count = min(end - place, _CHUNK_BYTES)
        try:
            copied = os.copy_file_range(reader, writer, count, place, place)
        except OSError as error:
            if error.errno not in _NO_REFLINK:
                raise
            copied = os.pwrite(writer, os.pread(reader, min(count, 1024**2), place), place)
        if copied == 0:
            raise OSError(errno.EIO, "a file became shorter while it was copied")
        place += copied


def _take_over(status: os.stat_result, copy: Path) -> None:
    """Give a copy the owner and mode of what it is a copy of."""
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(copy, status.st_uid, status.st_gid)
    os.chmod(copy, stat.S_IMODE(status.st_mode))


def sync_file_system(folder: Path) -> None:
    """Write everything of the folder's file system to its device: one call instead of one for each of many files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Write a folder's own entries to its device."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def give_tree(folder: Path, uid: int, gid: int) -> None:
    """Change the owner of a folder and of everything in it, links themselves included."""
    os.chown(folder, uid, gid)
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(path, name), uid, gid, follow_symlinks=False)


def tree_bytes(folder: Path) -> int:
    """Bytes that the files of a folder occupy, those it links to included."""
    total_bytes = 0
    for path, _, files in os.walk(folder, followlinks=True):
        total_bytes += sum(os.lstat(os.path.join(path, name)).st_blocks * 512 for name in files)
    return total_bytes


def delete_tree(folder: Path) -> None:
    """Delete a folder, if it is there."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def free_bytes_of(folder: Path) -> int:
    """Room for unprivileged writers on a folder's file system."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize
