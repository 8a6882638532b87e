"""Single parts of an examination: scans, log writes, the database mix, the cache; each only when it was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

from assay.base.units import count_of, format_bytes, format_latency, format_throughput
from assay.document.charts import NINES, figure_or_words
from assay.document.elements import Block, Cell, Column, FigureElement, Heading, Paragraph, Section, Table
from assay.document.palette import chunks
from assay.document.text import (
    DASH,
    id_range,
    iops_text,
    joined,
    latency_of,
    latency_text,
    percent,
    sentence,
    shorten,
    throughput_texts,
)
from assay.record.shapes.access import Bursts, BurstyPoint
from assay.record.shapes.point import Direction, Load
from assay.record.source import RunFacts, records
from assay.workloads.io.report.labels import block_bytes_of, block_label, mix_label, order_label
from assay.workloads.io.report.part_charts import (
    ActivityRow,
    ForegroundRow,
    LogWriteRow,
    ScanRow,
    cache_span,
    foreground_reads,
    log_write_lines,
    role_latencies,
    throughput_lines,
)
from assay.workloads.io.report.points import io_points, points_of_part
from assay.workloads.io.shapes import CacheSpan, asked_of

SIDES: tuple[Literal["read"], Literal["write"]] = ("read", "write")


def parts_section(facts: RunFacts) -> Section | None:
    """Build the section on parts; None when none of them was measured."""
    blocks = [*_scans(facts), *_log(facts), *_database(facts), *_cache(facts)]
    return Section("parts", "Scans, log, database mix and cache", blocks) if blocks else None


def best_of_repeats(points: Sequence[BurstyPoint], key: Callable[[BurstyPoint], tuple[str, str]]) -> list[BurstyPoint]:
    """One point a key, the one with the most throughput, by block size."""
    best: dict[tuple[str, str], BurstyPoint] = {}
    for point in points:
        kept = best.get(key(point))
        if kept is None or _moved(point) > _moved(kept):
            best[key(point)] = point
    return sorted(best.values(), key=lambda point: block_bytes_of(asked_of(point)))


def _moved(point: BurstyPoint) -> float:
    return _rate(point.get("total")) or 0.0


def _rate(direction: Direction | None) -> float | None:
    return direction.get("bytes_per_s") if direction else None


def _scans(facts: RunFacts) -> list[Block]:
    def access(point: BurstyPoint) -> str:
        asked = asked_of(point)
        share = asked.get("read_share")
        kind = "read" if share == 1 else "write" if share == 0 else mix_label(asked)
        return f"{order_label(asked)} {kind}".strip()

    measured = [point for point in points_of_part(facts, "dss") if _moved(point)]
    points = best_of_repeats(measured, lambda point: (access(point), block_label(asked_of(point))))
    rows: list[ScanRow] = [
            {"series": access(point), "block": block_label(asked_of(point)), "bytes_per_s": _moved(point),
             "point_id": point.get("id")} for point in points]  # fmt: skip
    blocks: list[Block] = []
    for number, group in enumerate(chunks(list(dict.fromkeys(row["series"] for row in rows))), start=1):
        own = [row for row in rows if row["series"] in group]
        chart = throughput_lines(own)
        told = joined(f"{row['series']} {row['block']} {format_throughput(row['bytes_per_s'])}" for row in own)
        caption = f"Throughput of scans by block size. Points {id_range(row['point_id'] for row in own)}."
        blocks.append(figure_or_words(f"scans-{number}", caption, f"Throughput by block size: {told}.", chart))
    if not blocks:
        return []
    columns = [
        Column("Access", weight=2.0), Column("Block", number=True), Column("MiB/s", number=True),
        Column("MB/s", number=True), Column("IOPS", number=True), Column("Mean", number=True),
        Column("p99", number=True), Column("Point"),
    ]  # fmt: skip
    cells = [
        [
            Cell(access(point)),
            Cell(block_label(asked_of(point))),
            *(Cell(text) for text in throughput_texts(_moved(point))),
            Cell(iops_text(point["total"])),
            Cell(latency_text(point["total"], "mean")),
            Cell(latency_text(point["total"], "p99")),
            Cell(str(point.get("id") or DASH), "quiet", point.get("id")),
        ]
        for point in points
    ]
    return [Heading("Sequential throughput"), *blocks, Table("scan-table", "Scans.", columns, cells, dense=True)]


def appenders(point: BurstyPoint) -> int:
    """How many append to the log at once: one outstanding write each."""
    load: Load = point.get("load") or {}
    return int(load.get("outstanding") or load.get("workers") or asked_of(point).get("streams") or 1)


def _log(facts: RunFacts) -> list[Block]:
    def line(point: BurstyPoint) -> str:
        count = appenders(point)
        return f"{asked_of(point).get('sync') or 'none'}, {count_of(count, 'appender')}"

    measured = [point for point in points_of_part(facts, "log") if latency_of(point.get("write"), "mean")]
    points = best_of_repeats(measured, lambda point: (line(point), block_label(asked_of(point))))
    rows: list[LogWriteRow] = [
            {"series": line(point), "block": block_label(asked_of(point)), "point_id": point.get("id"),
             "mean_ns": latency_of(point["write"], "mean") or 0.0, "p99_ns": latency_of(point["write"], "p99")}
            for point in points]  # fmt: skip
    blocks: list[Block] = []
    for number, group in enumerate(chunks(sorted({row["series"] for row in rows})), start=1):
        own = [row for row in rows if row["series"] in group]
        chart = log_write_lines(own)
        told = joined(f"{row['series']} {row['block']} {format_latency(row['mean_ns'])}" for row in own)
        caption = "Mean latency of log writes by size, appenders and way of syncing; thin lines reach to p99."
        caption += f" Points {id_range(row['point_id'] for row in own)}."
        blocks.append(figure_or_words(f"log-{number}", caption, f"Mean log write latency: {told}.", chart))
    if not blocks:
        return []
    columns = [
        Column("Sync and appenders", weight=2.0), Column("Size", number=True), Column("Writes/s", number=True),
        Column("MiB/s", number=True), Column("MB/s", number=True), Column("Mean", number=True),
        Column("p99", number=True), Column("p99.9", number=True), Column("Max", number=True), Column("Point"),
    ]  # fmt: skip
    cells = [
        [
            Cell(line(point)),
            Cell(block_label(asked_of(point))),
            Cell(iops_text(point["write"])),
            *(Cell(text) for text in throughput_texts(_rate(point["write"]))),
            *(Cell(latency_text(point["write"], name)) for name in ("mean", "p99", "p99_9", "max")),
            Cell(str(point.get("id") or DASH), "quiet", point.get("id")),
        ]
        for point in points
    ]
    return [Heading("Log writes"), *blocks, Table("log-table", "Log writes.", columns, cells, dense=True)]


def _database(facts: RunFacts) -> list[Block]:
    points = [point for point in io_points(facts) if len(point.get("activities") or ()) > 1]
    blocks: list[Block] = []
    for point in points[:3]:  # repeats add pages, not insight; every point stands in the table of points
        blocks += _activities(point)
        blocks += _bursts(point)
    if not blocks:
        return []
    more = f" The first three of {len(points)} points are drawn." if len(points) > 3 else ""
    intro = f"All roles of a database at once: reads, checkpoint bursts, log and tempdb on the same target.{more}"
    return [Heading("Database mix"), Paragraph(intro), *blocks]


def _activities(point: BurstyPoint) -> list[Block]:
    rows: list[ActivityRow] = []
    cells: list[list[Cell]] = []
    for activity in point["activities"] or []:
        for direction in SIDES:
            measured = activity.get(direction)
            mean, tail = latency_of(measured, "mean"), latency_of(measured, "p99")
            if measured is None or mean is None or tail is None:
                continue
            name = f"{shorten(str(activity.get('name') or DASH), 30)}: {direction}"
            rows.append({"name": name, "direction": direction, "mean_ns": mean, "p99_ns": tail})
            cells.append(
                [
                    Cell(name),
                    Cell(str(activity.get("role") or DASH)),
                    Cell(iops_text(measured)),
                    *(Cell(text) for text in throughput_texts(measured.get("bytes_per_s"))),
                    *(Cell(latency_text(measured, key)) for key in ("mean", "p50", "p99", "p99_9", "max")),
                ]
            )
    chart = role_latencies(rows)
    if chart is None:
        return []
    told = joined(
        f"{row['name']} mean {format_latency(row['mean_ns'])}, p99 {format_latency(row['p99_ns'])}" for row in rows
    )
    columns = [Column("Activity", weight=2.2), Column("Role")]
    columns += [Column(name, number=True) for name in ("IOPS", "MiB/s", "MB/s", "Mean", "p50", "p99", "p99.9", "Max")]
    point_id = str(point.get("id") or "")
    caption = f"Latency of each activity while all run, mean and p99. Point {point_id}."
    return [
        FigureElement(
            f"activities-{_slug(point_id)}",
            caption,
            f"Latency of activities that ran at once: {told}.",
            chart,
            point_id=point_id,
        ),
        Table(f"activity-table-{_slug(point_id)}", f"Activities of point {point_id}.", columns, cells, dense=True),
    ]


def _bursts(point: BurstyPoint) -> list[Block]:
    bursts: Bursts = point.get("bursts") or {}
    sides = (("between bursts", bursts.get("read_between")), ("during bursts", bursts.get("read_during")))
    rows: list[ForegroundRow] = [
        {"series": label, "percentile": name, "latency_ns": latency}
        for label, side in sides
        for name in ("mean", *NINES, "max")
        if (latency := latency_of(side, name))
    ]
    chart = foreground_reads(rows)
    if chart is None:
        return []
    means = [f"{row['series']} {format_latency(row['latency_ns'])}" for row in rows if row["percentile"] == "mean"]
    point_id = str(point.get("id") or "")
    share, count = bursts.get("share_of_time"), bursts.get("count")
    times = f"{count_of(count, 'burst')}, {percent(share)} of the time" if count is not None else "bursts"
    caption = (
        f"Foreground reads during and between checkpoint bursts ({times}). Mean {joined(means)}. Point {point_id}."
    )
    alternative = f"Foreground read latency: mean {joined(means)}."
    return [FigureElement(f"bursts-{_slug(point_id)}", caption, alternative, chart, point_id=point_id)]


def _cache(facts: RunFacts) -> list[Block]:
    span: CacheSpan = cast("CacheSpan | None", facts.told("cache_span")) or {}
    steps = [step for step in records(span.get("steps")) if step.get("span_bytes") and step.get("latency_mean_ns")]
    end = span.get("ends_at_bytes")
    if not steps:
        return []
    found = f"A cache ends near {format_bytes(end)}" if end else "No end of a cache was seen over these spans"
    told = joined(
        f"{format_bytes(step['span_bytes'] or 0)} {format_latency(step.get('latency_mean_ns'))}" for step in steps
    )
    caption = f"Latency of random reads against the span they cover. {found}."
    note = [Paragraph(sentence(str(span["note"])))] if span.get("note") else []
    return [
        Heading("Span of the cache"),
        figure_or_words("cache-span", caption, f"Mean read latency by span: {told}. {found}.", cache_span(steps, end)),
        *note,
    ]


def _slug(text: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in text) or "point"
