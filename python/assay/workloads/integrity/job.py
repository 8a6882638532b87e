"""A part that verifies: follows the compiled core through prepare, stress, checkpoint and audit.

Each finished phase becomes a point; findings get their evidence as they come.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import cast

from assay import _core
from assay.base.errors import AssayError, Interrupted, IoFailed, NotAnswering, error_named
from assay.base.progress import Gauge, Moment
from assay.base.units import format_bytes, format_duration
from assay.measure.core_reports import engine_report, figures_report
from assay.measure.follower import Follower
from assay.record.shapes.point import Point
from assay.targets.files.target import StorageTarget, discard_created
from assay.targets.files.volume import begin_io
from assay.telemetry.ticks import add_ticks, latency_gauges, sides_mean_ns
from assay.workloads.integrity.core_plan import narrowed, new_run_id, run_plan, tick_s
from assay.workloads.integrity.core_report import EndedPhase, VerificationReport, VerifiedTick, verification_report
from assay.workloads.integrity.evidence import headline, write_evidence
from assay.workloads.integrity.files import PlacedFile, make_files, place_files, tidy_files
from assay.workloads.integrity.phase import phase_facts, phase_figures, phase_window
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.power import note_of
from assay.workloads.integrity.result import IntegrityResult, findings_line, verified_line
from assay.workloads.integrity.shapes import Finding, Integrity, PhaseFacts
from assay.workloads.integrity.sqliosim_log import SqliosimLog
from assay.workloads.integrity.watch import PathWatch
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import Part
from assay.workloads.steps import Ask, Keep, Measured, Steps

LOOK_S = 0.1

SAVED_EVERY_S = 1.0
"""The manifest is replaced no more often for new findings."""

RATE_S = 2.0
"""Progress shows rates over so long."""

FINDINGS_TOLD = 3
LETTERS_TOLD = 200
"""Findings of a kind that are told as they come, and letters of each: the verdict must not scroll away."""

BATCHES_KEPT = 1000
TICKS_KEPT = 100_000
"""Batches of rows and ticks kept for a point's telemetry and batches; of phases of many hours the last ones."""


def _phase_of(point: Point) -> PhaseFacts:
    """Which phase a point is."""
    return cast("PhaseFacts", point["workload"])


