"""The registration of the TPC-H-like workload: what the pipeline knows of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assay.base.errors import NotSupported, UsageError
from assay.base.progress import Display
from assay.base.tables import Record
from assay.base.units import count_of, format_duration, format_throughput
from assay.record.points import MEMORY_AXIS
from assay.record.shapes.point import Point, VerdictLine
from assay.targets.databases.common.layout import refuse_layout
from assay.targets.databases.common.query_memory import NO_QUERY_MEMORY
from assay.targets.databases.common.target import DatabaseTarget
from assay.targets.target import Target
from assay.workloads.capabilities import Examining, Foreseen, OnDatabases, OverHosts, Reporting, RunsBeside, Telling
from assay.workloads.databases.job import actions_done
from assay.workloads.databases.opening import examine_actions, loading_words, prepare
from assay.workloads.databases.plan import load_connections
from assay.workloads.job import Job
from assay.workloads.plan import Part
from assay.workloads.spread import Share
from assay.workloads.tpch.beside import BesideTpch
from assay.workloads.tpch.check import found_by, wrong_total
from assay.workloads.tpch.examination import PARTS
from assay.workloads.tpch.figures import FIGURES, SCORE, in_memory, scan_bytes_per_s
from assay.workloads.tpch.job import DISCLAIMER, TpchJob, layout_words
from assay.workloads.tpch.plan import MEMORY_LIMITS, POWER_QUERY_S, SCALE_DEFAULT, TpchPlan
from assay.workloads.tpch.refresh import sets_done
from assay.workloads.tpch.scaling import scaling_sentences
from assay.workloads.tpch.scores import run_that_counts, throughput_score
from assay.workloads.tpch.shapes import SHAPES, Dss, RunScores, dss_of, storage_of
from assay.workloads.tpch.streams import minimum_streams
from assay.workloads.tpch.tables import TABLES
from assay.workloads.workload import Conclusion, Workload

if TYPE_CHECKING:
    from assay.document.elements import Section
    from assay.document.remarks import Remarks
    from assay.record.source import RunFacts
    from assay.workloads.seen import SeenIo


class TpchWorkload(
    Workload[TpchPlan],
    OnDatabases,
    Telling,
    Foreseen[TpchPlan],
    Examining,
    OverHosts[TpchPlan],
    RunsBeside,
    Reporting,
):
    """Decision-support queries on databases."""

    kind = "tpch"
    preset_default = "tpch"
    examination = PARTS
    figures = FIGURES
    shapes = SHAPES
    plan_type = TpchPlan
    job = TpchJob
    title = "Query"
    table_set = TABLES
    modules = ("sqlglot",)
    document_key = "dss"
    apart = ("loading, restoring, checking",)

    def load_plan(self, data: Record, *, source: str) -> TpchPlan:
        """A plan from its TOML or JSON form; a search over memory has limits of its own."""
        plan = super().load_plan(data, source=source)
        own = plan.is_searched and not plan.user_limits
        return plan.model_copy(update={"limits": MEMORY_LIMITS}) if own else plan

    def estimate_s(self, plan: TpchPlan) -> tuple[float, float]:
        """Shortest and longest time its tests take: a guess, since it depends on nothing so much as on the target."""
        if "run" not in plan.actions:
            return 0.0, 0.0
        scale = plan.scale or SCALE_DEFAULT
        streams = plan.streams or minimum_streams(scale)
        if plan.is_searched:
            return 0.0, 8 * len(plan.queries) * POWER_QUERY_S * max(scale, 0.1)
        runs = sum({"power": 1, "throughput": streams}[test] for test in plan.tests) * len(plan.queries) * plan.repeats
        return 0.0, runs * POWER_QUERY_S * max(scale, 0.1)

    def points_least(self, plan: TpchPlan) -> int | None:
        """A point a test."""
        if plan.is_searched:
            return 1
        return len(plan.tests) * plan.repeats if "run" in plan.actions else 0

    def expected_points(self, plan: TpchPlan) -> Iterable[tuple[Record, Record]]:
        """One of its points."""
        yield plan.facts(plan.thousandths) | {"test": plan.tests[0]}, {"streams": 1}

    def lines(self, part: Part[TpchPlan], target: Target) -> list[str]:
        """The part in words."""
        plan = part.plan
        size = "what is loaded, else 1" if plan.scale is None else f"{plan.scale:g}"
        streams = "the specified minimum" if plan.streams is None else f"{plan.streams}"
        on = f"; target: {part.target_text}" if part.target_text is not None else ""
        timeout = (
            "" if plan.query_timeout_s is None else f"; a query ends after {format_duration(plan.query_timeout_s)}"
        )
        often = f", {plan.repeats} times" if plan.repeats > 1 else ""
        return [
            f"part {part.name}: {part.title}; scale: {size}; {', then '.join(plan.actions)}{on}",
            f"  tests: {', then '.join(plan.tests)}{often}; streams: {streams}; queries: {len(plan.queries)}"
            f"{'' if plan.refresh else ', without refresh'}; caches {plan.cache}{timeout}",
            f"  layout: {layout_words(plan)}; limits: {', '.join(plan.limits) or 'none'}",
            f"note: {DISCLAIMER}",
        ]

    def writes(self, part: Part[TpchPlan], target: Target) -> str:
        """The rows that are loaded."""
        return loading_words(target, part.plan)

    # Targets

    def examine(self, part: Part[TpchPlan], target: Target, manifest: Record, display: Display) -> Part[TpchPlan]:
        """Open the databases, and refuse actions that the loaded data do not allow."""
        assert isinstance(target, DatabaseTarget), "queries run on databases"
        done = actions_done(manifest, TpchJob.document_key, part.name)
        plan = part.plan.without(done)
        streams = (plan.streams or 1) + 1 if "throughput" in plan.tests else 2
        prepare(
            target,
            plan,
            examine=_examined,
            connections=max(streams, load_connections(plan)),
            show=display.phase,
            folders=plan.directories,
        )
        return replace(part, plan=part.plan)

    # Several hosts

    def share(self, plan: TpchPlan, share: Share) -> TpchPlan:
        """Streams are spread over the hosts, whose databases are whole.

        Raises
        ------
        UsageError
            The power test is asked for, there are fewer streams than hosts, or these are to share a database.
        """
        if share.shared:
            raise UsageError("--shared: a database takes one run at a time; give each host a database of its own")
        if plan.is_searched:
            raise UsageError("--hosts: --search memory is of one host; leave one of them out")
        if "run" in plan.actions and "power" in plan.tests:
            raise UsageError("--hosts: the power test is one stream on one database; give --test throughput")
        if plan.streams is None:
            return plan
        return plan.model_copy(update={"streams": share.whole(plan.streams, "--streams")})

    def merged(self, points: Sequence[Record]) -> dict[str, Any]:
        """One test of the streams of all hosts, which is over when the last of them is."""
        found = super().merged(points)
        ended_ns = max(point["measured_to_utc_ns"] for point in points)
        seconds = (ended_ns - found["measured_from_utc_ns"]) / 1e9
        dss = found["dss"] | {"completion_s": seconds, "throughput": None}
        if dss["complete"] and dss["test"] == "throughput" and dss["scale"]:
            dss["throughput"] = throughput_score(dss["streams"], seconds, scale=dss["scale"])
        return found | {"measured_to_utc_ns": ended_ns, "measured_s": seconds, "dss": dss}

    def merged_told(self, told: Sequence[Record], points: Sequence[Record]) -> dict[str, Any]:
        """What all hosts' streams came to together: runs are the points that they measured together."""
        found = super().merged_told(told, points)
        scores = {point["id"]: (point.get("dss") or {}).get("throughput") for point in points}
        runs: list[RunScores] = [
            {"throughput": score, "composite": None, "point_ids": [one]} for one, score in scores.items() if score
        ]
        if found.get("runs"):
            found |= {"runs": runs, "throughput": run_that_counts(runs)["throughput"] if runs else None}
        return found

    # A run

    def beside(self, opened: Job) -> BesideTpch:
        """Its streams as a load beside another part."""
        assert isinstance(opened, TpchJob), "queries run on databases"
        return BesideTpch(opened)

    def point_words(self, point: Point) -> list[str]:
        """What a test came to, and how fast was read."""
        told = SCORE.told(point)
        rate = scan_bytes_per_s(point)
        return [f"{told};", *([f"read {format_throughput(rate)};"] if rate else [])]

    def ruined(self, point: Point) -> str | None:
        """No query was answered, which a search over memory asks for."""
        queries = dss_of(point).get("queries") or []
        if (
            not queries
            or dict(point["load"]).get(MEMORY_AXIS) is not None
            or any(query["ended_by"] == "done" for query in queries)
        ):
            return None
        return f"no query was answered: {queries[0]['error'] or queries[0]['ended_by']}"

    def conclude(self, points: Sequence[Point], manifest: Record) -> Conclusion:
        """What was loaded, what both tests come to, and whether the answers are right."""
        told: Dss = manifest.get("dss") or {}
        lines = []
        if load := told.get("load"):
            scale, seconds = (load["scale_thousandths"] or 0) / 1000, load["seconds"] or 0.0
            meaning = (
                f"scale {scale:g}: {load['rows']:,} rows at {load['rows_per_s']:,.0f}"
                f" rows/s, {format_duration(seconds)} in all"
            )
            lines.append(_line("rows loaded", load["rows"] or 0, meaning))
        if (composite := told.get("composite")) is not None:
            meaning = f"{composite:,.1f} composite queries per hour at scale {told['scale']:g}"
            lines.append(_line("composite queries per hour", composite, meaning))
        if told.get("answers") or told.get("rows"):
            lines.append(_checked_line(told))
        return Conclusion(last=lines)

    def failures(self, told: Record) -> str | None:
        """Answers that are wrong."""
        wrong = wrong_total(cast(Dss, told))
        return f"answers or row counts are wrong {count_of(wrong, 'time')}" if wrong else None

    def untouched(self, point: Point) -> str:
        """What its queries read, where that is next to nothing of their data."""
        return in_memory(point)

    def choices(self, points: Sequence[Point]) -> list[str]:
        """Where more streams bring nothing, and what stops them."""
        return scaling_sentences(points)

    def seen(self, point: Point) -> SeenIo | None:
        """Reads under the data, where anything counted them: scans are what a profile in order stands beside."""
        from assay.workloads.databases.seen import seen_io

        return seen_io(storage_of(point), reads_alone=True)

    # Report

    def sections(self, facts: RunFacts) -> Sequence[Section]:
        """Scores, queries, both with the storage over time."""
        from assay.workloads.tpch.report import tpch_sections

        return tpch_sections(facts)

    def remarks(self, facts: RunFacts) -> Remarks:
        """What the queries took, and what they waited for."""
        from assay.workloads.tpch.report.remarks import tpch_remarks

        return tpch_remarks(facts)


