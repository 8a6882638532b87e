"""The steps that bring a target into the state that a plan asks for: purge, fills, rounds until steady."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace

from assay.base.tables import Record
from assay.base.units import format_share
from assay.record.points import PRECONDITION
from assay.record.shapes.point import Point
from assay.record.shapes.state import Preconditioning, TargetState
from assay.record.state import DISCLAIMER, UNKNOWN
from assay.record.steady import RoundsSteadiness, steady_rounds
from assay.targets.files.purge import can_discard
from assay.targets.files.volume import OpenVolume
from assay.workloads.io.activities import IoWorkloadSpec
from assay.workloads.io.filling import DEPTH, Filling, random_writes, sequential_fill
from assay.workloads.io.precondition import PLAN_ROUNDS_MOST, WRITTEN_LEAST, Precondition, spread
from assay.workloads.steps import Ask, Measure

TRACKED_BLOCK_BYTES = 4096
"""Block of the writes that are tracked, where the plan writes none of its own (SNIA PTS 2.0.2, IOPS test: 4 KiB)."""

Conditioned = Generator[Measure, Point, None]
"""Steps of preconditioning; it is sent each step's point."""


@dataclass(kw_only=True)
class Conditioning:
    """A target on its way into a state.

    Attributes
    ----------
    wanted
        What the plan asks for.
    workloads
        Those that the plan measures.
    common
        What the keys of all points of the plan have in common.
    ask
        Asks for a workload of the plan.
    note
        Says something once in the run's notices.
    is_model
        Whether the target is a model, which cannot be purged.
    is_fresh
        Whether it is a model that begins fresh here.
    """

    wanted: Precondition
    volumes: Sequence[OpenVolume]
    workloads: Sequence[IoWorkloadSpec]
    common: Record
    ask: Callable[[IoWorkloadSpec], Ask]
    note: Callable[[str], None]
    is_model: bool = False
    is_fresh: bool = False
    state: TargetState = field(init=False)

    def __post_init__(self) -> None:
        is_purged = self.purge != "none"
        self.state = {
            "name": "purged" if is_purged else UNKNOWN,
            "method": self.wanted.method,
            "purge": self.purge,
            "fills": 0,
            "rounds": 0,
            "written_bytes": 0,
        }
        if all(volume.spec.kind == "file" for volume in self.volumes) and not self._devices:
            self.state["only_files"] = True

    @property
    def _devices(self) -> list[OpenVolume]:
        return [volume for volume in self.volumes if volume.hold is not None and volume.hold.is_device]

    @property
    def purge(self) -> str:
        """How the volumes are emptied."""
        if self.wanted.purge == "none":
            return "none"
        if self.is_model:
            return "a fresh model" if self.is_fresh else "none"
        if self.wanted.purge == "format":
            return "format"
        held = all(can_discard(volume.hold.path if volume.hold is not None else None) for volume in self.volumes)
        return "discard" if self.wanted.purge == "discard" or held else "none"

    @property
    def capacity_bytes(self) -> int:
        """Size of all volumes."""
        return sum(volume.size_bytes for volume in self.volumes)

    def steps(self) -> Conditioned:
        """Purge, write in sequence, and write at random until the state is reached."""
        fills = {"short": 1, "purge": 0}.get(self.wanted.method, self.wanted.fills)
        for number in range(1, fills + 1):
            name = f"sequential fill {number} of {fills}"
            yield from self._fill(sequential_fill(self.volumes, name, purge=self._purge_now()), "fill", number)
            self.state |= {"name": "filled", "fills": number}
        if self.wanted.method == "purge":
            # One block is written, so that a run that goes on knows of the purge.
            sign = random_writes(self.volumes, "purge", block_bytes=TRACKED_BLOCK_BYTES, written_share=0.0)
            yield from self._fill(replace(sign, purge=self._purge_now()), "purge", 1)
        if self.wanted.method in ("full", "short"):
            self.note(DISCLAIMER)
        if self.wanted.method == "short":
            yield from self._spread()
        elif self.wanted.method == "full" and self.wanted.rounds == "plan":
            yield from self._rounds(self._round_of_plan)
        elif self.wanted.method == "full":
            yield from self._rounds(self._round_of_writes)

    def _purge_now(self) -> str:
        """How volumes are emptied before the first thing that is written; nothing later."""
        return "" if self.state["written_bytes"] or self.is_model or self.purge == "none" else self.purge

    def _fill(self, filling: Filling, step: str, number: int) -> Generator[Measure, Point, float]:
        """Write; gives the I/Os per second."""
        single = len(self.volumes) == 1
        load = {"queue_depth": DEPTH, "workers": 1, "outstanding": DEPTH} if single else {"kind": "mixed"}
        told: Preconditioning = {
            "step": step,
            "number": number,
            "tracked": step == "round",
            "written_bytes": filling.bytes_in_all,
        }
        point = yield Measure(
            ask=Ask(
                key={**self.common, "step": step, "number": number, "limits": filling.limits},
                workload=filling.workload.facts(),
                load=load,
                what=filling,
                facts={"state": dict(self.state), "precondition": told},
            ),
            purpose=PRECONDITION,
            repeat=number,
        )
        self._wrote(filling.bytes_in_all)
        return point["total"]["iops"] if point["total"] else 0.0

    def _wrote(self, count: float) -> None:
        self.state["written_bytes"] = (self.state["written_bytes"] or 0) + count

    def _spread(self) -> Conditioned:
        steps = spread(self.wanted.over_provisioning_share)
        for number, (region_share, written_share) in enumerate(steps, start=1):
            name = f"spread of steady state, step {number} of {len(steps)}"
            filling = random_writes(
                self.volumes,
                name,
                block_bytes=TRACKED_BLOCK_BYTES,
                written_share=written_share,
                region_share=region_share,
            )
            yield from self._fill(filling, "spread", number)
        self.state["name"] = "steady"

    def _rounds(self, one_round: Callable[[int], Generator[Measure, Point, float]]) -> Conditioned:
        values: list[float] = []
        found: RoundsSteadiness | None = None
        for number in range(1, self.wanted.rounds_most + 1):
            values.append((yield from one_round(number)))
            found = steady_rounds(values)
            self.state |= {"name": "unsteady", "rounds": number}
            if found is not None:
                self.state |= {"excursion_share": found.excursion_share, "slope_share": found.rise_share}
            written = (self.state["written_bytes"] or 0) / self.capacity_bytes
            if found is not None and found.reached and written >= WRITTEN_LEAST:
                self.state["name"] = "steady"
                return
            if self.wanted.rounds == "plan" and written >= self.wanted.fills + PLAN_ROUNDS_MOST:
                break
        of = ""
        if found is not None:
            excursion, slope = format_share(found.excursion_share), format_share(abs(found.rise_share))
            of = f": excursion {excursion} (max. 20 %), slope {slope} (max. 10 %)"
        self.note(f"no steady state after {self.state['rounds']} rounds of preconditioning{of}; measured all the same")

    def _round_of_writes(self, number: int) -> Generator[Measure, Point, float]:
        """Random writes of a tenth of the capacity, with the block of the plan."""
        blocks = [min(one.blocks) for spec in self.workloads for one in spec.activities if one.read_share < 1]
        filling = random_writes(
            self.volumes,
            f"round {number}: random writes",
            block_bytes=blocks[0] if blocks else TRACKED_BLOCK_BYTES,
            written_share=self.wanted.round_share,
            purge=self._purge_now(),
        )
        return (yield from self._fill(filling, "round", number))

    def _round_of_plan(self, number: int) -> Generator[Measure, Point, float]:
        """Measure every workload of the plan; gives the I/Os per second of the tracked one."""
        tracked = min(self.workloads, key=_distance)
        value = 0.0
        for spec in self.workloads:
            ask = self.ask(spec)
            told: Preconditioning = {"step": "round", "number": number, "tracked": spec is tracked}
            point = yield Measure(
                ask=replace(
                    ask, key={**ask.key, "round": number}, facts={"state": dict(self.state), "precondition": told}
                ),
                purpose=PRECONDITION,
                repeat=number,
            )
            if point["write"]:
                self._wrote(point["write"]["bytes_per_s"] * (point["measured_s"] or 0.0))
            if spec is tracked:
                value = point["total"]["iops"] if point["total"] else 0.0
        return value


def _distance(spec: IoWorkloadSpec) -> tuple[float, float, int]:
    """How far a workload is from 4 KiB writes, which are tracked where a plan has them; of those alike the deepest."""
    first = spec.activities[0]
    apart = abs(math.log(min(first.blocks) / TRACKED_BLOCK_BYTES))
    return first.read_share, apart, -first.depth
