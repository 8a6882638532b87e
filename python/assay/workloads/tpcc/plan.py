"""The TPC-C-like workload (docs/oltp.md): what `assay oltp tpcc` runs, as a plan in TOML or JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from assay.fields import FieldValueError, Seconds, Strict, within
from assay.reading import names_of_presets, nearest, preset_table, read_table, validated
from assay.results.limits import parse_limits
from assay.workloads.databases.plan import DATABASE, DatabasesPlan
from assay.workloads.options import TIME, Option
from assay.workloads.steps import points_of_search
from assay.workloads.tpcc.figures import FIGURES

TRANSACTIONS = ("new_order", "payment", "order_status", "delivery", "stock_level")

WAREHOUSES_DEFAULT = 10
"""About a gigabyte: loaded in a minute or so, and more warehouses than users on a small machine."""

USERS_PER_CORE = 2

AXES = {"none": (1.0, 1.0), "users": (1.0, 1024.0), "rate": (10.0, 1e6)}
"""First and last load of a search unless the plan says otherwise: users, or transactions per second."""

WARMUP_SHARE, WARMUP_MAX_S = 0.25, 60.0
"""The warm-up unless the plan says otherwise, as a share of the time measured."""

USER_ROLLBACK_SHARE = 0.01
"""Share of new orders that name an item that does not exist, and are rolled back."""

EFFICIENCY_MAX_NOPM = 12.86
"""New orders per minute and warehouse that keying and thinking times let through, by clause 4.2's ten users each."""

PartitionTable = Literal[
    "", "hottest", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock", "item"
]
Background = Literal["checkpoint", "vacuum", "backup"]

Weight = Annotated[int, Field(ge=0, le=1000)]

USERS, MIX = "Users", "Transactions"
"""Groups of options."""


def default_users() -> int:
    """Users unless the plan says otherwise: two for each core this process may use."""
    return USERS_PER_CORE * len(os.sched_getaffinity(0))


def parse_mix(value: Any) -> Any:
    """Weights by transaction from `new_order=45,payment=43`, those not named 0; anything but text as it is.

    Raises
    ------
    ValueError
        A transaction is unknown or given twice, or a weight is no whole number.

    Examples
    --------
    >>> parse_mix("new_order=45,payment=43")
    {'new_order': 45, 'payment': 43, 'order_status': 0, 'delivery': 0, 'stock_level': 0}
    """
    if not isinstance(value, str):
        return value
    weights = dict.fromkeys(TRANSACTIONS, 0)
    seen: set[str] = set()
    for item in value.split(","):
        name, separator, weight = (part.strip() for part in item.partition("="))
        if name not in weights:
            meant = nearest(name, TRANSACTIONS)
            hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(TRANSACTIONS)}"
            raise ValueError(f"{item.strip()!r}: unknown transaction; {hint}")
        if not separator or not (weight.isascii() and weight.isdecimal() and len(weight) < 8):
            raise ValueError(f"{item.strip()!r}: accepted: NAME=WEIGHT with a whole number, as in new_order=45")
        if name in seen:
            raise ValueError(f"{name} is given twice; give it once")
        seen.add(name)
        weights[name] = int(weight)
    return weights


class TpccMix(Strict):
    """How often each transaction is drawn, in any unit."""

    new_order: Weight = 0
    payment: Weight = 0
    order_status: Weight = 0
    delivery: Weight = 0
    stock_level: Weight = 0

    @property
    def weights(self) -> list[int]:
        """The weights in the order of `TRANSACTIONS`."""
        return [getattr(self, name) for name in TRANSACTIONS]

    @model_validator(mode="after")
    def _any(self) -> Self:
        if not sum(self.weights):
            raise ValueError("every weight is 0; give at least one transaction a weight, as in new_order=45")
        return self


class TpccTiming(Strict):
    """How long a point takes."""

    warmup_s: Annotated[
        Seconds | None, Option("--warmup", "Before it (a quarter of the duration, 60s at most).", TIME)
    ] = None
    """Before what is measured; None: a quarter of the duration, 60 s at most."""
    duration_s: Annotated[
        Seconds, Field(gt=0), Option("--duration", "Time that is measured, after the warm-up (60s).", TIME)
    ] = 60.0
    """The time that is measured."""
    rest_s: Annotated[Seconds, Option("--rest", "Pause between points.", TIME)] = 0.0
    """Pause between points."""

    @property
    def warmup_length_s(self) -> float:
        """The warm-up in force."""
        return min(WARMUP_SHARE * self.duration_s, WARMUP_MAX_S) if self.warmup_s is None else self.warmup_s

    @property
    def point_s(self) -> float:
        """Time of a point, from the first transaction to the last."""
        return self.warmup_length_s + self.duration_s + self.rest_s


