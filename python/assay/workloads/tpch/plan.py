"""The TPC-H-like workload (docs/dss.md): what `assay dss tpch` runs, as a plan in TOML or JSON."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from assay.base.fields import Bytes, FieldValueError, Seconds, Strict
from assay.targets.databases.common.layout import PartitionedTable
from assay.workloads.databases.plan import DATABASE, DatabasesPlan
from assay.workloads.options import LOAD, TIME, Option
from assay.workloads.plan import SearchPlan
from assay.workloads.tpch.shapes import QueryFacts
from assay.workloads.tpch.tables import TABLES, YEARS

QUERIES = tuple(range(1, 23))

SCALE_DEFAULT = 1.0
SCALE_STEP = 0.001
"""Scales are whole multiples of this: the rows of the smallest tables are a handful."""
SCALE_MAX = 100_000

POWER_QUERY_S = 5.0
"""A guess of the time of one query, for estimates alone."""

Table = Literal["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]


def parse_names(value: object) -> object:
    """Names from `a,b`, or from several such texts; anything but text as it is.

    Examples
    --------
    >>> parse_names("lineitem,orders"), parse_names(["/a,/b", "/c"])
    (('lineitem', 'orders'), ('/a', '/b', '/c'))
    """
    names = _named(value)
    return value if names is None else names


def _named(value: object) -> tuple[str, ...] | None:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        return None
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def parse_queries(value: object) -> object:
    """Numbers of queries from `1,6,9-12`, or from several such texts; anything but text as it is.

    Raises
    ------
    ValueError
        There is no such query.

    Examples
    --------
    >>> parse_queries("1,6,9-11")
    (1, 6, 9, 10, 11)
    """
    parts = _named(value)
    if parts is None:
        return value
    numbers: list[int] = []
    for part in parts:
        match = re.fullmatch(r"\s*(\d{1,3})(?:\s*-\s*(\d{1,3}))?\s*", part, re.ASCII)
        if match is None:
            raise ValueError(f"{part.strip()!r}: accepted: numbers of queries from 1 to 22, as in 1,6,9-12")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(numbers)


class TpchPartition(Strict):
    """A table in ranges of years of a date."""

    table: Table = "lineitem"
    column: str = "l_shipdate"
    ways: Annotated[int, Field(ge=1, le=YEARS + 1)] = 1
    """Number of ranges of whole years."""

    def told(self) -> PartitionedTable:
        """The partition as points have it."""
        return {"table": self.table, "column": self.column, "ways": self.ways}


def parse_partition(value: object) -> object:
    """A partition from `TABLE:COLUMN:WAYS`; anything but text as it is.

    Raises
    ------
    ValueError
        It is not of this form.

    Examples
    --------
    >>> parse_partition("lineitem:l_shipdate:8")
    {'table': 'lineitem', 'column': 'l_shipdate', 'ways': 8}
    """
    if not isinstance(value, str):
        return value
    parts = value.split(":")
    if len(parts) != 3 or not parts[2].isdecimal() or not parts[2].isascii() or len(parts[2]) > 4:
        raise ValueError(f"{value!r}: accepted: TABLE:COLUMN:WAYS, as in lineitem:l_shipdate:8")
    return {"table": parts[0], "column": parts[1], "ways": int(parts[2])}


PARTITION_COLUMNS = {table: key.column for table, key in TABLES.keys.items()}
"""Dates by which tables may be partitioned."""


MEMORY_LIMITS = ("failed<=0", "spilled<=0")
"""What a search over memory looks for unless limits are given: where queries fail or spill."""


AXES = {"none": (1.0, 1.0), "memory": (1.0, 1.0)}
"""Searches; the server says with how much memory one begins and ends unless the plan does."""


class TpchSearch(SearchPlan):
    """The search of a plan: for the least memory with which queries meet the limits."""

    axes = AXES
    axis: Annotated[
        Literal["none", "memory"],
        Option("--search", "Find the least memory of queries within the limits: memory.", TIME),
    ] = "none"
    start: Annotated[Bytes | None, Option("--start", "Memory to begin with (a share of the host's).", TIME)] = None
    end: Annotated[Bytes | None, Option("--end", "Least memory to try (the least that the server takes).", TIME)] = None
    repeats: Annotated[
        Annotated[int, Field(ge=0, le=20)],
        Option("--search-repeats", "Minimum number of repeats at both ends of the search (0).", TIME),
    ] = 0

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.start is not None and self.end is not None and self.start < self.end:
            raise ValueError(f"start {self.start:,} is below end {self.end:,}; memory is tried from the most down")
        return self


class TpchPlan(DatabasesPlan):
    """A plan of `assay dss tpch`."""

    kind: Literal["tpch"] = "tpch"
    name: str = "custom"
    title: str = "TPC-H-like queries"
    limits: Annotated[
        tuple[str, ...],
        Option("--limit", "Limits: query.max<60s, completion<10m, cpu<80%; replaces the preset's.", TIME),
    ] = ()
    scale: Annotated[
        Annotated[float, Field(ge=SCALE_STEP, le=SCALE_MAX)] | None,
        Option(
            "--scale",
            f"Scale to load: 1 is about a gigabyte of rows, fractions allowed ({SCALE_DEFAULT:g}, or as loaded).",
            DATABASE,
        ),
    ] = None
    """Scale of each database; None: the scale that is loaded, else `SCALE_DEFAULT`."""
    partition: Annotated[
        TpchPartition,
        BeforeValidator(parse_partition),
        Option("--partition", "A table in ranges of years: lineitem:l_shipdate:8.", DATABASE),
    ] = TpchPartition()
    directories: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_names),
        Option("--layout", "Folders on the server's host over which tables are spread: DIR,DIR.", DATABASE),
    ] = ()
    columnstore: Annotated[
        tuple[Table, ...],
        BeforeValidator(parse_names),
        Option("--columnstore", "Tables to keep by columns, where the engine can: lineitem,orders.", DATABASE),
    ] = ()
    test: Annotated[
        Literal["power", "throughput", "both"],
        Option("--test", "power (one stream, every query timed), throughput (streams together), or both.", LOAD),
    ] = "both"
    streams: Annotated[
        Annotated[int, Field(ge=1, le=1000)] | None,
        Option("--streams", "Query streams of the throughput test (the specified minimum for the scale).", LOAD),
    ] = None
    """None: the specified minimum for the scale."""
    repeats: Annotated[
        Annotated[int, Field(ge=1, le=20)],
        Option("--repeats", "Runs of the tests; the lowest score counts (1; the specification demands 2).", LOAD),
    ] = 1
    """Runs of the tests, one after the other on the same tables."""
    queries: Annotated[
        tuple[Annotated[int, Field(ge=1, le=22)], ...],
        BeforeValidator(parse_queries),
        Option("--queries", "Only these queries, as in 1,6,9-12; then there are no scores.", LOAD),
    ] = QUERIES
    refresh: Annotated[
        bool,
        Option("--refresh/--no-refresh", "Insert and delete orders as the tests demand.", LOAD, values=(True, False)),
    ] = True
    query_timeout_s: Annotated[
        Annotated[Seconds, Field(gt=0)] | None,
        Option("--query-timeout", "A query that takes longer is ended, and the run goes on (never).", TIME),
    ] = None
    cache: Annotated[
        Literal["warm", "cold"],
        Option("--cache", "warm, or cold: caches are dropped before each query of the power test.", LOAD),
    ] = "warm"
    restores: Annotated[
        Literal["always", "possible", "never"],
        Option(
            "--restore/--no-restore", "Start every test from the saved state.", DATABASE, values=("always", "never")
        ),
    ] = "never"
    """Which tests start from the saved state; `possible`: all, unless the database cannot restore."""
    search: TpchSearch = TpchSearch()

    @property
    def thousandths(self) -> int:
        """The scale as databases keep it."""
        return round((SCALE_DEFAULT if self.scale is None else self.scale) / SCALE_STEP)

    @property
    def scale_asked(self) -> int | None:
        """Scale of each database in thousandths; None: the scale that is loaded."""
        return None if self.scale is None else self.thousandths

    @property
    def rows_seed(self) -> int:
        """None decides the rows: the specification gives them."""
        return 0

    def shares(self, databases: int) -> list[int]:
        """Each database is whole: streams take turns among them."""
        return [self.thousandths] * databases

    @property
    def tests(self) -> tuple[Literal["power", "throughput"], ...]:
        """The tests, in their order."""
        return ("power", "throughput") if self.test == "both" else (self.test,)

    @property
    def is_searched(self) -> bool:
        """Whether memory is searched."""
        return self.search.axis != "none"

    def with_memory(self) -> Self:
        """The plan of a load of the search: nothing changes the tables between loads."""
        return self.model_copy(update={"refresh": False, "test": self.tests[0]})

    @property
    def is_plain(self) -> bool:
        """Whether tables lie as the server lays them out."""
        return self.partition.ways == 1 and not self.directories and not self.columnstore

    @property
    def is_whole(self) -> bool:
        """Whether all queries and the refresh functions are run, as scores demand."""
        return set(self.queries) == set(QUERIES) and self.refresh

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.scale is not None and abs(self.scale / SCALE_STEP - round(self.scale / SCALE_STEP)) > 1e-6:
            raise FieldValueError("scale", f"{self.scale:g} has more than three decimals; give at most three")
        if self.search.axis != "none" and self.repeats > 1:
            raise FieldValueError("repeats", "a search repeats its own loads; give --search-repeats")
        if not self.queries:
            raise FieldValueError("queries", "none given; give at least one, as in 1,6,9-12")
        if len(set(self.queries)) < len(self.queries):
            raise FieldValueError("queries", "one is given twice; give each once")
        known = PARTITION_COLUMNS.get(self.partition.table)
        if known is None:
            dated = ", ".join(PARTITION_COLUMNS)
            raise FieldValueError("partition", f"{self.partition.table} has no date to partition by; accepted: {dated}")
        if self.partition.column != known:
            raise FieldValueError("partition", f"{self.partition.column}: accepted: {known}")
        relative = next((folder for folder in self.directories if not folder.startswith("/")), None)
        if relative is not None:
            raise FieldValueError("directories", f"{relative!r} is no full path; give it from / on")
        if len(set(self.directories)) < len(self.directories):
            raise FieldValueError("directories", "a folder is given twice; give each once")
        if not self.is_plain and self.restores == "never" and "load" not in self.actions and "run" not in self.actions:
            raise FieldValueError("actions", "a layout is made when tables are loaded or run on; add load or run")
        return self

    def facts(self, thousandths: int) -> QueryFacts:
        """A point's `workload`."""
        return {
            "kind": "tpch",
            "name": f"TPC-H-like, {self.name}",
            "preset": self.name,
            "scale": thousandths * SCALE_STEP,
            "partition": self.partition.told(),
            "directories": list(self.directories),
            "columnstore": list(self.columnstore),
            "queries": list(self.queries),
            "refresh": self.refresh,
            "cache": self.cache,
        }
