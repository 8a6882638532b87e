"""The registration of replays of logs: what the pipeline knows of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.base.errors import UsageError
from assay.base.progress import Display
from assay.base.tables import Record
from assay.base.units import count_of, format_duration, format_latency
from assay.record.shapes.point import Point
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.target import Target
from assay.workloads.databases.job import actions_done
from assay.workloads.databases.opening import prepare
from assay.workloads.plan import Part
from assay.workloads.spread import Share
from assay.workloads.sqllog.application import FIGURES, STATEMENTS
from assay.workloads.sqllog.job import StatementsJob
from assay.workloads.sqllog.plan import StatementsPlan
from assay.workloads.sqllog.report import changes_sentence, headline, lateness_words
from assay.workloads.sqllog.shapes import SHAPES, done_of
from assay.workloads.transactions.opening import OWN_CONNECTIONS
from assay.workloads.transactions.workload import TransactionsWorkload
from assay.workloads.workload import Conclusion

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.source import RunFacts

DIALECTS = {"postgresql": "PostgreSQL", "mysql": "MariaDB or MySQL"}


def examine(target: DatabaseTarget, plan: StatementsPlan) -> StatementsPlan:
    """Refuse a database that cannot run the log.

    Raises
    ------
    UsageError
        There are several databases, another server's log, or too few connections.
    """
    if len(target.databases) != 1:
        raise UsageError("a log is replayed on one database; name one")
    database, survey = target.databases[0], plan.log().survey
    wanted = "postgresql" if database.dialect == "postgresql" else "mysql"
    if survey["dialect"] != wanted:
        raise UsageError(
            f"{database.name}: the log is one of {DIALECTS[survey['dialect']]}, whose statements another server does"
            " not run; name a database of that kind"
        )
    facts = target.facts()["databases"][0]
    free = facts["connections_free"]
    if free is not None and survey["sessions_most"] > max(free - OWN_CONNECTIONS, 0):
        raise UsageError(
            f"{database.name}: the log has {survey['sessions_most']:,} sessions at once, and the server takes"
            f" {max(free - OWN_CONNECTIONS, 0)} more connections; raise max_connections"
        )
    target.scale[database.name] = 1
    return plan


class StatementsWorkload(TransactionsWorkload[StatementsPlan]):
    """Statements that a server logged, run again on another."""

    kind = STATEMENTS.kind
    application = STATEMENTS
    job = StatementsJob
    scale_unless_asked = "as they are"
    figures = FIGURES
    shapes = SHAPES
    plan_type = StatementsPlan
    table_set = STATEMENTS.tables
    title = "Statement replay"
    database_kinds = ("embedded", "postgresql", "mariadb")
    apart = ("reading the log",)

    def estimate_s(self, plan: StatementsPlan) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        whole_s = plan.log().span_s / plan.speed
        fewest, most = plan.points_count
        return fewest * whole_s / (1 if fewest == 1 else 4), most * whole_s

    def expected_points(self, plan: StatementsPlan) -> Iterable[tuple[Record, Record]]:
        """A replay."""
        yield plan.facts(1), plan.load_facts()

    def examine(
        self, part: Part[StatementsPlan], target: Target, manifest: Record, display: Display
    ) -> Part[StatementsPlan]:
        """Read the log, open the database, and refuse one that cannot run it."""
        assert isinstance(target, DatabaseTarget), "statements run on databases"
        display.phase("reading the log")
        survey = part.plan.log().survey
        done = actions_done(manifest, self.document_key, part.name)
        prepare(
            target, part.plan.without(done), examine=examine, connections=survey["sessions_most"] + OWN_CONNECTIONS,
            show=display.phase,
        )  # fmt: skip
        return replace(part)

    def lines(self, part: Part[StatementsPlan], target: Target) -> list[str]:
        """The log in words."""
        plan, log = part.plan, part.plan.log()
        survey = log.survey
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in survey["by_kind"].items() if count)
        left = [f"{count:,} {reason}" for reason, count in survey["left_out"].items()]
        how = f"search on speed to {plan.search.last_load:g}" if plan.search.axis != "none" else f"speed {plan.speed:g}"
        words = [
            f"part {part.name}: {part.title}; {how}; limits: {', '.join(plan.limits) or 'none'}",
            f"  {', '.join(survey['formats'])}: {count_of(survey['statements'], 'statement')} ({kinds}) of"
            f" {count_of(survey['sessions'], 'session')}, {survey['sessions_most']:,} at once at most, in"
            f" {format_duration(log.span_s)}; {survey['fingerprints']:,} kinds of statements",
        ]
        if survey["recorded_mean_ns"] is not None:
            words.append(
                f"  recorded response: {format_latency(survey['recorded_mean_ns'])} on average, p95"
                f" {format_latency(survey['recorded_p95_ns'] or 0)}"
            )
        words += [f"  left out: {one}" for one in left]
        if survey["not_understood"]:
            words.append(
                f"  not understood: {count_of(survey['not_understood'], 'line')}, such as {survey['example']!r}"
            )
        return [*words, f"  {self.writes(part, target)}", f"note: {STATEMENTS.disclaimer}"]

    def document(self, part: Part[StatementsPlan], target: Target) -> dict[str, object]:
        """What the log holds."""
        return {"log": dict(part.plan.log().survey)}

    def writes(self, part: Part[StatementsPlan], target: Target) -> str:
        """What statements write."""
        return (
            "statements write what their SQL says" if part.plan.writes else "sessions only read; --writes runs the rest"
        )

    def share(self, plan: StatementsPlan, share: Share) -> StatementsPlan:
        """Refuse several hosts: a log is replayed by one.

        Raises
        ------
        UsageError
            Always.
        """
        raise UsageError("--hosts: a log is replayed by one host; leave --hosts out")

    def is_asked(self, point: Point) -> bool:
        """By the log."""
        return True

    def point_words(self, point: Point) -> list[str]:
        """What the replay came to."""
        done = done_of(point)
        late = lateness_words(done)
        return [headline(done), changes_sentence(done), *([f"Starts late by {late};"] if late else [])]

    def ruined(self, point: Point) -> str | None:
        """Nothing ran."""
        done = done_of(point)
        if done.get("done") or not done.get("lost"):
            return None
        return f"no session had a connection: {done.get('lost_example')}"

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """Whether points were replays."""
        found = super().conclude(points, manifest)
        late = [point for point in points if done_of(point).get("is_replay") is False]
        if late:
            found.notices.append(
                f"{len(late)} of {len(points)} points are no replay: statements began too late for the times of the log"
                " (see lateness); give the host more CPU, or a lower --speed"
            )
        return found

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """What was replayed; searches and storage as transactions have them."""
        from assay.workloads.sqllog.report import statements_section
        from assay.workloads.transactions.report.section import search_section
        from assay.workloads.transactions.report.storage import oltp_storage_section
        from assay.workloads.transactions.report.timeline import oltp_timeline_section

        others = (one(facts, STATEMENTS) for one in (search_section, oltp_timeline_section, oltp_storage_section))
        return [one for one in (statements_section(facts), *others) if one is not None]

    def remarks(self, facts: RunFacts) -> Remarks:
        """What searches found, and the figures of points."""
        from assay.workloads.transactions.report.remarks import transaction_remarks

        return transaction_remarks(facts, STATEMENTS)
