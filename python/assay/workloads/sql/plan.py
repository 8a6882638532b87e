"""The user's own SQL (docs/sql.md): what `assay oltp sql` runs, as a plan in TOML or JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, ClassVar, Literal, Self, TypedDict

from pydantic import Field, model_validator

from assay import _core
from assay.base.errors import UsageError
from assay.base.fields import FieldValueError, Seconds, Strict
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.plan import DATABASE, Action
from assay.workloads.options import Fixed, Option
from assay.workloads.sql.shapes import SqlFacts
from assay.workloads.sql.tables import KIND
from assay.workloads.transactions.plan import MIX, USERS, TransactionsPlan, Weight

SCALE_MAX = 100_000
TRIES_MAX = 10_001
ACTIONS_KNOWN: tuple[Action, ...] = ("load", "run", "save", "restore")


def _retries(text: str) -> int:
    """Tries beyond the first.

    Raises
    ------
    ValueError
        It is no number of tries.
    """
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= TRIES_MAX):
        raise ValueError(f"{text!r}: accepted: 1 to {TRIES_MAX}")
    return int(text) - 1


class SqlSource(Strict):
    """A file of SQL, with its text."""

    name: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str


class SqlScript(SqlSource):
    """A script, and how often it is drawn."""

    weight: Weight = 1


class SourceOfCore(TypedDict):
    """A script as the core takes it."""

    name: str
    text: str


class SqlOfCore(TypedDict):
    """What the core's plan has of scripts alone."""

    scripts: list[SourceOfCore]
    defines: list[tuple[str, str]]
    protocol: str
    think_s: float
    think_scale: float
    pipeline: bool
    isolation: str


class SqlPlan(TransactionsPlan):
    """A plan of `assay oltp sql`."""

    takes_others: ClassVar[bool] = True

    kind: Literal["sql"] = "sql"
    title: str = "SQL scripts"
    actions: Annotated[tuple[Action, ...], Fixed()] = ("run",)
    scripts: Annotated[tuple[SqlScript, ...], Field(min_length=1, max_length=128), Fixed()]
    """Scripts in pgbench's language; one is drawn by weight for each transaction."""
    init: Annotated[tuple[SqlSource, ...], Fixed()] = ()
    """Files that make and fill the tables; one named `pgbench` without a text stands for those of pgbench's scripts."""
    defines: Annotated[tuple[tuple[str, str], ...], Fixed()] = ()
    """Variables that every user begins with."""
    protocol: Annotated[
        Literal["simple", "extended", "prepared"],
        Option("--protocol -M", "How statements go to the server: {choices}; pgbench's own default is simple.", MIX),
    ] = "prepared"
    scale: Annotated[
        Annotated[int, Field(ge=1, le=SCALE_MAX)] | None,
        Option("--scale -s", "Value of :scale, and of --init pgbench (1, or as loaded).", DATABASE),
    ] = None
    think_s: Annotated[Seconds, Option("--think", "Mean thinking time of a user after a transaction (0s).", USERS)] = (
        0.0
    )
    retries: Annotated[
        int,
        Field(ge=0, le=10_000),
        Option("--retries", "Tries after deadlocks and serialisation failures (0).", MIX),
        Option("--max-tries", "The same as --retries, the first try included (1).", MIX, parse=_retries),
    ] = 0
    load_connections: Annotated[int | None, Fixed()] = None
    mode: Annotated[Literal["statements"], Fixed()] = "statements"
    draw: Annotated[Literal["independent"], Fixed()] = "independent"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not sum(self.weights):
            raise FieldValueError("scripts", "every weight is 0; give at least one script a weight above 0")
        unknown = [action for action in self.actions if action not in ACTIONS_KNOWN]
        if unknown:
            raise FieldValueError(
                "actions", f"{unknown[0]!r}: accepted for SQL of one's own: {', '.join(ACTIONS_KNOWN)}"
            )
        if "load" in self.actions and not self.init:
            raise FieldValueError("actions", "load: there is nothing to load; name what makes the tables with --init")
        if self.think_s and (self.rate is not None or self.search.axis == "rate"):
            raise ValueError("a rate and thinking times exclude each other: an open loop does not wait for users")
        try:
            _core.check_scripts(json.dumps(self.of_core))
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def of_core(self) -> SqlOfCore:
        """What the core's plan has of scripts alone."""
        return {
            "scripts": [{"name": script.name, "text": script.text} for script in self.scripts],
            "defines": list(self.defines),
            "protocol": self.protocol,
            "think_s": self.think_s,
            "think_scale": self.think_factor,
            "pipeline": True,
            "isolation": "default",
        }

    @property
    def weights(self) -> list[int]:
        """Weights of the scripts."""
        return [script.weight for script in self.scripts]

    @property
    def think_factor(self) -> float:
        """1 where users think; 0: none."""
        return 1.0 if self.think_s else 0.0

    @property
    def scale_asked(self) -> int | None:
        """Value of `:scale` in each database."""
        return self.scale

    @property
    def rows_seed(self) -> int:
        """Tells the files that made the tables from others."""
        texts = json.dumps([[source.name, source.text] for source in self.init])
        return int.from_bytes(hashlib.sha256(texts.encode()).digest()[:6], "big")

    @property
    def digest(self) -> str:
        """Tells these scripts and variables from others."""
        told = [[[script.name, script.text, script.weight] for script in self.scripts], self.defines]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def shares(self, databases: int) -> list[int]:
        """The scale of each database, which is the same for all."""
        return [self.scale or 1] * databases

    def core_fields(self, target: DatabaseTarget) -> SqlOfCore:
        """What the core's plan has of the kind alone."""
        return self.of_core

    def facts(self, scale: int) -> SqlFacts:
        """A point's `workload`."""
        names = [script.name for script in self.scripts]
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        return {
            "kind": KIND,
            "name": shown,
            "preset": self.name,
            "mix": {script.name: script.weight for script in self.scripts},
            "layout": self.layout.told(),
            "background": list(self.background),
            "mode": self.mode,
            "draw": self.draw,
            "think_scale": self.think_factor,
            "retries": self.retries,
            "protocol": self.protocol,
            "scale": scale,
            "digest": self.digest,
        }
