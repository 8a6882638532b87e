"""The series over time: rows of the timeline, from the tall table of the run folder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.base.units import format_duration, format_iops, format_latency
from assay.document.charts import with_others
from assay.document.elements import FigureElement, Paragraph, Section
from assay.document.series import (
    MAX_STEPS,
    NICE_SECONDS,
    RESENT_PANEL,
    RESENT_TEXT,
    PanelRow,
    SeriesClock,
    gauge,
    hosts_text,
    largest,
    mean,
    on_axis,
    panel_rows,
    rate,
    resent_rows,
    weighted,
    whole_rows,
)
from assay.document.series_charts import WIDTH, PointBand, timeline
from assay.document.text import joined, moment
from assay.record.machines import first_on_machine
from assay.record.source import RunFacts, records
from assay.workloads.registry import workloads

if TYPE_CHECKING:
    from assay.record.rows import Flags, Rows

Device = tuple[str | None, str]
"""Host, of a run over several, and name of a block device."""

BANDS_MAX = 500
"""More points than this are narrower than what a page shows."""

LOAD_PANEL = "I/Os per second"
"""What the load of I/O workloads did."""

LATENCY_PANEL = "latency (ms, log)"
"""Means and 99th percentiles of the load."""

ROLE_PANELS = {"read": "mean read (ms, log)", "write": "mean write (ms, log)"}
"""Means of each role, where there are several: a mean over data and log says nothing of either."""

VOLUME_PANEL = "I/Os per s by volume"
"""I/Os of every volume, upon each other."""
CREDIT_PANEL = "burst credit (%)"


SHOWN_METRICS = (
    *(f"{side}_{what}" for side in ("read", "write")
      for what in ("ios_count", "bytes", "latency_mean_ns", "latency_p99_ns")),
    "queue_mean_count", "user_share", "system_share", "iowait_share", "steal_share", "some_share", "full_share",
    "storage_segments_out_count", "storage_segments_retransmitted_count", "busy_share", "dirty_bytes", "read_hit_share",
    "memory_read_share", "flash_read_share", "remote_read_share", "node_read_share", "write_amplification",
    "temperature_celsius", "throttled_share", "burst_balance_share",
)  # fmt: skip
"""Metrics that a panel shows."""


def series_section(facts: RunFacts) -> Section | None:
    """Build the section on series; None when the run has none."""
    if facts.series is None:
        return None
    recorded = _of_load(facts.series)
    if not len(recorded):
        return None
    clock = _clock(recorded)
    rows = timeline_rows(recorded, clock, _devices(facts))
    bands = point_bands(facts, clock)
    chart = timeline(rows, bands, end_s=clock.end_s, stacked=[VOLUME_PANEL])
    if chart is None:
        return None
    panels = {row["panel"] for row in rows}
    has_load = LOAD_PANEL in panels
    step = "One value a second" if clock.step_s == 1 else f"Each step covers {format_duration(clock.step_s)}"
    virtual = bool((facts.manifest.get("target") or {}).get("array"))
    begins = "In the model's own time, one point after the other" if virtual else f"From {moment(clock.start_ns)}"
    text = (
        f"{begins}, all on one time axis. {step}; {'every other point is shaded, ' if bands else ''}lines break where"
        " nothing was recorded."
    )
    if has_load:
        text += " IOPS and latency are those the load saw; of several volumes the p99 is the largest."
    if summed := hosts_text(recorded):
        text += f" {summed}"
    if RESENT_PANEL in panels:
        text += f" {RESENT_TEXT}"
    seen = "disks, cache and ports of the model" if virtual else "device, processors and pressure"
    seen = "burst credit" if virtual and CREDIT_PANEL in panels else seen
    caption = f"I/Os, latency, {seen} over time." if has_load else f"{seen[:1].upper()}{seen[1:]} over time."
    return Section(
        "series", "The run over time", [Paragraph(text), FigureElement("timeline", caption, _told(rows), chart)]
    )


def _of_load(rows: Rows) -> Rows:
    """Rows on the clock of the load: virtual and wall time share no axis."""
    # What a kind of workload records under its own name has a figure in its own sections.
    rows = rows.where(~rows.are("source", *(workload.kind for workload in workloads())))
    if len(rows.distinct("clock")) < 2:
        return rows
    virtual = bool((rows.are("clock", "virtual") & rows.are("source", "assay")).any())
    return rows.of(clock="virtual" if virtual else "wall")


def _clock(rows: Rows) -> SeriesClock:
    import numpy as np

    start, end = int((rows.t_ns - rows.interval_ns).min()), int(rows.t_ns.max())
    # A model's members are read less often than its workers count; a line needs the coarser of both.
    usual = rows.interval_ns.max() if rows.are("source", "model").any() else np.median(rows.interval_ns)
    interval_s = float(usual) / 1e9 if usual > 0 else 1.0
    length = max((end - start) / 1e9, interval_s)
    wanted = max(interval_s, length / MAX_STEPS)
    step = interval_s if wanted <= interval_s else next((nice for nice in NICE_SECONDS if nice >= wanted), wanted)
    return SeriesClock(start, length, float(step))


def _devices(facts: RunFacts) -> list[Device]:
    volumes = (facts.manifest.get("target") or {}).get("volumes") or []
    firsts = first_on_machine(records(facts.manifest.get("hosts")))
    found: list[Device] = []
    for volume in volumes:
        if volume.get("device"):
            name, first = str(volume["device"]).removeprefix("/dev/"), firsts.get(str(volume.get("host")))
            # Any agent on its machine may have seen it.
            hosts = [one for one, other in firsts.items() if other == first] if first is not None else [None]
            found += [(host, name) for host in hosts]
    return found


def timeline_rows(rows: Rows, clock: SeriesClock, devices: Sequence[Device]) -> list[PanelRow]:
    """Rows of `figures_series.timeline`.

    Parameters
    ----------
    rows : Rows
        The tall table.
    clock : Clock
        The time axis.
    devices : sequence of Device
        Block devices of the target; of these alone the telemetry is added up, so that a partition, its disk and a
        mapped device above it are not counted three times.
    """
    shown = on_axis(rows.where(rows.are("metric", *SHOWN_METRICS)), clock)
    load = shown.where(shown.are("source", "assay") & ~shown.are("entity", "recorder"))
    block = shown.of(source="block")
    of_target = block.where(_are_devices(block, devices))
    block = of_target if len(of_target) else block
    host = shown.of(source="host")
    found = panel_rows(LOAD_PANEL, clock, {side: rate(load, f"{side}_ios_count") for side in ("read", "write")})
    found += _volume_rows(load, clock)
    found += _latency_rows(load, clock)
    found += panel_rows(
        "device (MiB/s)", clock, {side: rate(block, f"{side}_bytes", 2.0**20) for side in ("read", "write")}
    )
    found += panel_rows("device queue (I/Os)", clock, {"mean queue": gauge(block, "queue_mean_count")})
    found += _drive_rows(shown, clock)
    shares = {name: gauge(host.of(entity="cpu"), f"{name}_share", 0.01)
              for name in ("user", "system", "iowait", "steal")}  # fmt: skip
    found += panel_rows("host CPU (%)", clock, shares)
    pressure = {f"{name} {kind}": gauge(host.of(entity=f"psi-{name}"), f"{kind}_share", 0.01)
                for name, kind in (("io", "some"), ("io", "full"), ("cpu", "some"), ("memory", "some"))}  # fmt: skip
    found += panel_rows("pressure, PSI (%)", clock, pressure)
    return found + resent_rows(shown, clock) + _model_rows(shown, clock)


def _are_devices(block: Rows, devices: Sequence[Device]) -> Flags:
    """Flags of the rows of these devices."""
    chosen = block.are("entity")
    for host, name in devices:
        named = block.are("entity", name)
        chosen |= named if host is None else named & block.are("host", host)
    return chosen


def _latency_rows(load: Rows, clock: SeriesClock) -> list[PanelRow]:
    """Latency of reads and writes; the means of each role apart where there are several, such as data and log."""
    p99s = {f"{side} p99": largest(load, f"{side}_latency_p99_ns", 1e6) for side in ("read", "write")}
    roles = load.distinct("role")
    if len(roles) < 2:
        means = {f"{side} mean": weighted(load, side, 1e6) for side in ("read", "write")}
        return panel_rows(LATENCY_PANEL, clock, means | p99s, log=True)
    rows: list[PanelRow] = []
    for side in ("read", "write"):
        means = {role: weighted(load.of(role=role), side, 1e6) for role in roles}
        rows += panel_rows(ROLE_PANELS[side], clock, means, log=True)
    return rows + panel_rows("p99 (ms, log)", clock, p99s, log=True)


def _volume_rows(load: Rows, clock: SeriesClock) -> list[PanelRow]:
    """I/Os of each volume upon each other, all its activities together; none for a single volume."""
    ios = load.where(load.are("metric", "read_ios_count", "write_ios_count"))
    # Where several activities use a volume, its name comes before theirs.
    ios = ios.renamed("entity", lambda entity: entity.partition("/")[0]).renamed("metric", lambda _: "ios_count")
    each = ios.groups("entity", "host", by=[ios.t_ns, ios.interval_ns])
    both = replace(ios.where(each.first), value=each.sums(ios.value))
    volumes = both.distinct("entity")
    if len(volumes) < 2:
        return []
    rates = {name: rate(both.of(entity=name), "ios_count") for name in volumes}
    return with_others(whole_rows(VOLUME_PANEL, clock, rates))


def _drive_rows(shown: Rows, clock: SeriesClock) -> list[PanelRow]:
    """Panels of drives, and of the burst credit of a cloud's volumes."""
    drives = shown.of(source="drive")
    rows = panel_rows("drive (C)", clock, {"hottest drive": largest(drives, "temperature_celsius", 1.0)})
    throttled = largest(drives, "throttled_share", 0.01)
    if any(throttled.values()):
        rows += panel_rows("throttled (% of time)", clock, {"most of a drive": throttled})
    return rows + panel_rows(CREDIT_PANEL, clock, {"mean of volumes": mean(shown, "burst_balance_share", 0.01)})


