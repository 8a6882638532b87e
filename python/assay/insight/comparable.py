"""What makes runs comparable, decided here for comparisons, histories and baselines.

Two figures compare where target, load, timing and state are the same. `target_identity` is the strict form of the
target: a drive of another model is another target, because runs that only differ by chance must not differ by their
drive. `target_place` is the form that a history follows: the place stays when its drive is replaced, and the new drive
is one of the facts that changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from assay.base.tables import Record
from assay.insight.differences import same_workload
from assay.record.shapes.manifest import Plan
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.state import RunState
from assay.record.state import apart, state_of, states_of
from assay.record.types import Manifest

TIMING = ("warmup_s", "duration_s", "min_s", "max_s")
"""What a plan says of the time of its points."""


@dataclass(frozen=True, order=True)
class ComparableKey:
    """What two measurements have in common that are compared; texts that are the same where the thing is.

    Attributes
    ----------
    target
        The place under load (`target_place`).
    load
        Workload and load of a point, or what a search asked; in a study with the level that it was measured at.
    timing
        How long points are warmed up and measured.
    state
        Name of the target's state (docs/precondition.md), `unknown` where the run did not bring it into one.
    """

    target: str
    load: str
    timing: str
    state: str


class RunKeys:
    """The keys of what one run measured; what all of them share is worked out once."""

    def __init__(self, manifest: Manifest) -> None:
        self._place = target_place(manifest)
        self._timings = {one.get("name"): _timing(one.get("plan")) for one in reversed(manifest.get("parts") or [])}

        study = manifest.get("study")
        self._levels = study["levels"] if study else {}

    def level(self, part: str | None) -> str:
        """What a study set for a part, in words; empty where it set nothing."""
        return ", ".join(f"{factor} {value}" for factor, value in self._levels.get(part or "", {}).items())

    def of_point(self, point: Point) -> ComparableKey | None:
        """The key of a point; None where its target is not known."""
        load = f"{same_workload(point['workload'])} {json.dumps(point['load'], sort_keys=True)}"
        return self._key(load, point.get("part"), state_of(cast("Record", point)).get("name"))

    def of_answer(self, answer: Answer, states: Sequence[RunState]) -> ComparableKey | None:
        """The key of an answer: what was asked, with its limits.

        Parameters
        ----------
        states
            Those of the run's points.
        """
        asked = f"{same_workload(answer['workload'])} {answer['axis']} {json.dumps(answer.get('limits') or [])}"
        names = sorted({str(state.get("name")) for state in states if answer["part"] in (state.get("parts") or ())})
        return self._key(asked, answer["part"], " ".join(names))

    def _key(self, load: str, part: str | None, state: object) -> ComparableKey | None:
        if self._place is None:
            return None
        if level := self.level(part):
            load = f"{load} {level}"
        return ComparableKey(self._place, load, self._timings.get(part or "") or _timing(None), str(state or "unknown"))


def _timing(plan: Plan | None) -> str:
    timing = (plan or {}).get("timing") or {}
    return json.dumps([timing.get(name) for name in TIMING])


def states_apart(sides: Iterable[Iterable[Point]]) -> tuple[str, str] | None:
    """Two states of the points of two sides that do not compare, in words; None where all do."""
    return apart([states_of(cast("Iterable[Record]", points)) for points in sides])


def target_identity(manifest: Manifest) -> str | None:
    """What makes the target of a run the same one: host, volumes and databases; None where none is known."""
    return _target(manifest, ("name", "path", "kind", "role", "model"))


def target_place(manifest: Manifest) -> str | None:
    """Where the target of a run is, whatever drive or array is there: host, volumes and databases."""
    return _target(manifest, ("name", "path", "kind", "role"))


def _target(manifest: Manifest, keys: Sequence[str]) -> str | None:
    target = manifest.get("target") or {}
    databases = [[database.get(key) for key in ("name", "kind", "host")] for database in target.get("databases") or []]
    # A database grows while it runs; a file is another target when it has another size.
    keys = keys if databases else (*keys, "size_bytes")
    volumes = [[volume.get(key) for key in keys] for volume in target.get("volumes") or []]
    if not volumes and not databases:
        return None
    # What has no path, as null: has none, is what it was asked to be.
    asked = [] if all(volume[1] for volume in volumes) else (manifest.get("request") or {}).get("paths")
    return json.dumps([(manifest.get("host") or {}).get("hostname"), volumes, databases, asked])
