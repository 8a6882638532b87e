"""One execution from plan to report: every verb that measures goes through here."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from assay import _core
from assay.base.errors import AssayError, ExitCode, Interrupted, IoFailed, NotAnswering, NothingKept, NotSupported
from assay.base.log import LOG, chain, event
from assay.base.progress import Display
from assay.record.limits import parse_limits
from assay.record.points import CUT_SHORT, current_points
from assay.record.run_folder import RunFolder
from assay.record.shapes.point import Answer, VerdictLine
from assay.record.shapes.study import Study
from assay.record.state import states_of
from assay.run.above import Above
from assay.run.ahead import Ahead
from assay.run.chains import forget_unfinished, in_order
from assay.run.live import Live
from assay.run.needed import judged_need
from assay.run.notices import notices_of
from assay.run.part import part_report
from assay.run.points import PointLoop
from assay.run.resumed import folder_identity
from assay.run.targets import PartTargets
from assay.run.verdict import conclusions_of, verdict_of_run
from assay.targets.answering import ANSWER_TIMEOUT_S, answer_within
from assay.targets.arrays.live.process import explained
from assay.targets.host import host_facts
from assay.targets.target import Target
from assay.telemetry.recorder import Recorder
from assay.workloads.beside import LoadBeside
from assay.workloads.capabilities import MeasuresIo, RunsBeside, Telling, Verifying
from assay.workloads.databases.seen import seen_at
from assay.workloads.job import Job, PartContext, RunContext
from assay.workloads.plan import Part
from assay.workloads.registry import workload_named, workload_of, workloads, workloads_of
from assay.workloads.workload import Workload, workload_at


class Raising(Protocol):
    """Whether a signal raises where the main thread is."""

    raising: bool


Opens = Callable[[Part[Any], PartContext], Job]
"""Begins a part on its target, which is ready."""


@dataclass(kw_only=True)
class Execution:
    """A run in progress or done.

    It tells `display` of its progress, ends when `interrupt` is set, and holds its outcome when `run` returns.
    """

    folder: RunFolder
    target: Target
    """That of all parts that have none of their own."""
    parts: Sequence[Part[Any]]
    display: Display
    interrupt: threading.Event
    above: Above = field(default_factory=Above)
    keeps_interrupted: bool = False
    """Whether an interrupted point is kept with what it has, as SQLIO does."""
    uninterruptible: Raising | None = None
    """Set while work goes on that does not look at `interrupt`."""
    yes_destroy: Sequence[str] = ()
    """Devices that carry a signature and may be overwritten all the same."""
    points: list[Any] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What workloads tell of the run as a whole, by their `document_key`."""
    error: AssayError | None = None
    _targets: PartTargets = field(init=False)
    _live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.display = self._live = Live(self.display, self.folder)
        self._targets = PartTargets(
            shared=self.target, parts=self.parts, display=self.display, interrupt=self.interrupt
        )

    @property
    def study(self) -> Study | None:
        """What is varied and compared (docs/studies.md); parts run in its order."""
        return self.folder.manifest.get("study")

    def run(self) -> ExitCode:
        """Do everything; finished points are in the run folder whatever happens. Returns the exit code."""
        self.folder.begin_log()
        event("run begun", run=self.folder.path.name, parts=[part.name for part in self.parts])
        try:
            code = self._run()
            event("run ended", code=int(code), errors=chain(self.error) if self.error is not None else [])
            return code
        finally:
            self._live.end()
            LOG.end()

    def _run(self) -> ExitCode:
        try:
            self._measure()
            status = "done"
        except Interrupted as error:
            self.error, status = error, "interrupted"
        except AssayError as error:
            self.error, status = explained(error), "failed"
        finally:
            self._targets.leave()
            if not isinstance(self.error, NotAnswering):
                self._targets.settle()
            self.notices += self._targets.notices
        self._conclude(status)
        return self.exit_code

    def _measure(self) -> None:
        targets = self._targets
        self.notices = list(dict.fromkeys(notice for target in targets.all for notice in target.notices))
        for target in targets.all:
            target.begin_run(self.folder.path.name)
        self.folder.update(host=host_facts(), build=_core.build_info(), status="running", error=None)
        self._keep_target_facts()
        with Recorder(targets.collectors()) as recorder:
            self._live.watch(recorder)
            # The drives beneath are known from here on; a run that a crash ends has them, too.
            self._keep_target_facts()
            try:
                self._run_parts(recorder)
            finally:
                self.notices += [*self._targets.drives.notices, *recorder.notices]
        self._note_strangers()
        self._refuse_ruined_points()

    def _target_facts(self) -> dict[str, Any]:
        return self._targets.facts(self.folder.manifest["target"])

    def _keep_target_facts(self) -> None:
        self.folder.update(target=self._target_facts())

    def _note_strangers(self) -> None:
        """Say which points no part asked for this time: the target or the plan has changed since."""
        asked = {point["key"] for point in self.points}
        finished = [point for point in current_points(self.folder.points()) if point["ended_by"] not in CUT_SHORT]
        others = [point["id"] for point in finished if point["key"] not in asked]
        if others:
            self.notices.append(f"points of another model, plan or trace are in no answer: {', '.join(others)}")

    def _run_parts(self, recorder: Recorder) -> None:
        finished = {point["key"]: point for point in self.folder.points() if point["ended_by"] not in CUT_SHORT}
        ordered = [part for part in in_order(self.parts, self.study) if self._can_run(part)]
        forget_unfinished(ordered, finished, is_virtual=lambda part: self._targets.of(part).is_virtual)
        common = RunContext(
            folder=self.folder,
            recorder=recorder,
            display=self.display,
            interrupt=self.interrupt,
            finished=finished,
            keeps_interrupted=self.keeps_interrupted,
            for_study=self.study is not None,
            begins_whole=self.study is not None or self.folder.manifest.get("contract") is not None,
            epoch_ns=self.folder.manifest["started_utc_ns"],
            bands=self.above.bands,
        )
        with ExitStack() as stack:
            if all(target.is_virtual and target.is_here for target in self._targets.all):
                opens = stack.enter_context(Ahead(ordered, self._targets, common)).open
            else:
                opens = self._open
            self._run_in_turn(ordered, common, opens, recorder)

    def _open(self, part: Part[Any], context: PartContext) -> Job:
        target = self._targets.of(part)
        return workload_at(workload_of(part.plan), target).open(part, target, context)

    def _run_in_turn(self, ordered: Sequence[Part[Any]], common: RunContext, opens: Opens, recorder: Recorder) -> None:
        numbers = itertools.count(len(self.folder.points()) + 1)
        spent_before = {part["name"]: part["spent_s"] or 0.0 for part in self.folder.manifest["parts"]}
        reports: dict[str, dict[str, Any]] = {}
        before: Job | None = None
        for place, listed in enumerate(ordered):
            began = time.monotonic()
            ready = self._made_ready(listed, recorder)
            if ready is None:
                continue
            part = self._with_what_it_follows(ready)
            workload = workload_of(part.plan)
            self._live.begin(parse_limits(part.plan.limits, workload.figures))
            context = PartContext.of(
                common,
                before=before,
                is_continued=any(following.continues for following in ordered[place + 1 : place + 2]),
            )
            opened = opens(part, context)
            beside = self._beside(part, context)
            loop = PointLoop(
                context=context,
                workload=workload,
                opened=opened,
                part=part,
                numbers=numbers,
                target=self._targets.of(part),
                beside=beside,
                logs=True,
            )
            try:
                with recorder.also(self._targets.own_collectors(part)):
                    loop.run()
            finally:
                if beside is not None:
                    beside.close()
                opened.close()
                before = opened
                self.points += loop.points
                self.answers += loop.answers
                self.notices += [notice for notice in context.notices if notice not in self.notices]
                if isinstance(workload, Telling) and opened.told is not None:
                    self.told[workload.document_key] = opened.told
                    self.folder.update(**{workload.document_key: opened.told})
                spent = spent_before.get(part.name, 0.0) + time.monotonic() - began
                reports[part.name] = part_report(part) | {"spent_s": spent}
                self.folder.update(
                    parts=[reports.get(other.name) or part_report(other) for other in self.parts],
                    answers=self.answers,
                    engine=self._engine(),
                )
                if isinstance(sys.exception(), NotAnswering):
                    # It may not say what it is either.
                    with suppress(NotAnswering):
                        facts = answer_within(ANSWER_TIMEOUT_S, self._target_facts, what="the target")
                        self.folder.update(target=facts)
                else:
                    self._keep_target_facts()

    def _beside(self, part: Part[Any], context: PartContext) -> LoadBeside | None:
        """What runs beside a part, its target prepared by all the actions of its plan."""
        if part.beside is None:
            return None
        workload = workload_of(part.beside.plan)
        opened = workload.open(part.beside, self._targets.of(part.beside), replace(context, points=[]))
        if not isinstance(workload, RunsBeside):
            raise NotSupported(f"a {workload.kind} workload cannot run beside another one")
        beside = workload.beside(opened)
        for _ in opened.steps():
            raise NotSupported(f"{part.beside.title}: runs beside another part, and measures no points of its own")
        return beside

    def _can_run(self, part: Part[Any]) -> bool:
        """Whether this host can run a part; one that may be left out is said before anything is measured."""
        try:
            self._targets.refuse_host(part)
        except AssayError as error:
            self._leave_out(part, error)
            return False
        return True

    def _leave_out(self, part: Part[Any], error: AssayError) -> None:
        if not part.optional:
            raise error
        self.notices.append(f"{part.title}: left out: {error}")
        self.display.tell(self.notices[-1])

    def _made_ready(self, part: Part[Any], recorder: Recorder) -> Part[Any] | None:
        """The part with its target ready; None if it is left out since that cannot be."""
        try:
            ready = self._targets.make_ready(part, self.folder.manifest)
        except (Interrupted, NotAnswering):
            raise
        except AssayError as error:
            self._leave_out(part, error)
            return None
        self._keep_target_facts()
        # What was recorded meanwhile belongs to no part.
        recorder.drain()
        return ready

    def _with_what_it_follows(self, part: Part[Any]) -> Part[Any]:
        """The part with the block size and mix that storage saw in the part it follows."""
        if part.follows is None:
            return part
        point = next((point for point in reversed(self.points) if point["part"] == part.follows), None)
        if point is None:
            raise NotSupported(f"{part.title}: follows {part.follows}, which measured nothing")
        seen = seen_at(point)
        if seen is None:
            raise NotSupported(
                f"point {point['id']}: no I/O was counted under it, so there is nothing to compare storage with; let it"
                " run longer, or on the host of its server"
            )
        target = self._targets.of(part)
        own = target.device_names
        if seen.devices and not target.is_virtual and not seen.devices & {*own}:
            self.notices.append(
                f"{part.title}: is on {', '.join(own) or 'no device'}, and the database on"
                f" {', '.join(sorted(seen.devices))}: they are not the same storage"
            )
        workload = workload_of(part.plan)
        if not isinstance(workload, MeasuresIo):
            raise NotSupported(f"{workload.kind}: cannot follow another part")
        return replace(part, plan=workload.like(part.plan, seen))

    def _engine(self) -> dict[str, Any] | None:
        engines = [point["engine"] for point in self.points]
        return engines[-1] if engines else None

    def _conclude(self, status: str) -> None:
        if (need := self.folder.manifest.get("need")) is not None:
            self.folder.update(need=judged_need(need, self.answers))
        if self.folder.manifest.get("contract") is not None and self.above.judge_contract is not None:
            judged = self.above.judge_contract(self.folder.manifest, self.points, self.answers)
            self.folder.update(contract=judged)
        if not isinstance(self.error, NotAnswering):
            self._conclude_drives()
        conclusions = conclusions_of(self.parts, self.points, self.folder.manifest, is_study=self.study is not None)
        verdict = verdict_of_run(
            self.parts,
            self.points,
            self.answers,
            conclusions,
            is_study=self.study is not None,
            need=self.folder.manifest.get("need"),
            contract=self.folder.manifest.get("contract"),
        )
        target = self.folder.manifest["target"]
        notices = self.notices + [note.text for note in notices_of(self.points, target, self.answers)]
        notices += [notice for conclusion in conclusions for notice in conclusion.notices]
        engine = self._engine() or {}
        if engine.get("backend") == "threads":
            reasons = "; ".join(engine["degraded"])
            notices.append("I/O went through threads" + (f": {reasons}" if reasons else ", as asked"))
        if self.error is not None:
            notices.insert(0, str(self.error))
        study = self.study
        if study is not None and self.above.study_findings is not None:
            places = {part.name: place for place, part in enumerate(self.parts)}
            self.answers.sort(key=lambda answer: places[answer["part"]])
            found = self.above.study_findings(study, self.folder.manifest["parts"], self.points, self.answers)
            self.folder.update(study=study | found)
        for conclusion in conclusions:
            self.folder.update(**conclusion.manifest)
        self.folder.update(
            status=status,
            error=str(self.error) if self.error is not None else None,
            ended_utc_ns=time.time_ns(),
            answers=self.answers,
            verdict=verdict,
            states=states_of(self.points),
            notices=notices,
        )
        if not isinstance(self.error, NotAnswering):
            self.folder.series_writer().compact()
        is_checked = any(isinstance(one, Verifying) and one.document_key in self.told for one in self._workloads)
        if self.above.write_report is not None and (self.points or is_checked):
            self._report(self.above.write_report)

    def _conclude_drives(self) -> None:
        """Keep what the drives say at the end, and in which points they throttled."""
        watch, target = self._targets.drives, self.folder.manifest["target"]
        watch.conclude(self.folder.points())
        if drives := watch.facts(target.get("drives")):
            self.folder.update(target={**target, "drives": drives})

    @property
    def _workloads(self) -> list[Workload[Any]]:
        """The kinds that take part, each once."""
        return workloads_of(self.parts)

    def _report(self, write: Callable[[Path], object]) -> None:
        self.display.phase("writing the report")
        try:
            if self.uninterruptible is not None:
                self.uninterruptible.raising = True
            write(self.folder.path)
        except AssayError as error:
            # The measurements are safe; a report can be written again.
            self.error = self.error or error
        finally:
            if self.uninterruptible is not None:
                self.uninterruptible.raising = False

    def _refuse_ruined_points(self) -> None:
        for point in self.points:
            why = workload_named(point["workload"]["kind"]).ruined(point)
            if why is not None:
                raise IoFailed(f"point {point['id']}: {why}")

    @property
    def exit_code(self) -> ExitCode:
        """What the outcome means for the caller's shell; data that came back wrong weigh more than all else."""
        if failures_told(self.told):
            return ExitCode.INTEGRITY_FAILED
        if self.error is not None:
            return self.error.exit_code
        return exit_code_of(self.folder.manifest["verdict"])

    @property
    def permissions_again(self) -> list[str]:
        """Options that the command to go on needs once more."""
        return self._targets.permissions_again(self.yes_destroy)

    @property
    def can_go_on(self) -> bool:
        """Whether an interrupted run holds anything that `--resume` would not have to do again."""
        is_kept = bool(self.points) or not isinstance(self.error, NothingKept)
        return is_kept and not all(isinstance(workload, Verifying) for workload in self._workloads)


