"""The table of a contract's clauses, on terminals and pages alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.document.elements import Cell, Column, Table, Tone
from assay.insight.contracts.judge import JudgedClause
from assay.insight.contracts.words import STATES

TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: "warn"}
RECORDED = "Clauses of the contract, and what the recording shows of each."


def clauses_table(
    clauses: Sequence[JudgedClause], states: Mapping[bool | None, str] = STATES, caption: str = RECORDED
) -> Table:
    """Every clause with its verdict in the words of `states`."""
    columns = [
        Column("clause"),
        Column("promised", weight=2.0),
        Column("verdict", weight=0.7),
        Column("found", weight=2.2),
    ]
    rows = [
        [Cell(one.name), Cell(one.promise), Cell(states[one.met], TONES[one.met]), Cell(one.found)] for one in clauses
    ]
    return Table("clauses", caption, columns, rows)
