"""Where the files of a mounted file system lie on its device: FIEMAP (Linux, Documentation/filesystems/fiemap.rst)."""

from __future__ import annotations

import fcntl
import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_FIEMAP = 0xC020660B
"""`FS_IOC_FIEMAP` of linux/fs.h."""
_HEAD, _EXTENT = struct.Struct("=QQIIII"), struct.Struct("=QQQ2QI3I")
"""`struct fiemap` and `struct fiemap_extent` of linux/fiemap.h."""
_LAST, _NO_PLACE = 1, 2 | 4 | 8 | 0x200
"""Flags: the file's last extent; its place is unknown, not chosen yet, encoded or within an inode."""
_EXTENTS_AT_ONCE = 256
FILES_MAX = 200_000
"""Files and folders that are looked at."""


@dataclass(frozen=True, kw_only=True, order=True)
class FileExtent:
    """Bytes of the device that belong to a file or folder."""

    begin: int
    end: int
    path: str


class FileMap:
    """Files by their places on the device."""

    def __init__(self, extents: list[FileExtent]) -> None:
        self._extents = sorted(extents)
        self._begins = [one.begin for one in self._extents]

    def at(self, offset_bytes: int) -> str | None:
        """The file or folder to which a byte of the device belongs, its path from the mounted folder on.

        Examples
        --------
        >>> log = FileExtent(begin=8192, end=12288, path="/log")
        >>> files = FileMap([log, FileExtent(begin=0, end=4096, path="/data")])
        >>> files.at(8192), files.at(4095), files.at(4096), files.at(12288)
        ('/log', '/data', None, None)
        """
        number = bisect_right(self._begins, offset_bytes) - 1
        found = self._extents[number] if number >= 0 else None
        return found.path if found is not None and offset_bytes < found.end else None


def file_map(folder: Path) -> FileMap:
    """The files and folders of a file system that is mounted on a folder; what cannot be read is left out."""
    extents: list[FileExtent] = []
    for number, path in enumerate(_paths(folder)):
        if number >= FILES_MAX:
            break
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                name = f"/{os.path.relpath(path, folder)}" if path != str(folder) else "/"
                extents += [FileExtent(begin=begin, end=end, path=name) for begin, end in _extents(descriptor)]
            finally:
                os.close(descriptor)
    return FileMap(extents)


def _paths(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder, followlinks=False):
        yield place
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(files))


def _extents(descriptor: int) -> Iterator[tuple[int, int]]:
    """First byte on the device and the one after the last, of each extent of a file."""
    begin = 0
    while True:
        answer = bytearray(_HEAD.size + _EXTENTS_AT_ONCE * _EXTENT.size)
        _HEAD.pack_into(answer, 0, begin, 2**64 - 1 - begin, 0, 0, _EXTENTS_AT_ONCE, 0)
        fcntl.ioctl(descriptor, _FIEMAP, answer)
        count = _HEAD.unpack_from(answer)[3]
        for number in range(count):
            logical, physical, length, _, _, flags, *_ = _EXTENT.unpack_from(answer, _HEAD.size + number * _EXTENT.size)
            if not flags & _NO_PLACE:
                yield physical, physical + length
            begin = logical + length
            if flags & _LAST:
                return
        if not count:
            return
