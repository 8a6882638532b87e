"""Transactions: how many a minute, how fast each kind was answered, whether the data are consistent, the search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.base.tables import Record
from assay.base.units import format_bytes, format_duration, format_latency, parse_duration
from assay.document.charts import NINES, LimitLine, SearchRow, figure_or_words, search_curve
from assay.document.elements import Block, Cell, Column, FactList, FigureElement, Heading, Paragraph, Section, Table
from assay.document.limits import limit_text, searched_state
from assay.document.text import DASH, id_range, joined, latency_text, load_label, load_size, percent, shorten
from assay.record.answers import answer_marks
from assay.record.source import RunFacts
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.report.charts import ResponseRow, response_curves
from assay.workloads.transactions.report.transactions import (
    answer_sentence,
    consistency_sentence,
    oltp_answers,
    oltp_of,
    oltp_point,
    oltp_points,
)

FAILED = "transactions failed"
"""What errors of points are called."""


JUDGED = {"pass_mix": "mix", "pass_latency": "response"}
"""What a kind may judge of its transactions, in words."""


def oltp_section(facts: RunFacts, application: Application) -> Section | None:
    """Build the section on transactions; None when the run had nothing to do with them."""
    found = oltp_of(facts, application)
    if not found:
        return None
    point = oltp_point(facts, application)
    blocks: list[Block] = [FactList("oltp-facts", _facts(found, point, application))]
    if found["by_transaction"]:
        blocks.append(_transaction_table(found, point, application))
        blocks += _response_figure(found, application)
    if found.get("gaps"):
        blocks.append(_gap_table(found["gaps"]))
    if found.get("conditions"):
        blocks += [Heading("Consistency"), *_consistency(found["conditions"], application)]
    return Section("oltp", "Transactions", blocks, place="answer")


def _facts(found: Record, point: Record | None, application: Application) -> list[tuple[str, str]]:
    workload = (point or {}).get("workload") or {}
    errors, by_server = found.get("errors") or {}, found.get("tpm_server")
    memory, cpu_ns = found.get("memory_bytes_per_user"), found.get("client_cpu_ns_per_transaction")
    items = [
        ("Point", str(found.get("point_id") or "")),
        ("Workload", _workload_text(workload, application)),
        ("Mix", _mix_text(workload.get("mix"), application)),
        ("Load", _load_text(point, workload) if point else ""),
        ("Started on time", _schedule_text(found.get("schedule"))),
        ("TPM the server counts", f"{by_server:,.0f}, other sessions included" if by_server is not None else ""),
        ("CPU of the load", f"{format_latency(cpu_ns)} a {application.work}" if cpu_ns is not None else ""),
        ("Memory of the load", f"{format_bytes(memory)} a user, threads included" if memory is not None else ""),
        ("Failed", _errors_text(errors)),
        ("Loaded", _loaded_text(found.get("load"))),
    ]  # fmt: skip
    return [(name, value) for name, value in items if value]


def _workload_text(workload: Record, application: Application) -> str:
    if not workload:
        return ""
    drawn = {"deck": "drawn from a deck of cards", "independent": "drawn independently"}.get(
        str(workload.get("draw")), ""
    )
    own = [words.get(str(workload.get(key)), "") for key, words in application.shape.items()]
    mode = {"procedures": "stored procedures", "statements": "single statements"}.get(str(workload.get("mode")), "")
    isolation = workload.get("isolation")
    words = [
        f"preset {shorten(str(workload.get('preset') or workload.get('name') or DASH), 40)}", mode, drawn, *own,
        f"isolation {isolation}" if isolation and isolation != "default" else "",
    ]  # fmt: skip
    return ", ".join(word for word in words if word)


def _mix_text(mix: Any, application: Application) -> str:
    total = sum(weight for weight in mix.values()) if isinstance(mix, Mapping) else 0
    if not total:
        return ""
    shares = (f"{application.within(name)} {percent(weight / total)}" for name, weight in mix.items() if weight)
    return ", ".join(shares)


def _load_text(point: Record, workload: Record) -> str:
    load = point.get("load") or {}
    is_open = load.get("rate") is not None
    users = f", {load['users']:,} users" if is_open and load.get("users") else ""
    scale = workload.get("think_scale")
    think = f", keying and thinking times x {scale:g}" if scale else ", without keying or thinking times"
    loop = "" if not is_open else ", in an open loop: latency counts from when a transaction was due"
    return f"{load_label(load)}{users}{think if not is_open else ''}{loop}"


def _schedule_text(schedule: Record | None) -> str:
    """How many transactions of a schedule, of a rate or of thinking times, began when they should."""
    if not schedule:
        return ""
    return f"{percent(schedule.get('kept_share'))}; p99 late by {format_latency(schedule.get('lag_p99_ns'))}"


def _errors_text(errors: Record) -> str:
    count = errors.get("count")
    if count is None:
        return ""
    kinds = errors.get("kinds") or {}
    listed = ", ".join(f"{name} {number:,}" for name, number in kinds.items() if number)
    example = f"; the first other: {shorten(str(errors['example']), 200)}" if errors.get("example") else ""
    return f"{count:,} transactions{f' ({listed})' if listed else ''}{example}" if count else "none"


def _loaded_text(load: Record | None) -> str:
    if not load or load.get("rows") is None:
        return ""
    seconds, rate, size = load.get("seconds"), load.get("rows_per_s"), load.get("bytes")
    words = [
        f"{load['rows']:,} rows" + (f" ({format_bytes(size)})" if size else ""),
        f"at {rate:,.0f} rows/s," if rate else "",
        f"{format_duration(seconds)} with indexes and writing to storage" if seconds is not None else "",
        "going on with a load that was cut short" if load.get("resumed") else "",
    ]
    return " ".join(word for word in words if word)


def _transaction_table(found: Record, point: Record | None, application: Application) -> Table:
    columns = [
        Column("Transaction", weight=1.7), Column("Count", number=True, weight=1.3),
        Column("per second", number=True, weight=1.1), Column("Share", number=True),
        *(Column(name, number=True, weight=1.15) for name in ("Mean", "p50", "p90", "p99", "Max")),
        Column("Rolled back", number=True, weight=1.1), Column("Retried", number=True), Column("Failed", number=True),
    ]  # fmt: skip
    limits = (point or {}).get("limits") or []
    missed = {str(limit.get("scope")): limit for limit in limits
              if limit.get("met") is False and str(limit.get("limit") or "").startswith("response.")}  # fmt: skip
    by_transaction = found["by_transaction"]
    names = [name for name in application.transactions if name in by_transaction]
    names += [name for name in by_transaction if name not in names]
    total = sum(by_transaction[name].get("count") or 0 for name in names)
    is_judged = any(key in by_transaction[name] for name in names for key in JUDGED)
    columns += [Column("Mix, response", weight=1.4)] if is_judged else []
    rows = []
    for name in names:
        record = by_transaction[name]
        count, per_s = record.get("count") or 0, record.get("per_s")
        cells = [
            Cell(application.shown(name)),
            Cell(f"{count:,}"),
            Cell(DASH if per_s is None else f"{per_s:,.1f}"),
            Cell(percent(count / total) if total else DASH),
        ]
        for statistic in ("mean", "p50", "p90", "p99", "max"):
            is_missed = name in missed and str(missed[name]["limit"]).startswith(f"response.{statistic}")
            cells.append(Cell(latency_text(record, statistic), "bad" if is_missed else "plain"))
        for key, tone in (("rolled_back", "plain"), ("retried", "warn"), ("failed", "bad")):
            number = record.get(key) or 0
            cells.append(Cell(f"{number:,}", tone if number else "quiet"))  # type: ignore[arg-type]
        rows.append([*cells, _judged(record)] if is_judged else cells)
    caption = (
        "Transactions of the window. Response times run from the first attempt's start (with a fixed rate, from when "
        f"it was due) to the answer to the commit, retries included. Rolled back: {application.rolled_back}."
    )
    if is_judged:
        caption += " Mix, response: whether a share is near the one asked for, and a response within its limits."
    return Table("transactions", caption, columns, rows, dense=True)


def _judged(record: Record) -> Cell:
    """Whether a transaction's share and its response are as they should be, where that is known."""
    told = {name: record[key] for key, name in JUDGED.items() if record.get(key) is not None}
    missed = [name for name, passes in told.items() if not passes]
    if missed:
        return Cell(f"{joined(missed)} missed", "bad")
    return Cell("both met" if len(told) == len(JUDGED) else f"{next(iter(told))} met" if told else DASH, "quiet")


