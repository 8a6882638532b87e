"""A drive of `tests/cut_drive.py`, served to QEMU as NBD: `cut_disk.py SOCKET MEDIUM LOG DRIVE SEED [LEAST MOST]`.

It ends at once where it is told to (SIGTERM), or by itself some moments after as many requests as the seed says. With
it goes the drive's cache: the power is cut. One thread does everything, so that no write of the medium is cut in two by
that.
"""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from cut_drive import DRIVES, CutDrive

OPTION = struct.Struct(">QII")
OPTION_MAGIC, REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
EXPORT_NAME, ABORT, GO = 1, 2, 7
ACKNOWLEDGED, INFO, UNSUPPORTED = 1, 3, (1 << 31) + 1
EXPORT, BLOCK_SIZES = 0, 3
FIXED, NO_ZEROES = 1, 2
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
REQUEST = struct.Struct(">IHHQQI")
REQUEST_MAGIC, SIMPLE_MAGIC = 0x25609513, 0x67446698
READ, WRITE, CLOSE, FLUSH = 0, 1, 2, 3
FUA = 1
INVALID = 22
MOST_BYTES = 1 << 20

IDLE_SHARE = 0.15
"""How often a drive that is asked something brings a line to the medium that it need not."""

MOMENTS_MAX = 60
"""Actions between the last request that counts and the cut: it comes in the midst of a flush, or of writes."""


class Server:
    """Serves one client after the other.

    Parameters
    ----------
    requests
        After so many writes and flushes the power is cut; None: never.
    """

    def __init__(self, drive: CutDrive, seed: int, requests: int | None) -> None:
        self._drive = drive
        self._random = random.Random(f"server {seed}")
        self._requests = requests
        self._moments = self._random.randrange(MOMENTS_MAX)

    def serve(self, listener: socket.socket) -> None:
        """Serve until the power is cut."""
        while True:
            client, _ = listener.accept()
            with client:
                try:
                    if self._agree(client):
                        self._transmit(client)
                except ConnectionError:
                    continue

    @property
    def _export(self) -> bytes:
        """Size and flags. A drive without a cache has nothing to flush."""
        flags = HAS_FLAGS | (SEND_FLUSH | SEND_FUA if self._drive.kind.has_cache else 0)
        return struct.pack(">QH", self._drive.size_bytes, flags)

    def _agree(self, client: socket.socket) -> bool:
        """Agree on what is served; false where the client wants nothing."""
        client.sendall(b"NBDMAGIC" + struct.pack(">QH", OPTION_MAGIC, FIXED | NO_ZEROES))
        (flags,) = struct.unpack(">I", _exactly(client, 4))
        while True:
            _, option, length = OPTION.unpack(_exactly(client, OPTION.size))
            _exactly(client, length)
            answer = partial(_answer, client, option)
            if option == EXPORT_NAME:
                client.sendall(self._export + (b"" if flags & NO_ZEROES else bytes(124)))
                return True
            if option == GO:
                answer(INFO, struct.pack(">H", EXPORT) + self._export)
                answer(INFO, struct.pack(">HIII", BLOCK_SIZES, 512, 4096, MOST_BYTES))
                answer(ACKNOWLEDGED)
                return True
            answer(ACKNOWLEDGED if option == ABORT else UNSUPPORTED)
            if option == ABORT:
                return False

    def _transmit(self, client: socket.socket) -> None:
        """Take requests as they come, and do what the drive has to do in between."""
        while True:
            self._act()
            waits = None if not self._drive.is_busy else 0
            if select.select([client], [], [], waits)[0]:
                if not self._take(client):
                    return
                if self._random.random() < IDLE_SHARE:
                    self._drive.idle()
            if self._random.random() < 0.7:
                self._drive.step()

    def _act(self) -> None:
        if self._requests is not None and self._requests <= 0:
            self._moments -= 1
            if self._moments < 0:
                cut()

    def _take(self, client: socket.socket) -> bool:
        """Take a request; false if it is the last one."""
        magic, flags, kind, handle, offset, length = REQUEST.unpack(_exactly(client, REQUEST.size))
        if magic != REQUEST_MAGIC or kind == CLOSE:
            return False
        if self._requests is not None and kind in (WRITE, FLUSH):
            self._requests -= 1
        done: Callable[..., None] = partial(_done, client, handle)
        data = _exactly(client, length) if kind == WRITE else b""
        if kind == READ:
            done(self._drive.read(offset, length))
        elif kind == WRITE:
            self._drive.write(offset, data, done, fua=bool(flags & FUA))
        elif kind == FLUSH:
            self._drive.flush(done)
        else:
            client.sendall(struct.pack(">IIQ", SIMPLE_MAGIC, INVALID, handle))
        return True


def _answer(client: socket.socket, option: int, kind: int, data: bytes = b"") -> None:
    client.sendall(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data)


def _done(client: socket.socket, handle: int, data: bytes = b"") -> None:
    client.sendall(struct.pack(">IIQ", SIMPLE_MAGIC, 0, handle) + data)


def _exactly(client: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = client.recv(count - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return bytes(found)


def cut(*_: object) -> None:
    """Cut the power."""
    os._exit(0)


def main(place: str, medium: str, log: str, kind: str, seed: str, *requests: str) -> None:
    """Serve a drive."""
    signal.signal(signal.SIGTERM, cut)
    drive = CutDrive(DRIVES[kind], Path(medium), Path(log), int(seed))
    cut_after = random.Random(f"cut {seed}").randint(*map(int, requests)) if requests else None
    with socket.socket(socket.AF_UNIX) as listener:
        # Who finds the socket may connect to it.
        listener.bind(f"{place}.new")
        listener.listen()
        os.rename(f"{place}.new", place)
        Server(drive, int(seed), cut_after).serve(listener)


if __name__ == "__main__":
    main(*sys.argv[1:])
