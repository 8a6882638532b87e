"""The 22 queries: one canonical text each in PostgreSQL's dialect, translated to the others.

Where translation is not enough, a file `queries/DIALECT/qNN.sql` stands in place of the canonical one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from assay.workloads.tpch.parameters import Date, Value

if TYPE_CHECKING:
    from sqlglot import exp

CANONICAL = "postgres"

DIALECTS = {
    "postgresql": "postgres",
    "mariadb": "mysql",
    "mysql": "mysql",
    "mssql": "tsql",
    "duckdb": "duckdb",
    "spark": "spark",
}
"""Names of the dialects in sqlglot."""


NULLS_FIRST: Mapping[str, tuple[bool, bool]] = {
    "postgresql": (False, True),
    "mariadb": (True, False),
    "mysql": (True, False),
    "mssql": (True, False),
    "duckdb": (False, False),
    "spark": (True, False),
}
"""Whether nulls come first in each dialect, ascending and descending; sqlglot writes out any other order."""


def query_text(number: int, parameters: Mapping[str, Value], dialect: str, *, stream: int | None = None) -> str:
    """The text of a query in a dialect, with its parameters.

    Parameters
    ----------
    number
        1 to 22.
    parameters
        Values by name, as `assay.workloads.tpch.parameters` gives them.
    dialect
        A key of `DIALECTS`.
    stream
        Named in a comment, so that statistics of the server tell streams apart; None for none.

    Raises
    ------
    KeyError
        A parameter is missing.
    """
    from sqlglot import exp

    tree = _parsed(number, dialect).copy()
    for place in list(tree.find_all(exp.Placeholder)):
        place.replace(_literal(parameters[place.name]))
    text = tree.sql(dialect=DIALECTS[dialect], comments=False)
    note = f"-- query {number}" + (f" of stream {stream}" if stream is not None else "")
    return f"{note}\n{text}"


@cache
def _parsed(number: int, dialect: str) -> exp.Expr:
    import sqlglot
    from sqlglot import exp

    folder = resources.files(__package__) / "queries"
    own = folder / dialect / f"q{number:02}.sql"
    is_own = own.is_file()
    path = own if is_own else folder / f"q{number:02}.sql"
    tree = sqlglot.parse_one(path.read_text(encoding="utf-8"), dialect=DIALECTS[dialect] if is_own else CANONICAL)
    for ordered in tree.find_all(exp.Ordered):
        # No column that is ordered by has nulls: each engine keeps its own order of them, which its indexes have.
        ordered.set("nulls_first", NULLS_FIRST[dialect][bool(ordered.args.get("desc"))])
    return tree


def _literal(value: Value) -> exp.Expr:
    from sqlglot import exp

    if isinstance(value, Date):
        return exp.cast(exp.Literal.string(value), "date")
    if isinstance(value, str):
        return exp.Literal.string(value)
    return exp.Literal.number(str(value))
