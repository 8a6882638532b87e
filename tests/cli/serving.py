"""Arrays that are served for a test, and I/O on their volumes."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_command import Bench, Outcome, Started

ARRAY = "ps6100xv?raid=5&volumes=data:1,log:1"
SIZE = "32M"
VOLUME_BYTES = 16 << 20


@dataclass(frozen=True)
class Served:
    """An array that is served in a folder of the bench."""

    bench: Bench
    running: Started
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data01"

    def command(self, *arguments: str) -> Outcome:
        return self.bench.assay("array", *arguments, "--at", self.folder)

    def status(self) -> dict[str, Any]:
        return self.command("status", "--json").document


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


@contextmanager
def serving(bench: Bench, *arguments: str, array: str = ARRAY, size: str = SIZE) -> Iterator[Served]:
    """An array as it is served until the end of the test, when nothing of it may be left."""
    folder = bench.folder / "array"
    was_there = folder.exists()
    options = ("--at", folder, "--size", size, *arguments)
    with bench.started("array", "serve", array, *options, forked=False) as running:
        try:
            running.wait_until(lambda: "served until" in running.stderr)
            yield Served(bench, running, folder)
        finally:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGINT)
                assert running.end().code == 130
    assert str(folder) not in mounts()
    assert not (bench.folder / ".array.assay-array").exists()
    assert folder.exists() is was_there


@contextmanager
def direct(path: Path, flags: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_DIRECT | flags)
    try:
        yield descriptor
    finally:
        # The close of a file whose server was killed fails too.
        with suppress(OSError):
            os.close(descriptor)


def aligned(content: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(content))
    memory.write(content)
    return memory


def read(descriptor: int, count: int, at: int) -> bytes:
    memory = mmap.mmap(-1, count)
    done = os.preadv(descriptor, [memory], at)
    return memory[:done]


def pattern(count: int, seed: int = 1) -> bytes:
    return bytes((at // 512 * 7 + seed) % 251 for at in range(count))
