"""Folders that no other user can exchange: what was looked at is still there when the work on it begins.

A folder is trustworthy if every folder on its way belongs to root or to who Assay runs as, and may be written to by no
other user, except where the sticky bit keeps one user's entries from another (`/tmp`). Links on the way are followed
one by one, and only where such an owner made them.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from pathlib import Path

from assay.base.errors import RefusedTarget
from assay.base.paths import printable

_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS_MAX = 40
"""As many as the kernel follows (path_resolution(7))."""

_ACL = "system.posix_acl_access"


def open_trusted(path: Path, what: str) -> tuple[Path, int]:
    """Open a folder whose way, the folder itself included, is trustworthy.

    Parameters
    ----------
    path
        Absolute; may lead over links.
    what
        Begins the message of a refusal.

    Returns
    -------
    Path
        Where the folder really is: no component is a link.
    int
        Descriptor to open what is in it (`O_PATH`); the caller closes it.

    Raises
    ------
    RefusedTarget
        Another user could exchange the folder; the line names where.
    OSError
        It does not exist, is no folder, or may not be entered.
    """
    waiting = list(reversed(path.parts[1:]))
    links_count = 0
    where, folder = Path("/"), os.open("/", _ON_THE_WAY)
    try:
        _refuse_foreign(where, os.fstat(folder), what)
        while waiting:
            name = waiting.pop()
            if (target := _link(name, folder)) is not None:
                _refuse_foreign(where / name, os.lstat(name, dir_fd=folder), what)
                links_count += 1
                if links_count > _LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                parts = Path(target).parts
                waiting.extend(reversed(parts[1:] if target.startswith("/") else parts))
                if not target.startswith("/"):
                    continue
                name = "/"
            below = os.open(name, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            folder = below
            where = where.parent if name == ".." else where / name
            _refuse_foreign(where, os.fstat(folder), what)
    except BaseException as error:
        os.close(folder)
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    return where, folder


def open_own(path: Path, what: str) -> tuple[Path, int]:
    """Open a folder that belongs to who Assay runs as, where no other user may make or rename entries.

    Returns
    -------
    Path
        Where the folder really is.
    int
        Descriptor to list it and to open what is in it; the caller closes it.

    Raises
    ------
    RefusedTarget
        It belongs to another user, or others may write to it or exchange it.
    OSError
        As of `open_trusted`.
    """
    where, way = open_trusted(path, what)
    try:
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=way)
    finally:
        os.close(way)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or others_write(where, status):
        os.close(folder)
        if status.st_uid != os.geteuid():
            raise RefusedTarget(
                f"{what}: {printable(where)} belongs to {_user(status.st_uid)}, and Assay runs as"
                f" {_user(os.geteuid())}; run Assay as its owner, or give another folder"
            )
        raise RefusedTarget(
            f"{what}: {printable(where)} may be written to by other users (mode {stat.S_IMODE(status.st_mode):04o});"
            f" chmod go-w {printable(where)}, or give another folder"
        )
    return where, folder


def make_trusted(path: Path, what: str) -> tuple[Path, int]:
    """Open a folder as `open_trusted` does; make it, and what is missing on its way, for this user alone.

    Raises
    ------
    RefusedTarget, OSError
        As of `open_trusted`.
    """
    missing: list[str] = []
    while True:
        try:
            where, folder = open_trusted(path, what)
            break
        except FileNotFoundError:
            # A link to nowhere exists, and is no folder that could be made.
            if not path.name or path.is_symlink():
                raise
            missing.append(path.name)
            path = path.parent
    try:
        for name in reversed(missing):
            os.mkdir(name, 0o700, dir_fd=folder)
            below = os.open(name, _ON_THE_WAY, dir_fd=folder)
            os.close(folder)
            where, folder = where / name, below
    except BaseException:
        os.close(folder)
        raise
    return where, folder


def make_own(path: Path, what: str) -> tuple[Path, int, bool]:
    """Open a folder as `open_own` does, or make it for this user alone, with what is missing on its way.

    Returns
    -------
    Path
        Where the folder really is.
    int
        Descriptor; the caller closes it.
    bool
        Whether the folder was made now.

    Raises
    ------
    RefusedTarget, OSError
        As of `open_own`; `ENOTDIR` where a file or a link has the folder's name.
    """
    parent, way = make_trusted(path.parent, what)
    try:
        is_new = True
        try:
            os.mkdir(path.name, 0o700, dir_fd=way)
        except FileExistsError:
            is_new = False
        found = os.lstat(path.name, dir_fd=way)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is no folder", str(path))
    finally:
        os.close(way)
    where, folder = open_own(parent / path.name, what)
    if os.fstat(folder).st_ino != found.st_ino:
        os.close(folder)
        raise RefusedTarget(f"{what}: {printable(path)} was exchanged while it was opened; start again")
    return where, folder, is_new


def is_trusted(path: Path) -> bool:
    """Whether `open_trusted` would open a folder."""
    try:
        _, folder = open_trusted(path, "")
    except (OSError, RefusedTarget):
        return False
    os.close(folder)
    return True


def only_root_writes(path: Path) -> bool:
    """Whether root alone can exchange a folder and change what is in it: programs in it are what root put there."""
    resolved = path.resolve()
    for folder in resolved.parents:
        status = os.lstat(folder)
        # Among entries that stick, root's own stays what it is.
        if not (_is_roots(status) or (status.st_uid == 0 and status.st_mode & stat.S_ISVTX)):
            return False
    if not _is_roots(os.lstat(resolved)):
        return False
    for place, folders, files in os.walk(resolved):
        for name in (*folders, *files):
            if not _is_roots(os.lstat(os.path.join(place, name))):
                return False
    return True


def _is_roots(status: os.stat_result) -> bool:
    is_shut = stat.S_ISLNK(status.st_mode) or not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid == 0 and is_shut


def _link(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


def _refuse_foreign(where: Path, status: os.stat_result, what: str) -> None:
    """Refuse what another user could exchange, or could exchange things in."""
    # Who owns the root of all folders can exchange anything: root, or root's stand-in within a user namespace.
    if status.st_uid not in (0, os.geteuid(), os.stat("/").st_uid):
        raise RefusedTarget(
            f"{what}: {printable(where)} belongs to {_user(status.st_uid)}, who could exchange what lies there while"
            f" Assay runs as {_user(os.geteuid())}; give a folder that only the latter and root may change, or run"
            f" Assay as {_user(status.st_uid)}"
        )
    if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX and others_write(where, status):
        raise RefusedTarget(
            f"{what}: {printable(where)} may be written to by other users (mode {stat.S_IMODE(status.st_mode):04o}),"
            f" who could exchange what lies there; chmod go-w {printable(where)}, or give another folder"
        )


def others_write(where: Path, status: os.stat_result) -> bool:
    """Whether a folder's mode lets other users make entries in it; an owner's private group is no other user."""
    if status.st_mode & stat.S_IWOTH:
        return True
    # With an access control list the group's bits are those of all whom the list names.
    return bool(status.st_mode & stat.S_IWGRP) and (_has_list(where) or not _is_private(status.st_gid, status.st_uid))


def _has_list(where: Path) -> bool:
    try:
        return bool(os.getxattr(where, _ACL, follow_symlinks=False))
    except OSError as error:
        return error.errno not in (errno.ENODATA, errno.ENOTSUP)


def _is_private(gid: int, uid: int) -> bool:
    """Whether a group is a user's own: it has the user's name and no other member."""
    try:
        group, user = grp.getgrgid(gid), pwd.getpwuid(uid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and not [
        name
        for name in (*group.gr_mem, *(one.pw_name for one in pwd.getpwall() if one.pw_gid == gid))
        if name != user.pw_name
    ]


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
