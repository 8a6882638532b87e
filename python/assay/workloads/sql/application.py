"""The user's own SQL, as what is common to transactions needs to know it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assay.workloads.sql.tables import KIND, TABLES
from assay.workloads.transactions.application import Application, Rate
from assay.workloads.transactions.figures import figures_of

SQL = Application(
    kind=KIND,
    name="SQL scripts",
    transactions={},
    first_plural="transactions",
    rate=Rate(
        key="tps",
        unit="tps",
        seconds=1,
        digits=0,
        title="TPS",
        full="transactions per second",
        said="transactions a second (TPS)",
    ),
    counted_by="",
    rolled_back="none: what a script rolls back is part of its transaction",
    conditions="",
    conditions_count=0,
    shape={"protocol": {name: f"{name} protocol" for name in ("simple", "extended", "prepared")}},
    counts_all=True,
    disclaimer="a transaction is one pass of a script; figures compare with those of the same scripts on the same data",
    tables=TABLES,
)

FIGURES = figures_of(SQL)


def application_of(scripts: Iterable[str]) -> Application:
    """The application with the scripts of a plan or a point, by their names."""
    named = {name: name for name in scripts}
    first = next(iter(named), "")
    plural = SQL.first_plural if len(named) < 2 else f"passes of {first}"
    return replace(SQL, transactions=named, first_plural=plural)
