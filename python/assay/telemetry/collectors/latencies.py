"""How long I/Os waited above devices and took in them: histograms of each interval, from the kernel's own events.

/proc/diskstats has one mean, of both times together. Here every I/O counts, as `assay trace record` sees it, and none
is kept (docs/trace.md).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay import _core
from assay.record.latency_buckets import bucket_end_ns, bucket_metric
from assay.telemetry.columns import Reading
from assay.traces.capture.devices import captured_devices
from assay.traces.capture.ftrace import TraceInstance

LOOK_NS = 250 * 10**6
"""Rings are read more often than this (crates/trace/src/capture.rs); so long this thread stays in there."""

BUCKET_DEVICES = 16
"""Devices whose buckets are recorded: each has up to 240. Of further ones means and percentiles are."""

PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}

SIDES = ("queue", "device")


class SideTimes(NamedTuple):
    """Times in the queue or in the device: I/Os by bucket, the sum of their times, and the longest."""

    counts: Sequence[int]
    sum_ns: int
    max_ns: int

    @property
    def ios(self) -> int:
        """I/Os that have such a time."""
        return sum(self.counts)


def percentile_ns(times: SideTimes, share: float) -> float:
    """The time that a share of the I/Os did not exceed: within its bucket by the share of the bucket's I/Os.

    Examples
    --------
    >>> percentile_ns(SideTimes([0, 0, 100], 0, 1500), 0.5), percentile_ns(SideTimes([0, 0, 100], 0, 1500), 1.0)
    (1500.0, 1500.0)
    """
    wanted, passed = share * times.ios, 0
    for bucket, count in enumerate(times.counts):
        if count and passed + count >= wanted:
            begin_ns = bucket_end_ns(bucket - 1) if bucket else 0.0
            within = (wanted - passed) / count
            return min(begin_ns + within * (bucket_end_ns(bucket) - begin_ns), float(times.max_ns))
        passed += count
    return float(times.max_ns)


Found = Mapping[tuple[str, str], tuple[SideTimes, SideTimes]]
"""Times in the queue and in the device by device and direction."""


class LatenciesCollector:
    """Times of I/Os in the queue above each disk and in it, by direction.

    Parameters
    ----------
    roles
        Role of a device where it has one.
    """

    name = "latencies"
    tier = "storage"
    source = "block"

    def __init__(self, *, roles: Mapping[str, str] | None = None) -> None:
        self._roles = dict(roles or {})
        self._names: list[str] = []
        self._capture: _core.BlockCapture | None = None
        self._instance: TraceInstance | None = None
        self._reader: threading.Thread | None = None
        self._closing = threading.Event()
        self._failure: Exception | None = None
        self._bucketed: list[str] = []
        self.missing: list[str] = []

    def again(self) -> LatenciesCollector:
        """A collector in place of this one, which failed."""
        self.close()
        return LatenciesCollector(roles=self._roles)

    def sample(self) -> Found:
        """Take the times of the I/Os that ended since the last sample.

        Raises
        ------
        NotSupported
            This process may not trace, or this kernel cannot.
        """
        if self._capture is None:
            self._begin()
        if self._failure is not None:
            raise self._failure
        assert self._capture is not None
        lost = self._capture.counts()["lost"]
        if lost:
            self.missing = ["events were lost: at high rates some I/Os are not counted"]
        return {
            (self._names[device], direction): tuple(map(SideTimes, counts, sums, longest))  # type: ignore[misc]
            for device, direction, counts, sums, longest in self._capture.latencies()
        }

    def readings(self, before: Found, after: Found, interval_ns: int) -> Iterator[Reading]:
        """Values of the interval, of I/Os that ended in it."""
        del before, interval_ns
        whole: dict[str, list[tuple[SideTimes, SideTimes]]] = {}
        for (device, direction), sides in sorted(after.items()):
            role = self._roles.get(device, "")
            for side, times in zip(SIDES, sides, strict=True):
                for metric, kind, value in _values(times):
                    yield Reading(device, f"{direction}_{side}_{metric}", kind, value, role)
                if self._has_buckets(device):
                    for bucket, count in enumerate(times.counts):
                        if count:
                            name = bucket_metric(direction, side, bucket)
                            yield Reading(device, name, "delta", float(count), role)
            if direction != "flush":
                whole.setdefault(device, []).append(sides)
        for device, parts in whole.items():
            for number, side in enumerate(SIDES):
                ios = sum(part[number].ios for part in parts)
                if ios:
                    role = self._roles.get(device, "")
                    mean_ns = sum(part[number].sum_ns for part in parts) / ios
                    yield Reading(device, f"{side}_ios_count", "delta", float(ios), role)
                    yield Reading(device, f"{side}_latency_mean_ns", "gauge", mean_ns, role)

    def close(self) -> None:
        """Trace no more."""
        self._closing.set()
        if self._reader is not None:
            self._reader.join()
        if self._capture is not None:
            self._capture.close()
        if self._instance is not None:
            self._instance.close()
            self._instance = None

    def _begin(self) -> None:
        devices = captured_devices([])
        self._names = [device.name for device in devices]
        self._instance = TraceInstance(devices)
        self._capture = _core.BlockCapture(
            self._instance.rings, self._instance.layout, origin_ns=time.monotonic_ns(), keeps_ios=False
        )
        self._instance.start()
        self._reader = threading.Thread(target=self._read, name="assay-latencies", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._capture is not None
        try:
            while not self._closing.is_set():
                self._capture.run(LOOK_NS)
        except Exception as error:
            self._failure = error

    def _has_buckets(self, device: str) -> bool:
        if device not in self._bucketed and len(self._bucketed) < BUCKET_DEVICES:
            self._bucketed.append(device)
        return device in self._bucketed


def _values(times: SideTimes) -> Iterator[tuple[str, str, float]]:
    """Metric without its direction and side, kind and value."""
    if not times.ios:
        return
    yield "ios_count", "delta", float(times.ios)
    yield "latency_mean_ns", "gauge", times.sum_ns / times.ios
    for name, share in PERCENTILES.items():
        yield f"latency_{name}_ns", "gauge", percentile_ns(times, share)
    yield "latency_max_ns", "gauge", float(times.max_ns)
