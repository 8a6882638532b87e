"""The seam: what the pipeline asks of a workload, and what a workload gets from the pipeline.

A workload is a folder beside this file and one line in `registry.py`. Nothing outside its folder names its kind.
"""

from __future__ import annotations

import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

from pydantic import Field

from assay.errors import NotSupported
from assay.fields import Strict, within
from assay.reading import names_of_presets, preset_table, validated
from assay.results.figures import Figure
from assay.results.limits import parse_limits
from assay.results.shapes.kinds import Shapes
from assay.results.shapes.point import Answer, Point, VerdictLine
from assay.units import format_iops, format_latency, format_throughput
from assay.workloads.examination import Examination

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.progress import Display
    from assay.results.run_folder import RunFolder
    from assay.results.source import RunFacts
    from assay.targets.arrays.configuration import Configuration
    from assay.targets.databases.table_set import TableSet
    from assay.targets.storage.spec import VolumeSpec
    from assay.targets.target import Target
    from assay.telemetry.recorder import Recorder
    from assay.workloads.options import Option

Record = Mapping[str, Any]

COMBINATIONS_MAX = 10_000
"""Combinations of levels: more points than a run has time for, and more than a plan's check should make."""


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
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    limits: tuple[str, ...] = ()
    user_limits: bool = False


P = TypeVar("P", bound=AnyPlan)


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
    """The level of each factor of a study, by its key."""
    target_text: str | None = None
    """A target of the part's own, as on the command line."""
    target: Target | None = None
    """The target of `target_text`, not opened yet."""
    optional: bool = False
    """Left out with a notice where its target cannot be used."""
    follows: str | None = None
    """A part that runs before: the plan takes over what its storage saw."""
    continues: bool = False
    """Goes on with the state in which the part before left the target."""
    published: Record | None = None
    """The published figure that the part stands beside."""
    aside: bool = False
    """A closer look that no verdict is about, and that `--plan` does not take back."""


@dataclass(frozen=True, kw_only=True)
class ExaminationPart:
    """A part of the examination: its share of the budget, and its plan for what is asked."""

    name: str
    share: float
    part: Callable[[Examination], Part[Any]]


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


REPEATS_FACTOR = 5
"""A load whose limit is undecided is measured again at most this many times the asked repeats."""


def points_of_search(repeats: int) -> tuple[int, int]:
    """Fewest and most points that a search takes as a rule: doublings, halvings, and repeats of both ends."""
    return 4 + 2 * repeats, 18 + 2 * REPEATS_FACTOR * repeats


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One load to be measured.

    Attributes
    ----------
    key
        All that decides its figures, as JSON, beside part and repeat. A point that the run folder holds under its key
        is not measured again.
    workload, load
        What the point says it is, as docs/results.md has it.
    what
        What `OpenWorkload.measure` gets.
    """

    key: Record
    workload: Record
    load: Record
    what: Any = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of measuring: the point's own figures, and what ended it before its time, if anything did."""

    figures: dict[str, Any]
    error: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A step: measure one load."""

    ask: Ask


@dataclass(frozen=True, kw_only=True)
class Keep:
    """A step: keep a point that came by itself while the workload ran.

    Attributes
    ----------
    ask
        What was measured.
    measured
        Gives the figures; asked once the point has its id. None for a point that the run folder holds.
    repeat
        Its number among points alike.
    judged
        Whether the part's limits apply to it.
    """

    ask: Ask
    measured: Callable[[str], Measured] | None
    repeat: int = 0
    judged: bool = True


@dataclass(frozen=True, kw_only=True)
class Search:
    """A step: find the most throughput within the limits, its knee, and the largest load within them.

    Attributes
    ----------
    axis
        What is varied.
    ask
        Gives what is to be measured at a load.
    workload
        What the answer says it is about.
    repeats
        How often each load that the answer rests on is measured again at least.
    """

    axis: Axis
    ask: Callable[[float], Ask]
    workload: Record
    repeats: int = 1


Step = Measure | Keep | Search

Steps = Generator[Step, Any, None]
"""What an open workload does, one step after the other; it is sent each step's point or answer."""


