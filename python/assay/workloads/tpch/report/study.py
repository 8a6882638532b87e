"""Figures and tables of studies of queries: times side by side for each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.base.tables import Record
from assay.document.elements import Cell, Column, FigureElement, Table
from assay.document.text import DASH
from assay.record.source import RunFacts
from assay.workloads.tpch.report.points import mean_seconds, points_of, test_words, variants
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


def study_tables(facts: RunFacts) -> list[Table]:
    """Times of each query at every level with their mean, a table for each test; none without a study."""
    study = facts.told("study") or {}
    by_id: dict[str, Record] = {str(point.get("id")): point for point in points_of(facts)}
    tests: dict[str, dict[str, dict[int, float]]] = {}
    for result in study.get("results") or []:
        points = [by_id[point_id] for point_id in result.get("point_ids") or [] if point_id in by_id]
        if points:
            level = str(result.get("title") or result.get("part"))
            tests.setdefault(test_words(points[0]), {})[level] = _means([mean_seconds(point) for point in points])
    return [_times_table(number, test, levels)
            for number, (test, levels) in enumerate(tests.items(), start=1) if len(levels) > 1]  # fmt: skip


def _means(repeats: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Mean time of each query that ended in every repeat."""
    known = [number for number in repeats[0] if all(number in one for one in repeats)]
    return {number: fmean(one[number] for one in repeats) for number in known}


def _times_table(number: int, test: str, levels: Mapping[str, Mapping[int, float]]) -> Table:
    """A row a query in the order of their numbers, a column a level, and a mean of those that ended at every level."""
    queries = sorted({query for times in levels.values() for query in times})
    common = [query for query in queries if all(query in times for times in levels.values())]
    columns = [Column("Query"), *(Column(level, number=True) for level in levels)]
    rows = [
        [Cell(str(query)), *(Cell(f"{times[query]:.3g} s" if query in times else DASH) for times in levels.values())]
        for query in queries
    ]
    if common:
        means = [fmean(times[query] for query in common) for times in levels.values()]
        rows.append([Cell("mean"), *(Cell(f"{mean:.3g} s") for mean in means)])
    of = "all" if len(common) == len(queries) else f"the {len(common)} that ended at every level"
    caption = f"Time of each query by level, {test}; the last row is the mean of {of}."
    return Table(f"study-tpch-queries-{number}", caption, columns, rows, dense=True)