class TpccSearch(Strict):
    """How the most transactions within limits are looked for; `axis` none measures the load as given."""

    axis: Annotated[
        Literal["none", "users", "rate"],
        Option("--search", "Find the most transactions within the limits: users or rate.", TIME),
    ] = "none"
    start: Annotated[float, Field(gt=0, le=1e9)] | None = None
    end: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """First and last load; unless given those of `AXES`."""
    repeats: Annotated[int, Field(ge=0, le=20)] = 1
    resolution_share: Annotated[float, Field(gt=0, lt=1)] = 0.06
    plateau: bool = True

    @property
    def first_load(self) -> float:
        """Where the search begins."""
        return self.start if self.start is not None else min(AXES[self.axis][0], self.last_load)

    @property
    def last_load(self) -> float:
        """The largest load the search tries."""
        return self.end if self.end is not None else AXES[self.axis][1]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.first_load > self.last_load:
            raise ValueError(f"start {self.first_load:g} is above end {self.last_load:g}")
        if self.axis == "users" and any(load is not None and load != int(load) for load in (self.start, self.end)):
            raise ValueError("start and end count users; give whole numbers")
        return self


class TpccLayout(Strict):
    """How tables and indexes are laid out before a run; unless given, all lie where the server puts them."""

    tablespaces: Annotated[int, Field(ge=1, le=64)] = 1
    """Over so many places tables and indexes are spread by size."""
    directories: tuple[str, ...] = ()
    """Folders for the places, on the server's host; none: beside its data."""
    partition_table: PartitionTable = ""
    """The table that is partitioned by ranges of warehouses; `hottest` is found from a trace."""
    partition_ways: Annotated[int, Field(ge=1, le=1000)] = 1
    trace_s: Annotated[Seconds, Field(gt=0)] = 10.0
    """Length of the trace."""

    @property
    def is_partitioned(self) -> bool:
        """Whether a table gets partitions."""
        return bool(self.partition_table) and self.partition_ways > 1

    def ways_of(self, warehouses: int) -> int | None:
        """Partitions of the table; None where there are too few warehouses for them."""
        fits = self.partition_table == "item" or self.partition_ways <= warehouses
        return (self.partition_ways if fits else None) if self.is_partitioned else 1

    @property
    def is_plain(self) -> bool:
        """Whether nothing is moved."""
        return self.tablespaces == 1 and not self.directories and not self.is_partitioned

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.partition_ways > 1 and not self.partition_table:
            raise ValueError("partition_ways needs a partition_table, such as hottest")
        if len(set(self.directories)) < len(self.directories):
            raise ValueError("a directory is given twice; give each once")
        relative = next((folder for folder in self.directories if not folder.startswith("/")), None)
        if relative is not None:
            raise ValueError(f"directory {relative!r} is no full path; give it from / on")
        return self


