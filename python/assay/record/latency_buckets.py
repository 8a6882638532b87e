"""Histograms of latencies as series: a metric counts the I/Os of each bucket, two buckets for each factor of two.

`read_device_bucket07_count` counts reads whose time in the device lies in the seventh bucket above 1 us. Sides are the
`queue` above the device, the `device`, and the `whole` of both (docs/trace.md).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

BUCKETS = 62
"""As in crates/trace/src/latencies.rs: the first bucket ends at 1 us, the last holds all from 23 minutes on."""

FIRST_NS = 1000.0

SIDES = ("queue", "device", "whole")

_NAME = re.compile(r"(read|write|flush)_(queue|device|whole)_bucket([0-9]{2})_count")


class Bucket(NamedTuple):
    """What a metric counts."""

    direction: str
    side: str
    number: int


def bucket_metric(direction: str, side: str, bucket: int) -> str:
    """Name of the metric that counts a bucket.

    Examples
    --------
    >>> bucket_metric("read", "device", 7)
    'read_device_bucket07_count'
    """
    return f"{direction}_{side}_bucket{bucket:02}_count"


def bucket_of_metric(metric: str) -> Bucket | None:
    """The bucket that a metric counts; None of other metrics.

    Examples
    --------
    >>> bucket_of_metric("read_device_bucket07_count"), bucket_of_metric("read_ios_count")
    (Bucket(direction='read', side='device', number=7), None)
    """
    found = _NAME.fullmatch(metric)
    return Bucket(found[1], found[2], int(found[3])) if found and int(found[3]) < BUCKETS else None


def bucket_end_ns(bucket: int) -> float:
    """Where a bucket ends, and the next begins.

    Examples
    --------
    >>> bucket_end_ns(0), round(bucket_end_ns(1)), bucket_end_ns(20)
    (1000.0, 1414, 1024000.0)
    """
    return float(FIRST_NS * 2 ** (bucket // 2) * (2**0.5 if bucket % 2 else 1.0))


def bucket_begin_ns(bucket: int) -> float:
    """Where a bucket begins."""
    return bucket_end_ns(bucket - 1) if bucket else 0.0


def bucket_middle_ns(bucket: int) -> float:
    """The geometric middle of a bucket, a fifth from its ends; of the first, half of its end."""
    return float((bucket_begin_ns(bucket) * bucket_end_ns(bucket)) ** 0.5) if bucket else FIRST_NS / 2


def percentile_ns(counts: Sequence[float], share: float) -> float:
    """The time that a share of the I/Os did not exceed: within its bucket by the share of the bucket's I/Os.

    Examples
    --------
    >>> percentile_ns([0, 0, 100], 0.5), percentile_ns([0, 0, 100], 1.0)
    (1707.1..., 2000.0)
    """
    wanted, passed = share * sum(counts), 0.0
    last = 0
    for bucket, count in enumerate(counts):
        if count:
            last = bucket
            if passed + count >= wanted:
                begin_ns = bucket_begin_ns(bucket)
                return begin_ns + (wanted - passed) / count * (bucket_end_ns(bucket) - begin_ns)
        passed += count
    return bucket_end_ns(last)
