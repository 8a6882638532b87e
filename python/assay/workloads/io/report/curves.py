"""Latency against IOPS over each answer's curve, and latency by percentile at its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from assay.base.units import format_iops, format_latency
from assay.document.charts import NINES, figure_or_words, near_loads
from assay.document.elements import Block, Paragraph, Section
from assay.document.limits import parse_limit
from assay.document.palette import chunks
from assay.document.text import id_range, joined, latency_of, load_label, load_size, shorten
from assay.record.answers import answer_marks
from assay.record.shapes.access import Accesses
from assay.record.shapes.point import Answer, Point
from assay.record.source import RunFacts
from assay.workloads.io.report.charts import (
    CurveRow,
    DirectionLimit,
    PercentileRow,
    latency_curves,
    percentile_curves,
)
from assay.workloads.io.report.labels import block_bytes_of, block_label, mix_label, order_label, workload_label
from assay.workloads.io.report.points import io_answers, io_points
from assay.workloads.io.shapes import asked_of, knee_of

SIDES: tuple[Literal["read"], Literal["write"]] = ("read", "write")


def curves_section(facts: RunFacts) -> Section | None:
    """Build the section on curves; None when no answer has a curve of two points."""
    curves = [_curve(facts, answer) for answer in io_answers(facts)]
    groups = grouped([curve for curve in curves if len(curve.points) > 1])
    blocks: list[Block] = []
    for number, (title, group) in enumerate(groups, start=1):
        blocks += _curve_figures(title, group, number)
    if not blocks:
        return None
    text = (
        "Each curve is one search, from low load to high. Rings mark the most throughput within limits, the knee (the "
        "smallest load with 95 % of it) and the edge (the largest load within limits); dashed lines are the limits. "
        "A curve that turns back lost throughput under more load. Points at loads within 5 % of each other are "
        "one mark, their median, with a bar over their range."
    )
    if any(_is_saturated(point) for point in io_points(facts)):
        text += " Points at which the load generator was the bottleneck are left out."
    return Section("curves", "Latency against I/Os per second", [Paragraph(text), *blocks])


@dataclass(frozen=True, kw_only=True)
class IoCurve:
    """Points of a workload that a figure shows as one curve.

    Attributes
    ----------
    asked
        The workload.
    answer
        The answer whose points they are; None for points that no search asked for.
    """

    asked: Accesses
    points: Sequence[Point]
    answer: Answer | None = None


def _curve(facts: RunFacts, answer: Answer) -> IoCurve:
    """Points of an answer's curve by rising load; those that show the load generator, not the storage, are left out."""
    points: list[Point] = []
    for point_id in answer.get("point_ids") or []:
        point = facts.point(point_id)
        if point is not None and (total := point.get("total")) and total.get("iops") and not _is_saturated(point):
            points.append(point)
    return IoCurve(asked=asked_of(answer), points=sorted(points, key=_load_of), answer=answer)


def _is_saturated(point: Point) -> bool:
    return bool((point.get("generator") or {}).get("saturated"))


def _load_of(point: Point) -> float:
    return load_size(point.get("load") or {})


def grouped(curves: Sequence[IoCurve]) -> list[tuple[str, list[IoCurve]]]:
    """Curves by block size; sizes with one curve each share figures, none holds more than six."""
    by_block: dict[str, list[IoCurve]] = {}
    for curve in sorted(curves, key=lambda curve: (block_bytes_of(curve.asked), -_reads(curve.asked))):
        by_block.setdefault(block_label(curve.asked), []).append(curve)
    alone = [group[0] for group in by_block.values() if len(group) == 1]
    groups = [(name, part) for name, group in by_block.items() if len(group) > 1 for part in chunks(group)]
    return groups + [("", part) for part in chunks(alone)]


def _reads(asked: Accesses) -> float:
    return float(asked.get("read_share") or 0)


def series_labels(curves: Sequence[IoCurve], *, one_block: bool) -> list[str]:
    """Legend of each curve: the mix where that tells them apart, else the workload's name; always distinct."""
    short = [mix_label(curve.asked) for curve in curves]
    orders = {order_label(curve.asked) for curve in curves}
    if not one_block or len(set(short)) < len(short) or len(orders) > 1:
        short = [shorten(workload_label(curve.asked), 34) for curve in curves]
    return [label if short.count(label) == 1 else f"{label} ({number})" for number, label in enumerate(short, start=1)]


