"""What TPC-E-like transactions add to points, answers and manifests (docs/brokerage.md)."""

from __future__ import annotations

from pydantic import with_config
from typing_extensions import TypedDict

from assay.record.shapes.kinds import Shapes
from assay.record.shapes.manifest import Database
from assay.record.shapes.terms import STRICT, MaybeAmount, MaybeCount
from assay.workloads.transactions.shapes import Oltp, TransactionFacts, lacks


class TradingDatabase(Database, total=False):
    """A database and its share of the throughput."""

    trade_results_per_s: MaybeAmount


class BrokerageOltp(Oltp, total=False):
    """What transactions came to, of a point or of a run."""

    trade_results_per_s: MaybeAmount
    customers: MaybeCount
    databases: list[TradingDatabase] | None


class BrokerageFacts(TransactionFacts, total=False):
    """Which transactions, on how much."""

    customers: MaybeCount
    days: MaybeCount


class TradingBatch(TypedDict, total=False):
    """Means of equal pieces of the window."""

    trade_results_per_s: list[MaybeAmount] | None


class TradingBatches(TypedDict, total=False):
    """Batches of all databases together."""

    total: TradingBatch | None


@with_config(STRICT)
class BrokeragePoint(TypedDict, total=False):
    """A point of transactions."""

    workload: BrokerageFacts
    batches: TradingBatches | None
    oltp: BrokerageOltp | None


class TradingEnd(TypedDict, total=False):
    """What a load of a search gave."""

    trade_results_per_s: MaybeAmount
    tpm: MaybeAmount
    response_p90_ns: MaybeAmount


class BrokerageAnswer(TypedDict, total=False):
    """The answer of a search."""

    workload: BrokerageFacts
    max: TradingEnd | None
    knee: TradingEnd | None
    edge: TradingEnd | None
    first_failing: TradingEnd | None


@with_config(STRICT)
class BrokerageManifest(TypedDict, total=False):
    """A manifest of a run of transactions."""

    oltp: BrokerageOltp | None
    answers: list[BrokerageAnswer] | None


SHAPES = Shapes(point=BrokeragePoint, manifest=BrokerageManifest, lacks=lacks)
