"""Asking a program of the system for what a drive says: bounded in time and bytes, and never with a foreign word."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from assay.base.errors import NotAnswering, NotSupported
from assay.base.programs import find_program
from assay.targets.drives.numbers import Document, document_of

ASK_S = 20.0
"""Longest answer: a log page takes a drive milliseconds, the start of a program on a slow host seconds, a controller
that is being reset minutes."""
OUTPUT_BYTES_MAX = 1 << 20


class Asked(NamedTuple):
    """What a program printed, as an object of JSON where it is one, and how it ended."""

    told: Document | None
    code: int


def ask(program: str, words: Sequence[str], *, within_s: float = ASK_S) -> Asked:
    """Run a program and take what it prints.

    Parameters
    ----------
    words
        Its options, and the path of a device by the kernel's own name.

    Raises
    ------
    NotSupported
        It is missing, cannot be started, or prints too much.
    NotAnswering
        It has not ended in time. It is killed, and not waited for: the kernel may hold it.
    """
    path = find_program(program)
    if path is None:
        raise NotSupported(f"{program} is missing")
    ends_s = time.monotonic() + within_s
    try:
        process = subprocess.Popen(
            [path, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise NotSupported(f"{program} cannot be started: {error.strerror}") from None
    assert process.stdout is not None
    with process.stdout as output:
        try:
            text = _read(output.fileno(), ends_s)
            if text is None:
                raise NotSupported(f"{program} prints more than {OUTPUT_BYTES_MAX:,} bytes")
            code = process.wait(max(ends_s - time.monotonic(), 0.1))
        except (TimeoutError, subprocess.TimeoutExpired):
            raise NotAnswering(f"{program} has not answered within {within_s:g} s") from None
        finally:
            if process.poll() is None:
                _end(process)
    return Asked(document_of(text), code)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started; a thread waits for one that the kernel holds."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, name="assay-ask-drive", daemon=True).start()


def _read(descriptor: int, ends_s: float) -> bytes | None:
    """All that is printed until the end of the stream; None where it is too much."""
    watch, chunks, size = select.poll(), list[bytes](), 0
    watch.register(descriptor, select.POLLIN | select.POLLHUP)
    while size <= OUTPUT_BYTES_MAX:
        left_ms = (ends_s - time.monotonic()) * 1000
        if left_ms <= 0 or not watch.poll(left_ms):
            raise TimeoutError
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    return None
