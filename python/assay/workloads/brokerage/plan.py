"""The TPC-E-like workload (docs/brokerage.md): what `assay oltp brokerage` runs, as a plan in TOML or JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, Self, TypedDict

from pydantic import BeforeValidator, Field, model_validator

from assay.base.errors import UsageError
from assay.base.fields import FieldValueError
from assay.record.limits import Limit, parse_limits
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.brokerage.application import BROKERAGE, BY_PRODUCTS, FIGURES, MAINTENANCE
from assay.workloads.brokerage.shapes import BrokerageFacts
from assay.workloads.brokerage.tables import CUSTOMERS_OF_BROKER, DAYS_DEFAULT, KIND, NEWS_BYTES
from assay.workloads.databases.plan import DATABASE
from assay.workloads.options import Option
from assay.workloads.transactions.plan import (
    MIX,
    Mix,
    TransactionsLayout,
    TransactionsPlan,
    Weight,
    parse_mix,
    shares_of,
)
from assay.workloads.transactions.shapes import Transaction

CUSTOMERS_DEFAULT = 1000

USERS_PER_CLERK = 2
"""Users whose orders one clerk of the market completes, as the core has it."""

CUSTOMERS_MAX = 10_000_000

EXECUTED_SHARE = 0.99
"""Share of orders that lead to a result: the others are rolled back on purpose."""
FEEDS_OF_RESULT = 0.1
"""A feed has twenty quotes, and each result brings two."""

MIX_TOLERANCE_SHARE = 0.05
"""A transaction's share of the mix may be off by this share of itself."""
MIX_DEVIATIONS = 4.0
"""Or by this number of standard deviations of its count, if that is more: counts of a short window say little."""

ORDERED = tuple(name for name in BROKERAGE.transactions if name not in (*BY_PRODUCTS, MAINTENANCE))
"""Transactions that users ask for."""


class BrokerageMix(Mix):
    """How often each transaction is drawn, in any unit; results and feeds come of orders."""

    trade_status: Weight = 0
    market_watch: Weight = 0
    security_detail: Weight = 0
    customer_position: Weight = 0
    trade_order: Weight = 0
    trade_lookup: Weight = 0
    broker_volume: Weight = 0
    trade_update: Weight = 0

    @property
    def weights(self) -> list[int]:
        """The weights in the order of all transactions, 0 for transactions that no user asks for."""
        return [getattr(self, name, 0) for name in BROKERAGE.transactions]

    @property
    def shares(self) -> dict[str, float]:
        """The share that each transaction should have, results and feeds included, maintenance left out."""
        expected: dict[str, float] = {name: getattr(self, name) for name in ORDERED}
        expected["trade_result"] = EXECUTED_SHARE * self.trade_order
        expected["market_feed"] = FEEDS_OF_RESULT * expected["trade_result"]
        total = sum(expected.values())
        return {name: weight / total for name, weight in expected.items()}


PartitionTable = Literal[
    "", "hottest", "trade", "trade_history", "settlement", "cash_transaction", "holding_history", "holding"
]


class BrokerageLayout(TransactionsLayout):
    """How tables and indexes are laid out before a run."""

    partition_table: PartitionTable = ""
    """The table that is partitioned by ranges of the trade's key; `hottest` is found from a trace."""


class BrokerageOfCore(TypedDict):
    """What the core's plan has of these transactions alone; `next_trades` of each database."""

    rows_seed: int | None
    days: int
    next_trades: list[int]
    think_scale: float
    pipeline: bool
    isolation: str


