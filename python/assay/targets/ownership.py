"""Marks on files Assay made, so that it may write to them again and to nothing else.

A file carries its mark as the extended attribute `user.assay.id`. Where a file system has no such attributes, a
sidecar `.NAME.assay` beside it names the file's inode and size; it holds only while both agree, because inode numbers
are given again to new files. Devices are never marked.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from assay.errors import OpenFailed, OutOfSpace, RefusedTarget

ATTRIBUTE = "user.assay.id"
"""Extended attribute whose value is the file's random id, 32 hexadecimal digits."""

_SIDECAR_FORMAT = "assay-sidecar-1"
_ID = re.compile(r"[0-9a-f]{32}")
_NO_ATTRIBUTES = frozenset({errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EINVAL})
"""Answers of `setxattr` that leave the sidecar as the way: no such attributes here, or no room for one."""


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """What `.NAME.assay` says of the file NAME."""

    format: str
    id: str
    inode: int
    size_bytes: int


def sidecar_path(path: Path) -> Path:
    """Where the sidecar of a file is, symbolic links resolved.

    Examples
    --------
    >>> sidecar_path(Path("/no-such-folder/assay.dat"))
    PosixPath('/no-such-folder/.assay.dat.assay')
    """
    resolved = Path(os.path.realpath(path))
    return resolved.with_name(f".{resolved.name}.assay")


def create(path: Path) -> None:
    """Make a new, empty file that is Assay's; nothing is left behind if it cannot be marked.

    Raises
    ------
    OpenFailed
        The file exists by now, or cannot be made.
    OutOfSpace
        There is no room for the file or its mark.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
    except OSError as error:
        raise _failure(path, "cannot be created", error) from error
    try:
        claim(path)
    except BaseException:
        os.unlink(path)
        raise


def claim(path: Path) -> None:
    """Mark a file as Assay's: right after making it, while it is empty, and again whenever its size was changed.

    Parameters
    ----------
    path
        A regular file that is empty or already marked.

    Raises
    ------
    RefusedTarget
        The file has content and no mark of Assay, or a foreign file stands where its sidecar belongs.
    OpenFailed, OutOfSpace
        The mark cannot be written.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) or (status.st_size > 0 and not _is_marked(path)):
        raise RefusedTarget(f"{path}: has content Assay did not write; give another path or an empty file")
    mark = _attribute(path) or secrets.token_hex(16)
    try:
        os.setxattr(path, ATTRIBUTE, mark.encode())
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise _failure(path, "cannot be marked as Assay's", error) from error
        _write_sidecar(path, status, mark)


def is_ours(path: Path) -> bool:
    """Whether Assay made this regular file, by its attribute or by a sidecar with its inode and size."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    if _attribute(path):
        return True
    sidecar = _read_sidecar(path)
    return sidecar is not None and (sidecar.inode, sidecar.size_bytes) == (status.st_ino, status.st_size)


def release(path: Path) -> bool:
    """Delete a half-made file and its sidecar, if it is Assay's; otherwise touch nothing.

    Returns
    -------
    bool
        Whether the file was deleted.
    """
    if not _is_marked(path):
        return False
    sidecar = sidecar_path(path)
    os.unlink(os.path.realpath(path))
    if _parse_sidecar(sidecar) is not None:
        sidecar.unlink(missing_ok=True)
    return True


def _is_marked(path: Path) -> bool:
    """Like `is_ours`, but the size may have changed since: so it does while a file is laid out."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    sidecar = _read_sidecar(path)
    return _attribute(path) is not None or (sidecar is not None and sidecar.inode == status.st_ino)


def _attribute(path: Path) -> str | None:
    try:
        value = os.getxattr(path, ATTRIBUTE).decode("ascii", errors="replace")
    except OSError:
        return None
    return value if _ID.fullmatch(value) else None


def _read_sidecar(path: Path) -> Sidecar | None:
    return _parse_sidecar(sidecar_path(path))


def _parse_sidecar(sidecar: Path) -> Sidecar | None:
    """Return the sidecar, or None if there is none or the file of that name is something else."""
    try:
        values = json.loads(sidecar.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.get("format") != _SIDECAR_FORMAT:
        return None
    mark, inode, size_bytes = values.get("id"), values.get("inode"), values.get("size_bytes")
    if not isinstance(mark, str) or not _ID.fullmatch(mark):
        return None
    if type(inode) is not int or type(size_bytes) is not int:
        return None
    return Sidecar(format=_SIDECAR_FORMAT, id=mark, inode=inode, size_bytes=size_bytes)


def _write_sidecar(path: Path, status: os.stat_result, mark: str) -> None:
    sidecar = sidecar_path(path)
    if sidecar.exists() and _parse_sidecar(sidecar) is None:
        raise RefusedTarget(f"{sidecar}: stands where Assay's mark for {path} belongs; move it, or give another path")
    content = Sidecar(format=_SIDECAR_FORMAT, id=mark, inode=status.st_ino, size_bytes=status.st_size)
    written = sidecar.with_name(f"{sidecar.name}.{mark[:8]}")
    try:
        written.write_text(json.dumps(asdict(content)) + "\n", encoding="utf-8")
        os.replace(written, sidecar)
    except OSError as error:
        written.unlink(missing_ok=True)
        raise _failure(sidecar, "cannot be written (the file system has no extended attributes)", error) from error


def _failure(path: Path, what: str, error: OSError) -> OpenFailed | OutOfSpace:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutOfSpace(f"{path}: {what}: {error.strerror}; free some space, or give a path on another file system")
    return OpenFailed(f"{path}: {what}: {error.strerror}; check the folder and its permissions, or give another path")
