"""The one loop that measures: key, memo, rest, limits, point, search, for every kind of workload.

A point that the run folder holds already is not measured again: that is all there is to resuming.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast

from assay.base.errors import Interrupted
from assay.base.log import chain, event
from assay.record.judgement import concerns, judge, met
from assay.record.limits import Limit, bounded_figures, parse_limits
from assay.record.points import CUT_SHORT, PRECONDITION, blank_point
from assay.record.shapes.point import Answer, JudgedLimit, Point
from assay.record.standstill import HOSTS_APART, were_apart, with_overdriven
from assay.run.bracket import Distance, LoadReading
from assay.run.search import search
from assay.targets.arrays.live.events import events_of
from assay.targets.arrays.live.watch import PointWatch
from assay.targets.target import Target
from assay.workloads.beside import LoadBeside
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import Part
from assay.workloads.steps import Ask, Keep, Measured, Search
from assay.workloads.workload import Workload

FARTHEST, NEAREST = math.log(1000), 1e-12
"""How far a value can be from its bound: a value or bound of 0 has no logarithm."""


@dataclass(kw_only=True)
class PointLoop:
    """Measures what one part asks for."""

    context: PartContext
    workload: Workload[Any]
    opened: Job
    part: Part[Any]
    numbers: Iterator[int]
    """Numbers of new points; those of a run that goes on have others."""
    target: Target | None = None
    """What the part runs on, where arrays may be served for it."""
    beside: LoadBeside | None = None
    """What runs while points are measured."""
    logs: bool = False
    """Whether points are events of the run's log; those that are measured ahead or asked of a model are none."""
    answers: list[Answer] = field(default_factory=list)
    limits: list[Limit] = field(init=False)

    def __post_init__(self) -> None:
        self.limits = parse_limits(self.part.plan.limits, self.workload.figures)

    @property
    def points(self) -> list[Any]:
        """Points of the part, those of earlier sessions included."""
        return self.context.points

    def run(self) -> None:
        """Do all steps of the part.

        Raises
        ------
        Interrupted, AssayError
            Points until then are kept; so is the last one, with what it has, where its measurement gave any.
        """
        watch = self._new_watch()
        steps = self.opened.steps()
        outcome: Any = None
        try:
            while True:
                try:
                    step = steps.send(outcome)
                except StopIteration:
                    return
                if isinstance(step, Search):
                    outcome = self._search(step)
                elif isinstance(step, Keep):
                    outcome = self._keep_step(step, watch)
                else:
                    outcome = self._measure(step.ask, step.purpose, step.repeat)
        finally:
            steps.close()
            watch.end()

    def _new_watch(self) -> PointWatch:
        """A new watch over the target's arrays for the next load."""
        watch = PointWatch(self.target, events_of(self.part.plan.events))
        self.context.under_load.take(watch)
        return watch

    def _search(self, step: Search) -> Answer:
        found = search(
            step.axis,
            lambda load, purpose, repeat: self._measure(step.ask(load), purpose, repeat),
            self.reading,
            repeats=step.repeats,
            figures=self.workload.figures,
        )
        asked = {
            "workload": dict(step.workload),
            "part": self.part.name,
            "limits": self._limits_of(found["point_ids"]),
        }
        answer = cast(Answer, asked | found)
        self.opened.complete_answer(answer)
        self.answers.append(answer)
        return answer

    def _limits_of(self, ids: Collection[str]) -> list[str]:
        """The limits that concern any of these points."""
        judged = [one for point in self.points if point["id"] in ids for one in point["limits"]]
        known = {one["limit"] for one in judged if concerns(one)}
        return [limit.text for limit in self.limits if limit.text in known]

    def reading(self, point: Point) -> LoadReading:
        """What a point says of its load: errors, nothing, the generator or the rate; or how far its limits are."""
        fault = self._fault(point)
        if fault is not None:
            return LoadReading(fault=fault)
        limits = {limit.text: limit for limit in self.limits}
        return LoadReading(
            distances=[
                Distance(
                    limit=judged["limit"],
                    scope=str(judged["scope"]),
                    missed_by=_missed_by(judged, limits[judged["limit"]]),
                    is_upper=limits[judged["limit"]].is_upper,
                )
                for judged in point["limits"]
                if judged["value"] is not None
            ]
        )

    def _fault(self, point: Point) -> str | None:
        """What makes a point no answer, whatever its limits say."""
        bounded = bounded_figures(self.workload.figures)
        if point["errors"]["count"] and not any(bounded[limit.name].counts_errors for limit in self.limits):
            return "errors"
        first = next(iter(self.workload.figures), None)
        if first is not None and not first.value(point):
            return first.nothing
        if point["generator"]["saturated"]:
            return HOSTS_APART if were_apart(point) else "generator"
        if point["offered"] and not point["offered"]["sustained"] and point["met"] is not False:
            return "rate not sustained"
        return None

    def _measure(self, ask: Ask, purpose: str, repeat: int) -> Point:
        """Measure one load, or take its point from the run folder."""
        # A grid or search point is the same whichever asked for it; a repeat is another.
        key = self._key(ask, repeat if purpose == "repeat" else 0)
        if key in self.context.finished:
            return self._have(self.context.finished[key])
        if self.context.interrupt.is_set():
            raise Interrupted("interrupted")
        rests = self.opened.rest_s and purpose != PRECONDITION
        if rests and self.context.finished and self.context.interrupt.wait(self.opened.rest_s):
            raise Interrupted("interrupted")
        point_id, started_ns = self._next_id(), time.time_ns()
        if self.logs:
            event("point begun", point=point_id, part=self.part.name, load=ask.load, purpose=purpose, repeat=repeat)
        beside = self.beside
        watch = self._new_watch()
        if self.context.begins_whole:
            watch.make_whole(self.context.display.phase, self.context.interrupt)
        with beside.at_work() if beside is not None else nullcontext():
            try:
                measured = self.opened.measure(ask, repeat=repeat, point_id=point_id)
            finally:
                watch.end()
        times = {"started_utc_ns": started_ns, "measured_from_utc_ns": started_ns, "measured_to_utc_ns": time.time_ns()}
        figures = times | measured.figures
        if beside is not None:
            figures["beside"] = beside.told(figures["measured_from_utc_ns"], figures["measured_to_utc_ns"])
        measured = self._with_served(replace(measured, figures=figures), watch)
        named = {"id": point_id, "key": key, "repeat": repeat, "purpose": purpose}
        return self._keep(ask, measured, named, judged=purpose != PRECONDITION)

    def _keep_step(self, step: Keep, watch: PointWatch) -> Point:
        key = self._key(step.ask, step.repeat)
        if step.measured is None:
            return self._have(self.context.finished[key])
        point_id = self._next_id()
        named = {"id": point_id, "key": key, "repeat": step.repeat, "purpose": "grid"}
        measured = step.measured(point_id)
        measured = self._with_served(measured, watch)
        return self._keep(step.ask, measured, named, judged=step.judged)

    def _with_served(self, measured: Measured, watch: PointWatch) -> Measured:
        """The point with what its served arrays did; it failed where a volume of theirs was unmounted meanwhile."""
        if self.target is None or not self.target.served:
            return measured
        figures = measured.figures | {"served": watch.told(measured.rates)}
        lost = watch.lost_volume()
        if lost is not None:
            figures["ended_by"] = "failed"
        return replace(measured, figures=figures, error=measured.error or lost)

    def _keep(self, ask: Ask, measured: Measured, named: dict[str, Any], *, judged: bool = True) -> Point:
        made: dict[str, Any] = {
            "id": named["id"],
            "key": named["key"],
            "part": self.part.name,
            "repeat": named["repeat"],
            "purpose": named["purpose"],
            "workload": dict(ask.workload),
            "load": dict(ask.load),
            **blank_point(),
            **with_overdriven(measured.figures),
            **ask.facts,
        }
        point = cast(Point, made)
        point["limits"] = judge(
            self.limits if judged else (), point, self.workload.figures, untouched=self.workload.untouched(point)
        )
        point["met"] = met(point["limits"])
        if measured.error is None:
            self.opened.complete_point(made, ask)
        self.context.folder.append_point(point)
        if self.logs:
            event(
                "point ended",
                point=point["id"],
                ended_by=point["ended_by"],
                met=point["met"],
                errors=chain(measured.error) if measured.error is not None else [],
            )
        if measured.error is not None:
            self._listed(point)
            self.opened.kept(point)
            raise measured.error
        if point["ended_by"] not in CUT_SHORT:
            self.context.finished[point["key"]] = point
        self.opened.kept(point)
        return self._have(point)

    def _have(self, point: Point) -> Point:
        self._listed(point)
        self.context.display.point_done(point)
        return point

    def _listed(self, point: Point) -> None:
        """List a point of the part; what only brings the target into its state is none."""
        if point["purpose"] != PRECONDITION:
            self.points.append(point)

    def _next_id(self) -> str:
        return f"p{next(self.numbers):04d}"

    def _key(self, ask: Ask, repeat: int) -> str:
        asked = {**ask.key, "part": self.part.name, "repeat": repeat}
        if self.part.plan.events:
            asked["events"] = [event.model_dump(mode="json") for event in self.part.plan.events]
        if self.part.beside is not None:
            asked["beside"] = [self.part.beside.target_text, self.part.beside.plan.model_dump(mode="json")]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _missed_by(judged: JudgedLimit, limit: Limit) -> float:
    """Logarithm of a judged value over its bound, above 0 where it is missed; kept within `FARTHEST`."""
    value = float(judged["value"] or 0.0)
    apart = abs(math.log(value / limit.value)) if value > 0 and limit.value > 0 else FARTHEST
    # A value equal to a bound that allows less alone misses it too.
    return -min(apart, FARTHEST) if limit.met_by(value) else min(max(apart, NEAREST), FARTHEST)
