"""`assay compare RUN --to BASELINE --fail-on LIMIT`: whether a run is worse than its baseline allows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.apps.cli.taken import answer, taken_now
from assay.base.errors import UsageError
from assay.base.paths import printable

if TYPE_CHECKING:
    from assay.document.elements import Block
    from assay.insight.history.gate import GateResult
    from assay.insight.sides import ReadSides

ROWS_SHOWN = 12
"""Rows of limits that hold which are printed besides those that do not."""


NOTES_SHOWN = 8
"""Facts that differ from the baseline which are named."""


def sides_to(runs: Sequence[Path], to: str, baselines: Path) -> list[Path]:
    """The runs of a baseline and those to compare with it, as `read_sides` takes them.

    Raises
    ------
    UsageError
        There is no such baseline, or what is compared is no run.
    """
    from assay.insight.history.baseline import open_baseline, runs_given

    given = runs_given(runs)
    kept = open_baseline(to, baselines)
    return [*(Path(run.path) for run in kept.runs), *given]


def tell_gate(read: ReadSides, limits: Sequence[str], *, form: str, outputs: Sequence[Path], any_state: bool) -> None:
    """Judge the limits, tell what came of it, write it to files, and leave with its exit code.

    Raises
    ------
    UsageError
        A limit, a format or the name of a file is wrong, or the runs are not two sides of one state.
    """
    from assay.insight.history.gate import judge_changes, parse_limit
    from assay.insight.history.gate_outputs import FORMATS, format_of, gate_document, gate_text

    if form not in FORMATS:
        raise UsageError(f"--format {printable(form)}: accepted: {', '.join(FORMATS)}")
    forms = [(path, format_of(path)) for path in outputs]
    asked = [parse_limit(text) for text in limits]
    if len(read.sides) != 2:
        raise UsageError("--fail-on: give one run, or the runs of one folder, to compare with the baseline")
    if not any_state:
        read.refuse_states()
    names = (read.names[0].title, read.names[1].title)
    result = judge_changes(
        read.sides[0], read.sides[1], asked, history=read.history, names=names, notes=[*_notes(read)]
    )
    for path, of_path in forms:
        from assay.insight.rules.written import write_findings

        write_findings(gate_text(result, of_path), path)
        print(f"written: {printable(path)}", file=sys.stderr)
    if taken_now() is None and form != "text":
        print(gate_text(result, form), end="")
    else:
        answer(lambda: gate_document(result), lambda: gate_blocks(result))
    raise typer.Exit(int(result.exit_code))


def _notes(read: ReadSides) -> Iterator[str]:
    """What else differs between the newest run of the baseline and the run."""
    from assay.insight.history.facts import fact_changes, facts_of
    from assay.insight.history.telling import fact_words

    facts = [facts_of(side.runs[-1].manifest) for side in read.sides]  # type: ignore[arg-type]
    changes = fact_changes(facts)
    for fact in changes[:NOTES_SHOWN]:
        yield f"differs from the baseline: {fact_words(fact, 1)}"
    if len(changes) > NOTES_SHOWN:
        yield f"{len(changes) - NOTES_SHOWN} more facts differ from the baseline"


def gate_blocks(result: GateResult) -> list[Block]:
    """The sentence, and a row for each limit and load, the worst first."""
    from assay.document.elements import Paragraph
    from assay.document.terminal import notes, table

    order = {"broken": 0, "unknown": 1, "held": 2}
    rows = [
        (one.standing, one.load, f"{one.title}: {one.limit.text}", one.words)
        for one in sorted(result.judged, key=lambda one: order[one.standing])
    ]
    held = len(result.having("held"))
    shown = rows[: len(rows) - held + ROWS_SHOWN]
    tone = {"broken": "bad", "unknown": "warn", "held": "good"}[result.standing]
    blocks: list[Block] = [
        Paragraph(result.sentence, strong=True, tone=tone),  # type: ignore[arg-type]
        table(f"Against the baseline: {result.baseline}", ("", "load", "figure and limit", "change"), shown),
    ]
    if len(shown) < len(rows):
        blocks.append(Paragraph(f"{len(rows) - len(shown)} more limits are held"))
    return [*blocks, *([notes(result.notes)] if result.notes else [])]
