"""The recorder: samples its collectors once a second in a thread of its own and keeps rows of the series until drained.

It must never disturb what it watches: it fails into a notice, is bounded in memory, and measures its own cost.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from assay.base.errors import UsageError
from assay.base.progress import HostLoad
from assay.telemetry.columns import Reading, SeriesColumns

_PENDING_READINGS_MAX = 200_000
"""About an hour of 50 readings a second, or 30 MB, if the rows are not drained."""

_HANG_S = 5.0
"""How long `stop` waits for a collector that does not return."""

_SHORTEST_SHARE = 0.05
"""A sample that follows the last one sooner than this share of the interval is left out: counters kept in clock ticks
(4 or 10 ms) say nothing over less, and what happened is in the next interval."""


_COST_TOLD = 3.0
"""Times a collector's share that a look has to cost for it to be told: a page fault or two is no news."""

_LATEST_SOURCES = ("host", "block")
"""Sources whose latest values are shown while a run goes on."""
_DEVICES_MAX = 6


State = TypeVar("State")


class Collector(Protocol[State]):
    """A source of telemetry: how to read its counters, and what two readings of them mean.

    A collector keeps no past: the recorder hands it the two samples at the ends of an interval. Any exception makes the
    recorder go on without it.
    """

    @property
    def name(self) -> str:
        """Name in notices."""
        ...

    @property
    def tier(self) -> str:
        """Tier of its rows: client, application, database or storage."""
        ...

    @property
    def source(self) -> str:
        """Source of its rows, such as host, block, net, postgresql."""
        ...

    def sample(self) -> State:
        """Read the counters and gauges of this moment."""
        ...

    def readings(self, before: State, after: State, interval_ns: int) -> Iterable[Reading]:
        """Values of the interval between two samples; `interval_ns` is above zero."""
        ...

    def close(self) -> None:
        """Release what the collector holds."""
        ...


class _Watched:
    """A collector with its last sample."""

    def __init__(self, collector: Collector[Any]) -> None:
        self.collector = collector
        self.state: Any = None
        self.sampled_ns = 0
        self.away_ns = 0
        self.due_ns = 0
        """When it is looked at again, where a look costs much."""


class _Batch(NamedTuple):
    """Readings of one collector over one interval."""

    t_ns: int
    interval_ns: int
    tier: str
    source: str
    readings: tuple[Reading, ...]


