"""Asks a process of its own for what needs the large libraries; its memory goes with its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

AT_ONCE = 2
"""Processes at a time: more would take the processors from what is measured."""
ANSWER_S = 300.0
CHUNK_BYTES = 2**16
KEPT_BYTES_MAX = 2**19
KEPT_ALL_BYTES_MAX = 2**22
"""An answer is kept up to this size, and so much of all."""
NICE = 5


class NotAnswered(Exception):
    """There is no answer; the text says why."""


class Asking:
    """Answers of other processes, some of them kept."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._kept: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()

    async def answer(self, kind: str, asked: dict[str, Any], state: object) -> AsyncIterator[bytes]:
        """The answer in pieces, the first of which is there when this returns.

        Parameters
        ----------
        kind, asked
            As `assay.serve.answers` takes them.
        state
            State of the files it rests on: a kept answer is given for the same state alone.

        Raises
        ------
        NotAnswered
            There is none.
        """
        key = (kind, json.dumps(asked, sort_keys=True), state)
        if key in self._kept:
            self._kept.move_to_end(key)
            return _pieces_of(self._kept[key])
        await self._turns.acquire()
        try:
            process = await _begun(kind, asked)
            first = await _first_of(process)
        except BaseException:
            self._turns.release()
            raise
        return self._following(key, process, first)

    async def _following(
        self, key: tuple[Any, ...], process: asyncio.subprocess.Process, first: bytes
    ) -> AsyncIterator[bytes]:
        assert process.stdout is not None
        held = bytearray()
        is_small = True
        try:
            piece = first
            while piece:
                is_small = is_small and len(held) + len(piece) <= KEPT_BYTES_MAX
                if is_small:
                    held += piece
                yield piece
                piece = await process.stdout.read(CHUNK_BYTES)
            if is_small and await process.wait() == 0:
                self._keep(key, bytes(held))
        finally:
            _end(process)
            await process.wait()
            self._turns.release()

    def _keep(self, key: tuple[Any, ...], content: bytes) -> None:
        self._kept[key] = content
        while sum(map(len, self._kept.values())) > KEPT_ALL_BYTES_MAX:
            self._kept.popitem(last=False)


async def _pieces_of(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _begun(kind: str, asked: dict[str, Any]) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "assay.serve.answers", kind,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=_environment(),
    )  # fmt: skip
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(json.dumps(asked).encode())
        process.stdin.write_eof()
    return process


def _environment() -> dict[str, str]:
    """Libraries begin a thread for each processor, which one answer does not need."""
    return {**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ASSAY_NICE": str(NICE)}


async def _first_of(process: asyncio.subprocess.Process) -> bytes:
    """The first piece; nothing is answered before all of it is known, so that errors come in its place."""
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        first = await asyncio.wait_for(process.stdout.read(CHUNK_BYTES), ANSWER_S)
    except BaseException as error:
        _end(process)
        await process.wait()
        if isinstance(error, TimeoutError):
            raise NotAnswered(f"no answer came within {ANSWER_S:g} s") from None
        raise
    if first:
        return first
    why = (await process.stderr.read(4000)).decode(errors="replace").strip().splitlines()
    await process.wait()
    raise NotAnswered(why[-1] if why else "the process that was asked ended without an answer")


def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
