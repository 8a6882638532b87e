"""An application that stalls: throughput that drops while its transactions take longer, whatever causes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assay.insight.diagnosis import thresholds as at
from assay.insight.diagnosis.observed import SAMPLES_MIN, Flags, Numbers, Observations, Track, summed
from assay.insight.diagnosis.recurrence import recurrence_of

COMMITTED = ("committed_count", "transactions_count", "calls_count")
"""What is counted of an application, the most telling first."""

AROUND_S = 600.0
"""Throughput is compared with the median of this time around it: day and night are no stalls."""

COUNT_MIN = 20.0
"""Transactions of a usual step below which fewer are chance."""

STALL_S = 2.0
"""Length from which less throughput is a stall."""

LONG_S = 5.0
"""Length from which one stall is bad by itself (TPC-C, clause 5.2.5.4: nine tenths of new orders answer within 5 s)."""


class Throughput(NamedTuple):
    """What an application does: transactions a second, their mean latency if known, and when it stalls."""

    host: str
    tier: str
    source: str
    rate: Numbers
    share: Numbers
    latency_ns: Numbers | None
    stalls: Flags


def throughputs(observed: Observations) -> list[Throughput]:
    """Each application with its stalls."""
    found = []
    sources = dict.fromkeys((one.host, one.tier, one.source) for one in observed.tracks
                            if one.tier in ("application", "client") and one.source != "assay")  # fmt: skip
    for host, tier, source in sources:
        for metric in COMMITTED:
            own = [one for one in observed.find(metric, source=source, host=host) if one.tier == tier]
            if own:
                found.append(_throughput(observed, own))
                break
    return found


def _throughput(observed: Observations, own: list[Track]) -> Throughput:
    rate = summed([track.values for track in own])
    timed = [(one.values, track.values) for track in own if (one := observed.of(track, "latency_mean_ns")) is not None]
    latency = None
    if timed:
        weights = [np.where(np.isfinite(mean), np.nan_to_num(count), 0.0) for mean, count in timed]
        total = np.sum([np.nan_to_num(mean) * weight for (mean, _), weight in zip(timed, weights, strict=True)], axis=0)
        latency = np.asarray(total / np.sum(weights, axis=0))
    usual = _around(rate, observed)
    share = np.where(usual * observed.step_s >= COUNT_MIN, rate / usual, np.nan)
    first = own[0]
    return Throughput(
        first.host, first.tier, first.source, rate, share, latency, _stalls(observed, rate, share, latency)
    )


def _stalls(observed: Observations, rate: Numbers, share: Numbers, latency: Numbers | None) -> Flags:
    """Steps of stalls: far fewer transactions, which take longer, and a return to what is usual."""
    low = (share < at.STALLED.value) & observed.counted
    if latency is not None:
        # Transactions that were held up end in the step after the stall.
        slower = latency >= at.TWICE.value * _around(latency, observed)
        low &= slower | np.append(slower[1:], False) | ~np.isfinite(latency)
    told = recurrence_of(observed, low)
    held = np.zeros_like(low)
    if told is None:
        return held
    known = np.flatnonzero(np.isfinite(rate))
    lengths = []
    for begin, end in told.stretches:
        # At the beginning it warms up; at the end the load may have been stopped.
        length_s = (end - begin) * observed.step_s
        if begin > known[0] and end <= known[-1] and length_s >= STALL_S:
            held[begin:end] = low[begin:end]
            lengths.append(length_s)
    again = recurrence_of(observed, held)
    is_bad = again is not None and (again.is_periodic or max(lengths) >= LONG_S)
    return held if is_bad else np.zeros_like(low)


def _around(values: Numbers, observed: Observations) -> Numbers:
    """Median of the time around each step."""
    half = max(round(AROUND_S / observed.step_s / 2), SAMPLES_MIN)
    every = max(half // 5, 1)
    made = np.empty(observed.steps)
    for begin in range(0, observed.steps, every):
        middle = begin + every // 2
        made[begin : begin + every] = np.nanmedian(values[max(middle - half, 0) : middle + half + 1])
    return made
