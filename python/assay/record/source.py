"""What a report is made from: the facts of one run, cleaned of everything that could not be shown as plain text.

Nothing here knows a kind of workload: `assay.report.facts` reads a run and asks the registry.
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from assay.base.tables import Record

if TYPE_CHECKING:
    from assay.record.flight import Spread
    from assay.record.rows import Rows
    from assay.record.types import Answer, Manifest, Point

OneRecord = TypeVar("OneRecord", bound=Mapping[str, object])


@dataclass(frozen=True)
class RunFacts:
    """Everything a report says, read from the run folder.

    Attributes
    ----------
    manifest : Manifest
        `run.json`.
    points : list of Point
        `points.jsonl`, in the order they ended; without those of a chain that was measured again.
    series : Rows or None
        Rows of the series, one at least; None when the run has none.
    unreadable : list of str
        What could not be read and why; the report says it.
    spreads
        Of a flight recording how I/Os and bytes of devices were spread over all intervals, also where these have
        become minutes; by host, source, entity and metric.
    preconditioning
        Points that brought the target into its state, which are no results.
    """

    manifest: Manifest
    points: list[Point] = field(default_factory=list)
    series: Rows | None = None
    unreadable: list[str] = field(default_factory=list)
    spreads: Mapping[tuple[str, str, str, str], Spread] = field(default_factory=dict)
    preconditioning: list[Point] = field(default_factory=list)

    @property
    def kind(self) -> str | None:
        """Kind of the plan that the run is of; None where it has several, or where the plan names none."""
        plan = self.manifest.get("plan")
        return plan.get("kind") if isinstance(plan, Mapping) else None

    def point(self, point_id: str | None) -> Point | None:
        """Point of an id, or None."""
        return self._by_id.get(point_id)

    @cached_property
    def _by_id(self) -> dict[str | None, Point]:
        # Of points with one id the first is meant.
        return {point.get("id"): point for point in reversed(self.points)}

    def told(self, key: str | None) -> Record | None:
        """What a workload told of the run as a whole, under its key of the manifest; None when it told nothing."""
        found = self.manifest.get(key) if key else None
        return found if isinstance(found, Mapping) else None

    def points_of(self, kind: str) -> list[Point]:
        """Points of one kind of workload, in the order they ended."""
        return [point for point in self.points if point["workload"].get("kind") == kind]

    def answers_of(self, kind: str, measure: str) -> list[Answer]:
        """Answers of one kind of workload.

        Parameters
        ----------
        kind
            The kind.
        measure
            Name of the figure that was searched for: `max`, `knee` and `edge` are None where they lack it.
        """
        found: list[Answer] = []
        for answer in self.manifest.get("answers") or []:
            workload = answer.get("workload")
            if isinstance(workload, Mapping) and workload.get("kind") == kind:
                ends = {name: answer.get(name) for name in ("max", "knee", "edge")}
                whole = {
                    name: end if isinstance(end, Mapping) and end.get(measure) is not None else None
                    for name, end in ends.items()
                }
                found.append(cast("Answer", {**answer, **whole}))
        return found


def shaped(point: Record) -> Point:
    """Point with what every section counts on; a report outlives a point cut short.

    Workload and load are empty if the point lacks them; a direction without its rates counts as not measured.
    """
    made: dict[str, Any] = {**point, "workload": point.get("workload") or {}, "load": point.get("load") or {}}
    for side in ("read", "write", "total"):
        made[side] = _direction(point.get(side))
    bursts = point.get("bursts") or {}
    made["bursts"] = {**bursts, **{key: _direction(bursts.get(key)) for key in ("read_during", "read_between")}}
    made["activities"] = [
        {**activity, "read": _direction(activity.get("read")), "write": _direction(activity.get("write"))}
        for activity in records(point.get("activities"))
    ]
    made["limits"] = records(point.get("limits"))
    return cast("Point", made)


def shaped_manifest(manifest: Record) -> Manifest:
    """Manifest whose lists hold only records, and whose answers hold only whole intervals."""
    made: dict[str, Any] = {**manifest}
    for name in ("parts", "verdict", "answers"):
        made[name] = records(manifest.get(name))
    made["answers"] = [_answer(answer) for answer in made["answers"]]
    target = manifest.get("target") or {}
    made["target"] = {**target, **{name: records(target.get(name)) for name in ("volumes", "databases")}}
    return cast("Manifest", made)


def _answer(answer: Record) -> Record:
    interval = answer.get("interval_95")
    whole = isinstance(interval, list) and len(interval) == 2 and None not in interval
    return {**answer, "interval_95": interval if whole else None}


def _direction(direction: Record | None) -> Record | None:
    whole = direction and all(direction.get(key) is not None for key in ("iops", "bytes_per_s"))
    return direction if whole else None


@overload
def records(values: Sequence[OneRecord] | None) -> list[OneRecord]: ...
@overload
def records(values: object) -> list[Record]: ...
def records(values: object) -> Sequence[Record]:
    """JSON objects of a list; none where there is no list.

    Examples
    --------
    >>> records([{"name": "a"}, None, 5]), records(2.5)
    ([{'name': 'a'}], [])
    """
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list | tuple) else []


def clean(value: Any) -> Any:
    r"""Value with every text made fit for XML, HTML and PDF.

    Control characters, undecodable bytes and marks that reorder text are written out as escapes: a file name must
    not be able to hide what it is.

    Examples
    --------
    >>> clean({"path": "a\x00b\u202ec"})
    {'path': 'a\\x00b\\u202ec'}
    """
    # What is clean already is given back as it is: a run may hold millions of values, and hardly one that is not.
    kind = type(value)
    if kind is str:
        return value if value.isprintable() else "".join(map(_visible, value))
    if kind is float:
        # JSON as Python reads it may hold NaN and infinity, which mean "not measured" here.
        return value if math.isfinite(value) else None
    if kind is int or kind is bool or value is None:
        return value
    if isinstance(value, Mapping):
        return _clean_mapping(value)
    if isinstance(value, (list, tuple)):
        made = [clean(item) for item in value]
        return value if kind is list and all(map(operator.is_, made, value)) else made
    return value


def _clean_mapping(value: Mapping[Any, Any]) -> Mapping[str, Any]:
    changed = {}
    for key, item in value.items():
        if (kept := clean(item)) is not item:
            changed[key] = kept
        if type(key) is not str or not key.isprintable():
            return {clean(str(key)): clean(item) for key, item in value.items()}
    return {**value, **changed} if changed or type(value) is not dict else value


def _visible(character: str) -> str:
    if character in "\n\t":
        return " "
    # Cc, Cf, Cs, Co, Cn: control, format (bidirectional marks), surrogate, private and unassigned code points.
    if unicodedata.category(character).startswith("C"):
        code = ord(character)
        if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8, as os.fsdecode keeps it (PEP 383)
            return f"\\x{code - 0xDC00:02x}"
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character
