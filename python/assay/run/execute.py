"""One execution from plan to report: every verb that measures goes through here."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from assay import _core
from assay.errors import AssayError, ExitCode, Interrupted, IoFailed, NotAnswering, NotSupported
from assay.progress import Display
from assay.results.limits import parse_limits
from assay.results.points import CUT_SHORT, current_points
from assay.results.run_folder import RunFolder
from assay.run.chains import forget_unfinished, in_order
from assay.run.notices import notices_of
from assay.run.part import AnyTarget, Part, part_report
from assay.run.part_targets import PartTargets, devices_of
from assay.run.resumed import folder_identity, permissions_again
from assay.run.seen import seen_plan
from assay.run.verdict import verdict_lines
from assay.targets.host import host_facts
from assay.targets.storage.target import Target
from assay.telemetry.recorder import Recorder
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.result import findings_total
from assay.workloads.integrity.runner import IntegrityRunner
from assay.workloads.integrity.verdict import integrity_line
from assay.workloads.io.cache_span import PART as CACHE_SPAN
from assay.workloads.io.cache_span import cache_span
from assay.workloads.io.modelled import ModelRun
from assay.workloads.io.plan import Plan
from assay.workloads.io.runner import Runner
from assay.workloads.io.session import sharing_roles
from assay.workloads.registry import workload_of
from assay.workloads.tpcc.check import violations_total
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.runner import OltpRunner, actions_done
from assay.workloads.tpcc.target import DatabaseTarget
from assay.workloads.tpcc.verdict import consistency_line, load_line


class Raising(Protocol):
    """Whether a signal raises where the main thread is."""

    raising: bool


@dataclass(kw_only=True)
class Execution:
    """A run in progress or done."""

    verb: str
    folder: RunFolder
    target: AnyTarget
    """That of all parts that have none of their own."""
    parts: Sequence[Part]
    display: Display
    interrupt: threading.Event
    with_report: bool = True
    keeps_interrupted: bool = False
    """Whether an interrupted point is kept with what it has, as SQLIO does."""
    uninterruptible: Raising | None = None
    """Set while work goes on that does not look at `interrupt`."""
    yes_destroy: Sequence[str] = ()
    """Devices that carry a signature and may be overwritten all the same."""
    study: dict[str, Any] | None = None
    """What is varied and compared (docs/studies.md); parts run in its order."""
    points: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    integrity: dict[str, Any] | None = None
    """What the integrity part found (docs/integrity.md)."""
    oltp: dict[str, Any] | None = None
    """What transactions on databases came to (docs/oltp.md)."""
    _warehouses: int = 0
    error: AssayError | None = None
    _model: ModelRun | None = None
    _targets: PartTargets = field(init=False)

    def __post_init__(self) -> None:
        self._targets = PartTargets(
            shared=self.target, parts=self.parts, display=self.display, interrupt=self.interrupt
        )

    def run(self) -> ExitCode:
        """Do everything; what is finished is in the run folder whatever happens. Returns the exit code."""
        try:
            self._measure()
            status = "done"
        except Interrupted as error:
            self.error, status = error, "interrupted"
        except AssayError as error:
            self.error, status = error, "failed"
        finally:
            self._targets.leave()
            if not isinstance(self.error, NotAnswering):
                self._targets.settle()
            self.notices += self._targets.notices
        self._conclude(status)
        return self.exit_code

    def _measure(self) -> None:
        targets = self._targets
        own = [part.target for part in self.parts if part.target is not None]
        self.notices = list(dict.fromkeys(notice for each in (self.target, *own) for notice in each.notices))
        for each in (self.target, *own):
            if isinstance(each, Target):
                each.run = self.folder.path.name
        self.folder.update(host=host_facts(), build=_core.build_info(), status="running", error=None)
        self._keep_target_facts()
        if isinstance(self.target, Target):
            targets.lay_out(self.target)
            self._keep_target_facts()
        with Recorder(targets.collectors()) as recorder:
            try:
                self._run_parts(recorder)
            finally:
                self.notices += recorder.notices
        self._note_strangers()
        self._refuse_failed_points()

    def _keep_target_facts(self) -> None:
        self.folder.update(target=self._targets.facts(self.folder.manifest["target"]))

    def _note_strangers(self) -> None:
        """Say of points that nobody asked for this time: the target or the plan is no longer what it was."""
        asked = {point["key"] for point in self.points}
        others = [point["id"] for point in self.folder.points() if point["key"] not in asked]
        if others and all(isinstance(part.plan, Plan) for part in self.parts):
            self.notices.append(f"the folder holds points of another model or plan, in no answer: {', '.join(others)}")

    def _run_parts(self, recorder: Recorder) -> None:
        known = self.folder.points()
        finished = {point["key"]: point for point in known if point["ended_by"] not in CUT_SHORT}
        numbers = itertools.count(len(known) + 1)
        spent_before = {part["name"]: part["spent_s"] or 0.0 for part in self.folder.manifest["parts"]}
        ordered = in_order(self.parts, self.study)
        forget_unfinished(ordered, finished)
        reports: dict[str, dict[str, Any]] = {}
        for part in ordered:
            began = time.monotonic()
            ready = self._made_ready(part, recorder)
            if ready is None:
                continue
            part = self._with_what_it_follows(ready)
            runner = self._runner(part, recorder, finished, numbers)
            try:
                with recorder.also(self._targets.own_collectors(part)):
                    self.answers += runner.run()
            finally:
                self.points += runner.points
                self.notices += [notice for notice in runner.notices if notice not in self.notices]
                if isinstance(runner, IntegrityRunner):
                    self.integrity = runner.integrity
                elif isinstance(runner, OltpRunner):
                    self.oltp = runner.oltp
                    self._warehouses = runner.target.warehouses_total
                spent = spent_before.get(part.name, 0.0) + time.monotonic() - began
                reports[part.name] = part_report(part) | {"spent_s": spent}
                self.folder.update(
                    parts=[reports.get(other.name) or part_report(other) for other in self.parts],
                    answers=self.answers,
                    engine=self._engine(),
                )
                self._keep_target_facts()

    def _made_ready(self, part: Part, recorder: Recorder) -> Part | None:
        """The part with its target ready; None if it is left out since that cannot be."""
        try:
            ready = self._targets.make_ready(part, actions_done(self.folder.manifest, part.name))
        except (Interrupted, NotAnswering):
            raise
        except AssayError as error:
            if not part.optional:
                raise
            self.notices.append(f"{part.title}: left out: {error}")
            self.display.tell(self.notices[-1])
            return None
        self._keep_target_facts()
        # Nobody asks what was recorded meanwhile.
        recorder.drain()
        return ready

    def _with_what_it_follows(self, part: Part) -> Part:
        """The part with the block size and mix that the storage of databases saw in the part it follows."""
        if part.follows is None:
            return part
        assert isinstance(part.plan, Plan), "I/O follows what transactions did"
        point = next((point for point in reversed(self.points) if point["part"] == part.follows), None)
        if point is None:
            raise NotSupported(f"{part.title}: follows {part.follows}, which measured nothing")
        seen = {device["device"] for device in (point["oltp"]["storage"] or {}).get("devices", ())}
        own = devices_of(self._targets.of(part))
        if seen and not seen & {*own}:
            self.notices.append(
                f"{part.title}: is on {', '.join(own) or 'no device'}, and the database on {', '.join(sorted(seen))}:"
                " they are not the same storage"
            )
        return replace(part, plan=seen_plan(part.plan, point))

    def _runner(
        self, part: Part, recorder: Recorder, finished: dict[str, dict[str, Any]], numbers: Iterator[int]
    ) -> Runner | IntegrityRunner | OltpRunner:
        """What measures or verifies a part."""
        target, plan = self._targets.of(part), part.plan
        limits = parse_limits(plan.limits, workload_of(plan).figures)
        if isinstance(target, DatabaseTarget):
            assert isinstance(plan, TpccPlan), "databases are the target of transactions alone"
            return OltpRunner(
                folder=self.folder,
                recorder=recorder,
                target=target,
                plan=plan,
                part=part.name,
                limits=limits,
                interrupt=self.interrupt,
                display=self.display,
                finished=finished,
                numbers=numbers,
            )
        assert not isinstance(plan, TpccPlan), "transactions run on databases alone"
        if isinstance(plan, IntegrityPlan):
            return IntegrityRunner(
                folder=self.folder,
                recorder=recorder,
                target=target,
                devices=devices_of(target),
                plan=plan,
                part=part.name,
                understood=part.understood,
                limits=limits,
                interrupt=self.interrupt,
                show=self.display.point,
                done=self.display.point_done,
                tell=self.display.tell,
                finished=finished,
                numbers=numbers,
            )
        self._note_sharing(plan, part.title or part.name, target)
        self._choose_model(part, target)
        return Runner(
            folder=self.folder,
            model=self._model,
            with_bands=self.study is not None,
            recorder=recorder,
            volumes=target.volumes,
            devices=devices_of(target),
            plan=plan,
            part=part.name,
            limits=limits,
            interrupt=self.interrupt,
            show=self.display.point,
            done=self.display.point_done,
            finished=finished,
            numbers=numbers,
            keeps_interrupted=self.keeps_interrupted,
        )

    def _choose_model(self, part: Part, target: Target) -> None:
        """Make the modelled array of a part, or go on with that of the part before."""
        before = self._model
        if target.array is None:
            self._model = None
        elif part.continues and before is not None:
            before.goes_on_with(target.array)
        else:
            order = in_order(self.parts, self.study)
            following = order[order.index(part) + 1 :][:1]
            self._model = ModelRun(
                configuration=target.array,
                epoch_ns=self.folder.manifest["started_utc_ns"],
                goes_on=any(other.continues for other in following),
                elapsed_ns=before.elapsed_ns if before is not None else 0,
            )

    def _note_sharing(self, plan: Plan, title: str, target: Target) -> None:
        for workload in plan.workloads()[:1]:
            for name, roles in sharing_roles(workload, target.volumes).items():
                notice = f"{title}: {', '.join(roles)} share the volume {name}, each in a part of its own"
                if notice not in self.notices:
                    self.notices.append(notice)

    def _engine(self) -> dict[str, Any] | None:
        engines = [point["engine"] for point in self.points]
        return engines[-1] if engines else None

    def _conclude(self, status: str) -> None:
        volumes = self.folder.manifest["target"]["volumes"]
        sizes = [volume["size_bytes"] for volume in volumes if volume["kind"] != "database"]
        span = cache_span(self.points, min(sizes, default=0))
        measured = [point for point in self.points if point["part"] != CACHE_SPAN]
        verdict = verdict_lines(measured, self.answers) if self.study is None else self._verdict_by_part()
        if self.integrity is not None:
            verdict.insert(0, integrity_line(self.integrity))
        verdict += self._verdict_of_databases()
        notices = self.notices + [note.text for note in notices_of(self.points, self.folder.manifest["target"])]
        if span is not None:
            notices.append(span["note"])
        engine = self._engine() or {}
        if engine.get("backend") == "threads":
            reasons = "; ".join(engine["degraded"])
            notices.append("I/O went through threads" + (f": {reasons}" if reasons else ", as asked"))
        if self.error is not None:
            notices.insert(0, str(self.error))
        if self.study is not None:
            from assay.studies.findings import study_findings

            places = {part.name: place for place, part in enumerate(self.parts)}
            self.answers.sort(key=lambda answer: places[answer["part"]])
            found = study_findings(self.study, self.folder.manifest["parts"], self.points, self.answers)
            self.folder.update(study=self.study | found)
        self.folder.update(
            status=status,
            error=str(self.error) if self.error is not None else None,
            ended_utc_ns=time.time_ns(),
            answers=self.answers,
            cache_span=span,
            verdict=verdict,
            notices=notices,
        )
        if not isinstance(self.error, NotAnswering):
            self.folder.series_writer().compact()
        if self.with_report and (self.points or self.integrity):
            self._report()

    def _verdict_of_databases(self) -> list[dict[str, Any]]:
        found, lines = self.oltp or {}, []
        if found.get("load"):
            lines.append(load_line(found["load"], self._warehouses))
        if found.get("conditions"):
            lines.append(consistency_line(found["conditions"]))
        return lines

    def _verdict_by_part(self) -> list[dict[str, Any]]:
        """Verdict lines in the order of the levels, each with its levels before the question."""
        return [
            line | {"question": f"{part.title}: {line['question']}"}
            for part in self.parts
            for line in verdict_lines(
                [point for point in self.points if point["part"] == part.name],
                [answer for answer in self.answers if answer["part"] == part.name],
            )
        ]

    def _report(self) -> None:
        from assay.report import write_report

        self.display.phase("writing the report")
        try:
            if self.uninterruptible is not None:
                self.uninterruptible.raising = True
            write_report(self.folder.path)
        except AssayError as error:
            # The measurements are safe; a report can be written again.
            self.error = self.error or error
        finally:
            if self.uninterruptible is not None:
                self.uninterruptible.raising = False

    def _refuse_failed_points(self) -> None:
        for point in self.points:
            if point["workload"]["kind"] == "tpcc" and point["errors"]["count"] and not point["oltp"]["tpm_client"]:
                example = point["oltp"]["errors"]["example"] or "see the log of the server"
                raise IoFailed(f"point {point['id']}: every transaction failed: {example}")
            is_io = point["workload"]["kind"] == "io"
            if is_io and point["errors"]["count"] and not point["total"]:
                kinds = ", ".join(kind for kind, count in point["errors"]["kinds"].items() if count)
                raise IoFailed(f"point {point['id']}: every I/O failed ({kinds}); see the kernel log (dmesg)")

    @property
    def exit_code(self) -> ExitCode:
        """What the outcome means for the caller's shell; data that came back wrong weigh more than all else."""
        if findings_total(self.integrity) or violations_total(self.oltp):
            return ExitCode.INTEGRITY_FAILED
        if self.error is not None:
            return self.error.exit_code
        return exit_code_of(self.parts, self.points, self.answers)

    @property
    def permissions_again(self) -> list[str]:
        """Options that the command to go on needs once more."""
        return permissions_again(self._targets.all, self.yes_destroy)

    @property
    def can_go_on(self) -> bool:
        """Whether an interrupted run holds anything that `--resume` would not have to do again."""
        return any(not isinstance(part.plan, IntegrityPlan) for part in self.parts)


