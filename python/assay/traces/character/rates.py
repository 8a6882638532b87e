"""How much is asked over time, and how unevenly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.record.rows import Integers, Numbers
from assay.traces.ios import IoFlag, Ios

STEPS_MOST = 240
"""Steps of a time line: what a figure of a page shows."""
STEP_LEAST_NS = 10**8
SCALES_NS = (10**7, 10**8, 10**9, 10**10, 6 * 10**10, 6 * 10**11, 36 * 10**11)
BINS_LEAST = 10
"""Fewer intervals of a length say nothing of how much they differ."""


class OverTime:
    """Sums for each step of the trace's span; `columns` are named as `COLUMNS`."""

    COLUMNS = ("reads", "writes", "read_bytes", "write_bytes", "read_ns", "read_timed", "write_ns", "write_timed")

    def __init__(self, span_ns: int) -> None:
        self.step_ns = max(-(-max(span_ns, 1) // STEPS_MOST), STEP_LEAST_NS)
        self.steps = max(span_ns, 1) // self.step_ns + 1
        self.columns: dict[str, Numbers] = {name: np.zeros(self.steps) for name in self.COLUMNS}

    def add(self, ios: Ios) -> None:
        """Count I/Os."""
        step = np.minimum(ios.t_ns // self.step_ns, self.steps - 1)
        waited_ns = np.maximum(ios.queue_ns, 0) + np.maximum(ios.device_ns, 0)
        for name, flag in (("read", IoFlag.READ), ("write", IoFlag.WRITE)):
            own = ios.has(flag)
            timed = own & (ios.device_ns >= 0)
            for column, chosen, weights in (
                (f"{name}s", own, None), (f"{name}_bytes", own, ios.size_bytes),
                (f"{name}_ns", timed, waited_ns), (f"{name}_timed", timed, None),
            ):  # fmt: skip
                weight = None if weights is None else weights[chosen]
                self.columns[column] += np.bincount(step[chosen], weight, self.steps)


@dataclass(frozen=True)
class Burst:
    """How the I/Os of intervals of one length differ.

    Attributes
    ----------
    scale_ns
        The length.
    peak_iops, peak_to_mean
        The rate of the busiest interval, and how many times the mean it is.
    dispersion
        Index of dispersion of counts: their variance over their mean; 1 where arrivals are random (Poisson).
    """

    scale_ns: int
    peak_iops: float
    peak_to_mean: float
    dispersion: float


class BurstCounts:
    """Counts I/Os of intervals of each length; memory does not grow with the trace."""

    def __init__(self, resolution_ns: int) -> None:
        scales = [scale for scale in SCALES_NS if scale >= resolution_ns]
        self._scales = {scale: _Scale() for scale in scales}

    def add(self, t_ns: Integers) -> None:
        """Count I/Os at these times, which never go back."""
        for scale, own in self._scales.items():
            own.add(t_ns // scale)

    def found(self, span_ns: int) -> list[Burst]:
        """Give the figures of each length of which the trace has enough whole intervals."""
        bursts = []
        for scale, own in self._scales.items():
            bins = span_ns // scale
            count, squares, most = own.whole(bins)
            if bins < BINS_LEAST or not count:
                continue
            mean = count / bins
            variance = max(squares / bins - mean * mean, 0.0)
            bursts.append(Burst(scale, most * 1e9 / scale, most / mean, variance / mean))
        return bursts


class _Scale:
    """Sum, sum of squares and largest of the counts of intervals; the last two are kept apart until they are whole."""

    def __init__(self) -> None:
        self._sum = self._squares = self._most = 0
        self._open: list[tuple[int, int]] = []

    def add(self, bins: Integers) -> None:
        if not len(bins):
            return
        edges = np.flatnonzero(np.diff(bins)) + 1
        begins = np.concatenate([[0], edges])
        counts = np.diff(np.concatenate([begins, [len(bins)]]))
        numbers = bins[begins]
        if self._open and self._open[-1][0] == numbers[0]:
            counts[0] += self._open.pop()[1]
        found = [*self._open, *zip(numbers[-2:].tolist(), counts[-2:].tolist(), strict=True)]
        self._close(counts[:-2])
        for _, count in found[:-2]:
            self._close(np.array([count]))
        self._open = found[-2:]

    def _close(self, counts: Integers) -> None:
        if len(counts):
            self._sum += int(counts.sum())
            self._squares += int((counts.astype(np.float64) ** 2).sum())
            self._most = max(self._most, int(counts.max()))

    def whole(self, bins: int) -> tuple[int, int, int]:
        """Figures of the intervals before number `bins`, which are whole."""
        for number, count in self._open:
            if number < bins:
                self._close(np.array([count]))
        self._open = []
        return self._sum, self._squares, self._most
