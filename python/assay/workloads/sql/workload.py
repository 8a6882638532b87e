"""The registration of the user's own SQL: what the pipeline knows of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.base.errors import UsageError
from assay.base.progress import Display
from assay.base.tables import Record
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.target import Target
from assay.workloads.databases.job import actions_done
from assay.workloads.plan import Part
from assay.workloads.sql.application import FIGURES, SQL, application_of
from assay.workloads.sql.job import SqlJob
from assay.workloads.sql.loading import make_tables
from assay.workloads.sql.plan import SqlPlan
from assay.workloads.sql.scripts import init_source, parse_scripts
from assay.workloads.sql.shapes import SHAPES
from assay.workloads.sql.tables import TABLES
from assay.workloads.transactions.opening import examine as examine_transactions
from assay.workloads.transactions.opening import prepare
from assay.workloads.transactions.workload import TransactionsWorkload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.source import RunFacts
    from assay.workloads.transactions.application import Application


def examine(target: DatabaseTarget, plan: SqlPlan) -> SqlPlan:
    """Refuse what the plan's actions cannot do with what is there, before anything is written.

    Raises
    ------
    UsageError, RefusedTarget
        Other files made the tables, or making them was cut short.
    """
    for database in target.databases:
        there = database.schema()
        if there.kind == "partial":
            raise UsageError(f"{database.name}: making its tables was cut short; begin with an empty database")
        if plan.init and there.kind == "complete" and there.seed != plan.rows_seed:
            raise UsageError(
                f"{database.name}: other files made its tables than --init names; name the same files, leave --init"
                " out, or begin with an empty database"
            )
    return examine_transactions(target, plan)


class SqlWorkload(TransactionsWorkload[SqlPlan]):
    """Scripts of the user's own SQL on databases."""

    kind = SQL.kind
    application = SQL
    job = SqlJob
    scale_unless_asked = "as they are"
    figures = FIGURES
    shapes = SHAPES
    plan_type = SqlPlan
    table_set = TABLES
    takes_scripts = True

    def application_of(self, plan: SqlPlan) -> Application:
        """The scripts of a plan."""
        return application_of(script.name for script in plan.scripts)

    def scripts_plan(self, words: Sequence[str], init: Sequence[str], scheme: str) -> SqlPlan:
        """A plan of scripts, with the files that make the tables."""
        data: dict[str, object] = {"scripts": parse_scripts(words, scheme), "init": [init_source(one) for one in init]}
        data["actions"] = ["load", "run"] if init else ["run"]
        return self.load_plan(data, source="--load")

    def make_tables(
        self, target: DatabaseTarget, plan: SqlPlan, *, display: Display, interrupt: threading.Event
    ) -> None:
        """Run the files that make the tables."""
        for database in target.databases:
            make_tables(database, plan, display=display, interrupt=interrupt)

    def examine(self, part: Part[SqlPlan], target: Target, manifest: Record, display: Display) -> Part[SqlPlan]:
        """Open the databases, and refuse actions that what they hold does not allow."""
        assert isinstance(target, DatabaseTarget), "scripts run on databases"
        done = actions_done(manifest, self.document_key, part.name)
        fitted = prepare(target, part.plan.without(done), display.phase, examining=examine)
        return replace(part, plan=fitted.model_copy(update={"actions": part.plan.actions}))

    def writes(self, part: Part[SqlPlan], target: Target) -> str:
        """What makes the tables, and that scripts write what they say."""
        made = f"{', '.join(source.name for source in part.plan.init)} makes the tables; " if part.plan.init else ""
        return f"{made}scripts write what their SQL says"

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Transactions by script, searches, both with their storage over time, and what each cost it."""
        from assay.workloads.transactions.report import transaction_sections

        return transaction_sections(facts, _application_of(facts))

    def remarks(self, facts: RunFacts) -> Remarks:
        """How many transactions a second."""
        from assay.workloads.transactions.report.remarks import transaction_remarks

        return transaction_remarks(facts, _application_of(facts))


def _application_of(facts: RunFacts) -> Application:
    """The application with the scripts of a run's points."""
    mixes = [point["workload"].get("mix") for point in facts.points_of(SQL.kind)]
    return application_of(dict.fromkeys(str(name) for mix in mixes if isinstance(mix, Mapping) for name in mix))
