"""What plans of transactions have in common: users or a rate, their mix, layout, timing and search."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from assay.base.fields import FieldValueError, Seconds, Strict
from assay.base.reading import nearest
from assay.record.shapes.point import Load
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.plan import DATABASE, DatabasesPlan
from assay.workloads.options import TIME, Option
from assay.workloads.plan import SearchPlan
from assay.workloads.steps import points_of_search
from assay.workloads.transactions.shapes import LayoutAsked, Transaction, TransactionFacts

USERS_PER_CORE = 2

AXES = {"none": (1.0, 1.0), "users": (1.0, 1024.0), "rate": (10.0, 1e6)}
"""First and last load of a search unless the plan says otherwise: users, or transactions per second."""

WARMUP_SHARE, WARMUP_MAX_S = 0.25, 60.0
"""The warm-up unless the plan says otherwise, as a share of the time measured."""

Background = Literal["checkpoint", "vacuum", "backup"]

Weight = Annotated[int, Field(ge=0, le=1000)]

USERS, MIX = "Users", "Transactions"
"""Groups of options."""


def default_users() -> int:
    """Users unless the plan says otherwise: two for each core this process may use."""
    return USERS_PER_CORE * len(os.sched_getaffinity(0))


def parse_mix(value: object, transactions: Sequence[str]) -> object:
    """Weights by transaction from `buy=45,look=43`, those not named 0; anything but text as it is.

    Parameters
    ----------
    transactions
        Those that may be named.

    Raises
    ------
    ValueError
        A transaction is unknown or given twice, or a weight is no whole number.

    Examples
    --------
    >>> parse_mix("buy=45,look=43", ("buy", "look", "sell"))
    {'buy': 45, 'look': 43, 'sell': 0}
    """
    if not isinstance(value, str):
        return value
    weights = dict.fromkeys(transactions, 0)
    seen: set[str] = set()
    for item in value.split(","):
        name, separator, weight = (part.strip() for part in item.partition("="))
        if name not in weights:
            meant = nearest(name, transactions)
            hint = f"did you mean {meant!r}?" if meant else f"known: {', '.join(transactions)}"
            raise ValueError(f"{item.strip()!r}: unknown transaction; {hint}")
        if not separator or not (weight.isascii() and weight.isdecimal() and len(weight) < 8):
            raise ValueError(
                f"{item.strip()!r}: accepted: NAME=WEIGHT with a whole number, as in {next(iter(transactions))}=45"
            )
        if name in seen:
            raise ValueError(f"{name} is given twice; give it once")
        seen.add(name)
        weights[name] = int(weight)
    return weights


class Mix(Strict):
    """How often each transaction is drawn, in any unit; its fields are the transactions that users ask for."""

    @property
    def weights(self) -> list[int]:
        """The weights in the order of the fields."""
        return [getattr(self, name) for name in type(self).model_fields]

    @model_validator(mode="after")
    def _any(self) -> Self:
        if not sum(self.weights):
            first = next(iter(type(self).model_fields))
            raise ValueError(f"every weight is 0; give at least one transaction a weight, as in {first}=45")
        return self


class TransactionsTiming(Strict):
    """How long a point takes."""

    warmup_s: Annotated[
        Seconds | None, Option("--warmup", "Warm-up before measuring (a quarter of the duration, at most 60s).", TIME)
    ] = None
    """Time before the window; None: a quarter of the duration, 60 s at most."""
    duration_s: Annotated[
        Seconds, Field(gt=0), Option("--duration", "Measured time, after the warm-up (60s).", TIME)
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


class TransactionsSearch(SearchPlan):
    """The search of a plan: for users, or transactions per second."""

    axes = AXES
    axis: Annotated[
        Literal["none", "users", "rate"],
        Option("--search", "Find the most transactions within the limits: users or rate.", TIME),
    ] = "none"
    plateau: bool = True

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.first_load > self.last_load:
            raise ValueError(f"start {self.first_load:g} is above end {self.last_load:g}")
        if self.axis == "users" and any(load is not None and load != int(load) for load in (self.start, self.end)):
            raise ValueError("start and end count users; give whole numbers")
        return self


class TransactionsLayout(Strict):
    """How tables and indexes are laid out before a run; unless given, all lie where the server puts them."""

    tablespaces: Annotated[int, Field(ge=1, le=64)] = 1
    """Number of places over which tables and indexes are spread by size."""
    directories: tuple[str, ...] = ()
    """Folders for the places, on the server's host; none: beside its data."""
    partition_table: str = ""
    """The table that is partitioned by ranges; `hottest` is found from a trace. A kind names those it has."""
    partition_ways: Annotated[int, Field(ge=1, le=1000)] = 1
    trace_s: Annotated[Seconds, Field(gt=0)] = 10.0
    """Length of the trace."""

    def told(self) -> LayoutAsked:
        """The layout as points have it."""
        return {
            "tablespaces": self.tablespaces,
            "directories": list(self.directories),
            "partition_table": self.partition_table,
            "partition_ways": self.partition_ways,
            "trace_s": self.trace_s,
        }

    @property
    def is_partitioned(self) -> bool:
        """Whether a table gets partitions."""
        return bool(self.partition_table) and self.partition_ways > 1

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


