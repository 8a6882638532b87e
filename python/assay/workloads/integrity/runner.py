"""The runner of integrity parts: follows the compiled core through prepare, stress, checkpoint and audit.

Each finished phase becomes a point; findings get their evidence as they come. The state that pages are compared with
lives in memory, so a part that was cut short starts anew.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay import _core, errors
from assay.errors import AssayError, Interrupted, IoFailed, NotAnswering
from assay.results.limits import Limit, judge, met
from assay.results.run_folder import RunFolder
from assay.targets.storage.target import Target, discard_created
from assay.targets.storage.volume import begin_io
from assay.telemetry.recorder import Recorder
from assay.telemetry.ticks import entity_rows
from assay.units import format_bytes, format_duration, format_iops, format_throughput
from assay.workloads.integrity.core_plan import narrowed, new_run_id, run_plan, tick_s
from assay.workloads.integrity.evidence import headline, write_evidence
from assay.workloads.integrity.figures import FIGURES
from assay.workloads.integrity.files import Placed, make_files, place_files, tidy_files
from assay.workloads.integrity.phase import phase_figures
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.result import Result, findings_line, verified_line
from assay.workloads.integrity.sqliosim_log import SqliosimLog
from assay.workloads.integrity.watch import Watch

LOOK_S = 0.1
SERIES_EVERY_S = 10.0
"""Rows of the series are written this often, so that a long phase does not keep them in memory."""

SAVED_EVERY_S = 1.0
"""The manifest is replaced no more often for new findings."""

RATE_S = 2.0
"""Progress shows rates over so long."""

TELEMETRY_KEPT = 200_000
TICKS_KEPT = 100_000
"""Rows and ticks kept for a point's telemetry and batches; of phases of many hours the last ones."""


@dataclass(frozen=True, kw_only=True)
class IntegrityProgress:
    """What the display shows of a run that verifies."""

    part: str
    phase: str
    done_share: float | None
    elapsed_s: float
    pages_per_s: float
    bytes_per_s: float
    iops: float
    findings_count: int
    waiting: str
    """I/Os outstanding for long, in words."""

    @property
    def line(self) -> str:
        """All of it in one line."""
        done = "" if self.done_share is None else f" {self.done_share:.0%} done,"
        text = (
            f"[{self.part}] {self.phase}:{done} {format_duration(self.elapsed_s)}, {self.pages_per_s:,.0f} pages"
            f" verified/s, {format_throughput(self.bytes_per_s)}, {format_iops(self.iops)} IOPS,"
            f" {self.findings_count} findings"
        )
        return f"{text}, {self.waiting}" if self.waiting else text