class BrokeragePlan(TransactionsPlan):
    """A plan of `assay oltp brokerage`."""

    kind: Literal["brokerage"] = "brokerage"
    title: str = "TPC-E-like transactions"
    customers: Annotated[
        Annotated[int, Field(ge=1, le=CUSTOMERS_MAX)] | None,
        Option(
            "--customers",
            f"Customers to load, by the hundred, about 1 MB each ({CUSTOMERS_DEFAULT:,}, or as loaded).",
            DATABASE,
        ),
    ] = None
    """Over all databases; None: those that are loaded, else `CUSTOMERS_DEFAULT`."""
    days: Annotated[
        Annotated[int, Field(ge=1, le=300)] | None,
        Option("--days", f"Days of trading behind the database ({DAYS_DEFAULT}, or as loaded).", DATABASE),
    ] = None
    """None: those that are loaded, else `DAYS_DEFAULT`."""
    news_bytes: Annotated[
        Annotated[int, Field(ge=100, le=1_000_000)] | None,
        Option("--news-bytes", f"Length of the text of a news item ({NEWS_BYTES}, or of those loaded).", DATABASE),
    ] = None
    """Length of the large object of a news item; None: of those that are loaded, else `NEWS_BYTES`."""
    mix: Annotated[
        BrokerageMix,
        BeforeValidator(partial(parse_mix, transactions=ORDERED)),
        Option("--mix", "Weights: trade_order=101,trade_status=190,...", MIX),
    ] = BrokerageMix(
        trade_status=190, market_watch=180, security_detail=140, customer_position=130, trade_order=101,
        trade_lookup=80, broker_volume=49, trade_update=20,
    )  # fmt: skip
    layout: BrokerageLayout = BrokerageLayout()
    draw: Annotated[
        Literal["independent", "deck"],
        Option("--draw", "Draw transactions from a deck of cards, or independently.", MIX),
    ] = "deck"

    @model_validator(mode="after")
    def _whole_brokers(self) -> Self:
        if self.customers is not None and self.customers % CUSTOMERS_OF_BROKER:
            nearest = max(round(self.customers / CUSTOMERS_OF_BROKER), 1) * CUSTOMERS_OF_BROKER
            raise FieldValueError(
                "customers",
                f"{self.customers:,}: a broker serves {CUSTOMERS_OF_BROKER} customers, and they come by the hundred;"
                f" give {nearest:,}",
            )
        return self

    @property
    def weights(self) -> list[int]:
        """Weights of the transactions in the core's order."""
        return self.mix.weights

    @property
    def scale_asked(self) -> int | None:
        """Customers over all databases."""
        return self.customers

    @property
    def shape_asked(self) -> Mapping[str, int]:
        """Days and length of news, where they are asked for."""
        asked = {"days": self.days, "news_bytes": self.news_bytes}
        return {name: number for name, number in asked.items() if number is not None}

    def shares(self, databases: int) -> list[int]:
        """Customers of each database."""
        brokers = (self.customers or CUSTOMERS_DEFAULT) // CUSTOMERS_OF_BROKER
        return [share * CUSTOMERS_OF_BROKER for share in shares_of(brokers, databases)]

    def core_fields(self, target: DatabaseTarget) -> BrokerageOfCore:
        """What the core's plan has of the kind alone.

        Raises
        ------
        UsageError
            Databases differ in what decides their rows.
        """
        states = [database.schema() for database in target.databases]
        days, seeds = {state.shape["days"] for state in states}, {state.seed or 0 for state in states}
        for key, values in (("days", days), ("seed", seeds)):
            if len(values) > 1:
                listed = ", ".join(str(value) for value in sorted(values))
                raise UsageError(f"databases differ in their {key} ({listed}); run each by itself")
        return {
            "rows_seed": states[0].seed,
            "days": states[0].shape["days"],
            "next_trades": [
                int(database.query("SELECT coalesce(max(t_id), 0) FROM trade")[0][0]) + 1
                for database in target.databases
            ],
            "think_scale": 0.0,
            "pipeline": True,
            "isolation": "default",
        }

    def facts(self, scale: int) -> BrokerageFacts:
        """A point's `workload`; `scale` is the number of customers in all databases."""
        return {
            "kind": KIND,
            "name": f"{BROKERAGE.name}, {self.name}",
            "preset": self.name,
            "customers": scale,
            "mix": self.mix.model_dump(),
            "layout": self.layout.told(),
            "background": list(self.background),
            "mode": self.mode,
            "draw": self.draw,
            "days": self.days,
            "retries": self.retries,
        }

    def desk_connections(self, users: int, databases: int) -> int:
        """Connections of the market's clerks: one per `USERS_PER_CLERK` users of a thread on a database."""
        threads = self.threads or len(os.sched_getaffinity(0))
        places = databases * max(min(threads, (self.connections or users) // databases), 1)
        return places * math.ceil(users / (places * USERS_PER_CLERK))

    def judged(self, by_transaction: dict[str, Transaction]) -> dict[str, Transaction]:
        """Figures of each transaction, with its share of the mix, and whether it and its response are right.

        `pass_mix`: the share is off by no more than `MIX_TOLERANCE_SHARE` of itself or `MIX_DEVIATIONS` standard
        deviations of a count (ours; the specification's own tolerances are narrower and need hours). `pass_latency`:
        the limits on its response are met. Both are None where nothing can be said.
        """
        limits = [limit for limit in parse_limits(self.limits, FIGURES) if limit.unit == "ns"]
        counts = {name: by_transaction[name]["count"] or 0 for name in self.mix.shares}
        total = sum(counts.values())
        found: dict[str, Transaction] = {}
        for name, figures in by_transaction.items():
            own = [limit for limit in limits if limit.direction in ("response", name)]
            expected = self.mix.shares.get(name)
            found[name] = {
                **figures,
                "mix": None if expected is None or not total else counts[name] / total,
                "pass_mix": None if expected is None or not total else _fits(counts[name], total, expected),
                "pass_latency": _answered(figures["latency_ns"], own),
            }
        return found


def _fits(count: int, total: int, expected: float) -> bool:
    off = abs(count - expected * total)
    spread = math.sqrt(total * expected * (1 - expected))
    return off <= max(MIX_TOLERANCE_SHARE * expected * total, MIX_DEVIATIONS * spread)


def _answered(latency_ns: Mapping[str, float | None] | None, limits: Sequence[Limit]) -> bool | None:
    if not latency_ns or not limits:
        return None
    for limit in limits:
        value = latency_ns.get(limit.metric.replace(".", "_"))
        if value is not None and not limit.met_by(value):
            return False
    return True
