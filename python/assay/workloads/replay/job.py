"""A replay at work on volumes, or on a modelled array whose time is its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.record.shapes.point import Load
from assay.workloads.job import Job, PartContext
from assay.workloads.modelled import ModelRun
from assay.workloads.replay.measurement import ReplayMeasurement
from assay.workloads.replay.overlay import Overlay, overlay
from assay.workloads.replay.plan import ReplayPlan
from assay.workloads.steps import Ask, Axis, Measure, Measured, Search, Steps

if TYPE_CHECKING:
    from assay.record.shapes.access import Accesses
    from assay.targets.arrays.model.configuration import Configuration
    from assay.targets.files.volume import OpenVolume
    from assay.workloads.plan import Part


SHORTEST_S = 1.0
"""A search goes no faster than a replay of this length, unless the plan says where it ends."""


class ReplayJob(Job):
    """A replay at work."""

    plan: ReplayPlan

    def __init__(
        self,
        part: Part[ReplayPlan],
        context: PartContext,
        *,
        volumes: Sequence[OpenVolume],
        devices: Sequence[str] = (),
        array: Configuration | None = None,
    ) -> None:
        self.part, self.plan, self.context = part, part.plan, context
        self.volumes, self.devices = volumes, devices
        self.model = None if array is None else ModelRun(configuration=array, epoch_ns=context.epoch_ns)
        laid = overlay(self.plan, volumes)
        used = {seat.volume for own in laid.seats for seat in own.values()}
        if len(used) < len(volumes):
            context.note(
                f"{len(volumes) - len(used)} of {len(volumes)} volumes hold no device of the trace, and no I/O"
            )
        for one in laid.found:
            if one.discards:
                context.note(f"{one.trace.path.name}: {one.discards:,} discards are left out")
            if one.trace.end is None:
                context.note(
                    f"{one.trace.path.name}: was not closed by what wrote it; its I/Os end with the last batch"
                )
            elif one.trace.end.lost_events:
                context.note(
                    f"{one.trace.path.name}: {one.trace.end.lost_events:,} events were lost while it was recorded"
                )

    def steps(self) -> Steps:
        """Replay once, or at the speeds that a search asks for."""
        search = self.plan.search
        if search.axis == "none":
            yield Measure(ask=self._ask(self.plan.speed))
            return
        laid, workload = self._laid(self.plan.speed)
        end = search.last_load
        if search.end is None:
            end = min(end, max(laid.seconds / SHORTEST_S, 1.0))
        axis = Axis(
            name="speed",
            start=search.start if search.start is not None else min(1.0, end),
            end=end,
            whole=False,
            resolution_share=search.resolution_share,
        )
        yield Search(axis=axis, ask=self._ask, workload=workload, repeats=search.repeats)

    def _laid(self, speed: float) -> tuple[Overlay, dict[str, object]]:
        """The traces at a speed, and what a point says that it asked."""
        laid = overlay(self.plan, self.volumes, speed)
        return laid, {**_accesses(laid)}

    def _ask(self, speed: float) -> Ask:
        laid, workload = self._laid(speed)
        load: Load = {
            "pace": self.plan.pace,
            "speed": speed,
            "workers": sum(len(laid.used(n)) for n in range(len(laid.found))),
        }
        plan = self.plan.model_dump(
            mode="json", exclude={"search", "limits", "user_limits", "title", "speed", "events"}
        )
        return Ask(
            key={
                "plan": plan,
                "speed": speed,
                "traces": [one.fingerprint for one in laid.found],
                "target": [(one.spec.kind, str(one.spec.path), one.size_bytes) for one in self.volumes],
                **({"model": self.model.key} if self.model is not None else {}),
            },
            workload=workload,
            load={**load},
            what=laid,
        )

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Replay at a speed.

        Raises
        ------
        Interrupted
            The point is not kept.
        """
        laid: Overlay = ask.what
        io = Ask(key=ask.key, workload=ask.workload, load=ask.load, what=laid.workload(str(ask.workload["name"])))
        measurement = ReplayMeasurement(self, io, repeat, laid)
        try:
            figures = measurement.run()
        finally:
            writer = self.context.folder.series_writer()
            writer.write(measurement.series)
            writer.close_segment(point_id)
        return Measured(figures={**figures}, error=measurement.error, rates=measurement.rates)


def _accesses(laid: Overlay) -> Accesses:
    """What a point says that was asked: names and mixes of the traces, without times."""
    moving = sum(one.moving for one in laid.found)
    reads = sum(one.sides["read"].count for one in laid.found)
    pace = {"timed": "", "closed": ", without times", "think": ", with its pauses"}[laid.plan.pace]
    return {
        "kind": "replay",
        "name": laid.title + pace,
        "role": "data",
        "read_share": round(reads / max(moving, 1), 6),
    }
