"""Laying the tables out before a point, and finding the hottest of them from a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from assay.base.errors import IoFailed
from assay.base.progress import Display
from assay.targets.databases.common.layout import TableLayout
from assay.targets.databases.common.table_set import TableSet
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.databases.kinds import lay_out
from assay.workloads.databases.plan import load_connections
from assay.workloads.transactions.plan import TransactionsLayout, TransactionsPlan, TransactionsTiming
from assay.workloads.transactions.shapes import (
    HotTable,
    HottestTable,
    LaidOutDatabase,
    Statement,
    StatementsHeat,
    TableHeat,
    number_of,
)

TRACE_WARMUP_S = 2.0
"""Before the trace: users connect and the first pages come in."""

FIGURES = {"page_requests_count": "page requests", "time_ns": "time in tables", "rows_count": "rows touched"}
"""What tables are ranked by: the first that the server counts."""

STATEMENT_FIGURES = FIGURES | {"time_ns": "time"}

P = TypeVar("P", bound=TransactionsPlan)


def trace_plan(plan: P) -> P:
    """The plan of the trace: the same users, for a short time, and nothing beside them.

    They send statements: those name the tables that procedures hide.
    """
    timing = TransactionsTiming(warmup_s=TRACE_WARMUP_S, duration_s=plan.layout.trace_s)
    return plan.model_copy(update={"timing": timing, "background": (), "mode": "statements"})


def find_hottest(
    table_set: TableSet, tables: Sequence[HotTable], statements: Sequence[Statement], trace_s: float
) -> HottestTable:
    """The table that the workload asked most of, with the reason, by the server's counters and by its statements.

    Among those that can be partitioned, the counters decide.

    Parameters
    ----------
    table_set
        The tables of the workload.
    tables, statements
        Those of the trace's point, as docs/oltp-results.md has them.
    trace_s
        Length of the trace.

    Returns
    -------
    dict
        `table`, `figure`, `share`, `trace_s`, `tables` (of each `table`, `value`, `share`), `statement` (text of the
        one that took the most time, or None), `by_statements` (`figure` and `tables` as the statements have it, or
        None), `sentence`.

    Raises
    ------
    IoFailed
        The server tells nothing of its tables.
    """
    heats: dict[str, dict[str, float]] = {}
    for table in tables:
        name = str(table["table"]).lower()
        if name in table_set.names:
            found = heats.setdefault(name, {})
            for figure, value in _figures(table).items():
                found[figure] = found.get(figure, 0.0) + value
    counted = [one for one in FIGURES if any(heat.get(one) for heat in heats.values())]
    if not counted:
        raise IoFailed(
            "the hottest table cannot be found: the server counts nothing of its tables; name one with"
            f" --set partition_table={table_set.names[-1]}"
        )
    figure = counted[0]
    total = sum(heat.get(figure, 0.0) for heat in heats.values())
    ranked = sorted(((heat.get(figure, 0.0), name) for name, heat in heats.items()), reverse=True)
    listed: list[TableHeat] = [{"table": name, "value": value, "share": value / total} for value, name in ranked]
    first, hotter = _first_that_parts(listed, table_set)
    others = [one for one in listed if one is not first][:1]
    beside = "".join(f", before {other['table']} with {other['share']:.0%}" for other in others if not hotter)
    beside += "".join(f"; {one['table']} has {one['share']:.0%}, and is not partitioned" for one in hotter[:1])
    rank = "the hottest table" if not hotter else "the hottest table that can be partitioned"
    sentence = f"{rank} is {first['table']}: {first['share']:.0%} of the {FIGURES[figure]} in a trace of"
    asked = heat_of_statements(table_set, statements)
    said = _said_by_statements(asked, first["table"], table_set)
    return {
        "table": first["table"],
        "figure": figure,
        "share": first["share"],
        "trace_s": trace_s,
        "tables": listed,
        "statement": statements[0]["text"] if statements else None,
        "by_statements": asked,
        "sentence": f"{sentence} {trace_s:g} s{beside}{said}.".replace("%", " %"),
    }


def heat_of_statements(table_set: TableSet, statements: Sequence[Statement]) -> StatementsHeat | None:
    """What the hottest statements asked of each table; what one asked is shared among the tables that it names.

    Returns
    -------
    dict or None
        `figure`, `tables` (of each `table`, `value`, `share`); None where no statement names a table.
    """
    figure = next((one for one in FIGURES if any(number_of(statement, one) for statement in statements)), "")
    heats: dict[str, float] = {}
    for statement in statements:
        named = table_set.named_in(str(statement["text"]))
        for table in named:
            heats[table] = heats.get(table, 0.0) + float(number_of(statement, figure) or 0.0) / len(named)
    total = sum(heats.values())
    if not total:
        return None
    ranked = sorted(((value, name) for name, value in heats.items()), reverse=True)
    return {
        "figure": figure,
        "tables": [{"table": name, "value": value, "share": value / total} for value, name in ranked],
    }


def _first_that_parts(ranked: Sequence[TableHeat], table_set: TableSet) -> tuple[TableHeat, list[TableHeat]]:
    """The first that can be partitioned, else the first; and those before it."""
    place = next((place for place, one in enumerate(ranked) if one["table"] in table_set.keys), 0)
    return ranked[place], list(ranked[:place])


def _said_by_statements(asked: StatementsHeat | None, table: str | None, table_set: TableSet) -> str:
    if asked is None:
        return "; statements that name tables are not counted there"
    first, _ = _first_that_parts(asked["tables"] or [], table_set)
    share = f"{first['share']:.0%} of the {STATEMENT_FIGURES[str(asked['figure'])]} of the heaviest statements"
    return (
        f"; so do statements say, with {share}"
        if first["table"] == table
        else (f"; statements say {first['table']}, with {share}")
    )


def _figures(table: HotTable) -> dict[str, float]:
    rows = sum(number_of(table, f"{kind}_count") or 0.0 for kind in ("fetched", "inserted", "updated", "deleted"))
    known = {figure: float(number_of(table, figure) or 0.0) for figure in ("page_requests_count", "time_ns")}
    return known | {"rows_count": rows}


def apply_layout(target: DatabaseTarget, plan: TransactionsPlan, table: str, display: Display) -> list[LaidOutDatabase]:
    """Lay the tables of all databases out, from the plain layout; gives what `lay_out` says of each database.

    Parameters
    ----------
    table
        The table to partition; empty: none.

    Raises
    ------
    NotSupported, UsageError, RefusedTarget, OpenFailed, IoFailed
        It cannot be done.
    """
    asked = plan.layout
    layout = TableLayout(
        places=asked.tablespaces,
        directories=asked.directories,
        table=table if asked.is_partitioned else "",
        ways=asked.partition_ways,
    )
    found: list[LaidOutDatabase] = []
    for database in target.databases:
        display.phase(f"laying out {database.name}: {layout_text(asked, table)}")
        scale = target.scale[database.name]
        laid_out = lay_out(database, layout, scale=scale, connections=load_connections(plan))
        found.append({"database": database.name, **laid_out})
    target.refresh()
    return found


def layout_text(layout: TransactionsLayout, table: str = "") -> str:
    """A layout in words.

    Examples
    --------
    >>> layout_text(TransactionsLayout(tablespaces=4)), layout_text(TransactionsLayout())
    ('4 tablespaces', 'as the server lays it out')
    """
    words = []
    if layout.tablespaces > 1:
        words.append(f"{layout.tablespaces} tablespaces")
    if layout.is_partitioned:
        words.append(f"{table or layout.partition_table} in {layout.partition_ways} partitions")
    if layout.directories:
        words.append(f"in {', '.join(layout.directories)}")
    return ", ".join(words) or "as the server lays it out"
