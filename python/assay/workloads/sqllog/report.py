"""What a reader sees of a replayed log: how it ran, what became slower, what failed in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from assay.base.units import count_of, format_duration, format_latency
from assay.document.elements import Block, Cell, Column, FactList, Paragraph, Section, Table
from assay.document.text import DASH, load_label, percent, shorten
from assay.workloads.sqllog.application import KIND
from assay.workloads.sqllog.shapes import LogReplayed, StatementCompared, StatementsDone, done_of

if TYPE_CHECKING:
    from assay.record.shapes.point import Point
    from assay.record.source import RunFacts

SHOWN_MAX = 40
"""Statements in the table of a report; the JSON document has up to 200."""

TEXT_MAX = 160

TONES: dict[str, Literal["good", "bad", "plain"]] = {"slower": "bad", "faster": "good"}


def statements_section(facts: RunFacts) -> Section | None:
    """The section on what was replayed; None where nothing was."""
    points = [point for point in facts.points_of(KIND) if done_of(point)]
    if not points:
        return None
    points.sort(key=lambda point: done_of(point).get("speed") or 0.0)
    # Of a search the first speed compares with the log; the others have a load of their own.
    done = done_of(points[0])
    blocks: list[Block] = [Paragraph(headline(done), strong=True), FactList("statements-facts", _facts(done))]
    if done.get("compared"):
        blocks += [Paragraph(changes_sentence(done)), _compared_table(done)]
    if done.get("different"):
        blocks.append(_different_table(done))
    if (done.get("log") or {}).get("left_out") or done.get("refused_writes"):
        blocks.append(_left_out_table(done))
    blocks.append(_points_table(points))
    return Section("statements", "What was replayed", blocks, place="answer")


def headline(done: StatementsDone) -> str:
    """What was replayed, in a sentence."""
    log: LogReplayed = done.get("log") or {}
    text = (
        f"{done.get('done') or 0:,} of {count_of(log.get('statements') or 0, 'statement')} of"
        f" {count_of(log.get('sessions') or 0, 'session')} ran at speed {done.get('speed') or 1:g}"
    )
    if unfinished := done.get("unfinished"):
        text += f"; {unfinished:,} were due and had not begun when the time of the log was over"
    if done.get("is_replay") is False:
        text += "; statements began too late for this to be called a replay"
    return f"{text}."


def changes_sentence(done: StatementsDone) -> str:
    """How many statements became slower, and which most of all."""
    found = done.get("compared") or []
    timed = [one for one in found if one.get("times") is not None]
    if not timed:
        return "The log tells no response times: there is nothing to compare those of the replay with."
    counted = {
        change: [one for one in timed if one.get("change") == change] for change in ("slower", "faster", "alike")
    }
    words = ", ".join(f"{len(own)} {change}" for change, own in counted.items())
    undecided = len(timed) - sum(map(len, counted.values()))
    text = f"Of {count_of(len(timed), 'kind')} of statements {words}, {undecided} undecided."
    if slower := counted["slower"]:
        worst = max(slower, key=_added_ns)
        text += f" Most time is added by: {shorten(str(worst.get('text')), 80)} ({times_words(worst)})."
    return text


def _added_ns(one: StatementCompared) -> float:
    """Time that all its statements together took more in the replay."""
    recorded = one.get("recorded_ns") or {}
    return ((one.get("times") or 1.0) - 1.0) * (recorded.get("mean") or 0.0) * (recorded.get("count") or 0)


def times_words(one: StatementCompared) -> str:
    """Times as slow, with the interval."""
    times, interval = one.get("times"), one.get("interval_95")
    if times is None:
        return DASH
    if not interval:
        return f"{times:.3g} times"
    return f"{times:.3g} times, {interval[0]:.3g} to {interval[1]:.3g}"


def lateness_words(done: StatementsDone) -> str:
    """How late statements began, in words; empty where none did begin."""
    late = done.get("lateness") or {}
    count = late.get("count")
    if not count:
        return ""
    words = (
        f"{format_latency(late.get('p50_ns') or 0)} at p50, {format_latency(late.get('p99_ns') or 0)} at p99,"
        f" {format_latency(late.get('max_ns') or 0)} at most"
    )
    held = late.get("held_count") or 0
    return f"{words}; {percent(held / count)} waited for the statement before" if held else words


def _facts(done: StatementsDone) -> list[tuple[str, str]]:
    log: LogReplayed = done.get("log") or {}
    items = [
        ("Log", f"{', '.join(log.get('names') or [])} ({', '.join(log.get('formats') or [])})"),
        ("Lasts", format_duration(log.get("seconds") or 0.0)),
        ("Sessions at once", f"{log.get('sessions_most') or 0:,} at most"),
        ("Database in the log", str(log.get("database") or "")),
        ("Recorded response", _recorded_words(log)),
        ("Way to the server and back", _trip_words(done)),
        ("Started late by", lateness_words(done)),
        ("Failed as in the log", f"{done['failed_alike']:,}" if done.get("failed_alike") else ""),
        ("Not run", _lost_words(done)),
        ("Not understood", _unknown_words(log)),
    ]
    return [(name, value) for name, value in items if value]


def _recorded_words(log: LogReplayed) -> str:
    recorded = log.get("recorded_ns") or {}
    if recorded.get("mean") is None:
        return ""
    mean, p95, p99 = recorded["mean"], recorded.get("p95"), recorded.get("p99")
    return f"{format_latency(mean)} on average, p95 {format_latency(p95 or 0)}, p99 {format_latency(p99 or 0)}"


def _trip_words(done: StatementsDone) -> str:
    trip_ns = done.get("round_trip_ns")
    return f"{format_latency(trip_ns)}, taken off the times that are compared" if trip_ns else ""


def _lost_words(done: StatementsDone) -> str:
    if not done.get("lost"):
        return ""
    sessions = count_of(done.get("sessions_lost") or 0, "session")
    return f"{done['lost']:,} statements of {sessions} without a connection: {done.get('lost_example')}"


def _unknown_words(log: LogReplayed) -> str:
    if not log.get("not_understood"):
        return ""
    return f"{log['not_understood']:,} lines, such as: {shorten(str(log.get('example')), 80)}"


def _compared_table(done: StatementsDone) -> Table:
    columns = [Column("Statement", weight=5), Column("Runs", number=True), Column("Recorded mean", number=True),
               Column("Replayed mean", number=True), Column("Recorded p95", number=True),
               Column("Replayed p95", number=True), Column("Times as slow, 95 %", number=True, weight=2),
               Column("", weight=1)]  # fmt: skip
    rows = []
    for one in (done.get("compared") or [])[:SHOWN_MAX]:
        recorded, replayed = one.get("recorded_ns") or {}, one.get("replayed_ns") or {}
        change = str(one.get("change") or "")
        rows.append([
            Cell(shorten(str(one.get("text")), TEXT_MAX)), Cell(f"{replayed.get('count') or 0:,}"),
            _latency(recorded.get("mean")), _latency(replayed.get("mean")),
            _latency(recorded.get("p95")), _latency(replayed.get("p95")),
            Cell(times_words(one)),
            Cell(change if one.get("times") is not None else DASH, tone=TONES.get(change, "plain")),
        ])  # fmt: skip
    more = len(done.get("compared") or []) - len(rows) + (done.get("compared_left_out") or 0)
    rest = f"; {more} that took less time are not shown" if more else ""
    caption = f"Statements by their fingerprints, those that took most of the time first{rest}"
    return Table("statements-compared", caption, columns, rows, dense=True)


def _different_table(done: StatementsDone) -> Table:
    columns = [Column("In the log"), Column("In the replay"), Column("Statements", number=True),
               Column("The first of them", weight=4), Column("Said", weight=4)]  # fmt: skip
    found = sorted(done.get("different") or [], key=lambda one: -(one.get("count") or 0))
    rows = [
        [Cell(_outcome(one.get("recorded"))), Cell(_outcome(one.get("replayed"))), Cell(f"{one.get('count') or 0:,}"),
         Cell(shorten(str(one.get("statement")), 100)), Cell(shorten(str(one.get("example") or DASH), 120))]
        for one in found
    ]  # fmt: skip
    return Table("statements-different", "Statements that ended in another way than in the log, by SQLSTATE", columns,
                 rows)  # fmt: skip


def _outcome(code: str | None) -> str:
    return {"": "done", "?": "failed"}.get(code or "", code or "done")


def _left_out_table(done: StatementsDone) -> Table:
    found = dict((done.get("log") or {}).get("left_out") or {})
    if refused := done.get("refused_writes"):
        found["writes within reads, which the server refused (run them with --writes)"] = refused
    rows = [
        [Cell(reason), Cell(f"{count or 0:,}")]
        for reason, count in sorted(found.items(), key=lambda one: -(one[1] or 0))
    ]
    columns = [Column("Kind", weight=4), Column("Count", number=True)]
    return Table("statements-left-out", "What of the log was not run", columns, rows)


def _points_table(points: Sequence[Point]) -> Table:
    columns = [Column("", weight=2), Column("Statements run", number=True), Column("Unfinished", number=True),
               Column("Late p99", number=True), Column("Waited for the one before", number=True),
               Column("A replay")]  # fmt: skip
    rows = []
    for point in points:
        done = done_of(point)
        late, is_replay = done.get("lateness") or {}, done.get("is_replay")
        count = late.get("count") or 0
        rows.append([
            Cell(load_label(point["load"]), point_id=point.get("id")), Cell(f"{done.get('done') or 0:,}"),
            Cell(f"{done.get('unfinished') or 0:,}"), _latency(late.get("p99_ns")),
            Cell(percent((late.get("held_count") or 0) / count) if count else DASH),
            Cell("yes" if is_replay else "no", tone="good" if is_replay else "bad"),
        ])  # fmt: skip
    return Table("statements-lateness", "How late statements began", columns, rows)


def _latency(value: float | None) -> Cell:
    return Cell(DASH if value is None else format_latency(value))