def _model_rows(shown: Rows, clock: SeriesClock) -> list[PanelRow]:
    """Panels of a modelled array, from what its members record."""
    model = shown.of(source="model")
    disks = model.where(model.matching("entity", lambda entity: "/disk" in entity))
    ports = model.where(model.matching("entity", lambda entity: "/port" in entity))
    rows = panel_rows(
        "disks busy (%)",
        clock,
        {"mean of disks": mean(disks, "busy_share", 0.01), "busiest disk": largest(disks, "busy_share", 0.01)},
    )
    rows += panel_rows(
        "disk queue (I/Os)",
        clock,
        {
            "mean of disks": mean(disks, "queue_mean_count", 1.0),
            "longest queue": largest(disks, "queue_mean_count", 1.0),
        },
    )
    rows += panel_rows("dirty cache (MiB)", clock, {"of all members": gauge(model, "dirty_bytes", 2.0**20)})
    rows += panel_rows("read hits (%)", clock, {"mean of members": mean(model, "read_hit_share", 0.01)})
    rows += panel_rows(
        "reads found in (%)",
        clock,
        {
            where: mean(model, f"{level}_read_share", 0.01)
            for where, level in (
                ("host memory", "memory"), ("host flash", "flash"), ("other hosts", "remote"), ("data nodes", "node"),
            )
        },
    )  # fmt: skip
    rows += panel_rows("write amplification", clock, {"log": mean(model, "write_amplification", 1.0)})
    rows += panel_rows("throttled (%)", clock, {"hottest drive": largest(disks, "throttled_share", 0.01)})
    return rows + panel_rows("ports busy (%)", clock, {"busiest port": largest(ports, "busy_share", 0.01)})


