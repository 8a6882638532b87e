"""Every point in one table, and the words it uses."""

from __future__ import annotations

from assay.document.elements import Block, Cell, Column, Facts, Heading, Paragraph, Section, Table, Tone
from assay.document.text import (
    DASH,
    iops_text,
    latency_text,
    load_label,
    percent,
    shorten,
    throughput_texts,
    workload_label,
)
from assay.report.sections.summary import limit_text
from assay.results.source import Record, RunFacts, runs_transactions
from assay.results.standstill import generator_words
from assay.units import format_latency

GLOSSARY = [
    ("point", "one workload at one load, held until steady or until its time was up, with its measurements"),
    ("out", "outstanding I/Os in total; in brackets queue depth x workers"),
    ("latency", "from submission to completion; with a fixed rate, from the moment the I/O was due"),
    ("p99", "99 % of the I/Os were at least as fast; p50 is the median"),
    ("MiB/s, MB/s", "1,048,576 and 1,000,000 bytes a second; KiB is 1,024 bytes; us is a millionth of a second"),
    ("70/30", "70 % reads and 30 % writes"),
    ("knee", "the load beyond which latency rises faster than throughput"),
    ("95 % interval", "the range that would hold the answer in 19 of 20 repeats of the measurement"),
    (
        "queue",
        "mean number of I/Os at the device; iowait: CPU idle while I/Os are outstanding; steal: CPU other guests took",
    ),
    ("PSI", "pressure stall information: share of time in which some, or all, tasks waited for the resource"),
]

SEARCH_WORDS = {"70/30", "knee", "95 % interval"}
"""Words that only a search needs."""

IO_WORDS = {"out", "latency", "70/30", "knee"}
"""Words of loads that are I/O."""

OLTP_WORDS = [
    ("NOPM, TPM", "new orders committed in a minute; transactions in a minute, user rollbacks included"),
    ("users", "sessions that run one transaction after the other, or the places in which a rate is served"),
    ("response", "from the first attempt's start to the answer to the commit; with a rate, from when it was due"),
    ("retried, failed", "attempts repeated after a deadlock or serialisation failure; transactions given up"),
    ("log flush", "bringing the log of a commit to storage, which the commit waits for"),
]

INTEGRITY_WORDS = [
    ("page, unit", "a page of a data file has 8 KiB, a block of the log one sector; units of both have 512 bytes"),
    ("generation", "how often a page was written: 1 for the first write, one more with each write after it"),
    ("persistent", "a wrong page stayed wrong in every one of 15 reads; transient: one of them was right"),
    ("observable", "an injected fault whose bytes reached a read before they were overwritten; others are masked"),
]


def points_section(facts: RunFacts) -> Section:
    """Build the table of all points and the glossary."""
    blocks: list[Block] = []
    others = [point for point in facts.points if not runs_transactions(point)]
    if others:
        blocks.append(_point_table(others))
    if facts.oltp_points:
        blocks.append(_transaction_table(facts.oltp_points))
    if not blocks:
        blocks.append(Paragraph("No point has been measured."))
    left_out = SEARCH_WORDS if facts.verifies else IO_WORDS if facts.oltp_points and not others else set()
    words = [*OLTP_WORDS] if facts.oltp_points else []
    words += [entry for entry in GLOSSARY if entry[0] not in left_out]
    words += INTEGRITY_WORDS if facts.integrity is not None else []
    blocks += [Heading("Words"), Facts("glossary", words)]
    return Section("points", "Every point", blocks, wide=True)


def _point_table(points: list[Record]) -> Table:
    columns = [
        Column("Point", weight=0.85), Column("Workload", weight=2.5), Column("Load", weight=1.25),
        Column("Side", weight=0.65),
        *(Column(name, number=True, weight=0.9) for name in
          ("IOPS", "MiB/s", "MB/s", "Mean", "p50", "p99", "p99.9", "Max")),
        Column("Steady", weight=0.85), Column("Errors", number=True, weight=0.75), Column("Limits", weight=2.3),
    ]  # fmt: skip
    rows = [row for point in points for row in _rows(point)]
    caption = "Points in the order they ended, reads and writes apart."
    return Table("points-table", caption, columns, rows, dense=True)