class Bands(Protocol):
    """Error bands of models, which come from a package above the workloads."""

    def band_of_answer(
        self, configuration: Configuration, answer: Record, points: Sequence[Point], *, interrupt: threading.Event
    ) -> Any:
        """How far an answer may be off."""
        ...

    def band_of_point(self, configuration: Configuration, point: Record, *, interrupt: threading.Event) -> Any:
        """How far a point may be off."""
        ...


@dataclass(kw_only=True)
class RunContext:
    """What the pipeline gives to an open workload."""

    folder: RunFolder
    recorder: Recorder
    display: Display
    interrupt: threading.Event
    finished: dict[str, Point] = field(default_factory=dict)
    """Points that the run folder holds, by key."""
    keeps_interrupted: bool = False
    """Whether an interrupted point is kept with what it has."""
    for_study: bool = False
    """Whether points will be compared with each other."""
    before: OpenWorkload | None = None
    """The part that ran before, whose state a part that continues takes over."""
    is_continued: bool = False
    """Whether the part that follows continues this one."""
    epoch_ns: int = 0
    """When the run began, UTC: virtual time counts from it."""
    bands: Bands | None = None
    """Error bands of models; None where they are not asked for."""
    points: list[Point] = field(default_factory=list)
    """Points of the part so far."""
    notices: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something once in the run's notices."""
        if text not in self.notices:
            self.notices.append(text)


