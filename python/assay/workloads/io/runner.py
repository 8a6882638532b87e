"""The runner: measures points one after the other on a target, under the recorder, into the run folder.

A point that a run folder already holds is not measured again: that is all there is to resuming.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import Interrupted, IoFailed, NotAnswering
from assay.results.limits import Limit, judge, met
from assay.results.run_folder import RunFolder
from assay.results.standstill import judged
from assay.results.steady import Steady, steady_state
from assay.run.search import Axis, search
from assay.targets.storage.session import AnySession, drain
from assay.targets.storage.volume import Volume, takes_no_time
from assay.telemetry.recorder import Recorder, summarise
from assay.telemetry.ticks import batches, tick_sums
from assay.units import count_of, format_duration, format_iops, format_latency
from assay.workloads.io.activities import Workload, load_facts
from assay.workloads.io.figures import FIGURES
from assay.workloads.io.modelled import ModelRun, summarise_model, telemetry_rows
from assay.workloads.io.plan import Plan
from assay.workloads.io.session import deepest_queue, open_session, volumes_for
from assay.workloads.io.ticks import series_rows, tick_length_s

SATURATED_CPU_SHARE = 0.95
"""A load thread at this share of its core, or a host at `SATURATED_HOST_SHARE`, asks no harder."""
SATURATED_HOST_SHARE = 0.98
SETTLING_MOST_S = 300.0
"""Longest time by which the warm-up of a model is prolonged until as much goes to its disks as is written."""
BAND_POINT_MOST_S = 60.0
"""Longer points are asked once, not a dozen times for an error band."""
LAG_LEAST_NS = 200_000
"""Open loop: submissions later than this and than the mean service time at p99 make the schedule a fiction."""
LAG_LEAST_BURSTS_NS = 1_000_000
"""A checkpoint's writes are spread over seconds: a millisecond more or less is no other load."""
SUSTAINED_SHARE = 0.98


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What the display shows of the point being measured."""

    part: str
    title: str
    load: str
    phase: str
    elapsed_s: float
    longest_s: float
    iops: float
    latency_mean_ns: float | None
    error_count: int

    @property
    def line(self) -> str:
        """All of it in one line."""
        left = max(self.longest_s - self.elapsed_s, 0)
        text = (
            f"[{self.part}] {self.title}, {self.load}: {self.phase}, at most {format_duration(left)} left,"
            f" {format_iops(self.iops)} IOPS, {format_latency(self.latency_mean_ns)}"
        )
        return f"{text}, {self.error_count} errors" if self.error_count else text


@dataclass(kw_only=True)
class Runner:
    """Measures points of one part of a run."""

    folder: RunFolder
    recorder: Recorder
    volumes: Sequence[Volume]
    devices: Sequence[str]
    plan: Plan
    part: str
    limits: Sequence[Limit]
    interrupt: threading.Event
    show: Callable[[Progress], None]
    done: Callable[[dict[str, Any]], None]
    finished: dict[str, dict[str, Any]]
    numbers: Iterator[int]
    """Numbers of new points; those of a run that goes on have others."""
    keeps_interrupted: bool = False
    model: ModelRun | None = None
    """The modelled array that all volumes are on; time is then its own."""
    with_bands: bool = False
    """Whether points of a model get error bands as answers do."""
    notices: list[str] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> list[dict[str, Any]]:
        """Measure the plan's workloads; returns the answers of its searches."""
        answers = []
        for workload in self._workloads():
            if self.plan.search.axis == "none":
                self.measure(workload, "grid", 0)
            else:
                answers.append(self._search(workload))
        return answers

    def _workloads(self) -> list[Workload]:
        """The plan's workloads, without blocks the sector forbids where the plan allows to leave them out."""
        workloads = self.plan.workloads()
        if not self.plan.fits_sector:
            return workloads
        sector_bytes = max(volume.sector_bytes for volume in self.volumes)
        fitted = [workload.fitted(sector_bytes) for workload in workloads]
        left_out = sum(1 for before, after in zip(workloads, fitted, strict=True) if before != after)
        if left_out:
            self.notices.append(
                f"{self.part}: blocks that are no multiple of the sector of {sector_bytes} bytes are left out"
                f" of {left_out} workloads"
            )
        return [workload for workload in fitted if workload is not None]

    def _search(self, workload: Workload) -> dict[str, Any]:
        settings = self.plan.search
        first = workload.activities[0]
        workers = first.workers * len(volumes_for(first, self.volumes))
        outstanding = settings.axis == "queue-depth"
        end = min(settings.last_load, float(deepest_queue(first))) if outstanding else settings.last_load
        start = settings.first_load if outstanding else first.rate or settings.first_load
        axis = Axis(
            name="outstanding" if outstanding else "rate",
            # The axis counts outstanding I/Os per worker; answers count them in total.
            start=min(start, end),
            end=end,
            whole=outstanding,
            resolution_share=settings.resolution_share,
            stops_at_plateau=settings.plateau,
        )
        answer = search(
            axis,
            lambda load, purpose, repeat: self.measure(workload.with_load(axis.name, load), purpose, repeat),
            self.failure,
            repeats=settings.repeats,
        )
        for end in (answer["max"], answer["first_failing"]):
            if end is not None and outstanding:
                end["outstanding"] *= workers
        found = {
            "workload": workload.facts(),
            "part": self.part,
            "limits": [limit.text for limit in self.limits],
            **answer,
        }
        return found | self._band_of_answer(found)

    def _band_of_answer(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """How far a model's answer may be off; nothing for what was measured."""
        if self.model is None or self.model.goes_on:
            return {}
        from assay.calibration.bands import band_of_answer

        band = band_of_answer(self.model.configuration, answer, self.points, interrupt=self.interrupt)
        return band.around(answer["max"]["iops"]) if band is not None else {}

    def _band_of_point(self, point: Mapping[str, Any], workload: Workload) -> dict[str, Any]:
        """How far a model's point may be off, where somebody compares points."""
        if self.model is None or self.model.goes_on or not self.with_bands or not point["total"]:
            return {}
        if len(workload.activities) > 1 or point["measured_s"] > BAND_POINT_MOST_S:
            return {}
        from assay.calibration.bands import band_of_point

        band = band_of_point(self.model.configuration, point, interrupt=self.interrupt)
        return band.around(point["total"]["iops"])

    def failure(self, point: Mapping[str, Any]) -> str | None:
        """Why a point is no answer: errors, the generator, the rate, or the first limit missed."""
        if point["errors"]["count"]:
            return "errors"
        if not point["total"]:
            return "no I/O ended"
        if point["generator"]["saturated"]:
            return "generator"
        missed = [verdict["limit"] for verdict in point["limits"] if verdict["met"] is False]
        if missed:
            return str(missed[0])
        if point["offered"] and not point["offered"]["sustained"]:
            return "rate not sustained"
        return None

    def measure(self, workload: Workload, purpose: str, repeat: int) -> dict[str, Any]:
        """Measure one point, or take it from the run folder if it is there.

        Raises
        ------
        Interrupted
            The point is not kept.
        NotAnswering
            The point is kept with what was measured until then.
        """
        key = self._key(workload, purpose, repeat)
        point = self.finished.get(key)
        if point is None:
            point = self._measure_new(workload, key, purpose, repeat)
            self.finished[key] = point
        self.points.append(point)
        self.done(point)
        return point

    def _key(self, workload: Workload, purpose: str, repeat: int) -> str:
        target = [(volume.spec.kind, str(volume.spec.path), volume.roles, volume.size_bytes) for volume in self.volumes]
        asked = {
            "workload": workload.model_dump(mode="json"),
            "timing": self.plan.timing.model_dump(mode="json"),
            "target": target,
            "part": self.part,
            # A grid or search point is the same whichever asked for it; a repeat is another.
            "repeat": repeat if purpose == "repeat" else 0,
            "seed": self.plan.seed,
            **({"model": self.model.key} if self.model is not None else {}),
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _measure_new(self, workload: Workload, key: str, purpose: str, repeat: int) -> dict[str, Any]:
        if self.interrupt.is_set():
            raise Interrupted("interrupted")
        self._rest()
        measurement = Measurement(self, workload, repeat)
        point_id = f"p{next(self.numbers):04d}"
        try:
            measured = measurement.run()
        finally:
            writer = self.folder.series_writer()
            writer.write(measurement.series_rows)
            writer.close_segment(point_id)
        point = {
            "id": point_id,
            "key": key,
            "part": self.part,
            "repeat": repeat,
            "purpose": purpose,
            "workload": workload.facts(),
            "load": self._load_facts(workload),
            **measured,
        }
        point["limits"] = judge(self.limits, point, FIGURES)
        point["met"] = met(point["limits"])
        if purpose == "grid" and measurement.trouble is None:
            point |= self._band_of_point(point, workload)
        self.folder.append_point(point)
        if measurement.trouble is not None:
            self.points.append(point)
            raise measurement.trouble
        return point

    def _rest(self) -> None:
        """Leave the device alone between points, as the published SQLIO runs did; a model begins afresh anyway."""
        if self.model is not None:
            return
        if self.plan.timing.rest_s and self.finished and self.interrupt.wait(self.plan.timing.rest_s):
            raise Interrupted("interrupted")

    def _load_facts(self, workload: Workload) -> dict[str, Any]:
        if len(workload.activities) > 1:
            return {"kind": "mixed"}
        first = workload.activities[0]
        return load_facts(first, len(volumes_for(first, self.volumes)))


class Measurement:
    """One point being measured: warm-up, steady state, end, figures."""

    def __init__(self, runner: Runner, workload: Workload, repeat: int) -> None:
        self.runner = runner
        self.workload = workload
        self.timing = runner.plan.timing
        self.interval_s = tick_length_s(self.timing)
        self.seed = runner.plan.seed + repeat
        self.ticks: list[dict[str, Any]] = []
        self.series_rows: list[dict[str, Any]] = []
        self.telemetry_rows: list[dict[str, Any]] = []
        self.trouble: Exception | None = None
        self.ended_by = "time"
        self.complete_ticks = 0
        self.steady = Steady(reached=False, slope_share=None, half_width_share=None)
        self.settled = True
        self.warmup_s = self.timing.warmup_s

    def run(self) -> dict[str, Any]:
        """Run the workload until steady or out of time; returns the measured part of the point."""
        runner, timing = self.runner, self.timing
        if runner.model is None:
            runner.recorder.sample()
            runner.recorder.drain()
        session = open_session(
            self.workload,
            runner.volumes,
            interval_s=self.interval_s,
            io_timeout_s=timing.io_timeout_s,
            seed=self.seed,
            backend=runner.plan.backend,
            model=runner.model,
        )
        model = runner.model
        self.started_ns = time.time_ns() if model is None else model.epoch_ns + model.elapsed_ns
        warmup_ticks = round(timing.warmup_s / self.interval_s)
        from_tick = warmup_ticks
        try:
            from_tick = self._watch(session, warmup_ticks)
        finally:
            if runner.model is None:
                runner.recorder.sample()
            self._take_telemetry()
        stuck = self.trouble is not None and not isinstance(self.trouble, Interrupted)
        report = None
        for report in () if stuck else drain(session, timing.io_timeout_s + 5):
            self._note(report)
        for volume in runner.volumes:
            if volume.hold is not None and not stuck:
                volume.hold.end_writing()
        clock = "wall" if model is None else "virtual"
        rows = series_rows(self.ticks, self.started_ns, self.interval_s, self.workload, runner.volumes, clock=clock)
        self.series_rows += rows + self.telemetry_rows
        if model is not None and report is not None:
            model.elapsed_ns += report["now_ns"]
        return self._figures(session, report, from_tick)

    def _watch(self, session: AnySession, warmup_ticks: int) -> int:
        """Follow the session to its end; returns the first tick that counts."""
        timing = self.timing
        window_ticks = max(round(timing.min_s / self.interval_s), 1)
        settling_ticks = warmup_ticks + round(SETTLING_MOST_S / self.interval_s)
        last_tick = warmup_ticks + round((timing.duration_s or timing.max_s) / self.interval_s)
        marked = False
        while True:
            if self.runner.model is None:
                time.sleep(min(self.interval_s, 0.2) / 2)
            report = json.loads(session.poll())
            self._note(report)
            self._show(warmup_ticks)
            if self.runner.interrupt.is_set():
                if not self.runner.keeps_interrupted:
                    deque(drain(session, timing.io_timeout_s), maxlen=0)
                    raise Interrupted("interrupted; the point that was running is not kept")
                self.ended_by = "interrupted"
                self.trouble = Interrupted("interrupted; the point holds what was measured until then")
            if self.trouble is not None:
                return min(warmup_ticks, self.complete_ticks)
            done = self.complete_ticks
            if not marked and not self.settled and warmup_ticks <= done < settling_ticks:
                warmup_ticks, last_tick = done + 1, last_tick + done + 1 - warmup_ticks
                self.warmup_s = warmup_ticks * self.interval_s
            if done > warmup_ticks and not marked:
                session.measure_from(warmup_ticks)
                marked = True
            from_tick = warmup_ticks
            if timing.duration_s is None and done >= warmup_ticks + window_ticks:
                from_tick = done - window_ticks
                self.steady = steady_state(self._tracked(from_tick, done))
                if self.steady.reached:
                    self.ended_by = "steady"
                    return from_tick
            if done >= last_tick:
                if timing.duration_s is not None:
                    self.steady = steady_state(self._tracked(warmup_ticks, done))
                return warmup_ticks
            if report["state"] == "ended":
                return from_tick

    def _note(self, report: Mapping[str, Any]) -> None:
        self.ticks += report["ticks"]
        self.complete_ticks = report["complete_ticks"]
        self.settled = report.get("settled", True)
        self._take_telemetry()
        self.telemetry_rows += telemetry_rows(report, self.started_ns)
        if report["state"] == "not-answering":
            self.ended_by = "not-answering"
            names = ", ".join(volume.name for volume in self.runner.volumes)
            self.trouble = NotAnswering(f"{names}: stopped answering: {report['detail']}")
        elif report["state"] == "failed":
            self.ended_by = "failed"
            self.trouble = IoFailed(str(report["detail"]))

    def _take_telemetry(self) -> None:
        # A model's time is not the recorder's; its members record themselves.
        if self.runner.model is None:
            self.telemetry_rows += self.runner.recorder.drain()

    def _tracked(self, from_tick: int, to_tick: int) -> list[float]:
        """What must be steady: throughput in a closed loop; latency in an open one, whose throughput is given."""
        sums = tick_sums(self.ticks, from_tick, to_tick)
        if self.workload.activities[0].is_open:
            return [total["latency_ns"] / total["count"] for total in sums if total["count"]]
        return [total["count"] / self.interval_s for total in sums]

    def _show(self, warmup_ticks: int) -> None:
        done = self.complete_ticks
        recent = tick_sums(self.ticks[-200:], max(done - max(round(1 / self.interval_s), 1), 0), done)
        count = sum(total["count"] for total in recent)
        self.runner.show(
            Progress(
                part=self.runner.part,
                title=self.workload.title,
                load=describe_load(self.runner._load_facts(self.workload)),
                phase="warm-up" if done < warmup_ticks else "measuring",
                elapsed_s=done * self.interval_s,
                longest_s=self.timing.longest_s,
                iops=count / max(len(recent) * self.interval_s, self.interval_s),
                latency_mean_ns=sum(total["latency_ns"] for total in recent) / count if count else None,
                error_count=sum(tick["error_count"] for tick in self.ticks),
            )
        )

    def _figures(self, session: AnySession, report: Mapping[str, Any] | None, from_tick: int) -> dict[str, Any]:
        to_tick = max(self._end_tick(from_tick), from_tick + 1)
        seconds = (to_tick - from_tick) * self.interval_s
        fullest = self._fullest_worker_share(from_tick, to_tick, seconds)
        measured: dict[str, Any] = json.loads(session.point(from_tick, to_tick, fullest))
        drained = json.loads(session.drained())
        _add_errors(measured["errors"], drained["errors"])
        start_ns = self.started_ns + round(from_tick * self.interval_s * 1e9)
        end_ns = self.started_ns + round(to_tick * self.interval_s * 1e9)
        telemetry = summarise(self.telemetry_rows, start_ns, end_ns, devices=self.runner.devices)
        generator = measured.pop("generator")
        if self.runner.model is not None:
            # On a virtual clock the generator takes no time and is never late.
            generator |= {"cpu_share": None, "fullest_worker_share": None, "schedule_lag_p99_ns": None, "gaps": None}
            measured["array"] = summarise_model(self.telemetry_rows, start_ns, end_ns)
        lag_ns = generator["schedule_lag_p99_ns"]
        service = measured["service_latency_ns"]
        host_share = telemetry.get("cpu_share")
        if self.runner.model is not None:
            saturated = False
        elif lag_ns is not None:
            rated = any(activity.rate is not None for activity in self.workload.activities)
            least_ns = LAG_LEAST_NS if rated else LAG_LEAST_BURSTS_NS
            saturated = lag_ns > max(least_ns, service["mean"] if service else 0)
        else:
            saturated = fullest >= SATURATED_CPU_SHARE or (host_share or 0) >= SATURATED_HOST_SHARE
            saturated = saturated or all(takes_no_time(volume) for volume in self.runner.volumes)
        steady = {
            "reached": self.steady.reached,
            "window_s": seconds,
            "slope_share": self.steady.slope_share,
            "half_width_share": _finite(self.steady.half_width_share),
        }
        return {
            "started_utc_ns": self.started_ns,
            "measured_from_utc_ns": start_ns,
            "measured_to_utc_ns": end_ns,
            "clock": "wall" if self.runner.model is None else "virtual",
            "warmup_s": self.warmup_s,
            "measured_s": seconds,
            "ended_by": self.ended_by,
            **measured,
            "offered": self._offered(report, measured, seconds),
            "outside_window": {"count": drained["count"], "longest_ns": drained["max_ns"]},
            "steady": steady,
            "generator": {**generator, "clock_ns": session.clock_cost_ns(), **judged(generator["gaps"], saturated)},
            "engine": json.loads(session.engine()),
            "batches": batches(self.ticks, from_tick, to_tick, self.interval_s),
            "telemetry": telemetry,
        }

    def _end_tick(self, from_tick: int) -> int:
        """The first tick after the window: no later than where the watch ended, so that the drain stays out."""
        if self.timing.duration_s is not None:
            return min(self.complete_ticks, from_tick + round(self.timing.duration_s / self.interval_s))
        if self.ended_by == "steady":
            return min(self.complete_ticks, from_tick + max(round(self.timing.min_s / self.interval_s), 1))
        return min(self.complete_ticks, from_tick + round(self.timing.max_s / self.interval_s))

    def _fullest_worker_share(self, from_tick: int, to_tick: int, seconds: float) -> float:
        cpu_ns: dict[tuple[int, int], float] = {}
        for tick in self.ticks:
            if from_tick <= tick["tick"] < to_tick:
                group = (tick["activity"], tick["volume"])
                workers = self.workload.activities[tick["activity"]].workers
                cpu_ns[group] = cpu_ns.get(group, 0.0) + tick["cpu_ns"] / workers
        return max(cpu_ns.values(), default=0.0) / 1e9 / seconds

    def _offered(
        self, report: Mapping[str, Any] | None, measured: Mapping[str, Any], seconds: float
    ) -> dict[str, Any] | None:
        """Whether an open loop got the rate it asked for, allowing for four standard deviations of Poisson counts."""
        first = self.workload.activities[0]
        if first.rate is None or len(self.workload.activities) > 1:
            return None
        detail = report["detail"] if report is not None and isinstance(report["detail"], dict) else {}
        iops = measured["total"]["iops"] if measured["total"] else 0.0
        slack = max((1 - SUSTAINED_SHARE) * first.rate, 4 * (first.rate / seconds) ** 0.5)
        return {
            "rate": first.rate,
            "unfinished": detail.get("unfinished", 0),
            "oldest_unfinished_ns": detail.get("oldest_unfinished_ns", 0),
            "sustained": iops >= first.rate - slack,
        }


def describe_load(load: Mapping[str, Any]) -> str:
    """A load for people."""
    if "queue_depth" in load:
        return f"queue depth {load['queue_depth']}" + (f" x {load['workers']}" if load["workers"] > 1 else "")
    if "rate" in load:
        what = "transactions" if "users" in load else "I/Os"
        return f"{load['rate']:,.0f} {what} per s, {load['arrivals']}"
    return count_of(load["users"], "user") if "users" in load else "mixed"


def _add_errors(errors: dict[str, Any], more: Mapping[str, Any]) -> None:
    errors["count"] += more["count"]
    for kind, count in more["kinds"].items():
        errors["kinds"][kind] = errors["kinds"].get(kind, 0) + count


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value
