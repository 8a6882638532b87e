"""One point of I/O being measured: warm-up, steady state, end, figures."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from assay import _core
from assay.base.errors import Interrupted, IoFailed, NotAnswering
from assay.base.progress import Gauge, Moment
from assay.measure import judge
from assay.measure.core_reports import (
    CoreFigures,
    CoreTick,
    SessionReport,
    drained_report,
    engine_report,
    figures_report,
    session_report,
)
from assay.measure.point import measured_point
from assay.measure.processor_unit import cpu_unit_ns
from assay.measure.recent import RecentPercentiles
from assay.measure.window import Window
from assay.record.phases import Rates
from assay.record.points import describe_load
from assay.record.shapes.point import Errors, Generator, Latency, Offered
from assay.targets.files.formatting import format_namespace
from assay.targets.files.purge import discard
from assay.targets.files.session import AnySession, drain
from assay.targets.files.volume import OpenVolume, takes_no_time
from assay.telemetry.columns import SeriesColumns
from assay.telemetry.summary import summarise
from assay.telemetry.ticks import DIRECTIONS, latency_gauges, sides_mean_ns, tick_sums
from assay.workloads.io.activities import IoWorkloadSpec
from assay.workloads.io.filling import FILLING_TIMING, Filling
from assay.workloads.io.plan import IoTiming
from assay.workloads.io.session import open_session
from assay.workloads.io.ticks import add_session, failed_to_the_end, tick_length_s
from assay.workloads.job import PartContext
from assay.workloads.modelled import ModelRun, add_telemetry, summarise_model
from assay.workloads.plan import Part
from assay.workloads.steps import Ask

if TYPE_CHECKING:
    from assay.record.rows import Rows

SETTLING_MAX_S = 300.0
"""Longest time by which the warm-up of a model is prolonged until as much goes to its disks as is written."""
IOS_AT_ONCE = 10_000
"""I/Os of a model between two looks at it, some 20 ms: progress is shown, and what is hopeless is broken off."""
LAG_MIN_NS = 200_000
"""Open loop: submissions later than this and than the mean service time at p99 make the schedule a fiction."""
LAG_MIN_BURSTS_NS = 1_000_000
"""A checkpoint's writes are spread over seconds: a millisecond more or less is no other load."""


class IoFigures(CoreFigures):
    """Figures of a point as far as the job reads them."""

    ended_by: str


class IoTimed(Protocol):
    """What a measurement knows of the plan."""

    @property
    def seed(self) -> int:
        """Decides everything that is random."""
        ...

    @property
    def backend(self) -> str:
        """How I/Os are asked for."""
        ...


class IoAtWork(Protocol):
    """What a measurement knows of the part of I/O that asks for it."""

    part: Part[Any]
    context: PartContext
    volumes: Sequence[OpenVolume]
    devices: Sequence[str]
    model: ModelRun | None
    virtual_ns: int

    @property
    def plan(self) -> IoTimed:
        """The plan of the part."""
        ...


