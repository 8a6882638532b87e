"""Who the embedded server runs as: never as the kernel's user 0, and as root's only with a user of its own."""

from __future__ import annotations

import grp
import os
import pwd
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import psutil

from assay.base.errors import NotSupported

SYSTEM_USER = "assay-postgresql"
"""User of the system whose name `initdb` takes first where the server's user has none."""

DEDICATED = range(61184, 65520)
"""Numbers that systemd gives to users of services while these run ("Users, Groups, UIDs and GIDs on systemd")."""

_UNMAPPED = 65534
"""What the kernel shows for users that a namespace does not have, and the number of `nobody`."""


@dataclass(frozen=True, kw_only=True)
class ServerUser:
    """Who the server runs as.

    Attributes
    ----------
    kind
        `self`: as this process. `dedicated`: as a user of the server's own, who is in no list of users, in a mount
        namespace. `number`: as such a user without a mount namespace, so that the user has no name. `namespace`: as
        this process, which is not the kernel's root, under another number.
    uid, gid
        Numbers of the server's user and group, as it sees itself.
    client
        Name by which the server knows this process, when it asks the kernel who connects (`peer`).
    maker
        Number of the user as whom `initdb` runs where the server's own has no name, which `initdb` alone asks for.
    """

    kind: Literal["self", "dedicated", "number", "namespace"]
    uid: int
    gid: int
    client: str
    maker: int | None = None

    @property
    def is_another(self) -> bool:
        """Whether the server's user is another than this process's."""
        return self.kind in ("dedicated", "number")

    @property
    def owner(self) -> tuple[int, int]:
        """User and group that own the server's files, as this process sees them."""
        return (self.uid, self.gid) if self.is_another else (os.geteuid(), os.getegid())

    @property
    def first_owner(self) -> tuple[int, int]:
        """User and group that own them while `initdb` makes them."""
        return self.owner if self.maker is None else (self.maker, self.gid)


def identities(display: str, dedicated_before: int | None = None) -> Iterator[ServerUser]:
    """Identities that a server of this process may have, the best first; whether one works is found out by trying.

    Parameters
    ----------
    dedicated_before
        Number of the dedicated user whom the files belong to; taken again unless it has become another's.

    Raises
    ------
    NotSupported
        This process's user has none.
    """
    outer = _outer_uid(os.geteuid())
    if os.geteuid() == 0:
        uid = _dedicated_uid(dedicated_before)
        yield ServerUser(kind="dedicated", uid=uid, gid=uid, client="root")
        maker = _idle_user()
        if maker is not None and _is_user(0):
            yield ServerUser(kind="number", uid=uid, gid=uid, client=pwd.getpwuid(0).pw_name, maker=maker)
        if not outer:
            return
    elif outer == 0:
        raise NotSupported(
            f"{display}: user {os.geteuid()} of this namespace is root outside; run Assay as another user"
        )
    else:
        try:
            yield ServerUser(kind="self", uid=os.geteuid(), gid=os.getegid(), client=pwd.getpwuid(os.geteuid()).pw_name)
        except KeyError:
            pass
        else:
            return
    for other in pwd.getpwall():
        if other.pw_uid not in (0, _UNMAPPED) and other.pw_gid != 0:
            yield ServerUser(kind="namespace", uid=other.pw_uid, gid=other.pw_gid, client=other.pw_name)
            return


def none_works(display: str) -> NotSupported:
    """Error when no identity works here."""
    if os.geteuid() == 0:
        return NotSupported(
            f"{display}: PostgreSQL must not run as root, and this container allows no mount namespace in which it"
            " could have a user of its own, nor has it a user without processes whose name initdb could take; run Assay"
            f" as an ordinary user, or make one: useradd --system {SYSTEM_USER}"
        )
    return NotSupported(
        f"{display}: user {os.geteuid()} has no name on this system, which PostgreSQL needs; add it to /etc/passwd"
    )


def _outer_uid(uid: int) -> int | None:
    """Return the number that a user of this user namespace has outside (user_namespaces(7)).

    None where that cannot be known. The namespace that all others are in maps every number to itself.
    """
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            for line in file:
                inside, outside, count = map(int, line.split())
                if inside <= uid < inside + count:
                    return outside + uid - inside
    except (OSError, ValueError):
        pass
    return None


def _dedicated_uid(before: int | None) -> int:
    running = _numbers_running()
    # The one before may run what was left behind by a process that died; the folder's lock says that it does not.
    if before is not None and before in DEDICATED and before not in running and not _is_named(before):
        return before
    candidates = list(DEDICATED)
    random.SystemRandom().shuffle(candidates)
    return next(number for number in candidates if number not in running and not _is_named(number))


def _idle_user() -> int | None:
    """Number of a system user that has no processes and no login; the user of Assay's own comes first."""
    running = _numbers_running()
    users = sorted(pwd.getpwall(), key=lambda user: user.pw_name != SYSTEM_USER)
    for user in users:
        is_closed = user.pw_name == SYSTEM_USER or os.path.basename(user.pw_shell) in ("nologin", "false")
        if is_closed and user.pw_uid not in (0, _UNMAPPED) and user.pw_uid not in running:
            return user.pw_uid
    return None


def _is_user(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True


def _is_named(number: int) -> bool:
    try:
        grp.getgrgid(number)
    except KeyError:
        return _is_user(number)
    return True


def _numbers_running() -> set[int]:
    """Users and groups of all processes."""
    found: set[int] = set()
    for process in psutil.process_iter(["uids", "gids"]):
        for numbers in (process.info["uids"], process.info["gids"]):
            found.update(numbers or ())
    return found