def _response_figure(found: Record, application: Application) -> list[Block]:
    by_transaction = found["by_transaction"]
    rows: list[ResponseRow] = []
    for name in application.transactions:
        record = by_transaction.get(name) or {}
        latency, count = record.get("latency_ns") or {}, record.get("count") or 0
        for percentile in (*NINES, "max"):
            known = percentile == "max" or count * (1 - NINES[percentile] / 100) >= 1
            if latency.get(percentile) and known:
                rows.append({"series": application.shown(name), "percentile": percentile,
                             "latency_ns": latency[percentile]})  # fmt: skip
    chart = response_curves(rows)
    if chart is None:
        return []
    told = [
        f"{application.within(name)} {format_latency(by_transaction[name]['latency_ns']['p90'])}"
        for name in application.transactions
        if any(row["percentile"] == "p90" and row["series"] == application.shown(name) for row in rows)
    ]
    caption = (
        "Response time by percentile, of each transaction. Each step to the right leaves ten times fewer slower; "
        "percentiles finer than the count of transactions allows are left out."
    )
    alternative = f"Response time by percentile; p90: {joined(told) or 'too few'}."
    return [FigureElement("responses", caption, alternative, chart, point_id=found.get("point_id"))]


def _gap_table(gaps: list[Record]) -> Table:
    columns = [Column("Database", weight=1.2), Column("Away for", number=True), Column("Why", weight=4.0)]
    rows = []
    for gap in gaps:
        began_ns, ended_ns = gap.get("from_utc_ns"), gap.get("to_utc_ns")
        span = DASH if began_ns is None or ended_ns is None else format_duration((ended_ns - began_ns) / 1e9)
        rows.append(
            [Cell(shorten(str(gap.get("database") or DASH), 40)), Cell(span), Cell(str(gap.get("reason") or DASH))]
        )
    return Table("gaps", "Times in which a server was away; users waited and connected again.", columns, rows)