class Measurement:
    """One point being measured: warm-up, steady state, end, figures."""

    awaits_rest = True
    """Whether the warm-up of a model lasts until its caches rest."""

    def __init__(
        self, opened: IoAtWork, ask: Ask, repeat: int, *, timing: IoTiming, interval_s: float | None = None
    ) -> None:
        self.opened = opened
        self.filling: Filling | None = ask.what if isinstance(ask.what, Filling) else None
        self.workload: IoWorkloadSpec = ask.what if self.filling is None else self.filling.workload
        self.load = ask.load
        self.timing = timing
        self.interval_s = interval_s or tick_length_s(self.timing)
        if self.filling is not None:
            self.timing = FILLING_TIMING.model_copy(update={"io_timeout_s": self.timing.io_timeout_s})
            self.interval_s = self.filling.interval_s
        self.seed = opened.plan.seed + repeat
        self.ticks: list[CoreTick] = []
        self.ended_count = 0
        self.error_count = 0
        self.written_bytes = 0
        self.columns = SeriesColumns()
        self.telemetry: list[Rows] = []
        self.series: list[Rows] = []
        self.error: Exception | None = None
        self.complete_ticks = 0
        self.settled = True
        self.percentiles = RecentPercentiles({side: side for side in DIRECTIONS}, limit="{side}.{statistic}")
        self.window = Window(
            started_ns=0,
            interval_s=self.interval_s,
            clock="wall" if opened.model is None else "virtual",
            warmup_s=self.timing.warmup_s,
        )
        if self.filling is not None:
            self.window.steady = None

    @property
    def rates(self) -> Rates:
        """I/Os that ended, tick by tick."""
        sums = tick_sums(self.ticks, 0, self.complete_ticks)
        return Rates(
            started_ns=self.window.started_ns,
            interval_s=self.interval_s,
            counts=[tick["count"] for tick in sums],
            counted_from=round(self.window.warmup_s / self.interval_s),
        )

    def run(self) -> IoFigures:
        """Run the workload until steady or out of time; returns the measured part of the point."""
        opened, timing = self.opened, self.timing
        if opened.model is None:
            opened.context.recorder.sample()
            opened.context.recorder.drain()
        if opened.model is None:
            opened.context.begin_together()
        self._purge()
        session = self._begun()
        model = opened.model
        self.window.started_ns = time.time_ns() if model is None else model.epoch_ns + model.elapsed_ns
        warmup_ticks = round(timing.warmup_s / self.interval_s)
        self.window.from_tick = warmup_ticks
        opened.context.under_load.begin()
        try:
            self.window.from_tick = self._watch(session, warmup_ticks)
        finally:
            if opened.model is None:
                opened.context.recorder.sample()
            self._take_telemetry()
        stuck = self.error is not None and not isinstance(self.error, Interrupted)
        report = None
        for report in () if stuck else self._drained(session):
            self._note(report)
        for volume in opened.volumes:
            if volume.hold is not None and not stuck:
                volume.hold.end_writing()
        self.telemetry = self.columns.take()
        if opened.context.keeps_series:
            window = self.window
            add_session(
                self.columns,
                self.ticks,
                window.started_ns,
                self.interval_s,
                self.workload,
                opened.volumes,
                clock=window.clock,
            )
        self.series = self.telemetry + self.columns.take()
        if model is not None and report is not None:
            model.elapsed_ns += report["now_ns"]
            opened.virtual_ns = model.elapsed_ns
        figures = self._figures(session, report)
        if self.error is None and figures["total"]:
            self._note_failed(figures)
        return figures

    def _begun(self) -> AnySession:
        """The session, begun."""
        opened = self.opened
        return open_session(
            self.workload,
            opened.volumes,
            interval_s=self.interval_s,
            io_timeout_s=self.timing.io_timeout_s,
            seed=self.seed,
            backend=opened.plan.backend,
            limits=self.filling.limits if self.filling is not None else (),
            model=opened.model,
        )

    def _purge(self) -> None:
        """Empty the volumes where what is written to them begins with that."""
        if self.filling is None or not self.filling.purge:
            return
        self.opened.context.display.phase("purging")
        for volume in self.opened.volumes:
            assert volume.hold is not None
            if self.filling.purge == "format":
                format_namespace(volume.hold)
                continue
            discard(volume.hold, volume.size_bytes, self.opened.context.interrupt)

    def _drained(self, session: AnySession) -> Iterator[SessionReport]:
        for report in drain(session, self.timing.io_timeout_s + 5):
            yield cast("SessionReport", report)

    def _note_failed(self, figures: IoFigures) -> None:
        """A volume that failed to the end is no storage any more, however well the point began."""
        volumes = [self.opened.volumes[number] for number in sorted(failed_to_the_end(self.ticks, self.complete_ticks))]
        if not volumes:
            return
        self.window.ended_by = figures["ended_by"] = "failed"
        names = ", ".join(volume.name for volume in volumes)
        kinds = ", ".join(kind for kind, count in figures["errors"]["kinds"].items() if count)
        self.error = IoFailed(f"{names}: every I/O failed until the point's end ({kinds}); see the kernel log (dmesg)")
        try:
            for volume in volumes:
                if volume.hold is not None:
                    volume.hold.check()
        except IoFailed as gone:
            self.error = gone

    def _watch(self, session: AnySession, warmup_ticks: int) -> int:
        """Follow the session to its end; returns the first tick that counts."""
        timing = self.timing
        window_ticks = max(round(timing.min_s / self.interval_s), 1)
        settling_ticks = warmup_ticks + round(SETTLING_MAX_S / self.interval_s)
        last_tick = warmup_ticks + round((timing.duration_s or timing.max_s) / self.interval_s)
        marked = False
        while True:
            if isinstance(session, _core.ModelSession):
                decides_at = warmup_ticks
                if marked:
                    decides_at = last_tick if timing.duration_s is not None else warmup_ticks + window_ticks
                polled = session.poll(self._ticks_until(decides_at))
            else:
                time.sleep(min(self.interval_s, 0.2) / 2)
                polled = session.poll()
            report = session_report(polled)
            self._note(report)
            self._show(session, warmup_ticks)
            if self.opened.context.interrupt.is_set():
                if not self.opened.context.keeps_interrupted:
                    deque(drain(session, timing.io_timeout_s), maxlen=0)
                    raise Interrupted("interrupted; the point that was running is not kept")
                self.window.ended_by = "interrupted"
                self.error = Interrupted("interrupted; the point holds what was measured until then")
            if self.error is not None:
                return min(warmup_ticks, self.complete_ticks)
            done = self.complete_ticks
            if not marked and not self.settled and warmup_ticks <= done < settling_ticks:
                warmup_ticks, last_tick = done + 1, last_tick + done + 1 - warmup_ticks
                self.window.warmup_s = warmup_ticks * self.interval_s
            if done > warmup_ticks and not marked:
                session.measure_from(warmup_ticks)
                marked = True
            from_tick = warmup_ticks
            if timing.duration_s is None and done >= warmup_ticks + window_ticks:
                from_tick = done - window_ticks
                if self.window.judge_steady(self._tracked(from_tick, done)).reached:
                    self.window.ended_by = "steady"
                    return from_tick
            if done >= last_tick:
                if timing.duration_s is not None:
                    self.window.judge_steady(self._tracked(warmup_ticks, done))
                return warmup_ticks
            if report["state"] == "ended":
                return from_tick

    def _ticks_until(self, decides_at: int) -> int:
        """Ticks of a model until one that decides something, but not so many that nobody could interrupt."""
        done = self.complete_ticks
        at_once = IOS_AT_ONCE * done // max(self.ended_count, 1)
        return max(min(decides_at - done, at_once), 1)

    def _note(self, report: SessionReport) -> None:
        self.ticks += report["ticks"]
        self.ended_count += sum(tick["read"]["count"] + tick["write"]["count"] for tick in report["ticks"])
        self.error_count += sum(tick["error_count"] for tick in report["ticks"])
        self.written_bytes += sum(tick["write"]["bytes"] for tick in report["ticks"])
        self.complete_ticks = report["complete_ticks"]
        # What fills a model has to write its bytes, however far its caches lag behind.
        self.settled = self.filling is not None or not self.awaits_rest or report.get("settled", True)
        self._take_telemetry()
        add_telemetry(self.columns, report, self.window.started_ns)
        if report["state"] == "not-answering":
            self.window.ended_by = "not-answering"
            names = ", ".join(volume.name for volume in self.opened.volumes)
            self.error = NotAnswering(f"{names}: stopped answering: {report['detail']}")
        elif report["state"] == "failed":
            self.window.ended_by = "failed"
            self.error = IoFailed(str(report["detail"]))

    def _take_telemetry(self) -> None:
        # A model's time is not the recorder's; its members record themselves.
        if self.opened.model is None:
            self.opened.context.recorder.drain(self.columns)

    def _tracked(self, from_tick: int, to_tick: int) -> list[float]:
        """What must be steady: throughput in a closed loop; latency in an open one, whose throughput is given."""
        sums = tick_sums(self.ticks, from_tick, to_tick)
        if self.workload.activities[0].is_open:
            return [total["latency_ns"] / total["count"] for total in sums if total["count"]]
        return [total["count"] / self.interval_s for total in sums]

    def _show(self, session: AnySession, warmup_ticks: int) -> None:
        done = self.complete_ticks
        recent = tick_sums(self.ticks[-200:], max(done - max(round(1 / self.interval_s), 1), 0), done)
        count = sum(total["count"] for total in recent)
        self.opened.context.display.point(
            Moment(
                part=self.opened.part.name,
                what=f"{self.workload.title}, {describe_load(self.load)}",
                phase=self._phase(warmup_ticks),
                left_s=max(self.timing.longest_s - done * self.interval_s, 0) if self.filling is None else None,
                is_most=self.filling is None,
                done_share=self.written_bytes / self.filling.bytes_in_all if self.filling is not None else None,
                gauges=(
                    Gauge(
                        name="iops",
                        title="IOPS",
                        value=count / (len(recent) * self.interval_s) if recent else None,
                        unit="iops",
                        limit="total.iops",
                    ),
                    *latency_gauges(sides_mean_ns(self.ticks[-200:], done - len(recent), done)),
                ),
                percentiles=self.percentiles.gauges(
                    lambda first, last: session.point(first, last, 0.0), done - len(recent), done
                ),
                errors=(self.error_count, "errors"),
            )
        )

    def _phase(self, warmup_ticks: int) -> str:
        if self.filling is not None:
            return "preconditioning"
        return "warm-up" if self.complete_ticks < warmup_ticks else "measuring"

    def _figures(self, session: AnySession, report: SessionReport | None) -> IoFigures:
        window, context, model = self.window, self.opened.context, self.opened.model
        window.to_tick = max(self._end_tick(window.from_tick), window.from_tick + 1)
        if model is None and self.error is None:
            window.from_tick, window.to_tick = context.window_of_all(
                window.started_ns, self.interval_s, window.from_tick, window.to_tick
            )
        fullest = self._fullest_worker_share()
        figures = figures_report(session.point(window.from_tick, window.to_tick, fullest))
        drained = drained_report(session.drained())
        _add_errors(figures["errors"], drained["errors"])
        telemetry = summarise(self.telemetry, window.start_ns, window.end_ns, devices=self.opened.devices)
        generator: Generator = figures.pop("generator") | {"clock_ns": session.clock_cost_ns()}
        saturated = False
        if model is None:
            saturated = self._is_saturated(generator, figures["service_latency_ns"], telemetry.get("cpu_share"))
            ended = figures["total"]["count"] if figures["total"] else 0
            generator |= {"cpu_ns_per_io": self._cpu_ns_per_io(ended), "cpu_unit_ns": cpu_unit_ns()}
        else:
            # On a virtual clock the generator takes no time and is never late.
            generator |= {"cpu_share": None, "fullest_worker_share": None, "schedule_lag_p99_ns": None, "gaps": None}
            figures["array"] = summarise_model(self.telemetry, window.start_ns, window.end_ns, model.configuration)
        measured = measured_point(
            window,
            {**figures, "engine": engine_report(session.engine())},
            generator=judge.generator(generator, saturated=saturated),
            offered=self._offered(report, figures, drained["count"]),
            batches=window.batches(self.ticks),
            telemetry=telemetry,
            outside=(drained["count"], drained["max_ns"]),
        )
        return cast("IoFigures", measured)

    def _is_saturated(self, generator: Generator, service: Latency | None, host_share: float | None) -> bool:
        lag_ns = generator["schedule_lag_p99_ns"]
        if lag_ns is not None:
            rated = any(activity.rate is not None for activity in self.workload.activities)
            least_ns = LAG_MIN_NS if rated else LAG_MIN_BURSTS_NS
            return judge.is_late(lag_ns, service["mean"] if service else None, least_ns)
        busy = judge.is_busy(generator["fullest_worker_share"], host_share)
        return busy or all(takes_no_time(volume) for volume in self.opened.volumes)

    def _end_tick(self, from_tick: int) -> int:
        """The first tick after the window: no later than where the watch ended, so that the drain stays out."""
        if self.timing.duration_s is not None:
            return min(self.complete_ticks, from_tick + round(self.timing.duration_s / self.interval_s))
        if self.window.ended_by == "steady":
            return min(self.complete_ticks, from_tick + max(round(self.timing.min_s / self.interval_s), 1))
        return min(self.complete_ticks, from_tick + round(self.timing.max_s / self.interval_s))

    def _fullest_worker_share(self) -> float:
        window = self.window
        cpu_ns: dict[tuple[int, int], float] = {}
        for tick in self._window_ticks():
            group = (tick["activity"], tick["volume"])
            workers = self.workload.activities[tick["activity"]].workers
            cpu_ns[group] = cpu_ns.get(group, 0.0) + tick["cpu_ns"] / workers
        return max(cpu_ns.values(), default=0.0) / 1e9 / window.seconds

    def _window_ticks(self) -> list[CoreTick]:
        """Ticks of the window, of each activity and volume its own."""
        return [tick for tick in self.ticks if self.window.from_tick <= tick["tick"] < self.window.to_tick]

    def _cpu_ns_per_io(self, ended: int) -> float | None:
        """CPU time of the load threads for each I/O of the window; None where none ended, or no CPU time is known."""
        cpu_ns = sum(tick["cpu_ns"] for tick in self._window_ticks())
        return cpu_ns / ended if ended and cpu_ns else None

    def _offered(self, report: SessionReport | None, figures: CoreFigures, outside: int) -> Offered | None:
        """Whether an open loop got the rate it asked for; `outside` counts the I/Os that ended after the window."""
        del outside
        rates = [activity.rate for activity in self.workload.activities]
        asked = [rate for rate in rates if rate is not None]
        if len(asked) < len(rates):
            return None
        detail = report["detail"] if report is not None else None
        left = detail if isinstance(detail, dict) else None
        return judge.offered(
            sum(asked),
            figures["total"]["iops"] if figures["total"] else 0.0,
            self.window.seconds,
            unfinished=left["unfinished"] if left else 0,
            oldest_ns=left["oldest_unfinished_ns"] if left else 0,
        )


def _add_errors(errors: Errors, more: Errors) -> None:
    errors["count"] += more["count"]
    for kind, count in more["kinds"].items():
        errors["kinds"][kind] = errors["kinds"].get(kind, 0) + count
