"""One test being measured: its queries, what the servers and the storage did meanwhile, and its figures."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, cast

from assay.base.errors import AssayError
from assay.base.progress import Moment
from assay.measure.follower import Follower
from assay.measure.point import measured_point
from assay.measure.window import Window
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.telemetry.collectors import ServerActivity, activity, hottest
from assay.telemetry.summary import summarise
from assay.workloads.databases.shapes import Storage
from assay.workloads.databases.storage import roles_of, storage, volumes_of
from assay.workloads.job import PartContext
from assay.workloads.tpch.cold import drop_caches
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.plans import plans_of
from assay.workloads.tpch.refresh import Refresh
from assay.workloads.tpch.running import QueryTest
from assay.workloads.tpch.scores import RESOLUTION_S, power_score, throughput_score
from assay.workloads.tpch.shapes import Dss, PlanText, Query, QueryIo, ReadTable, ScoresOfTests

SEEN_MIN_S = 1.0
"""Devices are looked at once a second: what they did in less cannot be told from what ran before and after."""


class TestMeasurement:
    """One test: threads run queries, this follows them and takes the figures.

    Attributes
    ----------
    error
        What ended the test before its time.
    """

    def __init__(
        self,
        target: DatabaseTarget,
        plan: TpchPlan,
        *,
        test: str,
        streams: int,
        seed: int,
        part: str,
        context: PartContext,
        memory_bytes: int | None = None,
    ) -> None:
        self.target, self.plan, self.test, self.context, self.seed = target, plan, test, context, seed
        self.error: AssayError | None = None
        self.notices: list[str] = []
        self.follower = Follower(context.recorder, context.folder.series_writer())
        self.active: list[ServerActivity] = []
        self.not_dropped: list[str] = []
        self.read_here: float | None = None
        self.queries = QueryTest(
            target=target,
            plan=plan,
            test=test,
            streams=streams,
            seed=seed,
            refresh=Refresh(target=target, plan=plan),
            interrupt=context.interrupt,
            look=self._look,
            part=part,
            before_query=self._before_query,
            memory_bytes=memory_bytes,
        )

    def run(self) -> dict[str, Any]:
        """Run the test to its end.

        Returns
        -------
        dict
            The measured part of the point (docs/dss.md).

        Raises
        ------
        Interrupted, AssayError
            There is no point.
        """
        plans = plans_of(self.target, self.plan, self.seed) if self.test == "power" else []
        self.follower.begin()
        self._look_closely()
        self.context.begin_together()
        counted = self._counted_here()
        started_ns = time.time_ns()
        try:
            self.queries.run()
        finally:
            ended_ns = time.time_ns()
            self._free_memory()
            self.follower.sample()
            self.follower.write()
        if counted is not None and (after := self._counted_here()) is not None:
            self.read_here = after - counted
        self._look_closely()
        exact_ns = (0, ended_ns - started_ns)
        return self._point(Window(started_ns=started_ns, interval_s=0.0, exact_ns=exact_ns, steady=None), plans)

    def close(self, name: str) -> None:
        """Write the rest of the series, as a segment of this name."""
        self.follower.close(name)

    def _before_query(self, database: Database) -> None:
        if self.plan.cache == "cold":
            self.not_dropped = drop_caches(database)

    def _free_memory(self) -> None:
        """End the limit of memory where it is one for all sessions."""
        for database in self.target.databases if self.queries.memory_bytes is not None else ():
            memory = database.query_memory
            if memory is not None and memory.for_all:
                database.execute(memory.undone(database.spec.settings.get(memory.for_all)))

    def _look(self, moment: Moment) -> None:
        self.context.display.point(moment)
        self.follower.write(at_once=False)

    def _look_closely(self) -> None:
        """At both ends: what the servers' tables cost."""
        found = activity(self.target.databases)
        self.active.append(found)
        self.notices += [notice for notice in found.notices if notice not in self.notices]

    def _counted_here(self) -> float | None:
        """Bytes that this process read so far, its recorder's among them, where databases run in it; else None."""
        first = self.target.databases[0]
        if not first.in_process:
            return None
        with closing(first.new_session()) as session:
            return first.scan_counters(session).get("bytes_read")

    def _with_own_reads(self, found: Storage) -> Storage:
        """What was seen, with what databases in this process read: there is no server to count it."""
        if self.read_here is None or not found["seconds"]:
            return found
        return {
            **found,
            "database": {**(found["database"] or {}), "read_bytes_per_s": self.read_here / found["seconds"]},
        }

    # Figures

    def _point(self, window: Window, plans: list[PlanText]) -> dict[str, Any]:
        test = self.queries
        found = self._storage(window.start_ns, window.end_ns)
        failed: dict[str, int] = {}
        for query in test.queries:
            if query["ended_by"] != "done":
                failed[query["ended_by"]] = failed.get(query["ended_by"], 0) + 1
        if failed:
            first = next(query for query in test.queries if query["ended_by"] != "done")
            self.notices.append(
                f"the {self.test} test is incomplete and has no score: query {first['query']} of stream"
                f" {first['stream']} ended by {first['ended_by']}" + (f": {first['error']}" if first["error"] else "")
            )
        if self.not_dropped:
            self.notices.append(f"caches that could not be dropped before each query: {', '.join(self.not_dropped)}")
        _, tables = hottest(self.active[0], self.active[-1])
        devices = {name for names in self.target.devices.values() for name in names}
        scores = self._scores()
        dss: Dss = {
            "scale": self.target.scale[self.target.databases[0].name] * SCALE_STEP,
            "test": self.test,
            "streams": test.streams,
            "seed": self.seed,
            "complete": not failed and self.plan.is_whole,
            "completion_s": test.seconds,
            "power": scores["power"],
            "throughput": scores["throughput"],
            "composite": scores["composite"],
            "queries": [self._with_storage(query) for query in test.queries],
            "refresh": test.refreshes,
            "storage": self._with_own_reads(found),
            "tables": _shares(cast(list[ReadTable], tables)),
            "plans": plans,
            "cache": self.plan.cache,
            "not_dropped": self.not_dropped,
        }
        figures = {
            # What a server counts is the queries' own time, not that of looking at it.
            "measured_s": test.seconds,
            "volumes": volumes_of(found),
            "roles": roles_of(found),
            "errors": {"count": sum(failed.values()), "kinds": failed},
            "dss": dss,
        }
        telemetry = summarise(self.follower.written, window.start_ns, window.end_ns, devices=devices)
        return measured_point(window, figures, telemetry=telemetry)

    def _scores(self) -> ScoresOfTests:
        test = self.queries
        scale = self.target.scale[self.target.databases[0].name] * SCALE_STEP
        power = throughput = None
        complete = self.plan.is_whole and all(query["ended_by"] == "done" for query in test.queries)
        if complete and self.test == "power":
            seconds = {query["query"]: query["seconds"] for query in test.queries}
            refresh = {one["function"]: one["seconds"] for one in test.refreshes}
            power = power_score(seconds, refresh["rf1"], refresh["rf2"], scale=scale)
            short = sum(one < RESOLUTION_S for one in seconds.values())
            if 2 * short > len(seconds):
                self.notices.append(
                    f"{short} of {len(seconds)} queries took less than {RESOLUTION_S} s, for which the power score"
                    " counts them: load a larger scale to tell systems apart by it"
                )
        elif complete:
            throughput = throughput_score(test.streams, test.seconds, scale=scale)
        return {"power": power, "throughput": throughput, "composite": None}

    def _storage(self, from_ns: int, to_ns: int) -> Storage:
        return storage(
            self.follower.written,
            from_ns,
            to_ns,
            devices_by_role=self.target.devices,
            transactions_count=None,
            client_cpu_ns=0.0,
            is_local=self.target.is_local,
        )

    def _with_storage(self, query: Query) -> Query:
        """A query with what the host and the data's devices did, in the power test: nothing else runs there."""
        seen: QueryIo = {
            "read_bytes_per_s": None,
            "read_size_mean_bytes": None,
            "read_latency_mean_ns": None,
            "device_queue": None,
            "cpu_share": None,
        }
        if self.test != "power" or query["seconds"] < SEEN_MIN_S:
            return {**query, **seen}
        began, ended = query["started_utc_ns"], query["started_utc_ns"] + max(round(query["seconds"] * 1e9), 1)
        devices = {name for role, names in self.target.devices.items() if role.startswith("data") for name in names}
        host = summarise(self.follower.written, began, ended, devices=devices)
        seen |= {"cpu_share": host["cpu_share"], "device_queue": host["device_queue"]}
        read = (roles_of(self._storage(began, ended)).get("data") or {}).get("read")
        if read and devices:
            seen["read_bytes_per_s"] = read["bytes_per_s"]
            seen["read_size_mean_bytes"] = read["bytes_per_s"] / read["iops"]
            seen["read_latency_mean_ns"] = read["latency_ns"]["mean"]
        return {**query, **seen}


def _shares(tables: list[ReadTable]) -> list[ReadTable]:
    """Tables by the bytes that were read of them, with each one's share."""
    read = [(table, table.get("read_bytes") or 0.0) for table in tables]
    total = sum(value for _, value in read)
    return [{**table, "share": value / total if total else None} for table, value in read]