def _consistency(conditions: list[Record], application: Application) -> list[Block]:
    by_id: dict[int, list[Record]] = {}
    for condition in conditions:
        if isinstance(condition.get("id"), int):
            by_id.setdefault(condition["id"], []).append(condition)
    text, tone = consistency_sentence(conditions)
    columns = [
        Column("No.", number=True, weight=0.5), Column("Condition", weight=4.2), Column("Checked", number=True),
        Column("Violated", number=True), Column("Result", weight=1.1),
    ]  # fmt: skip
    has_examples = tone == "bad"
    columns += [Column("Example", weight=3.0)] if has_examples else []
    rows = []
    for number in range(1, max([application.conditions_count, *by_id]) + 1):
        found = by_id.get(number)
        if not found:
            why = "applies only after loading" if number in application.after_load_only else ""
            rows.append([Cell(str(number)), Cell(why or DASH, "quiet"), *(Cell(DASH, "quiet") for _ in range(2)),
                         Cell("left out", "quiet"), *([Cell("")] if has_examples else [])])  # fmt: skip
            continue
        wrong = [one for one in found if one.get("met") is False]
        example = next((one for one in wrong if one.get("example")), None)
        where = f"{one_name(example)}: {example['example']}" if example else ""
        rows.append(
            [
                Cell(str(number)),
                Cell(shorten(str(found[0].get("title") or DASH), 160)),
                Cell(f"{sum(one.get('checked') or 0 for one in found):,}"),
                Cell(f"{sum(one.get('violations') or 0 for one in found):,}", "bad" if wrong else "plain"),
                Cell("✗ violated", "bad") if wrong else Cell("✓ met", "good"),
                *([Cell(shorten(where, 200))] if has_examples else []),
            ]
        )
    return [Paragraph(text, strong=True, tone=tone), Table("conditions", application.conditions, columns, rows)]


