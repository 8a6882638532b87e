"""The tables of a workload, as databases need to know them: what is loaded, saved, restored, dropped and laid out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class RangeKey(NamedTuple):
    """The column by whose ranges a table is partitioned.

    Attributes
    ----------
    last
        Its last value, or what it is at a scale and a shape; None: the scale.
    primary
        Columns of the primary key of the partitioned table, where that of the plain one has not this column.
    years
        First year and number of years of a column of dates, whose ranges are whole years.
    type
        Type of the column, where a server must be told.
    """

    column: str
    last: int | Callable[[int, Mapping[str, int]], int] | None = None
    primary: tuple[str, ...] = ()
    years: tuple[int, int] | None = None
    type: str = "int"


Key = int | str
"""A value of such a column: a whole number, or a date as `1994-01-01`."""


def literal(key: Key) -> str:
    """A key in SQL.

    Examples
    --------
    >>> literal(7), literal("1994-01-01")
    ('7', "'1994-01-01'")
    """
    return f"'{key}'" if isinstance(key, str) else str(key)


@dataclass(frozen=True, kw_only=True)
class LoadedSize:
    """How much is loaded, in words, and the room that it takes.

    Attributes
    ----------
    words
        An amount in words, such as `10 warehouses`.
    number
        An amount as options take it.
    option
        The option that asks for an amount, without its dashes.
    things
        What is loaded, in the plural.
    is_seeded
        Whether a seed decides the rows.
    bytes_each
        Room that one takes with its indexes, rounded up.
    bytes_by_shape
        The same where it depends on the shape of the rows.
    step
        Amounts are multiples of it.
    log_bytes_each
        Log that loading one writes.
    """

    words: Callable[[int], str]
    number: Callable[[int], str] = str
    option: str
    things: str
    is_seeded: bool = True
    bytes_each: int
    bytes_by_shape: Callable[[Mapping[str, int]], int] | None = None
    log_bytes_each: int
    step: int = 1

    def bytes_of(self, shape: Mapping[str, int]) -> int:
        """Room that one takes with rows of a shape."""
        return self.bytes_each if self.bytes_by_shape is None else self.bytes_by_shape(shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableSet:
    """The tables of a workload.

    Attributes
    ----------
    rows
        What the core calls their rows.
    names
        All of them, in the order in which they are loaded.
    scale
        What is counted to say how much is loaded, in the plural: the key under which the database keeps the number.
    size
        That number in words.
    format
        Version of the rows: the same seed gives the same ones as long as it stays.
    shape
        Numbers that decide the rows beside the scale, by the key under which the database keeps them, as they are
        unless asked for otherwise.
    has_references
        Whether there are foreign keys, which are made after the indexes.
    unit
        Column of `assay_chunk` with the unit of the scale that a chunk belongs to.
    keys
        The column by whose ranges each table may be partitioned.
    statements
        SQL by dialect and file (`schema`, `indexes`, `procedures`, `drop`), each statement with the name of what
        it is about.
    counters
        Figures that the tables count: by name the table and the query.
    """

    rows: str
    names: tuple[str, ...]
    scale: str
    size: LoadedSize
    format: str = "1"
    shape: Mapping[str, int] = field(default_factory=dict)
    has_references: bool = False
    unit: str = "unit"
    keys: Mapping[str, RangeKey]
    statements: Callable[[str, str], Sequence[tuple[str, str]]]
    counters: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def named_in(self, text: str) -> list[str]:
        """Tables that a statement names."""
        words = set(re.findall(r"[a-z_][a-z0-9_]*", text.lower()))
        return [name for name in self.names if name in words]

    def references_of(self, dialect: str, table: str) -> list[tuple[str, str, str]]:
        """Foreign keys of a table and those that refer to it: whose each is, its name, and what adds it."""
        if not self.has_references:
            return []
        form = re.compile(r"ALTER TABLE (\w+) ADD CONSTRAINT .* REFERENCES (\w+) ", re.DOTALL)
        found = [(form.match(text), name, text) for name, text in self.statements(dialect, "foreign_keys")]
        return [(match[1], name, text) for match, name, text in found if match and table in match.groups()]

    def first_keys(self, table: str, ways: int, scale: int, shape: Mapping[str, int] | None = None) -> list[Key]:
        """First key of each partition of a table but the first, so that all hold as many keys as can be.

        Parameters
        ----------
        shape
            Of the rows that are loaded; None: as they are unless asked for otherwise.
        """
        key = self.keys[table]
        if key.years is not None:
            first, count = key.years
            each = -(-count // ways)
            return [f"{first + each * number}-01-01" for number in range(1, ways)]
        last = key.last(scale, shape or self.shape) if callable(key.last) else key.last or scale
        return [1 + last * number // ways for number in range(1, ways)]


NO_TABLES = TableSet(
    rows="",
    names=(),
    scale="",
    size=LoadedSize(words=str, option="", things="", bytes_each=0, log_bytes_each=0),
    keys={},
    statements=lambda _, __: (),
)
"""Of a database that is looked at alone: nothing is made in it."""
