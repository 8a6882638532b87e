"""What a reader sees of a replay: the traces, how late I/Os began, and latencies beside those of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from assay.base.units import format_duration, format_iops, format_latency
from assay.document.elements import Block, Cell, Column, Paragraph, Section, Table
from assay.document.text import DASH, load_label, percent
from assay.record.common_figures import latency_of, rate_of
from assay.workloads.replay.shapes import ReplayDone, TraceReplayed, done_of

if TYPE_CHECKING:
    from assay.record.shapes.point import Point
    from assay.record.source import RunFacts

PACES = {
    "timed": "I/Os begin at their times, whatever the target does; latency counts from there",
    "closed": "an I/O begins once no more are outstanding than there were; its time is not kept",
    "think": "an I/O begins its pause after the end of the one before, of the same process and device",
}
_SIDES: tuple[Literal["read"], Literal["write"]] = ("read", "write")
_STATISTICS: tuple[Literal["mean"], Literal["p50"], Literal["p99"]] = ("mean", "p50", "p99")
_LATE: tuple[Literal["p50_ns"], Literal["p99_ns"], Literal["max_ns"]] = ("p50_ns", "p99_ns", "max_ns")
_COUNTS: tuple[Literal["late_count"], Literal["held_count"]] = ("late_count", "held_count")


def lateness_words(point: Point) -> str:
    """How late I/Os began, in words; empty where there is nothing to say."""
    late = done_of(point).get("lateness")
    if point.get("clock") == "virtual" or not late or not late.get("count"):
        return ""
    words = (
        f"starts late by {format_latency(late['p50_ns'])} at p50, {format_latency(late['p99_ns'])} at p99,"
        f" {format_latency(late['max_ns'])} at most"
    )
    held = late.get("held_count") or 0
    return f"{words}, {percent(held / late['count'])} waited for the target" if held else words


def replay_section(facts: RunFacts) -> Section | None:
    """The section on what was replayed; None where nothing was."""
    points = [point for point in facts.points_of("replay") if done_of(point)]
    if not points:
        return None
    points.sort(key=lambda point: done_of(point).get("speed") or 0.0)
    first = done_of(points[0])
    blocks: list[Block] = [Paragraph(_headline(points), strong=True), Paragraph(f"{PACES[str(first.get('pace'))]}.")]
    if note := first.get("fit_note"):
        blocks.append(Paragraph(f"{note[:1].upper()}{note[1:]}.", tone="warn"))
    blocks += [_trace_table(first.get("traces") or []), _latency_table(points)]
    if any(lateness_words(point) for point in points):
        blocks.append(_lateness_table(points))
    return Section("replayed", "What was replayed", blocks, place="answer")


def _headline(points: Sequence[Point]) -> str:
    first = done_of(points[0])
    ios = sum(one.get("ios") or 0 for one in first.get("traces") or [])
    recorded = first.get("recorded_iops") or 0.0
    text = f"{ios:,} I/Os, recorded at {format_iops(recorded)} IOPS on average"
    if len(points) == 1 and points[0]["total"]:
        how = "" if first.get("pace") == "closed" else f" at speed {first.get('speed') or 1:g}"
        text += f"; replayed{how} at {format_iops(points[0]['total']['iops'])} IOPS"
        if first.get("is_replay") is False:
            text += ", too late to be called a replay"
    return f"{text}."


def _trace_table(traces: Sequence[TraceReplayed]) -> Table:
    columns = [Column("Trace", weight=2), Column("From"), Column("Begins", number=True), Column("Lasts", number=True),
               Column("I/Os", number=True), Column("Reads", number=True), Column("Left out", number=True)]  # fmt: skip
    rows = []
    for one in traces:
        moving = sum((one.get(side) or {}).get("count") or 0 for side in _SIDES)
        reads = (one.get("read") or {}).get("count") or 0
        rows.append([
            Cell(str(one.get("name") or DASH)), Cell(str(one.get("source") or DASH)),
            Cell(format_duration(one.get("at_s") or 0.0)), Cell(format_duration(one.get("seconds") or 0.0)),
            Cell(f"{one.get('ios') or 0:,}"), Cell(percent(reads / moving) if moving else DASH),
            Cell(f"{one['discards']:,} discards" if one.get("discards") else DASH),
        ])  # fmt: skip
    return Table("replay-traces", "Traces, and when each began after the first", columns, rows)


def _latency_table(points: Sequence[Point]) -> Table:
    """Latencies as recorded, then of each point."""
    statistics = [(side, statistic) for side in _SIDES for statistic in _STATISTICS]
    columns = [Column("", weight=2), Column("IOPS", number=True),
               *(Column(f"{side} {statistic}", number=True) for side, statistic in statistics)]  # fmt: skip
    first = done_of(points[0])
    rows = []
    for one in first.get("traces") or []:
        recorded = sum((one.get(side) or {}).get("iops") or 0.0 for side in _SIDES)
        latencies = [((one.get(side) or {}).get("latency_ns") or {}).get(statistic) for side, statistic in statistics]
        name = "recorded" if len(first.get("traces") or []) == 1 else f"recorded, {one.get('name')}"
        rows.append([Cell(name), Cell(format_iops(recorded)), *(_latency(value) for value in latencies)])
    for point in points:
        iops = rate_of(point, "total", "iops")
        rows.append([
            Cell(load_label(point["load"]), anchor=None, point_id=point.get("id")),
            Cell(format_iops(iops) if iops is not None else DASH),
            *(_latency(latency_of(point, side, statistic)) for side, statistic in statistics),
        ])  # fmt: skip
    return Table("replay-latencies", "Latencies as the trace recorded them, and as they were in the replay",
                 columns, rows)  # fmt: skip


def _latency(value: float | None) -> Cell:
    return Cell(DASH if value is None else format_latency(value))


def _lateness_table(points: Sequence[Point]) -> Table:
    columns = [Column("", weight=2), *(Column(title, number=True) for title in
               ("p50", "p99", "most", "later than 100 us", "waited for the target")), Column("A replay")]  # fmt: skip
    rows = []
    for point in points:
        done: ReplayDone = done_of(point)
        late = done.get("lateness")
        if not late or not late.get("count"):
            continue
        count = late["count"]
        is_replay = done.get("is_replay")
        rows.append([
            Cell(load_label(point["load"]), point_id=point.get("id")),
            *(_latency(late.get(key)) for key in _LATE),
            *(Cell(percent((late.get(key) or 0) / count)) for key in _COUNTS),
            Cell("yes" if is_replay else "no", tone="good" if is_replay else "bad"),
        ])  # fmt: skip
    return Table("replay-lateness", "How late I/Os began although the target would have taken them", columns, rows)
