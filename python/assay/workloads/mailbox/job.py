"""A part of mailboxes at work: databases are made once, loads measured on them, and every page verified in the end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.base.errors import AssayError, NotAnswering
from assay.base.progress import Gauge, Moment
from assay.measure import judge
from assay.measure.core_reports import CoreFigures, engine_report, figures_report
from assay.measure.point import measured_point
from assay.measure.window import Window
from assay.record.judgement import UNDECIDED, concerns, together
from assay.record.shapes.point import Answer, Generator, Load, Point
from assay.targets.answering import answer_within
from assay.targets.files.target import (
    STORED_IN_FILES,
    StorageTarget,
    discard_created,
    make_file,
    reserving_most_s,
    restore_sizes,
)
from assay.targets.files.volume import begin_io
from assay.telemetry.summary import summarise
from assay.telemetry.ticks import latency_gauges, sides_mean_ns, tick_sums
from assay.workloads.job import Job, PartContext
from assay.workloads.mailbox.core_plan import cache_bytes, core_plan, tick_s
from assay.workloads.mailbox.layout import PlacedDatabase, place, seats_of_volumes
from assay.workloads.mailbox.plan import MailboxPlan, too_many
from assay.workloads.mailbox.result import (
    ACTIVITIES,
    database_figures,
    has_achieved,
    operations,
    peaks,
    profile,
    ratios,
    server_figures,
    server_passed,
)
from assay.workloads.mailbox.running import Running
from assay.workloads.mailbox.shapes import (
    Backup,
    BadPage,
    Mailbox,
    MailboxDone,
    MailboxEnd,
    MailboxTest,
    Recovery,
    done_of,
)
from assay.workloads.modelled import ModelRun, summarise_model
from assay.workloads.plan import Part
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps

if TYPE_CHECKING:
    from assay.record.rows import Rows
    from assay.targets.files.safety import ExaminedVolume
    from assay.workloads.mailbox.core_report import DatabaseCounts, MailboxReport

SETTLING_MAX_S = 300.0
"""Longest time by which the first warm-up is prolonged until caches are as full of changes as they get."""
STARTS_BELOW, ENDS_ABOVE = 8.0, 1024.0
"""A search begins at the target over the one, and ends at the target times the other, unless it is told."""


class MailboxJob(Job):
    """A part of mailboxes on files, devices or a modelled array."""

    plan: MailboxPlan
    target: StorageTarget

    def __init__(self, part: Part[MailboxPlan], target: StorageTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        self.devices = target.device_names
        self.placed: list[PlacedDatabase] = place(self.plan, seats_of_volumes(target.volumes))
        self.running: Running | None = None
        self.model: ModelRun | None = None
        if target.array is not None:
            self.model = ModelRun(configuration=target.array, epoch_ns=context.epoch_ns)
        self.owner = 0
        self.is_over = threading.Event()
        self.settled = False
        self.is_undecided = False

    @property
    def interval_s(self) -> float:
        """Length of a tick."""
        return tick_s(self.plan)

    # Steps

    def steps(self) -> Steps:
        """Measure the load or search for the largest, then write and verify everything."""
        settings = self.plan.search
        if settings.axis == "none":
            point: Point = yield Measure(ask=self._ask(self.plan.target_iops))
            self._finish(point, point["id"])
        else:
            target = self.plan.target_iops
            axis = Axis(
                name="rate",
                start=settings.start or target / STARTS_BELOW,
                end=settings.end or target * ENDS_ABOVE,
                whole=False,
                resolution_share=settings.resolution_share,
            )
            asked = self._ask(target)
            answer: Answer = yield Search(axis=axis, ask=self._ask, workload=asked.workload, repeats=settings.repeats)
            best = cast("MailboxEnd | None", answer["max"])
            self.is_undecided = best is None and answer["limited_by"] in UNDECIDED
            if best and (notice := too_many(best["mailboxes"] or 0.0, self.plan.servers)):
                self.context.note(notice)
            named = best["point_id"] if best else None
            self._finish(next((one for one in self.context.points if best and one["id"] == named), None), named)

    def _ask(self, rate: float) -> Ask:
        target = [
            (volume.spec.kind, str(volume.spec.path), volume.roles, volume.size_bytes) for volume in self.target.volumes
        ]
        plan = self.plan.model_dump(mode="json", exclude={"title", "name", "limits", "user_limits", "search"})
        workload: MailboxTest = {"kind": self.plan.kind, "name": self.plan.title, "test": self.plan.test}
        load: Load = {"kind": self.plan.kind}
        if self.plan.is_loaded:
            load |= {"rate": rate, "arrivals": "poisson"}
        return Ask(
            key={
                "plan": plan,
                "rate": rate,
                "target": target,
                **({"model": self.model.key} if self.model is not None else {}),
            },
            workload=workload,
            load=load,
            what=rate,
        )

    # Points

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure a load, or all of a backup or recovery.

        Raises
        ------
        Interrupted, IoFailed, NotAnswering
            No point is kept.
        """
        del repeat
        running = self._started(ask.what)
        if self.model is None:
            self.context.recorder.sample()
        try:
            if self.plan.is_loaded:
                began, from_tick, before = self._warmed_up(running, ask.what)
                to_tick = self._measured(running, from_tick)
            else:
                from_tick, to_tick, before = self._whole(running)
                began = from_tick
        finally:
            if self.model is None:
                self.context.recorder.sample()
            writer = self.context.folder.series_writer()
            series = running.take_series()
            writer.write(series)
            writer.close_segment(point_id)
        window = Window(
            started_ns=running.started_ns,
            interval_s=self.interval_s,
            from_tick=from_tick,
            to_tick=to_tick,
            clock=running.clock,
            # A cache that settles takes longer than what was asked for.
            warmup_s=(from_tick - began) * self.interval_s,
        )
        figures = self._figures(running, ask.what, before, window, series)
        # The load goes on from point to point: the window's clock begins with the first.
        return Measured(figures=figures | {"started_utc_ns": window.at_ns(began)})

    def _started(self, rate: float) -> Running:
        if self.running is not None:
            return self.running
        if self.model is None:
            begin_io([*self.target.holds.values()], writes=False)
            self._make_files()
        plan = core_plan(self.plan, self.placed, self.target.volumes, seed=self.plan.seed, rate=rate)
        self.owner = threading.get_ident()
        try:
            self.running = Running(plan, self.context, [one.name for one in self.placed], self.interval_s, self.model)
        except AssayError:
            discard_created(self.target)
            raise
        return self.running

    def _make_files(self) -> None:
        """Create and reserve the files; filling the databases writes every page of them."""
        try:
            for volume in self.target.examined:
                if volume.spec.kind not in STORED_IN_FILES:
                    continue
                size_bytes = self.target.sizes[volume.spec.name]
                longest_s = reserving_most_s(size_bytes, self.plan.timing.io_timeout_s)

                def make(volume: ExaminedVolume = volume, size_bytes: int = size_bytes) -> None:
                    make_file(volume, size_bytes, self.target)

                answer_within(longest_s, make, what=str(volume.path))
        except BaseException as error:
            if not isinstance(error, NotAnswering):
                discard_created(self.target)
                restore_sizes(self.target)
            raise

    def _warmed_up(self, running: Running, rate: float) -> tuple[int, int, Sequence[DatabaseCounts]]:
        """Let the load come to rest; gives its first tick, the first that counts, and what databases did until then."""
        running.until_phase("load")
        self.target.laid_out_bytes |= self.target.sizes
        if self.model is None:
            self.context.begin_together()
        running.core.set_rate(rate)
        warmup_ticks = max(round(self.plan.timing.warmup_s / self.interval_s), 1)
        began = running.complete_ticks
        from_tick = began + warmup_ticks
        latest = from_tick + round(SETTLING_MAX_S / self.interval_s)
        while True:
            report = running.look()
            self.settled = self.settled or report["settled"]
            self._show(running, "warm-up", None)
            done = running.complete_ticks
            if done >= from_tick and (self.settled or done >= latest):
                running.core.measure_from(done)
                return began, done, report["databases"]

    def _measured(self, running: Running, from_tick: int) -> int:
        """Follow the window to its end; gives the first tick after it."""
        to_tick = from_tick + max(round(self.plan.measured_s / self.interval_s), 1)
        while running.complete_ticks < to_tick:
            running.look()
            self._show(running, "measuring", (to_tick - running.complete_ticks) * self.interval_s)
        return to_tick

    def _whole(self, running: Running) -> tuple[int, int, Sequence[DatabaseCounts]]:
        """Follow a backup or recovery; gives its ticks, and what the databases did before it."""
        phase = self.plan.test
        before = running.until_phase(phase)["databases"]
        self.target.laid_out_bytes |= self.target.sizes
        ends = running.complete_ticks + round(self.plan.measured_s / self.interval_s)
        while not running.has_ended and running.report["phase"] == phase:
            running.look()
            if running.complete_ticks >= ends and phase == "backup":
                # A backup may be cut off; a recovery is all of its log or none.
                running.core.stop()
        spans = {one["name"]: one for one in running.report["phases"]}
        span = spans[phase]
        end_ns = span["to_ns"] or running.report["now_ns"]
        from_tick = int(span["from_ns"] // (self.interval_s * 1e9))
        return from_tick, max(-(-end_ns // round(self.interval_s * 1e9)), from_tick + 1), before

    def _show(self, running: Running, phase: str, left_s: float | None) -> None:
        done = running.complete_ticks
        own = [tick for tick in running.ticks[-2000:] if tick["activity"] == 0]
        recent = tick_sums(own, max(done - max(round(1 / self.interval_s), 1), 0), done)
        count = sum(total["count"] for total in recent)
        self.context.display.point(
            Moment(
                part=self.part.name,
                what=self.plan.title,
                phase=phase,
                left_s=None if left_s is None else max(left_s, 0),
                gauges=(
                    Gauge(
                        name="iops",
                        title="transactional IOPS",
                        value=count / (len(recent) * self.interval_s) if recent else None,
                        unit="iops",
                    ),
                    *latency_gauges(sides_mean_ns(own, done - len(recent), done)),
                ),
                percentiles=running.percentiles.gauges(
                    lambda first, last: running.core.point(first, last, 0.0), done - len(recent), done
                ),
                errors=(running.report["bad_pages"], "bad pages"),
            )
        )

    def _figures(
        self,
        running: Running,
        rate: float,
        before: Sequence[DatabaseCounts],
        window: Window,
        series: Sequence[Rows],
    ) -> dict[str, Any]:
        ticks = (window.from_tick, window.to_tick)
        cpu_ns = sum(tick["cpu_ns"] for tick in running.ticks if ticks[0] <= tick["tick"] < ticks[1])
        fullest = cpu_ns / 1e9 / window.seconds
        figures = figures_report(running.core.point(*ticks, fullest))
        transactional = [tick for tick in running.ticks if tick["activity"] == 0]
        window.judge_steady(
            [total["latency_ns"] / total["count"] for total in tick_sums(transactional, *ticks) if total["count"]]
        )
        generator: Generator = figures.pop("generator") | {"clock_ns": None}
        if self.model is not None:
            generator |= {"cpu_share": None, "fullest_worker_share": None, "gaps": None}
            figures["array"] = summarise_model(series, window.start_ns, window.end_ns, self.model.configuration)
            self.virtual_ns = self.model.elapsed_ns
        done = self._done(running, figures, rate, before, ticks)
        offered = judge.offered(
            rate,
            done["achieved_iops"] or 0.0,
            window.seconds,
            unfinished=sum(one["backlog"] for one in running.report["databases"]),
            oldest_ns=0,
        )
        return measured_point(
            window,
            {**figures, "engine": engine_report(running.core.engine()), "mailbox": done},
            generator=judge.generator(generator, saturated=self.model is None and judge.is_busy(fullest)),
            offered=offered if self.plan.is_loaded else None,
            batches=window.batches(transactional),
            telemetry=summarise(series, window.start_ns, window.end_ns, devices=self.devices),
        )

    def _done(
        self,
        running: Running,
        measured: CoreFigures,
        rate: float,
        before: Sequence[DatabaseCounts],
        window: tuple[int, int],
    ) -> MailboxDone:
        """What the mailboxes did in a window."""
        highest = peaks(running.ticks, *window, self.interval_s)
        databases = database_figures(self.placed, measured, highest)
        facts = running.report["databases"]
        counted = operations(before, facts)
        seconds = (window[1] - window[0]) * self.interval_s
        for one, earlier, later in zip(databases, before, facts, strict=True):
            own = operations([earlier], [later])
            one["operations_per_s"] = sum(own[name] or 0 for name in ("insert", "replace", "delete", "seek")) / seconds
        done: MailboxDone = {
            "test": self.plan.test,
            "databases": databases,
            "operations": counted,
            "settled": self.settled if self.plan.is_loaded else None,
        }
        if not self.plan.is_loaded:
            return {**done, "mailboxes": self.plan.mailboxes, "target_iops": None, "achieved_iops": None, "servers": []}
        achieved = sum(one["transactional_iops"] or 0.0 for one in databases)
        mailboxes = round(rate / self.plan.iops_per_mailbox)
        servers = server_figures(self.plan, databases, rate, mailboxes)
        for server in servers:
            server["passed"] = server_passed(self.plan, server)
        return {
            **done,
            "mailboxes": mailboxes,
            "target_iops": rate,
            "achieved_iops": achieved,
            "mailboxes_held": min(achieved, rate) / self.plan.iops_per_mailbox,
            "servers": servers,
            "ratios": ratios(databases),
        }

    # The end

    def _finish(self, point: Point | None, named: str | None) -> None:
        """Write and verify everything, once, and say what was found; `named` is the id of the point that it is said of.

        The steps of a part on a model are taken twice: by the thread that simulates, and at its turn by the one that
        keeps the points, which waits for the other's end and names its own point.
        """
        if self.running is None:
            # Every load was measured before the run was interrupted.
            self.told = self.context.folder.manifest.get(self.plan.kind)
            return
        if threading.get_ident() == self.owner:
            self.running.core.stop()
            report = self.running.until_end()
            writer = self.context.folder.series_writer()
            writer.write(self.running.take_series())
            writer.close_segment(f"{self.part.name}-end")
            self.told = {**self._document(report, point, named, is_whole=True)}
            self.is_over.set()
            return
        self.is_over.wait()
        if self.told is not None:
            self.told = self.told | {"point_id": named}

    def _document(self, report: MailboxReport, point: Point | None, named: str | None, *, is_whole: bool) -> Mailbox:
        """What the run found, under the key of the manifest; `point` is the best of a search, or the only one."""
        done: MailboxDone = done_of(point) if point is not None else {}
        names = [one.name for one in self.placed]
        bad: list[BadPage] = [
            {
                "page": one["page"],
                "offset_bytes": one["offset_bytes"],
                "what": one["what"],
                "activity": one["activity"],
                "database": names[one["database"]],
                "volume": self.target.volumes[one["volume"]].name,
            }
            for one in report["bad"]
        ]
        holds_bytes = self.model is None
        # A backup reads and compares every page, a run of mailboxes does so in the end.
        is_verified = (
            is_whole and holds_bytes and not (self.plan.test == "backup" and not self._backup(report)["complete"])
        )
        told: Mailbox = {
            **done,
            "test": self.plan.test,
            "mailboxes": done.get("mailboxes", self.plan.mailboxes),
            "target_iops": done.get("target_iops"),
            "achieved_iops": done.get("achieved_iops"),
            "point_id": named,
            "profile": profile(self.plan, self.placed, cache_bytes(self.plan, self.placed)),
            "backup": self._backup(report) if self.plan.test == "backup" else None,
            "recovery": self._recovery(report) if self.plan.test == "recovery" else None,
            "verified": is_verified if holds_bytes else None,
            "pages": sum(one["pages"] for one in report["databases"]),
            "pages_verified": report["pages_verified"] if holds_bytes else None,
            "bad_pages": report["bad_pages"],
            "bad": bad,
            "passed": None,
            "ended_early": not is_whole,
        }
        told["passed"] = self._passed(told, point, is_whole=is_whole)
        return told

    def _passed(self, told: Mailbox, point: Point | None, *, is_whole: bool) -> bool | None:
        if told["bad_pages"]:
            return False
        if not is_whole:
            return None
        if not self.plan.is_loaded:
            return True
        if point is None:
            # The line of the search says whether every load misses a limit, or none could be judged.
            return None if self.is_undecided else False
        achieved = has_achieved(told["achieved_iops"], told["target_iops"] or 0.0, self.plan.measured_s)
        limits = (one["met"] for one in point["limits"] if concerns(one))
        return together((achieved, *limits, *(one["passed"] for one in told["servers"] or ())))

    def _span_s(self, report: MailboxReport, phase: str) -> float:
        spans = [one for one in report["phases"] if one["name"] == phase]
        return float(sum((one["to_ns"] or report["now_ns"]) - one["from_ns"] for one in spans)) / 1e9

    def _backup(self, report: MailboxReport) -> Backup:
        seconds = self._span_s(report, "backup")
        done = report["done"] * self.plan.page_bytes
        return {
            "seconds": seconds,
            "bytes": done,
            "bytes_per_s": done / seconds if seconds else None,
            "complete": report["done"] == report["of"],
        }

    def _recovery(self, report: MailboxReport) -> Recovery:
        seconds, files = self._span_s(report, "recovery"), report["log_files_replayed"]
        return {
            "seconds": seconds,
            "log_files": files,
            "log_files_per_s": files / seconds if seconds else None,
            "seconds_per_log_file": seconds / files if files else None,
        }

    def close(self) -> None:
        """Leave the files as they are; what was not verified is said."""
        running = self.running
        if running is None:
            return
        if threading.get_ident() != self.owner:
            return
        running.abandon(self.plan.timing.io_timeout_s)
        if self.told is None and running.latest is not None:
            self.told = {**self._document(running.latest, None, None, is_whole=False)}
        self.is_over.set()
        for volume in self.target.volumes:
            if volume.hold is not None and running.has_ended:
                volume.hold.end_writing()


assert ACTIVITIES[0] == "database", "ticks of the first activity are the transactional I/O"
