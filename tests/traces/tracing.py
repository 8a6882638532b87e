"""The kernel's tracing, for tests that need it, and direct I/O that it sees."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assay.base.errors import AssayError
from assay.traces.capture.devices import CapturedDevice, captured_devices
from assay.traces.capture.ftrace import TraceInstance, _instances, open_tracefs

BLOCK_BYTES = 5 * 4096
"""A size that other programs of the host hardly ask for."""
ROOM_BYTES = 2**20


def traced_devices(folder: Path) -> list[CapturedDevice]:
    """The disks beneath a folder; skips the test where they cannot be traced."""
    try:
        devices = captured_devices([folder])
        with TraceInstance(devices):
            return devices
    except AssayError as error:
        pytest.skip(f"needs the kernel's tracing: {error}")


def instances() -> list[str]:
    """Names of Assay's instances on this host."""
    tracefs = open_tracefs()
    try:
        return list(_instances(tracefs))
    finally:
        os.close(tracefs)


@contextmanager
def direct_file(folder: Path) -> Iterator[int]:
    """A file that is written and read around the page cache; skips the test where the file system has no such I/O."""
    try:
        file = os.open(folder / "direct.dat", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    except OSError as error:
        pytest.skip(f"needs direct I/O: {error}")
    try:
        os.posix_fallocate(file, 0, ROOM_BYTES)
        yield file
    finally:
        os.close(file)


def write_blocks(file: int, count: int) -> None:
    with mmap.mmap(-1, BLOCK_BYTES) as block:
        for number in range(count):
            os.pwritev(file, [memoryview(block)], number * BLOCK_BYTES)


def read_blocks(file: int, count: int) -> None:
    with mmap.mmap(-1, BLOCK_BYTES) as block:
        for number in range(count):
            os.preadv(file, [memoryview(block)], number * BLOCK_BYTES)
