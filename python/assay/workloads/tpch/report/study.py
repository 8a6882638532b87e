"""Figures and tables of studies of queries: times side by side for each level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from assay.base.tables import Record
from assay.base.units import format_iops, format_latency
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
    """Times of each query at every level with their mean, a table for each test; then reads of each device by level."""
    study = facts.told("study") or {}
    by_id: dict[str, Record] = {str(point.get("id")): point for point in points_of(facts)}
    tests: dict[str, dict[str, dict[int, float]]] = {}
    reads: list[list[Cell]] = []
    for result in study.get("results") or []:
        points = [by_id[point_id] for point_id in result.get("point_ids") or [] if point_id in by_id]
        if points:
            level = str(result.get("title") or result.get("part"))
            tests.setdefault(test_words(points[0]), {})[level] = _means([mean_seconds(point) for point in points])
            reads += _device_rows(level, points)
    tables = [_times_table(number, test, levels)
              for number, (test, levels) in enumerate(tests.items(), start=1) if len(levels) > 1]  # fmt: skip
    return [*tables, *([_device_table(reads)] if reads else [])]


def _device_rows(level: str, points: Sequence[Record]) -> list[list[Cell]]:
    """What was read of each device at a level: means over its points, sizes by the bytes of all of them."""
    found: dict[str, list[Record]] = {}
    for point in points:
        for device in ((point["dss"].get("storage") or {}).get("devices")) or ():
            if "data" in (device.get("roles") or ()) and device.get("read_iops"):
                found.setdefault(str(device.get("device")), []).append(device)
    rows = []
    for name, each in found.items():
        iops, rate = (fmean(one[key] or 0.0 for one in each) for key in ("read_iops", "read_bytes_per_s"))
        waits = [one["read_latency_mean_ns"] for one in each if one.get("read_latency_mean_ns") is not None]
        latency = format_latency(fmean(waits)) if waits else DASH
        texts = [level, name, f"{rate / iops / 1e3:,.1f} kB", format_iops(iops), f"{rate / 1e6:,.4g} MB/s", latency]
        rows.append([Cell(text) for text in texts])
    return rows


def _device_table(rows: list[list[Cell]]) -> Table:
    numbers = ("Read size", "Reads/s", "Read", "Read latency")
    columns = [Column("Level", weight=2.0), Column("Device"), *(Column(title, number=True) for title in numbers)]
    caption = "Reads of each device of the data by level: means; what other programs read is among them."
    return Table("study-tpch-devices", caption, columns, rows, dense=True)


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
