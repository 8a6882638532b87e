"""What kinds of workloads can do beyond what every kind must (`workload.py`): an interface for each capability.

A kind has a capability if its class names the interface among its bases; code that uses one asks by `isinstance`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from assay.base.errors import UsageError
from assay.base.tables import Record, TableValue
from assay.record.merged import merged, merged_point
from assay.workloads.plan import ExaminationPart, P, Part

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.figures import Figure
    from assay.record.power_cut import DriveCut
    from assay.record.shapes.point import Point
    from assay.record.source import RunFacts
    from assay.targets.databases.common.spec import Kind as DatabaseKind
    from assay.targets.databases.common.table_set import TableSet
    from assay.targets.target import Target
    from assay.workloads.beside import LoadBeside
    from assay.workloads.imported import RunImporter
    from assay.workloads.job import Job
    from assay.workloads.seen import SeenIo
    from assay.workloads.spread import Share
    from assay.workloads.workload import Workload

# Targets


class OnDatabases(ABC):
    """A kind that runs on databases instead of storage."""

    table_set: ClassVar[TableSet]
    """Its tables."""
    database_kinds: ClassVar[tuple[DatabaseKind, ...]] = ()
    """Kinds of databases that it runs on; all where it names none."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What it needs besides the drivers of databases (`assay.base.extras.PACKAGES`)."""

    @abstractmethod
    def seen(self, point: Point) -> SeenIo | None:
        """I/O that the storage under the databases saw in a point; None where it was not counted."""

    @abstractmethod
    def choices(self, points: Sequence[Point]) -> list[str]:
        """What the points of a study chose by themselves, and why, in sentences."""


class MeasuresIo(ABC, Generic[P]):
    """A kind whose points are reads and writes of the storage itself, as other tools of storage measure them."""

    @abstractmethod
    def fitted(self, part: Part[P], target: Target) -> Part[P]:
        """The part as it fits a target that was chosen."""

    @abstractmethod
    def like(self, plan: P, seen: SeenIo) -> P:
        """The plan with the block size and mix that another part's storage saw."""


# Plans


class Foreseen(ABC, Generic[P]):
    """A kind that knows of its points before they are measured."""

    def points_least(self, plan: P) -> int | None:
        """How many points a part has that is done: a run that goes on leaves it; None where that is not known."""
        return None

    @abstractmethod
    def expected_points(self, plan: P) -> Iterable[tuple[Record, Record]]:
        """Workload and load of the points to come, for trying exports before anything is measured."""


class Varied(ABC, Generic[P]):
    """A kind with words of its own for the levels of a study."""

    @abstractmethod
    def study_plan(self, data: Record, tables: Mapping[str, Record], *, seed: int, source: str) -> P:
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


class OfServers(ABC):
    """A kind whose load is that of a server, of which several may be on one target."""

    @abstractmethod
    def of_servers(self, data: Record, servers: int, *, source: str) -> dict[str, TableValue]:
        """The table of a plan with the load of this many servers.

        Raises
        ------
        UsageError
            The load is none that several servers have.
        """


class OfTraces(ABC):
    """A kind whose load is recorded in traces."""

    @abstractmethod
    def of_traces(self, traces: Sequence[str], *, searches: bool) -> dict[str, TableValue]:
        """The table of a plan that asks for the I/Os of traces, at their speed or at one that is searched for."""

    @abstractmethod
    def compared(self, traces: Sequence[str], *, searches: bool) -> Sequence[str]:
        """Figures that levels of a study differ in, the first one first.

        Raises
        ------
        UsageError
            A trace cannot be read.
        """


class Examining(ABC):
    """A kind that takes part in the whole examination of a folder."""

    examination: ClassVar[tuple[ExaminationPart, ...]]
    """Its parts."""


# Runs


class Telling(ABC):
    """A kind that tells of a run as a whole, besides its points."""

    document_key: ClassVar[str]
    """Key of the manifest and the JSON document under which it does."""

    def failures(self, told: Record) -> str | None:
        """Faults of the data in words, from what a run told; None where the data are right."""
        return None


class Verifying(Telling):
    """A kind whose points belong to a check of the data instead of measuring a load.

    Nothing of a check that was interrupted is kept, and what it tells is null in runs without it.
    """

    def power_cuts(self, manifest: Record) -> Sequence[DriveCut]:
        """The crash that a run looked at, of each drive; none for a run that looked at none."""
        del manifest
        return ()


class RunsBeside(ABC):
    """A kind whose load can run while points of another part are measured."""

    @abstractmethod
    def beside(self, opened: Job) -> LoadBeside:
        """A part at work as such a load."""


class OverHosts(ABC, Generic[P]):
    """A kind whose load can be spread over several hosts.

    By default every host does all of it on a target of its own.
    """

    kind: ClassVar[str]
    adds: frozenset[str] = frozenset()
    """Names of its figures that add up over hosts, beside those of `record/merged.py`."""

    def share(self, plan: P, share: Share) -> P:
        """The plan of one of several hosts: users and rates are spread, and what all use is kept apart.

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
        """What one host tells, with names that no other host uses for its things; unchanged by default."""
        del host
        return told


class Importing(ABC):
    """A kind whose points other programs measure, too."""

    @abstractmethod
    def importers(self) -> Sequence[RunImporter]:
        """Formats of their results that `assay import` makes a run of."""


# Reports


class Reporting(ABC):
    """A kind with its own sections in reports, in place of the sections that its figures make."""

    kind: ClassVar[str]
    figures: tuple[Figure, ...]

    @abstractmethod
    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Its sections, in their order."""

    def remarks(self, facts: RunFacts) -> Remarks:
        """What it says in the sections that all kinds share: by default what its searches found."""
        from assay.document.figure_sections import figure_remarks

        return figure_remarks(facts, self.kind, self.figures)

    def exported(self) -> Sequence[Figure]:
        """Figures that exports show beside the columns that all points have."""
        return self.figures


def study_plan(workload: Workload[P], data: Record, tables: Mapping[str, Record], *, seed: int, source: str) -> P:
    """The plan of a combination of levels, of any kind; see `Varied.study_plan`."""
    if isinstance(workload, Varied):
        varied: P = workload.study_plan(data, tables, seed=seed, source=source)
        return varied
    changed = {name: {**data.get(name, {}), **table} for name, table in tables.items() if table}
    return workload.load_plan({**data, **changed}, source=source)


def over_hosts(workload: Workload[P]) -> OverHosts[P]:
    """A kind as one whose load is spread over hosts.

    Raises
    ------
    UsageError
        It cannot be.
    """
    if not isinstance(workload, OverHosts):
        raise UsageError(f"--hosts: a {workload.kind} workload cannot be spread over hosts")
    return workload


def document_key_of(workload: Workload[Any]) -> str | None:
    """The key under which a kind tells of a run as a whole; None where it tells nothing."""
    return workload.document_key if isinstance(workload, Telling) else None
