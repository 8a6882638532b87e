"""Queries at work on databases: tests, layouts, answers."""

from __future__ import annotations

import json
from datetime import datetime
from typing import ClassVar, Literal

from assay.base.errors import NotSupported, UsageError
from assay.record.points import MEMORY_AXIS
from assay.record.shapes.point import Point
from assay.targets.databases import LAID_OUT, Database
from assay.targets.databases.common.layout import LaidOutTables, TableLayout
from assay.targets.databases.kinds import lay_out
from assay.targets.host import memory_bytes
from assay.workloads.databases.job import DatabaseJob, refuse_laid_out
from assay.workloads.databases.loading import set_state
from assay.workloads.databases.plan import load_connections
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps
from assay.workloads.tpch.check import check_answers
from assay.workloads.tpch.measuring import TestMeasurement
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.scores import composite_score, run_that_counts
from assay.workloads.tpch.shapes import Dss, LaidOutForQueries, QueryLayout, RunScores, dss_of
from assay.workloads.tpch.streams import minimum_streams

DISCLAIMER = (
    "a TPC-H-like workload, derived and not compliant; TPC-H is a trademark of the Transaction Processing Performance"
    " Council; figures are not comparable with published TPC results, nor with those at another scale"
)

Test = Literal["power", "throughput"]


