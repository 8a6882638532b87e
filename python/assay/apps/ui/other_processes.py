"""Processes that the page starts and waits for. Files in memory take what they say, so that no pipe fills."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator

WORDS_BYTES_MAX = 2**16


@contextlib.contextmanager
def memory_file(name: str) -> Iterator[int]:
    """Open a file in memory; its name shows in lists of open files alone."""
    descriptor = os.memfd_create(f"assay-{name}")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def exit_code(process: asyncio.subprocess.Process, within_s: float) -> int:
    """Wait for the end of a process; kill it once its time is over or nobody waits for it.

    Raises
    ------
    TimeoutError
        It did not end within this time.
    """
    try:
        return await asyncio.wait_for(process.wait(), within_s)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def last_line(descriptor: int) -> str:
    """The last line of a file, of its last 64 KiB; empty where it has none."""
    size = os.fstat(descriptor).st_size
    told = os.pread(descriptor, WORDS_BYTES_MAX, max(size - WORDS_BYTES_MAX, 0)).decode(errors="replace")
    lines = told.strip().splitlines()
    return lines[-1] if lines else ""
