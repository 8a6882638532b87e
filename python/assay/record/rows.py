"""Rows of a series in memory: numbers as NumPy columns, each different text once with its number in every row.

Arrow and Parquet are the form of files alone (`assay.record.series`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Places = Flags | npt.NDArray[np.integer] | slice
"""Rows that are chosen: a flag for each, their places, or a slice."""

TEXT_COLUMNS = ("clock", "tier", "host", "source", "entity", "role", "metric", "kind")

TABLE_MAX = 2**24
"""So many possible groups are counted in a table; more are sorted."""


class TextColumn(NamedTuple):
    """A column of texts: the number of each row's text, and the texts by their numbers, each once."""

    numbers: npt.NDArray[np.integer]
    texts: Sequence[str]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Number the texts of a column."""
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return cls(np.fromiter(map(numbers.__getitem__, texts), np.int32, len(texts)), list(numbers))

    def matching(self, wanted: Callable[[str], bool]) -> Flags:
        """Flags of the rows whose text is wanted; each different text is asked about once."""
        flags = np.fromiter(map(wanted, self.texts), np.bool_, len(self.texts))
        return flags[self.numbers] if len(flags) else np.zeros(len(self.numbers), np.bool_)

    def renamed(self, words: Callable[[str], str]) -> TextColumn:
        """The column with other texts, of which some may be alike."""
        found = TextColumn.of([words(text) for text in self.texts])
        return TextColumn(found.numbers[self.numbers], found.texts)

    def column(self) -> list[str]:
        """The text of each row."""
        return [self.texts[number] for number in self.numbers.tolist()]


class Groups(NamedTuple):
    """Rows that are alike: the group of each row, and the place of each group's first row; in order of those."""

    of_row: Integers
    first: Integers

    def sums(self, values: npt.NDArray[np.number | np.bool_]) -> Numbers:
        """The sum of each group."""
        found = np.bincount(self.of_row, values, len(self.first))
        return np.asarray(found, np.float64)

    def most(self, values: npt.NDArray[np.number]) -> Numbers:
        """The largest value of each group."""
        found = np.full(len(self.first), -np.inf)
        np.maximum.at(found, self.of_row, values)
        return found

    def least(self, values: npt.NDArray[np.number]) -> Numbers:
        """The smallest value of each group."""
        return -self.most(-values)

    def means(self, values: npt.NDArray[np.number]) -> Numbers:
        """The mean of each group."""
        return over(self.sums(values), np.bincount(self.of_row, minlength=len(self.first)).astype(np.float64))

    def places(self) -> list[npt.NDArray[np.intp]]:
        """The places of the rows of each group."""
        if not len(self.first):
            return []
        order = np.argsort(self.of_row, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.of_row, minlength=len(self.first)))[:-1])


def over(above: Numbers, below: Numbers) -> Numbers:
    """Give quotients, NaN where nothing is below."""
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0))


def grouped(*columns: npt.NDArray[np.integer]) -> Groups:
    """Group rows by the numbers that they have in all of these columns."""
    count = len(columns[0])
    codes, size = np.zeros(count, np.int64), 1
    for column in columns:
        least, most = (int(column.min()), int(column.max())) if count else (0, 0)
        width = most - least + 1
        if size * width >= 2**62:
            column, width = np.unique(column, return_inverse=True)[1], count
            least = 0
        codes, size = _compact(codes * width + (column - least), size * width)
    first = np.empty(size if count else 0, np.int64)
    first[codes[::-1]] = np.arange(count - 1, -1, -1)
    order = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return Groups(rank[codes] if count else codes, first[order])


