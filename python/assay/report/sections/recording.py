"""The report of a recording: what storage was asked for over time, by device and in all, and where it came from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from assay.base.units import count_of, format_bytes, format_duration, format_iops, format_latency, format_throughput
from assay.document.elements import (
    Block,
    Cell,
    Column,
    Document,
    FactList,
    FigureElement,
    Notice,
    Notices,
    Paragraph,
    Section,
    Table,
)
from assay.document.palette import MAX_SERIES
from assay.document.series import Course, PanelRow
from assay.document.series_charts import timeline
from assay.document.text import DASH, joined, moment, percent, shorten
from assay.insight.recording import (
    HOUR_NS,
    SAMPLES_MIN,
    DeviceLoad,
    DeviceRows,
    busiest_hours,
    device_rows,
    gaps_told,
    is_stacked,
    load_of_all,
    loads_of,
    step_of,
    trends,
)
from assay.record.rows import Numbers, grouped, over
from assay.record.shapes.manifest import Recording
from assay.record.source import RunFacts
from assay.report.head import headed
from assay.report.sections.diagnosis import diagnosis_of, diagnosis_section, limiting_words, next_words

if TYPE_CHECKING:
    from assay.insight.diagnosis.diagnose import Diagnosis

STEPS_MAX = 600
"""Steps of a figure: more are no longer told apart on paper."""

DEVICES_MAX = 40


def recording_document(facts: RunFacts) -> Document:
    """Build the document of a recording."""
    told = facts.manifest["recording"]
    rows = device_rows(facts.series) if facts.series is not None else None
    hurts = diagnosis_of(facts)
    diagnosis = [diagnosis_section(hurts)] if hurts is not None else []
    sections = [
        _summary(facts, told, rows, hurts),
        *_load_sections(rows, facts),
        *diagnosis,
        *_capacity(facts),
        *_programs(facts),
        # What the recorder wrote itself comes from no files.
        *([_sources(told)] if told.get("files") else []),
    ]
    begin, end = told.get("from_utc_ns"), told.get("to_utc_ns")
    words = [
        moment(begin) if begin is not None else "",
        f"{format_duration((end - begin) / 1e9)} recorded" if begin is not None and end is not None else "",
        count_of(len(files), "file") if (files := told.get("files")) else "",
        f"{told['rows']:,} values" if told.get("rows") else "",
    ]
    return headed(words, sections, facts.manifest)


def _summary(facts: RunFacts, told: Recording, rows: DeviceRows | None, hurts: Diagnosis | None) -> Section:
    load = load_of_all(rows) if rows is not None and len(rows) else None
    blocks: list[Block] = []
    hurt = [] if hurts is None else [Paragraph(text) for text in (limiting_words(hurts), *next_words(hurts))]
    if load is None:
        blocks += hurt
        blocks.append(
            Paragraph(
                f"The recording has no block device with {SAMPLES_MIN} intervals or more: how many I/Os and bytes"
                " storage had to do is not said."
            )
        )
    else:
        blocks.append(
            Paragraph(
                f"95 % of the time all devices together did {format_iops(load.iops_p95)} IOPS and"
                f" {format_throughput(load.bytes_per_s_p95)} or less.",
                strong=True,
            )
        )
        blocks.append(Paragraph(f"The peak was {format_iops(load.iops_peak)} IOPS, at {moment(load.peak_ns)}."))
        blocks.append(FactList("recording-load", _facts(load)))
        blocks += hurt
    notices = [Notice(str(text)) for text in (*gaps_told(told), *(told.get("notices") or ()), *facts.unreadable)]
    if notices:
        blocks.append(Notices(notices))
    return Section("summary", "Summary", blocks)


def _facts(load: DeviceLoad) -> list[tuple[str, str]]:
    items = [
        ("Reads", percent(load.read_share) if load.read_share is not None else ""),
        ("Mean I/O", format_bytes(load.size_mean_bytes) if load.size_mean_bytes else ""),
        ("Read latency", _latency(load.read_latency_ns)),
        ("Write latency", _latency(load.write_latency_ns)),
        ("Latency", _latency(load.latency_ns)),
        ("Queue, p95", f"{load.queue_p95:.3g}" if load.queue_p95 is not None else ""),
    ]
    return [(name, text) for name, text in items if text and text != DASH]


PROGRAMS_MAX = 15


def _programs(facts: RunFacts) -> list[Section]:
    """Programs by what they read and wrote at the devices."""
    own = facts.series.of(source="process") if facts.series is not None else None
    if own is None or not len(own):
        return []
    each = own.groups("host", "entity")
    sums = [each.sums(np.where(own.are("metric", metric), own.value, 0.0)) for metric in ("read_bytes", "write_bytes")]
    names = ((own.at("host", place), own.at("entity", place)) for place in each.first.tolist())
    moved = sorted(
        ((host, name, read, written) for (host, name), read, written in zip(names, *map(list, sums), strict=True)),
        key=lambda one: (-one[2] - one[3], one[1]),
    )
    whole = float(sums[0].sum() + sums[1].sum()) or 1.0
    columns = [Column("Program", weight=2), Column("Read", number=True), Column("Written", number=True),
               Column("Share of bytes", number=True)]  # fmt: skip
    rows = [
        [
            Cell(shorten(f"{host}: {name}", 50)),
            Cell(format_bytes(int(read))),
            Cell(format_bytes(int(written))),
            Cell(_share((read + written) / whole)),
        ]
        for host, name, read, written in moved[:PROGRAMS_MAX]
        if read + written > 0
    ]
    if not rows:
        return []
    caption = "Programs by the bytes that they read and wrote at devices, of those that were recorded."
    return [Section("programs", "Programs", [Table("programs-table", caption, columns, rows)])]


def _share(share: float) -> str:
    """A share of bytes; less than one in a thousand is no matter of digits."""
    return percent(share) if share >= 0.001 else "less than 0.1 %"


def _capacity(facts: RunFacts) -> list[Section]:
    """How full file systems and databases are, and how fast they fill; nothing of less than a day."""
    found = trends(facts.series) if facts.series is not None else []
    if not found:
        return []
    columns = [
        Column("Of", weight=1.6), Column("Used", number=True), Column("Size", number=True),
        Column("Growth a day", number=True), Column("95 % interval", number=True, weight=1.4),
        Column("Full in", weight=1.4),
    ]  # fmt: skip
    rows = []
    for one in found[:DEVICES_MAX]:
        full = DASH if one.full_days is None else f"{one.full_days[0]:,.0f} to {one.full_days[1]:,.0f} days"
        rows.append(
            [
                Cell(shorten(f"{one.host}: {one.name}", 50)),
                Cell(format_bytes(int(one.used_bytes))),
                Cell(format_bytes(int(one.size_bytes)) if one.size_bytes is not None else DASH),
                Cell(_growth(one.per_day)),
                Cell(f"{_growth(one.low)} to {_growth(one.high)}"),
                Cell(full, "warn" if one.full_days is not None and one.full_days[0] < FULL_SOON_DAYS else "plain"),
            ]
        )
    caption = (
        "Capacity and its trend: the median slope of all pairs of samples (Theil and Sen), and when it fills at that."
    )
    return [Section("capacity", "Capacity", [Table("capacity", caption, columns, rows)])]


FULL_SOON_DAYS = 30


def _growth(per_day: float) -> str:
    return f"{'-' if per_day < 0 else ''}{format_bytes(int(abs(per_day)))}"


def _load_sections(rows: DeviceRows | None, facts: RunFacts) -> list[Section]:
    if rows is None or not len(rows):
        return []
    loads = loads_of(rows, facts.spreads)
    found = []
    if loads:
        blocks: list[Block] = [_table(loads)]
        span_ns = int(rows.rows.t_ns[-1]) - int(rows.rows.t_ns[0])
        if span_ns > 2 * HOUR_NS:
            blocks.append(_hours(rows))
        found.append(Section("devices", "Devices", blocks))
    figure = _figure(rows, loads)
    if figure is not None:
        found.append(Section("time", "Load over time", [figure]))
    return found


def _table(loads: list[DeviceLoad]) -> Table:
    several = len({load.host for load in loads}) > 1
    columns = [
        Column("Device", weight=1.8), Column("Role", weight=0.8), Column("IOPS p95", number=True),
        Column("Peak", number=True), Column("MiB/s p95", number=True), Column("Reads", number=True, weight=0.8),
        Column("Mean I/O", number=True), Column("Read latency", number=True), Column("Write latency", number=True),
        Column("Queue p95", number=True, weight=0.8), Column("Busy p95", number=True, weight=0.8),
        Column("Share of I/Os", number=True, weight=0.8),
    ]  # fmt: skip
    rows = [
        [
            Cell(shorten(f"{load.host}: {load.name}" if several else load.name, 40)),
            Cell(load.role or DASH),
            Cell(format_iops(load.iops_p95)),
            Cell(format_iops(load.iops_peak)),
            Cell(f"{load.bytes_per_s_p95 / 2**20:,.4g}"),
            Cell(percent(load.read_share) if load.read_share is not None else DASH),
            Cell(format_bytes(load.size_mean_bytes) if load.size_mean_bytes else DASH),
            Cell(_latency(load.read_latency_ns if load.read_latency_ns is not None else load.latency_ns)),
            Cell(_latency(load.write_latency_ns if load.write_latency_ns is not None else load.latency_ns)),
            Cell(f"{load.queue_p95:.3g}" if load.queue_p95 is not None else DASH),
            Cell(percent(load.busy_p95) if load.busy_p95 is not None else DASH),
            Cell(percent(load.share) if load.share is not None else DASH),
        ]
        for load in loads[:DEVICES_MAX]
    ]
    caption = (
        "Load of each device; p95 over intervals, latencies are means over I/Os. Devices that lie on others (dm, md,"
        " loop) have no share."
    )
    return Table("devices", caption, columns, rows, dense=True)


def _hours(rows: DeviceRows) -> Table:
    columns = [Column("Hour from", weight=1.5), Column("IOPS", number=True), Column("MiB/s", number=True)]
    cells = [
        [Cell(moment(hour)), Cell(format_iops(iops)), Cell(f"{rate / 2**20:,.4g}")]
        for hour, iops, rate in busiest_hours(rows)
    ]
    return Table("hours", "The busiest hours (UTC): means of all devices together.", columns, cells)


def _figure(rows: DeviceRows, loads: list[DeviceLoad]) -> FigureElement | None:
    """IOPS, throughput, latency, size and queue of the busiest devices on one axis."""
    shown = [load for load in loads if not is_stacked(load.name)][:MAX_SERIES] or loads[:MAX_SERIES]
    if not shown:
        return None
    begin = int((rows.rows.t_ns - rows.rows.interval_ns).min())
    span_ns = int(rows.rows.t_ns.max()) - begin
    step_ns = max(step_of(rows), span_ns // STEPS_MAX, 1)
    several = len({load.host for load in loads}) > 1
    courses: dict[str, list[PanelRow]] = {}
    for load in shown:
        own = rows.where(rows.rows.are("host", load.host) & rows.rows.are("entity", load.name))
        name = shorten(f"{load.host}: {load.name}" if several else load.name, 30)
        for panel, course in _courses(own, begin, step_ns).items():
            courses.setdefault(panel, []).extend(_rows(panel, name, course, step_ns))
    charts = [row for rows_of_panel in courses.values() for row in rows_of_panel]
    chart = timeline(charts, [], end_s=span_ns / 1e9)
    if chart is None:
        return None
    caption = f"The busiest devices over time, from {moment(begin)}; lines break where nothing was recorded."
    told = f"{joined(load.name for load in shown)}: {joined(dict.fromkeys(row['panel'] for row in charts))}."
    return FigureElement("recording-timeline", caption, told, chart)


def _courses(own: DeviceRows, begin: int, step_ns: int) -> dict[str, Course]:
    """What a device did at each step, by the title of the panel."""
    steps = (own.rows.t_ns - 1 - begin) // step_ns
    each = grouped(steps)

    def summed(values: Numbers) -> Numbers:
        return each.sums(np.nan_to_num(values))

    def latency(name: str, count: str) -> Numbers:
        weights = np.where(np.isfinite(own[name]), own[count], 0.0)
        return over(summed(own[name] * weights), summed(weights) * 1e6)

    known = np.isfinite(own["queue_mean_count"])
    seconds, moved, ios = summed(own.seconds), summed(own["bytes"]), summed(own["ios"])
    found = {
        "IOPS": over(ios, seconds),
        "MiB/s": over(moved, seconds * 2**20),
        "read latency (ms)": latency("read_latency_mean_ns", "read_ios_count"),
        "write latency (ms)": latency("write_latency_mean_ns", "write_ios_count"),
        "latency (ms)": latency("latency_mean_ns", "ios"),
        "I/O size (KiB)": over(moved, ios * 1024),
        "queue (I/Os)": over(summed(own["queue_mean_count"]), each.sums(known)),
    }
    at = steps[each.first].tolist()
    return {panel: dict(zip(at, values.tolist(), strict=True)) for panel, values in found.items()}


def _rows(panel: str, series: str, course: Course, step_ns: int) -> list[PanelRow]:
    """Rows of a panel; a gap of more than two steps breaks the line."""
    rows: list[PanelRow] = []
    before: int | None = None
    for step, value in sorted(course.items()):
        if not math.isfinite(value):
            continue
        if before is not None and step > before + 2:
            rows.append(
                {"panel": panel, "series": series, "t_s": (before + 1) * step_ns / 1e9, "value": None, "log": False}
            )
        at = round((step + 0.5) * step_ns / 1e9, 3)
        rows.append({"panel": panel, "series": series, "t_s": at, "value": float(f"{value:.5g}"), "log": False})
        before = step
    return rows


def _sources(told: Recording) -> Section:
    columns = [
        Column("File", weight=2.2), Column("Format", weight=0.8), Column("Host"), Column("From", weight=1.3),
        Column("To", weight=1.3), Column("Values", number=True), Column("Counters taken", number=True),
        Column("Left out", number=True),
    ]  # fmt: skip
    files = told.get("files") or []
    rows = [
        [
            Cell(shorten(str(one.get("path")), 60)),
            Cell(str(one.get("format") or DASH)),
            Cell(shorten(joined(str(host) for host in one.get("hosts") or []), 40) or DASH),
            Cell(moment(one.get("from_utc_ns"))),
            Cell(moment(one.get("to_utc_ns"))),
            Cell(f"{one.get('rows') or 0:,}"),
            Cell(f"{len(one.get('counters') or {}):,}"),
            Cell(f"{len(one.get('ignored') or {}):,}"),
        ]
        for one in files
    ]
    blocks: list[Block] = [Table("files", "Files of the recording; times are UTC.", columns, rows)]
    reasons: dict[str, list[str]] = {}
    for one in files:
        for name, reason in (one.get("ignored") or {}).items():
            reasons.setdefault(str(reason), []).append(str(name))
    blocks += [
        Paragraph(f"Left out, {reason}: {shorten('; '.join(dict.fromkeys(names)), 400)}.")
        for reason, names in reasons.items()
    ]
    return Section("sources", "What it was made from", blocks)


def _latency(latency_ns: float | None) -> str:
    return format_latency(latency_ns) if latency_ns is not None else DASH
