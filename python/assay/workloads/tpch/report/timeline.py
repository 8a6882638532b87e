"""Queries and the storage beneath them on one time axis, a figure a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.base.tables import Record
from assay.base.units import count_of, format_duration
from assay.document.elements import Block, FigureElement, Paragraph, Section
from assay.document.series import (
    Course,
    PanelRow,
    SeriesClock,
    by_role,
    gauge,
    hosts_text,
    of_point,
    panel_rows,
    point_clock,
    quotient,
    rate,
    total,
    weighted,
)
from assay.document.text import joined, moment
from assay.record.source import RunFacts
from assay.workloads.tpch.report.charts import LaneBar, query_timeline
from assay.workloads.tpch.report.points import points_of, variants

if TYPE_CHECKING:
    from assay.record.rows import Rows

FIGURES_MAX = 8
"""Tests that are drawn; those of a study with more levels are in its tables."""


def tpch_timeline_section(facts: RunFacts) -> Section | None:
    """Build the section on queries over time; None without series or points."""
    points = points_of(facts)
    if facts.series is None or not points:
        return None
    names = variants(facts, points)
    text = (
        "Bars: the queries that ran, by their numbers, a lane a stream; below them what the storage under the"
        " databases and this host did at the same time. Latency is a mean over I/Os. Lines break where nothing was"
        " recorded."
    )
    blocks: list[Block] = [Paragraph(" ".join(filter(None, (text, hosts_text(facts.series)))))]
    for point in points[:FIGURES_MAX]:
        figure = _figure(facts, point, names[str(point.get("id"))])
        if figure is not None:
            blocks.append(figure)
    return Section("tpch-time", "Queries and storage over time", blocks, place="answer") if len(blocks) > 1 else None


def _figure(facts: RunFacts, point: Record, name: str) -> FigureElement | None:
    clock = point_clock(point)
    if clock is None:
        return None
    bars = bars_of(point, clock)
    if not bars:
        return None
    rows = [] if facts.series is None else _drawable(panels_of(of_point(facts.series, clock), clock))
    chart = query_timeline(bars, rows, end_s=clock.end_s)
    lanes = len({bar["lane"] for bar in bars})
    caption = f"{name[:1].upper()}{name[1:]}: point {point.get('id')}, from {moment(clock.start_ns)}."
    if not rows:
        caption += " What storage and host did is recorded once a second: too seldom for a test as short as this."
    told = (
        f"{count_of(len(bars), 'bar')} in {count_of(lanes, 'lane')} over {format_duration(clock.end_s)}; panels below:"
        f" {joined(dict.fromkeys(row['panel'] for row in rows))}."
    )
    return FigureElement(f"tpch-timeline-{point.get('id')}", caption, told, chart, point_id=str(point.get("id")))


def _drawable(rows: list[PanelRow]) -> list[PanelRow]:
    """Rows of panels that have a line: two values of a series, not one alone."""
    times: dict[tuple[str, str], set[float]] = {}
    for row in rows:
        if row["value"] is not None:
            times.setdefault((row["panel"], row["series"]), set()).add(row["t_s"])
    drawn = {panel for (panel, _), seen in times.items() if len(seen) > 1}
    return [row for row in rows if row["panel"] in drawn]


def bars_of(point: Record, clock: SeriesClock) -> list[LaneBar]:
    """Bars of `charts.query_timeline`: queries and refresh functions, streams in their order, the refresh last."""
    dss = point["dss"]
    bars: list[LaneBar] = []
    for query in sorted(dss.get("queries") or [], key=lambda one: (one["stream"], one["started_utc_ns"])):
        lane = "queries" if dss.get("test") == "power" else f"stream {query['stream']}"
        bars.append(_bar(lane, str(query["query"]), query, clock, is_done=query["ended_by"] == "done"))
    for one in dss.get("refresh") or []:
        bars.append(_bar("refresh", str(one["function"]).upper(), one, clock, is_done=True))
    return bars


def _bar(lane: str, label: str, record: Record, clock: SeriesClock, *, is_done: bool) -> LaneBar:
    start_s = (record["started_utc_ns"] - clock.start_ns) / 1e9
    return {
        "lane": lane,
        "label": label,
        "start_s": max(start_s, 0.0),
        "end_s": min(start_s + record["seconds"], clock.end_s),
        "is_done": is_done,
    }


def panels_of(frame: Rows, clock: SeriesClock) -> list[PanelRow]:
    """Rows of the panels that have any."""
    block = frame.of(source="block")
    cpu, memory = (frame.of(source="host", entity=entity) for entity in ("cpu", "memory"))
    moved = by_role(block, lambda own, side: rate(own, f"{side}_bytes", 2.0**20))
    rows = panel_rows("device (MiB/s)", clock, moved)
    sizes = by_role(block, lambda own, side: _size(own, side))
    rows += panel_rows("I/O size (KiB)", clock, sizes)
    rows += panel_rows("latency (ms, log)", clock, by_role(block, lambda own, side: weighted(own, side, 1e6)), log=True)
    rows += panel_rows("queue (I/Os)", clock, {"devices": gauge(block, "queue_mean_count")})
    spilled = {"temporary files": gauge(frame, "temp_bytes", 2.0**20)}
    rows += panel_rows("temp (MiB)", clock, {name: own for name, own in spilled.items() if sum(own.values()) > 0})
    shares = {name: gauge(cpu, f"{name}_share", 0.01) for name in ("user", "system", "iowait", "steal")}
    rows += panel_rows("host CPU (%)", clock, shares)
    return rows + panel_rows("free memory (GiB)", clock, {"available": gauge(memory, "available_bytes", 2.0**30)})


def _size(own: Rows, side: str) -> Course:
    """Mean size of the I/Os of a direction, KiB."""
    return quotient(total(own, f"{side}_bytes"), total(own, f"{side}_ios_count"), 1024)
