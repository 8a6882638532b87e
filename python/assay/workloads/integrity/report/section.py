"""Integrity: whether the data came back right, what was found, and how the I/O of each file went."""

from __future__ import annotations

from typing import Literal

from assay.base.units import format_bytes, format_duration
from assay.document.elements import Block, Cell, Column, FactList, FigureElement, Heading, Paragraph, Section, Table
from assay.document.text import DASH, shorten
from assay.record.source import RunFacts
from assay.workloads.integrity.report.charts import TIME_WIDTH, FoundAt, PhaseBand, findings_timeline
from assay.workloads.integrity.report.faults import (
    CACHES,
    FAILED_IO,
    FAULTS,
    caveat,
    counted,
    extent,
    fault_of,
    gravest_text,
    headline,
    severity,
)
from assay.workloads.integrity.report.findings import finding_blocks, lasting, operation_text, word
from assay.workloads.integrity.report.told import KIND, integrity_of
from assay.workloads.integrity.shapes import Integrity, Phase, VerifiedFile

MAX_PLACES = 6

PAGES: tuple[Literal["pages_verified"], Literal["pages_written"]] = ("pages_verified", "pages_written")


def integrity_section(facts: RunFacts) -> Section | None:
    """Build the section on integrity; None when the run verified nothing."""
    found = integrity_of(facts)
    if found is None:
        return None
    # The summary says the result, the gravest finding and that power was not cut; in an examination it is far away.
    text, tone = headline(found, caveat(facts))
    is_alone = facts.kind == KIND
    blocks: list[Block] = [] if is_alone else [Paragraph(text, strong=True, tone=tone)]
    blocks.append(Paragraph(extent(facts)))
    blocks += [Paragraph(gravest)] if not is_alone and (gravest := gravest_text(found)) else []
    blocks += [Paragraph(CACHES), _fault_table(found)]
    timeline = _timeline(facts, found)
    blocks += [timeline] if timeline else []
    if phases := found["phases"]:
        blocks.append(_phase_table(phases))
    blocks.append(FactList("integrity-facts", _facts(found)))
    blocks += finding_blocks(found, facts.manifest.get("started_utc_ns"))
    if files := found["files"]:
        blocks += [Heading("Files"), _file_table(files)]
    if found["understood"]:
        blocks += [Heading("What the configuration asked for"), FactList("understood", _understood(found))]
    # A run that only verifies is decided by this; beside measurements it comes last.
    return Section("integrity", "Integrity", blocks, place="answer" if is_alone else "appendix")


def _fault_table(found: Integrity) -> Table:
    sources = [("Persistent", found["persistent"] or {}), ("Transient", found["transient"] or {})]
    own = [("Injected", found["injected"]), ("Observable", found["observable"]), ("Masked", found["masked"])]
    faulty = [(title, counts) for title, counts in own if counts is not None]
    columns = [Column("Name", weight=2.1)]
    columns += [Column(title, number=True, weight=1.35) for title in ("Found", *(name for name, _ in sources + faulty))]
    columns.append(Column("Meaning", weight=5.0))
    names = sorted({**FAULTS, **found["findings"]}, key=severity)
    rows = []
    for name in names:
        count = found["findings"].get(name, 0)
        missed = faulty and count != (found.get("observable") or {}).get(name, 0)
        cells = [Cell(fault_of(name).title), Cell(f"{count:,}", "bad" if count or missed else "plain")]
        cells += [_number(counts.get(name, 0)) for _, counts in sources + faulty]
        rows.append([*cells, Cell(fault_of(name).meaning)])
    caption = "What was looked for and what was found, the gravest first."
    if faulty:
        caption += " Injected: by the target itself; of these, observable ones must be found, masked ones cannot be."
    return Table("faults", caption, columns, rows)


def _number(count: int) -> Cell:
    return Cell(f"{count:,}", "plain" if count else "quiet")


