"""Latencies of a recording: times in the queue above devices and in them, as a table and as heat maps over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from assay.base.units import format_latency
from assay.document.charts import ChartRows
from assay.document.drawing import alt
from assay.document.elements import Block, Cell, Column, FigureElement, Paragraph, Section, Table
from assay.document.text import DASH, joined, moment, shorten
from assay.record.latency_buckets import (
    BUCKETS,
    SIDES,
    Bucket,
    bucket_begin_ns,
    bucket_end_ns,
    bucket_of_metric,
    percentile_ns,
)
from assay.record.rows import Numbers, Rows
from assay.record.source import RunFacts

COLUMNS_MAX = 120
"""Steps of a heat map over time."""
MAPS_MAX = 2
"""Devices and directions that have heat maps: those with the most I/Os."""
ROWS_MAX = 40
WIDTH, HEIGHT = 500, 130
LEAST_NS = 500.0
"""Where the first bucket begins on a logarithmic axis."""

_TITLES = {"queue": "in the queue above the device", "device": "in the device"}


class Times(NamedTuple):
    """Histograms of one device and direction: I/Os by side and bucket, and the rows that they were counted from."""

    host: str
    device: str
    direction: str
    counts: dict[str, Numbers]
    rows: Rows

    @property
    def ios(self) -> float:
        """I/Os whose time in the device is known."""
        return float(self.counts["device"].sum())


def latencies_section(facts: RunFacts) -> list[Section]:
    """The section; none where no histograms were recorded (`record --latencies`)."""
    if facts.series is None:
        return []
    rows = facts.series.of(source="block")
    rows = rows.where(rows.matching("metric", lambda metric: bucket_of_metric(metric) is not None))
    found = sorted(_times(rows), key=lambda one: (-one.ios, one.host, one.device, one.direction))
    if not found:
        return []
    blocks: list[Block] = [
        Paragraph(
            "Each I/O of these devices was counted. Only the time in the device can be put down to storage; in the"
            " queue above it I/Os wait for the host's scheduler and for room in the device's queue."
        ),
        _table(found[:ROWS_MAX]),
        *(_heat_map(one, side) for one in found[:MAPS_MAX] for side in SIDES[:2] if one.counts[side].any()),
    ]
    return [Section("latencies", "Time in the queue and in the device", blocks)]


def _times(rows: Rows) -> Iterator[Times]:
    buckets = [bucket_of_metric(metric) or Bucket("", "", 0) for metric in rows.texts["metric"].texts]
    directions = np.array([bucket.direction for bucket in buckets], dtype=object)
    for (host, device), own in rows.apart("host", "entity"):
        told = directions[own.texts["metric"].numbers]
        for direction in sorted(set(told.tolist())):
            mine = own.where(told == direction)
            yield Times(host, device, direction, {side: _counts(mine, buckets, side) for side in SIDES}, mine)


def _counts(rows: Rows, buckets: list[Bucket], side: str) -> Numbers:
    """I/Os of each bucket of a side."""
    found = np.zeros(BUCKETS)
    places = np.array([bucket.number if bucket.side == side else -1 for bucket in buckets], np.int64)
    at = places[rows.texts["metric"].numbers]
    np.add.at(found, at[at >= 0], rows.value[at >= 0])
    return found


def _table(found: list[Times]) -> Table:
    several = len({one.host for one in found}) > 1
    columns = [Column("Device", weight=1.6), Column("I/Os"), Column("Number", number=True)]
    for side in SIDES[:2]:
        columns += [Column(f"{side} {name}", number=True) for name in ("p50", "p99", "p99.9")]
    rows = []
    for one in found:
        name = shorten(f"{one.host}: {one.device}" if several else one.device, 40)
        cells = [Cell(name), Cell(one.direction), Cell(f"{one.ios:,.0f}")]
        for side in SIDES[:2]:
            counts = one.counts[side].tolist()
            known = sum(counts) > 0
            cells += [
                Cell(format_latency(percentile_ns(counts, share)) if known else DASH) for share in (0.5, 0.99, 0.999)
            ]
        rows.append(cells)
    caption = "Times of I/Os, to the width of a bucket of the histogram, the square root of two."
    return Table("latencies", caption, columns, rows)


def _heat_map(one: Times, side: str) -> FigureElement:
    """How many I/Os took how long, over time: a darker cell has more of its column's I/Os."""
    begin_ns = int((one.rows.t_ns - one.rows.interval_ns).min())
    span_ns = max(int(one.rows.t_ns.max()) - begin_ns, 1)
    step_ns = max(int(np.median(one.rows.interval_ns)), -(-span_ns // COLUMNS_MAX), 1)
    divisor, unit = (1e9, "s") if span_ns < 180e9 else (60e9, "min") if span_ns < 3 * 3600e9 else (3600e9, "h")
    cells: dict[tuple[int, int], float] = {}
    steps = (one.rows.t_ns - 1 - begin_ns) // step_ns
    for step, metric, value in zip(
        steps.tolist(), one.rows.texts["metric"].column(), one.rows.value.tolist(), strict=True
    ):
        bucket = bucket_of_metric(metric)
        if bucket is not None and bucket.side == side and value > 0:
            cells[step, bucket.number] = cells.get((step, bucket.number), 0.0) + value
    data = [
        {"from": step * step_ns / divisor, "to": (step + 1) * step_ns / divisor,
         "low": max(bucket_begin_ns(bucket), LEAST_NS) / 1e6, "high": bucket_end_ns(bucket) / 1e6,
         "ios": count}
        for (step, bucket), count in sorted(cells.items())
    ]  # fmt: skip
    colours = alt.Scale(type="log", scheme="blues", domainMin=0.3)
    legend = alt.Legend(title="I/Os", tickCount=4, format=",~g", gradientLength=90)
    across = alt.Axis(title=f"time ({unit})", grid=False)
    upward = alt.Axis(title="ms", format="~g", tickCount=5, grid=False)
    chart = (
        alt.Chart(ChartRows(values=data), width=WIDTH, height=HEIGHT)
        .mark_rect()
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(nice=False, zero=False), axis=across),
            x2="to:Q",
            y=alt.Y("low:Q", scale=alt.Scale(type="log", nice=False), axis=upward),
            y2="high:Q",
            color=alt.Color("ios:Q", legend=legend, scale=colours),
        )
    )
    counts = one.counts[side].tolist()
    told = joined(
        f"{name} {format_latency(percentile_ns(counts, share))}" for name, share in (("p50", 0.5), ("p99", 0.99))
    )
    caption = (
        f"{one.device}, {one.direction}s: time {_TITLES[side]}, from {moment(begin_ns)}; the darker, the more I/Os."
    )
    return FigureElement(f"latencies-{one.device}-{one.direction}-{side}", caption, f"{caption} {told}.", chart)