class Recorder:
    """Records telemetry from `start` to `stop`; also a context manager.

    All rows of one sample have the same `t_ns`, the UTC time at which it began; `interval_ns` is the true time since
    the collector's last sample, on the monotonic clock. Samples keep to a fixed schedule: one that comes late has the
    longer interval, those it overslept are left out, the next is on time again.

    Parameters
    ----------
    collectors
        What to record.
    interval_s
        Time between samples in seconds.
    retry_s
        After how long a collector that failed is tried again; None: never, as in a run, which is over soon.
    cost_share
        Share of a processor that one collector may take; one that takes more, as of thousands of devices, is looked at
        less often. None: no bound, as in a run, whose points have edges.

    Raises
    ------
    UsageError
        The interval is not above zero.
    """

    def __init__(
        self, collectors: Sequence[Collector[Any]], *, interval_s: float = 1.0, retry_s: float | None = None,
        cost_share: float | None = None,
    ) -> None:  # fmt: skip
        if not interval_s > 0:
            raise UsageError(f"interval of the recorder: {interval_s} s is not above zero")
        self.notices: list[str] = []
        """What could not be recorded and why, one line each; for the manifest."""
        self._watched = [_Watched(collector) for collector in collectors]
        self._away: list[_Watched] = []
        self._retry_ns = None if retry_s is None else round(retry_s * 10**9)
        self._cost_share = cost_share
        self._interval_ns = round(interval_s * 10**9)
        self._pending: deque[_Batch] = deque()
        self._latest: dict[str, dict[tuple[str, str], float]] = {source: {} for source in _LATEST_SOURCES}
        self._pending_count = 0
        self._cost_ns = 0
        self._cost_since_ns = 0
        self._stopping = threading.Event()
        # One lock orders samples, another guards the rows, so that draining never waits for a collector that hangs.
        self._sampling = threading.Lock()
        self._rows = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="assay-recorder", daemon=True)

    def collectors(self) -> list[Collector[Any]]:
        """Collectors that are recorded at this moment."""
        return [watched.collector for watched in self._watched]

    def start(self) -> None:
        """Take the first sample, from which intervals are counted, and begin recording."""
        self.sample()
        self._thread.start()

    def sample(self) -> None:
        """Take a sample now, between those of the schedule, such as at the edges of a point."""
        began_ns = time.thread_time_ns()
        self._sample_all()
        self._account(time.thread_time_ns() - began_ns)

    @contextmanager
    def also(self, collectors: Sequence[Collector[Any]]) -> Iterator[None]:
        """Record these too while the context lasts, then close them.

        They are sampled at once, so that what cannot be recorded is known before the work begins, which may stop what
        they watch for a while.
        """
        added = [_Watched(collector) for collector in collectors]
        if self._sampling.acquire(timeout=_HANG_S):
            try:
                t_ns = time.time_ns()
                self._watched = [*self._watched, *(watched for watched in added if self._sample_one(watched, t_ns))]
            finally:
                self._sampling.release()
        else:
            self._notice(f"recorder: a collector does not return; {_names(collectors)} not recorded")
        try:
            yield
        finally:
            self._leave_out(added)

    def _leave_out(self, leaving: Sequence[_Watched]) -> None:
        if not self._sampling.acquire(timeout=_HANG_S):
            # One of them may be what hangs; what it holds ends with the process.
            self._notice("recorder: a collector does not return; it was left behind")
            return
        try:
            self._watched = [watched for watched in self._watched if watched not in leaving]
        finally:
            self._sampling.release()
        for watched in leaving:
            watched.collector.close()

    def drain(self, columns: SeriesColumns | None = None) -> None:
        """Add the rows since the last call, by time, to these columns, or forget them."""
        with self._rows:
            batches, self._pending, self._pending_count = self._pending, deque(), 0
        if columns is None:
            return
        for batch in batches:
            columns.add(
                batch.readings,
                t_ns=batch.t_ns,
                interval_ns=batch.interval_ns,
                tier=batch.tier,
                source=batch.source,
            )

    def stop(self) -> None:
        """Take the last sample and end recording; rows can still be drained. Stopping twice is harmless."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_HANG_S)
        if self._thread.is_alive():
            # A collector hangs; its thread is a daemon and ends with the process.
            self._notice("recorder: a collector does not return; the last seconds are not recorded")
            return
        self.sample()
        for watched in (*self._watched, *self._away):
            watched.collector.close()
        self._watched = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        """Sample on schedule; an exception here would be a fault of the recorder, and must not reach the run either."""
        spent_ns = 0
        began_ns = time.monotonic_ns()
        tick = 1
        while not self._stopping.wait(max(0.0, (began_ns + tick * self._interval_ns - time.monotonic_ns()) / 10**9)):
            try:
                self._sample_all()
            except Exception as error:
                self._notice(f"recorder: {_one_line(error)}; nothing is recorded from here on")
                return
            tick = (time.monotonic_ns() - began_ns) // self._interval_ns + 1
            # All time of this thread counts, waking up and accounting included.
            before_ns, spent_ns = spent_ns, time.thread_time_ns()
            self._account(spent_ns - before_ns)

    def _sample_all(self) -> None:
        if not self._sampling.acquire(timeout=self._interval_ns / 10**9):
            return
        try:
            t_ns = time.time_ns()
            if time.monotonic_ns() - self._cost_since_ns < self._interval_ns * _SHORTEST_SHARE:
                return
            failed = [watched for watched in self._watched if not self._sample_one(watched, t_ns)]
            if failed:
                self._watched = [watched for watched in self._watched if watched not in failed]
            self._try_again(failed, t_ns)
            self._record_cost(t_ns)
        finally:
            self._sampling.release()

    def _try_again(self, failed: Sequence[_Watched], t_ns: int) -> None:
        """Put aside what failed, and take back what answers again after a while."""
        if self._retry_ns is None:
            return
        now_ns = time.monotonic_ns()
        for watched in failed:
            watched.state, watched.sampled_ns = None, 0
            watched.away_ns = now_ns
            self._away.append(watched)
        for watched in [one for one in self._away if now_ns - one.away_ns >= self._retry_ns]:
            again = getattr(watched.collector, "again", None)
            if again is not None:
                watched.collector = again()
            if self._sample_one(watched, t_ns):
                self._away.remove(watched)
                self._watched = [*self._watched, watched]
            else:
                watched.away_ns = now_ns

    def _sample_one(self, watched: _Watched, t_ns: int) -> bool:
        """Record one collector's interval; False if it failed and is dropped."""
        collector = watched.collector
        now_ns = time.monotonic_ns()
        if now_ns < watched.due_ns:
            return True
        began_ns = time.thread_time_ns() if self._cost_share is not None else 0
        try:
            state = collector.sample()
            interval_ns = now_ns - watched.sampled_ns
            if watched.sampled_ns and interval_ns > 0:
                readings = tuple(collector.readings(watched.state, state, interval_ns))
                self._keep(_Batch(t_ns, interval_ns, collector.tier, collector.source, readings))
            watched.state, watched.sampled_ns = state, now_ns
            for text in getattr(collector, "missing", ()):
                self._notice(f"recorder: {collector.name}: {text}")
        except Exception as error:
            self._notice(f"recorder: {collector.name} is not recorded: {_one_line(error)}")
            return False
        if self._cost_share is not None:
            self._space_out(watched, now_ns, time.thread_time_ns() - began_ns, self._cost_share)
        return True

    def _space_out(self, watched: _Watched, now_ns: int, cost_ns: int, cost_share: float) -> None:
        """Look less often at what costs much: the values of a longer interval are as true."""
        # Who asks for ten samples a second asks for their cost.
        most_ns = max(self._interval_ns, 10**9) * cost_share
        if cost_ns <= most_ns:
            return
        watched.due_ns = now_ns + round(cost_ns / cost_share) - self._interval_ns // 2
        if cost_ns > _COST_TOLD * most_ns:
            self._notice(
                f"recorder: a look at {watched.collector.name} costs more processor time than its share: it is recorded"
                " less often than the rest"
            )

    def _record_cost(self, t_ns: int) -> None:
        """Record the CPU time this object used since the last sample, over that time."""
        now_ns = time.monotonic_ns()
        interval_ns = now_ns - self._cost_since_ns
        if self._cost_since_ns and interval_ns > 0:
            with self._rows:
                cost_ns, self._cost_ns = self._cost_ns, 0
            reading = Reading("recorder", "cpu_share", "gauge", cost_ns / interval_ns)
            self._keep(_Batch(t_ns, interval_ns, "client", "assay", (reading,)))
        self._cost_since_ns = now_ns

    def _account(self, cost_ns: int) -> None:
        with self._rows:
            self._cost_ns += cost_ns

    def latest(self, source: str) -> dict[tuple[str, str], float]:
        """Latest values of this host (`host`) or its devices (`block`), drained or not, by entity and metric."""
        with self._rows:
            return dict(self._latest[source])

    def host_load(self, name: str) -> HostLoad:
        """What this host and the target's devices do at this moment, as far as it is recorded."""
        host, block = self.latest("host"), self.latest("block")
        parts = [host[key] for key in (("cpu", "user_share"), ("cpu", "system_share")) if key in host]
        busy = [(device, share) for (device, metric), share in block.items() if metric == "busy_share"]
        return HostLoad(
            name=name,
            cpu_share=min(sum(parts), 1.0) if parts else None,
            devices=tuple(sorted(busy, key=lambda one: -one[1])[:_DEVICES_MAX]),
        )

    def _keep(self, batch: _Batch) -> None:
        with self._rows:
            if batch.source in self._latest:
                latest = self._latest[batch.source]
                latest |= {(one.entity, one.metric): one.value for one in batch.readings}
            self._pending.append(batch)
            self._pending_count += len(batch.readings)
            while self._pending_count > _PENDING_READINGS_MAX:
                self._pending_count -= len(self._pending.popleft().readings)
                self._notice("recorder: rows were not drained in time; the oldest are lost")

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


def _names(collectors: Sequence[Collector[Any]]) -> str:
    return f"{', '.join(collector.name for collector in collectors)} {'are' if len(collectors) > 1 else 'is'}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
