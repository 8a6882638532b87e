"""What in a database is Assay's own: tables with its mark, and the columns, indexes and procedures of its SQL."""

from __future__ import annotations

import re
from functools import cache

from assay import _core

TABLE_MARK = "made by Assay"
"""Comment on every table that Assay makes (SQL Server: a property), set in the statement or transaction that makes it.

Names like `orders` and `stock` are also those of users' tables: only what has the mark is ever dropped or replaced.
"""


@cache
def own_columns(dialect: str) -> dict[str, frozenset[str]]:
    """Columns of each table, as Assay makes it.

    Examples
    --------
    >>> sorted(own_columns("postgresql")["assay_schema"]), len(own_columns("mariadb")["history"])
    (['k', 'v'], 9)
    """
    schema = _core.tpcc_sql(dialect, "schema")
    return {name: frozenset(re.findall(r"^    ([a-z0-9_]+) [a-z]", text, re.MULTILINE)) for name, text in schema}


@cache
def own_indexes(dialect: str) -> frozenset[str]:
    """Names of the indexes and keys of its tables.

    Examples
    --------
    >>> sorted(own_indexes("mariadb") - own_indexes("postgresql"))
    ['primary']
    """
    built = {name.lower() for name, _ in _core.tpcc_sql(dialect, "indexes")}
    keys = {"primary"} if dialect in ("mariadb", "mysql") else {f"{table}_pkey" for table in own_columns(dialect)}
    return frozenset(built | keys)


@cache
def own_procedures(dialect: str) -> frozenset[str]:
    """Names of its procedures or functions."""
    return frozenset(name for name, _ in _core.tpcc_sql(dialect, "drop")) - own_columns(dialect).keys()
