"""The replay of logs (docs/statement-logs.md): what `assay oltp replay` runs, as a plan in TOML or JSON."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from assay.base.fields import Seconds
from assay.record.shapes.point import Load
from assay.targets.databases.common.target import DatabaseTarget
from assay.workloads.databases.plan import Action
from assay.workloads.options import TIME, Fixed, Option
from assay.workloads.sqllog.application import KIND
from assay.workloads.sqllog.shapes import StatementsFacts
from assay.workloads.sqllog.survey import StatementLog, read_log
from assay.workloads.transactions.plan import USERS, TransactionsPlan, TransactionsSearch, TransactionsTiming

LOG = "Log"
"""Group of options."""

SPEED_MAX = 1000.0
LOGS_MAX = 1000


class StatementsTiming(TransactionsTiming):
    """How long the first part of the log lasts that is not measured; the rest follows from the log."""

    warmup_s: Annotated[
        Seconds | None, Option("--warmup", "Replay the first part of the log without measuring it (0s).", TIME)
    ] = 0.0
    duration_s: Annotated[Annotated[float, Field(gt=0)], Fixed()] = 60.0
    """The time of the log at the plan's speed, once the log is read."""


class StatementsSearch(TransactionsSearch):
    """The search of a plan, for the speed."""

    axes: ClassVar = {"none": (1.0, 1.0), "speed": (1.0, 256.0)}
    axis: Annotated[
        Literal["none", "speed"], Option("--search", "Find the fastest speed within the limits: speed or none.", TIME)
    ] = "none"  # type: ignore[assignment]
    plateau: bool = False


class StatementsPlan(TransactionsPlan):
    """A plan of `assay oltp replay`."""

    takes_others: ClassVar[bool] = True

    kind: Literal["sqllog"] = "sqllog"
    title: str = "Statements of a log"
    actions: Annotated[tuple[Action, ...], Fixed()] = ("run",)
    logs: Annotated[tuple[str, ...], Field(min_length=1, max_length=LOGS_MAX), Fixed()]
    """Logs in the order in which the server wrote them."""
    speed: Annotated[
        float, Field(gt=0, le=SPEED_MAX), Option("--speed", "Times as fast as the log was written.", LOG)
    ] = 1.0
    writes: Annotated[
        bool, Option("--writes", "Run statements that write, too: on a copy that may change.", LOG, values=(True,))
    ] = False
    prefix: Annotated[
        str | None, Option("--prefix", "log_line_prefix of a stderr log, where it is no usual one.", LOG)
    ] = None
    from_database: Annotated[
        str | None, Option("--from-database", "Database of the log to replay (where most statements ran).", LOG)
    ] = None
    users: Annotated[int, Field(ge=1), Fixed()] = 1
    connections: Annotated[int | None, Fixed()] = None
    threads: Annotated[
        Annotated[int, Field(ge=1, le=1024)] | None,
        Option("--threads", "Threads that drive the sessions (as many as there is work for).", USERS),
    ] = None
    rate: Annotated[float | None, Fixed()] = None
    arrivals: Annotated[Literal["poisson", "constant"], Fixed()] = "poisson"
    draw: Annotated[Literal["independent", "deck"], Fixed()] = "independent"
    mode: Annotated[Literal["procedures", "statements"], Fixed()] = "statements"
    retries: Annotated[int, Fixed()] = 0
    restores: Annotated[Literal["search", "always", "possible", "never"], Fixed()] = "never"
    load_connections: Annotated[int | None, Fixed()] = None
    timing: StatementsTiming = StatementsTiming()
    search: StatementsSearch = StatementsSearch()

    def log(self) -> StatementLog:
        """The logs, read through.

        Raises
        ------
        UsageError
            A log cannot be read, is none, or holds nothing to replay.
        """
        return read_log(self.logs, writes=self.writes, prefix=self.prefix, database=self.from_database)

    def timed(self) -> StatementsPlan:
        """The plan with the time that the log takes at its speed."""
        whole_s = self.log().span_s / self.speed
        warmup_s = min(self.timing.warmup_s or 0.0, 0.9 * whole_s)
        timing = self.timing.model_copy(update={"warmup_s": warmup_s, "duration_s": max(whole_s - warmup_s, 1e-3)})
        return self.model_copy(update={"timing": timing})

    @property
    def weights(self) -> list[int]:
        """None: the log says what runs."""
        return []

    @property
    def scale_asked(self) -> int | None:
        """Tables are taken as they are."""
        return None

    def shares(self, databases: int) -> list[int]:
        """Tables are taken as they are."""
        return [1] * databases

    def with_load(self, axis: str, load: float) -> StatementsPlan:
        """The plan at a speed of a search."""
        del axis
        return self.model_copy(update={"speed": load})

    def core_fields(self, target: DatabaseTarget) -> dict[str, object]:
        """What the core's plan has of the kind alone."""
        del target
        return {"speed": self.speed, "writes": self.writes, "warmup_ns": round((self.timing.warmup_s or 0.0) * 1e9)}

    def load_facts(self) -> Load:
        """A point's `load`."""
        return {"speed": self.speed}

    def facts(self, scale: int) -> StatementsFacts:
        """A point's `workload`."""
        del scale
        names = [path.rpartition("/")[2] for path in self.logs]
        shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        return {"kind": KIND, "name": shown, "writes": self.writes}
