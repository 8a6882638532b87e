"""What `state.json` of an embedded database says: which folders count, and which Assay made.

The file is read as foreign input: bounded, typed, and only if it is a regular file of this process's user.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.base.paths import open_regular

STATE = "state.json"
BYTES_MAX = 64 * 1024
"""Larger files are not Assay's: a state of a hundred tablespaces has some ten thousand bytes."""

Name = Annotated[str, Field(pattern=r"^(data|saved)-[0-9]{1,9}$")]


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Made(_Model):
    """A folder that Assay made, known again by more than its name.

    Attributes
    ----------
    born_ns
        When it was made, in nanoseconds since 1970; None where the file system does not keep it.
    """

    inode: int
    born_ns: int | None


class Saved(_Model):
    """The saved state: its folder, its size, and what the database held; beside these its scale, by its own name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int | None]

    folder: Name
    bytes: int
    seed: int | None
    state: str | None
    saved_utc: str


class State(_Model):
    """What counts, and what Assay made.

    Attributes
    ----------
    id
        Names the folders of the log.
    data, saved
        What counts; None where there is none.
    wal
        Folder of the folders of the log, where that is elsewhere.
    owners
        Users whom the data may belong to; the last one is who the server runs as now.
    folders, wal_folders
        Folders that Assay made, by their names beside `state.json` and in `wal`.
    tablespaces
        Folders that Assay made for tablespaces, by their paths.
    """

    format: Literal[2] = 2
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")] = Field(default_factory=lambda: secrets.token_hex(4))
    data: Annotated[str, Field(pattern=r"^data-[0-9]{1,9}$")] | None = None
    saved: Saved | None = None
    wal: Annotated[str, Field(pattern=r"^/[^\x00]*$")] | None = None
    owners: tuple[Annotated[int, Field(ge=0, lt=2**32)], ...] = Field(default=(), strict=False)
    folders: dict[Name, Made] = Field(default_factory=dict)
    wal_folders: dict[Annotated[str, Field(pattern=r"^[0-9a-f]{8}-wal-[0-9]{1,9}$")], Made] = Field(
        default_factory=dict
    )
    tablespaces: dict[Annotated[str, Field(pattern=r"^/[^\x00]*$")], Made] = Field(default_factory=dict)


class _FirstState(BaseModel):
    """The state as it was before Assay kept which folders it made."""

    model_config = ConfigDict(strict=True, frozen=True)

    format: Literal[1]
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    data: Annotated[str, Field(pattern=r"^data-[0-9]{1,9}$")] | None
    saved: Saved | None
    wal: Annotated[str, Field(pattern=r"^/[^\x00]*$")] | None


def read_state(folder: int) -> tuple[State, bool] | None:
    """Read the state of an open folder.

    Returns
    -------
    tuple of State and bool, or None
        The state, and whether it is one of an earlier Assay, which does not say what was made; None if there is none.

    Raises
    ------
    ValueError
        It is not a state.
    OSError
        It is no regular file, or cannot be read.
    """
    try:
        descriptor = open_own_file(STATE, folder)
    except FileNotFoundError:
        return None
    with contextlib.closing(os.fdopen(descriptor, "rb")) as file:
        text = file.read(BYTES_MAX + 1)
    if len(text) > BYTES_MAX:
        raise ValueError("is too large")
    try:
        return State.model_validate_json(text), False
    except ValidationError:
        first = _FirstState.model_validate_json(text)
    return State(id=first.id, data=first.data, saved=first.saved, wal=first.wal), True


def write_state(state: State, folder: int) -> None:
    """Replace the state of an open folder in one step; it is on storage when this returns."""
    written = f"{STATE}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(written, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(written, flags, 0o600, dir_fd=folder), "w", encoding="utf-8") as file:
        file.write(state.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    os.replace(written, STATE, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def open_own_file(name: str, folder: int, flags: int = os.O_RDONLY) -> int:
    """Open a regular file of this process's user that has no other name.

    Raises
    ------
    OSError
        It is another's, has a second name, is no regular file, or does not exist.
    """
    descriptor = open_regular(name, flags, dir_fd=folder)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_nlink != 1:
        os.close(descriptor)
        raise OSError(1, "is another user's, or has a second name", name)
    return descriptor


def open_or_create(name: str, folder: int, flags: int) -> int:
    """Open a regular file of this process's user, made first where there is none."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        os.close(os.open(name, new, 0o600, dir_fd=folder))
    return open_own_file(name, folder, flags)


def made(folder: int) -> Made:
    """What an open folder is known by."""
    return Made(inode=os.fstat(folder).st_ino, born_ns=_born_ns(folder))


_STATX_BTIME, _AT_EMPTY_PATH = 0x800, 0x1000


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_uint32), ("reserved", ctypes.c_int32))


class _Statx(ctypes.Structure):
    """`struct statx` of statx(2)."""

    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("to_access_time", ctypes.c_uint8 * 60),
        ("access", _Time),
        ("birth", _Time),
        ("rest", ctypes.c_uint8 * 160),
    )


def _born_ns(descriptor: int) -> int | None:
    statx: Any = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
    found = _Statx()
    if statx is None or statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, ctypes.byref(found)):
        return None
    if not found.mask & _STATX_BTIME:
        return None
    return int(found.birth.seconds) * 10**9 + int(found.birth.nanoseconds)