def _examined(target: DatabaseTarget, plan: TpchPlan) -> TpchPlan:
    """Refuse what cannot be done, before anything is written."""
    examine_actions(target, plan)
    for database in target.databases:
        if plan.is_searched and database.query_memory is None:
            raise NotSupported(f"{database.name}: --search memory: {NO_QUERY_MEMORY}")
        if plan.columnstore and not database.can_store_columns():
            raise NotSupported(
                f"{database.name}: --columnstore {','.join(plan.columnstore)}: this engine keeps tables by rows alone;"
                " use SQL Server, MariaDB with its ColumnStore engine, or duckdb:PATH"
            )
        refuse_layout(
            database,
            places=max(len(plan.directories), 1),
            ways=plan.partition.ways,
            scale=target.scale[database.name],
        )
        if "run" in plan.actions and plan.refresh and not database.takes_changes:
            raise NotSupported(
                f"{database.name}: the refresh functions change tables, and Parquet files take no changes; give"
                " --no-refresh, with which there are times and no scores"
            )
        if "run" in plan.actions and plan.refresh and database.schema().kind == "complete":
            sets_done(database)
    return plan


def _line(question: str, value: float | None, meaning: str, *, met: bool | None = None) -> VerdictLine:
    return VerdictLine(
        question=question, limit=None, value=value, unit="count", met=met, meaning=meaning, point_id=None
    )


def _checked_line(told: Dss) -> VerdictLine:
    wrong = wrong_total(told)
    if wrong:
        first = next(one for one in found_by(told) if not one["met"])
        what = (
            f"query {first['query']} on {first['database']}: {first['difference']}"
            if "query" in first
            else f"{first['table']} of {first['database']} has {first['count']:,} rows, not {first['expected']:,}"
        )
        return _line("wrong answers", wrong, f"FAILED {count_of(wrong, 'time')}, first {what}", met=False)
    tables = told.get("rows") or []
    queries = {answer["query"] for answer in told.get("answers") or []}
    unknown = [table for table in tables if table.get("expected") is None]
    many = f"{len(tables) - len(unknown)} of {len(tables)}" if unknown else "all"
    rows = f"{many} tables have the rows they should have"
    if unknown:
        rows += f"; of {', '.join(dict.fromkeys(str(table['table']) for table in unknown))} the number is not known"
    if queries:
        return _line("wrong answers", 0, f"all {len(queries)} answers are right, and {rows}", met=True)
    # Rows say nothing of what queries return.
    return _line("wrong answers", None, f"answers were not compared; {rows}")