@dataclass(kw_only=True)
class IntegrityRunner:
    """Runs one integrity part."""

    folder: RunFolder
    recorder: Recorder
    target: Target
    devices: Sequence[str]
    plan: IntegrityPlan
    part: str
    understood: Sequence[str]
    limits: Sequence[Limit]
    interrupt: threading.Event
    show: Callable[[IntegrityProgress], None]
    done: Callable[[dict[str, Any]], None]
    tell: Callable[[str], None]
    finished: dict[str, dict[str, Any]]
    numbers: Iterator[int]
    notices: list[str] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)
    integrity: dict[str, Any] | None = None
    """What was found, as docs/integrity.md has it."""

    def run(self) -> list[dict[str, Any]]:
        """Run the plan unless the folder holds all of it; there are never answers.

        Raises
        ------
        Interrupted, OutOfSpace, OpenFailed, IoFailed, NotAnswering, NotSupported
            What was found until then is in `integrity` and in the run folder.
        """
        if self.interrupt.is_set():
            raise Interrupted("interrupted")
        last = self.key("audit", self.plan.cycles)
        if last in self.finished and self.folder.manifest.get("integrity"):
            self.points += [point for point in self.finished.values() if point["part"] == self.part]
            self.integrity = self.folder.manifest["integrity"]
            return []
        files = place_files(self.target, self.plan)
        self.notices += narrowed(self.plan, files)
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
            run.follow()
        finally:
            run.close()
        return []

    def key(self, phase: str, cycle: int) -> str:
        """Key of a phase's point."""
        target = [
            (volume.spec.kind, str(volume.spec.path), volume.roles, volume.size_bytes) for volume in self.target.volumes
        ]
        asked = {
            "plan": self.plan.model_dump(mode="json"),
            "target": target,
            "part": self.part,
            "phase": phase,
            "cycle": cycle,
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _note_parts(self, files: Sequence[Placed]) -> None:
        for log in files:
            if log.log and log.name != log.volume:
                self.notices.append(f"the log takes the first {format_bytes(log.size_bytes)} of {log.volume}")
        most_bytes = self.plan.most_bytes
        for volume in self.target.volumes:
            if most_bytes is not None and volume.size_bytes > most_bytes:
                whole = format_bytes(volume.size_bytes)
                self.notices.append(f"integrity: the first {format_bytes(most_bytes)} of {volume.name} ({whole}) only")


class _Run:
    """One run of the compiled core being followed."""

    def __init__(self, runner: IntegrityRunner, files: Sequence[Placed]) -> None:
        self.runner, self.files, self.plan = runner, files, runner.plan
        run_id = new_run_id()
        start = _core.CrashCheck if runner.target.after_crash else _core.Verification
        self.core = start(run_plan(self.plan, runner.target, files, run_id=run_id))
        self.engine = json.loads(self.core.engine())
        self.interval_s = tick_s(self.plan)
        self.started_ns = time.time_ns()
        self.result = Result(
            files,
            seed=self.plan.seed,
            run_id=run_id,
            understood=runner.understood,
            started_ns=self.started_ns,
        )
        self.log = SqliosimLog(runner.folder.path)
        self.log.say("INFORMATION", _intention(self.plan, files, run_id), utc_ns=self.started_ns)
        self.writer = runner.folder.series_writer()
        self.ticks: deque[dict[str, Any]] = deque(maxlen=TICKS_KEPT)
        self.telemetry: deque[dict[str, Any]] = deque(maxlen=TELEMETRY_KEPT)
        self.rows: list[dict[str, Any]] = []
        self.written_at = self.saved_at = time.monotonic()
        self.unsaved = True
        self.silenced: set[tuple[str, bool]] = set()
        self.waiting: set[tuple[str, int, str]] = set()
        self.waited: set[tuple[str, int, str]] = set()
        self.rates: deque[tuple[float, int, int]] = deque()
        self.trouble: AssayError | None = None

    def follow(self) -> None:
        """Follow the core to its end.

        Raises
        ------
        AssayError
            Why it ended before its time.
        """
        self.runner.recorder.sample()
        self.runner.recorder.drain()
        deadline = 0.0
        report: dict[str, Any] = {"phase": "prepare"}
        # Of a file that may change its size a quarter stays (crates/integrity/src/users/shrink.rs).
        least: dict[Path, int] = {}
        for file in self.files:
            end = file.base_bytes + (file.size_bytes // 4 if file.can_grow else file.size_bytes)
            least[file.path] = max(end, least.get(file.path, 0))
        with Watch(least, {} if self.runner.target.after_crash else least) as watch:
            while True:
                report = json.loads(self.core.poll())
                self._take(report)
                if report["state"] != "running":
                    break
                if self.trouble is None:
                    self.trouble = self._reason_to_stop(watch, report)
                    if self.trouble is not None:
                        self.core.stop()
                        deadline = time.monotonic() + self.plan.timing.io_timeout_s
                elif time.monotonic() > deadline:
                    self.trouble = NotAnswering(f"{self._names()}: I/Os do not end; {self.trouble}")
                    break
                time.sleep(LOOK_S)
            self._judge_end(report, watch)
        if self.trouble is not None:
            raise self.trouble

    def _reason_to_stop(self, watch: Watch, report: Mapping[str, Any]) -> AssayError | None:
        if watch.gone is not None:
            return IoFailed(watch.gone)
        if self.runner.interrupt.is_set():
            return Interrupted(
                f"interrupted in the {report['phase']} phase of cycle {report['cycle']}; pages were not audited"
            )
        return None

    def _judge_end(self, report: Mapping[str, Any], watch: Watch) -> None:
        """Why the run ended early; what disappeared explains whatever failed after it."""
        if report["state"] == "not-answering":
            self.trouble = NotAnswering(f"{self._names()}: stopped answering: {report['detail']}")
        elif report["state"] == "failed" and self.trouble is None:
            kind = getattr(errors, str(report["error"]), IoFailed)
            self.trouble = IoFailed(watch.gone) if watch.gone is not None else kind(str(report["detail"]))

    def close(self) -> None:
        """Stop the core if it still runs, write what is left, tidy up, and say what was found."""
        try:
            hangs = not self._ended()
        finally:
            self.runner.integrity = self.result.document()
        self._note_journal()
        self._write_end()
        gone = isinstance(self.trouble, IoFailed)
        if not hangs and not gone and not self.runner.target.after_crash:
            tidy_files(self.runner.target, self.files, self.plan, keep=self.result.has_persistent)

    def _note_journal(self) -> None:
        """What an after-crash check could prove, and what not."""
        assert self.runner.integrity is not None
        journal = self.runner.integrity.get("journal")
        if journal is None:
            return
        end = "the run ended by itself" if journal["ended"] else "it ends where the run was cut off"
        holes = "; blocks at its end are not whole and were left out" if journal["cut_off"] else ""
        promised = f"{journal['promised_pages']:,} pages and log blocks"
        self.runner.notices.append(
            f"the journal holds {journal['acknowledged']:,} acknowledged writes, which promise {promised}; {end}{holes}"
            "; what was acknowledged after its last record is not proven"
        )

    def _ended(self) -> bool:
        """Stop the core and take what it still has to say; False if it does not end."""
        self.core.stop()
        deadline = time.monotonic() + self.plan.timing.io_timeout_s
        while not isinstance(self.trouble, NotAnswering):
            report = json.loads(self.core.poll())
            self._take(report)
            if report["state"] != "running":
                return bool(report["state"] != "not-answering")
            if time.monotonic() > deadline:
                break
            # The wait is here rather than in the compiled core, so that a second Ctrl-C is heard.
            time.sleep(LOOK_S)
        return False

    def _write_end(self) -> None:
        runner, now_ns = self.runner, time.time_ns()
        assert runner.integrity is not None
        found = findings_line(runner.integrity)
        self.log.summarise(self.result.file_facts(), utc_ns=now_ns)
        self.log.say("ERROR" if found else "INFORMATION", found or verified_line(runner.integrity), utc_ns=now_ns)
        self.log.flush()
        runner.recorder.sample()
        self._take_telemetry()
        self._write_rows()
        self.writer.close_segment(f"{runner.part}-end")
        runner.folder.update(integrity=runner.integrity)

    def _take(self, report: Mapping[str, Any]) -> None:
        """Everything new in a report: ticks, findings, finished phases, I/Os that take long."""
        self._take_telemetry()
        self.ticks.extend(report["ticks"])
        entities = [(self.files[tick["file"]].name, self._role(tick["file"])) for tick in report["ticks"]]
        self.rows += entity_rows(report["ticks"], entities, self.started_ns, self.interval_s)
        self._tell_long(report)
        for taken in self.result.take(report):
            if taken.in_detail:
                taken.finding["evidence"] = write_evidence(self.runner.folder.path, taken.finding, taken.raw)
            if taken.in_detail:
                self.log.find(taken.finding)
            if taken.is_news:
                self._tell(taken.finding, in_detail=taken.in_detail)
            self.unsaved = True
        for number in range(len(self.result.phases), len(report["phases"])):
            self._end_phase(number, report["phases"][number])
        now = time.monotonic()
        if now - self.written_at >= SERIES_EVERY_S:
            self._write_rows()
        if self.unsaved and now - self.saved_at >= SAVED_EVERY_S:
            self._save()
        self.log.flush()
        self._show(report)

    def _tell(self, finding: Mapping[str, Any], *, in_detail: bool) -> None:
        known = (str(finding["file"]), finding["page"], str(finding["operation"]))
        if finding["kind"] == "long_io" and known in self.waited:
            return
        kind = (finding["kind"], finding["persistent"])
        if in_detail:
            self.runner.tell(f"FOUND {headline(finding)}: {finding['explanation']}")
        elif kind not in self.silenced:
            self.silenced.add(kind)
            self.runner.tell(f"more findings like {headline(finding)} are counted only")

    def _tell_long(self, report: Mapping[str, Any]) -> None:
        now = set()
        for io in report["long_outstanding"]:
            name = self.files[io["file"]].name
            now.add((name, io["page"], io["op"]))
            if (name, io["page"], io["op"]) not in self.waiting:
                pages = f"{io['pages']} pages from page" if io["pages"] != 1 else "page"
                self.runner.tell(
                    f"OUTSTANDING for {io['age_ns'] / 1e9:.1f} s: {io['op']} of {pages} {io['page']} of {name} by"
                    f" {io['user']}"
                )
        self.waiting = now
        self.waited |= now

    def _end_phase(self, number: int, phase: Mapping[str, Any]) -> None:
        """Make a finished phase a point."""
        runner = self.runner
        runner.recorder.sample()
        self._take_telemetry()
        point_id = f"p{next(runner.numbers):04d}"
        limits = runner.limits if phase["name"] == "stress" else ()
        point = {
            "id": point_id,
            "key": runner.key(phase["name"], phase["cycle"]),
            "part": runner.part,
            "ended_by": self._ended_by(),
            "engine": self.engine,
            **phase_figures(
                self.plan,
                phase,
                json.loads(self.core.point(number)),
                started_ns=self.started_ns,
                ticks=self.ticks,
                telemetry=self.telemetry,
                devices=runner.devices,
            ),
        }
        point["limits"] = judge(limits, point, FIGURES)
        point["met"] = met(point["limits"])
        facts = {key: phase[key] for key in ("pages_verified", "pages_written")}
        seconds = (phase["to_ns"] - phase["from_ns"]) / 1e9
        self.result.phases.append(
            {"name": phase["name"], "cycle": phase["cycle"], "seconds": seconds, "point_id": point_id, **facts}
        )
        self._write_rows()
        self.writer.close_segment(point_id)
        runner.folder.append_point(point)
        runner.points.append(point)
        if point["ended_by"] == "time":
            runner.finished[point["key"]] = point
        if phase["name"] == "prepare" and self.trouble is None:
            # Every byte was written once, as laying out does.
            runner.target.laid_out_bytes |= runner.target.sizes
        self.log.say("INFORMATION", f"phase {phase['name']} of cycle {phase['cycle']} ended", utc_ns=time.time_ns())
        self._save()
        runner.done(point)

    def _ended_by(self) -> str:
        if self.trouble is None:
            return "time"
        if isinstance(self.trouble, NotAnswering):
            return "not-answering"
        return "interrupted" if isinstance(self.trouble, Interrupted) else "failed"

    def _take_telemetry(self) -> None:
        rows = self.runner.recorder.drain()
        self.rows += rows
        self.telemetry.extend(row for row in rows if row["source"] in ("block", "net") or row["entity"] == "cpu")

    def _write_rows(self) -> None:
        rows, self.rows = self.rows, []
        self.written_at = time.monotonic()
        self.writer.write(rows)

    def _save(self) -> None:
        self.runner.integrity = self.result.document()
        self.runner.folder.update(integrity=self.runner.integrity)
        self.unsaved, self.saved_at = False, time.monotonic()

    def _show(self, report: Mapping[str, Any]) -> None:
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
        self.runner.show(
            IntegrityProgress(
                part=self.runner.part,
                phase=f"{report['phase']}{cycle}",
                done_share=report["done_share"],
                elapsed_s=report["phase_elapsed_ns"] / 1e9,
                pages_per_s=(counts["pages_verified"] - pages_before) / seconds,
                bytes_per_s=(moved - moved_before) / seconds,
                iops=self._iops(),
                findings_count=self.result.findings_count,
                waiting="" if longest is None else f"{count} I/Os outstanding for up to {longest / 1e9:.0f} s",
            )
        )

    def _iops(self) -> float:
        """Of the last complete tick."""
        if not self.ticks:
            return 0.0
        last = self.ticks[-1]["tick"]
        count = 0
        for tick in reversed(self.ticks):
            if tick["tick"] != last:
                break
            count += tick["read"]["count"] + tick["write"]["count"]
        return count / self.interval_s

    def _role(self, file: int) -> str:
        return "log" if self.files[file].log else "data"

    def _names(self) -> str:
        return ", ".join(dict.fromkeys(str(file.path) for file in self.files))


def _intention(plan: IntegrityPlan, files: Sequence[Placed], run_id: int) -> str:
    sizes = [f"{file.path} ({'log' if file.log else 'data'}, {format_bytes(file.size_bytes)})" for file in files]
    asked = f"seed {plan.seed}, run {run_id:016x}, {plan.timing.stress_s:g} s of stress"
    return f"{plan.title}: {asked}; {', '.join(sizes)}"
