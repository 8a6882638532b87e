"""SampleTable that have the same columns, as a table: what a log of thousands of counters is handed over in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.telemetry.columns import SampledColumn

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class SampleTable(NamedTuple):
    """SampleTable by time, each a row of values; NaN is none.

    Attributes
    ----------
    t_ns, interval_ns
        End and length of the interval of each row.
    """

    columns: Sequence[SampledColumn]
    t_ns: Times
    interval_ns: Times
    values: Values

    @property
    def known(self) -> Flags:
        """Which values there are."""
        return np.isfinite(self.values)

    def part(self, begin: int, end: int | None = None) -> SampleTable:
        """Some of the rows."""
        rows = slice(begin, end)
        return SampleTable(self.columns, self.t_ns[rows], self.interval_ns[rows], self.values[rows])

    def after(self, earlier: SampleTable | None) -> SampleTable:
        """These rows behind earlier ones."""
        if earlier is None or not len(earlier.t_ns):
            return self
        t_ns = np.concatenate((earlier.t_ns, self.t_ns))
        interval_ns = np.concatenate((earlier.interval_ns, self.interval_ns))
        return SampleTable(self.columns, t_ns, interval_ns, np.concatenate((earlier.values, self.values)))

    def thinned(self, at_once: int) -> SampleTable:
        """SampleTable of which so many became one: gauges their mean, counts their sum."""
        if at_once == 1 or not len(self.t_ns):
            return self
        groups = self.values.reshape(-1, at_once, len(self.columns))
        known = np.isfinite(groups)
        counts, totals = known.sum(axis=1), np.where(known, groups, 0.0).sum(axis=1)
        is_delta = np.array([one.kind == "delta" for one in self.columns])
        made = np.where(is_delta, totals, totals / np.maximum(counts, 1))
        interval_ns = self.interval_ns.reshape(-1, at_once).sum(axis=1)
        ends_ns = self.t_ns.reshape(-1, at_once)[:, -1]
        return SampleTable(self.columns, ends_ns, interval_ns, np.where(counts > 0, made, np.nan))
