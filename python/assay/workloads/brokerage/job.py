"""TPC-E-like transactions at work: earlier runs are tidied up, and more than the conditions is checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assay import _core
from assay.base.errors import Interrupted
from assay.base.progress import ProgressStep
from assay.targets.databases import Database
from assay.workloads.brokerage.application import BROKERAGE
from assay.workloads.brokerage.plan import BrokeragePlan
from assay.workloads.brokerage.tables import DRAWN, GROWING, KIND
from assay.workloads.transactions.job import TransactionsJob
from assay.workloads.transactions.shapes import Condition

REFERENCES, CARDINALITIES = 4, 5
"""Numbers of the two checks that follow the three conditions."""

DRAWN_RANGE = (0.5, 2.0)
"""Range of a drawn number of rows, as a multiple of the expected number."""


class BrokerageJob(TransactionsJob[BrokeragePlan]):
    """A part at work on its databases."""

    application = BROKERAGE
    disclaimer = BROKERAGE.disclaimer

    def begins(self, database: Database) -> None:
        """Cancel orders that an earlier run left open, as the clean-up does before a run: nobody executes them."""
        for _, text in database.table_set.statements(database.dialect, "cleanup"):
            database.execute(text)

    def own_conditions(self, database: Database) -> Iterator[Condition]:
        """Whether all references are met, and whether the tables have the rows that they should."""
        statements = database.table_set.statements(database.dialect, "references")
        checked = violations = 0
        example: str | None = None
        for number, (name, text) in enumerate(statements, 1):
            self._go_on(f"checking reference {number} of {len(statements)} in {database.name}")
            ((rows, broken, one),) = database.query(text)
            checked, violations = checked + int(rows), violations + int(broken)
            example = example or (f"{name}: {one}" if one is not None else None)
        yield _condition(REFERENCES, f"all {len(statements)} references are met", checked, violations, example)
        self._go_on(f"counting the rows of {database.name}")
        counts = {
            table: int(database.query(f"SELECT count(*) FROM {table}")[0][0]) for table in database.table_set.names
        }
        state = database.schema()
        expected = _core.row_counts(KIND, state.scale or 0, json.dumps(dict(state.shape)))
        wrong = [table for table in counts if not fits(table, counts[table], expected, state.state == "loaded")]
        example = f"{wrong[0]}: {counts[wrong[0]]:,} rows, expected {expected[wrong[0]]:,}" if wrong else None
        yield _condition(CARDINALITIES, "each table has the rows that it should", len(counts), len(wrong), example)

    def _go_on(self, what: str) -> None:
        if self.context.interrupt.is_set():
            raise Interrupted("interrupted while checking; check again with the action: check")
        self.context.display.point(ProgressStep(what))


def fits(table: str, count: int, expected: Mapping[str, int], is_fresh: bool) -> bool:
    """Whether a table has as many rows as it should.

    Parameters
    ----------
    is_fresh
        Whether no transactions have run since the load.
    """
    least, most = (expected[table] * factor for factor in (DRAWN_RANGE if table in DRAWN else (1.0, 1.0)))
    if table in GROWING and not is_fresh:
        # Holdings shrink when they are sold.
        return count >= (0 if table.startswith("holding") or table == "trade_request" else least)
    return least <= count <= most


def _condition(number: int, title: str, checked: int, violations: int, example: str | None) -> Condition:
    return {
        "id": number,
        "title": title,
        "violations": violations,
        "checked": checked,
        "example": example,
        "met": not violations,
    }
