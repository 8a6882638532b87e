"""Rows of the series as they are found: kept column by column, and handed over together."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from assay.record.rows import Rows, TextColumn


class Reading(NamedTuple):
    """One value that was found: what it is of, the metric (unit last), and whether it is a gauge or a delta."""

    entity: str
    metric: str
    kind: Literal["gauge", "delta"] | str
    value: float
    role: str = ""


class SampledColumn(NamedTuple):
    """What the values of one column of a table of samples are of."""

    tier: str
    host: str
    source: str
    entity: str
    role: str
    metric: str
    kind: Literal["gauge", "delta"] | str


class _Interval(NamedTuple):
    """What the readings of an interval have in common, and how many they are."""

    rows: int
    t_ns: int
    clock: str
    interval_ns: int
    tier: str
    host: str
    source: str


_PART_ROWS = 2**13
"""Readings that become columns together: as such they take a third of the memory."""


class SeriesColumns:
    """Rows of the series schema (docs/results.md), of this host unless another is named, until they are taken."""

    def __init__(self) -> None:
        self._host = socket.gethostname()
        self._readings: list[Reading] = []
        self._intervals: list[_Interval] = []
        self._parts: list[Rows] = []
        self._sampled: Sequence[SampledColumn] = ()
        self._numbered: dict[str, TextColumn] = {}

    def add(
        self,
        readings: Iterable[Reading],
        *,
        t_ns: int,
        interval_ns: int,
        tier: str,
        source: str,
        clock: Literal["wall", "virtual"] = "wall",
        host: str | None = None,
    ) -> None:
        """Add what was found over one interval.

        Parameters
        ----------
        t_ns
            End of the interval, on the clock.
        tier, source
            As in the series schema.
        host
            Another host than this one.
        """
        before = len(self._readings)
        self._readings += readings
        count = len(self._readings) - before
        self._intervals.append(_Interval(count, t_ns, clock, interval_ns, tier, host or self._host, source))
        if len(self._readings) >= _PART_ROWS:
            self._pack()

    def add_samples(
        self,
        columns: Sequence[SampledColumn],
        t_ns: npt.NDArray[np.int64],
        interval_ns: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
    ) -> int:
        """Add samples that have the same columns, and give the number of their values; NaN is none.

        TextColumn are written for each column, and numbered for each value: no value costs more than its number.
        """
        import numpy as np

        from assay.record.rows import Rows, TextColumn

        self._pack()
        if columns != self._sampled:
            self._sampled = columns
            texts_of = zip(SampledColumn._fields, zip(*columns, strict=True), strict=True)
            self._numbered = {name: TextColumn.of(texts) for name, texts in texts_of}
            self._numbered["clock"] = TextColumn.of(["wall"] * len(columns))
        rows, places = np.nonzero(np.isfinite(values))
        texts = {name: TextColumn(column.numbers[places], column.texts) for name, column in self._numbered.items()}
        self._parts.append(Rows(t_ns[rows], interval_ns[rows], values[rows, places], texts))
        return len(rows)

    def take(self) -> list[Rows]:
        """Rows added since the last call; none without any."""
        self._pack()
        parts, self._parts = self._parts, []
        return parts

    def _pack(self) -> None:
        """Put the readings that are in no columns yet into some."""
        readings, self._readings = self._readings, []
        intervals, self._intervals = self._intervals, []
        if not readings:
            return
        import numpy as np

        from assay.record.rows import TEXT_COLUMNS, Rows, TextColumn

        columns: dict[str, Sequence[Any]] = dict(zip(Reading._fields, zip(*readings, strict=True), strict=True))
        counts, *common = zip(*intervals, strict=True)
        for name, values in zip(_Interval._fields[1:], common, strict=True):
            columns[name] = list(chain.from_iterable(map(repeat, values, counts)))
        t_ns, interval_ns = (np.array(columns[name], np.int64) for name in ("t_ns", "interval_ns"))
        texts = {name: TextColumn.of(columns[name]) for name in TEXT_COLUMNS}
        self._parts.append(Rows(t_ns, interval_ns, np.array(columns["value"], np.float64), texts))