def _curve_figures(title: str, group: list[IoCurve], number: int) -> list[Block]:
    limits = sorted({limit for curve in group for point in curve.points for limit in _limits_of(point)})
    statistics = list(dict.fromkeys(statistic for _, statistic, _, _ in limits)) or ["mean"]
    labels = series_labels(group, one_block=bool(title))
    blocks: list[Block] = []
    for statistic in statistics[:2]:  # a figure per judged statistic; more than two would bury the reader
        rows = [row for curve, label in zip(group, labels, strict=True)
                for row in curve_rows(curve.points, label, answer_marks(curve.answer or {}), statistic)]  # fmt: skip
        own: list[DirectionLimit] = [
               {"direction": direction, "latency_ns": value, "limit": f"limit {format_latency(value)}"}
               for direction, value in sorted({(d, v) for d, s, v, _ in limits if s == statistic})]  # fmt: skip
        shown = statistic.replace("_", ".")
        if not rows:
            continue
        chart = latency_curves(rows, own, shown)
        ids = id_range(point.get("id") for curve in group for point in curve.points)
        told = [f"{label} at {load_label(knee)} with {format_iops(knee['iops'] or 0.0)} IOPS"
                for curve, label in zip(group, labels, strict=True)
                if curve.answer and (knee := knee_of(curve.answer))]  # fmt: skip
        knee_text = f"Knees: {joined(told)}." if told else "No knee is known."
        name = f"{title} blocks" if title else joined(labels)
        caption = f"{name}: {shown} latency against I/Os per second. {knee_text} Points {ids}."
        told_ends = _told(group, labels, statistic)
        alternative = f"Curves of {shown} latency against I/Os per second for {name}: {told_ends}. {knee_text}"
        blocks.append(figure_or_words(f"curve-{number}-{statistic.replace('_', '-')}", caption, alternative, chart))
    return blocks


def _told(group: list[IoCurve], labels: list[str], statistic: str) -> str:
    """First and last point of each curve, for readers who cannot see it."""
    texts = []
    for curve, label in zip(group, labels, strict=True):
        ends = []
        for point in (curve.points[0], curve.points[-1]):
            values = [latency_of(side, statistic) for side in (point.get("read"), point.get("write"))]
            latency = max((value for value in values if value is not None), default=None)
            ends.append(f"{format_latency(latency)} at {format_iops(_iops(point))}")
        texts.append(f"{label} from {ends[0]} to {ends[1]}")
    return "; ".join(texts)


def _iops(point: Point) -> float:
    total = point["total"]
    return total["iops"] if total else 0.0


def _limits_of(point: Point) -> list[tuple[str, str, float, str]]:
    parsed = [
        (str(limit.get("limit") or ""), parse_limit(str(limit.get("limit") or "")))
        for limit in point.get("limits") or []
    ]
    return [(found[0], found[1], found[2], text) for text, found in parsed if found]


def curve_rows(points: Sequence[Point], label: str, marks: Mapping[Any, str], statistic: str) -> list[CurveRow]:
    """Rows of `charts.latency_curves` for one curve."""
    rows: list[CurveRow] = []
    for loads in near_loads(map(_load_of, points)):
        together = [point for point in points if _load_of(point) in loads]
        mark = ", ".join(dict.fromkeys(word for point in together if (word := marks.get(point.get("id"), ""))))
        for direction in SIDES:
            own = [(latency, point) for point in together if (latency := latency_of(point.get(direction), statistic))]
            latencies = [latency for latency, _ in own]
            if not own:
                continue
            rows.append(
                {"series": label, "direction": direction, "iops": median(_iops(point) for _, point in own),
                 "latency_ns": median(latencies), "low_ns": min(latencies), "high_ns": max(latencies),
                 "load": median(loads), "mark": mark, "point_id": own[0][1].get("id")}
            )  # fmt: skip
    return rows


def percentiles_section(facts: RunFacts) -> Section | None:
    """Build the section on percentiles: at each answer, or at the last points when nothing was searched."""
    chosen: list[IoCurve] = []
    for answer in io_answers(facts):
        found = facts.point((answer.get("max") or {}).get("point_id"))
        if found is not None:
            chosen.append(IoCurve(asked=asked_of(answer), points=[found], answer=answer))
    plain = not chosen
    if plain:
        named: dict[str, IoCurve] = {}
        for point in io_points(facts):
            asked = asked_of(point)
            if not asked.get("activities"):
                named[workload_label(asked)] = IoCurve(asked=asked, points=[point])
        chosen = list(named.values())
    blocks: list[Block] = []
    for number, (title, group) in enumerate(grouped(chosen), start=1):
        labels = series_labels(group, one_block=bool(title))
        rows = [
            row for curve, label in zip(group, labels, strict=True) for row in percentile_rows(curve.points[0], label)
        ]
        # Of a largest value alone, as another program may have left, there is no course.
        if all(row["percentile"] == "max" for row in rows):
            continue
        chart = percentile_curves(rows)
        ids = id_range(curve.points[0].get("id") for curve in group)
        name = f"{title} blocks" if title else joined(labels)
        told = [
            f"{row['series']} {row['direction']} {format_latency(row['latency_ns'])}"
            for row in rows
            if row["percentile"] == "p99"
        ]
        alternative = f"Latency by percentile for {name}; p99: {joined(told) or 'too few I/Os'}."
        blocks.append(
            figure_or_words(
                f"percentiles-{number}", f"{name}: latency by percentile. Points {ids}.", alternative, chart
            )
        )
    if not blocks:
        return None
    where = "the largest load of each workload" if plain else "the most throughput within limits"
    text = (
        f"At {where}. Each step to the right leaves ten times fewer I/Os slower; percentiles finer than the count of "
        "I/Os allows are left out."
    )
    return Section("percentiles", "Latency by percentile", [Paragraph(text), *blocks])


def percentile_rows(point: Point, label: str) -> list[PercentileRow]:
    """Rows of `charts.percentile_curves` for one point; a percentile needs at least one I/O beyond it."""
    rows: list[PercentileRow] = []
    for direction in SIDES:
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
