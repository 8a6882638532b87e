"""What a study found: question, sentences, comparison figure, levels; of published figures, theirs and the model's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NotRequired, TypedDict, TypeVar

from assay.base.tables import Record
from assay.base.units import format_bytes, format_iops
from assay.document.elements import Block, Cell, Column, FigureElement, Paragraph, Section, Table, Tone
from assay.document.limits import limited_text
from assay.document.palette import MAX_SERIES, chunks
from assay.document.remarks import Remarks
from assay.document.text import DASH, id_range, joined, percent, shorten, throughput_texts
from assay.insight.studies.grid import FigureGrid, grids_of
from assay.insight.studies.words import (
    CAPACITY_COLUMNS,
    against_text,
    are_of_databases,
    capacity_texts,
    capital,
    common_figures,
    figure_text,
    full_name_of,
    published_texts,
)
from assay.record.figures import Figure as Measure
from assay.record.shapes.point import Answer, Point
from assay.record.shapes.study import Comparison, PublishedFigure, Result, Study
from assay.record.source import RunFacts
from assay.report.facts import label_of
from assay.report.figures_study import LevelRow, PublishedRow, level_figure, published_figure

Told = TypeVar("Told", Point, Answer)
"""What tells of a part's workload."""


def study_of(facts: RunFacts) -> Study | None:
    """What a run says of its study; None if the run is no study."""
    study = facts.manifest.get("study")
    return study if isinstance(study, Mapping) and study.get("title") else None


def with_levels(facts: RunFacts) -> RunFacts:
    """The run with the levels of a part before the name of each workload, so that every section tells them apart."""
    titles = {part["name"]: part.get("title") for part in facts.manifest.get("parts") or []}

    def named(record: Told) -> Told:
        title, workload = titles.get(record.get("part") or ""), record.get("workload")
        if not title or not workload:
            return record
        label = label_of(workload)
        name = label if label.startswith(title) else f"{title}: {label}"
        return {**record, "workload": {**workload, "name": name}}

    answers = [named(answer) for answer in facts.manifest.get("answers") or []]
    return replace(facts, manifest={**facts.manifest, "answers": answers}, points=[named(p) for p in facts.points])


def study_section(facts: RunFacts, remarks: Sequence[Remarks]) -> Section | None:
    """Build the section; None when the run is no study."""
    study = study_of(facts)
    if study is None:
        return None
    blocks: list[Block] = [Paragraph(str(study.get("question") or ""))]
    blocks += [Paragraph(str(text), strong=True) for text in study.get("sentences") or []]
    blocks += study_shown(facts, study, remarks) or [Paragraph(UNFINISHED)]
    blocks += [Paragraph(text) for text in study_method(facts, study, remarks)]
    return Section("study", str(study["title"]), blocks)


class LevelTold(TypedDict):
    """What a row says of its level, with the load where levels are loads."""

    level: str
    load: NotRequired[float]
    series: str
    group: str
    told: str


UNFINISHED = "The run had not ended when this was written: nothing has been compared yet."


def study_shown(facts: RunFacts, study: Study, remarks: Sequence[Remarks]) -> list[Block]:
    """Figures and tables of what a study found; none where it has not ended."""
    if study.get("published"):
        return _published(study)
    if not study.get("results"):
        return []
    blocks = [*_figures(study), *_load_figures(facts, study), *_gap_figures(study), *_beside_figure(study)]
    blocks += [figure for found in remarks for figure in found.study_figures]
    blocks += [_grid(number, grid) for number, grid in enumerate(grids_of(study), start=1)]
    blocks += [*(made for found in remarks for made in found.study_tables), _table(study)]
    return [*blocks, *([of_host] if (of_host := _host(facts, study)) is not None else [])]


def _grid(number: int, grid: FigureGrid) -> Table:
    first, *others = grid.columns
    columns = [Column(capital(first), weight=1.5), *(Column(one, number=True) for one in others)]
    return Table(f"matrix-{number}", f"{grid.caption}.", columns, [[Cell(text) for text in row] for row in grid.rows])


HOST = {"cpu_share": "CPU busy", "iowait_share": "Waiting for I/O", "memory_available_bytes": "Available memory"}
"""What the host did at each level, by its key in a point's telemetry."""


