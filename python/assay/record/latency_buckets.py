"""Buckets of times of I/Os as a recorder keeps them: their bounds, the names of their series, their percentiles."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

FIRST_NS = 1000.0
"""The first bucket ends here; each further one at the square root of two times the end before."""

BUCKETS = 62
"""Buckets of the recorder; the last has no end (crates/trace/src/latencies.rs)."""

_SERIES = re.compile(r"(read|write|flush)_(queue|device)_bucket(\d\d)_count")


_HIGHEST = re.compile(r"_(?:p\d+(?:_\d+)?|max)_ns$")


class BucketSeries(NamedTuple):
    """A series that counts the I/Os of one bucket: their direction, where they were timed, and the bucket."""

    direction: str
    side: str
    bucket: int


def bucket_end_ns(bucket: int) -> float:
    """Where a bucket ends.

    Examples
    --------
    >>> bucket_end_ns(0), round(bucket_end_ns(1)), bucket_end_ns(20)
    (1000.0, 1414, 1024000.0)
    """
    return float(FIRST_NS * 2 ** (bucket // 2) * (2**0.5 if bucket % 2 else 1.0))


def bounds_ns(bucket: int) -> tuple[float, float]:
    """Where the times of a bucket begin and end.

    Examples
    --------
    >>> bounds_ns(0), bounds_ns(1)[0], bounds_ns(61)[1]
    ((0.0, 1000.0), 1000.0, inf)
    """
    begin_ns = bucket_end_ns(bucket - 1) if bucket else 0.0
    return begin_ns, math.inf if bucket == BUCKETS - 1 else bucket_end_ns(bucket)


def bucket_metric(direction: str, side: str, bucket: int) -> str:
    """Name of the series of a bucket.

    Examples
    --------
    >>> bucket_metric("read", "device", 7)
    'read_device_bucket07_count'
    """
    return f"{direction}_{side}_bucket{bucket:02}_count"


def bucket_series_of(metric: str) -> BucketSeries | None:
    """What a series counts, if it is one of a bucket.

    Examples
    --------
    >>> bucket_series_of("write_queue_bucket61_count")
    BucketSeries(direction='write', side='queue', bucket=61)
    >>> bucket_series_of("write_queue_bucket62_count"), bucket_series_of("read_ios_count")
    (None, None)
    """
    match = _SERIES.fullmatch(metric)
    bucket = int(match[3]) if match is not None else BUCKETS
    return BucketSeries(match[1], match[2], bucket) if match is not None and bucket < BUCKETS else None


def percentile_ns(counts: Mapping[int, float], share: float) -> float | None:
    """The time that a share of the I/Os did not exceed: within its bucket by the share of the bucket's I/Os.

    None without I/Os. In the last bucket, which has no end, it is the begin of the bucket.

    Examples
    --------
    >>> percentile_ns({2: 100.0}, 0.5), percentile_ns({}, 0.5), percentile_ns({61: 1.0}, 0.99) == bounds_ns(61)[0]
    (1707.1067811865476, None, True)
    """
    wanted, passed = share * math.fsum(counts.values()), 0.0
    for bucket in sorted(counts):
        count = counts[bucket]
        if count and passed + count >= wanted * (1 - 1e-12):
            begin_ns, end_ns = bounds_ns(bucket)
            return begin_ns if math.isinf(end_ns) else begin_ns + (wanted - passed) / count * (end_ns - begin_ns)
        passed += count
    return None


def is_highest(metric: str) -> bool:
    """Whether of several values of a series the highest stands for all: percentiles and maxima have no mean.

    Examples
    --------
    >>> [is_highest(f"read_latency_{name}_ns") for name in ("p99", "p99_9", "max", "mean")]
    [True, True, True, False]
    """
    return _HIGHEST.search(metric) is not None
