"""What a trace holds, read through once before a replay: I/Os, bytes, places, sizes, and the latencies recorded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from assay import _core
from assay.base.errors import UsageError
from assay.base.paths import printable
from assay.traces.file import Trace, read_trace
from assay.traces.ios import IoFlag, Ios
from assay.traces.window import chosen_window

if TYPE_CHECKING:
    from assay.record.rows import Integers
    from assay.record.shapes.point import Latency
    from assay.workloads.replay.plan import ReplayPlan

SIDES = {"read": IoFlag.READ, "write": IoFlag.WRITE}


@dataclass(frozen=True, kw_only=True)
class SideSeen:
    """Reads or writes of a trace; `latency_ns` is None where the trace tells none."""

    count: int
    bytes: int
    latency_ns: Latency | None


@dataclass(frozen=True, kw_only=True)
class Survey:
    """A window of a trace.

    Attributes
    ----------
    begin_ns, end_ns
        Its begin and end since the trace's origin; the end is that of the last response where the whole is meant.
    sides
        Reads and writes.
    flushes, discards
        Flushes without data, and I/Os that only tell the device what is not needed; these are not replayed.
    largest_bytes, smallest_bytes
        Sizes of I/Os with data.
    reach_bytes
        Where I/Os of each device end, or the device's size where the trace tells it.
    timeless
        I/Os with data whose response time is not known.
    """

    trace: Trace
    fingerprint: tuple[int, int]
    begin_ns: int
    end_ns: int
    sides: dict[str, SideSeen]
    flushes: int
    discards: int
    largest_bytes: int
    reach_bytes: dict[str, int]
    timeless: int

    @property
    def ios(self) -> int:
        """I/Os that are replayed."""
        return sum(side.count for side in self.sides.values()) + self.flushes

    @property
    def moving(self) -> int:
        """I/Os with data."""
        return sum(side.count for side in self.sides.values())

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return (self.end_ns - self.begin_ns) / 1e9

    @property
    def written_bytes(self) -> int:
        """Bytes that a replay writes."""
        return self.sides["write"].bytes


def surveys(plan: ReplayPlan) -> list[Survey]:
    """Read the traces of a plan through, each window once however often it is asked for.

    Raises
    ------
    UsageError
        A trace cannot be read, is damaged, or holds no I/O in the window.
    """
    return [survey_of(one.path, plan.window) for one in plan.traces]


def survey_of(path: str, window: str) -> Survey:
    """Read a window of a trace through.

    Raises
    ------
    UsageError
        As `surveys`.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        raise UsageError(f"cannot read {printable(path)}: {error.strerror or error}") from None
    return _survey(path, window, (found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=64)
def _survey(path: str, window: str, fingerprint: tuple[int, int]) -> Survey:
    trace = read_trace(Path(path))
    begin_ns, end_ns = chosen_window(trace, window)
    last_ns = begin_ns
    counts, moved = dict.fromkeys(SIDES, 0), dict.fromkeys(SIDES, 0)
    recorded = {name: _core.Histogram() for name in SIDES}
    flushes = discards = largest = timeless = 0
    reach: dict[str, int] = {}
    for ios in trace.batches(begin_ns, end_ns):
        response_ns = response_times(ios)
        last_ns = max(last_ns, int((ios.t_ns + np.maximum(response_ns, 0)).max(initial=0)))
        discarding = ios.has(IoFlag.DISCARD)
        moving = ~discarding & (ios.size_bytes > 0) & (ios.has(IoFlag.READ) | ios.has(IoFlag.WRITE))
        discards += int(discarding.sum())
        flushes += int((~discarding & ios.has(IoFlag.FLUSH)).sum())
        timeless += int((moving & (response_ns < 0)).sum())
        largest = max(largest, int(ios.size_bytes[moving].max(initial=0)))
        for name, flag in SIDES.items():
            own = moving & ios.has(flag)
            counts[name] += int(own.sum())
            moved[name] += int(ios.size_bytes[own].sum())
            _record(recorded[name], response_ns[own & (response_ns >= 0)])
        ends = (ios.place_bytes + ios.size_bytes)[moving]
        for number, device in enumerate(ios.device.texts):
            own_ends = ends[ios.device.numbers[moving] == number]
            if len(own_ends):
                reach[device] = max(reach.get(device, 0), int(own_ends.max()))
    if not reach:
        raise UsageError(f"{printable(path)}: holds no reads or writes" + (f" in --window {window}" if window else ""))
    for told in trace.head.devices:
        if told.size_bytes and told.name in reach:
            reach[told.name] = max(reach[told.name], told.size_bytes)
    return Survey(
        trace=trace, fingerprint=fingerprint, begin_ns=begin_ns, end_ns=end_ns if window else last_ns + 1,
        sides={name: SideSeen(count=counts[name], bytes=moved[name], latency_ns=_latency(recorded[name]))
               for name in SIDES},
        flushes=flushes, discards=discards, largest_bytes=largest, reach_bytes=reach, timeless=timeless,
    )  # fmt: skip


def response_times(ios: Ios) -> Integers:
    """Response time of each I/O, in the queue and in the device together; -1 where it is not known."""
    known = ios.device_ns >= 0
    return np.where(known, np.maximum(ios.queue_ns, 0) + ios.device_ns, -1)


def _record(histogram: _core.Histogram, values_ns: Integers) -> None:
    """Count latencies to three digits."""
    if not len(values_ns):
        return
    digits = 10 ** np.maximum(np.floor(np.log10(np.maximum(values_ns, 1))).astype(np.int64) - 2, 0)
    values, counts = np.unique(values_ns // digits * digits, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record(max(value, 1), count)


def _latency(histogram: _core.Histogram) -> Latency | None:
    if not histogram.count:
        return None
    return {
        "mean": histogram.mean,
        "p50": histogram.percentile(50.0),
        "p90": histogram.percentile(90.0),
        "p95": histogram.percentile(95.0),
        "p99": histogram.percentile(99.0),
        "p99_9": histogram.percentile(99.9),
        "p99_99": histogram.percentile(99.99),
        "max": histogram.max,
    }