def _facts(found: Integrity) -> list[tuple[str, str]]:
    size = found.get("expected_state_bytes")
    stopped, evidence = found.get("stopped_on_error"), found.get("evidence") and found["details"]
    items = [
        *((fault.many[:1].upper() + fault.many[1:], _io_line(found, name)) for name, fault in FAILED_IO.items()),
        ("Cycles", _count(found.get("cycles"))),
        ("Log blocks", _count(found.get("log_blocks"))),
        ("Resizes of files", _count(found.get("resizes"))),
        ("Expected state", f"{format_bytes(size)} of memory" if size else ""),
        ("Stopped early", "yes, at the first finding, as asked" if stopped else ""),
        ("Seed", str(found["seed"]) if found.get("seed") is not None else ""),
        ("Identity of the run", str(found.get("run_identity") or "")),
        ("Evidence", f"{word(found['evidence'])}/ in the run's folder" if evidence else ""),
        ("Error log", f"{word(found['error_log'])}, in SQLIOSim's form" if found.get("error_log") else ""),
    ]
    return [(name, value) for name, value in items if value]


def _io_line(found: Integrity, name: str) -> str:
    """Count of a fault of I/Os, what lasted, and which operations, files and errors the details name."""
    count = found["findings"].get(name, 0)
    if not count:
        return "none"
    details = [detail for detail in found["details"] or () if detail.get("kind") == name]
    places = list(dict.fromkeys(f"{operation_text(detail)} ({word(detail.get('file'), 40)})" for detail in details))
    again = (found["transient"] or {}).get(name, 0)
    repeated = f" ({again:,} succeeded when repeated)" if again and name == "io_error" else ""
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    where = f": {', '.join(places[:MAX_PLACES])}{more}" if places else ""
    return f"{count:,}{repeated}{where}"


