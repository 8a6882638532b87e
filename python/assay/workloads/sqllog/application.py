"""Statements of logs, as what is common to transactions needs to know them."""

from __future__ import annotations

from assay.workloads.sql.tables import TABLES
from assay.workloads.transactions.application import Application, Rate
from assay.workloads.transactions.figures import figures_of

KIND = "sqllog"

STATEMENTS = Application(
    kind=KIND,
    name="Statements of a log",
    transactions={"reads": "Reads", "writes": "Writes", "control": "Begin and commit", "others": "Others"},
    first_plural="reads",
    rate=Rate(
        key="statements_per_s",
        unit="statements_per_s",
        seconds=1,
        digits=0,
        title="statements/s",
        full="statements per second",
        said="statements a second",
    ),
    counted_by="",
    rolled_back="none: here they are statements that failed in the log, and failed again with the same SQLSTATE",
    conditions="",
    conditions_count=0,
    shape={},
    counts_all=True,
    by_minute=False,
    work="statement",
    client="session",
    disclaimer=(
        "recorded times are the server's own; replayed ones include the way to it and back, which is taken off where"
        " both are compared"
    ),
    tables=TABLES,
)

FIGURES = figures_of(STATEMENTS)
