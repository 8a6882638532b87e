"""Running the queries: streams in threads of their own, the refresh functions beside them, and what each query took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from assay.base.errors import AssayError, Interrupted, OpenFailed
from assay.base.progress import Gauge, Moment
from assay.targets.databases import Database
from assay.targets.databases.common.connection import Session
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.tpch.parameters import parameters
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.queries import query_text
from assay.workloads.tpch.refresh import Refresh
from assay.workloads.tpch.shapes import Query, RefreshDone
from assay.workloads.tpch.streams import ordering

LOOK_S = 0.2
"""How often the display, the recorder and an interrupt are looked after."""

CANCEL_S = 15.0
"""How long cancelled queries have to end before their connections are."""

TRIES = 3
"""How often a refresh function or a session is tried when the server goes away."""

_COUNTED = ("bytes_read", "temp_bytes", "temp_files")
"""What servers count of a query, as far as they do."""

POWER_STREAM = 0
"""The stream of the power test, by the specification."""


class Deadline:
    """Cancels what a session runs once its time is over, and never what it runs after that.

    Attributes
    ----------
    seconds
        How long it took.
    cancelled
        Whether it was cancelled; the session is to be left then, because some servers cancel late.
    """

    def __init__(self, session: Session, timeout_s: float | None) -> None:
        self._session, self._timeout_s = session, timeout_s
        self._guard = threading.Lock()
        self._is_over = False
        self._timer: threading.Timer | None = None
        self.seconds = 0.0
        self.cancelled = False

    @property
    def missed(self) -> bool:
        """Whether it took longer than it had, even where it ended before it could be cancelled."""
        return self.cancelled or (self._timeout_s is not None and self.seconds > self._timeout_s)

    def __enter__(self) -> Self:
        if self._timeout_s is not None:
            self._timer = threading.Timer(self._timeout_s, self._cancel)
            self._timer.daemon = True
            self._timer.start()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._began
        if self._timer is not None:
            self._timer.cancel()
            with self._guard:
                self._is_over = True

    def _cancel(self) -> None:
        with self._guard:
            if not self._is_over:
                self.cancelled = True
                self._session.cancel()


@dataclass(kw_only=True)
class QueryTest:
    """One test at work: the streams, the refresh functions, and what came of them.

    Attributes
    ----------
    seed
        That of stream 0.
    before_query
        Called before each query of the power test, outside its time.
    memory_bytes
        Memory of the queries of each session; None: as the server has it.
    """

    target: DatabaseTarget
    plan: TpchPlan
    test: str
    streams: int
    seed: int
    refresh: Refresh
    interrupt: threading.Event
    look: Callable[[Moment], None]
    part: str
    before_query: Callable[[Database], None] = lambda _database: None
    memory_bytes: int | None = None
    queries: list[Query] = field(default_factory=list)
    """What became of each query, in the order of their ends (docs/dss.md)."""
    refreshes: list[RefreshDone] = field(default_factory=list)
    seconds: float = 0.0
    """From the first submission to the last end."""
    _began: float = 0.0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _sessions: dict[int, tuple[str, Session]] = field(default_factory=dict)
    """Of each stream its database and session."""
    _reviving: threading.Lock = field(default_factory=threading.Lock)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _running: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Run the test to its end.

        Raises
        ------
        Interrupted
            Ctrl-C; what ran was cancelled.
        AssayError
            A server went away and did not come back, or a refresh function failed.
        """
        self._began = time.monotonic()
        work: list[Callable[[], None]] = (
            [self._power]
            if self.test == "power"
            else [*(partial(self._stream, stream) for stream in range(1, self.streams + 1)), self._refresh_stream]
        )
        with ThreadPoolExecutor(len(work), thread_name_prefix="assay-stream") as workers:
            running = {workers.submit(one) for one in work}
            try:
                self._follow(running)
            except BaseException:
                self.cancel()
                raise
            finally:
                if wait(running, timeout=CANCEL_S).not_done:
                    self._abort(self.target.databases)
                    wait(running)
                self._close()
        self.seconds = time.monotonic() - self._began

    def cancel(self) -> None:
        """End what runs."""
        self._stopping.set()
        with self._guard:
            sessions = list(self._sessions.values())
        for _, session in sessions:
            session.cancel()

    @property
    def _total(self) -> int:
        return len(self.plan.queries) * (1 if self.test == "power" else self.streams)

    def _follow(self, running: set[Future[None]]) -> None:
        began_s, done_before = time.monotonic(), len(self.queries)
        while running:
            done, running = wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            if self.interrupt.is_set():
                raise Interrupted("interrupted; the test that was running is not kept")
            self._revive()
            with self._guard:
                now = [self._running[stream] for stream in sorted(self._running)]
            ended, seconds = len(self.queries), time.monotonic() - began_s
            self.look(
                Moment(
                    part=self.part,
                    what=f"{ended} of {self._total} queries done",
                    phase=self.test,
                    done_share=ended / self._total if self._total else None,
                    gauges=(
                        Gauge(
                            name="queries_per_h",
                            title="queries",
                            value=(ended - done_before) / seconds * 3600 if seconds > 0 else None,
                            unit="/h",
                        ),
                    ),
                    waiting=f"now {', '.join(now)}",
                )
            )

    # Streams

    def _power(self) -> None:
        """The first refresh function, all queries, the second: each by itself."""
        database = self.target.databases[0]
        if self.plan.refresh:
            self._refresh(database, POWER_STREAM, "rf1")
        self._stream(POWER_STREAM, database)
        if self.plan.refresh:
            self._refresh(database, POWER_STREAM, "rf2")

    def _stream(self, stream: int, database: Database | None = None) -> None:
        databases = self.target.databases
        database = database or databases[(stream - 1) % len(databases)]
        scale = self.target.scale[database.name] * SCALE_STEP
        wanted = {*self.plan.queries}
        for number in ordering(stream):
            if number not in wanted:
                continue
            if self._stopping.is_set():
                return
            asked = parameters(number, seed=self.seed + stream, scale=scale)
            sql = query_text(number, asked, database.dialect, stream=stream)
            if self.plan.cache == "cold" and self.test == "power":
                self._leave(stream)
                # The server may start anew for it: it has not ended, and need not be revived meanwhile.
                with self._reviving:
                    self.before_query(database)
            self._query(database, stream, number, sql)

    def _query(self, database: Database, stream: int, number: int, sql: str) -> None:
        """Run one query; whatever becomes of it, the stream goes on."""
        session, before = self._ready(database, stream)
        rows: int | None = None
        failure: AssayError | None = None
        deadline = Deadline(session, self.plan.query_timeout_s)
        with self._guard:
            self._running[stream] = f"query {number}" if self.test == "power" else f"{stream}: query {number}"
        started_ns = time.time_ns()
        try:
            if self.memory_bytes is not None and database.query_memory is not None:
                session.execute(database.query_memory.limit(self.memory_bytes))
            with deadline:
                rows = len(session.query(sql))
        except AssayError as caught:
            failure = caught
        finally:
            with self._guard:
                self._running.pop(stream, None)
        if failure is not None and self._stopping.is_set():
            return
        ended_by, error = "done", None
        if deadline.missed:
            ended_by, error, rows = "timeout", f"it took longer than {self.plan.query_timeout_s:g} s", None
        elif failure is not None:
            ended_by, error = "error", str(failure)
        grown = self._grown(database, session, before, is_lost=isinstance(failure, OpenFailed))
        if failure is not None or deadline.cancelled:
            self._leave(stream)
        if isinstance(failure, OpenFailed):
            self._wait()
        found: Query = {
            "database": database.name,
            "stream": stream,
            "query": number,
            "started_utc_ns": started_ns,
            "seconds": deadline.seconds,
            "rows": rows,
            "bytes_read": grown["bytes_read"],
            "temp_bytes": grown["temp_bytes"],
            "temp_files": grown["temp_files"],
            "ended_by": ended_by,
            "error": error,
        }
        with self._guard:
            self.queries.append(found)

    def _ready(self, database: Database, stream: int) -> tuple[Session, Mapping[str, float]]:
        """The stream's session, and what the server counted so far, however often it goes away before the query."""
        left = TRIES
        while True:
            try:
                session = self._session(database, stream)
                return session, self._counted(database, session)
            except OpenFailed:
                left -= 1
                self._leave(stream)
                if not left or self._stopping.is_set():
                    raise
                self._wait()

    def _counted(self, database: Database, session: Session) -> Mapping[str, float]:
        """What the server counted so far, where a query can be told from others: in the power test alone."""
        return database.scan_counters(session) if self.test == "power" else {}

    def _grown(
        self, database: Database, session: Session, before: Mapping[str, float], *, is_lost: bool
    ) -> dict[str, float | None]:
        """What a query read and spilled, as far as the server tells."""
        after: Mapping[str, float] = {}
        if before and not is_lost:
            with suppress(AssayError):
                after = database.scan_counters(session)
        grown = {name: after.get(name, -1.0) - before.get(name, 0.0) for name in _COUNTED}
        return {name: count if count >= 0 else None for name, count in grown.items()}

    def _session(self, database: Database, stream: int) -> Session:
        with self._guard:
            _, there = self._sessions.get(stream, ("", None))
        if there is None:
            there = database.new_session()
            with self._guard:
                self._sessions[stream] = database.name, there
        return there

    def _wait(self) -> None:
        """Wait until all servers answer again."""
        with self._reviving:
            self.target.wait(self.plan.reconnect_s, self._stopping)

    def _revive(self) -> None:
        """Start servers of Assay's own that ended; what still waits for the old ones learns that nothing comes."""
        if self._reviving.acquire(blocking=False):
            try:
                revived = [database for database in self.target.databases if database.revive()]
            finally:
                self._reviving.release()
            self._abort(revived)

    def _abort(self, databases: Sequence[Database]) -> None:
        names = {database.name for database in databases}
        with self._guard:
            sessions = [session for name, session in self._sessions.values() if name in names]
        for session in sessions:
            session.abort()

    def _leave(self, stream: int) -> None:
        with self._guard:
            _, session = self._sessions.pop(stream, ("", None))
        if session is not None:
            session.close()

    def _close(self) -> None:
        for _, session in self._sessions.values():
            session.close()
        self._sessions.clear()

    # Refresh functions

    def _refresh_stream(self) -> None:
        """As many pairs of refresh functions as there are streams, one after the other."""
        if not self.plan.refresh:
            return
        databases = self.target.databases
        for stream in range(1, self.streams + 1):
            for function in ("rf1", "rf2"):
                if self._stopping.is_set():
                    return
                self._refresh(databases[(stream - 1) % len(databases)], stream, function)

    def _refresh(self, database: Database, stream: int, function: str) -> None:
        started_ns, began = time.time_ns(), time.monotonic()
        for left in reversed(range(TRIES)):
            try:
                number, rows = self.refresh.run(database, function)
                break
            except OpenFailed:
                # What a set had done is taken back, and it is not counted.
                if not left or self._stopping.is_set():
                    raise
                self._wait()
        found: RefreshDone = {
            "database": database.name,
            "stream": stream,
            "function": function,
            "set": number,
            "started_utc_ns": started_ns,
            "seconds": time.monotonic() - began,
            "rows": rows,
        }
        with self._guard:
            self.refreshes.append(found)
