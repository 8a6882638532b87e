"""An acceptance test of a contract: the verdict clause by clause, and the measurements that it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from assay.base.tables import Record
from assay.document.elements import Block, Bullets, Cell, Column, FactList, Paragraph, Section, Table
from assay.document.text import DASH, sentence
from assay.insight.contracts.acceptance import TEST_STATES, interval_words, judged_clauses, value_words
from assay.insight.contracts.asked_loads import DEGRADED, STATE_WORDS
from assay.record.judgement import together
from assay.record.shapes.acceptance import AcceptanceClause, AcceptanceTest
from assay.record.source import RunFacts
from assay.report.clauses import TONES, clauses_table

CAPTION = "Clauses of the contract, and what the test found of each."
METHOD = (
    "Each clause of latency is tested at its load, with I/Os that arrive at random times (Poisson), in its mix and at"
    " the ends of the sizes and shares that it holds for. Times count from when an I/O was meant to begin.",
    "All I/Os of a measurement are judged together, over all volumes. A clause is met where every measurement of it is"
    " met, and unknown where a 95 % interval holds its limit.",
    "Rates come from a search that raises the number of outstanding I/Os until more bring nothing.",
)


def acceptance_of(manifest: Record) -> AcceptanceTest | None:
    """The test of a run that has been judged; None for any other run."""
    test = cast("AcceptanceTest | None", manifest.get("contract"))
    return test if test is not None and test.get("clauses") else None


def verdict_blocks(test: AcceptanceTest) -> list[Block]:
    """The verdict in a sentence, every clause, and why some cannot be judged."""
    clauses = test.get("clauses") or []
    met = together(one["met"] for one in clauses)
    blocks: list[Block] = [
        Paragraph(str(test.get("sentence") or ""), strong=True, tone=TONES[met]),
        clauses_table(judged_clauses(clauses), TEST_STATES, CAPTION),
    ]
    return [*blocks, *(Paragraph(f"cannot be judged: {one['name']}: {one['why']}") for one in clauses
                       if one["met"] is None)]  # fmt: skip


def acceptance_section(facts: RunFacts) -> Section | None:
    """Build the section of an acceptance test; None where the run is none."""
    test = acceptance_of(facts.manifest)
    if test is None:
        return None
    shown = [("contract", test["title"]), ("vendor", test["vendor"]), ("reference", test["reference"])]
    blocks = [*verdict_blocks(test), FactList("contract", [(name, value) for name, value in shown if value])]
    clauses = test.get("clauses") or []
    if any(one["evidence"] for one in clauses):
        blocks.append(_evidence(clauses))
    lacking = [sentence(f"{name}: {reason}") for name, reason in test["lacking"].items() if name == DEGRADED]
    blocks.append(Bullets([*METHOD, *lacking]))
    return Section("contract", "The contract", blocks, wide=True)


def _evidence(clauses: list[AcceptanceClause]) -> Table:
    columns = [
        Column("clause"), Column("state", weight=0.8), Column("asked", weight=2.0), Column("found", number=True),
        Column("95 % interval", number=True, weight=1.2), Column("verdict", weight=0.7), Column("because", weight=1.4),
    ]  # fmt: skip
    return Table("evidence", "Every measurement of a clause.", columns, [row for one in clauses for row in _rows(one)])


def _rows(clause: AcceptanceClause) -> Iterator[list[Cell]]:
    for one in clause["evidence"]:
        interval = one["interval_95"]
        yield [
            Cell(clause["name"]), Cell(STATE_WORDS[one["state"]]), Cell(one["asked"]),
            Cell(value_words(one["value"], one["unit"]), "plain", one.get("point_id")),
            Cell(DASH if interval is None else interval_words(interval, one["unit"])),
            Cell(TEST_STATES[one["met"]], TONES[one["met"]]), Cell(one["why"] or DASH),
        ]  # fmt: skip