def _host(facts: RunFacts, study: Record) -> Table | None:
    """Processors and memory of the host at each level; None where they were not recorded, as of models."""
    rows = []
    for result in study["results"]:
        points = [point for point_id in result.get("point_ids") or [] if (point := facts.point(point_id))]
        told = [point.get("telemetry") or {} for point in points if point.get("clock") == "wall"]
        each = [[value for one in told if (value := one.get(key)) is not None] for key in HOST]
        if any(each):
            means = [fmean(values) if values else None for values in each]
            rows.append([Cell(str(result["title"])), *map(Cell, _host_texts(means))])
    columns = [Column("Level", weight=2.0), *(Column(title, number=True) for title in HOST.values())]
    caption = "Processors and memory of this host at each level: means over its points."
    return Table("levels-host", caption, columns, rows) if rows else None


def _host_texts(means: Sequence[float | None]) -> list[str]:
    cpu, waiting, free_bytes = means
    return [*(percent(share) for share in (cpu, waiting)), DASH if free_bytes is None else format_bytes(free_bytes)]


def study_method(facts: RunFacts, study: Record, remarks: Sequence[Remarks]) -> list[str]:
    """How the levels were measured, in sentences."""
    parts = facts.manifest.get("parts") or []
    chained = any(part.get("continues") for part in parts)
    followed = any(part.get("follows") for part in parts)
    own = _method(facts, study, chained=chained, followed=followed)
    return [*own, *(text for found in remarks for text in found.study)]


def _method(facts: RunFacts, study: Record, *, chained: bool, followed: bool) -> list[str]:
    order = [str(name) for name in study.get("order") or []]
    repeats = study.get("repeats") or 1
    times = f" {repeats} times" if repeats > 1 else ""
    texts = []
    if chained:
        texts.append(f"Each part went on with the state the one before left: {shorten('; '.join(order), 400)}.")
    elif followed:
        texts.append(f"The parts ran one after the other: {shorten('; '.join(order), 400)}.")
    elif len(order) > 1 and not _of_models(facts):
        texts.append(
            f"The levels ran{times} in random order (seed {study.get('seed')}), so that a drift in time is no"
            f" difference between them: {shorten('; '.join(order), 400)}."
        )
    if study.get("comparison"):
        near = "" if _of_databases(study) else ", not how near a model comes to an array"
        texts.append(
            f"Each +- is the wider side of the 95 % interval of the ratio; it says how sure the measurement is{near}."
        )
    return texts


def _of_models(facts: RunFacts) -> bool:
    """Whether levels ran on models, which have no time in which anything could drift."""
    return bool((facts.manifest.get("target") or {}).get("array"))


# Levels


def _figures(study: Record) -> list[Block]:
    wanted = study.get("comparison")
    if not wanted:
        return []
    factor = next((one for one in study["factors"] if one["name"] == wanted["by"]), None)
    if factor is None:
        return []
    blocks: list[Block] = []
    for name in [wanted["figure"], *(wanted.get("also") or [])]:
        rows = _rows(study, factor, name)
        seen = Counter(row["series"] for row in rows)
        if len(factor["levels"]) > 1 and max(seen.values(), default=0) < 2:
            # One level beside nothing compares nothing.
            continue
        for number, group in enumerate(_groups(rows), start=1):
            own = [row for row in rows if row["series"] in group]
            full = full_name_of(name, study["results"])
            rises = bool(factor["ordered"])
            chart = level_figure(own, name, str(factor["title"]), joined=rises, full_name=full)
            if chart is not None:
                blocks.append(_figure(name, full, str(factor["title"]), number, own, chart))
    return blocks


def _gap_figures(study: Record) -> list[Block]:
    """I/Os per second of a database beside what storage holds of their kind."""
    blocks: list[Block] = []
    values = {result["part"]: result.get("values") or {} for result in study["results"]}
    ids = {result["part"]: result.get("point_ids") or [] for result in study["results"]}
    for number, gap in enumerate(study.get("gaps") or [], start=1):
        rows: list[LevelRow] = []
        figure = "bytes_per_s" if gap.get("sequential") else "iops"
        for level, part, value in (
            ("database", gap["follows"], gap[f"database_{figure}"]),
            ("raw profile", gap["part"], gap[f"raw_{figure}"]),
        ):
            interval = (values.get(part, {}).get(figure) or {}).get("interval_95") or (None, None)
            rows.append(
                {"level": level, "series": "", "unit": figure, "value": value or 0.0, "low": interval[0],
                 "high": interval[1], "band_low": None, "band_high": None, "point_ids": ids.get(part, [])}
            )  # fmt: skip
        chart = level_figure(rows, figure, "who asks the storage", joined=False)
        if chart is not None:
            blocks.append(FigureElement(f"study-gap-{number}", _gap_caption(gap), str(gap["sentences"][0]), chart))
    return blocks


