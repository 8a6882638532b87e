"""The registration of I/O: what the pipeline knows of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assay.base.errors import RefusedTarget, UsageError
from assay.base.paths import printable
from assay.base.progress import Display
from assay.base.tables import Record, TableValue
from assay.record.shapes.access import Accesses
from assay.record.shapes.point import Point
from assay.targets.files.formatting import refuse_format
from assay.targets.files.purge import can_discard
from assay.targets.files.safety import ExaminedVolume
from assay.targets.files.target import StorageTarget
from assay.workloads.capabilities import (
    Examining,
    Foreseen,
    Importing,
    MeasuresIo,
    OfServers,
    OverHosts,
    Reporting,
    Varied,
)
from assay.workloads.io.activities import load_facts
from assay.workloads.io.cache_span import PART as CACHE_SPAN
from assay.workloads.io.cache_span import cache_span
from assay.workloads.io.cache_span_plan import cache_span_of_part
from assay.workloads.io.examination import PARTS
from assay.workloads.io.figures import FIGURES
from assay.workloads.io.job import IoJob
from assay.workloads.io.plan import IoPlan, load_plan
from assay.workloads.io.precondition import Precondition, precondition_words
from assay.workloads.io.session import check_workload
from assay.workloads.io.shapes import SHAPES
from assay.workloads.io.share import shared_plan
from assay.workloads.job import PartContext
from assay.workloads.next_steps import compare_step
from assay.workloads.plan import Part
from assay.workloads.spread import Share
from assay.workloads.steps import points_of_search
from assay.workloads.workload import Conclusion, Needs, Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.figures import Figure
    from assay.record.source import RunFacts
    from assay.workloads.imported import RunImporter
    from assay.workloads.seen import SeenIo


class IoWorkload(
    Workload[IoPlan],
    MeasuresIo[IoPlan],
    Varied[IoPlan],
    Foreseen[IoPlan],
    OfServers,
    Examining,
    OverHosts[IoPlan],
    Importing,
    Reporting,
):
    """Activities on volumes."""

    kind = "io"
    preset_default = "oltp"
    examination = PARTS
    figures = FIGURES
    shapes = SHAPES
    plan_type = IoPlan
    title = "Storage"
    apart = ("layout",)

    def load_plan(self, data: Record, *, source: str) -> IoPlan:
        """A plan from its TOML or JSON form."""
        return load_plan({key: value for key, value in data.items() if key != "kind"}, source=source)

    def study_plan(self, data: Record, tables: Mapping[str, Record], *, seed: int, source: str) -> IoPlan:
        """The plan of a combination of levels; they change its first activity."""
        if "layout" in tables:
            raise UsageError(f'{source}: a layout is one of transactions; give the plan: kind = "tpcc"')
        first, *others = data.get("activity") or [{}]
        changed = {"activity": [{**first, **tables.get("activity", {})}, *others]}
        for name, table in tables.items():
            if name != "activity":
                changed[name] = {**data.get(name, {}), **table}  # type: ignore[assignment]
        return self.load_plan({**data, "seed": seed, **changed}, source=source)

    def of_servers(self, data: Record, servers: int, *, source: str) -> dict[str, TableValue]:
        """Activities at so many times their rate."""
        activities = [dict(one) for one in data.get("activity") or [{}]]
        for one in activities:
            if not isinstance(one.get("rate"), int | float):
                raise UsageError(f"{source}: the load of several servers is that of a rate; give each activity a rate")
            one["rate"] *= servers
        return {**data, "activity": activities}

    def estimate_s(self, plan: IoPlan) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        workloads = len(plan.workloads())
        fewest, most = (1, 1) if plan.search.axis == "none" else points_of_search(plan.search.repeats)
        return workloads * fewest * plan.timing.shortest_s, workloads * most * plan.timing.longest_s

    def points_least(self, plan: IoPlan) -> int | None:
        """One for each of its workloads."""
        return len(plan.workloads())

    def expected_points(self, plan: IoPlan) -> Iterable[tuple[Record, Record]]:
        """Workload and load of the points to come."""
        for workload in plan.workloads():
            mixed = len(workload.activities) > 1
            yield workload.facts(), {"kind": "mixed"} if mixed else load_facts(workload.activities[0], 1)

    def lines(self, part: Part[IoPlan], target: Any) -> list[str]:
        """The part in words."""
        on = f"; target: {part.target_text}" if part.target_text is not None else ""
        limits = ", ".join(part.plan.limits) or "none"
        first = f"part {part.name}: {part.title}; limits: {limits}; search: {part.plan.search.axis}{on}"
        writes = [f"  {words}" for words in [self.writes(part, target)] if words]
        return [first, *writes, *(f"  {workload.title}" for workload in part.plan.workloads())]

    def document(self, part: Part[IoPlan], target: Any) -> dict[str, Any]:
        """What preconditioning writes at most, where it is asked for."""
        written = self.written_most_bytes(part, target)
        return {"precondition_bytes": round(written)} if written else {}

    # Targets

    def needs(self, plan: IoPlan) -> Needs:
        """Writing, where any activity writes; of models, direct I/O alone."""
        writes = plan.precondition.is_asked or any(workload.writes for workload in plan.workloads())
        return Needs(writes=writes, on_model=lambda: _refuse_real_time(plan))

    def fitted(self, part: Part[IoPlan], target: Any) -> Part[IoPlan]:
        """The latency-against-span part with the spans of the target's smallest volume."""
        if part.name != CACHE_SPAN:
            return part
        plan = cache_span_of_part(min(target.sizes.values()), part.planned_s)
        plan = plan.model_copy(update={"precondition": part.plan.precondition})
        return replace(part, plan=plan, aside=True)

    def check(self, part: Part[IoPlan], target: Any) -> None:
        """Refuse blocks that do not fit the sector, the region or the memory."""
        for volume in target.examined if part.plan.precondition.is_asked else ():
            _refuse_purge(part.plan.precondition, volume, target)
        if part.name == CACHE_SPAN:
            # Its spans are chosen by the size of the target.
            return
        sector_bytes = max(volume.sector_bytes for volume in target.volumes)
        for workload in part.plan.workloads():
            fitted = workload.fitted(sector_bytes) if part.plan.fits_sector else workload
            if fitted is not None:
                check_workload(fitted, target.volumes)

    def prepare(self, part: Part[IoPlan], target: Any, display: Display, interrupt: threading.Event) -> None:
        """Lay the target out."""
        target.make_ready(part.plan.timing.io_timeout_s, display, interrupt)

    # Several hosts

    def share(self, plan: IoPlan, share: Share) -> IoPlan:
        """Totals are spread, and every point lasts as long on all hosts; a shared volume is read, or written apart.

        Raises
        ------
        UsageError
            There is less than one I/O outstanding for each host.
        """
        return shared_plan(plan, share)

    # A run

    def open(self, part: Part[IoPlan], target: Any, context: PartContext) -> IoJob:
        """Begin a part on its volumes."""
        assert isinstance(target, StorageTarget), "I/O runs on storage"
        return IoJob(part, context, volumes=target.volumes, devices=target.device_names, array=target.array)

    def ruined(self, point: Point) -> str | None:
        """Every I/O failed."""
        if not point["errors"]["count"] or point["total"]:
            return None
        kinds = ", ".join(kind for kind, count in point["errors"]["kinds"].items() if count)
        return f"every I/O failed ({kinds}); see the kernel log (dmesg)"

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """Where the cache seems to end."""
        sizes = [volume["size_bytes"] for volume in manifest["target"]["volumes"] if volume["kind"] != "database"]
        span = cache_span(points, min(sizes, default=0))
        note = span["note"] if span is not None else None
        return Conclusion(manifest={"cache_span": span}, notices=[note] if note is not None else [])

    def changes_state(self, plan: IoPlan) -> bool:
        """Whether the plan preconditions its target."""
        return plan.precondition.is_asked

    def written_most_bytes(self, part: Part[IoPlan], target: Any) -> float:
        """What preconditioning writes at most."""
        return part.plan.precondition.written_most_bytes(sum(target.sizes.values()))

    def writes(self, part: Part[IoPlan], target: Any) -> str:
        """What preconditioning writes, and how long that takes."""
        return precondition_words(part.plan.precondition, sum(target.sizes.values()))

    def next_steps(self, manifest: Record, run: str) -> list[str]:
        """Comparing with another state of the storage, and sizing by what was measured."""
        return [
            compare_step(run),
            f"assay size --from {run} --rate N (which arrays hold N such I/Os per second)",
        ]

    def like(self, plan: IoPlan, seen: SeenIo) -> IoPlan:
        """The plan with its first activity as another part's storage saw it."""
        data = plan.model_dump(mode="json", exclude_unset=True)
        first = data["activity"][0] | {"block_bytes": seen.block_bytes, "read_share": round(seen.read_share, 2)}
        return load_plan(data | {"activity": [first]}, source="what the storage saw")

    def importers(self) -> Sequence[RunImporter]:
        """fio, DiskSpd and Iometer."""
        from assay.workloads.io.importers import IMPORTERS

        return IMPORTERS

    # Report

    def label(self, workload: Record) -> str:
        """Its name, or its parameters."""
        from assay.workloads.io.report.labels import workload_label

        return workload_label(cast("Accesses", workload))

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """IOPS within limits, curves, percentiles, and single parts of an examination."""
        from assay.workloads.io.report import io_sections

        return io_sections(facts)

    def remarks(self, facts: RunFacts) -> Remarks:
        """What the storage holds, and what was not measured of it."""
        from assay.workloads.io.report.remarks import io_remarks

        return io_remarks(facts)

    def exported(self) -> Sequence[Figure]:
        """None: reads and writes have columns that all points have."""
        return ()


