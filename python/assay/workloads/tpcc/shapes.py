"""What TPC-C-like transactions add to points, answers and manifests (docs/oltp-results.md)."""

from __future__ import annotations

from typing import cast

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.manifest import Database
from assay.record.shapes.point import Point
from assay.record.shapes.terms import STRICT, Flag, MaybeAmount, MaybeCount, Text
from assay.workloads.transactions.shapes import Oltp, TransactionFacts, lacks


class MeasuredDatabase(Database, total=False):
    """A database and its share of the throughput."""

    nopm: MaybeAmount


class TpccOltp(Oltp, total=False):
    """What transactions came to, of a point or of a run."""

    nopm: MaybeAmount
    warehouses: MaybeCount
    databases: list[MeasuredDatabase] | None


class TpccFacts(TransactionFacts, total=False):
    """Which transactions, on how much."""

    warehouses: MaybeCount
    items: Text
    home: Text
    pipeline: Flag
    isolation: Text


class NopmBatch(TypedDict, total=False):
    """Means of equal pieces of the window."""

    nopm: list[MaybeAmount] | None


class NopmBatches(TypedDict, total=False):
    """Batches of all databases together."""

    total: NopmBatch | None


@with_config(STRICT)
class TpccPoint(TypedDict, total=False):
    """A point of transactions."""

    workload: TpccFacts
    batches: NopmBatches | None
    oltp: TpccOltp | None


class NopmEnd(TypedDict, total=False):
    """What a load of a search gave."""

    nopm: MaybeAmount
    tpm: MaybeAmount
    response_p90_ns: MaybeAmount


class TpccAnswer(TypedDict, total=False):
    """The answer of a search."""

    workload: TpccFacts
    max: NopmEnd | None
    knee: NopmEnd | None
    edge: NopmEnd | None
    first_failing: NopmEnd | None


@with_config(STRICT)
class TpccManifest(TypedDict, total=False):
    """A manifest of a run of transactions."""

    oltp: TpccOltp | None
    answers: list[TpccAnswer] | None


class _Tpcc(Point, total=False):
    """A whole point, with what its transactions came to."""

    oltp: TpccOltp | None


def tpcc_of(point: Point) -> TpccOltp:
    """What a point of these transactions says of them; empty where it says nothing."""
    return cast(_Tpcc, point).get("oltp") or {}


SHAPES = Shapes(point=TpccPoint, manifest=TpccManifest, lacks=lacks)