class IntegrityJob(Job):
    """A part that verifies, at work on its files.

    The state that pages are compared with lives in memory, so that a part that was cut short starts anew.
    """

    plan: IntegrityPlan
    target: StorageTarget

    def __init__(self, part: Part[IntegrityPlan], target: StorageTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        self.devices = target.device_names

    def steps(self) -> Steps:
        """Run the plan unless the folder holds all of it: each finished phase is a point.

        Raises
        ------
        Interrupted, OutOfSpace, OpenFailed, IoFailed, NotAnswering, NotSupported
            What was found until then is in `told` and in the run folder.
        """
        if self.context.interrupt.is_set():
            raise Interrupted("interrupted")
        known = [point for point in self.context.finished.values() if point["part"] == self.part.name]
        told = self.context.folder.manifest.get("integrity")
        if told and any(_phase_of(point)["phase"] == "audit" and self._is_last(point) for point in known):
            self.told = told
            for point in known:
                phase = _phase_of(point)
                name, cycle = phase["phase"] or "", phase["cycle"] or 1
                yield Keep(ask=self.ask(name, cycle), measured=None, repeat=cycle - 1)
            return
        files = place_files(self.target, self.plan)
        for notice in narrowed(self.plan, files):
            self.context.note(notice)
        self._note_parts(files)
        begin_io([*self.target.holds.values()], writes=False)
        if not self.target.after_crash:
            make_files(self.target, files, self.plan)
            files = place_files(self.target, self.plan)
        try:
            run = _Run(self, files)
        except AssayError:
            discard_created(self.target)
            raise
        try:
            yield from run.follow()
        finally:
            run.close()

    def ask(self, phase: str, cycle: int) -> Ask:
        """A phase of the plan, as its point says it."""
        target = [
            (volume.spec.kind, str(volume.spec.path), volume.roles, volume.size_bytes) for volume in self.target.volumes
        ]
        plan = self.plan.model_dump(mode="json")
        return Ask(
            key={"plan": plan, "target": target, "phase": phase, "cycle": cycle},
            workload=phase_facts(self.plan, phase, cycle),
            load={"kind": "integrity"},
        )

    def _is_last(self, point: Point) -> bool:
        return bool(_phase_of(point)["cycle"] == self.plan.cycles)

    def _note_parts(self, files: Sequence[PlacedFile]) -> None:
        for log in files:
            if log.log and log.name != log.volume:
                self.context.note(f"the log takes the first {format_bytes(log.size_bytes)} of {log.volume}")
        max_bytes = self.plan.most_bytes
        for volume in self.target.volumes:
            if max_bytes is not None and volume.size_bytes > max_bytes:
                whole = format_bytes(volume.size_bytes)
                self.context.note(f"integrity: the first {format_bytes(max_bytes)} of {volume.name} ({whole}) only")


class _Run:
    """One run of the compiled core being followed."""

    def __init__(self, opened: IntegrityJob, files: Sequence[PlacedFile]) -> None:
        self.opened, self.context, self.files, self.plan = opened, opened.context, files, opened.plan
        run_id = new_run_id()
        start = _core.CrashCheck if opened.target.after_crash else _core.Verification
        note = note_of(self.context.folder.manifest["target"]) if opened.target.journal else ""
        self.core = start(run_plan(self.plan, opened.target, files, run_id=run_id, note=note))
        self.engine = engine_report(self.core.engine())
        self.interval_s = tick_s(self.plan)
        self.started_ns = time.time_ns()
        self.result = IntegrityResult(
            files,
            seed=self.plan.seed,
            run_id=run_id,
            understood=opened.part.understood,
            started_ns=self.started_ns,
        )
        self.log = SqliosimLog(self.context.folder.path)
        self.log.say("INFORMATION", _intention(self.plan, files, run_id), utc_ns=self.started_ns)
        self.follower = Follower(
            self.context.recorder,
            self.context.folder.series_writer(),
            kept=lambda batches: batches[-BATCHES_KEPT:],
        )
        self.ticks: deque[VerifiedTick] = deque(maxlen=TICKS_KEPT)
        self.saved_at = time.monotonic()
        self.unsaved = True
        self.silenced: set[tuple[str, bool]] = set()
        self.alike: Counter[tuple[str, bool]] = Counter()
        self.waiting: set[tuple[str, int, str]] = set()
        self.waited: set[tuple[str, int, str]] = set()
        self.rates: deque[tuple[float, int, int]] = deque()
        self.error: AssayError | None = None
        self.has_ended = self.hangs = False

    def follow(self) -> Steps:
        """Follow the core to its end; each phase that it finishes is a step.

        Raises
        ------
        AssayError
            Why it ended before its time.
        """
        self.follower.begin()
        self.context.under_load.begin()
        deadline = 0.0
        # A file that may change its size keeps a quarter of it (crates/integrity/src/users/shrink.rs).
        least: dict[Path, int] = {}
        for file in self.files:
            end = file.base_bytes + (file.size_bytes // 4 if file.can_grow else file.size_bytes)
            least[file.path] = max(end, least.get(file.path, 0))
        with PathWatch(least, {} if self.opened.target.after_crash else least) as watch:
            while True:
                report = verification_report(self.core.poll())
                self._take(report)
                yield from self._phases(report)
                if report["state"] != "running":
                    break
                if self.error is None:
                    self.error = self._reason_to_stop(watch, report)
                    if self.error is not None:
                        self.core.stop()
                        deadline = time.monotonic() + self.plan.timing.io_timeout_s
                elif time.monotonic() > deadline:
                    self.error = NotAnswering(f"{self._names()}: I/Os do not end; {self.error}")
                    break
                time.sleep(LOOK_S)
            self._judge_end(report, watch)
        for report in self._stopped():
            yield from self._phases(report)
        if self.error is not None:
            raise self.error

    def _reason_to_stop(self, watch: PathWatch, report: VerificationReport) -> AssayError | None:
        if watch.gone is not None:
            return IoFailed(watch.gone)
        if self.context.interrupt.is_set():
            return Interrupted(
                f"interrupted in the {report['phase']} phase of cycle {report['cycle']}; pages were not audited"
            )
        return None

    def _judge_end(self, report: VerificationReport, watch: PathWatch) -> None:
        """Why the run ended early; what disappeared explains whatever failed after it."""
        if report["state"] == "not-answering":
            self.error = NotAnswering(f"{self._names()}: stopped answering: {report['detail']}")
        elif report["state"] == "failed" and self.error is None:
            kind = error_named(str(report["error"]))
            self.error = IoFailed(watch.gone) if watch.gone is not None else kind(str(report["detail"]))

    def close(self) -> None:
        """Stop the core if it still runs, write what is left, tidy up, and say what was found."""
        try:
            deque(self._stopped(), maxlen=0)
        finally:
            told = self.result.document()
            self.opened.told = {**told}
        self._note_journal(told)
        self._write_end(told)
        gone = isinstance(self.error, IoFailed)
        if not self.hangs and not gone and not self.opened.target.after_crash:
            tidy_files(self.opened.target, self.files, self.plan, keep=self.result.has_persistent)

    def _note_journal(self, told: Integrity) -> None:
        """What an after-crash check could prove, and what not."""
        journal = told.get("journal")
        if journal is None:
            return
        end = "the run ended by itself" if journal["ended"] else "it ends where the run was cut off"
        holes = "; blocks at its end are not whole and were left out" if journal["cut_off"] else ""
        promised = f"{journal['promised_pages']:,} pages and log blocks"
        self.context.note(
            f"the journal holds {journal['acknowledged']:,} acknowledged writes, which promise {promised}; {end}{holes}"
            "; what was acknowledged after its last record is not proven"
        )

    def _stopped(self) -> Iterator[VerificationReport]:
        """Stop the core, once; gives what it still reports."""
        if self.has_ended:
            return
        self.has_ended, self.hangs = True, True
        self.core.stop()
        deadline = time.monotonic() + self.plan.timing.io_timeout_s
        while not isinstance(self.error, NotAnswering):
            report = verification_report(self.core.poll())
            self._take(report)
            yield report
            if report["state"] != "running":
                self.hangs = report["state"] == "not-answering"
                return
            if time.monotonic() > deadline:
                return
            # The wait is here rather than in the compiled core, so that a second Ctrl-C is heard.
            time.sleep(LOOK_S)

    def _write_end(self, told: Integrity) -> None:
        now_ns = time.time_ns()
        found = findings_line(told)
        self.log.summarise(self.result.file_facts(), utc_ns=now_ns)
        self.log.say("ERROR" if found else "INFORMATION", found or verified_line(told), utc_ns=now_ns)
        self.log.flush()
        self.follower.sample()
        self.follower.close(f"{self.opened.part.name}-end")
        self.context.folder.update(integrity=told)

    def _take(self, report: VerificationReport) -> None:
        """Everything new in a report: ticks, findings, finished phases, I/Os that take long."""
        self.ticks.extend(report["ticks"])
        entities = [(self.files[tick["file"]].name, self._role(tick["file"])) for tick in report["ticks"]]
        add_ticks(self.follower.columns, report["ticks"], entities, self.started_ns, self.interval_s)
        self._tell_long(report)
        for taken in self.result.take(report):
            if taken.in_detail:
                taken.finding["evidence"] = write_evidence(self.context.folder.path, taken.finding, taken.raw)
            if taken.in_detail:
                self.log.find(taken.finding)
            if taken.is_news:
                self._tell(taken.finding, in_detail=taken.in_detail)
            self.unsaved = True
        self.follower.write(at_once=False)
        if self.unsaved and time.monotonic() - self.saved_at >= SAVED_EVERY_S:
            self._save()
        self.log.flush()
        self._show(report)

    def _tell(self, finding: Finding, *, in_detail: bool) -> None:
        known = (str(finding["file"]), finding["page"] or 0, str(finding["operation"]))
        if finding["kind"] == "long_io" and known in self.waited:
            return
        kind = (str(finding["kind"]), bool(finding["persistent"]))
        self.alike[kind] += 1
        if in_detail and self.alike[kind] <= FINDINGS_TOLD:
            words = shorten(finding["explanation"] or "", LETTERS_TOLD, placeholder=" ...")
            self.context.display.tell(f"FOUND {headline(finding)}: {words}")
        elif kind not in self.silenced:
            self.silenced.add(kind)
            self.context.display.tell(f"more findings like {headline(finding)} are counted; the report has the details")

    def _tell_long(self, report: VerificationReport) -> None:
        now = set()
        for io in report["long_outstanding"]:
            name = self.files[io["file"]].name
            now.add((name, io["page"], io["op"]))
            if (name, io["page"], io["op"]) not in self.waiting:
                pages = f"{io['pages']} pages from page" if io["pages"] != 1 else "page"
                self.context.display.tell(
                    f"OUTSTANDING for {io['age_ns'] / 1e9:.1f} s: {io['op']} of {pages} {io['page']} of {name} by"
                    f" {io['user']}"
                )
        self.waiting = now
        self.waited |= now

    def _phases(self, report: VerificationReport) -> Steps:
        """A step for each phase that has ended."""
        for number in range(len(self.result.phases), len(report["phases"])):
            phase = report["phases"][number]
            name, cycle = phase["name"], phase["cycle"]
            yield Keep(
                ask=self.opened.ask(name, cycle),
                measured=partial(self._ended_phase, number, phase),
                repeat=cycle - 1,
                judged=name == "stress",
            )
            if name == "prepare" and self.error is None:
                # Every byte was written once, as laying out does.
                self.opened.target.laid_out_bytes |= self.opened.target.sizes
            self.log.say("INFORMATION", f"phase {name} of cycle {cycle} ended", utc_ns=time.time_ns())
            self._save()

    def _ended_phase(self, number: int, phase: EndedPhase, point_id: str) -> Measured:
        """Figures of a finished phase."""
        self.follower.sample()
        self.follower.write()
        figures = phase_figures(
            figures_report(self.core.point(number)),
            self.engine,
            phase_window(phase, started_ns=self.started_ns, interval_s=self.interval_s, ended_by=self._ended_by()),
            ticks=self.ticks,
            telemetry=self.follower.written,
            devices=self.opened.devices,
        )
        seconds = (phase["to_ns"] - phase["from_ns"]) / 1e9
        self.result.phases.append(
            {
                "name": phase["name"],
                "cycle": phase["cycle"],
                "seconds": seconds,
                "point_id": point_id,
                "pages_verified": phase["pages_verified"],
                "pages_written": phase["pages_written"],
            }
        )
        self.follower.close(point_id)
        return Measured(figures=figures)

    def _ended_by(self) -> str:
        if self.error is None:
            return "time"
        if isinstance(self.error, NotAnswering):
            return "not-answering"
        return "interrupted" if isinstance(self.error, Interrupted) else "failed"

    def _save(self) -> None:
        self.opened.told = {**self.result.document()}
        self.context.folder.update(integrity=self.opened.told)
        self.unsaved, self.saved_at = False, time.monotonic()

    def _show(self, report: VerificationReport) -> None:
        now, counts = time.monotonic(), report["counts"]
        moved = counts["bytes_verified"] + counts["bytes_written"]
        self.rates.append((now, counts["pages_verified"], moved))
        while len(self.rates) > 2 and now - self.rates[1][0] >= RATE_S:
            self.rates.popleft()
        then, pages_before, moved_before = self.rates[0]
        seconds = max(now - then, 1e-3)
        longest = max((io["age_ns"] for io in report["long_outstanding"]), default=None)
        count = len(report["long_outstanding"])
        cycle = "" if self.plan.cycles == 1 else f", cycle {report['cycle']}"
        self.context.display.point(
            Moment(
                part=self.opened.part.name,
                what="every page is verified",
                phase=f"{report['phase']}{cycle} for {format_duration(report['phase_elapsed_ns'] / 1e9)}",
                done_share=report["done_share"],
                gauges=(
                    Gauge(name="iops", title="IOPS", value=self._iops(), unit="iops"),
                    *latency_gauges(self._sides_mean_ns()),
                    Gauge(
                        name="pages_per_s",
                        title="pages verified",
                        value=(counts["pages_verified"] - pages_before) / seconds,
                        unit="/s",
                    ),
                    Gauge(
                        name="bytes_per_s",
                        title="throughput",
                        value=(moved - moved_before) / seconds,
                        unit="bytes_per_s",
                    ),
                ),
                errors=(self.result.findings_count, "findings"),
                waiting="" if longest is None else f"{count} I/Os outstanding for up to {longest / 1e9:.0f} s",
            )
        )

    def _iops(self) -> float | None:
        """IOPS of the last complete tick; None before the first."""
        if not self.ticks:
            return None
        last = self.ticks[-1]["tick"]
        count = 0
        for tick in reversed(self.ticks):
            if tick["tick"] != last:
                break
            count += tick["read"]["count"] + tick["write"]["count"]
        return count / self.interval_s

    def _sides_mean_ns(self) -> dict[str, float | None]:
        """Mean latencies of the last complete tick."""
        last = self.ticks[-1]["tick"] if self.ticks else 0
        recent = list(itertools.takewhile(lambda tick: tick["tick"] == last, reversed(self.ticks)))
        return sides_mean_ns(recent, last, last + 1)

    def _role(self, file: int) -> str:
        return "log" if self.files[file].log else "data"

    def _names(self) -> str:
        return ", ".join(dict.fromkeys(str(file.path) for file in self.files))


def _intention(plan: IntegrityPlan, files: Sequence[PlacedFile], run_id: int) -> str:
    sizes = [f"{file.path} ({'log' if file.log else 'data'}, {format_bytes(file.size_bytes)})" for file in files]
    asked = f"seed {plan.seed}, run {run_id:016x}, {plan.timing.stress_s:g} s of stress"
    return f"{plan.title}: {asked}; {', '.join(sizes)}"
