"""The seam: what the pipeline asks of a workload, and what a workload gets from the pipeline.

A workload is a folder beside this file and one line in `registry.py`. Nothing outside its folder names its kind.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from assay.errors import UsageError
from assay.fields import Strict
from assay.reading import validated
from assay.results.figures import Figure
from assay.results.limits import parse_limits

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.progress import Display
    from assay.results.run_folder import RunFolder
    from assay.results.source import RunFacts
    from assay.telemetry.recorder import Collector, Recorder
    from assay.workloads.options import Option

Record = Mapping[str, Any]
Point = Mapping[str, Any]
"""A point as docs/results.md has it."""
Answer = dict[str, Any]
Line = dict[str, Any]
"""A verdict line."""


class AnyPlan(Strict):
    """What plans of every kind have.

    Attributes
    ----------
    title
        What is asked, for people.
    seed
        Decides everything that is random.
    limits
        Acceptance limits, as texts.
    user_limits
        Whether the user gave the limits: missing them then changes the exit code.
    """

    title: str = ""
    seed: int = 1
    limits: tuple[str, ...] = ()
    user_limits: bool = False


P = TypeVar("P", bound=AnyPlan)


class Target(Protocol):
    """What is put under load."""

    notices: list[str]

    @property
    def is_virtual(self) -> bool:
        """Whether it runs on a clock of its own: nothing of this host is part of what is measured."""
        ...

    @property
    def device_names(self) -> list[str]:
        """Block devices under it by kernel name, which are recorded throughout a run."""
        ...

    def facts(self) -> dict[str, Any]:
        """The manifest's `target`."""
        ...

    def collectors(self, recorded: Sequence[str]) -> list[Collector[Any]]:
        """What records it while a part runs, besides the host and the devices that are `recorded` anyway."""
        ...

    def leave(self, display: Display) -> list[str]:
        """Leave it after its last part for now; gives what is to be said of it."""
        ...

    def settle(self, timeout_s: float) -> None:
        """Say in marks that nothing writes to it any more, when the run has ended."""
        ...


@dataclass(frozen=True, kw_only=True)
class Part(Generic[P]):
    """One part of a run: a plan with a name, and the target it runs on."""

    name: str
    title: str
    plan: P
    planned_s: float | None = None
    understood: tuple[str, ...] = ()
    """What the configuration of another tool was taken for, a line each."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Of a study: the level of each factor, by its key."""
    target_text: str | None = None
    """A target of the part's own, as on the command line."""
    target: Any = None
    """The target of `target_text`, not opened yet."""
    optional: bool = False
    """Left out with a notice where its target cannot be used."""
    follows: str | None = None
    """A part that runs before: the plan takes over what its storage saw."""
    continues: bool = False
    """Goes on with the state in which the part before left the target."""
    published: Record | None = None
    """The published figure that the part stands beside."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What a search varies.

    Attributes
    ----------
    name
        As answers name it.
    start, end
        First and last load.
    whole
        Whether loads are whole numbers.
    resolution_share
        How near the ends of the bracket must come.
    plateau_share
        Gain in throughput that two successive doublings must bring for the search to go on without a limit missed.
    stops_at_plateau
        Whether the search ends where throughput rises no more.
    """

    name: str
    start: float
    end: float
    whole: bool
    resolution_share: float = 0.06
    plateau_share: float = 0.03
    stops_at_plateau: bool = True


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One load to be measured.

    Attributes
    ----------
    key
        All that decides its figures, as JSON; a point that the run folder holds under it is not measured again.
    workload, load
        What the point says it is, as docs/results.md has it.
    what
        What `OpenWorkload.measure` gets.
    """

    key: Record
    workload: Record
    load: Record
    what: Any


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A step: measure one load.

    `again` says that a point of an earlier session is no use, since the state it was measured in is gone.
    """

    ask: Ask
    repeat: int = 0
    again: bool = False
    limits_apply: bool = True


