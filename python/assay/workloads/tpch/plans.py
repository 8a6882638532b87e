"""How servers mean to run the queries: their plans, taken before the power test."""

from __future__ import annotations

from assay.base.errors import AssayError
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.tpch.parameters import parameters
from assay.workloads.tpch.plan import SCALE_STEP, TpchPlan
from assay.workloads.tpch.queries import query_text
from assay.workloads.tpch.shapes import PlanText

TEXT_MAX = 20_000
"""Characters of a plan that are kept."""

EXPLAIN = {
    "postgresql": "EXPLAIN ",
    "mariadb": "EXPLAIN ",
    "mysql": "EXPLAIN FORMAT=TREE ",
    "duckdb": "EXPLAIN ",
    "spark": "EXPLAIN ",
}
"""What asks for a plan, by dialect; SQL Server has a setting of the session instead, and is left out."""


def plans_of(target: DatabaseTarget, plan: TpchPlan, seed: int) -> list[PlanText]:
    """Plans of the queries of stream 0 on the first database; one that cannot be had is left out."""
    database = target.databases[0]
    if database.dialect not in EXPLAIN:
        return []
    scale = target.scale[database.name] * SCALE_STEP
    found: list[PlanText] = []
    for number in plan.queries:
        sql = query_text(number, parameters(number, seed=seed, scale=scale), database.dialect)
        try:
            text = _explained(database, sql)
        except AssayError:
            continue
        found.append({"database": database.name, "query": number, "text": text[:TEXT_MAX]})
    return found


def _explained(database: Database, sql: str) -> str:
    rows = database.query(EXPLAIN[database.dialect] + sql)
    # PostgreSQL gives a line a row, DuckDB the drawing in its last column, MariaDB a table.
    lines = (
        str(row[-1]) if database.dialect == "duckdb" else " | ".join("" if cell is None else str(cell) for cell in row)
        for row in rows
    )
    return "\n".join(lines)
