"""A part at work on its target, and what the pipeline gives to it."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Protocol, Self

from assay.base.tables import Record
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.state import TargetState
from assay.targets.arrays.live.watch import UnderLoad
from assay.workloads.steps import Ask, Measured, Steps

if TYPE_CHECKING:
    from assay.base.progress import Display
    from assay.record.run_folder import RunFolder
    from assay.targets.arrays.model.configuration import Configuration
    from assay.telemetry.recorder import Recorder
    from assay.workloads.plan import Part
    from assay.workloads.spread import LoadTogether


class Bands(Protocol):
    """Error bands of models, which come from a package above the workloads."""

    def band_of_answer(
        self, configuration: Configuration, answer: Answer, points: Sequence[Point], *, interrupt: threading.Event
    ) -> Any:
        """How far an answer may be off."""
        ...

    def band_of_point(self, configuration: Configuration, point: Record, *, interrupt: threading.Event) -> Any:
        """How far a point may be off."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """What the parts of a run have in common."""

    folder: RunFolder
    recorder: Recorder
    display: Display
    interrupt: threading.Event
    finished: dict[str, Point] = field(default_factory=dict)
    """Points that the run folder holds, by key."""
    keeps_interrupted: bool = False
    """Whether an interrupted point is kept with what it has."""
    keeps_series: bool = True
    """Whether the ticks of points become rows of the series."""
    for_study: bool = False
    """Whether points will be compared with each other."""
    begins_whole: bool = False
    """Whether served arrays are made whole before each point."""
    epoch_ns: int = 0
    """When the run began, UTC: virtual time counts from it."""
    bands: Bands | None = None
    """Error bands of models; None where they are not asked for."""
    states: dict[str, TargetState] = field(default_factory=dict)
    """The state that parts brought a target into, by its volumes: parts that follow find it so."""


@dataclass(frozen=True, kw_only=True)
class PartContext(RunContext):
    """What the pipeline gives to a part at work."""

    before: Job | None = None
    """The part that ran before, whose state a part that continues takes over."""
    is_continued: bool = False
    """Whether the part that follows continues this one."""
    together: LoadTogether | None = None
    """What a point has in common with those that other hosts measure at the same time."""
    under_load: UnderLoad = field(default_factory=UnderLoad)
    """The arrays under the load of the point that is measured."""
    points: list[Point] = field(default_factory=list)
    """Points of the part so far."""
    notices: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, run: RunContext, **own: Any) -> Self:
        """The context of a part of a run.

        Parameters
        ----------
        own
            What differs from the run's, and the part's own.
        """
        return cls(**{one.name: getattr(run, one.name) for one in fields(RunContext)} | own)

    def begin_together(self) -> None:
        """Wait for the moment at which all hosts begin, where there are several.

        Raises
        ------
        Interrupted
            The run ends.
        """
        if self.together is not None:
            self.together.begin()

    def window_of_all(self, started_ns: int, interval_s: float, from_tick: int, to_tick: int) -> tuple[int, int]:
        """The ticks of a window in which all hosts ran, each tick by its middle; the window where this host is alone.

        Raises
        ------
        Interrupted, IoFailed
            The run ends, or hosts did not run at the same time.
        """
        if self.together is None:
            return from_tick, to_tick
        tick_ns = interval_s * 1e9
        both = self.together.window(started_ns + round(from_tick * tick_ns), started_ns + round(to_tick * tick_ns))
        first, last = (round((at_ns - started_ns) / tick_ns) for at_ns in both)
        first = min(max(first, from_tick), to_tick - 1)
        return first, max(min(last, to_tick), first + 1)

    def note(self, text: str) -> None:
        """Say something once in the run's notices."""
        if text not in self.notices:
            self.notices.append(text)


class Job(ABC):
    """A part at work on its target."""

    rest_s: float = 0.0
    """How long the target is left alone before each point but the first."""

    told: dict[str, Any] | None = None
    """What there is to say of the part as a whole, under the kind's `document_key`."""

    virtual_ns: int = 0
    """Virtual time that passed, since the part began or the one that it continues."""

    def __init__(self, part: Part[Any], target: Any, context: PartContext) -> None:
        self.part, self.plan, self.target, self.context = part, part.plan, target, context

    @abstractmethod
    def steps(self) -> Steps:
        """Do the work, and ask for what is to be measured on the way.

        On a model they are taken twice, ahead of the part's turn and at it (`run/ahead.py`).
        """

    def measure(self, ask: Ask, *, repeat: int, point_id: str) -> Measured:
        """Measure one load.

        Raises
        ------
        Interrupted, AssayError
            No point is kept.
        """
        raise NotImplementedError

    def complete_point(self, point: dict[str, Any], ask: Ask) -> None:
        """Complete a point that was measured whole, before it is kept."""

    def complete_answer(self, answer: Answer) -> None:
        """Complete an answer before it is kept."""

    def kept(self, point: Point) -> None:
        """A point of the part was kept."""

    def close(self) -> None:
        """Leave everything as it should be, whatever happened."""
