"""The runner of parts on databases: load, run, check, save, restore, drop, in the order the plan gives them.

Points are measured as in `assay.workloads.io`: one that the run folder holds is not measured again, and the one search
finds the most transactions within limits.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import Interrupted, NotSupported, UsageError
from assay.progress import Display
from assay.results.limits import Limit, judge, met
from assay.results.run_folder import RunFolder
from assay.run.search import Axis, Objective, Point, search
from assay.targets.databases import LAID_OUT, Database
from assay.telemetry.recorder import Recorder
from assay.units import count_of, format_duration
from assay.workloads.tpcc.check import check_conditions
from assay.workloads.tpcc.figures import FIGURES
from assay.workloads.tpcc.layout import apply_layout, find_hottest, remove_places, trace_plan
from assay.workloads.tpcc.load import drop_warehouses, load_warehouses, set_state
from assay.workloads.tpcc.plan import EFFICIENCY_MOST_NOPM, USER_ROLLBACK_SHARE, Action, TpccPlan
from assay.workloads.tpcc.point import OltpMeasurement
from assay.workloads.tpcc.target import DatabaseTarget

DISCLAIMER = (
    "a TPC-C-like workload, derived and not compliant; TPC-C is a trademark of the Transaction Processing Performance"
    " Council; figures are not comparable with published TPC results, nor with those at another number of warehouses"
)

RATIO_OFF_SHARE = 0.05
"""TPM to NOPM follows from the mix; figures that are further from it are not those of the mix."""
RATIO_LEAST_COUNT = 10_000
"""New orders below which the ratio says nothing: at so many its standard deviation by chance is below 1 %."""

Fact = Mapping[str, Any]


def _nopm_end(points: Sequence[Point]) -> dict[str, Any]:
    count = len(points)
    return {
        "nopm": sum(point["oltp"]["nopm"] for point in points) / count,
        "tpm": sum(point["oltp"]["tpm_client"] for point in points) / count,
    }


NOPM = Objective(
    value=lambda point: float(point["oltp"]["nopm"]),
    batches=lambda point: point["batches"]["total"]["nopm"],
    end=_nopm_end,
)
"""New orders per minute."""


@dataclass(kw_only=True)
class OltpRunner:
    """Runs one part on databases."""

    folder: RunFolder
    recorder: Recorder
    target: DatabaseTarget
    plan: TpccPlan
    part: str
    limits: Sequence[Limit]
    interrupt: threading.Event
    display: Display
    finished: dict[str, dict[str, Any]]
    numbers: Iterator[int]
    notices: list[str] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    oltp: dict[str, Any] = field(default_factory=dict)
    """What there is to say of the part as a whole, as docs/oltp.md has it."""

    def run(self) -> list[dict[str, Any]]:
        """Do the actions; returns the answer of a search.

        Raises
        ------
        Interrupted, AssayError
            What was finished is in `oltp` and in the run folder.
        """
        self.oltp = dict(self.folder.manifest.get("oltp") or {"actions_done": {}, "load": None, "conditions": []})
        done = actions_done(self.folder.manifest, self.part)
        self.notices.append(DISCLAIMER)
        answers: list[dict[str, Any]] = []
        work: dict[Action, Callable[[], object]] = {
            "load": self._load,
            "run": lambda: answers.extend(self._run()),
            "check": self._check,
            "save": self._save,
            "restore": self._restore,
            "drop": self._drop,
        }
        for action in self.plan.actions:
            # Points of a finished run are taken from the folder, which gives its answer again.
            if action in done and action != "run":
                continue
            if self.interrupt.is_set():
                raise Interrupted("interrupted")
            self.target.hold()
            work[action]()
            done = list(dict.fromkeys([*done, action]))
            self._keep(actions_done=self.oltp["actions_done"] | {self.part: done})
        return answers

    def _keep(self, **figures: Any) -> None:
        """Add to what is known of the part, on storage too."""
        self.oltp |= figures
        self.folder.update(oltp=self.oltp)

    # Actions

    def _load(self) -> None:
        loaded = load_warehouses(self.target, self.plan, display=self.display, interrupt=self.interrupt)
        self.target.refresh()
        if loaded is None:
            if not self.oltp.get("load"):
                self._keep(load=None)
                self.notices.append(f"{count_of(self.target.warehouses_total, 'warehouse')} had been loaded before")
            return
        self._keep(load=loaded)
        self.display.tell(
            f"loaded {count_of(self.target.warehouses_total, 'warehouse')}: {loaded['rows']:,} rows at"
            f" {loaded['rows_per_s']:,.0f} rows/s, {format_duration(loaded['seconds'])} in all"
        )

    def _check(self) -> None:
        found = check_conditions(self.target.databases, display=self.display, interrupt=self.interrupt)
        # What another part of the run found violated is not forgotten.
        violated = [condition for condition in self.oltp.get("conditions") or [] if not condition["met"]]
        self._keep(conditions=[*violated, *found])

    def _save(self) -> None:
        for database in self.target.databases:
            _refuse_laid_out(database)
            self.display.phase(f"saving the state of {database.name}")
            database.save()

    def _restore(self) -> None:
        for database in self.target.databases:
            self.display.phase(f"restoring the state of {database.name}")
            database.restore()

    def _drop(self) -> None:
        for database in self.target.databases:
            self.display.phase(f"dropping the tables of {database.name}")
            drop_warehouses(database)
        remove_places(self.target)
        self.oltp |= {"load": None, "conditions": []}

    def _run(self) -> list[dict[str, Any]]:
        states = {database.name: database.schema().state for database in self.target.databases}
        if LAID_OUT in states.values() and self.plan.layout.is_plain and self._restores == "never":
            if self.plan.restores == "never":
                for database in self.target.databases:
                    _refuse_laid_out(database)
            self._start_from_saved()
            states = {}
        has_run = [name for name, state in states.items() if state == "ran"]
        if has_run and self._restores == "never":
            self.notices.append(
                f"transactions had run on {', '.join(has_run)} before: the run did not start from the state as loaded"
            )
        if self.plan.search.axis == "none":
            point = self.measure(self.plan, "grid", 0)
            self._note_run(point)
            return []
        answer = self._search()
        best = answer["max"] or {}
        chosen = [point for point in self.points if point["id"] == best.get("point_id")] or self.points[-1:]
        for point in chosen:
            self._note_run(point)
        return [answer]

    def _note_run(self, point: Fact) -> None:
        """Take a point's figures for those of the run, and say what is odd about them."""
        self._keep(**point["oltp"])
        self._note_ratio(point)
        self._note_efficiency(point)

    # Points

    def _search(self) -> dict[str, Any]:
        settings = self.plan.search
        axis = Axis(
            name=settings.axis,
            start=max(settings.first_load, len(self.target.databases) if settings.axis == "users" else 0),
            end=settings.last_load,
            whole=settings.axis == "users",
            resolution_share=settings.resolution_share,
            stops_at_plateau=settings.plateau,
        )
        answer = search(
            axis,
            lambda load, purpose, repeat: self.measure(self.plan.with_load(axis.name, load), purpose, repeat),
            failure,
            repeats=settings.repeats,
            objective=NOPM,
        )
        workload = self.plan.facts(self.target.warehouses_total)
        return {"workload": workload, "part": self.part, "limits": [limit.text for limit in self.limits], **answer}

    def measure(self, plan: TpccPlan, purpose: str, repeat: int) -> dict[str, Any]:
        """Measure one point, or take it from the run folder if it is there.

        Raises
        ------
        Interrupted
            The point is not kept.
        AssayError
            The databases failed; the point is kept if its window had begun.
        """
        key = self._key(plan, repeat if purpose == "repeat" else 0)
        point = self.finished.get(key)
        if point is None:
            point = self._measure_new(plan, key, purpose, repeat)
            self.finished[key] = point
        self.points.append(point)
        self.display.point_done(point)
        return point

    def _key(self, plan: TpccPlan, repeat: int) -> str:
        asked = {
            "plan": plan.model_dump(mode="json", exclude={"actions", "limits", "user_limits", "search", "title"}),
            "target": [database.spec.recorded for database in self.target.databases],
            "warehouses": self.target.warehouses,
            "part": self.part,
            "repeat": repeat,
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _measure_new(self, plan: TpccPlan, key: str, purpose: str, repeat: int) -> dict[str, Any]:
        if self.interrupt.is_set():
            raise Interrupted("interrupted")
        self._rest()
        self.target.hold()
        if self._restores == "always":
            self._start_from_saved()
        layout = self._lay_out(plan)
        for database in self.target.databases:
            set_state(database, "ran" if layout is None else LAID_OUT)
        measurement = OltpMeasurement(self, plan, repeat)
        point_id = f"p{next(self.numbers):04d}"
        try:
            measured = measurement.run()
        finally:
            measurement.close(point_id)
            self.notices += [notice for notice in measurement.notices if notice not in self.notices]
        measured["oltp"] |= {"point_id": point_id, "layout": layout}
        point = {
            "id": point_id,
            "key": key,
            "part": self.part,
            "repeat": repeat,
            "purpose": purpose,
            "workload": plan.facts(self.target.warehouses_total),
            "load": plan.load_facts(),
            **measured,
        }
        point["limits"] = judge(self.limits, point, FIGURES)
        point["met"] = met(point["limits"])
        self.folder.append_point(point)
        self._note_gaps(point)
        if point["oltp"]["gaps"] and measurement.trouble is None:
            self.target.wait(plan.reconnect_s, self.interrupt)
        if measurement.trouble is not None:
            self.points.append(point)
            raise measurement.trouble
        return point

    def _rest(self) -> None:
        if self.plan.timing.rest_s and self.finished and self.interrupt.wait(self.plan.timing.rest_s):
            raise Interrupted("interrupted")

    @property
    def _restores(self) -> str:
        """`always` or `never`, for the points of this plan."""
        if self.plan.restores == "search":
            return "never" if self.plan.search.axis == "none" and self.plan.layout.is_plain else "always"
        return "never" if self.plan.restores == "never" else "always"

    def _start_from_saved(self) -> None:
        """Bring back the saved state; the first time, keep the present one."""
        try:
            for database in self.target.databases:
                saved, there = database.saved() or {}, database.schema()
                if (saved.get("warehouses"), saved.get("seed")) != (there.warehouses, there.seed):
                    _refuse_laid_out(database)
                    self.display.phase(f"saving the state of {database.name}, from which every point starts")
                    database.save()
                    if there.state == "ran":
                        self.notices.append(f"every point starts from {database.name} as earlier runs had left it")
                elif there.state != "loaded":
                    self.display.phase(f"restoring the state of {database.name}")
                    database.restore()
        except NotSupported as error:
            if self.plan.restores == "always" or not self.plan.layout.is_plain:
                raise
            notice = f"points did not start from the same state: {error}"
            self.notices += [notice] if notice not in self.notices else []

    # Layout

    def _lay_out(self, plan: TpccPlan) -> dict[str, Any] | None:
        """Lay the tables out as the plan wants them; the layout for the point, None where it is the plain one."""
        if plan.layout.is_plain:
            return None
        table, why = str(plan.layout.partition_table), None
        if plan.layout.is_partitioned and table == "hottest":
            why = self._hottest(plan)
            table = why["table"]
        for database in self.target.databases:
            # Whatever becomes of it, the state is no longer the loaded one.
            set_state(database, LAID_OUT)
        return {"databases": apply_layout(self.target, plan, table, self.display), "hottest": why}

    def _hottest(self, plan: TpccPlan) -> dict[str, Any]:
        """The hottest table, the same one for all points of a run."""
        found: dict[str, Any] | None = self.oltp.get("hottest")
        if found is None:
            self.display.phase(f"tracing for {plan.layout.trace_s:g} s which table is the hottest")
            for database in self.target.databases:
                set_state(database, "ran")
            measurement = OltpMeasurement(self, trace_plan(plan), 0)
            try:
                oltp = measurement.run()["oltp"]
            finally:
                measurement.close("trace")
            if measurement.trouble is not None:
                raise measurement.trouble
            found = find_hottest(oltp["tables"], oltp["statements"], plan.layout.trace_s)
            self._keep(hottest=found)
            if self._restores == "always":
                self._start_from_saved()
        if found["sentence"] not in self.notices:
            self.notices.append(found["sentence"])
        return found

    # Notices

    def _note_gaps(self, point: Fact) -> None:
        for gap in point["oltp"]["gaps"]:
            seconds = (gap["to_utc_ns"] - gap["from_utc_ns"]) / 1e9
            began = time.strftime("%H:%M:%S", time.gmtime(gap["from_utc_ns"] / 1e9))
            self.notices.append(
                f"{gap['database']} was away for {format_duration(seconds)} from {began} UTC in {point['id']}:"
                f" {gap['reason']}"
            )

    def _note_ratio(self, point: Fact) -> None:
        """TPM of the client to NOPM follows from the mix, 2.32 for HammerDB's; something is wrong where it does not."""
        weights, oltp = self.plan.mix, point["oltp"]
        count = oltp["nopm"] * point["measured_s"] / 60
        if not weights.new_order or count < RATIO_LEAST_COUNT:
            return
        expected = sum(weights.weights) / weights.new_order / (1 - USER_ROLLBACK_SHARE)
        ratio = oltp["tpm_client"] / oltp["nopm"]
        if abs(ratio / expected - 1) > RATIO_OFF_SHARE:
            self.notices.append(
                f"{point['id']}: TPM is {ratio:.2f} times NOPM, and {expected:.2f} by the mix: transactions of some"
                " kind failed or were held up more than others"
            )

    def _note_efficiency(self, point: Fact) -> None:
        if self.plan.think_scale == 1:
            most_nopm = EFFICIENCY_MOST_NOPM / 10 * point["oltp"]["users"]
            self.notices.append(
                f"{point['oltp']['nopm'] / most_nopm:.1%} of the {most_nopm:,.0f} NOPM that keying and thinking times"
                f" let through with {count_of(point['oltp']['users'], 'user')}"
            )


def _refuse_laid_out(database: Database) -> None:
    """Refuse to take tables for the plain ones that an earlier run laid out in another way."""
    if database.schema().state == LAID_OUT:
        raise UsageError(
            f"{database.name}: an earlier run laid its tables out in another way; bring the plain ones back with the"
            " action: restore, or drop them and load again"
        )


def actions_done(manifest: Fact, part: str) -> list[str]:
    """What a run has done of a part on databases, by its manifest."""
    return list((manifest.get("oltp") or {}).get("actions_done", {}).get(part, ()))


def failure(point: Fact) -> str | None:
    """Why a point is no answer: failed transactions, the generator, the first limit missed, or the rate."""
    if point["errors"]["count"]:
        return "errors"
    if not point["oltp"]["nopm"]:
        return "no new order was committed"
    if point["generator"]["saturated"]:
        return "generator"
    missed = [verdict["limit"] for verdict in point["limits"] if verdict["met"] is False]
    if missed:
        return str(missed[0])
    if point["offered"] and not point["offered"]["sustained"]:
        return "rate not sustained"
    return None
