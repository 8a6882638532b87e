"""A program of its own that stands for fusermount3 where root serves an array: root may mount FUSE itself.

The extension starts it as it starts fusermount3 (util/fusermount.c of libfuse): options and folder are arguments, the
number of a socket is in `_FUSE_COMMFD`. It mounts, sends the open /dev/fuse over the socket, and takes the mount away
once the socket closes, however the server ends. It is run by path and uses the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import socket
import stat
import sys
from collections.abc import Iterator, Sequence

VARIABLE = "FUSERMOUNT_PATH"
"""Names the program that the extension starts in place of fusermount3."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MNT_DETACH = 2, 4, 8, 2
_OF_KERNEL = ("allow_other", "default_permissions")
"""Options that the file system takes (Documentation/filesystems/fuse of the kernel)."""


@contextlib.contextmanager
def in_place_of_fusermount() -> Iterator[None]:
    """Let the extension start this program while the context lasts."""
    text = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(os.path.abspath(__file__))} "$@"\n'
    # A file without a name: no folder must let programs run for it.
    script = os.memfd_create("assay-fuse-mounter", os.MFD_CLOEXEC)
    try:
        os.write(script, text.encode())
        os.environ[VARIABLE] = f"/proc/{os.getpid()}/fd/{script}"
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.close(script)


def main(arguments: Sequence[str]) -> int:
    """Mount, hand the descriptor over, and unmount when the server has ended."""
    options = dict(option.partition("=")[::2] for option in arguments[arguments.index("-o") + 1].split(","))
    folder = arguments[-1]
    # Ctrl-C is for the server, which ends in order.
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    libc = ctypes.CDLL(None, use_errno=True)
    with socket.socket(fileno=int(os.environ["_FUSE_COMMFD"])) as server:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        kind = stat.S_IFMT(os.stat(folder).st_mode)
        data = [f"fd={device},rootmode={kind:o},user_id={os.geteuid()},group_id={os.getegid()}"]
        data += [option for option in _OF_KERNEL if option in options]
        mounted = libc.mount(
            os.fsencode(options["fsname"]), os.fsencode(folder), f"fuse.{options['subtype']}".encode(),
            ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC), ",".join(data).encode(),
        )  # fmt: skip
        if mounted != 0:
            print(f"{folder}: {os.strerror(ctypes.get_errno())}", file=sys.stderr, flush=True)
            return 1
        socket.send_fds(server, [b"\0"], [device])
        os.close(device)
        root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        server.recv(1)
        # By its root, whatever lies at the path by now; it is gone already where the server ended in order.
        libc.umount2(f"/proc/self/fd/{root}".encode(), _MNT_DETACH)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
