"""The seam: what the pipeline asks of a workload, and what a workload gets from the pipeline.

A workload is a folder beside this file and one line in `registry.py`. Nothing outside its folder names its kind.
"""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, runtime_checkable

from assay.base.fields import within
from assay.base.reading import names_of_presets, preset_table, validated
from assay.base.tables import Record
from assay.base.units import format_iops, format_latency, format_throughput
from assay.record.figures import Figure
from assay.record.limits import parse_limits
from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import Point, VerdictLine
from assay.workloads.job import Job, PartContext
from assay.workloads.next_steps import compare_step, diagnose_step
from assay.workloads.plan import P, Part

if TYPE_CHECKING:
    from assay.base.progress import Display
    from assay.record.run_folder import RunFolder
    from assay.targets.files.spec import VolumeSpec
    from assay.targets.target import Target


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


class AtTarget(ABC, Generic[P]):
    """A kind of workload at a target: in this process, or by agents on their hosts."""

    @abstractmethod
    def lines(self, part: Part[P], target: Target) -> list[str]:
        """The part in words, for `--dry-run`."""

    @abstractmethod
    def document(self, part: Part[P], target: Target) -> dict[str, Any]:
        """What `--dry-run --json` says of the part besides its plan."""

    @abstractmethod
    def examine(self, part: Part[P], target: Target, manifest: Record, display: Display) -> Part[P]:
        """Open the target and refuse what cannot be done with it; writes nothing. Gives the part as it fits.

        `manifest` is that of the run as far as it has come.

        Raises
        ------
        AssayError
            The part cannot run there.
        """

    @abstractmethod
    def prepare(self, part: Part[P], target: Target, display: Display, interrupt: threading.Event) -> None:
        """Make the target ready, once examined.

        Raises
        ------
        AssayError
            It cannot be.
        """

    @abstractmethod
    def open(self, part: Part[P], target: Target, context: PartContext) -> Job:
        """Begin a part on its target, which is ready."""


class Workload(AtTarget[P]):
    """A kind of workload: what every kind must have.

    What a kind can do besides is an interface of `capabilities.py` that its class names among its bases.
    """

    kind: ClassVar[str]
    """As plans and points name it."""
    plan_type: type[P]
    job: ClassVar[type[Job]]
    """What does the work."""
    figures: tuple[Figure, ...] = ()
    """Its figures; the first is what a search maximises."""
    shapes: ClassVar[Shapes] = Shapes()
    """Its own keys in points and manifests."""
    title: ClassVar[str] = ""
    """What its reports are called, before the word report; the kind where it is empty."""
    apart: ClassVar[tuple[str, ...]] = ()
    """What takes time besides points, for `--dry-run`."""
    preset_default: ClassVar[str] = ""
    """The preset that plans begin as where nothing else is asked for."""

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

    @abstractmethod
    def estimate_s(self, plan: P) -> tuple[float, float]:
        """Shortest and longest time its points take, infinite until interrupted."""

    # Targets

    def needs(self, plan: P) -> Needs:
        """What the plan needs of storage."""
        return Needs()

    def check(self, part: Part[P], target: Target) -> None:
        """Refuse a part that does not fit the target, before anything is written.

        Raises
        ------
        UsageError
            It does not fit.
        """

    def lines(self, part: Part[P], target: Target) -> list[str]:
        """The part in words, for `--dry-run`."""
        return [f"part {part.name}: {part.title}; limits: {', '.join(part.plan.limits) or 'none'}"]

    def document(self, part: Part[P], target: Target) -> dict[str, Any]:
        """What `--dry-run --json` says of the part besides its plan."""
        return {}

    def examine(self, part: Part[P], target: Target, manifest: Record, display: Display) -> Part[P]:
        """Give the part unchanged: nothing needs to be opened before."""
        return part

    def prepare(self, part: Part[P], target: Target, display: Display, interrupt: threading.Event) -> None:
        """Nothing: the target is ready as it is."""

    def open(self, part: Part[P], target: Target, context: PartContext) -> Job:
        """Begin a part on its target, which is ready."""
        return self.job(part, target, context)

    # A run

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

    def untouched(self, point: Point) -> str:
        """What shows that memory answered a point's work, so that it says nothing of the storage; empty where not."""
        return ""

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What there is to say of its points in the end."""
        return Conclusion()

    def writes(self, part: Part[P], target: Target) -> str:
        """What getting ready writes and where, in words, besides laying out files; empty where that is nothing."""
        return ""

    def changes_state(self, plan: P) -> bool:
        """Whether a plan first brings its target into a state, in which its points then find it."""
        return False

    def written_most_bytes(self, part: Part[P], target: Target) -> float:
        """The most that bringing the target into its state writes."""
        return 0.0

    def next_steps(self, manifest: Record, run: str) -> list[str]:
        """Commands that go on from a run of this kind, each with what it is for; `run` is its folder for a shell."""
        return [diagnose_step(run), compare_step(run)]

    def is_asked(self, point: Point) -> bool:
        """Whether a point's load is what was asked for; else it went as fast as its target let it."""
        return bool(point["load"].get("rate"))

    # Report

    @property
    def report_title(self) -> str:
        """What its reports are called."""
        return self.title or self.kind.replace("_", " ").replace("-", " ").capitalize()

    def label(self, workload: Record) -> str:
        """How one of its workloads reads in tables, captions and legends."""
        return str(workload.get("name") or self.kind)


@runtime_checkable
class SpreadTarget(Protocol):
    """A target on several hosts, whose agents do the work."""

    def spread(self, workload: Workload[Any], /) -> AtTarget[Any]:
        """Give a kind of workload as the agents do it."""
        ...

    def refuse_others(self, folder: RunFolder) -> None:
        """Refuse to go on with a run that began on other hosts."""
        ...


def workload_at(workload: Workload[Any], target: object) -> AtTarget[Any]:
    """Give a kind of workload as it is done on a target: in this process, or by agents."""
    return target.spread(workload) if isinstance(target, SpreadTarget) else workload
