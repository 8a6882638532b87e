"""Loading a database within this process: rows come from the core as columns, and threads of ours insert them."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from typing import NotRequired, TypedDict

from assay import _core
from assay.base.errors import AssayError, OutOfSpace
from assay.targets.databases import Database
from assay.targets.databases.common.facts import CoreConnection

CHUNKS_TOGETHER = 8
"""Chunks of a transaction: each commit of a column store writes what is left of row groups."""

BATCH_ROWS = 122_880
"""Rows handed over at once: a row group of DuckDB."""

Chunk = tuple[str, int, int]


class CoreError(TypedDict):
    """An error that the core reports."""

    kind: str
    text: str


class LoadReport(TypedDict):
    """How a load stands: bytes, and nanoseconds since it began."""

    state: str
    error: CoreError | None
    rows: int
    bytes: int
    chunks_done: int
    chunks_total: int
    chunks_skipped: int
    elapsed_ns: int
    reconnects: int


class AskedRows(TypedDict):
    """Chunks to load into a database: all of its scale that are not done, or just the chunks named."""

    name: str
    scale: int
    done: NotRequired[list[Chunk]]
    chunks: NotRequired[list[Chunk]]
    connection: NotRequired[CoreConnection]


class InProcessLoad:
    """A load in progress, polled as the core's own is.

    Parameters
    ----------
    asked
        Of each database `scale`, and `done` or just the `chunks` to load.
    threads
        How many insert at once.
    """

    def __init__(self, databases: Sequence[Database], asked: Sequence[AskedRows], threads: int) -> None:
        self._waiting: deque[tuple[Database, int, Chunk]] = deque()
        self._skipped = 0
        for database, one in zip(databases, asked, strict=True):
            done = {(kind, unit, part) for kind, unit, part in one.get("done", ())}
            chunks = one.get("chunks") or _core.chunks_of(database.table_set.rows, one["scale"])
            left = [(kind, unit, part) for kind, unit, part in chunks if (kind, unit, part) not in done]
            self._skipped += len(chunks) - len(left)
            self._waiting.extend((database, one["scale"], chunk) for chunk in left)
        self._total = len(self._waiting) + self._skipped
        self._rows = self._bytes = self._done = 0
        self._error: CoreError | None = None
        self._stopping = False
        self._guard = threading.Lock()
        self._began, self._ended = time.monotonic_ns(), 0
        self._threads = [
            threading.Thread(target=self._work, name=f"assay-load-{number}", daemon=True)
            for number in range(max(min(threads, len(self._waiting)), 1))
        ]
        for thread in self._threads:
            thread.start()

    def poll(self) -> str:
        """How it stands, as JSON."""
        is_over = not any(thread.is_alive() for thread in self._threads)
        with self._guard:
            if is_over and not self._ended:
                self._ended = time.monotonic_ns()
            state = "running"
            if self._error is not None:
                state = "failed" if is_over else "running"
            elif is_over:
                state = "done" if self._done + self._skipped == self._total else "stopped"
            report: LoadReport = {
                "state": state,
                "error": self._error,
                "rows": self._rows,
                "bytes": self._bytes,
                "chunks_done": self._done,
                "chunks_total": self._total,
                "chunks_skipped": self._skipped,
                "elapsed_ns": (self._ended or time.monotonic_ns()) - self._began,
                "reconnects": 0,
            }
            return json.dumps(report)

    def finish(self, within_s: float) -> str:
        """Begin no more chunks, and wait until running ones end."""
        self._stopping = True
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return self.poll()

    def _work(self) -> None:
        while True:
            with self._guard:
                if self._stopping or self._error is not None or not self._waiting:
                    return
                database, scale, first = self._waiting.popleft()
                chunks = [first]
                # The last ones are shared out, so that no thread is left with all of them.
                while len(chunks) < min(CHUNKS_TOGETHER, len(self._waiting) // len(self._threads)):
                    if self._waiting[0][0] is not database:
                        break
                    chunks.append(self._waiting.popleft()[2])
            try:
                rows, moved = _load(database, scale, chunks)
            except AssayError as error:
                with self._guard:
                    kind = "space" if isinstance(error, OutOfSpace) else "other"
                    self._error = self._error or {"kind": kind, "text": str(error)}
                return
            with self._guard:
                self._rows, self._bytes, self._done = self._rows + rows, self._bytes + moved, self._done + len(chunks)


def _load(database: Database, scale: int, chunks: Sequence[Chunk]) -> tuple[int, int]:
    """Insert chunks with their entries in one transaction; gives their rows and bytes."""
    from assay.targets.databases.common.columns import record_batch

    table_set = database.table_set
    total = moved = 0
    # Left before its end, the session takes back what it did.
    with closing(database.new_session()) as session:
        session.execute("BEGIN")
        for chunk in chunks:
            source = _core.ChunkRows(table_set.rows, scale, 0, chunk)
            kind, unit, part = chunk
            rows = 0
            while (found := source.next_batch(BATCH_ROWS)) is not None:
                table, count, columns = found
                batch = record_batch(count, columns)
                session.append(table, batch)  # type: ignore[attr-defined] # of databases in this process
                rows, moved = rows + batch.num_rows, moved + sum(column.nbytes for column in batch.columns)
            entry = f"kind, {table_set.unit}, part, row_count"
            session.execute(f"INSERT INTO assay_chunk ({entry}) VALUES ('{kind}', {unit}, {part}, {rows})")
            total += rows
        session.execute("COMMIT")
    return total, moved
