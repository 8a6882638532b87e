"""Which statements and tables a database spent a span of time on: what its own statistics grew by from start to end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from assay.base.errors import AssayError
from assay.base.tables import Record
from assay.telemetry.collectors import mariadb, mssql, postgresql
from assay.telemetry.collectors.database import Query

MAX_STATEMENTS, MAX_TABLES = 10, 12

MIN_SHARE = 0.001
"""Statements with less of the time are left out: Assay's own looks at the statistics among them."""


class ObservedDatabase(Protocol):
    """What is asked of a database target."""

    @property
    def name(self) -> str:
        """Name in results."""
        ...

    @property
    def dialect(self) -> str:
        """postgresql, mariadb, mysql, mssql or duckdb."""
        ...

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        ...


@dataclass(frozen=True)
class ServerActivity:
    """Statistics of statements and tables since the servers count, by database and key; and what was missing."""

    statements: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    tables: Mapping[tuple[str, str], Record] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


def activity(databases: Sequence[ObservedDatabase]) -> ServerActivity:
    """Statistics of this moment; take them at both ends of a window for `hottest`.

    A server that refuses (no rights, statistics switched off) is left out with a notice.
    """
    statements: dict[tuple[str, str], Record] = {}
    tables: dict[tuple[str, str], Record] = {}
    notices = []
    for database in databases:
        for what, found, read in zip(("statements", "tables"), (statements, tables), _readers(database), strict=True):
            try:
                found.update({(database.name, key): record for key, record in read(database.query).items()})
            except AssayError as error:
                notices.append(f"{database.name}: statistics of its {what} cannot be read: {error}")
    return ServerActivity(statements, tables, tuple(notices))


def hottest(before: ServerActivity, after: ServerActivity) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Statements that took the most time, and tables with the most bytes read, then rows changed, between two moments.

    Returns
    -------
    statements : list of dict
        `database`, `text`, `calls_count`, `time_ns`, `mean_ns`, `share` (of the time of all statements), and what the
        server knows of `rows_count`, `read_bytes`, `page_requests_count`, `page_reads_count`, `log_bytes`.
    tables : list of dict
        `database`, `table`, and what the server knows of `read_bytes`, `page_requests_count`, `page_reads_count`,
        `inserted_count`, `updated_count`, `deleted_count`, `fetched_count`, `time_ns`.
    """
    statements = [
        {
            "database": name,
            **growth,
            "text": _without_comments(growth["text"]),
            "mean_ns": growth["time_ns"] / growth["calls_count"],
        }
        for (name, _), growth in _growth(before.statements, after.statements)
        if growth["calls_count"]
    ]
    total_ns = sum(statement["time_ns"] for statement in statements)
    shared = [{**statement, "share": statement["time_ns"] / total_ns if total_ns else 0.0} for statement in statements]
    hot = sorted((one for one in shared if one["share"] >= MIN_SHARE), key=lambda one: -one["share"])
    tables = [
        {"database": name, "table": table, **growth} for (name, table), growth in _growth(before.tables, after.tables)
    ]
    touched = [table for table in tables if any(isinstance(value, float) and value > 0 for value in table.values())]
    return hot[:MAX_STATEMENTS], sorted(touched, key=_heat, reverse=True)[:MAX_TABLES]


def _without_comments(text: str) -> str:
    r"""Statement in one line, without what its author told other people.

    Examples
    --------
    >>> _without_comments("-- Customer, items.\nSELECT total /* cents */\n  FROM f($1)")
    'SELECT total FROM f($1)'
    """
    return " ".join(re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())


def _heat(table: Record) -> tuple[float, ...]:
    changes = sum(table.get(f"{kind}_count") or 0 for kind in ("inserted", "updated", "deleted"))
    return table.get("read_bytes") or 0, table.get("time_ns") or 0, changes


def _growth(
    before: Mapping[tuple[str, str], Record], after: Mapping[tuple[str, str], Record]
) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """What each entry grew by; one whose counters went back was reset between, and has grown from zero."""
    grown = []
    for key, record in after.items():
        old = before.get(key, {})
        numbers = {name: float(value) for name, value in record.items() if isinstance(value, (int, float))}
        was_reset = any(value < (old.get(name) or 0) for name, value in numbers.items())
        changes = {name: value - (0 if was_reset else (old.get(name) or 0)) for name, value in numbers.items()}
        grown.append((key, {**record, **changes}))
    return grown


def _readers(
    database: ObservedDatabase,
) -> tuple[Callable[[Query], dict[str, Record]], Callable[[Query], dict[str, Record]]]:
    """Functions that read statements and tables of this kind of server."""
    module = {"postgresql": postgresql, "mssql": mssql, "mariadb": mariadb, "mysql": mariadb}.get(database.dialect)
    return (module.statements, module.tables) if module is not None else (_nothing, _nothing)


def _nothing(_: Query) -> dict[str, Record]:
    """A database within this process keeps no statistics of statements and tables."""
    return {}