def _count(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _phase_table(phases: list[Phase]) -> Table:
    columns = [
        Column("Phase", weight=1.4), Column("Cycle", number=True), Column("Time", number=True, weight=1.4),
        Column("Pages verified", number=True, weight=1.6), Column("per second", number=True, weight=1.3),
        Column("Pages written", number=True, weight=1.6), Column("per second", number=True, weight=1.3),
        Column("Point"),
    ]  # fmt: skip
    rows = []
    for phase in phases:
        seconds, point_id = phase.get("seconds"), phase.get("point_id")
        cells = [
            Cell(str(phase.get("name") or DASH)),
            Cell(_count(phase.get("cycle")) or DASH),
            Cell(DASH if seconds is None else format_duration(seconds)),
        ]
        for key in PAGES:
            rate = _rate(phase, key)
            cells += [Cell(_count(phase.get(key)) or DASH), Cell(DASH if rate is None else f"{rate:,.0f}")]
        rows.append([*cells, Cell(str(point_id or DASH), "quiet", point_id)])
    return Table("phases", "Phases in the order they ran.", columns, rows, dense=True)


def _rate(phase: Phase, key: Literal["pages_verified", "pages_written"]) -> float | None:
    seconds, pages = phase.get("seconds"), phase.get(key)
    return float(pages) / float(seconds) if seconds and pages is not None else None


def _timeline(facts: RunFacts, found: Integrity) -> FigureElement | None:
    phases, start_ns = phase_spans(facts, found["phases"] or [])
    if not phases or start_ns is None:
        return None
    end_s = max(phase["end_s"] for phase in phases)
    timed = [(detail, at_ns) for detail in found["details"] or () if (at_ns := detail.get("found_utc_ns"))]
    rows: list[FoundAt] = [
        {"t_s": min(max((at_ns - start_ns) / 1e9, 0.0), end_s),
         "name": fault_of(detail.get("kind")).one, "lasting": lasting(detail) or "transient"}
        for detail, at_ns in sorted(timed, key=lambda one: severity(one[0].get("kind")))
    ]  # fmt: skip
    chart = findings_timeline(rows, phases, end_s=end_s)
    if chart is None:
        return None
    verified = [phase["verified_per_s"] for phase in phases if phase["verified_per_s"]]
    rates = f" Pages verified per second: {min(verified):,.0f} to {max(verified):,.0f}." if verified else ""
    times = [row["t_s"] for row in rows]
    span = f"{format_duration(min(times))} to {format_duration(max(times))} after the first phase began"
    described = counted(_described(found), FAULTS)
    left = found.get("details_left_out") or 0
    without = f" The {left:,} findings that are not described are not drawn." if left else ""
    caption = "When findings were made, and how many pages each phase verified and wrote per second."
    alternative = f"Findings over time: {described}, {span}.{rates}"
    return FigureElement("findings-timeline", caption + without, alternative, chart)


def _described(found: Integrity) -> dict[str, int]:
    counts: dict[str, int] = {}
    for detail in found["details"] or ():
        if detail.get("found_utc_ns"):
            counts[str(detail.get("kind"))] = counts.get(str(detail.get("kind")), 0) + 1
    return counts


def phase_spans(facts: RunFacts, phases: list[Phase]) -> tuple[list[PhaseBand], int | None]:
    """Rows of `charts.findings_timeline` for the phases, and when the first began (UTC, nanoseconds).

    A phase begins when its point did; one whose point is not known begins where the phase before it ended.
    """
    spans: list[tuple[int, int, Phase]] = []
    for phase in phases:
        point = facts.point(phase.get("point_id"))
        before = spans[-1][1] if spans else facts.manifest.get("started_utc_ns")
        start = (point and point.get("started_utc_ns")) or before
        seconds = phase.get("seconds")
        if start is None or not seconds:
            continue
        spans.append((start, start + round(float(seconds) * 1e9), phase))
    if not spans:
        return [], None
    first, last = min(start for start, _, _ in spans), max(end for _, end, _ in spans)
    cycles = len({phase.get("cycle") for _, _, phase in spans}) > 1
    rows: list[PhaseBand] = []
    for number, (start, end, phase) in enumerate(spans):
        wanted = str(phase.get("name") or "")[:20] + (f" {phase.get('cycle')}" if cycles else "")
        width = (end - start) / (last - first) * TIME_WIDTH
        label = wanted if width >= 5.5 * len(wanted) else ""
        rows.append(
            {"start_s": (start - first) / 1e9, "end_s": (end - first) / 1e9, "label": label, "odd": number % 2 == 1,
             "verified_per_s": _rate(phase, "pages_verified") or 0.0,
             "written_per_s": _rate(phase, "pages_written") or 0.0}
        )  # fmt: skip
    return rows, first


def _file_table(files: list[VerifiedFile]) -> Table:
    columns = [
        Column("File", weight=2.2), Column("Size", number=True, weight=1.2),
        Column("Target (ms)", number=True, weight=1.2), Column("Average (ms)", number=True, weight=1.2),
        *(Column(title, number=True, weight=1.3) for title in ("Throttled", "Reads", "Scatter", "Writes", "Gather")),
        Column("I/O time (s)", number=True, weight=1.2), Column("Slowest (ms)", number=True, weight=1.2),
    ]  # fmt: skip
    rows = []
    for file in files:
        target, average = file.get("target_io_ms"), file.get("average_io_ms")
        slow = target is not None and average is not None and average > target
        name = shorten(str(file.get("name") or file.get("path") or DASH), 50)
        size, busy = file.get("size_bytes"), file.get("io_time_ms")
        rows.append(
            [
                Cell(f"{name} (log)" if file.get("log") else name),
                Cell(DASH if size is None else format_bytes(size)),
                Cell(_milliseconds(target)),
                Cell(_milliseconds(average), "warn" if slow else "plain"),
                *(
                    Cell(_count(count) or DASH)
                    for count in (
                        file.get("throttled"),
                        file.get("reads"),
                        file.get("scatter_reads"),
                        file.get("writes"),
                        file.get("gather_writes"),
                    )
                ),
                Cell(DASH if busy is None else f"{busy / 1e3:,.1f}"),
                Cell(_milliseconds(file.get("slowest_io_ms"))),
            ]
        )
    caption = (
        "I/O of each file. Above the target duration of an I/O fewer are issued (throttled); scatter reads fill and "
        "gather writes empty several buffers at once."
    )
    return Table("files", caption, columns, rows, dense=True)


def _milliseconds(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def _understood(found: Integrity) -> list[tuple[str, str]]:
    """Lines as names and values where they are written so."""
    lines = [line.partition(": ") for line in found["understood"] or ()]
    return [(name, value) if sign and len(name) <= 40 else ("", name + sign + value) for name, sign, value in lines]
