"""What a report is made from: the facts of one run, cleaned of everything that could not be shown as plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError

if TYPE_CHECKING:
    import polars

Record = Mapping[str, Any]
"""One JSON object of the run folder, as docs/results.md describes it."""


@dataclass(frozen=True)
class RunFacts:
    """Everything a report says, read from the run folder.

    Attributes
    ----------
    manifest : Record
        `run.json`.
    points : list of Record
        `points.jsonl`, in the order they ended; without those of a chain that was measured again.
    series : polars.DataFrame or None
        The tall table of the series; None when the run has none.
    unreadable : list of str
        What could not be read and why; the report says it.
    """

    manifest: Record
    points: list[Record] = field(default_factory=list)
    series: polars.DataFrame | None = None
    unreadable: list[str] = field(default_factory=list)

    @property
    def verifies(self) -> bool:
        """Whether the run is one of `assay verify`: it asks for right bytes, not for rates."""
        return self.manifest.get("verb") == "verify"

    @property
    def integrity(self) -> Record | None:
        """What an integrity run found, as docs/integrity.md describes it; None when the run verified nothing."""
        found: Record | None = self.manifest.get("integrity")
        return found

    @property
    def measured_points(self) -> list[Record]:
        """Points that were measured; phases of an integrity run are points as well, but no measurement of a load."""
        return [point for point in self.points if not is_phase(point)]

    @property
    def io_points(self) -> list[Record]:
        """Measured points whose load was I/O."""
        return [point for point in self.measured_points if not runs_transactions(point)]

    @property
    def oltp_points(self) -> list[Record]:
        """Measured points whose load was transactions on databases."""
        return [point for point in self.measured_points if runs_transactions(point)]

    @property
    def oltp(self) -> Record | None:
        """What a run of transactions found, as docs/oltp.md describes it; None when the run had none."""
        found: Record | None = self.manifest.get("oltp")
        return found

    @property
    def answers(self) -> list[Record]:
        """Answers of the searches for I/O that have a workload."""
        return [answer for answer in self._answers if not runs_transactions(answer)]

    @property
    def oltp_answers(self) -> list[Record]:
        """Answers of the searches for transactions."""
        return [answer for answer in self._answers if runs_transactions(answer)]

    @property
    def _answers(self) -> list[Record]:
        return [answer for answer in self.manifest.get("answers") or [] if isinstance(answer.get("workload"), Mapping)]

    def point(self, point_id: str | None) -> Record | None:
        """Point of an id, or None."""
        return next((point for point in self.points if point.get("id") == point_id), None)

    def points_of(self, part: str) -> list[Record]:
        """Measured points of one part, in the order they ended."""
        return [point for point in self.io_points if point.get("part") == part]


def load_facts(run_path: Path) -> RunFacts:
    """Read a run folder; a damaged series or points file shortens the report instead of preventing it.

    Raises
    ------
    RunFolderError
        The folder is not a run, or its manifest cannot be read.
    """
    from assay.results.points import current_points
    from assay.results.run_folder import RunFolder

    folder = RunFolder.open(run_path)
    manifest = shaped_manifest(clean(folder.manifest))
    unreadable: list[str] = []
    points: list[Record] = []
    try:
        points = [shaped(clean(point)) for point in current_points(folder.points())]
    except (OSError, ValueError, AssayError) as error:
        unreadable.append(f"points.jsonl could not be read: {clean(str(error))}")
    series, why = _load_series(run_path)
    return RunFacts(manifest, points, series, unreadable + why)


def _load_series(run_path: Path) -> tuple[polars.DataFrame | None, list[str]]:
    import polars

    from assay.results.series import read_series

    try:
        frame = polars.from_arrow(read_series(run_path))
    # pyarrow raises subclasses of ValueError and OSError for a damaged file.
    except (OSError, ValueError, AssayError, polars.exceptions.PolarsError) as error:
        return None, [f"the series could not be read: {clean(str(error))}"]
    if not isinstance(frame, polars.DataFrame) or frame.is_empty():
        return None, []
    return frame, []


def is_phase(point: Record) -> bool:
    """Whether a point is a phase of an integrity run."""
    return bool((point.get("workload") or {}).get("kind") == "integrity")


def runs_transactions(point: Record) -> bool:
    """Whether a point or an answer is of transactions on databases."""
    return bool((point.get("workload") or {}).get("kind") == "tpcc")


def shaped(point: Record) -> Record:
    """Point with what every section counts on; a report outlives a point cut short.

    Workload and load are empty if the point lacks them; a direction without its rates counts as not measured. A phase
    of an integrity run is neither steady nor unsteady, and its users are no activities.
    """
    made: dict[str, Any] = {**point, "workload": point.get("workload") or {}, "load": point.get("load") or {}}
    for side in ("read", "write", "total"):
        made[side] = _direction(point.get(side))
    bursts = point.get("bursts") or {}
    made["bursts"] = {**bursts, **{key: _direction(bursts.get(key)) for key in ("read_during", "read_between")}}
    made["activities"] = [
        {**activity, "read": _direction(activity.get("read")), "write": _direction(activity.get("write"))}
        for activity in _records(point.get("activities"))
    ]
    made["limits"] = _records(point.get("limits"))
    if runs_transactions(made):
        made["oltp"] = _oltp(point.get("oltp"))
    return {**made, "steady": {}, "activities": []} if is_phase(made) else made


def shaped_manifest(manifest: Record) -> Record:
    """Manifest whose lists hold only records, and whose answers hold only whole values."""
    made: dict[str, Any] = {**manifest}
    for name in ("parts", "verdict", "answers"):
        made[name] = _records(manifest.get(name))
    made["answers"] = [_answer(answer) for answer in made["answers"]]
    target = manifest.get("target") or {}
    made["target"] = {**target, "volumes": _records(target.get("volumes"))}
    span = manifest.get("cache_span")
    if span:
        steps = [step for step in _records(span.get("steps")) if step.get("span_bytes") and step.get("latency_mean_ns")]
        made["cache_span"] = {**span, "steps": steps}
    if "integrity" in manifest:
        found = manifest["integrity"]
        made["integrity"] = _integrity(found) if isinstance(found, Mapping) else None
    if "oltp" in manifest:
        made["oltp"] = _oltp(manifest["oltp"]) if isinstance(manifest["oltp"], Mapping) else None
    target = made["target"]
    made["target"] = {**target, "databases": _records(target.get("databases"))}
    return made


def _oltp(found: Any) -> Record:
    """Transactions whose lists hold only records, and whose mappings are there."""
    made: dict[str, Any] = {**found} if isinstance(found, Mapping) else {}
    for name in ("gaps", "databases", "statements", "tables", "conditions"):
        made[name] = _records(made.get(name))
    by_type = made.get("by_transaction")
    made["by_transaction"] = {
        name: record
        for name, record in (by_type.items() if isinstance(by_type, Mapping) else ())
        if isinstance(record, Mapping)
    }
    for name in ("errors", "storage", "load", "schedule"):
        made[name] = made[name] if isinstance(made.get(name), Mapping) else None
    if made["storage"] is not None:
        made["storage"] = {**made["storage"], "devices": _records(made["storage"].get("devices"))}
    return made


def _integrity(found: Record) -> Record:
    """Findings whose counts hold only numbers, and whose lists hold only records of the expected form."""
    made: dict[str, Any] = {**found}
    for name in ("findings", "persistent", "transient"):
        made[name] = _counts(found.get(name))
    for name in ("injected", "observable", "masked"):
        made[name] = _counts(found[name]) if isinstance(found.get(name), Mapping) else None
    for name in ("phases", "files"):
        made[name] = _records(found.get(name))
    made["understood"] = [str(line) for line in found.get("understood") or []]
    made["details"] = [_finding(detail) for detail in _records(found.get("details"))]
    return made


def _finding(finding: Record) -> Record:
    ranges = [pair for pair in finding.get("ranges") or [] if isinstance(pair, list) and len(pair) == 2]
    units = [unit for unit in _records(finding.get("units")) if None not in (unit.get("first"), unit.get("last"))]
    also = [str(name) for name in finding.get("also") or []]
    return {**finding, "ranges": ranges, "units": units, "also": also, "expected": finding.get("expected") or {}}


def _counts(counts: Record | None) -> Record:
    return {name: count for name, count in (counts or {}).items() if isinstance(count, int)}


def _answer(answer: Record) -> Record:
    most, interval = answer.get("max"), answer.get("interval_95")
    whole = isinstance(interval, list) and len(interval) == 2 and None not in interval
    measure = "nopm" if runs_transactions(answer) else "iops"
    found = most if most and most.get(measure) is not None else None
    return {**answer, "max": found, "interval_95": interval if whole else None}


def _direction(direction: Record | None) -> Record | None:
    whole = direction and all(direction.get(key) is not None for key in ("iops", "bytes_per_s"))
    return direction if whole else None


def _records(values: Any) -> list[Record]:
    return [value for value in values or [] if isinstance(value, Mapping)]


def clean(value: Any) -> Any:
    r"""Value with every text made fit for XML, HTML and PDF.

    Control characters, undecodable bytes and marks that reorder text are written out as escapes: a file name must
    not be able to hide what it is.

    Examples
    --------
    >>> clean({"path": "a\x00b\u202ec"})
    {'path': 'a\\x00b\\u202ec'}
    """
    if isinstance(value, str):
        return value if value.isprintable() else "".join(map(_visible, value))
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    # JSON as Python reads it may hold NaN and infinity, which mean "not measured" here.
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


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
