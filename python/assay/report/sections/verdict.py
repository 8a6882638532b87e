"""Verdict: every question, its limit, what was found, and what that means."""

from __future__ import annotations

from assay.document.elements import Cell, Column, Section, Table, Tone
from assay.document.limits import limit_text
from assay.document.text import BASE_UNITS, DASH, NOT_MEASURED, shorten, value_text
from assay.record.answers import names_of
from assay.record.shapes.point import Answer, VerdictLine
from assay.record.source import RunFacts
from assay.record.standstill import HOSTS_APART
from assay.report.facts import measured_points
from assay.workloads.registry import workloads


def verdict_word(line: VerdictLine) -> tuple[str, Tone]:
    """Word and tone of a verdict line: a value without a limit was measured, but nothing was asked of it."""
    if line.get("met") is True:
        return "✓ met", "good"
    if line.get("met") is False:
        return "✗ missed", "bad"
    return ("no limit" if line.get("value") is not None and not line.get("limit") else NOT_MEASURED), "quiet"


def judged_lines(facts: RunFacts) -> list[VerdictLine]:
    """Lines of the verdict; what was moved during a check is no answer to a question.

    A search that only the load generator ended says nothing of a limit: its line was not measured, not missed.
    """
    measured = {point.get("id") for point in measured_points(facts)}
    checks = {point.get("id") for point in facts.points} - measured
    lines = facts.manifest.get("verdict") or []
    kept = [line for line in lines if line.get("limit") or line.get("point_id") not in checks]
    return [{**line, "met": None} if is_undecided(line, facts) else line for line in kept]


def failed_answer(line: VerdictLine, facts: RunFacts) -> Answer | None:
    """The search that found no load within its limits, of which a line tells; None for any other line."""
    if line.get("met") is not False or line.get("point_id"):
        return None
    answers, parts = facts.manifest.get("answers") or [], facts.manifest.get("parts") or []
    failed = (answer for answer in answers if not answer.get("max") and line["question"] in names_of(answer, parts))
    return next((answer for answer in failed if line.get("part") in (None, answer.get("part"))), None)


def is_undecided(line: VerdictLine, facts: RunFacts) -> bool:
    """Whether the load generator, or hosts apart, ended the search of a line before any limit was missed."""
    answer = failed_answer(line, facts)
    return answer is not None and answer.get("limited_by") in ("generator", HOSTS_APART)


def verdict_section(facts: RunFacts) -> Section | None:
    """Build the table of the verdict; None where the run has none."""
    lines = judged_lines(facts)
    return Section("verdict", "Verdict", [_table(lines)]) if lines else None


def _table(verdict: list[VerdictLine]) -> Table:
    columns = [
        Column("Question", weight=2.0),
        Column("Limit", weight=2.3),
        Column("Value", number=True, weight=1.7),
        Column("Verdict", weight=1.2),
        Column("Meaning", weight=3.2),
    ]
    rows = []
    for line in verdict:
        word, tone = verdict_word(line)
        rows.append(
            [
                Cell(shorten(str(line.get("question") or DASH), 160)),
                Cell(limit_text(line.get("limit"))),
                Cell(_value_text(line), "quiet" if line.get("value") is None else "plain", line.get("point_id")),
                Cell(word, tone),
                Cell(str(line.get("meaning") or "")),
            ]
        )
    return Table("verdict-table", "Verdict: what was asked, its limit, and what was found.", columns, rows)


def _value_text(line: VerdictLine) -> str:
    """The value of a line in the words of the figure that has its unit."""
    value, unit = line.get("value"), line.get("unit")
    if value is None and unit is None:
        return DASH
    figure = next((one for workload in workloads() for one in workload.figures if one.unit == unit), None)
    if figure is None or value is None or unit in BASE_UNITS:
        return value_text(value, unit)
    return figure.words(value)
