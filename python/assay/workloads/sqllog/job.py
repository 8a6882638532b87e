"""A log at work on a database: its tables are the user's, and so are its statements."""

from __future__ import annotations

from assay.base.errors import UsageError
from assay.record.shapes.point import Point
from assay.targets.databases import Database
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.job import PartContext
from assay.workloads.plan import Part
from assay.workloads.sqllog.application import STATEMENTS
from assay.workloads.sqllog.measurement import StatementsMeasurement
from assay.workloads.sqllog.plan import StatementsPlan
from assay.workloads.sqllog.shapes import done_of
from assay.workloads.steps import Ask, Steps
from assay.workloads.transactions.job import TransactionsJob
from assay.workloads.transactions.point import OltpMeasurement


class StatementsJob(TransactionsJob[StatementsPlan]):
    """A part at work on its database."""

    application = STATEMENTS
    disclaimer = STATEMENTS.disclaimer

    def __init__(self, part: Part[StatementsPlan], target: DatabaseTarget, context: PartContext) -> None:
        super().__init__(part, target, context)
        survey = self.plan.log().survey
        if survey["untimed"] == survey["statements"]:
            context.note("the log tells no response times: the replay has nothing to compare its own with")
        if survey["by_second"]:
            context.note(
                "the log tells times to the second: statements of a session follow each other as fast as they may"
                " within it"
            )
        if survey["clock_back"]:
            context.note(f"the clock of the log went back {survey['clock_back']:,} times; each session keeps its order")

    def check(self) -> None:
        """Refuse: the user's tables have no conditions that Assay knows."""
        raise UsageError("check: tables of one's own have no consistency conditions; leave it out")

    def mark(self, database: Database, state: str) -> None:
        """Write nothing: the tables are the user's."""

    def run(self) -> Steps:
        """Replay once, or at the speeds that a search asks for."""
        if self.plan.writes and self.plan.search.axis != "none":
            self.context.note(
                "each speed of the search found what the speeds before wrote: nothing restored the database"
            )
        yield from super().run()

    def note_odd(self, point: Point) -> None:
        """Say what was no replay, which statements failed otherwise, and what was lost."""
        done = done_of(point)
        failed = sum(one.get("count") or 0 for one in done.get("different") or [] if one.get("replayed"))
        if failed:
            self.context.note(
                f"{point['id']}: {failed:,} statements failed in another way than in the log; see the report for which"
            )
        if lost := done.get("sessions_lost"):
            self.context.note(
                f"{point['id']}: {lost:,} sessions had no connection, and {done.get('lost') or 0:,} statements did not"
                f" run: {done.get('lost_example')}"
            )

    def _ask(self, plan: StatementsPlan) -> Ask:
        timed = plan.timed()
        asked = super()._ask(timed)
        return Ask(key={**asked.key, "logs": list(plan.log().fingerprint)}, workload=asked.workload, load=asked.load,
                   what=timed)  # fmt: skip

    def _measurement(self, plan: StatementsPlan, repeat: int, context: PartContext | None = None) -> OltpMeasurement:
        return StatementsMeasurement(
            self.target, plan, repeat, application=self.application, part=self.part.name,
            context=context or self.context,
        )  # fmt: skip
