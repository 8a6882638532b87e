"""A file system of one file that stops answering reads and writes when a flag file appears.

It speaks the kernel's protocol (linux/fuse.h, version 7.31) on /dev/fuse directly, so that the tests need no package:

    python hanging_fuse.py BACKING MOUNTPOINT FLAG

mounts a folder with the file `f`, whose bytes are those of BACKING, and serves until it is unmounted or killed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
from enum import IntEnum
from pathlib import Path


class Opcode(IntEnum):
    """What the kernel asks."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42


UNANSWERED = (Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT)
"""The kernel expects no reply to these."""

REQUEST = struct.Struct("<IIQQIIIHH")
REPLY = struct.Struct("<IiQ")
MAX_WRITE_BYTES = 128 << 10
ASYNC_DIRECT_IO = 1 << 15
ROOT, FILE = 1, 2

MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(device: int, point: Path) -> None:
    """Mount what is served on an open /dev/fuse; needs root."""
    options = f"fd={device},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()},allow_other"
    if LIBC.mount(b"assay-test", bytes(point), b"fuse", MS_NOSUID | MS_NODEV, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(point))


def unmount_lazily(point: Path) -> None:
    """Take a mount away even if it does not answer."""
    LIBC.umount2(bytes(point), MNT_DETACH)


class Server:
    """Answers requests, one after the other."""

    def __init__(self, device: int, backing: Path, flag: Path) -> None:
        self.device, self.flag = device, flag
        self.file = os.open(backing, os.O_RDWR)
        self.size_bytes = os.fstat(self.file).st_size

    def serve(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                message = os.read(self.device, MAX_WRITE_BYTES + 65536)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                    continue
                return
            _, opcode, unique, node, *_ = REQUEST.unpack_from(message)
            if opcode == Opcode.DESTROY:
                return
            if opcode in UNANSWERED or (opcode in (Opcode.READ, Opcode.WRITE) and self.flag.exists()):
                continue
            self.reply(unique, self.answer(opcode, node, message[REQUEST.size :]))

    def reply(self, unique: int, answer: bytes | int) -> None:
        error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        try:
            os.write(self.device, REPLY.pack(REPLY.size + len(body), error, unique) + body)
        except OSError as failure:
            # The asker may have gone meanwhile.
            if failure.errno != errno.ENOENT:
                raise

    def answer(self, opcode: int, node: int, body: bytes) -> bytes | int:
        """Body of the reply, or an error number."""
        match opcode:
            case Opcode.INIT:
                protocol = struct.pack("<4I", 7, 31, 65536, ASYNC_DIRECT_IO)
                return protocol + struct.pack("<2H2I36x", 64, 48, MAX_WRITE_BYTES, 1)
            case Opcode.LOOKUP:
                found = body.rstrip(b"\0") == b"f"
                return struct.pack("<4Q2I", FILE, 0, 60, 60, 0, 0) + self.attributes(FILE) if found else errno.ENOENT
            case Opcode.GETATTR | Opcode.SETATTR:
                return struct.pack("<Q2I", 60, 0, 0) + self.attributes(node)
            case Opcode.OPEN | Opcode.OPENDIR:
                return struct.pack("<Q2I", 0, 0, 0)
            case Opcode.READ:
                _, offset, length = struct.unpack_from("<2QI", body)
                return os.pread(self.file, length, offset)
            case Opcode.WRITE:
                _, offset, length = struct.unpack_from("<2QI", body)
                return struct.pack("<2I", os.pwrite(self.file, body[40 : 40 + length], offset), 0)
            case Opcode.STATFS:
                blocks = self.size_bytes // 4096
                return struct.pack("<5Q3I28x", 2 * blocks, blocks, blocks, 2, 0, 4096, 255, 4096)
            case Opcode.RELEASE | Opcode.FSYNC | Opcode.FLUSH | Opcode.READDIR | Opcode.RELEASEDIR:
                return b""
            case _:
                return errno.ENOSYS

    def attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o666
        size_bytes = 0 if node == ROOT else self.size_bytes
        return struct.pack("<6Q10I", node, size_bytes, size_bytes // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def main() -> None:
    backing, point, flag = map(Path, sys.argv[1:])
    device = os.open("/dev/fuse", os.O_RDWR)
    mount(device, point)
    Server(device, backing, flag).serve()


if __name__ == "__main__":
    main()
