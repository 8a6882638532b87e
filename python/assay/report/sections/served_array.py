"""Faults of a served array under a load: the dip, the rebuild, the recovery, and how late this host answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.base.units import count_of, format_duration, format_latency
from assay.document.elements import Block, Cell, Column, FigureElement, Heading, Paragraph, Section, Table
from assay.document.series import (
    Course,
    PanelRow,
    SeriesClock,
    by_role,
    course,
    gauge,
    largest,
    mean,
    of_point,
    panel_rows,
    point_clock,
    rate,
    weighted,
)
from assay.document.text import DASH, percent, shorten
from assay.record.served_names import named_arrays
from assay.record.shapes.point import Lateness, Point, ServedPoint, ServedVolume
from assay.record.source import RunFacts
from assay.report.figures_served import FaultMark, FaultSpan, fault_timeline, shades_text

if TYPE_CHECKING:
    from assay.record.rows import Rows

FIGURES_MAX = 8
"""Points that are drawn; a search has more."""
MARKS_MAX = 40
LATER_S = 5.0
"""A load that fell so long after the first event is said to have fallen later."""
POINTS_MAX = 24
"""Points whose volumes are listed."""


def served_array_section(facts: RunFacts) -> Section | None:
    """Build the section; None where no array was served."""
    points = [point for point in facts.points if point.get("served")]
    if not points:
        return None
    blocks: list[Block] = []
    hit = [point for point in points if any(served.get("events") for served in point.get("served") or [])]
    for point in hit[:FIGURES_MAX]:
        blocks += _point_blocks(facts, point, is_named=len(points) > 1)
    if len(hit) > FIGURES_MAX:
        blocks.append(Paragraph(f"{len(hit) - FIGURES_MAX} more points with events are in the run folder."))
    blocks += [_volume_table(points), _lateness_table(points)]
    return Section("served-array", "The served array", blocks, place="answer")


def _point_blocks(facts: RunFacts, point: Point, *, is_named: bool) -> list[Block]:
    blocks: list[Block] = []
    if is_named:
        blocks.append(Heading(f"Point {point.get('id')}: {shorten(str(point.get('part') or DASH), 60)}"))
    clock = point_clock(point)
    for number, (prefix, served) in enumerate(named_arrays(point), start=1):
        if not served.get("events"):
            continue
        named = f"Array {prefix.removesuffix('/')}: " if prefix else ""
        blocks.append(Paragraph(f"{named}{_dip_sentence(served, _unit_of(point))}", strong=True))
        if facts.series is not None and clock is not None:
            name = f"faults-{point.get('id')}" + (f"-{number}" if prefix else "")
            blocks += _figure(name, facts.series, point, served, clock, prefix)
        blocks += [_phase_table(served, _unit_of(point)), _event_table(served, clock)]
    return blocks


def _unit_of(point: Point) -> str:
    return "I/Os" if point.get("total") else "transactions"


def _dip_sentence(served: ServedPoint, unit: str) -> str:
    dip = served.get("dip")
    if not dip:
        return "No rate before the first event says what the load was before it: give events a later time."
    began = f"Before the first event ({dip['event']!s}) the load came to {dip['before_per_s']:,.0f} {unit} per second."
    if not dip["depth_share"]:
        return f"{began} It did not fall by more than its own unevenness afterwards."
    # Of several events a later one may have made it fall.
    after_s = ((dip["fell_at_utc_ns"] or 0) - served["events"][0]["t_ns"]) / 1e9
    later = f" {format_duration(after_s)} later" if after_s > LATER_S else ""
    fell = (
        f"It fell by {percent(dip['depth_share'])}{later}, to {dip['least_per_s']:,.0f} a second over 3 s at the least,"
    )
    if dip["length_s"] is None:
        return f"{began} {fell} and had not recovered when the point ended."
    return f"{began} {fell} and had recovered {format_duration(dip['length_s'])} after the event."


def _figure(name: str, series: Rows, point: Point, served: ServedPoint, clock: SeriesClock, prefix: str) -> list[Block]:
    frame = of_point(series, clock)
    rows = fault_rows(frame, clock, prefix)
    spans = _spans(point, served, clock)
    marks = [mark for mark in _marks(served, clock) if 0 <= mark["t_s"] <= clock.end_s]
    chart = fault_timeline(rows, spans, marks[:MARKS_MAX], end_s=clock.end_s)
    if chart is None:
        return []
    shades = shades_text([span["kind"] for span in spans])
    caption = (
        "The load, and the array beneath it as its model times it; late: what this host added to each answer."
        " Numbers: events of the table below." + (f" Shaded: {shades}." if shades else "")
    )
    told = f"The load and its array over {format_duration(clock.end_s)}. {_dip_sentence(served, _unit_of(point))}"
    return [FigureElement(name, caption, told, chart, point_id=str(point.get("id")))]


def fault_rows(frame: Rows, clock: SeriesClock, prefix: str = "") -> list[PanelRow]:
    """Rows of `figures_served.fault_timeline` for the panels that have any; of the array whose names begin so."""
    rows: list[PanelRow] = []
    done = frame.of(tier="application", metric="committed_count")
    load = frame.of(tier="client", source="assay")
    if len(done):
        rows += panel_rows("transactions/s", clock, {"committed": rate(done, "committed_count")})
    elif len(load):
        both = {side: rate(load, f"{side}_ios_count") for side in ("read", "write")}
        rows += panel_rows("I/Os per s", clock, {name: own for name, own in both.items() if any(own.values())})
    array = frame.where(
        frame.are("source", "array") & frame.matching("entity", lambda entity: entity.startswith(prefix))
    )
    volumes = array.where(array.matching("entity", lambda entity: "/volume/" in f"/{entity}"))
    rows += panel_rows(
        "volumes (I/Os per s)", clock, by_role(volumes, lambda own, side: rate(own, f"{side}_ios_count"))
    )
    rows += panel_rows(
        "volumes (ms, log)", clock, by_role(volumes, lambda own, side: weighted(own, side, 1e6)), log=True
    )
    disks = array.where(array.matching("entity", lambda entity: "/disk" in entity))
    busy = {"busiest": largest(disks, "busy_share", 0.01), "mean": mean(disks, "busy_share", 0.01)}
    rows += panel_rows("disks busy (%)", clock, busy if busy["mean"] else {})
    rebuilt, moved = (_least(array, f"{what}_share") for what in ("rebuilt", "rebalanced"))
    missing = gauge(array, "missing_pieces_count")
    rows += panel_rows("rebuilt (%)", clock, {"rebuilt": rebuilt} if rebuilt else {})
    rows += panel_rows("missing pieces", clock, {"missing": missing} if any(missing.values()) else {})
    rows += panel_rows("rebalanced (%)", clock, {"moved": moved} if moved else {})
    dirty = gauge(array, "dirty_bytes", 2.0**20)
    rows += panel_rows("cache (MiB)", clock, {"dirty": dirty} if any(dirty.values()) else {})
    late = mean(array, "lateness_mean_ns", 1e6)
    return rows + panel_rows("late (ms)", clock, {"late": late} if late else {})


def _least(rows: Rows, metric: str) -> Course:
    """The smallest share at each step, percent."""
    own = rows.of(metric=metric)
    return course(own, "least", own.value * 100)


def _spans(point: Point, served: ServedPoint, clock: SeriesClock) -> list[FaultSpan]:
    warmup_s = float(point.get("warmup_s") or 0)
    spans: list[FaultSpan] = [{"start_s": 0.0, "end_s": warmup_s, "kind": "warm-up"}] if warmup_s > 0 else []
    for phase in served.get("phases") or []:
        edges = [_second(phase[key], clock) for key in ("from_utc_ns", "to_utc_ns")]
        start_s, end_s = max(edges[0], 0.0), min(edges[1], clock.end_s)
        if phase["state"] != "healthy" and end_s > start_s:
            spans.append({"start_s": start_s, "end_s": end_s, "kind": str(phase["state"])})
    return spans


def _second(at_ns: int, clock: SeriesClock) -> float:
    return (at_ns - clock.start_ns) / 1e9


def _marks(served: ServedPoint, clock: SeriesClock) -> list[FaultMark]:
    """Events on the axis, by their number in the table."""
    return [
        {"t_s": _second(event["t_ns"], clock), "number": number}
        for number, event in enumerate(served["events"], start=1)
    ]


def _phase_table(served: ServedPoint, unit: str) -> Table:
    columns = [
        Column("Array", weight=1.2), Column("For", number=True), Column(f"{unit} per s", number=True, weight=1.3),
        Column("of healthy", number=True),
    ]  # fmt: skip
    phases = served.get("phases") or []
    usual = next((phase["per_s"] for phase in phases if phase["state"] == "healthy" and phase.get("per_s")), None)
    rows = []
    for phase in phases:
        per_s = phase.get("per_s")
        rows.append(
            [
                Cell(str(phase["state"])),
                Cell(format_duration((phase["to_utc_ns"] - phase["from_utc_ns"]) / 1e9)),
                Cell(DASH if per_s is None else f"{per_s:,.0f}"),
                Cell(percent(per_s / usual) if per_s is not None and usual else DASH),
            ]
        )
    caption = "The array's states one after the other, and the load meanwhile, the warm-up left out."
    return Table("phases", caption, columns, rows)


def _event_table(served: ServedPoint, clock: SeriesClock | None) -> Table:
    columns = [Column("No.", number=True, weight=0.4), Column("At", number=True, weight=0.6),
               Column("What happened", weight=4.0), Column("Array then", weight=1.0)]  # fmt: skip
    rows = [
        [
            Cell(str(number)),
            Cell(format_duration(_second(event["t_ns"], clock)) if clock is not None else DASH),
            Cell(shorten(str(event["what"]), 160)),
            Cell(str(event.get("state") or DASH)),
        ]
        for number, event in enumerate(served["events"], start=1)
    ]
    return Table("fault-events", "What happened to the array, from the first transaction or I/O on.", columns, rows)


def _volume_table(points: Sequence[Point]) -> Table:
    sides = [f"{word} {what}" for word in ("Reads", "Writes") for what in ("per s", "MiB/s", "mean")]
    columns = [
        Column("Point", weight=1.4), Column("Volume"), *(Column(name, number=True) for name in sides),
    ]  # fmt: skip
    rows = []
    for point in points[:POINTS_MAX]:
        named = shorten(f"{point.get('id')} {point.get('part') or ''}".strip(), 40)
        for prefix, served in named_arrays(point):
            for volume in served.get("volumes") or []:
                rows.append([Cell(named), Cell(f"{prefix}{volume['name']}"), *_volume_cells(volume)])
    caption = "What each volume was asked for from the first transaction or I/O on, and its latency by the model."
    return Table("served-volumes", caption, columns, rows, dense=True)


def _volume_cells(volume: ServedVolume) -> list[Cell]:
    sides = (
        (volume.get("read_iops"), volume.get("read_bytes_per_s"), volume.get("read_latency_mean_ns")),
        (volume.get("write_iops"), volume.get("write_bytes_per_s"), volume.get("write_latency_mean_ns")),
    )
    cells = []
    for iops, bytes_per_s, mean_ns in sides:
        cells += [
            Cell(f"{iops or 0.0:,.0f}"),
            Cell(f"{(bytes_per_s or 0.0) / 2**20:,.2f}"),
            Cell(format_latency(mean_ns) if mean_ns is not None else DASH),
        ]
    return cells


def _lateness_table(points: Sequence[Point]) -> Table:
    columns = [
        Column("Point", weight=0.8), Column("I/Os", number=True), Column("Late, mean", number=True),
        Column("Late over 1 ms", number=True), Column("Overdriven", number=True, weight=1.3),
        Column("This host", weight=1.6),
    ]  # fmt: skip
    rows = []
    for point in points:
        for served in point.get("served") or []:
            rows.append([Cell(str(point.get("id") or DASH)), *_lateness_cells(served.get("lateness") or {})])
    caption = (
        "How late answers left against the model's times. A second is overdriven in which more than 1 % left over 1 ms"
        " late, or in which lateness added more than a tenth to the model's latencies."
    )
    return Table("lateness", caption, columns, rows)


def _lateness_cells(late: Lateness) -> list[Cell]:
    count, mean_ns = late.get("ios") or 0, late.get("mean_ns")
    marked = bool(late.get("overdriven"))
    return [
        Cell(f"{count:,}"),
        Cell(format_latency(mean_ns) if mean_ns is not None else DASH),
        Cell(percent((late.get("late_1ms") or 0) / count) if count else DASH),
        Cell(f"{late.get('overdriven_s') or 0} of {count_of(late.get('busy_s') or 0, 'second')}"),
        Cell("cannot serve this load in time" if marked else "serves it in time", "warn" if marked else "good"),
    ]