def _compact(codes: Integers, size: int) -> tuple[Integers, int]:
    """The same groups with numbers without gaps, and their count."""
    if size > TABLE_MAX:
        found, places = np.unique(codes, return_inverse=True)
        return places.astype(np.int64), len(found)
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    return (np.cumsum(seen) - 1)[codes], int(seen.sum())


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a series (docs/results.md, Series).

    Attributes
    ----------
    texts
        The columns of `TEXT_COLUMNS`.
    step
        Of rows on a time axis: the step that each falls into.
    unread
        What could not be read of the recording that all rows are of, a sentence each.
    """

    t_ns: Integers
    interval_ns: Integers
    value: Numbers
    texts: Mapping[str, TextColumn]
    step: Integers | None = None
    unread: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.value)

    def where(self, chosen: Places) -> Rows:
        """Give the chosen rows."""
        texts = {name: TextColumn(column.numbers[chosen], column.texts) for name, column in self.texts.items()}
        step = None if self.step is None else self.step[chosen]
        return Rows(self.t_ns[chosen], self.interval_ns[chosen], self.value[chosen], texts, step)

    def are(self, name: str, *texts: str) -> Flags:
        """Flags of the rows that have one of these texts in a column."""
        return self.texts[name].matching(texts.__contains__)

    def matching(self, name: str, wanted: Callable[[str], bool]) -> Flags:
        """Flags of the rows whose text in a column is wanted."""
        return self.texts[name].matching(wanted)

    def of(self, **texts: str) -> Rows:
        """Give the rows that have these texts in these columns."""
        chosen = np.ones(len(self), np.bool_)
        for name, text in texts.items():
            chosen &= self.are(name, text)
        return self.where(chosen)

    def distinct(self, name: str) -> list[str]:
        """TextColumn of a column that rows have, in order."""
        column = self.texts[name]
        return sorted(column.texts[number] for number in np.unique(column.numbers).tolist())

    def renamed(self, name: str, words: Callable[[str], str]) -> Rows:
        """Give the rows with other texts in a column."""
        return replace(self, texts={**self.texts, name: self.texts[name].renamed(words)})

    def records(self) -> list[dict[str, int | float | str]]:
        """Give each row as a record, for where there are few."""
        numbers = {name: getattr(self, name).tolist() for name in ("t_ns", "interval_ns", "value")}
        columns = numbers | {name: column.column() for name, column in self.texts.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def at(self, name: str, place: int) -> str:
        """Give the text of one row."""
        column = self.texts[name]
        return column.texts[int(column.numbers[place])]

    def groups(self, *names: str, by: Sequence[npt.NDArray[np.integer]] = ()) -> Groups:
        """Group the rows by columns of texts, and by numbers."""
        return grouped(*(self.texts[name].numbers for name in names), *by)

    def apart(self, *names: str) -> Iterator[tuple[tuple[str, ...], Rows]]:
        """Yield the rows of each group of texts, the group that came first before others."""
        found = self.groups(*names)
        for first, places in zip(found.first.tolist(), found.places(), strict=True):
            yield tuple(self.at(name, first) for name in names), self.where(places)

    def latest(self, *names: str) -> Rows:
        """Give the last row of each group of texts."""
        last = self.by_time()
        back = last.where(np.arange(len(last) - 1, -1, -1))
        return back.where(back.groups(*names).first)

    def by_time(self) -> Rows:
        """Give the rows in order of time; those of one moment keep their order."""
        if (self.t_ns[:-1] <= self.t_ns[1:]).all():
            return self
        return self.where(np.argsort(self.t_ns, kind="stable"))


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    if len(parts) == 1:
        return parts[0]
    texts = {}
    for name in TEXT_COLUMNS:
        known: dict[str, int] = {}
        numbers = []
        for part in parts:
            column = part.texts[name]
            renumbered = [known.setdefault(text, len(known)) for text in column.texts]
            numbers.append(np.array(renumbered, np.int32)[column.numbers] if renumbered else column.numbers)
        size = np.int16 if len(known) < 2**15 else np.int32
        texts[name] = TextColumn(np.concatenate(numbers).astype(size, copy=False), list(known))
    t_ns, interval_ns, value = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("t_ns", "interval_ns", "value")
    )
    return Rows(t_ns, interval_ns, value, texts)


def no_rows() -> Rows:
    """An empty set of rows."""
    texts = {name: TextColumn(np.zeros(0, np.int16), []) for name in TEXT_COLUMNS}
    return Rows(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), texts)
