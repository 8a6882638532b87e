"""Rows of the series as they are found: kept column by column, and handed over as Arrow batches."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Reading(NamedTuple):
    """One value that was found: what it is of, the metric (unit last), and whether it is a gauge or a delta."""

    entity: str
    metric: str
    kind: Literal["gauge", "delta"] | str
    value: float
    role: str = ""


class _Interval(NamedTuple):
    """What the readings of an interval have in common, and how many they are."""

    rows: int
    t_ns: int
    clock: str
    interval_ns: int
    tier: str
    host: str
    source: str


_BATCH_ROWS = 2**13
"""Rows that become a batch: as such they take a third of the memory."""


class SeriesColumns:
    """Rows of the series schema (docs/results.md), of this host unless another is named, until they are taken."""

    def __init__(self) -> None:
        self._host = socket.gethostname()
        self._readings: list[Reading] = []
        self._intervals: list[_Interval] = []
        self._batches: list[pa.RecordBatch] = []

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
        if len(self._readings) >= _BATCH_ROWS:
            self._pack()

    def take(self) -> list[pa.RecordBatch]:
        """Rows added since the last call, in batches of `series_schema.READ_SCHEMA`; none without rows."""
        self._pack()
        batches, self._batches = self._batches, []
        return batches

    def _pack(self) -> None:
        """Make a batch of the rows that are not in one yet."""
        readings, self._readings = self._readings, []
        intervals, self._intervals = self._intervals, []
        if not readings:
            return
        import pyarrow as pa

        from assay.record.series_schema import READ_SCHEMA

        columns: dict[str, Sequence[Any]] = dict(zip(Reading._fields, zip(*readings, strict=True), strict=True))
        counts, *common = zip(*intervals, strict=True)
        for name, values in zip(_Interval._fields[1:], common, strict=True):
            columns[name] = list(chain.from_iterable(map(repeat, values, counts)))
        self._batches.append(pa.RecordBatch.from_pydict(columns, schema=READ_SCHEMA))
