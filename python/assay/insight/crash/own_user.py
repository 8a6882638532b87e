"""As whom a server runs that must not be root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from assay.base.errors import NotSupported

CANDIDATES = ("postgres", "mysql", "nobody")
"""Users of the system that own nothing of a user's; the first that is there is taken."""


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


def server_user(display: str, program: Path) -> OwnUser:
    """The user as whom a server's program runs.

    Raises
    ------
    NotSupported
        This process is root, and there is no other user who can run the program.
    """
    if os.geteuid() != 0:
        return OwnUser()
    for name in CANDIDATES:
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
