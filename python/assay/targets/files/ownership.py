"""Marks on files Assay made, so that it may write to them again and to nothing else.

A mark says which file it is for, and what the file was like when Assay last wrote to it. `user.assay.id` is the file's
random id, `user.assay.mark` all the rest as JSON. Where a file system has no extended attributes, a sidecar
`.NAME.assay` beside the file holds the same. Devices are never marked.

A mark counts only while all of it is true: the same inode, made at the same time, with no second name; and either size
and time of the last write are those at which Assay left it, or a run that never ended was writing to it and what it
holds is such as Assay writes. The content decides as well where the file system keeps times too coarsely to tell. A
file that is copied into a marked one is therefore not Assay's any more.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import secrets
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from assay import _core
from assay.base.errors import OpenFailed, OutOfSpace, RefusedTarget
from assay.base.paths import create_anew, open_regular, open_without_links, printable

ATTRIBUTE = "user.assay.id"
"""Extended attribute whose value is the file's random id, 32 hexadecimal digits."""

MARK_ATTRIBUTE = "user.assay.mark"
"""Extended attribute with the rest of the mark."""

_FORMAT = "assay-mark-2"
_MARK_BYTES_MAX = 4096
_ID = re.compile(r"[0-9a-f]{32}")
_NO_ATTRIBUTES = frozenset({errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EINVAL})
"""Answers of `setxattr` that leave the sidecar as the way: no such attributes here, or no room for one."""

_PLACE_BYTES = 8192
_PLACES_AT_ENDS, _PLACES_BETWEEN = 16, 256
"""Pages that are looked at in a file whose run never ended: at its begin, at its end, and anywhere."""

_EXTENTS_MAX = 1000
_TICKS_MAX = 50

_COARSE_TIMES_NS = 10_000_000
"""Some file systems keep times in steps of 10 ms (exFAT), 1 s (ext4 with small inodes) or 2 s (FAT).

A time that is a whole number of such steps proves nothing: another program may have written within the same step.
"""

_COARSE_CLOCK = 5
"""`CLOCK_REALTIME_COARSE` of linux/time.h, by which the kernel stamps files."""

State = Literal["in use", "at rest"]
Standing = Literal["ours", "changed", "foreign"]
"""`changed`: the file carries a mark that is not true any more."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What Assay says of a file it made.

    Attributes
    ----------
    id
        Random, the same as long as the file lives.
    state
        `in use` while a run writes; a run that is killed leaves it so.
    inode, birth_ns
        Which file it is; the time of birth is None where the file system knows none.
    size_bytes, mtime_ns
        As Assay left them.
    run
        Id of the run that wrote last.
    """

    id: str
    state: State
    inode: int
    birth_ns: int | None
    size_bytes: int
    mtime_ns: int
    run: str | None = None


# Making and marking


