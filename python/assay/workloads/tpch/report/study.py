"""Figures of studies of queries: times side by side for each level."""

from __future__ import annotations

from assay.base.tables import Record
from assay.document.elements import FigureElement
from assay.record.source import RunFacts
from assay.workloads.tpch.report.points import points_of, variants
from assay.workloads.tpch.report.section import times_figure


def study_figures(facts: RunFacts) -> list[FigureElement]:
    """Times of the queries by level; none without a study."""
    study = facts.told("study") or {}
    by_id: dict[str, Record] = {str(point.get("id")): point for point in points_of(facts)}
    names = variants(facts, list(by_id.values()))
    levels = [
        (names[point_id], by_id[point_id])
        for result in study.get("results") or []
        for point_id in result.get("point_ids") or []
        if point_id in by_id
    ]
    figure = times_figure(levels, "study-tpch-times") if len(levels) > 1 else None
    return [figure] if figure is not None else []