def _refuse_purge(wanted: Precondition, volume: ExaminedVolume, target: StorageTarget) -> None:
    """Refuse a purge that the volume cannot have, or that was not allowed; a model begins fresh whatever is asked."""
    name, shown = volume.spec.name, printable(volume.spec.path or volume.spec.name)
    if volume.spec.kind == "model" or wanted.purge in ("auto", "none"):
        return
    if wanted.purge == "discard":
        if not can_discard(volume.path):
            raise UsageError(
                f"--purge discard: {name} takes no discards: it is no device, or one whose kernel driver has none;"
                " leave --purge out"
            )
        return
    refuse_format(volume.hold, shown)
    if name not in target.may_format:
        raise RefusedTarget(
            f"--purge format: erases all of {shown}, beyond --size as well; allow it by name with --yes-format {shown}"
        )


def _refuse_real_time(plan: IoPlan) -> None:
    """Refuse what goes through this host: its queues and its page cache, neither of which a model has."""
    if plan.backend != "auto":
        raise UsageError(f"--backend {plan.backend}: a model does no I/O; leave it out")
    for workload in plan.workloads():
        for activity in workload.activities:
            where = f"activity {activity.name!r}"
            if activity.io_mode != "direct":
                raise UsageError(
                    f"--buffered ({where}, key io_mode): a model has no page cache before it; leave it out"
                )
