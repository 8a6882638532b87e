"""The registration of verifying: what the pipeline knows of it."""

from __future__ import annotations

import math
import shlex
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assay import _core
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.base.progress import Display
from assay.base.tables import Record
from assay.base.units import format_bytes, format_duration
from assay.record.power_cut import DriveCut
from assay.record.shapes.point import Point
from assay.targets.files.spec import HOLDS_NO_BYTES, VolumeSpec, named, parse_file
from assay.workloads.capabilities import Examining, Foreseen, OverHosts, Reporting, Verifying
from assay.workloads.integrity.core_plan import check_memory, memory_of, run_plan
from assay.workloads.integrity.examination import PARTS
from assay.workloads.integrity.figures import FIGURES
from assay.workloads.integrity.files import files_by_path, place_files
from assay.workloads.integrity.job import IntegrityJob
from assay.workloads.integrity.plan import IntegrityPlan
from assay.workloads.integrity.power import power_cuts
from assay.workloads.integrity.result import findings_line
from assay.workloads.integrity.shapes import SHAPES, Integrity
from assay.workloads.integrity.verdict import integrity_line
from assay.workloads.plan import Part
from assay.workloads.workload import Conclusion, Needs, Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.figures import Figure
    from assay.record.source import RunFacts


class IntegrityWorkload(
    Workload[IntegrityPlan], Verifying, Foreseen[IntegrityPlan], Examining, OverHosts[IntegrityPlan], Reporting
):
    """Users like a database engine's, and every page compared with what it should be."""

    kind = "integrity"
    preset_default = "default"
    examination = PARTS
    figures = FIGURES
    shapes = SHAPES
    plan_type = IntegrityPlan
    job = IntegrityJob
    title = "Integrity"
    document_key = "integrity"
    apart = ("preparing, final checkpoint, audit",)

    def estimate_s(self, plan: IntegrityPlan) -> tuple[float, float]:
        """Time of its stress phases."""
        stress_s = plan.timing.stress_s * (plan.cycles or math.inf)
        return stress_s, stress_s

    def expected_points(self, plan: IntegrityPlan) -> Iterable[tuple[Record, Record]]:
        """A phase."""
        yield {"kind": "integrity", "name": "stress", "phase": "stress", "cycle": 1}, {"kind": "integrity"}

    def lines(self, part: Part[IntegrityPlan], target: Any) -> list[str]:
        """The part in words, with its files."""
        plan, files = part.plan, place_files(target, part.plan)
        cycles = f"{plan.cycles} times" if plan.cycles else "until interrupted"
        lines = [
            f"part {part.name}: {part.title}; {cycles}: prepare, stress for {format_duration(plan.timing.stress_s)},"
            " checkpoint, audit of every page"
        ]
        for file in files:
            begins = f" from {format_bytes(file.base_bytes)}" if file.base_bytes else ""
            grows = f", may grow to {format_bytes(file.max_bytes)}" if file.can_grow else ""
            kind = "log" if file.log else "data"
            lines.append(f"  {kind} {file.name}: {file.path}{begins}, {format_bytes(file.size_bytes)}{grows}")
        prepared = sum(file.size_bytes for file in files)
        return [
            *lines,
            f"  preparing writes {format_bytes(prepared)}",
            f"  needs {format_bytes(memory_of(plan, files).needed_bytes)} of memory",
        ]

    def document(self, part: Part[IntegrityPlan], target: Any) -> dict[str, Any]:
        """Its files, the memory it needs, and what another tool's configuration was taken for."""
        files = place_files(target, part.plan)
        return {
            "files": [
                {key: value for key, value in vars(file).items() if key != "held"} | {"path": str(file.path)}
                for file in files
            ],
            "memory_bytes": memory_of(part.plan, files).needed_bytes,
            "understood": list(part.understood),
        }

    def writes(self, part: Part[IntegrityPlan], target: Any) -> str:
        """The pages of every file, written before the stress; a crash check writes nothing."""
        files = [] if target.after_crash else place_files(target, part.plan)
        names = ", ".join(dict.fromkeys(printable(file.path) for file in files))
        return f"preparing writes {format_bytes(sum(file.size_bytes for file in files))} to {names}" if files else ""

    # Targets

    def needs(self, plan: IntegrityPlan) -> Needs:
        """Bytes, which a model does not hold; the files that the plan names."""

        def refuse() -> None:
            raise UsageError(HOLDS_NO_BYTES)

        def sparse(specs: Sequence[VolumeSpec]) -> list[str]:
            files = files_by_path(plan)
            if files:
                return [spec.name for spec in specs if files[str(spec.path)].sparse]
            return [spec.name for spec in specs if plan.sparse and spec.role != "log"]

        files = [
            replace(parse_file(file.path, "log" if file.log else "data"), size_bytes=file.size_bytes)
            for file in plan.files
        ]
        return Needs(names_faults=True, on_model=refuse, files=tuple(named(files)), sparse=sparse)

    def check(self, part: Part[IntegrityPlan], target: Any) -> None:
        """Refuse what memory cannot hold, and a journal of another run."""
        files = place_files(target, part.plan)
        check_memory(part.plan, files)
        if target.after_crash:
            _core.examine_journal(run_plan(part.plan, target, files, run_id=0))

    def prepare(self, part: Part[IntegrityPlan], target: Any, display: Display, interrupt: threading.Event) -> None:
        """Lay out files, unless they are for an imitated database, which writes all of them itself."""
        target.make_ready(part.plan.timing.io_timeout_s, display, interrupt)

    # Several hosts

    adds = frozenset(
        {
            *("findings", "transient", "persistent", "injected", "observable", "masked"),
            *("pages", "pages_verified", "bytes_verified", "pages_written", "bytes_written", "resizes"),
            *("expected_state_bytes", "log_blocks"),
        }
    )

    # A run

    def power_cuts(self, manifest: Record) -> list[DriveCut]:
        """The crash that a check looked at."""
        told: Integrity | None = manifest.get("integrity")
        return power_cuts(told, manifest["target"]) if told else []

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """Whether every page was right."""
        told: Integrity | None = manifest.get("integrity")
        return Conclusion(first=[integrity_line(told)] if told else [])

    def next_steps(self, manifest: Record, run: str) -> list[str]:
        """What the gravest finding means for a database and what to check; else what is still to be verified."""
        told = cast("Integrity | None", manifest.get("integrity"))
        if told is None:
            return []
        paths = [str(path) for path in (manifest.get("request") or {}).get("paths") or ["TARGET"]]
        where = shlex.join(paths)
        found = [name for name, count in told["findings"].items() if count]
        if told.get("observable") is not None:
            plain = shlex.join(path.removeprefix("faulty:").partition("?")[0] for path in paths)
            return [f"assay verify {plain} (the storage itself, without injected faults)"]
        if found:
            from assay.workloads.integrity.report.faults import for_database, severity

            return [
                for_database(min(found, key=severity)),
                f"assay check {run} (caches, barriers and mounts as this host shows them), then verify again",
            ]
        if told.get("journal") is None:
            cut = f"assay verify {where} --crash-journal FILE"
            return [f"{cut} (then cut the power: --after-crash FILE tells whether acknowledged writes are there)"]
        return [f"assay profile {where} (how fast it is, now that it keeps its data)"]

    def failures(self, told: Record) -> str | None:
        """Findings by name."""
        found = findings_line(cast("Integrity", told))
        if found and told.get("observable") is not None:
            from assay.workloads.integrity.report.faults import self_test

            tested = self_test(cast("Integrity", told))
            return f"{tested[0]} ({found})" if tested else None
        return f"integrity failed: {found}" if found else None

    # Report

    def label(self, workload: Record) -> str:
        """The name of a phase."""
        return f"{self.kind}: {workload.get('name') or '-'}"

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """What was found."""
        from assay.workloads.integrity.report.section import integrity_section

        section = integrity_section(facts)
        return [section] if section else []

    def remarks(self, facts: RunFacts) -> Remarks:
        """Whether the data came back right."""
        from assay.workloads.integrity.report.remarks import integrity_remarks

        return integrity_remarks(facts)

    def exported(self) -> Sequence[Figure]:
        """None: reads and writes have columns that all points have."""
        return ()
