"""Latency against IOPS over each answer's curve, and latency by percentile at its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.base.units import format_iops, format_latency
from assay.document.charts import NINES
from assay.document.elements import Block, FigureElement, Paragraph, Section
from assay.document.limits import parse_limit
from assay.document.palette import chunks
from assay.document.text import id_range, joined, latency_of, load_label, load_size, shorten
from assay.record.answers import answer_marks
from assay.record.source import Record, RunFacts
from assay.workloads.io.report.charts import latency_curves, percentile_curves
from assay.workloads.io.report.labels import block_bytes_of, block_label, mix_label, order_label, workload_label
from assay.workloads.io.report.points import io_answers, io_points


def curves_section(facts: RunFacts) -> Section | None:
    """Build the section on curves; None when no answer has a curve of two points."""
    curves = [(answer, _curve(facts, answer)) for answer in io_answers(facts)]
    groups = grouped([(answer, points) for answer, points in curves if len(points) > 1])
    blocks: list[Block] = []
    for number, (title, group) in enumerate(groups, start=1):
        blocks += _curve_figures(title, group, number)
    if not blocks:
        return None
    text = (
        "Each curve is one search, from low load to high. Rings mark the most throughput within limits, the knee (the "
        "smallest load with 95 % of it) and the edge (the largest load within limits); dashed lines are the limits. "
        "A curve that turns back lost throughput under more load."
    )
    return Section("curves", "Latency against I/Os per second", [Paragraph(text), *blocks])


Curve = tuple[Record, list[Record]]


def _curve(facts: RunFacts, answer: Record) -> list[Record]:
    """Points of an answer's curve by rising load; of repeats at one load, the first."""
    by_load: dict[float, Record] = {}
    for point_id in answer.get("point_ids") or []:
        point = facts.point(point_id)
        if point is not None and (total := point.get("total")) and total.get("iops"):
            by_load.setdefault(load_size(point.get("load") or {}), point)
    return [by_load[load] for load in sorted(by_load)]


def grouped(curves: Sequence[Curve]) -> list[tuple[str, list[Curve]]]:
    """Curves by block size; sizes with one curve each share figures, none holds more than six."""
    by_block: dict[str, list[Curve]] = {}
    for curve in sorted(curves, key=lambda curve: (block_bytes_of(curve[0]["workload"]), -_reads(curve[0]))):
        by_block.setdefault(block_label(curve[0]["workload"]), []).append(curve)
    alone = [group[0] for group in by_block.values() if len(group) == 1]
    groups = [(name, part) for name, group in by_block.items() if len(group) > 1 for part in chunks(group)]
    return groups + [("", part) for part in chunks(alone)]


def _reads(answer: Record) -> float:
    return float(answer["workload"].get("read_share") or 0)


def series_labels(curves: Sequence[Curve], *, one_block: bool) -> list[str]:
    """Legend of each curve: the mix where that tells them apart, else the workload's name; always distinct."""
    short = [mix_label(answer["workload"]) for answer, _ in curves]
    orders = {order_label(answer["workload"]) for answer, _ in curves}
    if not one_block or len(set(short)) < len(short) or len(orders) > 1:
        short = [shorten(workload_label(answer["workload"]), 34) for answer, _ in curves]
    return [label if short.count(label) == 1 else f"{label} ({number})" for number, label in enumerate(short, start=1)]


def _curve_figures(title: str, group: list[Curve], number: int) -> list[Block]:
    limits = sorted({limit for _, points in group for point in points for limit in _limits_of(point)})
    statistics = list(dict.fromkeys(statistic for _, statistic, _, _ in limits)) or ["mean"]
    labels = series_labels(group, one_block=bool(title))
    blocks: list[Block] = []
    for statistic in statistics[:2]:  # a figure per judged statistic; more than two would bury the reader
        rows = [row for (answer, points), label in zip(group, labels, strict=True)
                for row in curve_rows(points, label, answer_marks(answer), statistic)]  # fmt: skip
        own = [{"direction": direction, "latency_ns": value, "limit": f"limit {format_latency(value)}"}
               for direction, value in sorted({(d, v) for d, s, v, _ in limits if s == statistic})]  # fmt: skip
        shown = statistic.replace("_", ".")
        chart = latency_curves(rows, own, shown)
        if chart is None:
            continue
        ids = id_range(point.get("id") for _, points in group for point in points)
        told = [f"{label} at {load_label(knee)} with {format_iops(knee['iops'])} IOPS"
                for (answer, _), label in zip(group, labels, strict=True) if (knee := answer.get("knee"))]  # fmt: skip
        knee_text = f"Knees: {joined(told)}." if told else "No knee is known."
        name = f"{title} blocks" if title else joined(labels)
        caption = f"{name}: {shown} latency against I/Os per second. {knee_text} Points {ids}."
        told_ends = _told(group, labels, statistic)
        alternative = f"Curves of {shown} latency against I/Os per second for {name}: {told_ends}. {knee_text}"
        blocks.append(FigureElement(f"curve-{number}-{statistic.replace('_', '-')}", caption, alternative, chart))
    return blocks


