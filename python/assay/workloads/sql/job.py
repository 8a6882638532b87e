"""Scripts at work: their tables are the user's, and users end at errors."""

from __future__ import annotations

from assay.base.errors import UsageError
from assay.base.units import count_of
from assay.record.shapes.point import Point
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.job import PartContext
from assay.workloads.plan import Part
from assay.workloads.sql.application import SQL, application_of
from assay.workloads.sql.loading import know_tables, make_tables, refuse_unsaved
from assay.workloads.sql.plan import SqlPlan
from assay.workloads.transactions.job import TransactionsJob
from assay.workloads.transactions.shapes import oltp_of


class SqlJob(TransactionsJob[SqlPlan]):
    """A part at work on its databases."""

    disclaimer = SQL.disclaimer

    def __init__(self, part: Part[SqlPlan], target: DatabaseTarget, context: PartContext) -> None:
        self.application = application_of(script.name for script in part.plan.scripts)
        super().__init__(part, target, context)
        for database in target.databases:
            know_tables(database)

    def check(self) -> None:
        """Refuse: the user's tables have no conditions that Assay knows."""
        raise UsageError("check: tables of one's own have no consistency conditions; leave it out")

    def mark(self, database: Database, state: str) -> None:
        """Write down what became of tables that Assay made."""
        if database.schema().kind != "absent":
            super().mark(database, state)

    def start_from_saved(self) -> None:
        """Bring back the saved state of tables that Assay made; the first time, keep the present one."""
        for database in self.target.databases:
            refuse_unsaved(database)
        super().start_from_saved()

    def note_odd(self, point: Point) -> None:
        """Say how many users ended at errors, and at which."""
        errors = oltp_of(point).get("errors") or {}
        if ended := errors.get("ended_users"):
            codes = ", ".join(f"{code} {count}" for code, count in (errors.get("codes") or {}).items())
            self.context.note(
                f"{point['id']}: {ended} of {count_of(self.plan.users, 'user')} ended at an error ({codes}), and the"
                f" others went on alone; the first was: {errors.get('example')}"
            )

    def _load(self) -> None:
        for database in self.target.databases:
            if database.schema().kind == "complete":
                self.context.note(f"the tables of {database.name} had been made before")
                continue
            self.context.display.phase(f"making the tables of {database.name}")
            count = make_tables(database, self.plan, display=self.context.display, interrupt=self.context.interrupt)
            self.context.display.tell(f"made the tables of {database.name}: {count_of(count, 'statement')}")
        self.target.refresh()
        self.keep(load=None)

    def _save(self) -> None:
        for database in self.target.databases:
            refuse_unsaved(database)
        super()._save()
