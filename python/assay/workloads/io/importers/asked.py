"""What another program asked of storage, in the words of points, so that its points compare with Assay's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import TypedDict, cast

from assay.base.errors import UsageError
from assay.base.reading import validated
from assay.record.shapes.access import Accesses
from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Direction, Engine, Errors, Generator, Load, Sides, Steady
from assay.telemetry.importers.importer import NotTaken
from assay.workloads.imported import ImportedPoint, Side, sides_of, together
from assay.workloads.io.activities import LOAD_KEYS, IoActivity

WORKERS_MAX, DEPTH_MAX = 10**6, 10**6
"""Beyond all that programs start."""

NOT_ASKED = (
    "read_share", "random_share", "skew", "align_bytes", "stride_bytes", "region", "compressible_share",
    "duplicate_share", "io_mode", "sync", "sync_every",
)  # fmt: skip
"""Keys of `IoActivity` that are null where a file does not say what was asked."""


class AskedAccess(TypedDict, total=False):
    """Keys of `IoActivity` that a file tells of."""

    role: str
    block_bytes: int | dict[str, float]
    read_share: float
    random_share: float
    skew: str
    align_bytes: int
    stride_bytes: int
    region: tuple[float, float]
    compressible_share: float
    duplicate_share: float
    io_mode: str
    sync: str
    sync_every: int


class ImportedFigures(TypedDict, total=False):
    """Keys of a point that a file tells of, beside what was asked; times of day are null where it has none."""

    started_utc_ns: int | None
    measured_from_utc_ns: int | None
    measured_to_utc_ns: int | None
    warmup_s: float
    measured_s: float
    ended_by: str
    errors: Errors
    generator: Generator
    engine: Engine
    telemetry: dict[str, float]
    volumes: list[Sides]
    steady: Steady
    read: Direction | None
    write: Direction | None
    total: Direction | None
    flush: Direction | None
    roles: dict[str, Sides]
    activities: list[Sides]


@dataclass(kw_only=True)
class ImportedJob:
    """One job: which I/Os it asked for, how hard, and what they came to.

    Attributes
    ----------
    label
        What the file calls it.
    access
        Keys of `IoActivity` that are known.
    unknown
        Keys of `IoActivity` of which the file does not tell: they become null.
    others
        Options of the program that no key has and that change the load. Points with others are never taken for alike.
    queue_depth
        None where the file does not say it: then nothing is known of the load.
    workers
        In total over all volumes.
    """

    label: str
    access: AskedAccess
    queue_depth: int | None
    workers: int
    unknown: tuple[str, ...] = ()
    others: dict[str, str] = field(default_factory=dict)
    read: Side | None = None
    write: Side | None = None
    total: Side | None = None
    """Reads and writes together, where the program does not tell them apart."""
    flush: Side | None = None

    @property
    def role(self) -> str:
        """Role of its volumes."""
        return self.access.get("role", "data")

    @property
    def all(self) -> Side | None:
        """Reads and writes together."""
        return self.total if self.total is not None else together([self.read, self.write])

    @property
    def load(self) -> Load:
        """The load as points have it."""
        if self.queue_depth is None:
            return {"kind": "unknown"}
        return {
            "queue_depth": self.queue_depth,
            "workers": self.workers,
            "outstanding": self.queue_depth * self.workers,
        }

    def facts(self) -> Accesses:
        """The `workload` of a point.

        Raises
        ------
        NotTaken
            Nothing that Assay knows is asked for in such a way.
        """
        try:
            activity = validated(IoActivity, {**self.access, "workers": min(self.workers, 1024)}, self.label)
        except UsageError as error:
            raise NotTaken(str(error)) from None
        facts = activity.model_dump(mode="json", exclude={*LOAD_KEYS, "name"})
        facts["align_bytes"] = activity.align_bytes or min(activity.blocks)
        facts |= dict.fromkeys(self.unknown)
        name = activity.describe() if "random_share" not in self.unknown else f"{self.label}, options not known"
        if self.others:
            facts["other_options"] = dict(sorted(self.others.items()))
        return cast("Accesses", {"kind": "io", "name": name, **facts})


def point_of(jobs: Sequence[ImportedJob], figures: ImportedFigures, label: str) -> ImportedPoint:
    """The point of jobs that ran at the same time: one workload, or several activities."""
    read, write = (together([getattr(job, side) for job in jobs]) for side in ("read", "write"))
    total = together([job.all for job in jobs])
    flush = together([job.flush for job in jobs])
    if any(job.total is not None for job in jobs):
        read = write = None
    made = sides_of(read, write, total)
    figures = figures.copy()
    figures |= {
        "read": made["read"],
        "write": made["write"],
        "total": made["total"],
        "flush": flush.as_direction() if flush is not None else None,
        "roles": _roles(jobs),
    }
    if len(jobs) == 1:
        return ImportedPoint(workload=jobs[0].facts(), load=jobs[0].load, figures={**figures}, label=label)
    named = _names(jobs)
    asked = [job.facts() | {"name": name, "load": job.load} for name, job in zip(named, jobs, strict=True)]
    for activity in asked:
        del activity["kind"]
    figures["activities"] = [
        named_sides(name, job.role, job.read, job.write, job.all) for name, job in zip(named, jobs, strict=True)
    ]
    workload: Accesses = {"kind": "io", "name": label, "activities": [*asked]}
    return ImportedPoint(workload=workload, load={"kind": "mixed"}, figures={**figures}, label=label)


def named_sides(name: str | None, role: str | None, read: Side | None, write: Side | None, total: Side | None) -> Sides:
    """What an activity or volume did, as points have it."""
    return {"name": name, "role": role} | sides_of(read, write, total)


def _roles(jobs: Sequence[ImportedJob]) -> dict[str, Sides]:
    found: dict[str, Sides] = {}
    for role in dict.fromkeys(job.role for job in jobs):
        of_role = [job for job in jobs if job.role == role]
        sides = (together([getattr(job, side) for job in of_role]) for side in ("read", "write", "all"))
        found[role] = sides_of(*sides)
    return found


def _names(jobs: Sequence[ImportedJob]) -> list[str]:
    """Labels of jobs, told apart by numbers."""
    labels = [job.label for job in jobs]
    return [
        label if labels.count(label) == 1 else f"{label} ({labels[:place].count(label) + 1})"
        for place, label in enumerate(labels)
    ]


def volume_of(path: str, size_bytes: int | None, role: str) -> Volume:
    """A volume that another program used, as manifests have it."""
    is_device = path.startswith(("/dev/", "\\\\.\\", "#", "PHYSICALDRIVE"))
    return {
        # Windows knows both separators; a path of Linux has no other.
        "name": PureWindowsPath(path).name or path,
        "path": path,
        "kind": "device" if is_device else "file",
        "role": role,
        "size_bytes": size_bytes,
        "state": "imported",
    }


def words(text: str) -> frozenset[str]:
    """Words of a text, for tables of names.

    Examples
    --------
    >>> sorted(words("bs rw"))
    ['bs', 'rw']
    """
    return frozenset(text.split())


def role_of(path: str, roles: Mapping[str, str]) -> str:
    """The role that the user gave to a path or its last name; data without one."""
    return roles.get(path) or roles.get(PureWindowsPath(path).name) or "data"
