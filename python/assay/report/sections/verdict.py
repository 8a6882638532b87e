"""Verdict: every question, its limit, what was found, and what that means."""

from __future__ import annotations

from collections.abc import Sequence

from assay.document.elements import Cell, Column, Section, Table, Tone
from assay.document.limits import limit_text
from assay.document.text import BASE_UNITS, DASH, shorten, value_text
from assay.record.answers import repeats_against
from assay.record.judgement import answer_found, standing_word, verdict_of
from assay.record.shapes.point import Answer, VerdictLine
from assay.record.source import RunFacts
from assay.report.facts import measured_points
from assay.workloads.registry import workloads

MARKS: dict[str, tuple[str, Tone]] = {
    "met": ("✓ met", "good"), "missed": ("✗ missed", "bad"), "unknown": ("? unknown", "warn")
}  # fmt: skip
"""The tone of each word of a verdict."""


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
    lines = shown_lines(judged_lines(facts))
    found = [answer_found(line, facts.manifest) for line in lines]
    return Section("verdict", "Verdict", [_table(lines, found)]) if lines else None


SCOPES_MAX = 5
"""Lines of one limit of a point that are shown one by one; of more the first and the worst are."""


def shown_lines(lines: Sequence[VerdictLine]) -> list[VerdictLine]:
    """Lines without those of many volumes that say the same: every point has its own cell of limits."""
    groups: dict[tuple[object, object, object], list[VerdictLine]] = {}
    for number, line in enumerate(lines):
        limit = line.get("limit")
        groups.setdefault((line.get("question"), limit, line.get("point_id") if limit else number), []).append(line)
    shown = []
    for own in groups.values():
        if len(own) <= SCOPES_MAX:
            shown += own
            continue
        first, *others = own
        sign = 1 if "<" in str(first.get("limit")) else -1
        # What is missed comes before what is unknown, and that before what is met.
        rank = {False: 2, None: 1, True: 0}
        worst = max(others, key=lambda line: (rank[line.get("met")], sign * float(line.get("value") or 0.0)))
        alike = sum(line.get("met") is worst.get("met") for line in others)
        count = "all" if alike == len(others) else f"{alike}"
        told = f"{worst.get('meaning')}; the worst of {len(others)}, {count} of which {_are(worst, alike)}"
        shown += [first, {**worst, "meaning": told}]
    return shown


def _are(line: VerdictLine, count: int) -> str:
    return f"{'is' if count == 1 else 'are'} {standing_word(line)}"


def _table(verdict: list[VerdictLine], found: Sequence[Answer | None]) -> Table:
    """The table of the verdict; beside its lines the answers of searches, whose intervals it shows."""
    has_intervals = any(one and one.get("interval_95") for one in found)
    columns = [
        Column("Question", weight=2.4),
        Column("Limit", weight=2.1),
        Column("Value", number=True, weight=1.4),
        *([Column("95 % interval", number=True, weight=1.5)] if has_intervals else []),
        Column("Verdict", weight=1.1),
        Column("Meaning", weight=4.2),
    ]
    rows = []
    for line, answer in zip(verdict, found, strict=True):
        word, tone = verdict_word(line)
        if line.get("met") and answer and (repeats := repeats_against(answer["max"])):
            word, tone = f"{word} by the mean, {repeats}", "warn"
        interval = answer.get("interval_95") if answer else None
        ends = " to ".join(_value_text(line, end) for end in interval or ()) or DASH
        rows.append(
            [
                Cell(shorten(str(line.get("question") or DASH), 160)),
                Cell(limit_text(line.get("limit"))),
                Cell(
                    _value_text(line, line.get("value")),
                    "quiet" if line.get("value") is None else "plain",
                    line.get("point_id"),
                ),
                *([Cell(ends)] if has_intervals else []),
                Cell(word, tone),
                Cell(str(line.get("meaning") or "")),
            ]
        )
    return Table("verdict-table", "Verdict: what was asked, its limit, and what was found.", columns, rows)


def _value_text(line: VerdictLine, value: float | None) -> str:
    """A value of a line in the words of the figure that has its unit."""
    unit = line.get("unit")
    if value is None and unit is None:
        return DASH
    figure = next((one for workload in workloads() for one in workload.figures if one.unit == unit), None)
    if figure is None or value is None or unit in BASE_UNITS:
        return value_text(value, unit)
    return figure.words(value)