def exit_code_of(
    parts: Sequence[Part],
    points: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    integrity: Mapping[str, Any] | None = None,
    oltp: Mapping[str, Any] | None = None,
) -> ExitCode:
    """What the figures of a run that ended well mean for the caller's shell."""
    if findings_total(integrity) or violations_total(oltp):
        return ExitCode.INTEGRITY_FAILED
    asked = {part.name for part in parts if part.plan.user_limits}
    missed = any(
        verdict["met"] is False
        for point in points
        if point["part"] in asked and point["purpose"] == "grid"
        for verdict in point["limits"]
    )
    unanswered = any(answer["max"] is None for answer in answers)
    return ExitCode.LIMIT_MISSED if missed or unanswered else ExitCode.DONE


def run_document(folder: RunFolder) -> dict[str, Any]:
    """The JSON document of a run, from its folder."""
    manifest = folder.manifest
    keys = ("schema_version", "verb", "status", "error", "target", "host", "build", "engine", "cache_span", "parts")
    special = {key: manifest[key] for key in ("integrity", "study", "oltp") if manifest.get(key)}
    return {
        **{key: manifest.get(key) for key in keys},
        **special,
        "run_folder": str(folder.path),
        "points": current_points(folder.points()),
        "answers": manifest.get("answers", []),
        "verdict": manifest.get("verdict", []),
        "notices": manifest.get("notices", []),
    }


