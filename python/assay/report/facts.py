"""Reading a run for its report, and which workloads have something to say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.base.errors import AssayError
from assay.base.tables import Record
from assay.document.figure_sections import figure_remarks, figure_sections
from assay.record.flight import has_recording, spreads
from assay.record.machines import without_twins
from assay.record.points import current_points, preconditioning
from assay.record.run_folder import RunFolder
from assay.record.shapes.point import Answer, Point
from assay.record.source import RunFacts, clean, records, shaped, shaped_manifest
from assay.workloads.capabilities import Reporting, Verifying, document_key_of
from assay.workloads.registry import DEFAULT_KIND, workload_known, workload_recorded, workloads
from assay.workloads.workload import Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.rows import Rows


Asked = TypeVar("Asked", Point, Answer)
"""What tells of a workload."""

SPREAD_METRICS = ("ios_count", "bytes")
"""Of which a flight recording's report gives percentiles and peaks of all intervals."""


def load_facts(run_path: Path) -> RunFacts:
    """Read a run folder; a damaged series or points file shortens the report instead of preventing it.

    Raises
    ------
    RunFolderError
        The folder is not a run, or its manifest cannot be read.
    """
    folder = RunFolder.open(run_path)
    unreadable: list[str] = []
    points: list[Any] = []
    before: list[Any] = []
    try:
        whole = folder.points(lean=True)
        points, before = current_points(whole), preconditioning(whole)
    except (OSError, ValueError, AssayError) as error:
        unreadable.append(f"points.jsonl could not be read: {clean(str(error))}")
    series, why = _load_series(run_path)
    if series is not None:
        series = without_twins(series, records(folder.manifest.get("hosts")))
    facts = facts_of(folder.manifest, points, series, unreadable + why)
    facts = replace(facts, preconditioning=[_shaped(clean(point)) for point in before])
    return replace(facts, spreads=spreads(run_path, SPREAD_METRICS)) if has_recording(run_path) else facts


def facts_of(
    manifest: Record,
    points: Iterable[Record] = (),
    series: Rows | None = None,
    unreadable: Sequence[str] = (),
) -> RunFacts:
    """Facts from what a run folder holds: cleaned, every point and answer with its kind."""
    whole = shaped_manifest(clean(manifest))
    answers = [_with_kind(answer) for answer in whole.get("answers") or []]
    return RunFacts(
        {**whole, "answers": answers}, [_shaped(clean(point)) for point in points], series, list(unreadable)
    )


def _shaped(point: Record) -> Point:
    made = _with_kind(shaped(point))
    workload = workload_recorded(made)
    # What belongs to a check is neither steady nor unsteady, and its users are no activities.
    return {**made, "steady": {}, "activities": []} if isinstance(workload, Verifying) else made


def _with_kind(record: Asked) -> Asked:
    workload = record.get("workload")
    if not isinstance(workload, Mapping):
        return record
    return {**record, "workload": {**workload, "kind": workload.get("kind") or DEFAULT_KIND}}


def _load_series(run_path: Path) -> tuple[Rows | None, list[str]]:
    from assay.record.series import read_series

    try:
        rows = read_series(run_path)
    except (OSError, AssayError) as error:
        return None, [f"the series could not be read: {clean(str(error))}"]
    return (rows if len(rows) else None), [str(clean(text)) for text in rows.unread]


def workload_of_run(facts: RunFacts) -> Workload[Any] | None:
    """The kind that a run is of, by its plan; that of plans which name none, where it has several."""
    return workload_known(facts.kind or DEFAULT_KIND)


def workloads_of(facts: RunFacts) -> list[Workload[Any]]:
    """The kinds that have points or told something of the run, or that the run is of."""
    of_points = {point["workload"]["kind"] for point in facts.points}
    kinds = of_points | {(part.get("plan") or {}).get("kind") for part in facts.manifest.get("parts") or []}
    known = {document_key_of(one) for one in workloads() if one.kind in kinds}
    found = [
        one
        for one in workloads()
        # Kinds may tell under one key: it is told by those that the run is of, where these are known.
        if one.kind in of_points
        or (facts.told(key := document_key_of(one)) and (one.kind in kinds or key not in known))
    ]
    main = workload_of_run(facts)
    return found or ([main] if main else [])


def sections_of(workload: Workload[Any], facts: RunFacts) -> Sequence[Section]:
    """Sections of a kind in the report of a run: its own, else those that its figures make."""
    if isinstance(workload, Reporting):
        return workload.sections(facts)
    return figure_sections(facts, workload.kind, workload.report_title, workload.figures)


def remarks_of(workload: Workload[Any], facts: RunFacts) -> Remarks:
    """What a kind says in the sections that all kinds share."""
    if isinstance(workload, Reporting):
        return workload.remarks(facts)
    return figure_remarks(facts, workload.kind, workload.figures)


def measured_points(facts: RunFacts) -> list[Point]:
    """Points that measure a load; those that belong to a check do not."""
    return [point for point in facts.points if not isinstance(workload_recorded(point), Verifying)]


def label_of(workload: Record) -> str:
    """How a workload reads in tables, captions and legends."""
    found = workload_known(workload.get("kind"))
    return found.label(workload) if found else str(workload.get("name") or workload.get("kind") or "")