def _beside_figure(study: Record) -> list[Block]:
    """How long the queries beside take alone and together, by level."""
    found = [one for one in study.get("beside") or [] if one["together"]["mean_s"]]
    rows: list[LevelRow] = [
        {"level": one["title"], "series": series, "unit": "ns", "value": one[key]["mean_s"] * 1e9,
         "low": None, "high": None, "band_low": None, "band_high": None, "point_ids": one["point_ids"]}
        for one in found
        for series, key in (("alone", "alone"), ("beside transactions", "together"))
    ]  # fmt: skip
    chart = level_figure(rows, "query_mean", "where the queries run", joined=False)
    if chart is None:
        return []
    ids = id_range(point_id for one in found for point_id in one["point_ids"])
    caption = f"Mean time of a query alone, and while the points were measured; the same queries in both. Points {ids}."
    return [FigureElement("study-beside", caption, joined(one["sentences"][0] for one in found), chart)]


def _gap_caption(gap: Record) -> str:
    blocks = f"{format_bytes(gap['block_bytes'])} at {percent(gap['read_share'])} reads"
    ids = id_range(gap["point_ids"])
    what = "Bytes per second, in order," if gap.get("sequential") else "I/Os per second"
    return f"{what} under the database, and most of {blocks} within limits on the same storage. Points {ids}."


def _groups(rows: Sequence[LevelRow]) -> list[list[str]]:
    """Series by figure: all in one where they fit, else by the level they share, at most six together."""
    series = list(dict.fromkeys(row["series"] for row in rows))
    if len(series) <= MAX_SERIES:
        return [series] if series else []
    by_group: dict[str, list[str]] = {}
    for row in rows:
        names = by_group.setdefault(row["group"], [])
        if row["series"] not in names:
            names.append(row["series"])
    if len(by_group) == len(series):  # they share nothing
        return chunks(series)
    return [part for names in by_group.values() for part in chunks(names)]


def _figure(name: str, title: str, by: str, number: int, rows: Sequence[LevelRow], chart: Any) -> FigureElement:
    banded = any(row["band_low"] is not None for row in rows)
    told = joined(f"{row['told']} {figure_text(row['value'], row['unit'])}" for row in rows)
    spanned = any(row["low"] is not None for row in rows)
    caption = f"{title[0].upper()}{title[1:]} by {by}" + ("; whiskers are 95 % intervals" if spanned else "")
    caption += ", wide pale ones how far the model may be off (90 %)." if banded else "."
    caption += f" Points {id_range(point_id for row in rows for point_id in row['point_ids'])}."
    return FigureElement(f"study-{name.replace('_', '-')}-{number}", caption, f"{title} by {by}: {told}.", chart)


def _rows(study: Record, factor: Record, name: str) -> list[LevelRow]:
    """Rows of `level_figure`, by the levels of the compared factor in their order."""
    labels = {level["key"]: level["label"] for level in factor["levels"]}
    others = [one for one in study["factors"] if one["name"] != factor["name"]]
    rows = []
    for result in study["results"]:
        held = (result.get("values") or {}).get(name)
        key = (result.get("levels") or {}).get(factor["name"])
        if held is None or key not in labels:
            continue
        series = str(result.get("series") or "")
        group = str(result["levels"].get(others[0]["name"])) if others else ""
        told = f"{series} {labels[key]}".strip()
        rows.append(_row(result, name, {"level": labels[key], "series": series, "group": group, "told": told}))
    order = list(labels.values())
    return sorted(rows, key=lambda row: order.index(row["level"]))


def _row(result: Record, name: str, told: LevelTold) -> LevelRow:
    """A row for `level_figure`: the result's words (`told`), its value, its interval and the band of its model."""
    held = result["values"][name]
    interval = held.get("interval_95") or (None, None)
    scale = _band_scale(result, name)
    band = [edge * scale for edge in result["band_90"]] if scale and result.get("band_90") else (None, None)
    return {
        **told, "value": held["value"], "unit": held["unit"], "low": interval[0], "high": interval[1],
        "band_low": band[0], "band_high": band[1], "point_ids": result.get("point_ids") or [],
    }  # fmt: skip


