"""The TPC-C-like workload (docs/oltp.md): what `assay oltp tpcc` runs, as a plan in TOML or JSON."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Self, TypedDict

from pydantic import BeforeValidator, Field, model_validator

from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.plan import DATABASE
from assay.workloads.options import Option
from assay.workloads.tpcc.application import TPCC
from assay.workloads.tpcc.shapes import TpccFacts
from assay.workloads.transactions.plan import (
    MIX,
    USERS,
    Mix,
    TransactionsLayout,
    TransactionsPlan,
    Weight,
    parse_mix,
    shares_of,
)

WAREHOUSES_DEFAULT = 10
"""About a gigabyte: loaded in a minute or so, and more warehouses than users on a small machine."""

USER_ROLLBACK_SHARE = 0.01
"""Share of new orders that name an item that does not exist, and are rolled back."""

EFFICIENCY_MAX_NOPM = 12.86
"""New orders per minute and warehouse that keying and thinking times let through, by clause 4.2's ten users each."""

PartitionTable = Literal[
    "", "hottest", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock", "item"
]


class TpccMix(Mix):
    """How often each transaction is drawn, in any unit."""

    new_order: Weight = 0
    payment: Weight = 0
    order_status: Weight = 0
    delivery: Weight = 0
    stock_level: Weight = 0


class TpccLayout(TransactionsLayout):
    """How tables and indexes are laid out before a run."""

    partition_table: PartitionTable = ""
    """The table that is partitioned by ranges of warehouses; `hottest` is found from a trace."""


class TpccOfCore(TypedDict):
    """What the core's plan has of these transactions alone."""

    nurand_items: bool
    home: str
    think_scale: float
    pipeline: bool
    isolation: str


class TpccPlan(TransactionsPlan):
    """A plan of `assay oltp tpcc`."""

    kind: Literal["tpcc"] = "tpcc"
    title: str = "TPC-C-like transactions"
    warehouses: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        Option(
            "--warehouses",
            f"Warehouses to load, about 100 MB each ({WAREHOUSES_DEFAULT}, or as loaded).",
            DATABASE,
        ),
    ] = None
    """Over all databases; None: those that are loaded, else `WAREHOUSES_DEFAULT`."""
    mix: Annotated[
        TpccMix,
        BeforeValidator(partial(parse_mix, transactions=[*TPCC.transactions])),
        Option("--mix", "Weights: new_order=45,payment=43,...", MIX),
    ] = TpccMix(new_order=10, payment=10, order_status=1, delivery=1, stock_level=1)
    items: Annotated[Literal["uniform", "nurand"], Option("--items", "Items of an order: uniform or nurand.", MIX)] = (
        "uniform"
    )
    home: Annotated[
        Literal["warehouse", "district", "all"],
        Option("--home", "Home of a user: warehouse, district, or all (no home).", USERS),
        Option("--all-warehouses", "The same as --home all.", USERS, values=("all",)),
    ] = "warehouse"
    think_scale: Annotated[
        float,
        Field(ge=0, le=1000),
        Option("--think", "Keying and thinking times of the specification.", USERS, values=(1.0,), gives_way=True),
        Option("--think-scale", "Scale the keying and thinking times by this factor.", USERS),
    ] = 0.0
    """Keying and thinking times, multiplied by this; 0: none."""
    pipeline: Annotated[
        bool,
        Option(
            "--pipeline/--no-pipeline",
            "Send statements together that do not need each other's results.",
            MIX,
            values=(True, False),
        ),
    ] = True
    """Statements that do not wait for each other's results are sent together."""
    isolation: Annotated[
        Literal["default", "read-committed", "repeatable-read", "serializable"],
        Option("--isolation", "default, read-committed, repeatable-read or serializable.", DATABASE),
    ] = "default"
    layout: TpccLayout = TpccLayout()

    @model_validator(mode="after")
    def _one_pace(self) -> Self:
        if self.rate is not None and self.think_scale:
            raise ValueError("rate and thinking times exclude each other: an open loop does not wait for users")
        if self.think_scale and self.search.axis == "rate":
            raise ValueError("a search on rate and thinking times exclude each other; search on users")
        return self

    @property
    def think_factor(self) -> float:
        """Factor of keying and thinking times; 0: none."""
        return self.think_scale

    @property
    def weights(self) -> list[int]:
        """Weights of the transactions in the core's order."""
        return self.mix.weights

    @property
    def scale_asked(self) -> int | None:
        """Warehouses over all databases."""
        return self.warehouses

    def shares(self, databases: int) -> list[int]:
        """Warehouses of each database."""
        return shares_of(self.warehouses or WAREHOUSES_DEFAULT, databases)

    def ways_of(self, scale: int) -> int | None:
        """Partitions of a table; None where there are too few warehouses for them."""
        layout = self.layout
        fits = layout.partition_table == "item" or layout.partition_ways <= scale
        return (layout.partition_ways if fits else None) if layout.is_partitioned else 1

    def core_fields(self, target: DatabaseTarget) -> TpccOfCore:
        """What the core's plan has of the kind alone."""
        return {
            "nurand_items": self.items == "nurand",
            "home": self.home,
            "think_scale": self.think_scale,
            "pipeline": self.pipeline,
            "isolation": self.isolation,
        }

    def facts(self, warehouses: int) -> TpccFacts:
        """A point's `workload`."""
        return {
            "kind": "tpcc",
            "name": f"TPC-C-like, {self.name}",
            "preset": self.name,
            "warehouses": warehouses,
            "mix": self.mix.model_dump(),
            "layout": self.layout.told(),
            "background": list(self.background),
            "mode": self.mode,
            "draw": self.draw,
            "items": self.items,
            "home": self.home,
            "think_scale": self.think_scale,
            "pipeline": self.pipeline,
            "isolation": self.isolation,
            "retries": self.retries,
        }