def _told(group: list[Curve], labels: list[str], statistic: str) -> str:
    """First and last point of each curve, for readers who cannot see it."""
    texts = []
    for (_, points), label in zip(group, labels, strict=True):
        ends = []
        for point in (points[0], points[-1]):
            values = [latency_of(point.get(direction), statistic) for direction in ("read", "write")]
            latency = max((value for value in values if value is not None), default=None)
            ends.append(f"{format_latency(latency)} at {format_iops(point['total']['iops'])}")
        texts.append(f"{label} from {ends[0]} to {ends[1]}")
    return "; ".join(texts)


def _limits_of(point: Record) -> list[tuple[str, str, float, str]]:
    parsed = [
        (str(limit.get("limit") or ""), parse_limit(str(limit.get("limit") or "")))
        for limit in point.get("limits") or []
    ]
    return [(found[0], found[1], found[2], text) for text, found in parsed if found]


def curve_rows(points: Sequence[Record], label: str, marks: Mapping[Any, str], statistic: str) -> list[dict[str, Any]]:
    """Rows of `charts.latency_curves` for one curve."""
    rows = []
    for direction in ("read", "write"):
        for point in points:
            latency = latency_of(point.get(direction), statistic)
            if not latency:
                continue
            iops = float(point["total"]["iops"])
            rows.append(
                {"series": label, "direction": direction, "iops": iops, "latency_ns": latency,
                 "load": load_size(point.get("load") or {}), "mark": marks.get(point.get("id"), ""),
                 "point_id": point.get("id")}
            )  # fmt: skip
    return rows


def percentiles_section(facts: RunFacts) -> Section | None:
    """Build the section on percentiles: at each answer, or at the last points when nothing was searched."""
    chosen: list[Curve] = []
    for answer in io_answers(facts):
        found = facts.point((answer.get("max") or {}).get("point_id"))
        if found is not None:
            chosen.append((answer, [found]))
    plain = not chosen
    if plain:
        named: dict[str, Curve] = {}
        for point in io_points(facts):
            if not point["workload"].get("activities"):
                named[workload_label(point["workload"])] = (point, [point])
        chosen = list(named.values())
    blocks: list[Block] = []
    for number, (title, group) in enumerate(grouped(chosen), start=1):
        labels = series_labels(group, one_block=bool(title))
        rows = [
            row for (_, points), label in zip(group, labels, strict=True) for row in percentile_rows(points[0], label)
        ]
        chart = percentile_curves(rows)
        if chart is None:
            continue
        ids = id_range(points[0].get("id") for _, points in group)
        name = f"{title} blocks" if title else joined(labels)
        told = [
            f"{row['series']} {row['direction']} {format_latency(row['latency_ns'])}"
            for row in rows
            if row["percentile"] == "p99"
        ]
        alternative = f"Latency by percentile for {name}; p99: {joined(told) or 'too few I/Os'}."
        blocks.append(
            FigureElement(f"percentiles-{number}", f"{name}: latency by percentile. Points {ids}.", alternative, chart)
        )
    if not blocks:
        return None
    where = "the largest load of each workload" if plain else "the most throughput within limits"
    text = (
        f"At {where}. Each step to the right leaves ten times fewer I/Os slower; percentiles finer than the count of "
        "I/Os allows are left out."
    )
    return Section("percentiles", "Latency by percentile", [Paragraph(text), *blocks])


def percentile_rows(point: Record, label: str) -> list[dict[str, Any]]:
    """Rows of `charts.percentile_curves` for one point; a percentile needs at least one I/O beyond it."""
    rows = []
    for direction in ("read", "write"):
        measured = point.get(direction)
        if not measured:
            continue
        count = measured.get("count") or 0
        for name in (*NINES, "max"):
            latency = latency_of(measured, name)
            known = name == "max" or count * (1 - NINES[name] / 100) >= 1
            if latency and known:
                rows.append({"series": label, "direction": direction, "percentile": name, "latency_ns": latency,
                             "point_id": point.get("id")})  # fmt: skip
    return rows
