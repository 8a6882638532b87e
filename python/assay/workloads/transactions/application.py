"""What a kind of transactions says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.targets.databases.common.table_set import TableSet
from assay.workloads.transactions.power import FindAcknowledged


@dataclass(frozen=True, eq=False, kw_only=True)
class Rate:
    """How the throughput of an application is told.

    Attributes
    ----------
    key
        Its key in documents, and the name of its figure.
    unit
        Its base unit.
    seconds
        It counts commits in so many seconds.
    digits
        So many after the point are shown.
    title, full
        As `assay.record.figures.Figure` has them.
    said
        As a sentence has it after the number.
    """

    key: str
    unit: str
    seconds: float
    digits: int
    title: str
    full: str
    said: str

    def number(self, value: float) -> str:
        """A value without its unit."""
        return f"{value:,.{self.digits}f}"

    def words(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.number(value)} {self.title}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Application:
    """A kind of transactions, as all that is common to kinds needs to know it.

    Attributes
    ----------
    kind
        Its name in plans and results.
    name
        Its name as people say it.
    transactions
        Names of the transactions as the core has them, in its order, with those that people read. Commits of the
        first are the throughput, and its response time stands for that of all. Empty where plans name them.
    counts_all
        Whether commits of all transactions are the throughput.
    first_plural
        The first transaction in a sentence, in the plural.
    rate
        How its throughput is told.
    counted_by
        Who counts commits of the first transaction within the database, in a sentence that goes on with a number.
    by_minute
        Whether transactions a minute are told beside the throughput.
    work
        What it counts, in the singular.
    client
        Who waits for one answer at a time, in the singular.
    rolled_back
        Which transactions users roll back on purpose, as a caption says it.
    conditions
        Where the consistency conditions come from, and what is checked, as a caption says it.
    conditions_count
        How many there are.
    after_load_only
        Conditions that transactions break on purpose: they are left out once some have run.
    shape
        Facts of a point's `workload` in words, by key and value, that tables of the report show.
    stall_s
        A run in which no transaction ends for so long ends; None: it goes on.
    disclaimer
        What it must not be taken for, as a notice.
    tables
        Its tables.
    find_acknowledged
        Gives those of the transactions that users were told of that a database lacks.
    acknowledged_key
        What names one of them, in words.
    """

    kind: str
    name: str
    transactions: Mapping[str, str]
    first_plural: str
    rate: Rate
    counted_by: str
    rolled_back: str
    conditions: str
    conditions_count: int
    after_load_only: frozenset[int] = frozenset()
    shape: Mapping[str, Mapping[str, str]]
    stall_s: float | None = None
    counts_all: bool = False
    by_minute: bool = True
    work: str = "transaction"
    client: str = "user"
    disclaimer: str
    tables: TableSet
    find_acknowledged: FindAcknowledged | None = None
    acknowledged_key: str = ""

    @property
    def first(self) -> str:
        """The transaction whose commits are the throughput; empty where plans name them."""
        return next(iter(self.transactions), "")

    def shown(self, name: str) -> str:
        """A transaction's name as people read it; the user's own stays as the user wrote it."""
        return self.transactions.get(name, name)

    def within(self, name: str) -> str:
        """A transaction's name within a sentence."""
        shown = self.shown(name)
        return name if shown == name else shown.lower()

    @property
    def counter(self) -> str:
        """Name of the count of its commits, in the core's figures and among the counters of the tables."""
        return "count" if self.counts_all else f"{self.first}_count"

    @property
    def disclaimer_sentences(self) -> str:
        """The disclaimer as sentences."""
        return ". ".join(f"{part[0].upper()}{part[1:]}" for part in self.disclaimer.split("; ")) + "."