def _load_figures(facts: RunFacts, study: Record) -> list[Block]:
    """The first figure over the load, with a line per combination of levels, where one workload ran at several."""
    name = common_figures(study["results"])[0].study
    by_axis: dict[str, list[LevelRow]] = {}
    for axis, row in _load_rows(facts, study, name):
        by_axis.setdefault(axis, []).append(row)
    blocks: list[Block] = []
    for axis, rows in by_axis.items():
        title = axis.replace("_", " ")
        rows.sort(key=lambda row: float(row["load"]))
        for number, group in enumerate(_groups(rows), start=1):
            own = [row for row in rows if row["series"] in group]
            chart = level_figure(own, name, title, joined=True)
            if chart is not None:
                blocks.append(_figure(f"{name}-over-{axis}", full_name_of(name), title, number, own, chart))
    return blocks


def _load_rows(facts: RunFacts, study: Record, name: str) -> list[tuple[str, LevelRow]]:
    """Rows of `level_figure` for workloads that ran at several loads, each with the key of the load that differs."""
    sweeps: dict[tuple[object, ...], list[tuple[Record, Record]]] = {}
    for result in study["results"]:
        point = facts.point(next(iter(result.get("point_ids") or []), None))
        if point is not None and name in (result.get("values") or {}):
            asked = json.dumps(point["workload"], sort_keys=True, default=str)
            key = (*(result.get("levels") or {}).items(), asked)
            sweeps.setdefault(key, []).append((result, point["load"]))
    workloads: dict[object, set[object]] = {}
    for result, _ in (pair for sweep in sweeps.values() for pair in sweep):
        workloads.setdefault(result["title"], set()).add(result["workload"])
    rows = []
    for sweep in sweeps.values():
        sizes = [key for key, size in sweep[0][1].items() if isinstance(size, int | float)]
        axis = next((key for key in sizes if len({load.get(key) for _, load in sweep}) > 1), None)
        if axis is None:
            continue
        for result, load in sweep:
            several = len(workloads[result["title"]]) > 1
            series = f"{result['title']}, {result['workload']}" if several else str(result["title"])
            size = load[axis]
            told: LevelTold = {"level": f"{size:g}", "load": size, "series": series, "group": series,
                    "told": f"{series} at {size:g}"}  # fmt: skip
            rows.append((axis, _row(result, name, told)))
    return rows


def _band_scale(result: Record, name: str) -> float | None:
    """What a model's band, in I/Os per second, is multiplied by; latencies have none."""
    values = result["values"]
    if name == "iops":
        return 1.0
    if name == "bytes_per_s" and (values.get("iops") or {}).get("value"):
        return float(values[name]["value"] / values["iops"]["value"])
    return None


def _of_databases(study: Record) -> bool:
    return are_of_databases(study.get("results") or [])


def _table(study: Study) -> Table:
    results = study["results"] or []
    several = len({result.get("workload") for result in results}) > 1
    first, *others = common_figures(results)
    columns = [Column("Level", weight=2.0)]
    columns += [Column("Workload", weight=2.8)] if several else []
    columns += [Column(first.title, number=True), Column("95 % interval", number=True, weight=1.5)]
    sized = any(result.get("capacity") for result in results)
    columns += [Column(capital(title), number=True) for title in CAPACITY_COLUMNS] if sized else []
    columns += [column for figure in others for column in _columns(figure)]
    limited = any(_limit_cell(result).text != DASH for result in results)
    columns += [Column("Against baseline", weight=1.7)]
    columns += [Column("Limited by", weight=_width(study))] if limited else []
    against = {(one["part"], one["place"]): one for one in study.get("comparisons") or []}
    rows = []
    for result in results:
        load = f", {result['load']}" if result.get("load") else ""
        cells = [Cell(str(result.get("title") or DASH))]
        cells += [Cell(shorten(str(result.get("workload") or DASH) + load, 60))] if several else []
        cells += _main_cells(result, first)
        cells += [Cell(text) for text in capacity_texts(result)] if sized else []
        cells += [cell for figure in others for cell in _cells(result, figure)]
        rows.append([*cells, _against(study, result, against), *([_limit_cell(result)] if limited else [])])
    return Table("levels", "Every level, at its answer or at the load given.", columns, rows, dense=True)


