"""What scripts of SQL add to points, answers and manifests (docs/oltp-results.md)."""

from __future__ import annotations

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.manifest import Database
from assay.record.shapes.terms import STRICT, MaybeAmount, Text
from assay.workloads.transactions.shapes import Oltp, TransactionFacts, lacks


class SqlDatabase(Database, total=False):
    """A database and its share of the throughput."""

    tps: MaybeAmount


class SqlOltp(Oltp, total=False):
    """What scripts came to, of a point or of a run."""

    tps: MaybeAmount
    scale: MaybeAmount
    databases: list[SqlDatabase] | None


class SqlFacts(TransactionFacts, total=False):
    """Which scripts, by which protocol."""

    protocol: Text
    scale: MaybeAmount
    digest: Text


class TpsBatch(TypedDict, total=False):
    """Means of equal pieces of the window."""

    tps: list[MaybeAmount] | None


class TpsBatches(TypedDict, total=False):
    """Batches of all databases together."""

    total: TpsBatch | None


@with_config(STRICT)
class SqlPoint(TypedDict, total=False):
    """A point of scripts."""

    workload: SqlFacts
    batches: TpsBatches | None
    oltp: SqlOltp | None


class TpsEnd(TypedDict, total=False):
    """What a load of a search gave."""

    tps: MaybeAmount
    tpm: MaybeAmount
    response_p90_ns: MaybeAmount


class SqlAnswer(TypedDict, total=False):
    """The answer of a search."""

    workload: SqlFacts
    max: TpsEnd | None
    knee: TpsEnd | None
    edge: TpsEnd | None
    first_failing: TpsEnd | None


@with_config(STRICT)
class SqlManifest(TypedDict, total=False):
    """A manifest of a run of scripts."""

    oltp: SqlOltp | None
    answers: list[SqlAnswer] | None


SHAPES = Shapes(point=SqlPoint, manifest=SqlManifest, lacks=lacks)