def _transaction_table(points: list[Record]) -> Table:
    columns = [
        Column("Point", weight=0.85), Column("Workload", weight=1.6), Column("Load", weight=1.3),
        *(Column(name, number=True, weight=0.95) for name in
          ("NOPM", "TPM", "p50", "p90", "p99", "Max", "Retried", "Server CPU", "Log flush")),
        Column("Steady", weight=0.85), Column("Failed", number=True, weight=0.75), Column("Limits", weight=2.6),
    ]  # fmt: skip
    rows = []
    for point in points:
        found, point_id = point["oltp"], str(point.get("id") or DASH)
        new_order, storage = found["by_transaction"].get("new_order"), found["storage"] or {}
        retried = sum(record.get("retried") or 0 for record in found["by_transaction"].values())
        flush_ns = storage.get("log_flush_latency_mean_ns")
        rows.append(
            [
                Cell(point_id, anchor=point_id),
                Cell(shorten(workload_label(point["workload"]), 40)),
                Cell(load_label(point["load"])),
                *(Cell(DASH if found.get(key) is None else f"{found[key]:,.0f}") for key in ("nopm", "tpm_client")),
                *(Cell(latency_text(new_order, name)) for name in ("p50", "p90", "p99", "max")),
                Cell(f"{retried:,}"),
                Cell(percent(storage.get("server_cpu_share"))),
                Cell(DASH if flush_ns is None else format_latency(flush_ns)),
                _steady(point, 1),
                _errors(point, 1),
                _limits(point, 1),
            ]
        )
    caption = "Points of transactions in the order they ended; response times of new orders."
    return Table("oltp-points", caption, columns, rows, dense=True)


def _rows(point: Record) -> list[list[Cell]]:
    sides = [name for name in ("read", "write") if point.get(name)] or ["read"]
    span = len(sides)
    point_id = str(point.get("id") or DASH)
    workload = shorten(workload_label(point.get("workload") or {}), 60)
    first = [
        Cell(point_id, rowspan=span, anchor=point_id),
        Cell(workload, rowspan=span),
        Cell(load_label(point.get("load") or {}), rowspan=span),
    ]
    last = [_steady(point, span), _errors(point, span), _limits(point, span)]
    rows = []
    for place, side in enumerate(sides):
        measured = point.get(side)
        cells = [Cell(side if measured else DASH), Cell(iops_text(measured))]
        cells += [Cell(text) for text in throughput_texts((measured or {}).get("bytes_per_s"))]
        cells += [Cell(latency_text(measured, name)) for name in ("mean", "p50", "p99", "p99_9", "max")]
        rows.append([*first, *cells, *last] if place == 0 else cells)
    return rows


def _steady(point: Record, span: int) -> Cell:
    words: dict[object, tuple[str, Tone]] = {True: ("yes", "plain"), False: ("no", "warn")}
    text, tone = words.get((point.get("steady") or {}).get("reached"), (DASH, "quiet"))
    if wrong := generator_words(point):
        text, tone = f"{text}; {wrong}", "warn"
    return Cell(text, tone, rowspan=span)


def _errors(point: Record, span: int) -> Cell:
    count = (point.get("errors") or {}).get("count")
    return Cell(DASH if count is None else f"{count:,}", "bad" if count else "plain", rowspan=span)


SCOPES_MOST = 3
"""A limit that more volumes miss is named once, with their number."""


def _limits(point: Record, span: int) -> Cell:
    limits = point.get("limits") or []
    scopes: dict[str, list[str]] = {}
    for limit in limits:
        if limit.get("met") is False:
            scopes.setdefault(limit_text(limit.get("limit")), []).append(shorten(str(limit.get("scope") or ""), 30))
    missed = [
        f"{limit} on {len(where)} volumes" if len(where) > SCOPES_MOST else f"{scope} {limit}".strip()
        for limit, where in scopes.items()
        for scope in (where[:1] if len(where) > SCOPES_MOST else where)
    ]
    met = sum(limit.get("met") is True for limit in limits)
    if missed:
        return Cell("missed: " + "; ".join(missed), "bad", rowspan=span)
    if met:
        return Cell("met", "good", rowspan=span)
    return Cell("not judged" if limits else DASH, "quiet", rowspan=span)
