"""One point of transactions being measured: users connect, warm-up, the window, its figures."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assay import _core
from assay.base.errors import AssayError, Interrupted, IoFailed, NotAnswering
from assay.base.progress import Gauge, Moment
from assay.base.units import count_of, format_duration
from assay.measure import judge
from assay.measure.follower import Follower
from assay.measure.point import measured_point
from assay.measure.recent import RecentPercentiles
from assay.measure.window import Window
from assay.record.phases import Rates
from assay.record.shapes.manifest import Database
from assay.record.shapes.point import Generator, Offered
from assay.targets.databases.common.target import DatabaseTarget
from assay.telemetry.summary import folded, summarise
from assay.telemetry.ticks import tick_length_of_s
from assay.workloads.databases.loading import core_error
from assay.workloads.databases.storage import roles_of, storage, volumes_of
from assay.workloads.job import PartContext
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.background import BackgroundWork
from assay.workloads.transactions.core_plan import core_plan
from assay.workloads.transactions.counted import ServersCounted
from assay.workloads.transactions.plan import TransactionsPlan
from assay.workloads.transactions.power import CutPower
from assay.workloads.transactions.reports import CoreRun, OltpAway, OltpFigures, OltpReport, OltpTick, tick_readings
from assay.workloads.transactions.shapes import Gap, MeasuredOltp, number_of, of_kind, with_own

if TYPE_CHECKING:
    from assay.record.rows import Rows

LOOK_S = 0.1

STALL_MIN_COUNT = 20
"""Transactions that a rate must ask for in the time of a stall for it to be one."""

SILENCE_MIN_S = 2.0
"""Time without the end of a transaction that is worth a notice."""

BATCHES_MAX = 90
"""Batches of rows kept for a point's storage figures, a quarter of an hour; of those before there is a row a metric."""
BATCHES_NEWEST = 45
"""Newest batches, which are not folded, since the window may end among them."""

END_S = 30.0
"""How long transactions that are under way are waited for at the end."""

LAG_MIN_NS = 10_000_000
"""Open loop: starts later than this and than the mean service time, at p99, make the schedule a fiction."""

CLOCK_STEP_NS = 100_000_000
"""A wall clock that goes off the monotonic one by more, and by more than `CLOCK_DRIFT_SHARE` of the time, was set."""
CLOCK_DRIFT_SHARE = 0.001


