"""What best practice finds, in a report: the findings of `assay check` that a run carries."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.units import count_of
from assay.document.elements import Block, Cell, Column, Paragraph, Section, Table, Tone
from assay.document.text import shorten
from assay.record.shapes.manifest import CheckedRule
from assay.record.source import RunFacts, records

_TONES: dict[str, Tone] = {"error": "bad", "warning": "warn", "note": "plain"}

SAID_MAX = 3
"""Findings that the first page names."""


def best_practice_section(facts: RunFacts) -> Section | None:
    """The findings as a table; None where the run was not checked."""
    told = facts.told("check")
    if told is None:
        return None
    findings = records(told.get("findings"))
    passed, gaps = len(told.get("passed") or []), records(told.get("not_checked"))
    blocks: list[Block] = [
        Paragraph(
            f"{count_of(len(findings), 'finding')}, {passed} passed, {len(gaps)} not checked: what is not known never"
            " passes.",
            strong=bool(findings),
        )
    ]
    if findings:
        blocks.append(findings_table(findings))
    if gaps:
        blocks.append(gaps_table(gaps))
    return Section("best-practice", "Best practice", blocks)


def findings_table(findings: Sequence[CheckedRule]) -> Table:
    """What differs from best practice."""
    columns = [
        Column("Severity", weight=0.7), Column("Rule", weight=1.3), Column("Of"), Column("Found", weight=1.3),
        Column("Wanted", weight=1.3), Column("What to do, and why", weight=2.5), Column("Source", weight=1.4),
    ]  # fmt: skip
    rows = [
        [
            Cell(str(one.get("severity")), _TONES.get(str(one.get("severity")), "plain")),
            Cell(f"{one.get('rule')}: {one.get('title')}"),
            Cell(shorten(str(one.get("subject")), 40)),
            Cell(shorten(str(one.get("found")), 120)),
            Cell(str(one.get("wanted"))),
            Cell(f"{one.get('fix')} {one.get('why')}"),
            Cell(str(one.get("source"))),
        ]
        for one in findings
    ]
    return Table("findings", "Settings that differ from best practice, worst first.", columns, rows, dense=True)


def gaps_table(gaps: Sequence[CheckedRule]) -> Table:
    """What is not known, each reason once; what only the owner of the site knows is one reason."""
    rules: dict[str, dict[str, None]] = {}
    for gap in gaps:
        reason = str(gap.get("reason"))
        words = "Nothing on the host shows it; the owner of the site can state it" if "site.toml" in reason else reason
        rules.setdefault(words, {})[str(gap.get("rule"))] = None
    columns = [Column("Why"), Column("Not checked", weight=2.0)]
    rows = [[Cell(shorten(reason, 160)), Cell(", ".join(names))] for reason, names in rules.items()]
    return Table("not-checked", "Rules that are not checked, by what is missing.", columns, rows, dense=True)


def next_words(facts: RunFacts) -> list[str]:
    """What to do about the worst findings: errors and warnings."""
    told = facts.told("check") or {}
    worst = [one for one in records(told.get("findings")) if one.get("severity") in ("error", "warning")]
    words = [f"{one.get('title')} ({one.get('subject')}): {one.get('fix')}" for one in worst[:SAID_MAX]]
    left = len(worst) - len(words)
    return [*words, f"{count_of(left, 'more finding')} of best practice: see there."] if left > 0 else words
