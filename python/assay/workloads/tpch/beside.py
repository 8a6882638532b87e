"""Streams of queries beside the points of another part."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TypedDict

from assay.base.errors import Interrupted
from assay.base.units import count_of
from assay.record.shapes.point import BesideQueries
from assay.record.steady import geometric_mean_95
from assay.workloads.beside import LoadBeside
from assay.workloads.tpch.job import TpchJob
from assay.workloads.tpch.refresh import Refresh
from assay.workloads.tpch.running import QueryTest
from assay.workloads.tpch.shapes import Query


class Slowdown(TypedDict):
    """How many times as long queries take together as alone."""

    alone: BesideQueries
    together: BesideQueries
    slowdown: float | None
    slowdown_95: list[float] | None


class BesideTpch(LoadBeside):
    """Streams that ask the queries again and again, without refreshing, until they are stopped."""

    def __init__(self, opened: TpchJob) -> None:
        super().__init__()
        self.opened = opened
        # Refreshing would change what the next point starts from.
        self.plan = opened.plan.model_copy(update={"refresh": False})
        self._of_alone: list[Query] = []
        self._passes: list[QueryTest] = []
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def alone(self) -> None:
        """Two passes of all streams: the first one finds cold caches, and does not count."""
        target = self.opened.target
        names = " and ".join(database.name for database in target.databases)
        for what in ("warming up", "alone"):
            self.opened.context.display.phase(f"{self.words} on {names}, {what}")
            one = self._pass(0, self.opened.context.interrupt)
            one.run()
            self._of_alone = one.queries

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._stopping.clear()
        self._error = None
        self._passes = []
        self._thread = threading.Thread(target=self._run, name="assay-beside", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Cancel the queries that run, and wait until the streams have ended."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def check(self) -> None:
        """Raise what ended the streams before they were told to stop."""
        if self._error is not None:
            raise self._error

    def told(self, from_ns: int, to_ns: int) -> dict[str, Any]:
        """Queries that ran from begin to end in a time, beside what they take alone."""
        together = [
            query
            for one in self._passes
            for query in one.queries
            if query["started_utc_ns"] >= from_ns and query["started_utc_ns"] + query["seconds"] * 1e9 <= to_ns
        ]
        return {
            "kind": "tpch",
            "title": self.words,
            "target": [database.spec.recorded for database in self.opened.target.databases],
            "streams": self.opened.streams,
            "scale": self.opened.scale_told / 1000,
            **slowdown(self._of_alone, together),
        }

    def close(self) -> None:
        """Nothing is left open: the target is left when no part uses it any more."""
        self.opened.close()

    @property
    def words(self) -> str:
        """The load in a few words."""
        return f"{count_of(self.opened.streams, 'stream')} of queries"

    def _run(self) -> None:
        number = 1
        try:
            while not self._stopping.is_set():
                one = self._pass(number, self._stopping)
                self._passes.append(one)
                one.run()
                number += 1
        except Interrupted:
            return
        except BaseException as error:
            # In a thread nothing else would tell of it.
            self._error = error

    def _pass(self, number: int, interrupt: threading.Event) -> QueryTest:
        """One pass of all streams, which begin elsewhere in the orderings than those of the pass before."""
        return QueryTest(
            target=self.opened.target,
            plan=self.plan,
            test="throughput",
            streams=self.opened.streams,
            seed=self.plan.seed + number,
            refresh=Refresh(target=self.opened.target, plan=self.plan),
            interrupt=interrupt,
            look=lambda _progress: None,
            part=self.opened.part.name,
        )


def slowdown(alone: Sequence[Query], together: Sequence[Query]) -> Slowdown:
    """How many times as long queries take together as alone.

    Each query's number is compared with itself; the interval is Student's over the logarithms of their ratios.

    Returns
    -------
    dict
        `alone` and `together`, each with `queries` and the mean seconds `mean_s` of the numbers that both have, and
        `slowdown` with `slowdown_95`; None where nothing can be said.

    Examples
    --------
    >>> one = {"query": 1, "seconds": 1.0, "ended_by": "done"}
    >>> other = {"query": 6, "seconds": 2.0, "ended_by": "done"}
    >>> found = slowdown([one, other], [one | {"seconds": 2.0}, other | {"seconds": 4.0}])
    >>> found["slowdown"], found["alone"], found["together"]
    (2.0, {'queries': 2, 'mean_s': 1.5}, {'queries': 2, 'mean_s': 3.0})
    """
    means = [_means(queries) for queries in (alone, together)]
    both = sorted(set(means[0]) & set(means[1]))
    counted: list[BesideQueries] = [
        {
            "queries": sum(query["ended_by"] == "done" for query in queries),
            "mean_s": sum(mean[number] for number in both) / len(both) if both else None,
        }
        for queries, mean in zip((alone, together), means, strict=True)
    ]
    told: Slowdown = {"alone": counted[0], "together": counted[1], "slowdown": None, "slowdown_95": None}
    if not both:
        return told
    ratio, interval = geometric_mean_95([means[1][number] / means[0][number] for number in both])
    # Of two numbers the interval says nothing.
    return told | {"slowdown": ratio, "slowdown_95": list(interval) if interval and len(both) > 2 else None}


def _means(queries: Sequence[Query]) -> dict[int, float]:
    """Mean seconds of each number that was answered."""
    seconds: dict[int, list[float]] = {}
    for query in queries:
        if query["ended_by"] == "done" and query["seconds"] > 0:
            seconds.setdefault(query["query"], []).append(query["seconds"])
    return {number: sum(each) / len(each) for number, each in seconds.items()}
