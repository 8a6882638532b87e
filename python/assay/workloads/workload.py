"""The seam: what the pipeline asks of a workload, and what a workload gets from the pipeline.

A workload is a folder beside this file and one line in `registry.py`. Nothing outside its folder names its kind.
"""

from __future__ import annotations

import math
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, runtime_checkable

from assay.base.errors import NotSupported, UsageError
from assay.base.fields import within
from assay.base.reading import names_of_presets, preset_table, validated
from assay.base.units import format_iops, format_latency, format_throughput
from assay.record.figures import Figure
from assay.record.limits import parse_limits
from assay.record.merged import merged, merged_point
from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import Point, VerdictLine
from assay.workloads.job import Job, PartContext
from assay.workloads.plan import ExaminationPart, P, Part
from assay.workloads.spread import Share

if TYPE_CHECKING:
    from assay.base.progress import Display
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.run_folder import RunFolder
    from assay.record.source import RunFacts
    from assay.targets.databases.common.spec import Kind as DatabaseKind
    from assay.targets.databases.common.table_set import TableSet
    from assay.targets.files.spec import VolumeSpec
    from assay.targets.target import Target
    from assay.workloads.beside import LoadBeside
    from assay.workloads.imported import RunImporter
    from assay.workloads.options import Option

Record = Mapping[str, Any]


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
    sizes
        Bytes that files are to have, by the name of their volume, where the user asks for none.
    """

    writes: bool = True
    names_faults: bool = False
    on_model: Callable[[], None] = lambda: None
    files: tuple[VolumeSpec, ...] = ()
    sparse: Callable[[Sequence[VolumeSpec]], Collection[str]] = lambda _specs: ()
    sizes: Callable[[Sequence[VolumeSpec]], Mapping[str, int]] = lambda _specs: {}


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
    log_writes_per_s, log_bytes_per_s
        Of the databases' logs, among the I/Os above; None where it is not known.
    transactions_per_s, cpu_share
        Of databases, and how busy the processors of their server were; None where it is not known.
    """

    iops: float
    size_mean_bytes: float
    read_share: float
    by_devices: bool
    devices: frozenset[str] = frozenset()
    facts: Mapping[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    log_writes_per_s: float | None = None
    log_bytes_per_s: float | None = None
    transactions_per_s: float | None = None
    cpu_share: float | None = None

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second, read and written."""
        return self.iops * self.size_mean_bytes

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
    plan_type: type[P]
    runs_on: ClassVar[Literal["storage", "databases"]] = "storage"
    """The kind of target."""
    table_set: ClassVar[TableSet | None] = None
    """Its tables, where it runs on databases."""
    database_kinds: ClassVar[tuple[DatabaseKind, ...]] = ()
    """Kinds of databases that it runs on; all where it names none."""
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

    adds: frozenset[str] = frozenset()
    """Names of its figures that add up over hosts, beside those of `record/merged.py`."""

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
    def open(self, part: Part[P], target: Target, context: PartContext) -> Job:
        """Begin a part on its target, which is ready."""

    def beside(self, opened: Job) -> LoadBeside:
        """A part of this kind as a load that runs while points of another part are measured.

        Raises
        ------
        NotSupported
            It cannot be one.
        """
        raise NotSupported(f"a {self.kind} workload cannot run beside another one")

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

    def is_asked(self, point: Point) -> bool:
        """Whether a point's load is what was asked for; else it went as fast as its target let it."""
        return bool(point["load"].get("rate"))

    def like(self, plan: P, seen: SeenIo) -> P:
        """The plan with the block size and mix that another part's storage saw.

        Raises
        ------
        NotSupported
            It has no such things.
        """
        raise NotSupported(f"{self.kind}: cannot follow another part")

    def importers(self) -> Sequence[RunImporter]:
        """Formats of other programs' results that `assay import` makes a run of."""
        return ()

    # Several hosts

    def share(self, plan: P, share: Share) -> P:
        """The plan of one of several hosts: users and rates are spread, and what all use is kept apart.

        By default every host does all of it on a target of its own.

        Raises
        ------
        UsageError
            It cannot be spread over so many hosts, or not where all use the same target.
        """
        if share.shared:
            raise UsageError(f"--shared: a {self.kind} workload writes; give each host a target of its own")
        return plan

    def merged(self, points: Sequence[Record]) -> dict[str, Any]:
        """Figures of one point from those that hosts measured at the same time."""
        return merged_point(points, self.adds)

    def merged_told(self, told: Sequence[Record], points: Sequence[Record]) -> dict[str, Any]:
        """What a run tells as a whole, from what it tells of each host and the points that hosts measured together."""
        del points
        found: dict[str, Any] = merged(told, adds=self.adds)
        return found

    def of_host(self, told: Record, host: str) -> Record:
        """What one host tells, with names that tell its own things from those of other hosts; by default as it is."""
        del host
        return told

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


@runtime_checkable
class SpreadTarget(Protocol):
    """A target on several hosts, whose agents do the work."""

    def spread(self, workload: Workload[Any], /) -> Workload[Any]:
        """Give a kind of workload as the agents do it."""
        ...

    def refuse_others(self, folder: RunFolder) -> None:
        """Refuse to go on with a run that began on other hosts."""
        ...


def workload_at(workload: Workload[Any], target: object) -> Workload[Any]:
    """Give a kind of workload as it is done on a target: in this process, or by agents."""
    return target.spread(workload) if isinstance(target, SpreadTarget) else workload
