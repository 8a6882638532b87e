"""Copies of folders: blocks are shared where the file system can (reflinks), holes and modes are kept.

Trees are walked by descriptor, and no link is followed but those that the caller names with where they must lead.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from assay.base.paths import open_regular, open_without_links

_FICLONE = 0x40049409
"""ioctl_ficlone(2)."""

_NO_REFLINK = frozenset({errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM, errno.ENOSYS})
_CHUNK_BYTES = 64 * 1024**2
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_NO_LINKS: Mapping[str, Path] = {}


@contextmanager
def folder_opened(folder: Path) -> Iterator[int]:
    """Open a folder of which no component is a link."""
    descriptor = open_without_links(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_below(name: str, folder: int) -> Iterator[int]:
    """Open a folder within a folder; a link of that name is an error."""
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# Copies


def copy_tree(
    source: Path,
    copy: Path,
    progress: Callable[[int], None] | None = None,
    *,
    owner: tuple[int, int] | None = None,
    linked: Mapping[str, Path] = _NO_LINKS,
    placed: Mapping[str, Path] = _NO_LINKS,
) -> int:
    """Copy a folder's files and folders into an empty folder. Nothing is synced.

    Parameters
    ----------
    copy
        Exists and is empty.
    progress
        Told the bytes of each file as it is done.
    owner
        User and group of the copies; this process's unless given.
    linked
        Folders by names of links in the source, which are copied in place of these links.
    placed
        Empty folders by names of folders in the source, which are copied to there; a link takes their place.

    Returns
    -------
    int
        Bytes of the files, holes included.

    Raises
    ------
    OSError
        No room, no permission, or a link that was not named.
    """
    copying = _Copying(progress or (lambda _: None), owner)
    with folder_opened(source) as reader, folder_opened(copy) as writer:
        total_bytes = copying.fill(reader, writer, skipped={*linked, *placed})
        for name, folder in linked.items():
            os.mkdir(name, 0o700, dir_fd=writer)
            with folder_opened(folder) as below, opened_below(name, writer) as into:
                total_bytes += copying.fill(below, into)
        for name, folder in placed.items():
            with opened_below(name, reader) as below, folder_opened(folder) as into:
                total_bytes += copying.fill(below, into)
            os.symlink(folder, name, dir_fd=writer)
    return total_bytes


class _Copying:
    """One copy under way."""

    def __init__(self, progress: Callable[[int], None], owner: tuple[int, int] | None) -> None:
        self._progress = progress
        self._owner = owner
        self._cloning = _Cloning()

    def fill(self, reader: int, writer: int, *, skipped: set[str] | None = None) -> int:
        """Copy what a folder holds, and take over its mode."""
        total_bytes = 0
        for name, status in _entries(reader):
            if skipped and name in skipped:
                continue
            if stat.S_ISDIR(status.st_mode):
                os.mkdir(name, 0o700, dir_fd=writer)
                with opened_below(name, reader) as below, opened_below(name, writer) as into:
                    total_bytes += self.fill(below, into)
            elif stat.S_ISREG(status.st_mode):
                size_bytes = self._copy_file(name, reader, writer)
                total_bytes += size_bytes
                self._progress(size_bytes)
            elif stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "is a link that PostgreSQL did not make", name)
        _take_over(os.fstat(reader), writer, self._owner)
        return total_bytes

    def _copy_file(self, name: str, reader: int, writer: int) -> int:
        source = open_regular(name, dir_fd=reader)
        with contextlib.closing(os.fdopen(source, "rb", buffering=0)):
            status = os.fstat(source)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            copy = os.open(name, flags, 0o600, dir_fd=writer)
            with contextlib.closing(os.fdopen(copy, "wb", buffering=0)):
                _copy_bytes(source, copy, status, self._cloning)
                _take_over(status, copy, self._owner)
        return status.st_size


class _Cloning:
    """Whether reflinks are still worth trying; the first refusal settles it."""

    def __init__(self) -> None:
        self.may_work = True


def copy_file(source: Path, copy: Path) -> None:
    """Copy one file with its owner and mode; `copy` must not exist."""
    reader = open_without_links(_placed(source), os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.closing(os.fdopen(reader, "rb", buffering=0)):
        if not stat.S_ISREG(os.fstat(reader).st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(source))
        copy_open_file(reader, copy)


def copy_open_file(reader: int, copy: Path) -> None:
    """Copy a file by its descriptor, with its owner and mode; `copy` must not exist."""
    status = os.fstat(reader)
    writer = open_without_links(_placed(copy), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with contextlib.closing(os.fdopen(writer, "wb", buffering=0)):
        _copy_bytes(reader, writer, status, _Cloning())
        _take_over(status, writer, (status.st_uid, status.st_gid))


def _placed(path: Path) -> Path:
    """Resolve the links on the way to a path, not one at its end."""
    return Path(os.path.realpath(path.parent)) / path.name


def _copy_bytes(reader: int, writer: int, status: os.stat_result, cloning: _Cloning) -> None:
    if not (cloning.may_work and _clone(reader, writer, cloning)):
        _copy_data(reader, writer, status.st_size)


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
    """Whether the file system of a folder makes reflinks, found out by making one of a file without a name."""
    with contextlib.ExitStack() as stack:
        pair = []
        for _ in range(2):
            try:
                descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except OSError as error:
                if error.errno in (errno.EOPNOTSUPP, errno.EISDIR):
                    return False
                raise
            stack.callback(os.close, descriptor)
            pair.append(descriptor)
        os.write(pair[0], bytes(4096))
        return _clone(pair[0], pair[1], _Cloning())


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


def _take_over(status: os.stat_result, copy: int, owner: tuple[int, int] | None) -> None:
    """Give an open copy its owner and the mode of what it is a copy of."""
    if owner is not None and owner != (os.geteuid(), os.getegid()):
        os.fchown(copy, *owner)
    os.fchmod(copy, stat.S_IMODE(status.st_mode))


# What is done to trees in place


def give_tree(folder: Path, uid: int, gid: int) -> None:
    """Change the owner of everything in a folder, links themselves included, and of the folder last.

    Raises
    ------
    OSError
        A file has a second name: it may be another's.
    """
    with folder_opened(folder) as descriptor:
        _give(descriptor, uid, gid)


def _give(folder: int, uid: int, gid: int) -> None:
    for name, status in _entries(folder):
        if stat.S_ISDIR(status.st_mode):
            with opened_below(name, folder) as below:
                _give(below, uid, gid)
        elif stat.S_ISREG(status.st_mode):
            descriptor = open_regular(name, dir_fd=folder)
            try:
                if os.fstat(descriptor).st_nlink != 1:
                    raise OSError(errno.EMLINK, "has a second name, so its owner is not changed", name)
                os.fchown(descriptor, uid, gid)
            finally:
                os.close(descriptor)
        else:
            os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)
    os.fchown(folder, uid, gid)


def tree_bytes(folder: Path) -> int:
    """Bytes that the files of a folder occupy."""
    with folder_opened(folder) as descriptor:
        return _bytes_of(descriptor)


def _bytes_of(folder: int) -> int:
    total_bytes = 0
    for name, status in _entries(folder):
        if stat.S_ISDIR(status.st_mode):
            with opened_below(name, folder) as below:
                total_bytes += _bytes_of(below)
        else:
            total_bytes += status.st_blocks * 512
    return total_bytes


def delete_below(name: str, folder: int) -> None:
    """Delete a folder within an open folder, if it is there; of a link to one, the link."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode):
        os.unlink(name, dir_fd=folder)
    else:
        shutil.rmtree(name, dir_fd=folder)


def _entries(folder: int) -> list[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]


# File systems


def sync_file_system(folder: Path) -> None:
    """Write everything of the folder's file system to its device: one call instead of one for each of many files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def free_bytes_of(folder: Path) -> int:
    """Room for unprivileged writers on a folder's file system."""
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize
