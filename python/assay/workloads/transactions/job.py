"""Transactions at work on databases: points, layouts, and notices of odd figures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, TypeVar

from assay.base.errors import NotSupported
from assay.base.log import event
from assay.base.units import format_duration
from assay.record.shapes.point import Point
from assay.targets.arrays.live.watch import UnderLoad
from assay.targets.databases import LAID_OUT, Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.job import DatabaseJob, refuse_laid_out
from assay.workloads.databases.loading import set_state
from assay.workloads.job import PartContext
from assay.workloads.plan import Part
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.check import check_conditions
from assay.workloads.transactions.layout import apply_layout, find_hottest, trace_plan
from assay.workloads.transactions.plan import TransactionsPlan
from assay.workloads.transactions.point import OltpMeasurement
from assay.workloads.transactions.shapes import DOCUMENT_KEY, Condition, HottestTable, LayoutOfPoint, Oltp, oltp_of

_NOT_IN_KEY = {"actions", "limits", "user_limits", "search", "title", "events"}
"""Keys of a plan that make no other point, or that the point loop adds itself."""


P = TypeVar("P", bound=TransactionsPlan)


class TransactionsJob(DatabaseJob[P]):
    """A part at work on its databases."""

    document_key = DOCUMENT_KEY
    application: Application
    nothing_done: ClassVar[Oltp] = {"actions_done": {}, "load": None, "conditions": []}

    def __init__(self, part: Part[P], target: DatabaseTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        self.rest_s = self.plan.timing.rest_s

    def check(self) -> None:
        """Ask the consistency conditions; what another part of the run found violated is not forgotten."""
        found = check_conditions(
            self.target.databases, self.application, display=self.context.display, interrupt=self.context.interrupt
        )
        violated = [condition for condition in self.told.get("conditions") or [] if not condition["met"]]
        for database in self.target.databases:
            found += [{"database": database.name, **one} for one in self.own_conditions(database)]
        self.keep(conditions=[*violated, *found])

    def own_conditions(self, database: Database) -> Iterator[Condition]:
        """Ask what a kind checks besides its consistency conditions; gives records as they are in `conditions`."""
        yield from ()

    def mark(self, database: Database, state: str) -> None:
        """Write down in a database what became of its tables."""
        set_state(database, state)

    def begins(self, database: Database) -> None:
        """Do what a kind does to a database before its users begin."""

    def dropped(self) -> Oltp:
        """What there is to say once the tables are gone."""
        return {"load": None, "conditions": []}

    def run(self) -> Steps:
        """Measure one load, or search for the most."""
        states = {database.name: database.schema().state for database in self.target.databases}
        if LAID_OUT in states.values() and self.plan.layout.is_plain and self._restores == "never":
            if self.plan.restores == "never":
                for database in self.target.databases:
                    refuse_laid_out(database)
            self._start_from_saved()
            states = {}
        has_run = [name for name, state in states.items() if state == "ran"]
        if has_run and self._restores == "never":
            self.context.note(
                f"transactions had run on {', '.join(has_run)} before: the run did not start from the state as loaded"
            )
        if self.plan.search.axis == "none":
            self._note_run((yield Measure(ask=self._ask(self.plan))))
            return
        answer = yield self._search()
        best = answer["max"] or {}
        points = self.context.points
        chosen = [point for point in points if point["id"] == best.get("point_id")] or points[-1:]
        for point in chosen:
            self._note_run(point)

    def _note_run(self, point: Point) -> None:
        """Keep a point's figures as those of the run, and note odd figures."""
        self.keep(**oltp_of(point))
        self.note_odd(point)

    def note_odd(self, point: Point) -> None:
        """Say what is odd about a point's figures; of a kind that knows."""

    # Points

    def _search(self) -> Search:
        settings = self.plan.search
        axis = Axis(
            name=settings.axis,
            start=max(settings.first_load, len(self.target.databases) if settings.axis == "users" else 0),
            end=settings.last_load,
            whole=settings.axis == "users",
            resolution_share=settings.resolution_share,
            stops_at_plateau=settings.plateau,
        )
        return Search(
            axis=axis,
            ask=lambda load: self._ask(self.plan.with_load(axis.name, load)),
            workload=self.plan.facts(self.target.scale_total),
            repeats=settings.repeats,
        )

    def _ask(self, plan: P) -> Ask:
        return Ask(
            key={
                "plan": plan.model_dump(mode="json", exclude=_NOT_IN_KEY),
                "target": [database.spec.recorded for database in self.target.databases],
                self.application.tables.scale: self.target.scale,
            },
            workload=plan.facts(self.target.scale_total),
            load=plan.load_facts(),
            what=plan,
        )

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure one load of users.

        Raises
        ------
        Interrupted
            The point is not kept.
        AssayError
            The databases failed before the window began.
        """
        plan: P = ask.what
        self.target.hold()
        if self._restores == "always":
            self._start_from_saved()
        layout = self._lay_out(plan)
        for database in self.target.databases:
            self.mark(database, "ran" if layout is None else LAID_OUT)
        for database in self.target.databases:
            self.begins(database)
        measurement = self._measurement(plan, repeat)
        try:
            figures = measurement.run()
        finally:
            measurement.close(point_id)
            for notice in measurement.notices:
                self.context.note(notice)
        figures["oltp"] |= {"point_id": point_id, "layout": layout}
        return Measured(figures=figures, error=measurement.error, rates=measurement.rates)

    def _measurement(self, plan: P, repeat: int, context: PartContext | None = None) -> OltpMeasurement:
        return OltpMeasurement(
            self.target,
            plan,
            repeat,
            application=self.application,
            part=self.part.name,
            context=context or self.context,
        )

    def kept(self, point: Point) -> None:
        """Tell of servers that were away, and wait until they answer again."""
        self._note_gaps(point)
        if oltp_of(point)["gaps"] and point["ended_by"] == "time":
            event("server waited for", at_most_s=self.plan.reconnect_s)
            self.target.wait(self.plan.reconnect_s, self.context.interrupt)

    @property
    def _restores(self) -> str:
        """`always` or `never`, for the points of this plan."""
        if self.plan.restores == "search":
            return "never" if self.plan.search.axis == "none" and self.plan.layout.is_plain else "always"
        return "never" if self.plan.restores == "never" else "always"

    def _start_from_saved(self) -> None:
        """Bring back the saved state, where the database can and the plan does not insist."""
        try:
            self.start_from_saved()
        except NotSupported as error:
            if self.plan.restores == "always" or not self.plan.layout.is_plain:
                raise
            self.context.note(f"points did not start from the same state: {error}")

    # Layout

    def _lay_out(self, plan: P) -> LayoutOfPoint | None:
        """Lay the tables out as the plan wants them; the layout for the point, None where it is the plain one."""
        if plan.layout.is_plain:
            return None
        table, why = str(plan.layout.partition_table), None
        if plan.layout.is_partitioned and table == "hottest":
            why = self._hottest(plan)
            table = str(why["table"])
        for database in self.target.databases:
            # Whatever becomes of it, the state is no longer the loaded one.
            set_state(database, LAID_OUT)
        return {"databases": apply_layout(self.target, plan, table, self.context.display), "hottest": why}

    def _hottest(self, plan: P) -> HottestTable:
        """The hottest table, the same one for all points of a run."""
        found: HottestTable | None = self.told.get("hottest")
        if found is None:
            self.context.display.phase(f"tracing for {plan.layout.trace_s:g} s which table is the hottest")
            for database in self.target.databases:
                set_state(database, "ran")
            # Faults are for points.
            quiet = replace(self.context, under_load=UnderLoad())
            measurement = self._measurement(trace_plan(plan), 0, quiet)
            try:
                oltp = measurement.run()["oltp"]
            finally:
                measurement.close("trace")
            if measurement.error is not None:
                raise measurement.error
            found = find_hottest(self.application.tables, oltp["tables"], oltp["statements"], plan.layout.trace_s)
            self.keep(hottest=found)
            if self._restores == "always":
                self._start_from_saved()
        self.context.note(str(found["sentence"]))
        return found

    # Notices

    def _note_gaps(self, point: Point) -> None:
        for gap in oltp_of(point)["gaps"] or ():
            from_ns, to_ns = gap["from_utc_ns"] or 0, gap["to_utc_ns"] or 0
            seconds = (to_ns - from_ns) / 1e9
            event("server away", level="warning", point=point["id"], **gap)
            began = time.strftime("%H:%M:%S", time.gmtime(from_ns / 1e9))
            self.context.note(
                f"{gap['database']} was away for {format_duration(seconds)} from {began} UTC in {point['id']}:"
                f" {gap['reason']}"
            )