class TransactionsPlan(DatabasesPlan):
    """What plans of transactions have."""

    name: str = "custom"
    limits: Annotated[
        tuple[str, ...],
        Option("--limit", "Limits: response.p90<2s, log.write.mean<=5ms, cpu<80%; replaces the preset's.", TIME),
    ] = ()
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
    rate: Annotated[
        Annotated[float, Field(gt=0, le=1e7)] | None,
        Option("--rate", "Open loop: transactions per second, latency from the intended start.", USERS),
    ] = None
    """Open loop: transactions per second of all kinds together."""
    arrivals: Annotated[
        Literal["poisson", "constant"],
        Option("--arrivals", "Arrivals of --rate: poisson or constant (poisson).", USERS),
    ] = "poisson"
    draw: Annotated[
        Literal["independent", "deck"],
        Option("--draw", "Draw transactions from a deck of cards, or independently.", MIX),
    ] = "independent"
    mode: Annotated[
        Literal["procedures", "statements"],
        Option(
            "--procedures/--statements",
            "Stored procedures, or one statement after the other.",
            MIX,
            values=("procedures", "statements"),
        ),
    ] = "procedures"
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
    layout: TransactionsLayout = TransactionsLayout()
    background: tuple[Background, ...] = ()
    """What goes on again and again while a point is measured."""
    timing: TransactionsTiming = TransactionsTiming()
    search: TransactionsSearch = TransactionsSearch()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.connections is not None and self.connections > self.users:
            reason = f"{self.connections} for {self.users} users; give at most one for each user"
            raise FieldValueError("connections", reason)
        if self.restores == "never" and not self.layout.is_plain:
            raise ValueError("a layout needs the plain tables to begin with, and restores is never; leave one out")
        if self.rate is not None and self.search.axis == "users":
            raise ValueError("rate and a search on users exclude each other; search on rate")
        if len(set(self.background)) < len(self.background):
            raise FieldValueError("background", "one is given twice; give each once")
        return self

    @property
    def weights(self) -> list[int]:
        """Weights of the transactions in the core's order."""
        raise NotImplementedError

    @property
    def think_factor(self) -> float:
        """Factor of keying and thinking times; 0: none."""
        return 0.0

    @property
    def rows_seed(self) -> int:
        """Decides the rows."""
        return self.seed

    def ways_of(self, scale: int) -> int | None:
        """Partitions of the table of the layout in a database of that scale; None where it is too small for them."""
        return self.layout.partition_ways if self.layout.is_partitioned else 1

    @property
    def points_count(self) -> tuple[int, int]:
        """Fewest and most points that a run measures."""
        return (1, 1) if self.search.axis == "none" else points_of_search(self.search.repeats)

    def with_load(self, axis: str, load: float) -> Self:
        """The plan at a load of a search."""
        if axis == "users":
            users = int(load)
            connections = None if self.connections is None else min(self.connections, users)
            return self.model_copy(update={"users": users, "connections": connections})
        return self.model_copy(update={"rate": load})

    def facts(self, scale: int) -> TransactionFacts:
        """A point's `workload`, on databases of that scale in all."""
        raise NotImplementedError

    def core_fields(self, target: DatabaseTarget) -> Mapping[str, object]:
        """What the core's plan has of the kind alone."""
        raise NotImplementedError

    def desk_connections(self, users: int, databases: int) -> int:
        """Connections over all databases for work that follows from users' transactions."""
        del users, databases
        return 0

    def judged(self, by_transaction: dict[str, Transaction]) -> dict[str, Transaction]:
        """Figures of each transaction, with what the kind judges of them."""
        return by_transaction

    def load_facts(self) -> Load:
        """A point's `load`."""
        if self.rate is not None:
            return {"rate": self.rate, "arrivals": self.arrivals, "users": self.users}
        return {"users": self.users}


def shares_of(total: int, count: int) -> list[int]:
    """A total spread over `count` databases as evenly as can be, larger shares first.

    Examples
    --------
    >>> shares_of(10, 3)
    [4, 3, 3]
    """
    return [total // count + (place < total % count) for place in range(count)]
