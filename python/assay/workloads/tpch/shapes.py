"""What queries add to points and manifests (docs/dss.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Required, cast, final

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.point import Point
from assay.record.shapes.terms import (
    STRICT,
    Amount,
    Count,
    Flag,
    MaybeAmount,
    MaybeCount,
    MaybeNumber,
    Name,
    PointId,
    Text,
    Texts,
)
from assay.targets.databases.common.layout import LaidOutTables, PartitionedTable
from assay.workloads.databases.shapes import Loading, Storage


class QueryIo(TypedDict, total=False):
    """What the data's devices and the host did while a query ran."""

    read_bytes_per_s: MaybeAmount
    read_size_mean_bytes: MaybeAmount
    read_latency_mean_ns: MaybeAmount
    device_queue: MaybeAmount
    cpu_share: MaybeAmount


class Query(QueryIo, total=False):
    """What became of one query."""

    database: Text
    stream: Required[Count]
    query: Required[Count]
    started_utc_ns: Required[Count]
    seconds: Required[Amount]
    rows: Required[MaybeCount]
    bytes_read: MaybeAmount
    temp_bytes: MaybeAmount
    temp_files: MaybeAmount
    ended_by: Required[str]
    error: Text


class RefreshDone(TypedDict, total=False):
    """What a refresh function did."""

    database: Text
    stream: Required[Count]
    function: Required[str]
    set: MaybeCount
    started_utc_ns: Required[Count]
    seconds: Required[Amount]
    rows: MaybeCount


class ReadTable(TypedDict, total=False):
    """A table as the server counts it."""

    database: Text
    table: Required[Text]
    read_bytes: Required[MaybeAmount]
    page_requests_count: MaybeAmount
    page_reads_count: MaybeAmount
    share: MaybeNumber


class PlanText(TypedDict, total=False):
    """How the server meant to run a query."""

    database: Text
    query: MaybeCount
    text: Text


@final
class AnswerFound(TypedDict, total=False):
    """Whether a query's answer is right."""

    database: Required[Text]
    query: Required[Count]
    met: Required[Flag]
    against: Required[Text]
    difference: Required[Text]


@final
class RowsFound(TypedDict, total=False):
    """Whether a table has the rows that it should have."""

    database: Required[Text]
    table: Required[Text]
    count: Required[Count]
    expected: MaybeCount
    met: Required[Flag]


class ScaleLoaded(Loading, total=False):
    """How the rows were loaded, and of what scale they are."""

    scale_thousandths: MaybeCount


class LaidOutForQueries(LaidOutTables, total=False):
    """How the tables of a database were laid out, or were asked to be; `columnstore` are those kept by columns."""

    database: Text
    directories: Texts
    columnstore: Texts


class QueryLayout(TypedDict, total=False):
    """How tables were laid out for a test."""

    databases: list[LaidOutForQueries] | None


class ScoresOfTests(TypedDict, total=False):
    """What tests came to."""

    power: MaybeAmount
    throughput: MaybeAmount
    composite: MaybeAmount


class RunScores(ScoresOfTests, total=False):
    """What one run of the tests came to."""

    point_ids: list[PointId] | None


class Dss(TypedDict, total=False):
    """What queries came to, of a point or of a run."""

    scale: MaybeAmount
    test: Text
    run: MaybeCount
    streams: MaybeCount
    seed: MaybeCount
    complete: Flag
    completion_s: MaybeAmount
    power: MaybeAmount
    throughput: MaybeAmount
    composite: MaybeAmount
    queries: list[Query] | None
    refresh: list[RefreshDone] | None
    storage: Storage | None
    tables: list[ReadTable] | None
    plans: list[PlanText] | None
    cache: Text
    not_dropped: Texts
    layout: QueryLayout | None
    load: ScaleLoaded | None
    answers: list[AnswerFound] | None
    rows: list[RowsFound] | None
    point_id: PointId | None
    point_ids: list[PointId] | None
    runs: list[RunScores] | None
    actions_done: dict[str, list[str]] | None


class QueryFacts(TypedDict, total=False):
    """Which queries, on how much."""

    kind: Text
    name: Name | None
    preset: Text
    scale: MaybeAmount
    partition: PartitionedTable | None
    directories: Texts
    columnstore: Texts
    queries: list[Count] | None
    refresh: Flag
    cache: Text
    test: Text


class StreamsLoad(TypedDict, total=False):
    """How many streams."""

    streams: Count
    memory_bytes: MaybeCount


@with_config(STRICT)
class TpchPoint(TypedDict, total=False):
    """A point of queries."""

    workload: QueryFacts
    load: StreamsLoad
    dss: Dss | None


class MemoryEnd(TypedDict, total=False):
    """What queries did with an amount of memory."""

    memory_bytes: MaybeCount
    queries_per_h: MaybeAmount
    queries_spilled: MaybeAmount
    queries_failed: MaybeAmount


class MemoryAnswer(TypedDict, total=False):
    """The answer of a search over memory."""

    workload: QueryFacts
    max: MemoryEnd | None
    knee: MemoryEnd | None
    edge: MemoryEnd | None
    first_failing: MemoryEnd | None


@with_config(STRICT)
class TpchManifest(TypedDict, total=False):
    """A manifest of a run of queries."""

    dss: Dss | None
    answers: list[MemoryAnswer] | None


class _WholePoint(Point, total=False):
    dss: Dss | None


def dss_of(point: Point) -> Dss:
    """What a point of queries says of them; empty where it says nothing."""
    return cast(_WholePoint, point).get("dss") or {}


def storage_of(point: Point) -> Storage:
    """What the storage did for the databases of a point; empty where it is not known."""
    return dss_of(point).get("storage") or {}


def _lacks(point: Mapping[str, object]) -> str | None:
    return None if isinstance(point.get("dss"), Mapping) else "'dss', which points of queries have"


SHAPES = Shapes(point=TpchPoint, manifest=TpchManifest, lacks=_lacks)
