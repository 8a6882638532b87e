"""A part of I/O at work: what it asks to be measured, and what a point says besides."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from assay import _core
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.state import TargetState
from assay.record.state import UNKNOWN
from assay.targets.arrays.model.age import STATES, age_of, purged
from assay.targets.arrays.model.configuration import Configuration
from assay.targets.files.volume import OpenVolume
from assay.workloads.io.activities import IoWorkloadSpec, load_facts
from assay.workloads.io.conditioning import Conditioning
from assay.workloads.io.measurement import Measurement
from assay.workloads.io.plan import IoPlan
from assay.workloads.io.session import deepest_queue, sharing_roles, volumes_for
from assay.workloads.io.shapes import FoundIo, found_at
from assay.workloads.job import Job, PartContext
from assay.workloads.modelled import ModelRun
from assay.workloads.plan import Part
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps

BAND_POINT_MAX_S = 60.0
"""Longer points are asked once, not a dozen times for an error band."""


class IoJob(Job):
    """A part of I/O at work on volumes, or on a modelled array whose time is its own."""

    plan: IoPlan

    def __init__(
        self,
        part: Part[IoPlan],
        context: PartContext,
        *,
        volumes: Sequence[OpenVolume],
        devices: Sequence[str] = (),
        array: Configuration | None = None,
        warm: _core.WarmCaches | None = None,
    ) -> None:
        self.part, self.plan, self.context = part, part.plan, context
        self.volumes, self.devices = volumes, devices
        self.model = _model_of(part, array, context, warm)
        # A model begins afresh anyway; the published SQLIO runs left the device alone between points.
        self.rest_s = 0.0 if self.model is not None else self.plan.timing.rest_s
        for workload in self.plan.workloads()[:1]:
            shared: dict[tuple[str, ...], list[str]] = {}
            for name, roles in sharing_roles(workload, self.volumes).items():
                shared.setdefault(tuple(roles), []).append(name)
            for those, names in shared.items():
                where = f"the volume {names[0]}" if len(names) == 1 else f"{len(names)} volumes ({names[0]}, ...)"
                context.note(f"{part.title or part.name}: {', '.join(those)} share {where}, each in a part of its own")

    def steps(self) -> Steps:
        """Bring the target into its state, then measure or search each of the plan's workloads."""
        state = yield from self._conditioned()
        for workload in self._workloads():
            is_plain = self.plan.search.axis == "none"
            yield Measure(ask=self._ask(workload, state)) if is_plain else self._search(workload, state)

    def _conditioned(self) -> Generator[Measure, Point, TargetState]:
        """Do what the plan asks for before it measures; gives the state that the target is in."""
        wanted, states = self.plan.precondition, self.context.states
        where = str([(volume.name, str(volume.spec.path)) for volume in self.volumes])
        if self.model is not None:
            # The array that parts of a chain share, however each of them configures it.
            where = f"model {id(self.model)}"
            states = states if self.part.continues else {}
        begins: TargetState = {"name": UNKNOWN}
        if self.model is not None and (age := age_of(self.model.configuration)):
            begins = {"name": STATES[age], "method": "model"}
        if not wanted.is_asked:
            return states.get(where) or begins
        conditioning = Conditioning(
            wanted=wanted,
            volumes=self.volumes,
            workloads=self._workloads(),
            common=self._common,
            ask=lambda workload: self._ask(workload, {}),
            note=self.context.note,
            is_model=self.model is not None,
            is_fresh=self.model is not None and not self.part.continues,
        )
        yield from conditioning.steps()
        self.context.states[where] = conditioning.state
        return conditioning.state

    def _workloads(self) -> list[IoWorkloadSpec]:
        """The plan's workloads, without blocks the sector forbids where the plan allows to leave them out."""
        workloads = self.plan.workloads()
        if not self.plan.fits_sector:
            return workloads
        sector_bytes = max(volume.sector_bytes for volume in self.volumes)
        fitted = [workload.fitted(sector_bytes) for workload in workloads]
        left_out = sum(1 for before, after in zip(workloads, fitted, strict=True) if before != after)
        if left_out:
            self.context.note(
                f"{self.part.name}: blocks that are no multiple of the sector of {sector_bytes} bytes are left out"
                f" of {left_out} workloads"
            )
        return [workload for workload in fitted if workload is not None]

    def _search(self, workload: IoWorkloadSpec, state: TargetState) -> Search:
        settings = self.plan.search
        first = workload.activities[0]
        workers = first.workers * len(volumes_for(first, self.volumes))
        outstanding = settings.axis == "queue-depth"
        end = min(settings.last_load, float(deepest_queue(first))) if outstanding else settings.last_load
        start = settings.first_load if outstanding or settings.start is not None else first.rate or settings.first_load
        # A plan counts outstanding I/Os per worker; the axis and answers count them in total.
        each = workers if outstanding else 1
        axis = Axis(
            name="outstanding" if outstanding else "rate",
            start=min(start, end) * each,
            end=end * each,
            whole=outstanding,
            resolution_share=settings.resolution_share,
            stops_at_plateau=settings.plateau,
            steps=tuple(sorted(step * each for step in settings.steps)),
        )

        return Search(
            axis=axis,
            ask=lambda load: self._ask(workload.with_load(axis.name, load, workers), state),
            workload=workload.facts(),
            repeats=settings.repeats,
        )

    @property
    def _common(self) -> dict[str, Any]:
        """What decides the figures of all points of the part."""
        wanted = self.plan.precondition
        return {
            "target": [
                (volume.spec.kind, str(volume.spec.path), volume.roles, volume.size_bytes) for volume in self.volumes
            ],
            "seed": self.plan.seed,
            **({"model": self.model.key} if self.model is not None else {}),
            **({"precondition": wanted.model_dump(mode="json")} if wanted.is_asked else {}),
        }

    def _ask(self, workload: IoWorkloadSpec, state: TargetState) -> Ask:
        first = workload.activities[0]
        mixed = len(workload.activities) > 1
        return Ask(
            key={
                "workload": workload.model_dump(mode="json"),
                "timing": self.plan.timing.model_dump(mode="json"),
                **self._common,
            },
            workload=workload.facts(),
            load={"kind": "mixed"} if mixed else load_facts(first, len(volumes_for(first, self.volumes))),
            what=workload,
            facts={"state": dict(state)},
        )

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure a workload.

        Raises
        ------
        Interrupted
            The point is not kept.
        """
        measurement = Measurement(self, ask, repeat, timing=self.plan.timing)
        try:
            figures = measurement.run()
        finally:
            writer = self.context.folder.series_writer()
            writer.write(measurement.series)
            writer.close_segment(point_id)
        return Measured(figures={**figures}, error=measurement.error, rates=measurement.rates)

    def complete_answer(self, answer: Answer) -> None:
        """Say of a model's answer how far it may be off."""
        bands = self.context.bands
        if bands is None or self.model is None or self.model.goes_on:
            return
        band = bands.band_of_answer(
            self.model.configuration, answer, self.context.points, interrupt=self.context.interrupt
        )
        if band is not None:
            best: FoundIo = found_at(answer) or {}
            answer |= band.around(best["iops"])

    def complete_point(self, point: dict[str, Any], ask: Ask) -> None:
        """Say of a model's point how far it may be off, where points are compared."""
        bands = self.context.bands
        if bands is None or self.model is None or self.model.goes_on or not self.context.for_study:
            return
        if point["purpose"] != "grid" or self.plan.precondition.is_asked or not point["total"]:
            return
        if len(ask.what.activities) > 1 or point["measured_s"] > BAND_POINT_MAX_S:
            return
        band = bands.band_of_point(self.model.configuration, point, interrupt=self.context.interrupt)
        if band is not None:
            point |= band.around(point["total"]["iops"])


def _model_of(
    part: Part[IoPlan], array: Configuration | None, context: PartContext, warm: _core.WarmCaches | None
) -> ModelRun | None:
    """The modelled array of a part: that of the part before where it continues, else a fresh one."""
    if array is None:
        return None
    before = context.before.model if isinstance(context.before, IoJob) else None
    if part.continues and before is not None:
        before.goes_on_with(array)
        return before
    wanted = part.plan.precondition
    return ModelRun(
        configuration=purged(array) if wanted.is_asked and wanted.purge != "none" else array,
        epoch_ns=context.epoch_ns,
        goes_on=context.is_continued or part.plan.precondition.is_asked,
        warm=warm,
    )
