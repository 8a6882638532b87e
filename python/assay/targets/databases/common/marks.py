"""What in a database is Assay's own: tables with its mark, and the columns, indexes and procedures of its SQL."""

from __future__ import annotations

import re
from functools import cache

from assay.targets.databases.common.table_set import TableSet

TABLE_MARK = "made by Assay"
"""Comment on every table that Assay makes (SQL Server: a property), set in the statement or transaction that makes it.

Names like `orders` and `stock` are also those of users' tables: only what has the mark is ever dropped or replaced.
"""


@cache
def own_columns(tables: TableSet, dialect: str) -> dict[str, frozenset[str]]:
    """Columns of each table, as Assay makes it."""
    schema = tables.statements(dialect, "schema")
    return {name: frozenset(re.findall(r"^    ([a-z0-9_]+) [a-z]", text, re.MULTILINE)) for name, text in schema}


@cache
def own_indexes(tables: TableSet, dialect: str) -> frozenset[str]:
    """Names of the indexes and keys of its tables."""
    built = {name.lower() for name, _ in tables.statements(dialect, "indexes")}
    keys = (
        {"primary"} if dialect in ("mariadb", "mysql") else {f"{table}_pkey" for table in own_columns(tables, dialect)}
    )
    return frozenset(built | keys)


@cache
def own_constraints(tables: TableSet, dialect: str) -> frozenset[str]:
    """Names of the checks and foreign keys of its tables."""
    checks = {
        name for _, text in tables.statements(dialect, "schema") for name in re.findall(r"CONSTRAINT (\w+) CHECK", text)
    }
    references = {name for name, _ in tables.statements(dialect, "foreign_keys")} if tables.has_references else set()
    return frozenset(checks | references)


@cache
def own_procedures(tables: TableSet, dialect: str) -> frozenset[str]:
    """Names of its procedures or functions."""
    return frozenset(name for name, _ in tables.statements(dialect, "drop")) - own_columns(tables, dialect).keys()
