"""A program of its own: starts another as a user it may run as, and ends it when who asked for it has gone.

PostgreSQL refuses to run as root, and nothing it is made to do should be root's. The kinds of identity:

- `dedicated`: a user of the server's own, who is in no list of users. The server sees a list with this user in it, and
  those folders it needs even if their parents are closed to it, in a mount namespace that is its alone.
- `number`: such a user where the kernel or the container allows no mount namespace. The user has no name, and folders
  that its arguments name and that are closed to it are opened before root's rights are given up (`/proc/self/fd/N`).
- `namespace`: this user, under another number in a user namespace.
- `self`: this user.

It is run by path and uses the standard library only, so that it starts where nothing but Python can be read.

    python -I -S launcher.py '{"identity": "dedicated", "uid": 61184, "gid": 61184, ...}' PROGRAM ARGUMENT...
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import TypedDict

REFUSED = 96
"""Exit status when the kernel or the container refuses to change the user."""

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPABILITY_VERSION_3 = 0x20080522

_STAGE = "/tmp"
"""Where the lists of users are written, in a file system of the namespace's own that is gone afterwards."""

_SHARED_MEMORY = "/dev/shm"
"""Where PostgreSQL's processes share memory that is not there from the first on (shm_overview(7))."""

_NAME_CACHES = ("/run/nscd", "/var/run/nscd")
"""Sockets of the daemon that answers for the lists of users in place of the files."""


class LauncherSettings(TypedDict):
    """What a program is started with: as whom, what it reaches, how long it has to end (s), what to delete then."""

    identity: str
    uid: int
    gid: int
    shown: list[str]
    lifeline: bool
    stop_signal: int
    patience_s: float
    left_over: list[str]
    own_memory: bool