def failures_told(told: Mapping[str, Any]) -> list[str]:
    """What is wrong with data, by what workloads told of a run: `told` has the keys of a manifest."""
    found = [
        workload.failures(told[workload.document_key])
        for workload in workloads()
        if isinstance(workload, Telling) and told.get(workload.document_key)
    ]
    return list(dict.fromkeys(failure for failure in found if failure is not None))


def exit_code_of(verdict: Iterable[VerdictLine], told: Mapping[str, Any] | None = None) -> ExitCode:
    """What the verdict of a run that ended well means for the caller's shell."""
    if failures_told(told or {}):
        return ExitCode.INTEGRITY_FAILED
    asked = {line["met"] for line in verdict if line.get("asked")}
    if False in asked:
        return ExitCode.LIMIT_MISSED
    return ExitCode.LIMIT_UNKNOWN if None in asked else ExitCode.DONE


def run_document(folder: RunFolder) -> dict[str, Any]:
    """The JSON document of a run, from its folder."""
    manifest = folder.manifest
    keys = ("schema_version", "verb", "status", "error", "target", "host", "build", "engine", "cache_span", "parts")
    own = [workload.document_key for workload in workloads() if isinstance(workload, Telling)]
    special = {key: manifest[key] for key in ("need", "contract", "study", "hosts", *own) if manifest.get(key)}
    return {
        **{key: manifest.get(key) for key in keys},
        **special,
        "run_folder": str(folder.path),
        "points": current_points(folder.points()),
        "answers": manifest.get("answers", []),
        "verdict": manifest.get("verdict", []),
        "notices": manifest.get("notices", []),
    }


def new_folder(
    output: Path,
    verb: str,
    command: Sequence[str],
    request: Mapping[str, object],
    parts: Sequence[Part[Any]],
    study: Study | None = None,
) -> RunFolder:
    """A run folder for a new execution."""
    manifest = {
        "command": list(command),
        "request": request,
        "plan": parts[0].plan.model_dump(mode="json") if len(parts) == 1 else None,
        "parts": [part_report(part) for part in parts],
        "target": {"volumes": [], "cache_notice": ""},
        "host": {},
        "build": {},
        "engine": None,
        "cache_span": None,
        "answers": [],
        "verdict": [],
        **{one.document_key: None for one in workloads() if isinstance(one, Verifying)},
        "notices": [],
        **({"study": study} if study is not None else {}),
    }
    folder = RunFolder.create(output, verb, manifest)
    # A copy of the folder has another identity, and is not gone on with.
    folder.update(folder=folder_identity(folder))
    return folder