def _width(study: Record) -> float:
    """Width of the column of limits: that of the longest, which does not break."""
    texts = [limited_text(result, by="") for result in study["results"] if result.get("limited_by")]
    return max([2.0, *(len(word) / 8.5 for text in texts for word in text.split(" "))])


def _columns(measure: Measure) -> list[Column]:
    """Columns of a figure: bytes per second in both units."""
    if measure.unit == "bytes_per_s":
        return [Column("MiB/s", number=True, weight=0.8), Column("MB/s", number=True, weight=0.8)]
    # A column is as wide as the longest word of its heading.
    longest = max(map(len, measure.title.split()), default=0)
    return [Column(capital(measure.title), number=True, weight=max(1.1 if measure.unit == "ns" else 1.0, longest / 7))]


def _cells(result: Record, measure: Measure) -> list[Cell]:
    value = ((result.get("values") or {}).get(measure.study) or {}).get("value")
    if measure.unit == "bytes_per_s":
        return [Cell(text) for text in throughput_texts(value)]
    return [Cell(figure_text(value, measure.unit))]


def _main_cells(result: Record, measure: Measure) -> list[Cell]:
    """The figure that matters, and its interval."""
    found = (result.get("values") or {}).get(measure.study) or {}
    interval = found.get("interval_95")
    ids = result.get("point_ids") or [None]
    return [
        Cell(figure_text(found.get("value"), measure.unit), point_id=ids[0]),
        Cell(f"{format_iops(interval[0])} to {format_iops(interval[1])}" if interval else DASH),
    ]


def _limit_cell(result: Record) -> Cell:
    if result.get("reason"):
        return Cell(str(result["reason"]), "warn")
    return Cell(limited_text(result, by="") if result.get("limited_by") else DASH, "quiet")


def _place(one: Record) -> tuple[object, object]:
    return one.get("part"), one.get("place")


def _against(study: Study, result: Result, comparisons: Mapping[tuple[str, int], Comparison]) -> Cell:
    one = comparisons.get((result["part"], result["place"]))
    tone: Tone = "plain" if one and one.get("ratio") is not None and one.get("differs") else "quiet"
    return Cell(against_text(study, result, one), tone)


# Published figures


def _published(study: Record) -> list[Block]:
    published: Sequence[Record] = study["published"]
    told_rows: Sequence[PublishedFigure] = study["published"]
    ids = {result.get("part"): next(iter(result.get("point_ids") or []), None) for result in study.get("results") or []}
    rows: list[PublishedRow] = []
    for row in published:
        if row.get("error_share") is None:
            continue
        (low, high), (band_low, band_high) = (
            [edge / row["published"] - 1 for edge in row[key]] if row.get(key) else (None, None)
            for key in ("interval_95", "band_90")
        )
        rows.append(
            {"title": row["title"], "fit": row["fit"], "point_ids": [ids.get(row.get("id"))],
             "error": row["error_share"], "low": low, "high": high, "band_low": band_low, "band_high": band_high}
        )  # fmt: skip
    blocks: list[Block] = []
    chart = published_figure(rows)
    if chart is not None:
        told = joined(f"{row['title']} {row['error'] * 100:+.1f} %" for row in rows)
        bands = any(row["band_low"] is not None for row in rows)
        caption = (
            "The model against published figures; the grey band is 10 % to either side, whiskers are 95 % intervals"
            + (", wide pale ones how far the model may be off (90 %)." if bands else ".")
        )
        blocks.append(FigureElement("published", caption, f"Errors of the model: {told}.", chart))
    columns = [
        Column("Study"), Column("Figure", weight=2.6), Column("Published", number=True, weight=1.5),
        Column("Model", number=True, weight=1.5), Column("Error", number=True), Column("Model is"),
        Column("Why, and what to know", weight=4),
    ]  # fmt: skip
    model = [column.title for column in columns].index("Model")
    cells = [
        [Cell(text, point_id=ids.get(row.get("id")) if at == model else None) for at, text in enumerate(texts)]
        for row, texts in ((row, (row["source"], *published_texts(row))) for row in told_rows)
    ]
    return [*blocks, Table("published-table", "Published figures and the model's.", columns, cells)]