def estimate_s(parts: Sequence[Part]) -> tuple[float, float]:
    """Shortest and longest time the parts take, infinite until interrupted; without writing and auditing all files."""
    shortest = longest = 0.0
    for part in parts:
        if isinstance(part.plan, TpccPlan):
            fewest, most = part.plan.points_count if "run" in part.plan.actions else (0, 0)
            shortest += fewest * part.plan.timing.point_s
            longest += most * part.plan.timing.point_s
            continue
        if isinstance(part.plan, IntegrityPlan):
            stress_s = part.plan.timing.stress_s * (part.plan.cycles or math.inf)
            shortest, longest = shortest + stress_s, longest + stress_s
            continue
        timing, search = part.plan.timing, part.plan.search
        workloads = len(part.plan.workloads())
        fewest, most = (1, 1) if search.axis == "none" else (4 + 2 * search.repeats, 16 + 2 * search.repeats)
        shortest += workloads * fewest * timing.shortest_s
        longest += workloads * most * timing.longest_s
    return shortest, longest


def print_json(document: dict[str, Any]) -> str:
    """One JSON document, numbers that are not finite refused."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    # Names of bytes that are no text are halves of surrogate pairs: JSON may hold these escaped, UTF-8 never.
    return text if _is_text(text) else json.dumps(document, allow_nan=False, indent=1)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def new_folder(
    output: Path,
    verb: str,
    command: Sequence[str],
    request: dict[str, Any],
    parts: Sequence[Part],
    study: dict[str, Any] | None = None,
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
        "integrity": None,
        "notices": [],
        **({"study": study} if study is not None else {}),
    }
    folder = RunFolder.create(output, verb, manifest)
    # A copy of the folder has another identity, and is not gone on with.
    folder.update(folder=folder_identity(folder))
    return folder
