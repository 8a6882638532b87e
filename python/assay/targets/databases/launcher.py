"""A program of its own: starts another as a user it may run as, and ends it when who asked for it has gone.

PostgreSQL refuses to run as root. `namespace` shows it a user namespace in which root has another user's number, so
that it may do what root's files allow and nothing else of root's; `user` becomes another user for good. It is run by
path and uses the standard library only, so that it starts where nothing but Python can be read.

    python -I -S launcher.py '{"identity": "namespace", "uid": 1, "gid": 1, ...}' PROGRAM ARGUMENT...
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

REFUSED = 96
"""Exit status when the kernel or the container refuses to change the user."""

_CLONE_NEWUSER = 0x10000000
_PR_SET_KEEPCAPS = 8
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CAP_DAC_OVERRIDE = 1
_CAPABILITY_VERSION_3 = 0x20080522


def main(arguments: Sequence[str]) -> int:
    """Start the program; with a lifeline on standard input stay until it ends or the line does."""
    settings: dict[str, Any] = json.loads(arguments[1])
    command = list(arguments[2:])
    if not settings.get("lifeline"):
        _become(settings)
        os.execv(command[0], command)
    parent = os.getppid()
    child = os.fork()
    if child == 0:
        # The server must not hold the line, nor find its end on standard input.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        _become(settings)
        os.execv(command[0], command)
    code = _watch(child, settings["stop_signal"])
    if os.getppid() != parent and settings.get("socket_folder"):
        # Who made it has died and cannot delete it.
        shutil.rmtree(settings["socket_folder"], ignore_errors=True)
    return code


def _watch(child: int, stop_signal: int) -> int:
    """Wait for the child; it is told to stop once nobody holds the line."""

    def stop(number: int = 0, frame: FrameType | None = None) -> None:
        del number, frame
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, stop_signal)

    def hold() -> None:
        while os.read(0, 64):
            pass
        stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    threading.Thread(target=hold, daemon=True).start()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _become(settings: Mapping[str, Any]) -> None:
    """Change the user; nothing of this comes back."""
    try:
        if settings["identity"] == "namespace":
            _enter_namespace(settings["uid"], settings["gid"])
        elif settings["identity"] == "user":
            _become_user(settings["uid"], settings["gid"], may_enter_all=settings["may_enter_all"])
    except OSError as error:
        print(f"launcher: {settings['identity']}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(REFUSED)


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


def _become_user(uid: int, gid: int, *, may_enter_all: bool) -> None:
    """Become a user, who may keep one right of root's: to pass folders that are closed to others (capabilities(7))."""
    libc = _libc()
    if may_enter_all:
        _check(libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if may_enter_all:
        head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        one = 1 << _CAP_DAC_OVERRIDE
        sets = (ctypes.c_uint32 * 6)(one, one, one, 0, 0, 0)
        _check(libc.capset(head, sets))
        _check(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_OVERRIDE, 0, 0))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
