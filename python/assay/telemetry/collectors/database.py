"""What the collectors of database servers share: asking in a thread of their own, and what two answers mean.

A server that hangs or is away must not hold up what else is recorded. A thread asks it; a sample takes the newest
answer, which carries the time it was given, and waits for it a short while only.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from assay.base.errors import NotSupported
from assay.telemetry.columns import Reading

Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]

TEXT_LENGTH = 2000
"""Characters of a statement that are kept."""

SECRET_WORDS = "password|identified"
"""Statements with these words may hold a password, and are left out."""

FIRST_ANSWER_S = 5.0
"""How long the first sample waits, connecting included."""

ANSWER_S = 0.5
"""How long any other sample waits for its answer; a later answer serves the next sample."""

FILES_MAX = 50
"""Most files of a server whose writes are recorded: the files that were written most."""

Key = tuple[str, str]
"""Entity and metric."""


class ObserverSession(Protocol):
    """A connection of the observer's own."""

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query, committed at once."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


@dataclass(frozen=True)
class Counters:
    """What a server answered.

    Attributes
    ----------
    counts : dict
        Counters that only grow while the server runs, by entity and metric.
    gauges : dict
        Values of the moment, by entity and metric.
    identity : object
        What differs after a restart, such as the server's start time; None if nothing tells.
    t_ns : int
        When it answered, on the monotonic clock.
    latency_ns, cpu_ns : int
        How long the answer took, and how much CPU of the asking thread.
    """

    counts: Mapping[Key, float]
    gauges: Mapping[Key, float] = field(default_factory=dict)
    identity: object = None
    t_ns: int = 0
    latency_ns: int = 0
    cpu_ns: int = 0


EVENTS = {"checkpoints_count", "deadlocks_count"}
"""Counters of rare events: an interval that two answers share must not count half a checkpoint."""

MEANS = {
    "read_latency_mean_ns": ("read_time_ns", "timed_reads_count"),
    "write_latency_mean_ns": ("write_time_ns", "timed_writes_count"),
    "log_flush_latency_mean_ns": ("log_flush_time_ns", "log_flushes_count"),
    "log_write_latency_mean_ns": ("log_write_time_ns", "log_writes_count"),
    "row_lock_latency_mean_ns": ("row_lock_time_ns", "row_lock_waits_count"),
}
"""Gauges that follow from the growth of two counters: time over count."""


class DatabaseCollector(ABC):
    """Counters of one server and of its databases under load; base of the collectors of each kind.

    Parameters
    ----------
    connect
        Opens a connection; called again after each loss of the connection.
    databases
        Name of each database under load in results, by its name on the server. Figures of the whole server stand
        under the first of these names.
    """

    tier = "database"
    source = ""

    def __init__(self, connect: Callable[[], ObserverSession], databases: Mapping[str, str]) -> None:
        self.name = f"{self.source} {next(iter(databases.values()))}"
        self.databases = dict(databases)
        self._connect = connect
        self._session: ObserverSession | None = None
        self._last: Counters | None = None
        self._failure: Exception | None = None
        self._has_answered = False
        self._asked, self._answered = threading.Event(), threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.missing: Sequence[str] = ()
        """What the user of the connection may not see, and what grants it; known after the first answer."""

    @property
    def away(self) -> str:
        """Why the server does not answer, after it once has; empty while it does."""
        return " ".join(str(self._failure).split()) if self._failure is not None and self._has_answered else ""

    def again(self) -> Self:
        """A collector of the same server that begins anew."""
        return type(self)(self._connect, self.databases)

    @property
    def server(self) -> str:
        """Entity of figures of the whole server."""
        return next(iter(self.databases.values()))

    @abstractmethod
    def read(self, session: ObserverSession) -> Counters:
        """Ask the server; whatever is raised closes the connection."""

    def sample(self) -> Counters | None:
        """Newest answer of the server; None while it is away.

        Raises
        ------
        NotSupported
            The server has never answered, and says why.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask, name=f"assay-{self.source}", daemon=True)
            self._thread.start()
        self._answered.clear()
        self._asked.set()
        self._answered.wait(ANSWER_S if self._has_answered else FIRST_ANSWER_S)
        if self._failure is not None and not self._has_answered:
            self.close()  # the recorder goes on without it
            raise NotSupported(f"its counters cannot be read: {self._failure}")
        return self._last

    def readings(self, before: Counters | None, after: Counters | None, interval_ns: int) -> Iterator[Reading]:
        """Values between two answers; none over a restart, a reset of the counters, or without a new answer.

        Deltas are brought from the time between the answers to the interval, so that rates are right when an answer
        came late.
        """
        if before is None or after is None or after.t_ns <= before.t_ns or before.identity != after.identity:
            return
        grown = {key: count - before.counts[key] for key, count in after.counts.items() if key in before.counts}
        if any(growth < 0 for growth in grown.values()):
            return
        elapsed_ns = after.t_ns - before.t_ns
        for (entity, metric), growth in grown.items():
            scale = 1 if metric in EVENTS else interval_ns / elapsed_ns
            yield Reading(entity, metric, "delta", growth * scale)
        for metric, (times, counts) in MEANS.items():
            for entity in dict.fromkeys(entity for entity, name in grown if name == counts):
                count, spent_ns = grown[entity, counts], grown.get((entity, times), 0.0)
                # A server that does not time its I/O shows a time of zero, which is no latency.
                if count > 0 and spent_ns > 0:
                    yield Reading(entity, metric, "gauge", spent_ns / count)
        for (entity, metric), value in after.gauges.items():
            yield Reading(entity, metric, "gauge", value)
        yield Reading(self.server, "observing_latency_ns", "gauge", after.latency_ns)
        yield Reading(self.server, "observing_cpu_share", "gauge", after.cpu_ns / elapsed_ns)

    def close(self) -> None:
        """End the thread, which closes the connection; one that hangs in the server is left behind."""
        self._stopping = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join(ANSWER_S)

    def _ask(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._stopping:
                break
            try:
                self._last, self._failure = self._timed(), None
                self._has_answered = True
            except Exception as error:
                # The server is away, or restarts: the next sample connects again.
                self._failure, self._last = error, None
                self._close_session()
            self._answered.set()
        self._close_session()

    def _timed(self) -> Counters:
        began_ns, began_cpu_ns = time.monotonic_ns(), time.thread_time_ns()
        if self._session is None:
            self._session = self._connect()
        found = self.read(self._session)
        now_ns = time.monotonic_ns()
        return Counters(
            found.counts,
            found.gauges,
            found.identity,
            t_ns=now_ns,
            latency_ns=now_ns - began_ns,
            cpu_ns=time.thread_time_ns() - began_cpu_ns,
        )

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except Exception:
                # Drivers raise when they say goodbye to a server that is gone.
                return