def main(arguments: Sequence[str]) -> int:
    """Start the program; with a lifeline on standard input stay until it ends or the line does."""
    settings: LauncherSettings = json.loads(arguments[1])
    command = list(arguments[2:])
    if not settings.get("lifeline"):
        command = _become(settings, command)
        os.execv(command[0], command)
    parent, launcher = os.getppid(), os.getpid()
    child = os.fork()
    if child == 0:
        # The server must not hold the line, nor find its end on standard input.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        command = _become(settings, command)
        # Once this program is killed there is no line any more. Asked for last: a change of the user takes it back.
        _check(_libc().prctl(_PR_SET_PDEATHSIG, settings["stop_signal"], 0, 0, 0))
        if os.getppid() != launcher:
            os._exit(REFUSED)
        os.execv(command[0], command)
    code = _watch(child, settings["stop_signal"], settings["patience_s"])
    if os.getppid() != parent:
        # Who made them has died and cannot delete them.
        for folder in settings["left_over"]:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _watch(child: int, stop_signal: int, patience_s: float) -> int:
    """Wait for the child. Once no process holds the line it is told to stop, and at once where that takes long."""

    def stop(number: int = 0, frame: FrameType | None = None) -> None:
        del number, frame
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, stop_signal)

    def hold() -> None:
        while os.read(0, 64):
            pass
        stop()
        # PostgreSQL 18 never ends if it is told so while it recovers from a crash and has no room to write.
        time.sleep(patience_s)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGQUIT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    threading.Thread(target=hold, daemon=True).start()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _become(settings: LauncherSettings, command: list[str]) -> list[str]:
    """Change the user; nothing of this comes back. Returns the command as this user can run it."""
    kind, uid, gid = settings["identity"], settings["uid"], settings["gid"]
    try:
        if kind == "dedicated":
            _check(_libc().unshare(_CLONE_NEWNS))
            # What is mounted from here on is seen by this process and its children alone.
            _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
            _name_users(uid, gid)
            _show(settings["shown"])
            lies_there = any(map(_lies_in_memory, settings["shown"]))
            if settings["own_memory"] and os.path.isdir(_SHARED_MEMORY) and not lies_there:
                # What a server that is killed leaves there goes with the last of its processes.
                _mount("none", _SHARED_MEMORY, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
        if kind == "number":
            command = _by_descriptors(settings["shown"], command)
        if kind == "namespace":
            _enter_namespace(uid, gid)
        elif kind != "self":
            _become_user(uid, gid)
        _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    except OSError as error:
        print(f"launcher: {kind}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(REFUSED)
    return command


def needs_showing(path: str) -> bool:
    """Whether a server with a user of its own reaches a folder only if it is among those to be shown."""
    return closed_ancestor(path) is not None or _lies_in_memory(path)


def _lies_in_memory(path: str) -> bool:
    return os.path.commonpath((path, _SHARED_MEMORY)) == _SHARED_MEMORY


def closed_ancestor(path: str) -> str | None:
    """Topmost folder on the way to a path that not every user may pass; None if all may."""
    way = ""
    for name in path.split("/")[:-1]:
        way = f"{way.rstrip('/')}/{name}"
        if not os.stat(way).st_mode & 0o001:
            return way
    return None


def _name_users(uid: int, gid: int) -> None:
    """Let names of users come from lists that hold root and the new user: initdb and `peer` ask for them."""
    texts = {
        "passwd": f"root:x:0:0::/:/bin/false\nassay:x:{uid}:{gid}::/:/bin/false\n",
        "group": f"root:x:0:\nassay:x:{gid}:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\n",
    }
    _mount("none", _STAGE, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0700,size=64k")
    for name, text in texts.items():
        written, place = f"{_STAGE}/{name}", f"/etc/{name}"
        if name != "passwd" and not os.path.exists(place):
            continue
        with open(written, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(written, 0o644)
        _mount(written, place, None, _MS_BIND)
        _mount("none", place, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    _check(_libc().umount2(_STAGE.encode(), _MNT_DETACH))
    for folder in _NAME_CACHES:
        if os.path.isdir(folder):
            _mount("none", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755,size=4k")


def _show(paths: Sequence[str]) -> None:
    """Let folders be reached whose parents are closed: an empty folder covers the topmost of these."""
    covers: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(paths):
        closed = closed_ancestor(path)
        if closed is not None:
            covers.setdefault(closed, []).append((path, _open_folder(path)))
    os.umask(0o066)
    for closed, folders in covers.items():
        _mount("none", closed, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0711,size=64k")
        for path, folder in folders:
            os.makedirs(path, exist_ok=True)
            os.fchdir(folder)
            _mount(".", path, None, _MS_BIND | _MS_REC)
            os.close(folder)
    os.chdir("/")
    os.umask(0o077)


def _by_descriptors(paths: Sequence[str], command: list[str]) -> list[str]:
    """The command with arguments that reach folders below closed ones: by descriptors that its processes inherit."""
    program, *arguments = command
    for path in paths:
        names = re.compile(rf"(^|=){re.escape(path)}(?=/|$)")
        if closed_ancestor(path) is not None and any(map(names.search, arguments)):
            folder = _open_folder(path)
            os.set_inheritable(folder, True)
            arguments = [names.sub(rf"\g<1>/proc/self/fd/{folder}", argument) for argument in arguments]
    return [program, *arguments]


def _open_folder(path: str) -> int:
    """Open a folder of which no component is a link."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folder = os.open("/", flags)
    for name in path.split("/")[1:]:
        below = os.open(name, flags, dir_fd=folder)
        os.close(folder)
        folder = below
    return folder


def _enter_namespace(uid: int, gid: int) -> None:
    """See user_namespaces(7): a process may map its own user and group, once it gave up `setgroups`."""
    outside_uid, outside_gid = os.geteuid(), os.getegid()
    _check(_libc().unshare(_CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outside_uid} 1"),
        ("gid_map", f"{gid} {outside_gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _become_user(uid: int, gid: int) -> None:
    """Become a user who has none of root's rights and gets none back (capabilities(7))."""
    libc = _libc()
    number = 0
    # The first number that is no capability of this kernel ends it.
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(libc.capset(head, (ctypes.c_uint32 * 6)()))


def _mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    _check(
        _libc().mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind is not None else None,
            ctypes.c_ulong(flags),
            data.encode() or None,
        )
    )


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