def one_name(record: Record) -> str:
    """Database of a record."""
    return shorten(str(record.get("database") or DASH), 40)


def search_section(facts: RunFacts, application: Application) -> Section | None:
    """Build the section on the search for the most transactions; None when there was none."""
    blocks: list[Block] = []
    for number, answer in enumerate(oltp_answers(facts, application), start=1):
        blocks += _search_blocks(facts, answer, number, application)
    if not blocks:
        return None
    return Section("oltp-search", f"The most {application.work}s within limits", blocks, place="answer")


def _search_blocks(facts: RunFacts, answer: Record, number: int, application: Application) -> list[Block]:
    ids, rate, first = answer.get("point_ids") or [], application.rate, application.first
    points = [
        point
        for point in oltp_points(facts, application)
        if point.get("id") in ids and point["oltp"].get(rate.key) is not None
    ]
    points = sorted(points, key=_load_of)
    said = answer_sentence(answer, application)
    blocks: list[Block] = [Paragraph(said, strong=True)]
    if answer.get("limits"):
        blocks.append(Paragraph(f"Limits: {'; '.join(limit_text(limit) for limit in answer['limits'])}."))
    marks = answer_marks(answer)
    rows: list[SearchRow] = [
        {"load": _load_of(point), "value": point["oltp"][rate.key], "state": searched_state(point, answer, FAILED),
         "latency_ns": ((point["oltp"]["by_transaction"].get(first) or {}).get("latency_ns") or {}).get("p90"),
         "mark": marks.get(point.get("id"), ""), "point_id": point["id"]}
        for point in points
    ]  # fmt: skip
    title = {"rate": "transactions asked for per second"}.get(str(answer.get("axis")), "users")
    limits = _response_limits(answer)
    chart = search_curve(rows, title, rate.full, latency_title=f"{application.first_plural}, p90", limits=limits)
    if not rows:
        return blocks
    traced = id_range(point.get("id") for point in points)
    caption = (
        f"{rate.full[0].upper()}{rate.full[1:]} and their p90 over {title}. Rings mark the most, the"
        " knee and the edge; where a load was "
        f"measured again the line is the median and the bar the range. Points {traced}."
    )
    ends = [f"{rate.words(row['value'])} at {row['load']:g} {title}" for row in (rows[0], rows[-1])]
    alternative = f"{rate.full[0].upper()}{rate.full[1:]} over {title}: from {ends[0]} to {ends[1]}. {said}"
    return [*blocks, figure_or_words(f"oltp-search-{number}", caption, alternative, chart)]


def _load_of(point: Record) -> float:
    return load_size(point.get("load") or {})


def _response_limits(answer: Record) -> list[LimitLine]:
    """Limits on the p90 of responses, which the figure can show."""
    shown: list[LimitLine] = []
    for text in answer.get("limits") or []:
        name, sign, value = str(text).partition("<")
        if name == "response.p90" and sign:
            latency_ns = float(parse_duration(value.removeprefix("=")))
            shown.append({"latency_ns": latency_ns, "limit": f"limit {format_latency(latency_ns)}"})
    return shown
