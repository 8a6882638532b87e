"""Checking: rows of each table, and the answers of the validation queries."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from assay import _core
from assay.base.errors import Interrupted
from assay.base.progress import Display, ProgressStep
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.tpch.answers import compare_answers, compare_published
from assay.workloads.tpch.parameters import VALIDATION
from assay.workloads.tpch.plan import QUERIES
from assay.workloads.tpch.queries import query_text
from assay.workloads.tpch.refresh import sets_done
from assay.workloads.tpch.shapes import AnswerFound, Dss, RowsFound
from assay.workloads.tpch.tables import TABLES

PUBLISHED_SCALE = 1000
"""Thousandths of the scale at which answers are published."""


LINES_AT_1 = 6_001_215
"""Lines at scale 1 (clause 4.2.5.1)."""


@dataclass(kw_only=True)
class Checked:
    """What was found."""

    answers: list[AnswerFound] = field(default_factory=list)
    rows: list[RowsFound] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def check_answers(target: DatabaseTarget, *, display: Display, interrupt: threading.Event) -> Checked:
    """Count rows; at scale 1 hold the answers against the published ones, and those of several databases together.

    Raises
    ------
    Interrupted
        What was found so far is lost.
    """
    found = Checked()
    for database in target.databases:
        display.phase(f"counting the rows of {database.name}")
        found.rows += _rows(database, target.scale[database.name])
    first = target.databases[0]
    sets = {database.name: sets_done(database) for database in target.databases}
    is_fresh = not any(sets[first.name].values())
    published = target.scale[first.name] == PUBLISHED_SCALE and is_fresh
    alike = [
        database
        for database in target.databases
        if (target.scale[database.name], sets[database.name]) == (target.scale[first.name], sets[first.name])
    ]
    if not published and len(alike) < 2:
        found.notices.append(
            "answers were not compared: published ones exist for scale 1 before any refresh, and other answers need two"
            " databases of the same scale and refresh sets"
        )
        return found
    if len(alike) < len(target.databases):
        others = ", ".join(database.name for database in target.databases if database not in alike)
        found.notices.append(f"answers of {others} were not compared: another scale, or other refresh sets")
    for number in QUERIES:
        given = []
        for database in alike:
            if interrupt.is_set():
                raise Interrupted("interrupted while checking; check again with the action: check")
            display.point(ProgressStep(f"checking query {number} of {len(QUERIES)} on {database.name}"))
            given.append((database, database.query(query_text(number, VALIDATION[number], database.dialect))))
        if published:
            for database, rows in given:
                difference = compare_published(number, rows, _core.tpch_answer(number))
                found.answers.append(_found(database, number, "published", difference))
        for database, rows in given[1:]:
            difference = compare_answers(number, rows, given[0][1])
            found.answers.append(_found(database, number, first.name, difference))
    return found


def wrong_total(told: Dss) -> int:
    """Answers and tables that are not as they should be."""
    return sum(not one["met"] for one in found_by(told))


def found_by(told: Dss) -> list[AnswerFound | RowsFound]:
    """All that was checked, the answers first."""
    return [*(told.get("answers") or ()), *(told.get("rows") or ())]


def _rows(database: Database, scale: int) -> list[RowsFound]:
    """Tables with the rows they hold and should hold; those that refresh functions change are known in orders alone."""
    expected = dict(_core.row_counts(TABLES.rows, scale))
    sets = sets_done(database)
    per_set = scale * 3 // 2
    found: list[RowsFound] = []
    for table in TABLES.names:
        ((count,),) = database.query(f"SELECT count(*) FROM {table}")
        wanted: int | None = expected[table]
        if any(sets.values()):
            wanted = {"lineitem": None, "orders": expected["orders"] + per_set * (sets["rf1"] - sets["rf2"])}.get(
                table, expected[table]
            )
        if table == "lineitem" and wanted is not None:
            # Lines are drawn: how many there are is known from what was loaded.
            ((loaded,),) = database.query("SELECT sum(row_count) FROM assay_chunk WHERE kind = 'orders'")
            wanted = LINES_AT_1 if scale == PUBLISHED_SCALE else int(loaded or 0) - expected["orders"]
        met = wanted is None or int(count) == wanted
        found.append({"database": database.name, "table": table, "count": int(count), "expected": wanted, "met": met})
    return found


def _found(database: Database, number: int, against: str, difference: str | None) -> AnswerFound:
    return {
        "database": database.name,
        "query": number,
        "against": against,
        "met": difference is None,
        "difference": difference,
    }