@dataclass(frozen=True, kw_only=True)
class Search:
    """A step: find the most throughput within the limits.

    Attributes
    ----------
    axis
        What is varied.
    ask
        Gives what is to be measured at a load.
    workload
        What the answer says it is about.
    repeats
        How often each end of the bracket is measured again.
    finish
        Changes the answer in place: gives its loads in the units that documents use.
    """

    axis: Axis
    ask: Callable[[float], Ask]
    workload: Record
    repeats: int = 1
    finish: Callable[[Answer], None] = lambda _answer: None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of measuring: the point's own figures, and what ended it before its time, if anything did."""

    figures: dict[str, Any]
    error: Exception | None = None


Steps = Generator[Measure | Search, Any, None]
"""What an open workload does, one step after the other; it is sent each step's point or answer."""


@dataclass(kw_only=True)
class RunContext:
    """What the pipeline gives to an open workload."""

    folder: RunFolder
    recorder: Recorder
    display: Display
    interrupt: threading.Event
    finished: Mapping[str, Point] = field(default_factory=dict)
    """Points that the run folder holds, by key."""
    keeps_interrupted: bool = False
    """Whether an interrupted point is kept with what it has."""
    for_study: bool = False
    before: OpenWorkload | None = None
    """The part that ran before, whose state a part that continues takes over."""
    is_continued: bool = False
    """Whether the part that follows continues this one."""
    notices: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something once in the run's notices."""
        if text not in self.notices:
            self.notices.append(text)


class OpenWorkload(ABC):
    """A part at work on its target."""

    rest_s: float = 0.0
    """How long the target is left alone before each point but the first."""

    @abstractmethod
    def steps(self) -> Steps:
        """Do the work, and ask for what is to be measured on the way."""

    @abstractmethod
    def measure(self, what: Any, *, repeat: int, point_id: str) -> Measured:
        """Measure one load.

        Raises
        ------
        Interrupted, AssayError
            No point is kept.
        """

    def failure(self, point: Point) -> str | None:
        """Why a point is no answer besides errors, the generator, limits and a rate that was not sustained."""
        return None

    def finish_point(self, point: dict[str, Any], ask: Ask) -> None:
        """Complete a point before it is kept."""

    def close(self) -> None:
        """Leave everything as it should be, whatever happened."""


@dataclass(kw_only=True)
class Conclusion:
    """What a workload says of a whole run: keys of the manifest, verdict lines before and after those of points."""

    manifest: dict[str, Any] = field(default_factory=dict)
    first: list[Line] = field(default_factory=list)
    last: list[Line] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


class Workload(ABC, Generic[P]):
    """A kind of workload: all that the product knows of it."""

    kind: ClassVar[str]
    """As plans and points name it."""
    plan_type: type[P]
    targets: ClassVar[Literal["storage", "databases"]] = "storage"
    """What it runs on."""
    figures: tuple[Figure, ...] = ()
    """Its figures; the first is what a search maximises."""
    document_key: ClassVar[str | None] = None
    """Key of the manifest and the JSON document under which it tells of a run as a whole."""

    # Plans

    def load_plan(self, data: Record, *, source: str) -> P:
        """A plan from its TOML or JSON form.

        Raises
        ------
        UsageError
            A key or value is not accepted; `source` says where.
        """
        plan = validated(self.plan_type, data, source)
        try:
            parse_limits(plan.limits, self.figures)
        except UsageError as error:
            raise UsageError(f"{source}: {error}") from None
        return plan

    def options(self) -> Sequence[Option]:
        """Options of the command line that it adds, beside those that its plan's fields declare."""
        return ()

    @abstractmethod
    def estimate_s(self, plan: P) -> tuple[float, float]:
        """Shortest and longest time its points take, infinite until interrupted."""

    # A run

    @abstractmethod
    def open(self, part: Part[P], context: RunContext) -> OpenWorkload:
        """Begin a part on its target, which is ready."""

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What there is to say of its points in the end."""
        return Conclusion()

    def failures(self, told: Record | None) -> str | None:
        """What is wrong with the data, from what it told under `document_key`; None where they are right."""
        return None

    # Report

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Its own sections of the report, most important first."""
        return ()