def point_bands(facts: RunFacts, clock: SeriesClock) -> list[PointBand]:
    """Shading of each point, warm-up included; labels by id, or by part where ids would not fit; of too many none."""
    spans = []
    for point in facts.points:
        started_ns = point.get("started_utc_ns")
        if started_ns is None:
            continue
        start = (started_ns - clock.start_ns) / 1e9
        end = start + float(point.get("warmup_s") or 0) + float(point.get("measured_s") or 0)
        if end > 0 and start < clock.end_s:
            spans.append((max(start, 0.0), min(end, clock.end_s), point))
    if len(spans) > BANDS_MAX:
        return []
    spans.sort(key=lambda span: span[0])
    by_id = len(spans) <= 10
    bands: list[PointBand] = []
    free_from, part = -math.inf, None
    for number, (start, end, point) in enumerate(spans):
        wanted = str(point.get("id") or "") if by_id else str(point.get("part") or "")
        new = by_id or wanted != part
        place = start / clock.end_s * WIDTH
        label = wanted[:20] if new and place >= free_from else ""
        if label:
            free_from, part = place + 6.5 * len(label) + 6, wanted
        bands.append({"start_s": round(start, 3), "end_s": round(end, 3), "label": label, "odd": number % 2 == 1})
    return bands


def _told(rows: Sequence[PanelRow]) -> str:
    """Ranges of what the load saw, for readers who cannot see the figure."""
    texts = []
    for side in ("read", "write"):
        rates = _values(rows, LOAD_PANEL, side)
        if rates:
            texts.append(f"{format_iops(min(rates))} to {format_iops(max(rates))} {side} I/Os per second")
    for panel, series in dict.fromkeys((row["panel"], row["series"]) for row in rows):
        sides = {ROLE_PANELS[side]: f"{series} {side}" for side in ROLE_PANELS}
        name = series.removesuffix(" mean") if panel == LATENCY_PANEL and series.endswith(" mean") else sides.get(panel)
        if name is not None:
            means = _values(rows, panel, series)
            low, high = (format_latency(value * 1e6) for value in (min(means), max(means)))
            texts.append(f"{low} to {high} mean {name} latency")
    panels = joined(dict.fromkeys(row["panel"] for row in rows))
    return (
        f"Series over time in panels: {panels}. From {joined(texts)}."
        if texts
        else f"Series over time in panels: {panels}."
    )


def _values(rows: Sequence[PanelRow], panel: str, series: str) -> list[float]:
    chosen = (row["value"] for row in rows if row["panel"] == panel and row["series"] == series)
    return [value for value in chosen if value is not None]