class OltpMeasurement:
    """One point: the core runs users, this follows it and takes the figures.

    Parameters
    ----------
    part
        Name of the part, for the display.
    """

    def __init__(
        self,
        target: DatabaseTarget,
        plan: TransactionsPlan,
        repeat: int,
        *,
        application: Application,
        part: str,
        context: PartContext,
    ) -> None:
        self.target, self.plan, self.part, self.context = target, plan, part, context
        self.application = application
        self.seed = plan.seed + repeat
        self.interval_s = tick_length_of_s(plan.timing.duration_s)
        self.window = Window(started_ns=time.time_ns(), interval_s=self.interval_s)
        # In a point of many hours a tick is longer than the warm-up was to be.
        self.window.from_tick = math.ceil(round(plan.timing.warmup_length_s / self.interval_s, 6))
        self.window.to_tick = self.window.from_tick + max(round(plan.timing.duration_s / self.interval_s), 1)
        self.has_begun = False
        self.complete_ticks = 0
        self.error: AssayError | None = None
        self.firsts: list[int] = []
        """Committed transactions of the first kind, of each tick, over all databases."""
        self.ended: list[int] = []
        """Transactions of each tick that ended well."""
        self.failed_count = 0
        self.latency_p90_ns: float | None = None
        self.gaps: list[OltpAway] = []
        self.follower = Follower(context.recorder, context.folder.series_writer(), kept=self._fewer)
        self.percentiles = RecentPercentiles({"total": "response"})
        self.notices: list[str] = []
        self.counted = ServersCounted(target)
        self.memory_bytes: list[int] = []
        self.background = BackgroundWork(self.target.databases, plan.background)
        self.power: list[CutPower] = []
        """Power cuts of the point."""

    def run(self) -> dict[str, Any]:
        """Run the users until the window is over.

        Returns
        -------
        dict
            The measured part of the point (docs/oltp-results.md).

        Raises
        ------
        Interrupted, AssayError
            There is no point: it ended before its window began, or by Ctrl-C.
        """
        self.follower.begin()
        before = self.counted.now()
        clocks = time.time_ns(), time.monotonic_ns()
        self.memory_bytes.append(_resident_bytes())
        self.context.begin_together()
        core = self.start()
        try:
            self._watch(core)
        finally:
            self.background.stop()
            self.follower.sample()
            window = self.window
            window.to_tick = min(window.to_tick, self.complete_ticks)
            self._note(json.loads(core.finish(END_S)), ending=True)
        self._note_clock(*clocks)
        self._note_silence()
        self._compare_counters(before)
        if self.error is None:
            window.from_tick, window.to_tick = self.context.window_of_all(
                window.started_ns, self.interval_s, window.from_tick, window.to_tick
            )
        return self._point(json.loads(core.point(window.from_tick, window.to_tick)))

    def start(self) -> CoreRun:
        """Begin what is measured."""
        return _core.OltpRun(self._core_plan())

    @property
    def rates(self) -> Rates:
        """Transactions that ended well, tick by tick."""
        window = self.window
        return Rates(
            started_ns=window.started_ns,
            interval_s=self.interval_s,
            counts=self.ended[: min(self.complete_ticks, window.to_tick)],
            counted_from=window.from_tick,
        )

    def close(self, name: str) -> None:
        """Write the rest of the series, as a segment of this name."""
        self.follower.close(name)

    def _core_plan(self) -> str:
        """The plan as the core takes it, JSON."""
        return core_plan(
            self.target,
            self.plan,
            self.application,
            seed=self.seed,
            interval_s=self.interval_s,
            keeps_orders=any(event.do.startswith("cut-power") for event in self.plan.events),
        )

    # Following

    def _watch(self, core: CoreRun) -> None:
        """Follow the core to the end of the window, or to what ends it before."""
        is_measuring = False
        while self.complete_ticks < self.window.to_tick:
            if self.context.interrupt.is_set():
                raise Interrupted("interrupted; the point that was running is not kept")
            report: OltpReport = json.loads(core.poll())
            self._note(report)
            self._follow_power(core)
            if report["state"] == "running":
                self.background.start()
                if len(self.memory_bytes) == 1:
                    self.memory_bytes.append(_resident_bytes())
            self.error = self.error or self.background.error or self._stall(report)
            from_tick = self.window.from_tick
            if not is_measuring and report["state"] == "running" and self.complete_ticks >= from_tick:
                is_measuring = True
                core.measure_from(from_tick)
                self._look_closely()
            if self.error is not None:
                if self.complete_ticks <= from_tick:
                    raise self.error
                break
            self._show(core, report)
            if report["reconnecting"]:
                self.target.revive()
            time.sleep(min(self.interval_s / 2, LOOK_S))
        self._look_closely()

    def _follow_power(self, core: CoreRun) -> None:
        """Keep what was acknowledged when the power is cut, and look for it when it is back."""
        known = len(self.context.under_load.cuts)
        try:
            self.context.under_load.look()
        except AssayError as error:
            self.error = self.error or error
        for cut in self.context.under_load.cuts[known:]:
            self.power.append(CutPower(cut, json.loads(core.acknowledged()) or [], self.window.started_ns))
        for followed in self.power:
            if followed.is_back and followed.missing is None:
                followed.look_for(self.target.databases, self.application.find_acknowledged)

    def _stall(self, report: OltpReport) -> AssayError | None:
        """Why the run does not go on, where an application's rate has fallen to nothing for too long."""
        stall_s, rate = self.application.stall_s, self.plan.rate
        if stall_s is None or report["state"] != "running" or report["reconnecting"]:
            return None
        ticks = math.ceil(stall_s / self.interval_s)
        is_slow = rate is not None and rate * stall_s < STALL_MIN_COUNT
        if is_slow or self.complete_ticks < ticks or any(self.ended[self.complete_ticks - ticks :]):
            return None
        last = next((gap for gap in reversed(self.gaps) if self._is_recent(gap["to_ns"], stall_s)), None)
        if last is not None:
            return None
        silent = f"no transaction ended for {format_duration(stall_s)}"
        try:
            self.counted.now()
        except NotAnswering as error:
            return NotAnswering(f"{silent}: {error}")
        example = report.get("example")
        why = f"the first error was: {example}" if example else "its users wait for locks or for storage"
        return IoFailed(f"{silent}, though the server answers other questions; {why}")

    def _is_recent(self, ended_ns: int | None, within_s: float) -> bool:
        """Whether a database is away, or was within so long."""
        return ended_ns is None or self.complete_ticks * self.interval_s - ended_ns / 1e9 < within_s

    def _look_closely(self) -> None:
        """At both ends of the window."""
        try:
            found = self.counted.look()
        except NotAnswering as error:
            self.error = self.error or error
            return
        self.notices += [notice for notice in found if notice not in self.notices]

    def _note(self, report: OltpReport, *, ending: bool = False) -> None:
        self.complete_ticks = report["complete_ticks"]
        if not self.has_begun and report["state"] == "running":
            # Read once: later it would follow a clock that was set.
            self.has_begun, self.window.started_ns = True, report["started_utc_ns"]
            self.context.under_load.begin()
        self.gaps = report["gaps"]
        for tick in report["ticks"]:
            self.failed_count += tick["failed"]
            self.ended += [0] * (tick["tick"] + 1 - len(self.ended))
            self.ended[tick["tick"]] += tick["committed"] + tick["rolled_back"]
            if self.application.counts_all or tick["transaction"] == self.application.first:
                self.firsts += [0] * (tick["tick"] + 1 - len(self.firsts))
                self.firsts[tick["tick"]] += tick["committed"]
                self.latency_p90_ns = tick["p90_ns"] or self.latency_p90_ns
        self._add_ticks(report["ticks"])
        self.follower.write(at_once=ending)
        if report["state"] == "failed" and not ending:
            assert report["error"] is not None, "a run that failed says why"
            self.error = core_error(report["error"])

    def _fewer(self, batches: list[Rows]) -> list[Rows]:
        """Fold old batches of a long point."""
        if len(batches) <= BATCHES_MAX:
            return batches
        return [*folded(batches[:-BATCHES_NEWEST], self.window.start_ns), *batches[-BATCHES_NEWEST:]]

    def _add_ticks(self, ticks: Sequence[OltpTick]) -> None:
        interval_ns = round(self.interval_s * 1e9)
        for tick in ticks:
            self.follower.columns.add(
                tick_readings(tick, f"{self.target.databases[tick['database']].name}/{tick['transaction']}"),
                t_ns=self.window.started_ns + (tick["tick"] + 1) * interval_ns,
                interval_ns=interval_ns,
                tier="application",
                source=self.application.kind,
            )

    def _show(self, core: CoreRun, report: OltpReport) -> None:
        done = self.complete_ticks
        rate = self.application.rate
        recent = max(round(2 / self.interval_s), 1)
        firsts = sum(self.firsts[max(done - recent, 0) : done])
        seconds = min(recent, done) * self.interval_s
        per_s = firsts / seconds * rate.seconds if seconds else None
        waiting = f"{report['reconnecting']} users without a connection" if report["reconnecting"] else ""
        phase = "warm-up" if done < self.window.from_tick else "measuring"
        if report["state"] == "connecting":
            phase, waiting = "connecting", f"{report['connected']} connected"
        self.context.display.point(
            Moment(
                part=self.part,
                what=self._what(),
                phase=phase,
                left_s=max((self.window.to_tick - done) * self.interval_s, 0),
                gauges=(
                    Gauge(name="rate", title=rate.title, value=per_s, unit=rate.unit),
                    Gauge(
                        name="p90",
                        title=f"{self.application.first_plural} p90",
                        value=self.latency_p90_ns,
                        unit="ns",
                        limit="response.p90",
                    ),
                ),
                percentiles=self.percentiles.gauges(core.point, max(done - recent, 0), done),
                errors=(self.failed_count, "failed"),
                waiting=waiting,
            )
        )

    def _what(self) -> str:
        """What is at work, for the display."""
        return f"transactions of {count_of(self.plan.users, 'user')}"

    def _compare_counters(self, before: tuple[float, dict[str, float]] | None) -> None:
        """Every transaction of the first kind that a user saw committed must be there."""
        if isinstance(self.error, NotAnswering):
            return
        counter = self.application.counter
        after = self.counted.now()
        if before is None or after is None or counter not in self.application.tables.counters:
            return
        there = after[1].get(counter, 0.0) - before[1].get(counter, 0.0)
        seen = sum(self.firsts)
        if seen > there:
            self.notices.append(
                f"users saw {seen:,} {self.application.first_plural} committed, {self.application.counted_by}"
                f" {there:,.0f}: the server lost some"
                " that it had acknowledged, or another program changed the tables"
            )

    def _note_clock(self, wall_ns: int, monotonic_ns: int) -> None:
        elapsed_ns = time.monotonic_ns() - monotonic_ns
        step_ns = time.time_ns() - wall_ns - elapsed_ns
        if abs(step_ns) > max(CLOCK_STEP_NS, elapsed_ns * CLOCK_DRIFT_SHARE):
            direction = "forward" if step_ns > 0 else "back"
            self.notices.append(
                f"the clock of this host was set {direction} by {format_duration(abs(step_ns) / 1e9)} during a point:"
                " times of its series do not fit together; its throughput and latencies are right"
            )

    def _note_silence(self) -> None:
        """Add a notice where the server stalled: a closed loop waits with it, so its figures hardly show a stall.

        They show as few slow transactions as there were users, and none where the stall outlasts the window.
        """
        if self.plan.rate is not None or self.plan.think_factor or self.gaps:
            return
        ended = self._in_window(self.ended)
        longest = last = 0
        for number, count in enumerate(ended, 1):
            last = 0 if count else last + 1
            if last > longest:
                longest, end = last, number
        if longest * self.interval_s >= SILENCE_MIN_S:
            began_s = self.window.at_ns(self.window.from_tick + end - longest) / 1e9
            self.notices.append(
                f"no transaction ended for {format_duration(longest * self.interval_s)} from"
                f" {time.strftime('%H:%M:%S', time.gmtime(began_s))} UTC: the server stood still"
                + (", to the end of the window: the latencies of who waited are not known" if end == len(ended) else "")
            )

    # Figures

    def _in_window(self, per_tick: list[int]) -> list[int]:
        """Counts of the ticks of the window."""
        return (per_tick + [0] * self.window.to_tick)[self.window.from_tick : self.window.to_tick]

    def _point(self, figures: OltpFigures) -> dict[str, Any]:
        window, rate = self.window, self.application.rate
        window.warmup_s = window.from_tick * self.interval_s
        window.ended_by = "time" if self.error is None else "failed"
        firsts = self._in_window(self.firsts)
        self._judge_steady(firsts)
        oltp = self._oltp(figures)
        seconds, batches = window.rate_batches(firsts, rate.seconds)
        stored, (busy, saturated) = oltp.get("storage"), self._generator(figures)
        return measured_point(
            window,
            {
                **dict.fromkeys(("read", "write", "total", "flush", "bursts")),
                "volumes": volumes_of(stored) if stored is not None else [],
                "activities": [],
                "roles": roles_of(stored) if stored is not None else {},
                "service_latency_ns": figures["service_latency_ns"],
                "errors": {"count": figures["errors"]["count"], "kinds": figures["errors"]["kinds"]},
                "engine": None,
                "oltp": {**oltp, **({"power_cuts": [cut.told() for cut in self.power]} if self.power else {})},
                **self._own(figures, saturated),
            },
            generator=judge.generator(busy, saturated=saturated),
            offered=self._offered(figures),
            batches={"seconds": seconds, "total": {rate.key: batches}},
            telemetry=summarise(
                self.follower.written,
                window.start_ns,
                window.end_ns,
                devices={name for names in self.target.devices.values() for name in names},
            ),
        )

    def _judge_steady(self, firsts: Sequence[int]) -> None:
        """Judge whether the throughput neither drifted nor spread too much."""
        self.window.judge_steady([float(count) for count in firsts])

    def _own(self, figures: OltpFigures, saturated: bool) -> dict[str, object]:
        """Keys of the point that a kind adds; `saturated`: the load itself was too slow."""
        del figures, saturated
        return {}

    def _offered(self, figures: OltpFigures) -> Offered | None:
        """Whether a rate was kept; None of a closed loop."""
        if self.plan.rate is None:
            return None
        backlog = figures["backlog"] or {"unfinished": 0, "oldest_ns": 0}
        return judge.offered(
            self.plan.rate,
            figures["total"]["per_s"],
            self.window.seconds,
            unfinished=backlog["unfinished"],
            oldest_ns=backlog["oldest_ns"],
        )

    def _generator(self, figures: OltpFigures) -> tuple[Generator, bool]:
        """How busy the load was, and whether it was too busy."""
        lag_ns = figures["schedule"]["lag_p99_ns"] if figures["schedule"] else None
        saturated = judge.is_busy(figures["fullest_thread_share"])
        if lag_ns is not None and self.plan.rate is not None:
            service = figures["service_latency_ns"]
            saturated = saturated or judge.is_late(lag_ns, service["mean"] if service else None, LAG_MIN_NS)
        facts: Generator = {
            "cpu_share": figures["client_cpu_ns"] / (max(figures["threads"], 1) * self.window.seconds * 1e9),
            "fullest_worker_share": figures["fullest_thread_share"],
            "schedule_lag_p99_ns": lag_ns,
            "gaps": figures["gaps"],
        }
        return facts, saturated

    def _oltp(self, figures: OltpFigures) -> MeasuredOltp:
        seconds, start_ns, end_ns = self.window.seconds, self.window.start_ns, self.window.end_ns
        rate, counter, count = self.application.rate, self.application.counter, figures["total"]["count"]
        of_server = self.counted.grown("transactions_count")
        statements, tables = self.counted.hottest()
        looked_at = self.counted.looked_at
        counts = {database["name"]: number_of(database, counter) or 0 for database in figures["databases"]}
        throughput: MeasuredOltp = {
            "tpm_client": count / seconds * 60,
            "tpm_server": None if of_server is None else of_server[0] / of_server[1] * 60,
            "client_cpu_ns_per_transaction": figures["client_cpu_ns"] / count if count else None,
            "memory_bytes_per_user": self._memory_per_user(),
            "users": self.plan.users,
        }
        rest: MeasuredOltp = {
            "by_transaction": self.plan.judged(
                {name: figures["by_transaction"][name] for name in self.application.transactions}
            ),
            "errors": figures["errors"],
            "gaps": self._gaps(start_ns, end_ns),
            "schedule": figures["schedule"],
            "databases": self._databases(counts),
            "storage": storage(
                self.follower.written,
                start_ns,
                end_ns,
                devices_by_role=self.target.devices,
                transactions_count=count,
                client_cpu_ns=figures["client_cpu_ns"],
                is_local=self.target.is_local,
            ),
            "statements": statements,
            "tables": tables,
            "background": self.background.report(looked_at[0], looked_at[-1]) if looked_at else [],
        }
        of_all = of_kind(rate.key, sum(counts.values()) / seconds * rate.seconds)
        scale = of_kind(self.application.tables.scale, self.target.scale_total)
        return with_own(MeasuredOltp(), of_all, with_own(throughput, scale, rest))

    def _databases(self, counts: dict[str, float]) -> list[Database]:
        """Each database with its throughput."""
        versions = {facts["name"]: facts for facts in self.target.facts()["databases"]}
        rate, told = self.application.rate, []
        for name, count in counts.items():
            facts, own = versions.get(name, {}), of_kind(rate.key, count / self.window.seconds * rate.seconds)
            after: Database = {"kind": facts.get("kind"), "version": facts.get("version"),
                               "settings": facts.get("settings")}  # fmt: skip
            told.append(with_own(Database(name=name), own, after))
        return told

    def _memory_per_user(self) -> float | None:
        """What the users' connections and state took of this process; too little to tell is None."""
        if len(self.memory_bytes) < 2:
            return None
        grown_bytes = self.memory_bytes[1] - self.memory_bytes[0]
        return grown_bytes / self.plan.users if grown_bytes > 0 else None

    def _gaps(self, start_ns: int, end_ns: int) -> list[Gap]:
        """Times without a server within the window or running into it."""
        gaps: list[Gap] = []
        for gap in self.gaps:
            from_ns = self.window.started_ns + gap["from_ns"]
            to_ns = end_ns if gap["to_ns"] is None else self.window.started_ns + gap["to_ns"]
            if from_ns < end_ns and to_ns > start_ns:
                name = self.target.databases[gap["database"]].name
                gaps.append({"from_utc_ns": from_ns, "to_utc_ns": to_ns, "database": name, "reason": gap["reason"]})
        return gaps


def _resident_bytes() -> int:
    """Memory of this process that is in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