class TpchJob(DatabaseJob[TpchPlan]):
    """A part at work on its databases."""

    document_key = "dss"
    disclaimer = DISCLAIMER
    nothing_done: ClassVar[Dss] = {"actions_done": {}, "load": None, "answers": []}

    def run(self) -> Steps:
        """Measure the tests, and what their scores come to together; of several runs the lowest counts."""
        if self.plan.is_searched:
            yield from self._search()
            return
        if "power" in self.plan.tests and len(self.target.databases) > 1:
            self.context.note(
                f"the power test runs on {self.target.databases[0].name} alone: it is one stream, and a stream has one"
                " database; give the others runs of their own to compare them"
            )
        runs: list[RunScores] = []
        points: list[Point] = []
        for number in range(1, self.plan.repeats + 1):
            scores: RunScores = {}
            for test in self.plan.tests:
                point = yield Measure(ask=self._ask(test, number))
                points.append(point)
                scores[test] = dss_of(point).get(test)
            power, throughput = scores.get("power"), scores.get("throughput")
            composite = composite_score(power, throughput) if power and throughput else None
            runs.append({**scores, "composite": composite, "point_ids": [one["id"] for one in points[-len(scores) :]]})
        counts = run_that_counts(runs)
        chosen = [dss_of(point) for point in points if point["id"] in (counts["point_ids"] or ())]
        self.keep(
            scale=self.target.scale[self.target.databases[0].name] * SCALE_STEP,
            power=counts.get("power"),
            throughput=counts.get("throughput"),
            composite=counts["composite"],
            runs=runs,
            queries=[query for found in chosen for query in found.get("queries") or ()],
            refresh=[one for point in points for one in dss_of(point).get("refresh") or ()],
            point_ids=list(counts["point_ids"] or ()),
        )

    def _search(self) -> Steps:
        """Find the least memory with which the queries of the first test meet the limits."""
        known = [database.query_memory for database in self.target.databases]
        memory, settings, plan = known[0], self.plan.search, self.plan.with_memory()
        assert memory is not None, "databases were examined for it"
        most, least = settings.start, settings.end
        steps = [step for step in memory.steps(memory_bytes()) if step <= (most or step) and step >= (least or step)]
        loads = sorted({*steps, *(end for end in (most, least) if end is not None)}, reverse=True)
        self.context.note(f"the search sets {memory.words}")
        axis = Axis(
            name=MEMORY_AXIS, start=loads[0], end=loads[-1], whole=True, stops_at_plateau=False, steps=tuple(loads),
            falls=True,
        )  # fmt: skip
        workload = plan.facts(self.target.scale[self.target.databases[0].name]) | {"test": plan.test}
        answer = yield Search(
            axis=axis,
            ask=lambda load: self._ask(plan.tests[0], 1, plan, int(load)),
            workload=workload,
            repeats=settings.repeats,
        )
        end = answer["edge"] or answer["first_failing"] or {}
        shown = next((point for point in self.context.points if point["id"] == end.get("point_id")), None)
        if shown is not None:
            self.keep(**{**dss_of(shown), "runs": [], "point_ids": [shown["id"]]})

    def check(self) -> None:
        """Ask the validation queries, and compare their answers."""
        found = check_answers(self.target, display=self.context.display, interrupt=self.context.interrupt)
        checked = {database.name for database in self.target.databases}
        others = {
            key: [one for one in self.told.get(key) or [] if one["database"] not in checked]
            for key in ("answers", "rows")
        }
        self.keep(answers=[*others["answers"], *found.answers], rows=[*others["rows"], *found.rows])
        for notice in found.notices:
            self.context.note(notice)

    @property
    def scale_told(self) -> int:
        """That of each database: all are whole."""
        return self.target.scale[self.target.databases[0].name]

    def dropped(self) -> Dss:
        """What there is to say once the tables are gone."""
        return {"load": None, "answers": []}

    # Points

    @property
    def streams(self) -> int:
        """Streams of the throughput test."""
        scale = self.target.scale[self.target.databases[0].name] * SCALE_STEP
        return self.plan.streams or minimum_streams(scale)

    def _ask(self, test: Test, number: int, plan: TpchPlan | None = None, memory: int | None = None) -> Ask:
        plan = plan or self.plan
        streams = 1 if test == "power" else self.streams
        excluded = {
            "actions",
            "limits",
            "user_limits",
            "title",
            "test",
            "streams",
            "repeats",
            "load_connections",
            "search",
        }
        bounded = {} if memory is None else {MEMORY_AXIS: memory}
        return Ask(
            key={
                **bounded,
                "plan": plan.model_dump(mode="json", exclude=excluded),
                "test": test,
                "run": number,
                "streams": streams,
                "target": [database.spec.recorded for database in self.target.databases],
                "scale": self.target.scale,
            },
            workload=plan.facts(self.target.scale[self.target.databases[0].name]) | {"test": test},
            load={"streams": streams, **bounded},
            what=(test, number, plan),
        )

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Run one test.

        Raises
        ------
        Interrupted
            The point is not kept.
        AssayError
            The databases failed.
        """
        test, number, plan = ask.what
        self.target.hold()
        if self.plan.restores != "never" and not (test == "throughput" and self.plan.test == "both"):
            self._start_from_saved()
        layout = self._lay_out()
        for database in self.target.databases:
            if database.schema().state != LAID_OUT:
                set_state(database, "ran")
        measurement = TestMeasurement(
            self.target,
            plan,
            test=test,
            streams=ask.load["streams"],
            seed=self._seed(self.target.databases[0]) + (number - 1) * (self.streams + 1),
            part=self.part.name,
            context=self.context,
            memory_bytes=ask.load.get(MEMORY_AXIS),
        )
        self.context.under_load.begin()
        try:
            figures = measurement.run()
        finally:
            measurement.close(point_id)
            for notice in measurement.notices:
                self.context.note(notice)
        figures["dss"] |= {"run": number, "point_id": point_id, "layout": layout}
        return Measured(figures=figures, error=measurement.error)

    def _seed(self, database: Database) -> int:
        """Seed of stream 0: month, day, hours, minutes and seconds of the end of the load (clause 2.1.3.3)."""
        values: dict[str, str | None] = dict(database.query("SELECT k, v FROM assay_schema"))
        loaded = str(values.get("loaded_utc") or values.get("created_utc") or "")
        try:
            ended = datetime.fromisoformat(loaded)
        except ValueError:
            ended = datetime.fromtimestamp(0)
        return int(f"{ended:%m%d%H%M%S}") + self.plan.seed - 1

    def _start_from_saved(self) -> None:
        """Bring back the saved state, where the database can and the plan does not insist."""
        try:
            self.start_from_saved()
        except NotSupported as error:
            if self.plan.restores == "always":
                raise
            self.context.note(f"tests did not start from the same state: {error}")

    # Layout

    def _load(self) -> None:
        super()._load()
        if "run" not in self.plan.actions:
            self._lay_out()

    def _lay_out(self) -> QueryLayout | None:
        """Lay the tables out as the plan wants them, unless they lie so; the layout, None where it is the plain one."""
        wanted: LaidOutForQueries = {
            "partition": self.plan.partition.told() if self.plan.partition.ways > 1 else None,
            "directories": list(self.plan.directories),
            "columnstore": list(self.plan.columnstore),
        }
        found: list[LaidOutForQueries] = []
        for database in self.target.databases:
            there = _layout_of(database)
            if self.plan.is_plain and there is None:
                return None
            if there is not None and (self.plan.is_plain or there == wanted):
                # What was laid out when it was loaded stays so.
                found.append({"database": database.name, **there})
                continue
            if there is not None:
                refuse_laid_out(database)
            made = self._lay_out_one(database, wanted)
            found.append({"database": database.name, "places": made["places"], "partition": made["partition"]})
        self.target.refresh()
        return {"databases": found}

    def _lay_out_one(self, database: Database, wanted: LaidOutForQueries) -> LaidOutTables:
        plan = self.plan
        self.context.display.phase(f"laying out {database.name}: {layout_words(plan)}")
        layout = TableLayout(
            places=max(len(plan.directories), 1),
            directories=plan.directories,
            table=plan.partition.table if plan.partition.ways > 1 else "",
            ways=plan.partition.ways,
            by_columns=plan.columnstore,
        )
        # Whatever becomes of it, the state is no longer the loaded one.
        set_state(database, LAID_OUT)
        laid_out = lay_out(database, layout, scale=self.target.scale[database.name], connections=load_connections(plan))
        database.execute("DELETE FROM assay_schema WHERE k = 'layout'")
        database.execute("INSERT INTO assay_schema (k, v) VALUES (%s, %s)", ("layout", json.dumps(wanted)))
        return laid_out


def layout_words(plan: TpchPlan) -> str:
    """The layout of a plan in words.

    Examples
    --------
    >>> layout_words(TpchPlan(partition="lineitem:l_shipdate:4", columnstore="orders"))
    'lineitem in 4 partitions by l_shipdate, orders by columns'
    >>> layout_words(TpchPlan())
    'as the server lays it out'
    """
    words = []
    if plan.partition.ways > 1:
        words.append(f"{plan.partition.table} in {plan.partition.ways} partitions by {plan.partition.column}")
    if plan.columnstore:
        words.append(f"{' and '.join(plan.columnstore)} by columns")
    if plan.directories:
        words.append(f"over {', '.join(plan.directories)}")
    return ", ".join(words) or "as the server lays it out"


def _layout_of(database: Database) -> LaidOutForQueries | None:
    """The layout that the tables were given; None for the plain one."""
    state = database.schema().state
    if state != LAID_OUT:
        return None
    rows = database.query("SELECT v FROM assay_schema WHERE k = 'layout'")
    if not rows:
        raise UsageError(
            f"{database.name}: laying its tables out was cut short; bring the plain ones back with the action: restore,"
            " or drop them and load again"
        )
    found: LaidOutForQueries = json.loads(rows[0][0])
    return found
