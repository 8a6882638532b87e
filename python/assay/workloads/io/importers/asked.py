"""What another program asked of storage, in the words of points, so that its points compare with Assay's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import Any

from assay.base.errors import UsageError
from assay.base.reading import validated
from assay.telemetry.importers.importer import NotTaken
from assay.workloads.imported import ImportedPoint, Side, sides_of, together
from assay.workloads.io.activities import IoActivity

Record = Mapping[str, Any]

WORKERS_MAX, DEPTH_MAX = 10**6, 10**6
"""Beyond all that programs start."""


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
    workers
        In total over all volumes.
    """

    label: str
    access: dict[str, Any]
    queue_depth: int
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
        return str(self.access.get("role", "data"))

    @property
    def all(self) -> Side | None:
        """Reads and writes together."""
        return self.total if self.total is not None else together([self.read, self.write])

    @property
    def load(self) -> dict[str, Any]:
        """The load as points have it."""
        return {
            "queue_depth": self.queue_depth,
            "workers": self.workers,
            "outstanding": self.queue_depth * self.workers,
        }

    def facts(self) -> dict[str, Any]:
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
        facts = activity.model_dump(mode="json", exclude=_LOAD | {"name"})
        facts["align_bytes"] = activity.align_bytes or min(activity.blocks)
        facts |= dict.fromkeys(self.unknown)
        if self.others:
            facts["other_options"] = dict(sorted(self.others.items()))
        return {"kind": "io", "name": activity.describe(), **facts}


_LOAD = {
    "queue_depth", "outstanding", "rate", "arrivals", "burst_interval_s", "burst_bytes", "burst_spread", "workers",
}  # fmt: skip


def point_of(jobs: Sequence[ImportedJob], figures: dict[str, Any], label: str) -> ImportedPoint:
    """The point of jobs that ran at the same time: one workload, or several activities."""
    read, write = (together([getattr(job, side) for job in jobs]) for side in ("read", "write"))
    total = together([job.all for job in jobs])
    flush = together([job.flush for job in jobs])
    if any(job.total is not None for job in jobs):
        read = write = None
    figures = {
        **figures,
        **sides_of(read, write, total),
        "flush": flush.as_direction() if flush is not None else None,
        "roles": _roles(jobs),
    }
    if len(jobs) == 1:
        return ImportedPoint(workload=jobs[0].facts(), load=jobs[0].load, figures=figures, label=label)
    named = _names(jobs)
    asked = [{**job.facts(), "name": name, "load": job.load} for name, job in zip(named, jobs, strict=True)]
    for activity in asked:
        del activity["kind"]
    figures["activities"] = [
        {"name": name, "role": job.role, **sides_of(job.read, job.write, job.all)}
        for name, job in zip(named, jobs, strict=True)
    ]
    workload = {"kind": "io", "name": label, "activities": asked}
    return ImportedPoint(workload=workload, load={"kind": "mixed"}, figures=figures, label=label)


def _roles(jobs: Sequence[ImportedJob]) -> dict[str, Any]:
    found = {}
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


def volume_of(path: str, size_bytes: int | None, role: str) -> dict[str, Any]:
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
