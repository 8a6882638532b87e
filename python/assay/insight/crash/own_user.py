"""As whom a server runs that must not be root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from assay.base.errors import NotSupported, UsageError

CANDIDATES = ("postgres", "mysql", "nobody")
"""Users of the system that own nothing of a user's; the first that can run the program is taken."""


class UserOptions(TypedDict, total=False):
    """User and groups of a process, as `subprocess.Popen` takes them."""

    user: int
    group: int | None
    extra_groups: tuple[()]


@dataclass(frozen=True, kw_only=True)
class OwnUser:
    """User and group of a server; None: those of this process."""

    uid: int | None = None
    gid: int | None = None

    def as_options(self) -> UserOptions:
        """Arguments of `subprocess.Popen`."""
        return {} if self.uid is None else {"user": self.uid, "group": self.gid, "extra_groups": ()}


def named_user(name: str) -> OwnUser:
    """The user that `--as` names.

    Raises
    ------
    UsageError
        There is no such user, it is root, or this process may not become that user.
    """
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise UsageError(f"--as: {name!r} is no user of this host; name one of /etc/passwd") from None
    if os.geteuid() not in (0, found.pw_uid):
        raise UsageError(f"--as {name}: only root may start programs as another user; run Assay as root")
    if os.geteuid() != 0:
        return OwnUser()
    return OwnUser(uid=found.pw_uid, gid=found.pw_gid)


def server_user(display: str, program: Path, *, asked: str, usual: str) -> OwnUser:
    """The user as whom a server's program runs.

    Parameters
    ----------
    asked
        The user that `--as` names; empty: the usual one, or another that owns nothing of a user's.
    usual
        Name of the user that the server's package makes.

    Raises
    ------
    UsageError
        The user that was asked for is root, or cannot be had.
    NotSupported
        This process is root, and there is no other user who can run the program.
    """
    if asked:
        user = named_user(asked)
        if user.uid == 0:
            raise UsageError(f"--as root: {program.name} must not run as root; name another user")
        return user
    if os.geteuid() != 0:
        return OwnUser()
    for name in dict.fromkeys((usual, *CANDIDATES)):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        if found.pw_uid and _is_reachable(program):
            return OwnUser(uid=found.pw_uid, gid=found.pw_gid)
    raise NotSupported(
        f"{display}: {program} must not run as root, and no other user of this host can run it; make the user"
        " postgres: useradd --system postgres"
    )


def _is_reachable(program: Path) -> bool:
    """Whether every user can run a program."""
    return all(folder.stat().st_mode & 0o001 for folder in (program, *program.resolve().parents))
