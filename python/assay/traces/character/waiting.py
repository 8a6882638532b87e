"""How long I/Os waited: histograms of queue and device, reads and writes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import numpy as np

from assay.record.rows import Integers
from assay.traces.ios import IoFlag, Ios

if TYPE_CHECKING:
    from assay._core import Histogram

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}
SIDES = {"read": IoFlag.READ, "write": IoFlag.WRITE}
_DIGITS_BITS = 10
"""Values keep so many leading bits: within 0.1 %, as the histogram does."""


class Waits(TypedDict):
    """Times of one kind, ns."""

    count: int
    mean: float
    percentiles: dict[str, int]
    max: int


class Waiting:
    """Histograms of the times of I/Os by `queue` or `device`, and by `read`, `write` or `flush`."""

    def __init__(self) -> None:
        self._histograms: dict[tuple[str, str], Histogram] = {}
        self.total_ns = 0

    def add(self, ios: Ios) -> None:
        """Record the times that are known."""
        moved = (ios.flags & np.uint16(IoFlag.READ | IoFlag.WRITE)) != 0
        flush = ios.has(IoFlag.FLUSH) & ~moved
        sides = [(name, ios.has(flag)) for name, flag in SIDES.items()]
        for part, times_ns in (("queue", ios.queue_ns), ("device", ios.device_ns)):
            known = times_ns >= 0
            self.total_ns += int(times_ns[known].sum())
            for side, own in (*sides, ("flush", flush)):
                self._record(part, side, times_ns[known & own])

    def _record(self, part: str, side: str, times_ns: Integers) -> None:
        if not len(times_ns):
            return
        from assay._core import Histogram

        histogram = self._histograms.setdefault((part, side), Histogram())
        shift = np.maximum(np.frexp(times_ns.astype(np.float64))[1] - _DIGITS_BITS - 1, 0)
        values, counts = np.unique((times_ns >> shift) << shift, return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            histogram.record(max(value, 1), count)

    def found(self) -> dict[str, dict[str, Waits]]:
        """Give the figures, by part and side."""
        found: dict[str, dict[str, Waits]] = {}
        for (part, side), one in self._histograms.items():
            percentiles = {name: one.percentile(value) for name, value in PERCENTILES.items()}
            found.setdefault(part, {})[side] = {"count": one.count, "mean": one.mean, "percentiles": percentiles,
                                                "max": one.max}  # fmt: skip
        return found
