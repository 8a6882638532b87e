"""Asks a process of its own for what needs the large libraries; its memory goes with its answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from assay.apps.ui.client import WhileThere
from assay.apps.ui.lines import PageQuestion
from assay.apps.ui.other_processes import exit_code, last_line, memory_file

AT_ONCE = 2
"""Processes at a time: more would take the processors from what is measured."""
ANSWER_S = 300.0
CHUNK_BYTES = 2**18
KEPT_BYTES_MAX = 2**21
KEPT_ALL_BYTES_MAX = 2**22
"""An answer is kept up to this size, and so much of all."""
NICE = 5


class NotAnswered(Exception):
    """There is no answer; the text says why."""


class Asking:
    """Answers of other processes, some of them kept."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._kept: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    @contextlib.asynccontextmanager
    async def answered(self, kind: str, asked: PageQuestion, state: str) -> AsyncIterator[int]:
        """The whole answer, as a descriptor of a file in memory.

        Its process has ended, and its place is another's, by the time the answer is there: a client that takes it
        slowly holds nobody up.

        Parameters
        ----------
        kind, asked
            As `assay.apps.ui.answers` takes them.
        state
            State of the files it rests on: a kept answer is given for the same state alone.

        Raises
        ------
        NotAnswered
            There is none.
        """
        key = (kind, json.dumps(asked, sort_keys=True), state)
        with memory_file("answer") as answer:
            if not self._is_kept(key, answer):
                async with self._turns:
                    # The client before may have asked the same.
                    if not self._is_kept(key, answer):
                        await _ask(kind, asked, answer)
                        if os.fstat(answer).st_size <= KEPT_BYTES_MAX:
                            self._keep(key, os.pread(answer, KEPT_BYTES_MAX, 0))
            yield answer

    def _is_kept(self, key: tuple[str, str, str], answer: int) -> bool:
        """Whether the answer is known; it is written to a file then."""
        if key not in self._kept:
            return False
        self._kept.move_to_end(key)
        os.pwrite(answer, self._kept[key], 0)
        return True

    def _keep(self, key: tuple[str, str, str], content: bytes) -> None:
        self._kept[key] = content
        while sum(map(len, self._kept.values())) > KEPT_ALL_BYTES_MAX:
            self._kept.popitem(last=False)


class AnswerStream(WhileThere):
    """An answer of another process, on its way to a client.

    Parameters
    ----------
    asking
        Asks for it.
    kind, asked, state
        As `Asking.answered` takes them.
    headers
        Of the answer; an error has others.
    """

    def __init__(self, asking: Asking, kind: str, asked: PageQuestion, state: str, headers: Mapping[str, str]) -> None:
        super().__init__()
        self._asking, self._kind, self._asked, self._state = asking, kind, asked, state
        self._own_headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Ask, and send all of the answer or why there is none."""
        try:
            async with self._asking.answered(self._kind, self._asked, self._state) as answer:
                size = os.fstat(answer).st_size
                headers = [*self._own_headers, (b"content-length", str(size).encode())]
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                for place in range(0, size, CHUNK_BYTES):
                    piece = os.pread(answer, CHUNK_BYTES, place)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except NotAnswered as error:
            await JSONResponse({"error": str(error)}, status_code=422)(scope, receive, send)


async def _ask(kind: str, asked: PageQuestion, answer: int) -> None:
    """Have a process write its answer, and see it end whatever happens."""
    with memory_file("question") as question, memory_file("words") as words:
        os.pwrite(question, json.dumps(asked).encode(), 0)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "assay.apps.ui.answers", kind,
            stdin=question, stdout=answer, stderr=words, env=_environment(),
        )  # fmt: skip
        try:
            code = await exit_code(process, ANSWER_S)
        except TimeoutError:
            raise NotAnswered(f"no answer came within {ANSWER_S:g} s") from None
        if code != 0 or not os.fstat(answer).st_size:
            raise NotAnswered(last_line(words) or "the process that was asked ended without an answer")


def _environment() -> dict[str, str]:
    """Libraries begin a thread for each processor, which one answer does not need."""
    return {**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ASSAY_NICE": str(NICE)}
