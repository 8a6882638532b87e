"""Paths that lead where they say: opening without following links, and names of any bytes made printable."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_without_links(path: str | bytes | os.PathLike[str], flags: int, mode: int = 0o600) -> int:
    """Open an absolute path of which no component is a symbolic link.

    Every folder on the way is opened relative to the one before, so that no link that appears meanwhile is followed
    (open(2), `O_NOFOLLOW`; the same as `RESOLVE_NO_SYMLINKS` of openat2(2), which not every kernel lets through).

    Parameters
    ----------
    path
        Absolute; resolve links first (`os.path.realpath`) where the user may name one.
    flags, mode
        As of `os.open`; `O_NOFOLLOW` and `O_CLOEXEC` are added.

    Returns
    -------
    int
        Descriptor; the caller closes it.

    Raises
    ------
    OSError
        `ELOOP` or `ENOTDIR` where a component is a link, and whatever else open(2) reports.
    ValueError
        The path is relative or holds a null byte.
    """
    names = os.fsencode(path).split(b"/")
    if names[0] != b"" or b".." in names:
        raise ValueError(f"{printable(path)} is not an absolute path without '..'")
    names = [name for name in names if name not in (b"", b".")]
    folder = os.open("/", _FOLDER)
    try:
        for name in names[:-1]:
            below = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(names[-1] if names else b".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError as error:
        error.filename = os.fsdecode(path)
        raise
    finally:
        os.close(folder)


def create_anew(path: str | bytes | os.PathLike[str], mode: int = 0o644, *, append: bool = False) -> int:
    """Create a file that does not exist and open it for writing; what stands there, a link included, is an error.

    Raises
    ------
    OSError
        `EEXIST` where anything has the name.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_APPEND if append else 0)
    descriptor = os.open(path, flags, mode)
    as_given(descriptor, mode)
    return descriptor


@contextlib.contextmanager
def others_shut_out() -> Iterator[None]:
    """Make what libraries and programs make meanwhile their user's alone: they leave the mode to the umask.

    It is the process's; what Assay makes for others to read has the mode that the user's own umask gives it.
    """
    with _umask_lock:
        _umasks_given.append(os.umask(0o077))
    try:
        yield
    finally:
        with _umask_lock:
            umask = _umasks_given.pop()
            if not _umasks_given:
                os.umask(umask)


def as_given(descriptor: int, mode: int) -> None:
    """Give what was just made the mode that it has where the umask is the user's own."""
    with _umask_lock:
        if _umasks_given:
            os.fchmod(descriptor, mode & ~_umasks_given[0])


_umask_lock = threading.Lock()
_umasks_given: list[int] = []
"""The umask that the user gave, and those in force when calls nested."""


def open_regular(path: str | bytes | os.PathLike[str], flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> int:
    """Open a file that is a regular one: not a link, and not a pipe that would be waited for.

    Raises
    ------
    OSError
        `ELOOP` for a link; `EINVAL` for what is neither link nor regular file.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "is not a regular file", os.fsdecode(path))
    return descriptor


def let_go(descriptor: int) -> None:
    """Close a descriptor whose storage may be gone: what was to be kept has been synced by then.

    The kernel closes it whatever close(2) says, such as that the server of a FUSE or network file has ended.
    """
    with contextlib.suppress(OSError):
        os.close(descriptor)


def printable(path: str | bytes | os.PathLike[str]) -> str:
    r"""Return a path for messages and files: bytes that are no text, and control characters, are escaped.

    Examples
    --------
    >>> printable(b"/data/caf\xe9")
    '/data/caf\\xe9'
    >>> printable("/data/two\nlines")
    '/data/two\\nlines'
    """
    if isinstance(path, str) and path.isprintable():
        return path
    text = os.fsencode(path).decode("utf-8", errors="backslashreplace")
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def plain(text: str) -> str:
    r"""Text on one line, without control characters and marks that reorder it.

    Examples
    --------
    >>> plain("a\nb")
    'a\\nb'
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
