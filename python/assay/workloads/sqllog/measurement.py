"""One replay of a log being measured: sessions at work, their statements, and the storage beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TypedDict, cast

from assay import _core
from assay.base.units import count_of
from assay.measure import judge
from assay.record.shapes.point import Generator, Offered
from assay.workloads.sqllog.comparison import CoreStatement, compared
from assay.workloads.sqllog.plan import StatementsPlan
from assay.workloads.sqllog.shapes import LogReplayed, OutcomeDiffers, StatementLateness, StatementsDone
from assay.workloads.sqllog.survey import StatementLog
from assay.workloads.transactions.point import LAG_MIN_NS, OltpMeasurement
from assay.workloads.transactions.reports import CoreRun, OltpFigures
from assay.workloads.transactions.shapes import MeasuredOltp, of_kind, with_own


class CoreTold(TypedDict):
    """What the core tells of a replay besides its counts."""

    done: int
    failed_alike: int
    refused_writes: int
    different: list[OutcomeDiffers]
    lateness: StatementLateness
    round_trip_ns: float | None
    sessions_done: int
    sessions_lost: int
    lost: int
    lost_example: str | None
    statements: list[CoreStatement]
    statements_left_out: int


class StatementsMeasurement(OltpMeasurement):
    """A point: the sessions of a log on a database."""

    plan: StatementsPlan

    def start(self) -> CoreRun:
        """Begin the sessions."""
        self.log = self.plan.log()
        self.replay = _core.StatementReplay(self.log.core, self._core_plan())
        return self.replay

    def _what(self) -> str:
        return f"{count_of(self.log.survey['sessions'], 'session')} at speed {self.plan.speed:g}"

    def _note_silence(self) -> None:
        """Nothing: a log has quiet times of its own."""

    def _judge_steady(self, firsts: Sequence[int]) -> None:
        """Nothing: a log is what it is."""

    @cached_property
    def told(self) -> CoreTold:
        """What the core tells of the replay once it has ended."""
        return cast(CoreTold, json.loads(self.replay.told()))

    def _own(self, figures: OltpFigures, saturated: bool) -> dict[str, object]:
        told = self.told
        backlog = figures["backlog"] or {"unfinished": 0, "oldest_ns": 0}
        done: StatementsDone = {
            "speed": self.plan.speed,
            "log": log_told(self.plan, self.log),
            "done": told["done"],
            "unfinished": backlog["unfinished"],
            "failed_alike": told["failed_alike"],
            "refused_writes": told["refused_writes"],
            "different": told["different"],
            "lateness": told["lateness"],
            "is_replay": not saturated,
            "round_trip_ns": told["round_trip_ns"],
            "sessions_done": told["sessions_done"],
            "sessions_lost": told["sessions_lost"],
            "lost": told["lost"],
            "lost_example": told["lost_example"],
            "compared": compared(told["statements"], told["round_trip_ns"] or 0.0),
            "compared_left_out": told["statements_left_out"],
        }
        return {"statements": done}

    def _oltp(self, figures: OltpFigures) -> MeasuredOltp:
        told: MeasuredOltp = {
            **super()._oltp(figures), "users": self.log.survey["sessions_most"], "memory_bytes_per_user": None,
        }  # fmt: skip
        return with_own(told, of_kind(self.application.tables.scale, None), MeasuredOltp())

    def _offered(self, figures: OltpFigures) -> Offered:
        """Whether the database kept up with the log."""
        backlog = figures["backlog"] or {"unfinished": 0, "oldest_ns": 0}
        unfinished, seconds = backlog["unfinished"], self.log.span_s / self.plan.speed
        done = self.told["done"] + self.told["lost"]
        return judge.offered(
            (done + unfinished) / seconds, done / seconds, seconds,
            unfinished=unfinished, oldest_ns=backlog["oldest_ns"],
        )  # fmt: skip

    def _generator(self, figures: OltpFigures) -> tuple[Generator, bool]:
        facts, saturated = super()._generator(figures)
        lag_ns, service = facts["schedule_lag_p99_ns"], figures["service_latency_ns"]
        late = lag_ns is not None and judge.is_late(lag_ns, service["mean"] if service else None, LAG_MIN_NS)
        return facts, saturated or late


def log_told(plan: StatementsPlan, log: StatementLog) -> LogReplayed:
    """What a log holds, as points say it."""
    survey = log.survey
    return {
        "names": [path.rpartition("/")[2] for path in plan.logs],
        "formats": survey["formats"],
        "database": survey["database"],
        "seconds": log.span_s,
        "begin_ns": survey["begin_ns"],
        "sessions": survey["sessions"],
        "sessions_most": survey["sessions_most"],
        "statements": survey["statements"],
        "untimed": survey["untimed"],
        "by_second": survey["by_second"],
        "failed": survey["failed"],
        "recorded_ns": {
            "mean": survey["recorded_mean_ns"],
            "p50": survey["recorded_p50_ns"],
            "p95": survey["recorded_p95_ns"],
            "p99": survey["recorded_p99_ns"],
        },
        "left_out": survey["left_out"],
        "not_understood": survey["not_understood"],
        "example": survey["example"],
    }