class TpccPlan(DatabasesPlan):
    """A plan of `assay oltp tpcc`."""

    kind: Literal["tpcc"] = "tpcc"
    name: str = "custom"
    title: str = "TPC-C-like transactions"
    limits: Annotated[
        tuple[str, ...],
        Option("--limit", "response.p90<2s, log.write.mean<=5ms, cpu<80%; replaces the preset's.", TIME),
    ] = ()
    warehouses: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        Option(
            "--warehouses",
            f"How many to load, about 100 MB each ({WAREHOUSES_DEFAULT}, or those that are loaded).",
            DATABASE,
        ),
    ] = None
    """Over all databases; None: those that are loaded, else `WAREHOUSES_DEFAULT`."""
    users: Annotated[
        int, Field(ge=1, le=100_000), Option("--users", "Users, each one transaction at a time (2 per core).", USERS)
    ] = Field(default_factory=default_users)
    connections: Annotated[
        Annotated[int, Field(ge=1, le=100_000)] | None,
        Option("--connections", "Connections that users share (one each).", USERS),
    ] = None
    """Connections that the users share; None: one for each user."""
    threads: Annotated[
        Annotated[int, Field(ge=1, le=1024)] | None,
        Option("--threads", "Threads that drive the users (one per core).", USERS),
    ] = None
    """Threads that drive the users; None: one for each core."""
    mix: Annotated[
        TpccMix, BeforeValidator(parse_mix), Option("--mix", "Weights: new_order=45,payment=43,...", MIX)
    ] = TpccMix(new_order=10, payment=10, order_status=1, delivery=1, stock_level=1)
    draw: Annotated[Literal["independent", "deck"], Option("--draw", "From a deck of cards, or independent.", MIX)] = (
        "independent"
    )
    items: Annotated[Literal["uniform", "nurand"], Option("--items", "Items of an order: uniform or nurand.", MIX)] = (
        "uniform"
    )
    home: Annotated[
        Literal["warehouse", "district", "all"],
        Option("--home", "What a user keeps: warehouse, district, or all for none.", USERS),
        Option("--all-warehouses", "The same as --home all.", USERS, values=("all",)),
    ] = "warehouse"
    think_scale: Annotated[
        float,
        Field(ge=0, le=1000),
        Option("--think", "With the specification's keying and thinking times.", USERS, values=(1.0,), gives_way=True),
        Option("--think-scale", "With those times, multiplied by this.", USERS),
    ] = 0.0
    """Keying and thinking times, multiplied by this; 0: none."""
    rate: Annotated[
        Annotated[float, Field(gt=0, le=1e7)] | None,
        Option("--rate", "Open loop: transactions per second, latency from the intended start.", USERS),
    ] = None
    """Open loop: transactions per second of all kinds together."""
    arrivals: Annotated[
        Literal["poisson", "constant"], Option("--arrivals", "Of --rate: poisson or constant (poisson).", USERS)
    ] = "poisson"
    mode: Annotated[
        Literal["procedures", "statements"],
        Option(
            "--procedures/--statements",
            "Stored procedures, or one statement after the other.",
            MIX,
            values=("procedures", "statements"),
        ),
    ] = "procedures"
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
    retries: Annotated[
        int, Field(ge=0, le=10_000), Option("--retries", "Tries after deadlocks and serialisation failures (10).", MIX)
    ] = 10
    """How often a deadlock or serialisation failure is tried again."""
    restores: Annotated[
        Literal["search", "always", "possible", "never"],
        Option(
            "--restore/--no-restore",
            "Start every point from the saved state (points of a search only).",
            DATABASE,
            values=("always", "never"),
        ),
    ] = "search"
    """Which points start from the saved state; `possible`: all, unless the database cannot restore."""
    layout: TpccLayout = TpccLayout()
    background: tuple[Background, ...] = ()
    """What goes on again and again while a point is measured."""
    timing: TpccTiming = TpccTiming()
    search: TpccSearch = TpccSearch()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.connections is not None and self.connections > self.users:
            reason = f"{self.connections} for {self.users} users; give at most one for each user"
            raise FieldValueError("connections", reason)
        if self.restores == "never" and not self.layout.is_plain:
            raise ValueError("a layout needs the plain tables to begin with, and restores is never; leave one out")
        if self.rate is not None and self.think_scale:
            raise ValueError("rate and thinking times exclude each other: an open loop does not wait for users")
        if self.rate is not None and self.search.axis == "users":
            raise ValueError("rate and a search on users exclude each other; search on rate")
        if len(set(self.background)) < len(self.background):
            raise FieldValueError("background", "one is given twice; give each once")
        if self.think_scale and self.search.axis == "rate":
            raise ValueError("a search on rate and thinking times exclude each other; search on users")
        return self

    @property
    def scale_asked(self) -> int | None:
        """Warehouses over all databases."""
        return self.warehouses

    @property
    def rows_seed(self) -> int:
        """Decides the rows."""
        return self.seed

    def shares(self, databases: int) -> list[int]:
        """Warehouses of each database."""
        return shares_of(self.warehouses or WAREHOUSES_DEFAULT, databases)

    @property
    def points_count(self) -> tuple[int, int]:
        """Fewest and most points that a run measures."""
        return (1, 1) if self.search.axis == "none" else points_of_search(self.search.repeats)

    def with_load(self, axis: str, load: float) -> TpccPlan:
        """The plan at a load of a search."""
        if axis == "users":
            users = int(load)
            connections = None if self.connections is None else min(self.connections, users)
            return self.model_copy(update={"users": users, "connections": connections})
        return self.model_copy(update={"rate": load})

    def facts(self, warehouses: int) -> dict[str, Any]:
        """A point's `workload`."""
        keys = ("mode", "draw", "items", "home", "think_scale", "pipeline", "isolation", "retries")
        return {
            "kind": "tpcc",
            "name": f"TPC-C-like, {self.name}",
            "preset": self.name,
            "warehouses": warehouses,
            "mix": self.mix.model_dump(),
            "layout": self.layout.model_dump(mode="json"),
            "background": list(self.background),
            **{key: getattr(self, key) for key in keys},
        }

    def load_facts(self) -> dict[str, Any]:
        """A point's `load`."""
        if self.rate is not None:
            return {"rate": self.rate, "arrivals": self.arrivals, "users": self.users}
        return {"users": self.users}


def shares_of(total: int, count: int) -> list[int]:
    """A total spread over so many databases as evenly as can be, larger shares first.

    Examples
    --------
    >>> shares_of(10, 3)
    [4, 3, 3]
    """
    return [total // count + (place < total % count) for place in range(count)]


def load_tpcc_plan(data: Mapping[str, Any], *, source: str) -> TpccPlan:
    """A plan from its TOML or JSON form.

    Raises
    ------
    UsageError
        A key is unknown (the nearest known one is named), or a value is not accepted; `source` says where.
    """
    plan = validated(TpccPlan, data, source)
    with within(source, "limits"):
        parse_limits(plan.limits, FIGURES)
    return plan


def read_tpcc_plan(path: Path) -> TpccPlan:
    """A plan from a TOML file, or from the JSON that `--dry-run --json` prints.

    Raises
    ------
    UsageError
        The file cannot be read or is not a plan.
    """
    return load_tpcc_plan(read_table(path, option="--plan"), source=f"--plan {path}")


def tpcc_preset_names() -> list[str]:
    """Names of the presets that come with Assay.

    Examples
    --------
    >>> tpcc_preset_names()
    ['hammerdb', 'strict']
    """
    return names_of_presets(__package__)


def read_tpcc_preset(name: str) -> TpccPlan:
    """A preset by name.

    Raises
    ------
    UsageError
        There is no such preset; the message lists them.
    """
    return load_tpcc_plan(preset_table(__package__, name), source=f"preset {name}")