def make(path: Path, run: str | None = None) -> int:
    """Make a new, empty file that is Assay's and in use; nothing is left behind if it cannot be marked.

    Returns
    -------
    int
        Descriptor for reading and writing.

    Raises
    ------
    OpenFailed
        The file exists by now, or cannot be made.
    OutOfSpace
        There is no room for the file or its mark.
    """
    try:
        descriptor = open_without_links(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _failure(path, "cannot be created", error) from error
    try:
        mark(descriptor, path, "in use", run)
    except BaseException:
        os.close(descriptor)
        os.unlink(path)
        raise
    return descriptor


def mark(descriptor: int, path: Path, state: State, run: str | None = None) -> None:
    """Write a file's mark anew. Only the caller knows that it may: the file is new, empty, or was Assay's.

    Parameters
    ----------
    descriptor, path
        The file, open for writing, and its path without links.
    run
        The run that writes; as before unless given.

    Raises
    ------
    RefusedTarget
        A foreign file stands where the sidecar belongs.
    OpenFailed, OutOfSpace
        The mark cannot be written.
    """
    before = read_mark(descriptor, path)
    status = os.fstat(descriptor)
    if state == "at rest":
        _let_time_pass(status.st_mtime_ns)
    new = Mark(
        id=before.id if before is not None else secrets.token_hex(16),
        state=state,
        inode=status.st_ino,
        birth_ns=_core.file_identity(descriptor)[0],
        size_bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
        run=run if run is not None or before is None else before.run,
    )
    text = json.dumps({"format": _FORMAT, **asdict(new)})
    try:
        os.setxattr(descriptor, MARK_ATTRIBUTE, text.encode())
        os.setxattr(descriptor, ATTRIBUTE, new.id.encode())
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise _failure(path, "cannot be marked as Assay's", error) from error
        _write_sidecar(path, text, new.id)


def _let_time_pass(mtime_ns: int) -> None:
    """Wait until a write would have another time: the kernel's clock for files moves on every 1 to 10 ms."""
    for _ in range(_TICKS_MAX):
        if time.clock_gettime_ns(_COARSE_CLOCK) > mtime_ns:
            return
        time.sleep(0.001)


def unmade(path: Path, descriptor: int) -> bool:
    """Delete a file and its sidecar if the path still leads to the open file; whether it did.

    Raises
    ------
    OSError
        It cannot be deleted.
    """
    try:
        if not os.path.samestat(os.lstat(path), os.fstat(descriptor)):
            return False
    except FileNotFoundError:
        return False
    has_sidecar = _read_sidecar(path, os.fstat(descriptor)) is not None
    os.unlink(path)
    if has_sidecar:
        sidecar_path(path).unlink(missing_ok=True)
    return True


# Knowing again


def standing(descriptor: int, path: Path, *, exact_times: bool = True) -> Standing:
    """Whether an open regular file is Assay's, was once, or never was.

    Parameters
    ----------
    descriptor, path
        The file, open for reading, and its path without links.
    exact_times
        False on network file systems, which may settle the time of a write later: then the content decides.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return "foreign"
    found = read_mark(descriptor, path)
    if found is None:
        return "changed" if _attribute(descriptor, ATTRIBUTE) else "foreign"
    born_ns = {found.birth_ns, _core.file_identity(descriptor)[0]} - {None}
    # A second name means that the file is something else for others.
    if found.inode != status.st_ino or len(born_ns) > 1 or status.st_nlink > 1:
        return "changed"
    if found.state == "at rest":
        is_as_left = (found.size_bytes, found.mtime_ns) == (status.st_size, status.st_mtime_ns)
        if is_as_left and found.mtime_ns % _COARSE_TIMES_NS:
            return "ours"
        if not is_as_left and (exact_times or found.size_bytes != status.st_size):
            return "changed"
    return "ours" if holds_only_our_bytes(descriptor) else "changed"


def holds_only_our_bytes(descriptor: int) -> bool:
    """Whether samples of a file are all zeros, what load writes, or pages of `verify`: begin, end, and many between."""
    places = sorted(_places(descriptor))
    return _core.first_foreign(descriptor, places) is None


def _places(descriptor: int) -> set[int]:
    size_bytes = os.fstat(descriptor).st_size
    pages = -(-size_bytes // _PLACE_BYTES)
    numbers = {*range(min(_PLACES_AT_ENDS, pages)), *range(max(pages - _PLACES_AT_ENDS, 0), pages)}
    # Holes hold nothing, so the samples go to where there are data.
    extents = [(begin // _PLACE_BYTES, -(-end // _PLACE_BYTES)) for begin, end in _extents(descriptor, size_bytes)]
    # What is looked at must not be foreseen.
    chance = random.SystemRandom()
    for begin, end in (
        chance.choices(extents, [end - begin for begin, end in extents], k=_PLACES_BETWEEN) if extents else ()
    ):
        numbers.add(chance.randrange(begin, end))
    numbers |= {begin for begin, _ in extents[:_PLACES_BETWEEN]}
    return {number * _PLACE_BYTES for number in numbers}


def _extents(descriptor: int, size_bytes: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    end = 0
    while end < size_bytes and len(found) < _EXTENTS_MAX:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            # ENXIO: nothing but a hole is left. File systems that know no holes have data everywhere.
            return found if error.errno == errno.ENXIO else [(0, size_bytes)]
        found.append((begin, end))
    return found


def read_mark(descriptor: int, path: Path) -> Mark | None:
    """Return the mark of an open file, by its attribute or its sidecar, without asking whether it is true."""
    text = _attribute(descriptor, MARK_ATTRIBUTE)
    if text is None:
        return _read_sidecar(path, os.fstat(descriptor))
    found = _parse(text)
    identity = _attribute(descriptor, ATTRIBUTE)
    return (
        found
        if found is not None and identity is not None and identity.decode("ascii", "replace") == found.id
        else None
    )


def _attribute(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError:
        return None


def _parse(text: bytes) -> Mark | None:
    try:
        values: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.pop("format", None) != _FORMAT or values.keys() != _KEYS:
        return None
    is_typed = (
        isinstance(values["id"], str)
        and _ID.fullmatch(values["id"]) is not None
        and values["state"] in ("in use", "at rest")
        and all(type(values[key]) is int for key in ("inode", "size_bytes", "mtime_ns"))
        and (values["birth_ns"] is None or type(values["birth_ns"]) is int)
        and (values["run"] is None or isinstance(values["run"], str))
    )
    return Mark(**values) if is_typed else None


_KEYS = frozenset(Mark.__dataclass_fields__)


# Sidecars


def sidecar_path(path: Path) -> Path:
    """Where the sidecar of a file is, symbolic links resolved.

    Examples
    --------
    >>> sidecar_path(Path("/no-such-folder/assay.dat"))
    PosixPath('/no-such-folder/.assay.dat.assay')
    """
    resolved = Path(os.path.realpath(path))
    return resolved.with_name(f".{resolved.name}.assay")


def _read_sidecar(path: Path, status: os.stat_result) -> Mark | None:
    """Return what the sidecar says, if it is a plain file of the file's own owner."""
    found = _sidecar_content(sidecar_path(path))
    if found is None:
        return None
    text, owner = found
    # Every user who may write to the folder could put a mark beside another's file; only the file's owner counts.
    return _parse(text) if owner == status.st_uid else None


def _sidecar_content(sidecar: Path) -> tuple[bytes, int] | None:
    try:
        descriptor = open_regular(sidecar)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        return (os.read(descriptor, _MARK_BYTES_MAX), status.st_uid) if status.st_nlink == 1 else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _write_sidecar(path: Path, text: str, identity: str) -> None:
    sidecar = sidecar_path(path)
    there = _sidecar_content(sidecar)
    if os.path.lexists(sidecar) and (there is None or _parse(there[0]) is None):
        raise RefusedTarget(
            f"{printable(sidecar)}: stands where Assay's mark for {printable(path)} belongs; move it, or give another"
            " path"
        )
    written = sidecar.with_name(f"{sidecar.name}.{identity[:8]}")
    try:
        descriptor = create_anew(written, 0o600)
        try:
            os.write(descriptor, text.encode() + b"\n")
        finally:
            os.close(descriptor)
        os.replace(written, sidecar)
    except OSError as error:
        if error.errno != errno.EEXIST:
            written.unlink(missing_ok=True)
        raise _failure(sidecar, "cannot be written (the file system has no extended attributes)", error) from error


# Files that hold nothing but their mark


def create(path: Path) -> None:
    """Make an empty file that says by its mark that the folder around it is Assay's.

    Raises
    ------
    OpenFailed, OutOfSpace
        As of `make`.
    """
    descriptor = make(path)
    try:
        mark(descriptor, path, "at rest")
    finally:
        os.close(descriptor)


def is_ours(path: Path) -> bool:
    """Whether Assay made the regular file that a path leads to, and nothing else has changed it since."""
    resolved = Path(os.path.realpath(path))
    try:
        descriptor = open_regular(resolved)
    except OSError:
        return False
    try:
        return standing(descriptor, resolved) == "ours"
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _failure(path: Path, what: str, error: OSError) -> OpenFailed | OutOfSpace:
    where = printable(path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutOfSpace(f"{where}: {what}: {error.strerror}; free some space, or give a path on another file system")
    return OpenFailed(f"{where}: {what}: {error.strerror}; check the folder and its permissions, or give another path")
