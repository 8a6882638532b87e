"""The page of a contract: the verdict clause by clause, minutes in breach, the worst hours, what cannot be judged."""

from __future__ import annotations

from collections.abc import Iterator

from assay.base.units import format_bytes, format_duration, format_iops, format_latency, format_share, format_throughput
from assay.document.elements import (
    Block,
    Bullets,
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
from assay.document.first_use import explained
from assay.document.text import DASH, joined, moment, percent, sentence, shorten
from assay.insight.contracts.document import hour_record, verdict_sentence
from assay.insight.contracts.judge import JudgedClause, JudgedContract
from assay.insight.contracts.latency import JudgedSpan, LatencyJudge, Minutes
from assay.insight.contracts.words import assumption_words, exclusion_words
from assay.report.clauses import TONES, clauses_table
from assay.report.figures_contract import DayRow, days_chart

NOTICES_SHOWN = 20


def contract_document(judged: JudgedContract, version: str) -> Document:
    """The document of a judged contract."""
    contract = judged.contract
    blocks: list[Block] = [
        Paragraph(verdict_sentence(judged.clauses), strong=True, tone=TONES[judged.met]),
        clauses_table(judged.clauses),
        FactList("contract", _facts(judged)),
    ]
    sections = [Section("verdict", "Verdict", blocks, wide=True)]
    for number, clause in enumerate(judged.clauses):
        if clause.latency is not None:
            sections.append(Section(f"clause-{number}", f"Clause: {clause.name}", list(_latency(number, clause))))
    if unknown := [f"{one.name}: {one.why}." for one in judged.clauses if one.met is None]:
        sections.append(Section("unknown", "What cannot be judged from what was recorded", [Bullets(unknown)]))
    sections.append(Section("counts", "How it was judged", [Bullets(_method(judged))]))
    if judged.notices:
        notices = [Notice(sentence(text)) for text in judged.notices[:NOTICES_SHOWN]]
        sections.append(Section("notices", "Notes of the recording", [Notices(notices)]))
    span = f"{moment(judged.begin_ns)} to {moment(judged.end_ns)}"
    return Document(
        title=contract.title, facts_line=f"{span} · {judged.judged.host}", sections=explained(sections),
        footer=f"Assay {version}", version=version,
    )  # fmt: skip


def _facts(judged: JudgedContract) -> list[tuple[str, str]]:
    contract = judged.contract
    facts = [("vendor", contract.vendor), ("reference", contract.reference), ("recording", judged.source)]
    facts.append(("devices", shorten(", ".join(judged.judged.devices), 200)))
    facts.append(("time that counts", format_duration(judged.total_ns / 1e9)))
    facts.append(("of it not recorded", format_duration(judged.unrecorded_ns / 1e9)))
    facts.append(("maintenance", format_duration(judged.excluded_ns / 1e9)))
    return [(name, value) for name, value in facts if value]


def _latency(number: int, clause: JudgedClause) -> Iterator[Block]:
    judge = clause.latency
    assert judge is not None
    yield Paragraph(f"Promised: {clause.promise}.")
    yield Paragraph(f"Found: {clause.found}.", strong=True, tone=TONES[clause.met])
    if judge.clause.allowed:
        left = minutes_words(judge.left_minutes())
        yield Paragraph(f"Left of the time in breach that the contract allows: {'none' if left == DASH else left}.")
    chart = days_chart(_day_rows(judge))
    if chart is not None:
        caption = "Hours of each day that keep the clause, break it, cannot be judged, or do not count; days are UTC."
        yield FigureElement(f"days-{number}", caption, clause.found, chart)
    yield months_table(f"months-{number}", judge)
    yield reasons_table(f"reasons-{number}", judge.minutes)
    if judge.worst():
        yield worst_table(f"worst-{number}", judge)
    elif clause.met is not None:
        yield Paragraph("No hour is above the limit.")


def _day_rows(judge: LatencyJudge) -> list[DayRow]:
    rows: list[DayRow] = []
    for day in judge.days.values():
        minutes = day.minutes
        for state, value in (
            ("in breach", minutes.missed), ("unknown", minutes.unknown_sum), ("met", minutes.met),
            ("does not count", minutes.excluded_sum),
        ):  # fmt: skip
            rows.append({"day_ms": day.begin_ns / 1e6, "state": state, "hours": value / 60})
    return rows


def months_table(name: str, judge: LatencyJudge) -> Table:
    """Minutes and the statistic of each month."""
    statistic = judge.clause.statistic
    columns = [
        Column("month"),
        *(Column(title, number=True) for title in ("counted", "in breach", "unknown", "not counted", statistic)),
    ]
    rows = [_month_cells(one, statistic) for one in judge.months.values()]
    caption = f"Months in UTC; the {statistic} is of all I/Os of the month that count, from merged histograms."
    return Table(name, caption, columns, rows)


def _month_cells(one: JudgedSpan, statistic: str) -> list[Cell]:
    minutes = one.minutes
    value_ns = one.times.value_ns(statistic)
    breached = minutes_words(minutes.missed) if minutes.missed else DASH
    return [
        Cell(moment(one.begin_ns)[:7]), Cell(minutes_words(minutes.counted)),
        Cell(breached, "bad" if minutes.missed else "plain"), Cell(minutes_words(minutes.unknown_sum)),
        Cell(minutes_words(minutes.excluded_sum)), Cell(DASH if value_ns is None else format_latency(value_ns)),
    ]  # fmt: skip


def reasons_table(name: str, minutes: Minutes) -> Table:
    """Minutes that do not count or cannot be judged, by reason."""
    rows = [[Cell("met"), Cell(DASH), Cell(minutes_words(minutes.met))]]
    rows.append([Cell("in breach"), Cell(DASH), Cell(minutes_words(minutes.missed))])
    for state, reasons in (("unknown", minutes.unknown), ("does not count", minutes.excluded)):
        for why, value in sorted(reasons.items(), key=lambda one: -one[1]):
            rows.append([Cell(state), Cell(why), Cell(minutes_words(value))])
    columns = [Column("minutes that are", weight=0.8), Column("because", weight=2.5), Column("time", number=True)]
    return Table(name, "All recorded minutes of the clause.", columns, rows)


def worst_table(name: str, judge: LatencyJudge) -> Table:
    """The worst hours, with what was asked of the storage in them."""
    statistic = judge.clause.statistic
    titles = ("in breach", statistic, "IOPS", "reads", "mean I/O", "throughput")
    columns = [Column("hour from, UTC", weight=1.4), *(Column(title, number=True) for title in titles)]
    rows = []
    for hour in judge.worst():
        one = hour_record(hour)
        block = one["block_bytes"]
        rows.append(
            [Cell(moment(hour.begin_ns)[:16]), Cell(minutes_words(hour.missed), "bad" if hour.missed else "plain"),
             Cell(format_latency(hour.value_ns)), Cell(format_iops(one["iops"])), Cell(percent(one["read_share"])),
             Cell(DASH if block is None else format_bytes(block)), Cell(format_throughput(one["bytes_per_s"]))]
        )  # fmt: skip
    caption = f"The worst hours by minutes in breach, then by {statistic}; load and mix of the intervals that count."
    return Table(name, caption, columns, rows)


def minutes_words(minutes: float) -> str:
    """Minutes for people; days where they are many.

    Examples
    --------
    >>> minutes_words(0.0), minutes_words(61.0), minutes_words(4000.0)
    ('-', '1 h 1 min', '2 d 19 h')
    """
    if not minutes:
        return DASH
    if minutes < 48 * 60:
        return format_duration(minutes * 60)
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24} h"


def _method(judged: JudgedContract) -> list[str]:
    contract = judged.contract
    interval = contract.interval.replace("min", " min")
    found = [
        f"The recording is judged in intervals of {interval}; an interval counts or does not as a whole, by its mean"
        " load.",
        "Times of I/Os are those in the devices, from the recorder's histograms (record --latencies), merged and never"
        " averaged. Waiting in the host is not the storage's. A limit that lies within a bucket of the histogram is"
        " judged where the I/Os in that bucket do not matter, and is unknown elsewhere.",
        f"The promised devices are judged together: {joined(judged.judged.devices[:8])}.",
    ]
    if contract.availability is not None:
        found.append("The storage counts as not available while I/Os were outstanding and none ended.")
    found += exclusion_words(contract) + assumption_words(contract)
    lacking = judged.unrecorded_ns / judged.total_ns if judged.total_ns else 0.0
    found.append(f"{format_share(lacking, 1)} of the time was not recorded; nothing is said of it.")
    return found
