"""Queries: scores, times, what each read, whether the answers are right."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.tables import Record
from assay.base.units import count_of, format_bytes, format_duration, format_latency, format_throughput
from assay.document.elements import Block, Cell, Column, FactList, FigureElement, Heading, Paragraph, Section, Table
from assay.document.text import DASH, id_range, joined, percent, shorten
from assay.record.source import RunFacts
from assay.workloads.tpch.report.charts import QueryTime, query_bars
from assay.workloads.tpch.report.points import mean_seconds, points_of, variants, waits_for

VARIANTS_MAX = 6
"""What fits beside each other in a figure."""


def tpch_section(facts: RunFacts) -> Section | None:
    """Build the section on queries; None when the run had nothing to do with them."""
    told, points = facts.told("dss") or {}, points_of(facts)
    if not told and not points:
        return None
    names = variants(facts, points)
    blocks: list[Block] = [FactList("tpch-facts", _facts(told, points))]
    if points:
        blocks.append(_tests(points, names))
        figure = times_figure([(names[str(point["id"])], point) for point in points])
        blocks += [figure] if figure is not None else []
    for point in points:
        if point["dss"].get("test") == "power" and point["dss"].get("queries"):
            blocks.append(_queries(point, names[str(point["id"])]))
    blocks += _tables(points, names)
    if told.get("answers") or told.get("rows"):
        blocks += [Heading("Answers"), *_answers(told)]
    return Section("dss", "Queries", blocks, place="answer")


def _facts(told: Record, points: Sequence[Record]) -> list[tuple[str, str]]:
    load, first = told.get("load") or {}, (points[0]["dss"] if points else {})
    workload = points[0].get("workload") or {} if points else {}
    scale = told.get("scale") or first.get("scale")
    composite, runs = told.get("composite"), told.get("runs") or []
    loaded = ""
    if load.get("rows") is not None:
        loaded = (
            f"{load['rows']:,} rows ({format_bytes(load.get('bytes') or 0)}) at {load.get('rows_per_s') or 0:,.0f}"
            f" rows/s, {format_duration(load.get('seconds') or 0)} with indexes and writing to storage"
        )
    left = first.get("not_dropped") or []
    cache = str(workload.get("cache") or "")
    items = [
        ("Scale", f"{scale:g}: about {format_bytes(scale * 1e9)} of rows" if scale else ""),
        ("Power score", _score(told.get("power"))),
        ("Throughput score", _score(told.get("throughput"))),
        ("Composite queries/hour score", _score(composite)),
        ("Runs", f"{len(runs)}; scores are those of the lowest" if len(runs) > 1 else ""),
        ("Caches", f"{cache}{f'; not dropped: {joined(left)}' if left else ''}"),
        ("Loaded", loaded),
    ]
    return [(name, value) for name, value in items if value]


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} (queries per hour times the scale; no published TPC result)"


def _tests(points: Sequence[Record], names: dict[str, str]) -> Table:
    columns = [
        Column("Point", weight=0.7), Column("Test", weight=2.2), Column("Queries", number=True),
        Column("Time", number=True), Column("Score", number=True), Column("Read", number=True, weight=1.2),
        Column("I/O size", number=True), Column("Latency", number=True), Column("Server CPU", number=True),
        Column("Refresh", number=True),
    ]  # fmt: skip
    rows = []
    for point in points:
        dss = point["dss"]
        queries = dss.get("queries") or []
        done = sum(query["ended_by"] == "done" for query in queries)
        score = dss.get("power") if dss.get("test") == "power" else dss.get("throughput")
        read = ((point.get("roles") or {}).get("data") or {}).get("read") or {}
        size = read["bytes_per_s"] / read["iops"] if read.get("iops") else None
        latency = (read.get("latency_ns") or {}).get("mean")
        refresh = dss.get("refresh") or []
        rows.append(
            [
                Cell(str(point.get("id")), anchor=str(point.get("id"))),
                Cell(names[str(point["id"])]),
                Cell(f"{done} of {len(queries)}", tone="plain" if done == len(queries) else "bad"),
                Cell(format_duration(dss.get("completion_s") or 0)),
                Cell(DASH if score is None else f"{score:,.1f}"),
                Cell(format_throughput(read["bytes_per_s"]) if read.get("bytes_per_s") else DASH),
                Cell(DASH if size is None else format_bytes(size)),
                Cell(DASH if latency is None else format_latency(latency)),
                Cell(percent((dss.get("storage") or {}).get("server_cpu_share"))),
                Cell(format_duration(sum(one["seconds"] for one in refresh)) if refresh else DASH),
            ]
        )
    caption = "Tests in the order they ended: reads are those of the data's devices, else as the server counts them."
    return Table("tpch-tests", caption, columns, rows, dense=True)


def times_figure(named: Sequence[tuple[str, Record]], name: str = "tpch-times") -> FigureElement | None:
    """Times of the queries side by side, a colour a variant; means where streams ran a query several times."""
    shown = [(variant, point) for variant, point in named if mean_seconds(point)][:VARIANTS_MAX]
    rows: list[QueryTime] = [
        {"query": number, "seconds": seconds, "variant": variant, "point_id": str(point.get("id"))}
        for variant, point in shown
        for number, seconds in mean_seconds(point).items()
    ]
    if not rows:
        return None
    told = joined(
        f"{variant}: {format_duration(sum(mean_seconds(point).values()))} for all, query"
        f" {max(mean_seconds(point), key=mean_seconds(point).__getitem__)} the slowest"
        for variant, point in shown
    )
    caption = (
        "Time of each query; with several streams, the mean over them. Points"
        f" {id_range(str(point.get('id')) for _, point in shown)}."
    )
    return FigureElement(name, caption, f"{told}.", query_bars(rows))


def _queries(point: Record, name: str) -> Table:
    columns = [
        Column("Query", number=True, weight=0.7), Column("Time", number=True), Column("Rows", number=True),
        Column("Read of files", number=True, weight=1.2), Column("Spilled", number=True),
        Column("Device", number=True, weight=1.2), Column("I/O size", number=True), Column("Latency", number=True),
        Column("Queue", number=True), Column("CPU", number=True), Column("Mostly", weight=1.6),
    ]  # fmt: skip

    def amount(value: float | None) -> str:
        return DASH if value is None else format_bytes(value)

    rows = []
    for query in sorted(point["dss"]["queries"], key=lambda one: -one["seconds"]):
        latency, rate, queue = (query.get(key) for key in ("read_latency_mean_ns", "read_bytes_per_s", "device_queue"))
        failed = query["ended_by"] != "done"
        rows.append(
            [
                Cell(str(query["query"])),
                Cell(f"{query['seconds']:.3g} s", tone="bad" if failed else "plain"),
                Cell(query["ended_by"] if failed else f"{query['rows'] or 0:,}"),
                Cell(amount(query.get("bytes_read"))),
                Cell(amount(query.get("temp_bytes"))),
                Cell(DASH if rate is None else format_throughput(rate)),
                Cell(amount(query.get("read_size_mean_bytes"))),
                Cell(DASH if latency is None else format_latency(latency)),
                Cell(DASH if queue is None else f"{queue:.1f}"),
                Cell(percent(query.get("cpu_share"))),
                Cell(shorten(str(query["error"]), 60) if query.get("error") else waits_for(query) or DASH),
            ]
        )
    caption = (
        f"Queries of the {name} test, slowest first. Read of files: what the server asked the system for, its cache"
        " included; device: what reached storage, of queries of a second or more. A query waits for reads where half an"
        " I/O or more was outstanding on average."
    )
    return Table("tpch-queries", caption, columns, rows, dense=True).known(DASH)


def _tables(points: Sequence[Record], names: dict[str, str]) -> list[Block]:
    """Shares of the tables in what was read: which to partition, or to keep by columns."""
    blocks: list[Block] = []
    counted = [point for point in points if any(table.get("share") for table in point["dss"].get("tables") or [])]
    if not counted:
        return blocks
    columns = [Column("Test", weight=2), Column("Table", weight=1.2), Column("Read", number=True),
               Column("Share", number=True), Column("Pages asked for", number=True, weight=1.3)]  # fmt: skip
    rows = []
    for point in counted:
        for table in point["dss"]["tables"]:
            requests = table.get("page_requests_count")
            if not table.get("read_bytes"):
                continue
            rows.append(
                [
                    Cell(names[str(point["id"])]),
                    Cell(str(table.get("table"))),
                    Cell(format_bytes(table["read_bytes"] or 0)),
                    Cell(percent(table.get("share"))),
                    Cell(DASH if requests is None else f"{requests:,.0f}"),
                ]
            )
    first = counted[0]["dss"]["tables"][0]
    text = f"{first['table']} is most of what was read, {percent(first['share'])}: the table to partition first."
    return [
        Paragraph(text),
        Table("tpch-tables", "Bytes read of each table and its indexes.", columns, rows, dense=True),
    ]


def _answers(told: Record) -> list[Block]:
    answers, counted = told.get("answers") or [], told.get("rows") or []
    wrong = [one for one in answers if not one["met"]]
    blocks: list[Block] = []
    if answers:
        against = joined(sorted({str(one["against"]) for one in answers}))
        queries = {one["query"] for one in answers}
        text = f"{len(queries)} queries compared with {against}: "
        text += "all answers are the same." if not wrong else f"{count_of(len(wrong), 'answer')} differ."
        blocks.append(Paragraph(text, strong=True, tone="bad" if wrong else "good"))
    if wrong:
        columns = [Column("Query", number=True, weight=0.5), Column("Database"), Column("Against"),
                   Column("Difference", weight=4)]  # fmt: skip
        rows = [
            [Cell(str(one["query"])), Cell(str(one["database"])), Cell(str(one["against"])),
             Cell(shorten(str(one["difference"]), 200), tone="bad")]
            for one in wrong
        ]  # fmt: skip
        blocks.append(Table("tpch-answers", "Answers that differ.", columns, rows, dense=True))
    if counted:
        columns = [Column("Database"), Column("Table"), Column("Rows", number=True), Column("Expected", number=True)]
        rows = [
            [Cell(str(one["database"])), Cell(str(one["table"])),
             Cell(f"{one['count']:,}", tone="plain" if one["met"] else "bad"),
             Cell(DASH if one.get("expected") is None else f"{one['expected']:,}")]
            for one in counted
        ]  # fmt: skip
        blocks.append(Table("tpch-rows", "Rows of the tables.", columns, rows, dense=True))
    return blocks
