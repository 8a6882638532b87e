"""Rows of the series as they are found: kept column by column, and handed over as Arrow batches."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


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


_BATCH_ROWS = 2**13
"""Rows that become a batch: as such they take a third of the memory."""


class SeriesColumns:
    """Rows of the series schema (docs/results.md), of this host unless another is named, until they are taken."""

    def __init__(self) -> None:
        self._host = socket.gethostname()
        self._readings: list[Reading] = []
        self._intervals: list[_Interval] = []
        self._batches: list[pa.RecordBatch] = []
        self._sampled: Sequence[SampledColumn] = ()
        self._numbered: dict[str, tuple[npt.NDArray[np.int16], list[str]]] = {}

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

    def add_samples(
        self,
        columns: Sequence[SampledColumn],
        t_ns: npt.NDArray[np.int64],
        interval_ns: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
    ) -> int:
        """Add samples that have the same columns, and give the number of their values; NaN is none.

        Texts are written for each column, and numbered for each value: no value costs more than its number.
        """
        import numpy as np
        import pyarrow as pa

        from assay.record.series_schema import READ_SCHEMA

        self._pack()
        if columns != self._sampled:
            self._sampled = columns
            texts_of = zip(SampledColumn._fields, zip(*columns, strict=True), strict=True)
            self._numbered = {name: _numbered(texts) for name, texts in texts_of}
            self._numbered["clock"] = _numbered(["wall"] * len(columns))
        rows, places = np.nonzero(np.isfinite(values))
        arrays: dict[str, object] = {
            "t_ns": t_ns[rows],
            "interval_ns": interval_ns[rows],
            "value": values[rows, places],
        }
        for name, (numbers, texts) in self._numbered.items():
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array(numbers[places]), pa.array(texts, pa.string()))
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in READ_SCHEMA.names], schema=READ_SCHEMA)
        self._batches.append(batch)
        return len(rows)

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


def _numbered(texts: Sequence[str]) -> tuple[npt.NDArray[np.int16], list[str]]:
    """The number of each text, and the different texts by their numbers."""
    import numpy as np

    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([numbers[text] for text in texts], np.int16), list(numbers)
