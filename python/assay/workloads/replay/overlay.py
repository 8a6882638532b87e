"""The traces of a plan laid over each other on the volumes of a target, and what their workers are asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from assay import _core
from assay.base.errors import UsageError
from assay.base.units import format_bytes
from assay.workloads.io.activities import DEEPEST_QUEUE, IoActivity, IoWorkloadSpec
from assay.workloads.io.session import BUFFERS_MAX_BYTES, PlannedActivity
from assay.workloads.replay.places import DeviceSeat, Room, Seats, seats
from assay.workloads.replay.reader import TraceReader
from assay.workloads.replay.rows import RowMaker
from assay.workloads.replay.survey import Survey, surveys

if TYPE_CHECKING:
    from assay.targets.files.volume import OpenVolume
    from assay.workloads.replay.plan import ReplayPlan

BUFFERS_BYTES = 256 << 20
"""Memory for the buffers of a worker unless the plan asks for a queue depth."""
PACES = {"timed": "timed", "closed": "outstanding", "think": "following"}
"""The paces as the compiled core names them."""


@dataclass(frozen=True)
class Overlay:
    """Traces laid over each other at a speed."""

    plan: ReplayPlan
    found: Sequence[Survey]
    seats: Seats
    rooms: Sequence[Room]
    speed: float

    @property
    def seconds(self) -> float:
        """How long it lasts if the target keeps up."""
        return max(
            one.at_s + found.seconds for one, found in zip(self.plan.traces, self.found, strict=True)
        ) / self.speed  # fmt: skip

    @property
    def recorded_iops(self) -> float:
        """I/Os with data per second, as the traces laid over each other had them."""
        return sum(one.moving for one in self.found) / (self.seconds * self.speed)

    @property
    def names(self) -> list[str]:
        """A name for each trace."""
        stems = self._stems
        return [f"{stem} {place + 1}" if stems.count(stem) > 1 else stem for place, stem in enumerate(stems)]

    @property
    def title(self) -> str:
        """The traces in words; copies of one are counted."""
        stems = Counter(self._stems)
        return ", ".join(stem if count == 1 else f"{stem} {count} times" for stem, count in stems.items())

    @property
    def _stems(self) -> list[str]:
        return [PurePath(one.path).name.removesuffix(".trace") or "trace" for one in self.plan.traces]

    @property
    def writes(self) -> bool:
        """Whether any trace writes."""
        return any(one.sides["write"].count for one in self.found)

    def used(self, trace: int) -> list[int]:
        """Positions of the volumes that a trace lies on."""
        return sorted({seat.volume for seat in self.seats[trace].values()})

    def workload(self, name: str) -> IoWorkloadSpec:
        """The activities as a point has them: one for each trace."""
        activities = tuple(
            IoActivity(
                name=own,
                block_bytes=max(self._longest(number), 512),
                read_share=found.sides["read"].count / max(found.moving, 1),
                **(
                    {} if self.plan.pace == "closed" else {"rate": max(found.moving / found.seconds * self.speed, 1e-6)}
                ),
            )
            for number, (own, found) in enumerate(zip(self.names, self.found, strict=True))
        )
        return IoWorkloadSpec(activities=activities, name=name)

    def activities(self) -> list[PlannedActivity]:
        """The activities as the compiled core takes them."""
        return [self._activity(number) for number in range(len(self.found))]

    def readers(self) -> list[TraceReader]:
        """A reader of each trace, not begun yet."""
        return [self._reader(number) for number in range(len(self.found))]

    def _longest(self, trace: int) -> int:
        """Length of the longest I/O as it is asked for, in whole sectors."""
        sector_bytes = max(self.rooms[volume].sector_bytes for volume in self.used(trace))
        return -(-self.found[trace].largest_bytes // sector_bytes) * sector_bytes

    def _depth(self, trace: int) -> int:
        longest = self._longest(trace)
        if longest >= 1 << 30:
            raise UsageError(
                f"{self.found[trace].trace.path}: holds an I/O of {format_bytes(longest)}, which is too long"
            )
        asked = self.plan.queue_depth
        if asked is None:
            return max(min(DEEPEST_QUEUE, BUFFERS_BYTES // (2 * longest)), 16)
        if asked * 2 * longest > BUFFERS_MAX_BYTES:
            raise UsageError(
                f"--queue-depth {asked} with I/Os of {format_bytes(longest)} needs more than"
                f" {format_bytes(BUFFERS_MAX_BYTES)} of buffers per worker; give a smaller --queue-depth"
            )
        return asked

    def _activity(self, trace: int) -> PlannedActivity:
        found, used, longest = self.found[trace], self.used(trace), self._longest(trace)
        return {
            "name": self.names[trace],
            "role": "data",
            "volumes": used,
            "workers": 1,
            "direct": True,
            "sync": "none",
            "sync_every": 1,
            "compressible_share": 0.0,
            "limit_bytes": None,
            "load": {"kind": "replay", "pace": PACES[self.plan.pace], "queue_depth": self._depth(trace)},
            "access": {
                "blocks": [{"bytes": longest, "weight": 1.0}],
                "read_share": found.sides["read"].count / max(found.moving, 1),
                "random_share": 1.0,
                "skew": {"kind": "uniform"},
                "region": {"start_bytes": 0, "end_bytes": min(self.rooms[volume].size_bytes for volume in used)},
                "align_bytes": max(self.rooms[volume].sector_bytes for volume in used),
                "streams": 1,
                "stride_bytes": None,
                "duplicate_share": 0.0,
            },
        }

    def _reader(self, trace: int) -> TraceReader:
        found, used, plan = self.found[trace], self.used(trace), self.plan
        maker = RowMaker(
            self.seats[trace],
            volumes=used,
            pace=plan.pace,
            speed=self.speed,
            begin_ns=found.begin_ns,
            at_ns=round(plan.traces[trace].at_s * 1e9 / self.speed),
            depth=plan.queue_depth,
            host=plan.host,
        )
        feeds = _core.TraceFeeds([self.rooms[volume].size_bytes for volume in used], self._longest(trace))
        return TraceReader(found.trace, (found.begin_ns, found.end_ns), maker, feeds)


def overlay(plan: ReplayPlan, volumes: Sequence[OpenVolume], speed: float | None = None) -> Overlay:
    """Lay the traces of a plan on volumes.

    Raises
    ------
    UsageError
        A trace cannot be read, does not tell what the pace needs, or does not fit.
    """
    found = surveys(plan)
    for one in found:
        _refuse_untold(plan, one)
    rooms = [Room(volume.name, volume.size_bytes, volume.sector_bytes) for volume in volumes]
    made = Overlay(plan, found, seats(found, rooms, plan.fit), rooms, speed or plan.speed)
    made.activities()
    return made


def _refuse_untold(plan: ReplayPlan, found: Survey) -> None:
    """Refuse a pace that rests on response times where a trace tells none."""
    if not found.timeless or plan.pace == "timed":
        return
    if plan.pace == "think":
        raise UsageError(
            f"--think: {found.trace.path} does not tell when {found.timeless:,} of {found.moving:,} I/Os ended"
        )
    if plan.queue_depth is None:
        raise UsageError(
            f"--closed: {found.trace.path} does not tell when {found.timeless:,} of {found.moving:,} I/Os ended, and so"
            " not how many were outstanding; give --queue-depth N"
        )


def seat_words(name: str, seat: DeviceSeat, rooms: Sequence[Room]) -> str:
    """Where a device lies, in words."""
    room = rooms[seat.volume]
    where = f"{name or 'a device'} on {room.name} from {format_bytes(seat.start_bytes)}"
    if seat.fit == "keep":
        return where
    how = "folded" if seat.fit == "fold" else "scaled"
    return f"{where}, {format_bytes(seat.reach_bytes)} {how} into {format_bytes(seat.size_bytes)}"
