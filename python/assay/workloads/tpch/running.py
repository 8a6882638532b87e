"""Running the queries: streams in threads of their own, the refresh functions beside them, and what each query took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assay.errors import AssayError, Interrupted, OpenFailed
from assay.targets.databases import Database
from assay.targets.databases.connection import Session
from assay.targets.databases.target import DatabaseTarget
from assay.workloads.tpch.parameters import parameters
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.queries import query_text
from assay.workloads.tpch.refresh import Refresh
from assay.workloads.tpch.streams import ordering

LOOK_S = 0.2
"""How often the display, the recorder and an interrupt are looked after."""

CANCEL_S = 15.0
"""How long cancelled queries have to end before their connections are."""

TRIES = 3
"""How often a refresh function is tried when its server goes away."""

POWER_STREAM = 0
"""The stream of the power test, by the specification."""


@dataclass(frozen=True, kw_only=True)
class TestProgress:
    """What the display shows of a test."""

    part: str
    test: str
    done: int
    total: int
    running: Sequence[str]

    @property
    def line(self) -> str:
        """All of it in one line."""
        return f"[{self.part}] {self.test}: {self.done} of {self.total} queries done; now {', '.join(self.running)}"


@dataclass(kw_only=True)
class QueryTest:
    """One test at work: the streams, the refresh functions, and what came of them.

    Attributes
    ----------
    seed
        That of stream 0.
    before_query
        Called before each query of the power test, outside its time.
    """

    target: DatabaseTarget
    plan: TpchPlan
    test: str
    streams: int
    seed: int
    refresh: Refresh
    interrupt: threading.Event
    look: Callable[[TestProgress], None]
    part: str
    before_query: Callable[[Database], None] = lambda _database: None
    queries: list[dict[str, Any]] = field(default_factory=list)
    """What became of each query, in the order of their ends (docs/dss.md)."""
    refreshes: list[dict[str, Any]] = field(default_factory=list)
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
        while running:
            done, running = wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            if self.interrupt.is_set():
                raise Interrupted("interrupted; the test that was running is not kept")
            self._revive()
            with self._guard:
                now = [self._running[stream] for stream in sorted(self._running)]
            self.look(
                TestProgress(part=self.part, test=self.test, done=len(self.queries), total=self._total, running=now)
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
                self.before_query(database)
            self._query(database, stream, number, sql)

    def _query(self, database: Database, stream: int, number: int, sql: str) -> None:
        """Run one query; whatever becomes of it, the stream goes on."""
        try:
            session = self._session(database, stream)
            before = self._counted(database, session)
        except OpenFailed:
            # The server went away between two queries.
            self._leave(stream)
            self._wait()
            session = self._session(database, stream)
            before = self._counted(database, session)
        ended_by, error, rows = "done", None, 0
        timer = None
        timed_out = threading.Event()
        if self.plan.query_timeout_s is not None:
            timer = threading.Timer(self.plan.query_timeout_s, _give_up, (session, timed_out))
            timer.daemon = True
        with self._guard:
            self._running[stream] = f"query {number}" if self.test == "power" else f"{stream}: query {number}"
        started_ns, began = time.time_ns(), time.monotonic()
        try:
            if timer is not None:
                timer.start()
            rows = len(session.query(sql))
        except AssayError as failure:
            ended_by, error = "error", str(failure)
            if timed_out.is_set():
                ended_by, error = "timeout", f"it took longer than {self.plan.query_timeout_s:g} s"
            if self._stopping.is_set():
                return
            self._lost(database, stream, failure)
        finally:
            seconds = time.monotonic() - began
            if timer is not None:
                timer.cancel()
            with self._guard:
                self._running.pop(stream, None)
        found = {
            "database": database.name,
            "stream": stream,
            "query": number,
            "started_utc_ns": started_ns,
            "seconds": seconds,
            "rows": rows if ended_by == "done" else None,
            **self._grown(database, session, before),
            "ended_by": ended_by,
            "error": error,
        }
        with self._guard:
            self.queries.append(found)

    def _counted(self, database: Database, session: Session) -> Mapping[str, float]:
        """What the server counted so far, where a query can be told from others: in the power test alone."""
        return database.scan_counters(session) if self.test == "power" else {}

    def _grown(self, database: Database, session: Session, before: Mapping[str, float]) -> dict[str, float | None]:
        if not before:
            return {"bytes_read": None, "temp_bytes": None}
        try:
            after = database.scan_counters(session)
        except AssayError:
            after = {}
        grown = {name: after.get(name, -1.0) - count for name, count in before.items()}
        return {name: grown[name] if grown.get(name, -1) >= 0 else None for name in ("bytes_read", "temp_bytes")}

    def _session(self, database: Database, stream: int) -> Session:
        with self._guard:
            _, there = self._sessions.get(stream, ("", None))
        if there is None:
            there = database.new_session()
            with self._guard:
                self._sessions[stream] = database.name, there
        return there

    def _lost(self, database: Database, stream: int, failure: AssayError) -> None:
        """Leave a session that failed; where its server went away, wait until it is back."""
        self._leave(stream)
        if isinstance(failure, OpenFailed):
            self._wait()

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
        found = {
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


def _give_up(session: Session, timed_out: threading.Event) -> None:
    timed_out.set()
    session.cancel()
