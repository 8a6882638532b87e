"""What replays of logs add to points and manifests (docs/statement-logs.md)."""

from __future__ import annotations

from typing import cast

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.manifest import Database
from assay.record.shapes.point import Point
from assay.record.shapes.terms import STRICT, Counts, Flag, MaybeAmount, MaybeCount, Text, Texts
from assay.workloads.transactions.shapes import Oltp, TransactionFacts, lacks


class StatementsDatabase(Database, total=False):
    """A database and its share of the throughput."""

    statements_per_s: MaybeAmount


class StatementsOltp(Oltp, total=False):
    """What statements came to, of a point or of a run."""

    statements_per_s: MaybeAmount
    scale: MaybeAmount
    databases: list[StatementsDatabase] | None


class StatementsFacts(TransactionFacts, total=False):
    """Which log, and whether it may write."""

    writes: Flag


class StatementTimes(TypedDict, total=False):
    """Response times of the statements of one fingerprint."""

    count: MaybeCount
    mean: MaybeAmount
    p50: MaybeAmount
    p95: MaybeAmount
    p99: MaybeAmount
    max: MaybeAmount


class StatementCompared(TypedDict, total=False):
    """Statements of one fingerprint, in the log and in the replay; `times` above 1 is slower."""

    text: Text
    kind: Text
    count: MaybeCount
    failed: MaybeCount
    recorded_ns: StatementTimes | None
    replayed_ns: StatementTimes | None
    times: MaybeAmount
    interval_95: list[MaybeAmount] | None
    change: Text


class OutcomeDiffers(TypedDict, total=False):
    """Statements that ended in another way than in the log, by SQLSTATE; an empty one is success."""

    recorded: Text
    replayed: Text
    count: MaybeCount
    statement: Text
    example: Text


class StatementLateness(TypedDict, total=False):
    """How late statements began; those of `held_count` waited for the one before of their session."""

    count: MaybeCount
    p50_ns: MaybeAmount
    p99_ns: MaybeAmount
    max_ns: MaybeAmount
    held_count: MaybeCount


class RecordedTimes(TypedDict, total=False):
    """Response times of all statements of the log."""

    mean: MaybeAmount
    p50: MaybeAmount
    p95: MaybeAmount
    p99: MaybeAmount


class LogReplayed(TypedDict, total=False):
    """The log: what it holds, and what of it was left out."""

    names: Texts
    formats: Texts
    database: Text
    seconds: MaybeAmount
    begin_ns: MaybeAmount
    sessions: MaybeCount
    sessions_most: MaybeCount
    statements: MaybeCount
    untimed: MaybeCount
    by_second: Flag
    failed: MaybeCount
    recorded_ns: RecordedTimes | None
    left_out: Counts
    not_understood: MaybeCount
    example: Text


class StatementsDone(TypedDict, total=False):
    """What a replay of a log came to."""

    speed: MaybeAmount
    log: LogReplayed | None
    done: MaybeCount
    unfinished: MaybeCount
    failed_alike: MaybeCount
    refused_writes: MaybeCount
    different: list[OutcomeDiffers] | None
    lateness: StatementLateness | None
    is_replay: Flag
    round_trip_ns: MaybeAmount
    sessions_done: MaybeCount
    sessions_lost: MaybeCount
    lost: MaybeCount
    lost_example: Text
    compared: list[StatementCompared] | None
    compared_left_out: MaybeCount


class StatementsBatch(TypedDict, total=False):
    """Means of equal pieces of the window."""

    statements_per_s: list[MaybeAmount] | None


class StatementsBatches(TypedDict, total=False):
    """Batches of all statements together."""

    total: StatementsBatch | None


@with_config(STRICT)
class StatementsPoint(TypedDict, total=False):
    """A point of a replay of a log."""

    workload: StatementsFacts
    batches: StatementsBatches | None
    oltp: StatementsOltp | None
    statements: StatementsDone | None


class StatementsPointWhole(Point, total=False):
    """A point that may be one of a replay of a log."""

    statements: StatementsDone | None


class StatementsEnd(TypedDict, total=False):
    """What a speed of a search gave."""

    statements_per_s: MaybeAmount
    tpm: MaybeAmount
    response_p90_ns: MaybeAmount


class StatementsAnswer(TypedDict, total=False):
    """The answer of a search."""

    workload: StatementsFacts
    max: StatementsEnd | None
    knee: StatementsEnd | None
    edge: StatementsEnd | None
    first_failing: StatementsEnd | None


@with_config(STRICT)
class StatementsManifest(TypedDict, total=False):
    """A manifest of a run that replayed a log."""

    oltp: StatementsOltp | None
    answers: list[StatementsAnswer] | None


def done_of(point: Point) -> StatementsDone:
    """What a point says of its replay; empty where it is none."""
    return cast("StatementsPointWhole", point).get("statements") or {}


SHAPES = Shapes(point=StatementsPoint, manifest=StatementsManifest, lacks=lacks)