class OpenWorkload(ABC):
    """A part at work on its target."""

    rest_s: float = 0.0
    """How long the target is left alone before each point but the first."""

    told: dict[str, Any] | None = None
    """What there is to say of the part as a whole, under the kind's `document_key`."""

    virtual_ns: int = 0
    """Virtual time that passed, since the part began or the one that it continues."""

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


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a plan needs of the storage that it runs on.

    Attributes
    ----------
    writes
        Whether it writes.
    names_faults
        Whether it can name the faults of a faulty device, which nothing else is allowed on.
    on_model
        Refuses a modelled array where the plan cannot run on one.
    files
        Volumes that the plan names itself, used where none are given.
    sparse
        Names of volumes whose space is not to be reserved.
    """

    writes: bool = True
    names_faults: bool = False
    on_model: Callable[[], None] = lambda: None
    files: tuple[VolumeSpec, ...] = ()
    sparse: Callable[[Sequence[VolumeSpec]], Collection[str]] = lambda _specs: ()


BLOCK_MIN_BYTES, BLOCK_MAX_BYTES = 4 << 10, 1 << 20
"""Blocks of raw profiles: below are no I/Os of databases, and above they are split on their way anyway."""


@dataclass(frozen=True, kw_only=True)
class SeenIo:
    """I/O that the storage under a part saw over the window of a point.

    Attributes
    ----------
    iops
        Reads and writes per second.
    size_mean_bytes
        Mean size of both.
    read_share
        Share of reads, 0 to 1.
    by_devices
        Whether the devices counted; else the servers did, whose reads the kernel's page cache may have answered.
    devices
        Block devices that were seen.
    facts
        What else is known of it, under the names of docs/studies.md.
    reasons
        What explains that it is not more or less, in words.
    """

    iops: float
    size_mean_bytes: float
    read_share: float
    by_devices: bool
    devices: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def block_bytes(self) -> int:
        """The power of two nearest to the mean size."""
        power = 1 << max(round(math.log2(self.size_mean_bytes)), 0)
        return min(max(power, BLOCK_MIN_BYTES), BLOCK_MAX_BYTES)


@dataclass(kw_only=True)
class Conclusion:
    """What a workload says of a whole run.

    Attributes
    ----------
    manifest
        Keys of the manifest.
    first, last
        Verdict lines before and after those of points and answers.
    notices
        What a reader must know.
    """

    manifest: dict[str, Any] = field(default_factory=dict)
    first: list[VerdictLine] = field(default_factory=list)
    last: list[VerdictLine] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def io_words(point: Record) -> list[str]:
    """I/O of a point in words: throughput, then latency of reads and writes."""
    total = point["total"]
    words = [f"{format_iops(total['iops'])} IOPS, {format_throughput(total['bytes_per_s'])},"]
    for direction in ("read", "write"):
        if point[direction]:
            latency = point[direction]["latency_ns"]
            words.append(f"{direction} {format_latency(latency['mean'])} p99 {format_latency(latency['p99'])};")
    return words


class Workload(ABC, Generic[P]):
    """A kind of workload: all that the product knows of it."""

    kind: ClassVar[str]
    """As plans and points name it."""
    verbs: ClassVar[str] = ""
    """The module with its verbs, above all others: its `add_verbs` takes the command line. Without one the kind gets a
    verb of its own name."""
    plan_type: type[P]
    runs_on: ClassVar[Literal["storage", "databases"]] = "storage"
    """The kind of target."""
    table_set: ClassVar[TableSet | None] = None
    """Its tables, where it runs on databases."""
    figures: tuple[Figure, ...] = ()
    """Its figures; the first is what a search maximises."""
    shapes: ClassVar[Shapes] = Shapes()
    """Its own keys in points and manifests."""
    document_key: ClassVar[str | None] = None
    """Key of the manifest and the JSON document under which it tells of a run as a whole."""
    always_told: ClassVar[bool] = False
    """Whether runs without it have that key, too, with null."""
    goes_on: ClassVar[bool] = True
    """Whether a run that was interrupted keeps anything of it that need not be done again."""
    title: ClassVar[str] = ""
    """What its reports are called, before the word report; the kind where it is empty."""
    verifies: ClassVar[bool] = False
    """Whether its points belong to a check of the data instead of measuring a load."""
    measures_io: ClassVar[bool] = False
    """Whether its points are reads and writes as other tools of storage measure them."""
    apart: ClassVar[tuple[str, ...]] = ()
    """What takes time besides points, for `--dry-run`."""

    examination: tuple[ExaminationPart, ...] = ()
    """Its parts of the whole examination of a folder."""

    # Plans

    def load_plan(self, data: Record, *, source: str) -> P:
        """A plan from its TOML or JSON form.

        Raises
        ------
        UsageError
            A key or value is not accepted; `source` says where.
        """
        plan = validated(self.plan_type, data, source)
        with within(source, "limits"):
            parse_limits(plan.limits, self.figures)
        return plan

    preset_default: ClassVar[str] = ""
    """The preset that plans begin as where nothing else is asked for."""

    def presets(self) -> list[str]:
        """Names of the presets that come with it."""
        return names_of_presets(self._package)

    def preset(self, name: str) -> P:
        """A preset by name.

        Raises
        ------
        UsageError
            There is no such preset; the message lists them.
        """
        return self.load_plan(preset_table(self._package, name), source=f"preset {name}")

    @property
    def _package(self) -> str:
        return sys.modules[self.plan_type.__module__].__package__ or ""

    def study_plan(self, data: Record, tables: Mapping[str, Mapping[str, Any]], *, seed: int, source: str) -> P:
        """The plan of a combination of levels in a study.

        Parameters
        ----------
        data
            The study's plan, its tables without the levels.
        tables
            Tables that levels and cases change, by name.
        seed
            Seed of the repeat.
        """
        changed = {name: {**data.get(name, {}), **table} for name, table in tables.items() if table}
        return self.load_plan({**data, **changed}, source=source)

    def named(self, plan: P, name: str, title: str) -> P:
        """The plan of a part that repeats another, with its own title."""
        return plan.model_copy(update={"title": title})

    def options(self) -> Sequence[Option]:
        """Options of the command line that it adds, beside those that its plan's fields declare."""
        return ()

    @abstractmethod
    def estimate_s(self, plan: P) -> tuple[float, float]:
        """Shortest and longest time its points take, infinite until interrupted."""

    def points_least(self, plan: P) -> int | None:
        """How many points a part has that is done; None where that is not known."""
        return None

    def expected_points(self, plan: P) -> Iterable[tuple[Record, Record]]:
        """Workload and load of the points to come, for trying exports before anything is measured."""
        return ()

    def lines(self, part: Part[P], target: Target) -> list[str]:
        """The part in words, for `--dry-run`."""
        return [f"part {part.name}: {part.title}; limits: {', '.join(part.plan.limits) or 'none'}"]

    def document(self, part: Part[P], target: Target) -> dict[str, Any]:
        """What `--dry-run --json` says of the part besides its plan."""
        return {}

    # Targets

    def needs(self, plan: P) -> Needs:
        """What the plan needs of storage."""
        return Needs()

    def fitted(self, part: Part[P], target: Target) -> Part[P]:
        """The part as it fits a target that was chosen."""
        return part

    def check(self, part: Part[P], target: Target) -> None:
        """Refuse a part that does not fit the target, before anything is written.

        Raises
        ------
        UsageError
            It does not fit.
        """

    def examine(self, part: Part[P], target: Target, manifest: Record, display: Display) -> Part[P]:
        """Open the target and refuse what cannot be done with it; writes nothing. Gives the part as it fits.

        `manifest` is that of the run as far as it has come.

        Raises
        ------
        AssayError
            The part cannot run there.
        """
        return part

    def prepare(self, part: Part[P], target: Target, display: Display, interrupt: threading.Event) -> None:
        """Make the target ready, once examined.

        Raises
        ------
        AssayError
            It cannot be.
        """

    # A run

    @abstractmethod
    def open(self, part: Part[P], target: Target, context: RunContext) -> OpenWorkload:
        """Begin a part on its target, which is ready."""

    def point_words(self, point: Point) -> list[str]:
        """What a finished point came to, in a line; empty where nothing was measured."""
        if point["total"]:
            return io_words(point)
        found = [(figure, figure.value(point)) for figure in self.figures if figure.in_answers]
        words = ", ".join(figure.words(value) for figure, value in found if value is not None)
        return [f"{words};"] if words else []

    def ruined(self, point: Point) -> str | None:
        """Why a point makes the run a failure; None where it does not."""
        return None

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What there is to say of its points in the end."""
        return Conclusion()

    def failures(self, told: Record) -> str | None:
        """What is wrong with the data, by what it told under `document_key`; None where they are right."""
        return None

    def choices(self, points: Sequence[Point]) -> list[str]:
        """What the points of a study chose by themselves, and why, in sentences."""
        return []

    def seen(self, point: Point) -> SeenIo | None:
        """I/O that the storage saw in a point; None where it was not counted."""
        return None

    def like(self, plan: P, seen: SeenIo) -> P:
        """The plan with the block size and mix that another part's storage saw.

        Raises
        ------
        NotSupported
            It has no such things.
        """
        raise NotSupported(f"{self.kind}: cannot follow another part")

    # Report

    @property
    def report_title(self) -> str:
        """What its reports are called."""
        return self.title or self.kind.replace("_", " ").replace("-", " ").capitalize()

    def label(self, workload: Record) -> str:
        """How one of its workloads reads in tables, captions and legends."""
        return str(workload.get("name") or self.kind)

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Its own sections of the report, in their order: by default its figures, and curves of its searches."""
        from assay.document.figure_sections import figure_sections

        return figure_sections(facts, self.kind, self.report_title, self.figures)

    def remarks(self, facts: RunFacts) -> Remarks:
        """What it says in the sections that all kinds share: by default what its searches found."""
        from assay.document.figure_sections import figure_remarks

        return figure_remarks(facts, self.kind, self.figures)

    def exported(self) -> Sequence[Figure]:
        """Figures that exports show beside the columns that all points have."""
        return self.figures
