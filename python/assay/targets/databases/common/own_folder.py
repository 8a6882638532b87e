"""The folder of an embedded database or of its log: made or recognised by Assay's mark, and this user's alone."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from assay.base.errors import OpenFailed, OutOfSpace, RefusedTarget
from assay.base.paths import printable
from assay.base.units import format_bytes
from assay.targets.databases.common.folder_state import open_own_file
from assay.targets.databases.common.tree_copy import free_bytes_of
from assay.targets.trust import open_own, open_trusted

MARK = ".assay-database"
SIDECAR = f".{MARK}.assay"
"""Mark that an earlier Assay wrote beside the other where a file system has no extended attributes."""

FREE_BYTES_MIN = 256 * 1024**2
"""What a new, empty cluster needs to begin with: some 60 MB of tables and log, and room to work."""

_MARK_TEXT = b"Assay made this folder for a database of its own.\n"
_HARMLESS = frozenset({"lost+found"})

T = TypeVar("T")


def open_ours(folder: Path, display: str) -> tuple[Path, int]:
    """Open a folder that Assay made, or make it, or take an empty one.

    Returns
    -------
    Path
        Where it really is: no component is a link.
    int
        Descriptor; the caller closes it.

    Raises
    ------
    RefusedTarget
        It holds something that Assay did not make, another user could change it, or it cannot be a folder of ours.
    OutOfSpace
        There is no room for a new database.
    """
    where, descriptor = attempt(display, folder, lambda: open_or_make(folder, display))
    try:
        attempt(display, where, lambda: _refuse_unmarked(where, descriptor, display))
    except BaseException:
        os.close(descriptor)
        raise
    return where, descriptor


def attempt(display: str, path: Path, work: Callable[[], T]) -> T:
    """Do something with a file or folder; what fails with it is an error that names it.

    Raises
    ------
    RefusedTarget
        It is not permitted.
    OpenFailed
        It fails otherwise.
    """
    try:
        return work()
    except OSError as error:
        shown = printable(path)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise RefusedTarget(
                f"{display}: no permission to use {shown} ({error.strerror}); change its permissions, or give another "
                "folder"
            ) from error
        raise OpenFailed(f"{display}: {shown}: {error.strerror}; check the path and its disk") from error


def open_or_make(folder: Path, display: str) -> tuple[Path, int]:
    """Open a folder of this user's own by a way that no other user can change, or make it; see `trust.open_own`."""
    try:
        parent, way = open_trusted(folder.parent, display)
    except (FileNotFoundError, NotADirectoryError):
        raise RefusedTarget(
            f"{display}: the folder {printable(folder.parent)} does not exist; create it (mkdir -p "
            f"{printable(folder.parent)}), or check the path"
        ) from None
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder.name or ".", 0o700, dir_fd=way)
    finally:
        os.close(way)
    try:
        return open_own(parent / folder.name, display)
    except (FileNotFoundError, NotADirectoryError):
        raise RefusedTarget(f"{display}: {printable(folder)} is not a folder; give a folder for the database") from None


def _refuse_unmarked(where: Path, folder: int, display: str) -> None:
    if _is_marked(folder):
        return
    if any(name not in _HARMLESS for name in os.listdir(folder)):
        raise RefusedTarget(
            f"{display}: {printable(where)} is not empty and holds no database of Assay; give an empty or a new folder"
        )
    free_bytes = free_bytes_of(where)
    if free_bytes < FREE_BYTES_MIN:
        raise OutOfSpace(
            f"{display}: {format_bytes(free_bytes)} free in {printable(where)}, a database needs "
            f"{format_bytes(FREE_BYTES_MIN)} to begin with; free some space, or give another folder"
        )
    mark = os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        os.write(mark, _MARK_TEXT)
    finally:
        os.close(mark)


def _is_marked(folder: int) -> bool:
    """Whether an open folder carries Assay's mark, this one's or the empty file of an earlier Assay."""
    try:
        mark = open_own_file(MARK, folder)
    except OSError:
        return False
    try:
        return os.read(mark, len(_MARK_TEXT) + 1) in (_MARK_TEXT, b"")
    finally:
        os.close(mark)
