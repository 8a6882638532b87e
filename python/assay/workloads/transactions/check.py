"""The consistency conditions of an application, asked of each database by itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

from assay.base.errors import Interrupted
from assay.base.progress import Display, ProgressStep
from assay.targets.databases import Database
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.shapes import Condition, Oltp

_TITLE = re.compile(r"^\s*--\s*title:\s*(.+?)\s*$", re.MULTILINE)


def check_conditions(
    databases: Sequence[Database], application: Application, *, display: Display, interrupt: threading.Event
) -> list[Condition]:
    """Ask all conditions; returns the `conditions` of docs/oltp-results.md.

    Raises
    ------
    Interrupted
        What was asked so far is lost.
    """
    found: list[Condition] = []
    for database in databases:
        has_run = database.schema().state != "loaded"
        display.phase(f"checking the consistency of {database.name}")
        for name, text in database.table_set.statements(database.dialect, "conditions"):
            number = int(name.removeprefix("condition."))
            if number in application.after_load_only and has_run:
                continue
            if interrupt.is_set():
                raise Interrupted("interrupted while checking; check again with the action: check")
            display.point(
                ProgressStep(f"checking condition {number} of {application.conditions_count} in {database.name}")
            )
            found.append({"database": database.name, **_ask(database, number, text)})
    return found


def violations_total(oltp: Oltp | None) -> int:
    """Violations of all conditions that were checked."""
    return sum(condition["violations"] for condition in (oltp.get("conditions") if oltp else None) or [])


def _ask(database: Database, number: int, text: str) -> Condition:
    ((checked, violations, example),) = database.query(text)
    title = _TITLE.search(text)
    return {
        "id": number,
        "title": title[1] if title else f"condition {number}",
        "violations": int(violations),
        "checked": int(checked),
        "example": None if example is None else str(example),
        "met": not violations,
    }
