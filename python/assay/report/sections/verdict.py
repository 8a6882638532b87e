"""Verdict: every question, its limit, what was found, and what that means."""

from __future__ import annotations

from assay.document.elements import Cell, Column, Section, Table, Tone
from assay.document.limits import limit_text
from assay.document.text import BASE_UNITS, DASH, shorten, value_text
from assay.record.judgement import standing_word, verdict_of
from assay.record.shapes.point import VerdictLine
from assay.record.source import RunFacts
from assay.report.facts import measured_points
from assay.workloads.registry import workloads

MARKS: dict[str, tuple[str, Tone]] = {
    "met": ("✓ met", "good"), "missed": ("✗ missed", "bad"), "unknown": ("? unknown", "warn")
}  # fmt: skip
"""How words of a verdict are shown."""


def verdict_word(line: VerdictLine) -> tuple[str, Tone]:
    """Word and tone of a verdict line: a value without a limit was measured, but nothing was asked of it."""
    word = standing_word(line)
    return MARKS.get(word, (word, "quiet"))


def judged_lines(facts: RunFacts) -> list[VerdictLine]:
    """Lines of the verdict; what was moved during a check is no answer to a question."""
    measured = {point.get("id") for point in measured_points(facts)}
    checks = {point.get("id") for point in facts.points} - measured
    return [line for line in verdict_of(facts.manifest) if line.get("limit") or line.get("point_id") not in checks]


def verdict_section(facts: RunFacts) -> Section | None:
    """Build the table of the verdict; None where the run has none."""
    lines = judged_lines(facts)
    return Section("verdict", "Verdict", [_table(lines)]) if lines else None


def _table(verdict: list[VerdictLine]) -> Table:
    columns = [
        Column("Question", weight=2.4),
        Column("Limit", weight=2.1),
        Column("Value", number=True, weight=1.4),
        Column("Verdict", weight=1.1),
        Column("Meaning", weight=4.2),
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
