"""A folder held by its descriptor: what is read and written in it is in it, whatever links stand or appear there.

Files are created anew under names that nothing has, and renamed into place: a link, a pipe or a second name of another
file that stands in their place is replaced, never followed (open(2): `O_EXCL`, `O_NOFOLLOW`; rename(2)). What is opened
to be read or appended to is a regular file and no link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import weakref
from pathlib import Path

from assay.base.paths import as_given, let_go, open_regular, printable
from assay.record import durable

PRIVATE = 0o700
"""Mode of folders that hold bytes of the target, which only their owner may read."""


class Folder:
    """One folder, opened with `Folder.open` and held until it is closed or forgotten.

    Every name given to a method is one name, never a path. Methods raise OSError unless they say otherwise.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._close = weakref.finalize(self, let_go, descriptor)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Folder:
        """Hold the folder that `path` leads to at this moment; links on the way are followed, this once.

        Raises
        ------
        OSError
            There is none.
        """
        return cls(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), Path(path))

    @property
    def path(self) -> Path:
        """The path it was opened by, for messages."""
        return self._path

    @property
    def descriptor(self) -> int:
        """Descriptor of the folder, for system calls that take one."""
        return self._descriptor

    def close(self) -> None:
        """Let go of the folder."""
        self._close()

    def folder(self, name: str, *, make: bool = False, mode: int = 0o755) -> Folder:
        """Hold a folder in this one.

        Parameters
        ----------
        name
            Its name.
        make
            Make it where it is missing, durably.
        mode
            Mode it is made with. With `PRIVATE` it must be the caller's own, and others lose their rights on it.

        Raises
        ------
        OSError
            It is a link, or no folder; or private and another user's.
        """
        _check_name(name)
        is_new = False
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, mode, dir_fd=self._descriptor)
                is_new = True
                self.sync()
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            found = Folder(os.open(name, flags, dir_fd=self._descriptor), self._path / name)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(errno.ENOTDIR, "a link or file is in its place; remove it", name) from error
            raise
        if is_new:
            as_given(found.descriptor, mode)
        if make and mode == PRIVATE:
            _make_private(found, name)
        return found

    def create(self, name: str, mode: int = 0o644) -> int:
        """Create a file that does not exist and open it for writing; the caller closes it.

        Raises
        ------
        OSError
            `EEXIST` where anything has the name, a link included.
        """
        _check_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=self._descriptor)
        as_given(descriptor, mode)
        return descriptor

    def open_single(self, name: str, flags: int, mode: int = 0o644) -> int:
        """Open a file for writing in place, or create it; it must be a regular file that has this name alone.

        Raises
        ------
        OSError
            It is a link, no regular file, or has a second name somewhere.
        """
        _check_name(name)
        flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            try:
                descriptor = os.open(name, flags | os.O_EXCL, mode, dir_fd=self._descriptor)
                as_given(descriptor, mode)
            except FileExistsError:
                descriptor = os.open(name, flags, mode, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise OSError(error.errno, "a link, a pipe or a folder is in its place; remove it", name) from error
            raise
        fault = _not_single(os.fstat(descriptor))
        if fault:
            os.close(descriptor)
            raise OSError(errno.EPERM, f"{fault}; remove it", name)
        return descriptor

    def open_regular(self, name: str) -> int:
        """Open a regular file for reading; never a link, and a pipe is not waited for."""
        _check_name(name)
        return open_regular(name, dir_fd=self._descriptor)

    def read(self, name: str, bytes_most: int) -> bytes:
        """Content of a regular file of at most `bytes_most`.

        Raises
        ------
        OSError
            `EFBIG` where it is longer, and whatever else the system reports.
        """
        with os.fdopen(self.open_regular(name), "rb") as file:
            if os.fstat(file.fileno()).st_size > bytes_most:
                raise OSError(errno.EFBIG, f"is larger than {bytes_most:,} bytes", name)
            content = file.read(bytes_most + 1)
        if len(content) > bytes_most:
            raise OSError(errno.EFBIG, f"is larger than {bytes_most:,} bytes", name)
        return content

    def replace(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Replace or create a file so that a crash leaves either the old or the new content, whole.

        Raises
        ------
        OSError
            The old content stays, and nothing is left behind.
        """
        _check_name(name)
        part = f".{secrets.token_hex(8)}.part"
        descriptor = self.create(part, mode)
        try:
            try:
                durable.write_whole(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.rename(part, name)
        except BaseException:
            self.remove(part)
            raise
        self.sync()

    def rename(self, name: str, new: str) -> None:
        """Give a file another name; what had it is gone."""
        os.rename(name, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def unlink(self, name: str) -> None:
        """Remove a file; a link is removed, not what it leads to."""
        os.unlink(name, dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file if that can be done."""
        with contextlib.suppress(OSError):
            self.unlink(name)

    def names(self) -> list[str]:
        """Names of everything in it, sorted."""
        return sorted(os.listdir(self._descriptor))

    def has(self, name: str) -> bool:
        """Whether anything has the name, be it a link that leads nowhere."""
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def sync(self) -> None:
        """Bring the names in the folder to stable storage, where the file system can."""
        durable.sync_descriptor(self._descriptor)


def replace_file(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace or create a file so that a crash leaves either the old or the new content, whole.

    A link that has the name is replaced, not followed.

    Raises
    ------
    OutOfSpace
        The file system is full; the old content stays.
    IoFailed
        Any other failure; the old content stays.
    """
    try:
        folder = Folder.open(path.parent)
        try:
            folder.replace(path.name, data, mode)
        finally:
            folder.close()
    except OSError as error:
        raise durable.failure(error, f"cannot write {printable(path)}") from error


def _check_name(name: str) -> None:
    """Refuse a name that is not plain: names come from counters and constants, and this is the second look.

    Raises
    ------
    ValueError
        It leads elsewhere, or is empty.
    """
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise ValueError(f"{printable(name[:60])!r} is not the name of a file")


def _make_private(folder: Folder, name: str) -> None:
    found = os.fstat(folder.descriptor)
    if found.st_uid != os.geteuid() and found.st_uid != _owner_of_new_files(folder):
        folder.close()
        raise OSError(errno.EPERM, f"it belongs to another user (uid {found.st_uid}); remove it", name)
    if stat.S_IMODE(found.st_mode) != PRIVATE:
        os.fchmod(folder.descriptor, PRIVATE)


def _owner_of_new_files(folder: Folder) -> int:
    """Number of the user that files of this process get: a network file system may give root another one."""
    name = f".{secrets.token_hex(8)}.part"
    descriptor = folder.create(name, 0o600)
    try:
        return os.fstat(descriptor).st_uid
    finally:
        os.close(descriptor)
        folder.remove(name)


def _not_single(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    return "it has a second name (a hard link)" if found.st_nlink != 1 else ""
