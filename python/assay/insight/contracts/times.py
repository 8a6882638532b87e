"""Histograms of the times of I/Os in devices as a recorder keeps them, and what can be said of a limit by them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from assay.record.latency_buckets import bounds_ns

STATISTICS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}


@dataclass(slots=True)
class IoTimes:
    """Times of I/Os of one direction: their histogram, sum and maximum, which add up without loss.

    Attributes
    ----------
    counts
        I/Os by bucket.
    timed, sum_ns
        I/Os whose mean is known, and the sum of their times.
    max_ns
        The longest.
    """

    counts: dict[int, float] = field(default_factory=dict)
    timed: float = 0.0
    sum_ns: float = 0.0
    max_ns: float = 0.0

    @property
    def ios(self) -> float:
        """I/Os of the histogram."""
        return math.fsum(self.counts.values())

    def add(self, other: IoTimes) -> None:
        """Add the I/Os of another time or device."""
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0.0) + count
        self.timed += other.timed
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)

    def keeps(self, statistic: str, most_ns: float) -> bool | None:
        """Whether a statistic of the I/Os is at most a limit; None where the histogram cannot tell.

        A percentile is at most the limit if that share of the I/Os is. I/Os in the bucket that holds the limit may be
        below or above it. A time of exactly the limit counts as above where a bucket begins there.

        Examples
        --------
        >>> times = IoTimes({1: 99, 21: 1}, 100, 2e6, 1.1e6)
        >>> times.keeps("p99", 1.1e6), times.keeps("p99.9", 1e6), times.keeps("p99.9", 1.05e6), times.keeps("max", 1e6)
        (True, False, None, False)
        """
        if statistic == "mean":
            return self.sum_ns / self.timed <= most_ns if self.timed else None
        if self.timed and self.max_ns <= most_ns:
            return True
        if statistic == "max":
            return False if self.timed else None
        wanted = STATISTICS[statistic] * self.ios
        # A sum of counts is exact far beyond what a recording holds; a share of it is not.
        slack = 1e-9 * self.ios
        if not self.ios:
            return None
        spans = [(*bounds_ns(bucket), count) for bucket, count in self.counts.items()]
        if math.fsum(count for _, end_ns, count in spans if end_ns <= most_ns) >= wanted - slack:
            return True
        above = math.fsum(count for begin_ns, _, count in spans if begin_ns >= most_ns)
        return False if self.ios - above < wanted - slack else None

    def value_ns(self, statistic: str) -> float | None:
        """The statistic; a percentile by the share of its bucket, no more than the maximum. None where it is unknown.

        Examples
        --------
        >>> IoTimes({3: 100}, 100, 2.1e5, 2100.0).value_ns("p99"), IoTimes().value_ns("mean") is None
        (2099.0, True)
        """
        if statistic == "mean":
            return self.sum_ns / self.timed if self.timed else None
        if statistic == "max":
            return self.max_ns if self.timed else None
        wanted, passed = STATISTICS[statistic] * self.ios, 0.0
        for bucket in sorted(self.counts):
            count = self.counts[bucket]
            if count and passed + count >= wanted:
                begin_ns, end_ns = bounds_ns(bucket)
                end_ns = min(end_ns, max(self.max_ns, begin_ns)) if self.timed else end_ns
                within = (wanted - passed) / count
                return begin_ns if math.isinf(end_ns) else begin_ns + within * (end_ns - begin_ns)
            passed += count
        return None
