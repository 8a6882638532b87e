"""What registrations of transactions have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from assay.base.errors import UsageError
from assay.base.progress import Display
from assay.base.tables import Record
from assay.base.units import format_duration, format_latency
from assay.record.shapes.point import Point
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.target import Target
from assay.workloads.capabilities import Foreseen, OnDatabases, OverHosts, Reporting, Telling, Varied
from assay.workloads.databases.job import actions_done
from assay.workloads.databases.loading import load_tables
from assay.workloads.databases.opening import loading_words
from assay.workloads.plan import Part
from assay.workloads.spread import Share
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.check import violations_total
from assay.workloads.transactions.figures import tpm_words
from assay.workloads.transactions.opening import prepare
from assay.workloads.transactions.plan import TransactionsPlan
from assay.workloads.transactions.power import missing_total
from assay.workloads.transactions.seen import seen_io
from assay.workloads.transactions.shapes import DOCUMENT_KEY, Oltp, number_of, oltp_of
from assay.workloads.transactions.verdict import consistency_line, load_line, power_line
from assay.workloads.workload import Conclusion, Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.figures import Figure
    from assay.record.source import RunFacts
    from assay.targets.databases.common.spec import Kind as DatabaseKind
    from assay.workloads.seen import SeenIo

P = TypeVar("P", bound=TransactionsPlan)


class TransactionsWorkload(Workload[P], OnDatabases, Telling, Varied[P], Foreseen[P], OverHosts[P], Reporting):
    """Transactions of users on databases."""

    application: Application
    scale_unless_asked: ClassVar[str]
    """How much is loaded where the plan does not say, in words."""
    takes_scripts: ClassVar[bool] = False
    """Whether its transactions are scripts of the user's."""

    title = "Transaction"
    database_kinds: ClassVar[tuple[DatabaseKind, ...]] = ("embedded", "postgresql", "mariadb", "mssql")
    document_key = DOCUMENT_KEY
    apart = ("loading, restoring, checking",)

    def study_plan(self, data: Record, tables: Mapping[str, Record], *, seed: int, source: str) -> P:
        """The plan of a combination of levels; its seed is that of the rows, which all levels and repeats share."""
        if tables.get("activity"):
            raise UsageError(f"{source}: transactions have no activity; give of: plan or layout")
        changed = {name: {**data.get(name, {}), **table} for name, table in tables.items() if name != "activity"}
        plan = self.load_plan({**data, **changed}, source=source)
        if plan.scale_asked is not None and plan.ways_of(plan.scale_asked) is None:
            size, ways = self.application.tables.size, plan.layout.partition_ways
            raise UsageError(
                f"{source}: {ways} partitions need {size.words(ways)} or more, and {plan.scale_asked} are asked for;"
                f" give --set {size.option}={ways} or fewer --levels"
            )
        return plan

    def application_of(self, plan: P) -> Application:
        """What a plan runs."""
        del plan
        return self.application

    def scripts_plan(self, words: Sequence[str], init: Sequence[str], scheme: str) -> P:
        """A plan of the user's own scripts, where the kind takes some.

        Parameters
        ----------
        words
            Scripts as a command names them.
        init
            Files that make the tables.
        scheme
            Kind of the server.

        Raises
        ------
        UsageError
            A file cannot be read, or the kind takes none.
        """
        raise UsageError(f"{self.kind}: takes no scripts; leave {' '.join([*words, *init])} out of {scheme}'s load")

    def make_tables(self, target: DatabaseTarget, plan: P, *, display: Display, interrupt: threading.Event) -> None:
        """Make and fill the tables that a plan needs.

        Raises
        ------
        Interrupted, OpenFailed, OutOfSpace, IoFailed
            They are not whole.
        """
        load_tables(target, plan, display=display, interrupt=interrupt)

    def estimate_s(self, plan: P) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        fewest, most = plan.points_count if "run" in plan.actions else (0, 0)
        return fewest * plan.timing.point_s, most * plan.timing.point_s

    def expected_points(self, plan: P) -> Iterable[tuple[Record, Record]]:
        """One of its points."""
        yield plan.facts(plan.scale_asked or 1), plan.load_facts()

    def lines(self, part: Part[P], target: Target) -> list[str]:
        """The part in words."""
        plan = part.plan
        size = self.scale_unless_asked if plan.scale_asked is None else f"{plan.scale_asked:,}"
        things = self.application.tables.size.things
        load = f"{plan.users:,} users" if plan.rate is None else f"{plan.rate:,.0f} transactions per s, {plan.arrivals}"
        if plan.search.axis != "none":
            load = f"search on {plan.search.axis} from {plan.search.first_load:,.0f} to {plan.search.last_load:,.0f}"
        warmup, measured = plan.timing.warmup_length_s, plan.timing.duration_s
        on = f"; target: {part.target_text}" if part.target_text is not None else ""
        return [
            f"part {part.name}: {part.title}; {things}: {size}; {', then '.join(plan.actions)}{on}",
            f"  {load}; {plan.mode}; limits: {', '.join(plan.limits) or 'none'}",
            f"  each point: {format_duration(warmup)} warm-up, {format_duration(measured)} measured",
            f"note: {self.application.disclaimer}",
        ]

    def writes(self, part: Part[P], target: Target) -> str:
        """The rows that are loaded."""
        return loading_words(target, part.plan)

    # Targets

    def examine(self, part: Part[P], target: Target, manifest: Record, display: Display) -> Part[P]:
        """Open the databases, and refuse actions that the loaded data do not allow."""
        assert isinstance(target, DatabaseTarget), "transactions run on databases"
        done = actions_done(manifest, self.document_key, part.name)
        fitted = prepare(target, part.plan.without(done), display.phase)
        return replace(part, plan=fitted.model_copy(update={"actions": part.plan.actions}))

    # Several hosts

    @property
    def adds(self) -> frozenset[str]:  # type: ignore[override]
        """Transactions, and how much is loaded."""
        rate, tables = self.application.rate, self.application.tables
        own = {rate.key, tables.scale, self.application.counter, "tpm_client", "tpm_server"}
        return frozenset({*own, "rolled_back", "retried", "failed", "calls_count"})

    def share(self, plan: P, share: Share) -> P:
        """Users, connections and rates are spread over the hosts, whose databases are whole.

        Raises
        ------
        UsageError
            There are fewer users than hosts, or all hosts have one database, whose users would be in each other's way.
        """
        if share.shared:
            raise UsageError("--shared: transactions write; give each host a database of its own")
        data = plan.model_dump(mode="json")
        by_users = plan.search.axis == "users"
        if plan.search.axis != "users":
            data["users"] = share.whole(plan.users, "--users")
        if plan.connections is not None:
            data["connections"] = share.whole(plan.connections, "--connections")
        if plan.rate is not None:
            data["rate"] = share.rate(plan.rate)
        if plan.search.axis != "none":
            first, last = plan.search.first_load, plan.search.last_load
            end = share.whole(int(last), "the last load of a search") if by_users else share.rate(last)
            start = min(max(int(first) // share.hosts, 1), end) if by_users else share.rate(first)
            data["search"] |= {"start": start, "end": end}
        return self.load_plan(data, source="the plan's share of a host")

    # A run

    def point_words(self, point: Point) -> list[str]:
        """Transactions a minute, and the 90th percentile of each kind's response."""
        oltp = oltp_of(point)
        rate = self.application.rate
        by_minute = f", {tpm_words(oltp['tpm_client'] or 0.0)}" if self.application.by_minute else ""
        words = [f"{rate.words(number_of(oltp, rate.key) or 0.0)}{by_minute};"]
        for name, figures in (oltp["by_transaction"] or {}).items():
            latency_ns = figures["latency_ns"]
            if latency_ns is not None:
                words.append(f"{self.application.within(name)} p90 {format_latency(latency_ns['p90'] or 0.0)};")
        return words

    def ruined(self, point: Point) -> str | None:
        """Every transaction failed."""
        oltp = oltp_of(point)
        if not point["errors"]["count"] or oltp["tpm_client"]:
            return None
        return f"every transaction failed: {(oltp['errors'] or {}).get('example') or 'see the log of the server'}"

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What was loaded, and whether the conditions hold."""
        told: Oltp = manifest.get(DOCUMENT_KEY) or {}
        lines = []
        if load := told.get("load"):
            lines.append(load_line(load, self.application))
        if conditions := told.get("conditions"):
            lines.append(consistency_line(conditions, self.application))
        lines += [power_line(cut, self.application) for cut in told.get("power_cuts") or []]
        return Conclusion(last=lines)

    def failures(self, told: Record) -> str | None:
        """Violations of consistency conditions."""
        oltp = cast(Oltp, told)
        violations, missing = violations_total(oltp), missing_total(oltp)
        found = [f"consistency conditions are violated {violations:,} times"] if violations else []
        found += [f"{missing:,} acknowledged transactions are missing after a power cut"] if missing else []
        return "; ".join(found) or None

    def choices(self, points: Sequence[Point]) -> list[str]:
        """Which table was the hottest, where a layout partitions it."""
        own = [point for point in points if point["workload"].get("kind") == self.kind]
        traced = [(oltp_of(point).get("layout") or {}).get("hottest") for point in own]
        return list(dict.fromkeys(str(found["sentence"]) for found in traced if found))

    def seen(self, point: Point) -> SeenIo | None:
        """I/O under the data, where anything counted it."""
        return seen_io(point)

    def is_asked(self, point: Point) -> bool:
        """By a rate, or by keying and thinking times."""
        return super().is_asked(point) or bool(dict(point["workload"]).get("think_scale"))

    # Report

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Transactions, searches, both with their storage over time, and what each cost it."""
        from assay.workloads.transactions.report import transaction_sections

        return transaction_sections(facts, self.application)

    def remarks(self, facts: RunFacts) -> Remarks:
        """How many transactions a minute, and whether the data are consistent."""
        from assay.workloads.transactions.report.remarks import transaction_remarks

        return transaction_remarks(facts, self.application)

    def exported(self) -> Sequence[Figure]:
        """None: throughput has columns that all points have."""
        return ()
