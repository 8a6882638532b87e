"""Hosts of a run that was spread over several: their clocks, and how far apart they measured."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import format_latency
from assay.document.elements import Block, Cell, Column, Heading, Paragraph, Table
from assay.document.text import DASH, percent, shorten
from assay.record.shapes.manifest import Manifest, RunHost
from assay.record.shapes.point import Point

NAME_MAX = 40


def hosts_blocks(run: Manifest, points: Sequence[Point]) -> list[Block]:
    """Tables of the hosts and of their points; nothing of a run on one host."""
    hosts = run.get("hosts") or []
    if not hosts:
        return []
    return [
        Heading("Hosts"),
        Paragraph(
            f"The load came from {len(hosts)} hosts. Counts and rates are sums, percentiles come from merged"
            " histograms, and only the window in which all hosts ran counts."
        ),
        _hosts_table(hosts),
        *_skew_table(points),
    ]


def _hosts_table(hosts: Sequence[RunHost]) -> Table:
    columns = [
        Column("Host", weight=1.5), Column("Name there", weight=1.5), Column("Clock ahead", number=True),
        Column("Known to", number=True), Column("Lost", weight=2.0),
    ]  # fmt: skip
    rows = []
    for host in hosts:
        offset_ns = host.get("clock_offset_ns")
        ahead = DASH if offset_ns is None else f"{'-' if offset_ns < 0 else ''}{format_latency(abs(offset_ns))}"
        rows.append(
            [
                Cell(shorten(str(host.get("name")), NAME_MAX)),
                Cell(shorten(str(host.get("hostname") or DASH), NAME_MAX)),
                Cell(ahead),
                Cell(format_latency(host.get("clock_error_ns"))),
                Cell(shorten(str(host.get("lost") or "no"), 200)),
            ]
        )
    return Table("hosts", "Hosts, and how far their clocks were ahead when the run began.", columns, rows)


def _skew_table(points: Sequence[Point]) -> list[Block]:
    told = [(point, together) for point in points if (together := point.get("together"))]
    if not told:
        return []
    columns = [
        Column("Point"), Column("Hosts", number=True), Column("Began apart", number=True),
        Column("First to last done", number=True, weight=1.5), Column("Skew", number=True), Column("Marked"),
    ]  # fmt: skip
    rows = []
    for point, one in told:
        first, last = one.get("first_done_utc_ns"), one.get("last_done_utc_ns")
        share = one.get("skew_share")
        rows.append(
            [
                Cell(str(point["id"]), point_id=point["id"]),
                Cell(str(one.get("count") or DASH)),
                Cell(format_latency(one.get("start_skew_ns"))),
                Cell(DASH if first is None or last is None else format_latency(max(last - first, 0))),
                Cell(DASH if share is None else percent(share)),
                Cell("skewed" if one.get("skewed") else "no", tone="bad" if one.get("skewed") else "plain"),
            ]
        )
    return [Table("hosts-skew", "How far apart hosts measured, as a share of the window.", columns, rows)]
