"""Values over a longer time: their mean or sum, both extremes, and a histogram that merges exactly; and their bytes."""

from __future__ import annotations

import json
import math
import struct
import zlib
from array import array
from collections.abc import Sequence
from typing import NamedTuple

SERIES_MAX = 4000
"""Series of a collector."""
_BLOCK_BYTES_MAX = 64 * 2**20

STEPS_PER_DOUBLING = 16
"""Buckets of a histogram for each factor of two: a value is known to 4.4 %."""

_HEAD = struct.Struct("<II")
_TIMES = struct.Struct("<qq")


class SeriesKey(NamedTuple):
    """What a value is of."""

    entity: str
    role: str
    metric: str
    kind: str


class Rolled(NamedTuple):
    """A value over a longer time.

    Attributes
    ----------
    intervals
        Intervals that had a value.
    covered_ns
        Time that they cover.
    weight
        Of a mean what it is weighted by: time, or I/Os of a mean latency. 0 of a delta.
    value
        Mean of a gauge, sum of a delta.
    least, most
        Extremes over the intervals: of gauges their value, of deltas their rate per second.
    histogram
        Counts of the intervals by bucket, of the same values.
    """

    intervals: int
    covered_ns: int
    weight: float
    value: float
    least: float
    most: float
    histogram: dict[int, int]


ZERO = -(2**20)
"""Bucket of zero and of negative values."""
_BUCKETS = (-1100 * STEPS_PER_DOUBLING, 1000 * STEPS_PER_DOUBLING)
"""The first and the last bucket that a number can lie in."""

VALUE_MAX = 1e24
"""A larger value is no reading: squares and sums of those that are read stay finite."""


def bucket_of(value: float) -> int:
    """Bucket of a value.

    Examples
    --------
    >>> bucket_of(1.0), bucket_of(2.0), bucket_of(0.0) == ZERO
    (0, 16, True)
    """
    return math.floor(math.log2(value) * STEPS_PER_DOUBLING) if value > 0 else ZERO


def middle_of(bucket: int) -> float:
    """Value that stands for a bucket: its geometric middle."""
    return 0.0 if bucket == ZERO else float(2.0 ** ((bucket + 0.5) / STEPS_PER_DOUBLING))


def quantile(histogram: dict[int, int], share: float) -> float | None:
    """Quantile of the counted values; None where there are none.

    Examples
    --------
    >>> round(quantile({bucket_of(10.0): 90, bucket_of(100.0): 10}, 0.95))
    101
    """
    total = sum(histogram.values())
    wanted = share * total
    for bucket in sorted(histogram):
        wanted -= histogram[bucket]
        if wanted <= 0:
            return middle_of(bucket)
    return None


def roll(
    series: Sequence[SeriesKey], times: Sequence[tuple[int, int]], columns: Sequence[Sequence[float]]
) -> list[Rolled | None]:
    """Roll samples up to one value of each series; None where there is none.

    Parameters
    ----------
    times
        End and length of each sample's interval.
    columns
        Of each series the value of each sample; NaN where it has none.
    """
    places = {(one.entity, one.metric): place for place, one in enumerate(series)}
    rolled: list[Rolled | None] = []
    for one, column in zip(series, columns, strict=False):
        weights = _weights(one, places, columns)
        rolled.append(_rolled(one.kind == "delta", times, column, weights))
    return rolled


def _weights(
    one: SeriesKey, places: dict[tuple[str, str], int], columns: Sequence[Sequence[float]]
) -> Sequence[float] | None:
    """I/Os that a mean latency or size is of, where they are recorded beside it."""
    for mean in ("_latency_mean_ns", "_size_mean_bytes"):
        if one.metric.endswith(mean):
            place = places.get((one.entity, one.metric.removesuffix(mean) + "_ios_count"))
            return columns[place] if place is not None and place < len(columns) else None
    return None


def _rolled(
    is_delta: bool, times: Sequence[tuple[int, int]], column: Sequence[float], weights: Sequence[float] | None
) -> Rolled | None:
    count, covered_ns, total, weight_sum = 0, 0, 0.0, 0.0
    least, most = math.inf, -math.inf
    histogram: dict[int, int] = {}
    for place, value in enumerate(column):
        # NaN, which is none, is not below the bound either.
        if not abs(value) < VALUE_MAX:
            continue
        interval_ns = times[place][1]
        count, covered_ns = count + 1, covered_ns + interval_ns
        if is_delta:
            total += value
            seen = value / interval_ns * 1e9
        else:
            weight = float(interval_ns) if weights is None else weights[place]
            weight = weight if weight == weight and weight > 0 else 0.0
            total, weight_sum, seen = total + value * weight, weight_sum + weight, value
        least, most = min(least, seen), max(most, seen)
        bucket = bucket_of(seen)
        histogram[bucket] = histogram.get(bucket, 0) + 1
    if not count:
        return None
    value = total if is_delta else total / weight_sum if weight_sum else (least + most) / 2
    return Rolled(count, covered_ns, weight_sum, value, least, most, histogram)


def merge(parts: Sequence[Rolled | None], *, is_delta: bool) -> Rolled | None:
    """One value of several that follow each other."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    weight = sum(part.weight for part in known)
    if is_delta:
        value = math.fsum(part.value for part in known)
    elif weight:
        value = math.fsum(part.value * part.weight for part in known) / weight
    else:
        value = math.fsum(part.value * part.intervals for part in known) / sum(part.intervals for part in known)
    histogram: dict[int, int] = {}
    for part in known:
        for bucket, count in part.histogram.items():
            histogram[bucket] = histogram.get(bucket, 0) + count
    return Rolled(
        sum(part.intervals for part in known), sum(part.covered_ns for part in known), weight, value,
        min(part.least for part in known), max(part.most for part in known), histogram,
    )  # fmt: skip


def pack_rolled(values: Sequence[Rolled | None]) -> bytes:
    """Rolled-up values of a layout as bytes."""
    made = [
        None if one is None else [*one[:6], [number for pair in sorted(one.histogram.items()) for number in pair]]
        for one in values
    ]
    return zlib.compress(json.dumps(made, separators=(",", ":")).encode())


def unpack_rolled(data: bytes) -> list[Rolled | None]:
    """Read what `pack_rolled` wrote.

    Raises
    ------
    ValueError
        It is damaged, or unfolds to more than is read.
    """
    found: list[Rolled | None] = []
    try:
        made = json.loads(_unfolded(data))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(made, list) or len(made) > SERIES_MAX:
        raise ValueError("no list of values")
    for one in made:
        if one is None:
            found.append(None)
            continue
        count, covered_ns, weight, value, least, most, flat = one
        if not all(math.isfinite(float(number)) for number in (weight, value, least, most)):
            raise ValueError("a value is not finite")
        histogram = dict(zip(map(int, flat[::2]), map(int, flat[1::2]), strict=True))
        if histogram and not _is_countable(histogram):
            raise ValueError("a histogram counts what no value is")
        found.append(
            Rolled(int(count), int(covered_ns), float(weight), float(value), float(least), float(most), histogram)
        )
    return found


def _is_countable(histogram: dict[int, int]) -> bool:
    least = min((bucket for bucket in histogram if bucket != ZERO), default=0)
    counts = histogram.values()
    return _BUCKETS[0] <= least and max(histogram) <= _BUCKETS[1] and min(counts) >= 0 and max(counts) < 2**53


def pack_block(times: Sequence[tuple[int, int]], columns: Sequence[Sequence[float]]) -> bytes:
    """Samples of a layout as bytes, column by column."""
    parts = [_HEAD.pack(len(times), len(columns)), *(_TIMES.pack(*one) for one in times)]
    parts += [array("d", column).tobytes() for column in columns]
    return zlib.compress(b"".join(parts))


def unpack_block(data: bytes) -> tuple[list[tuple[int, int]], list[array[float]]]:
    """Read what `pack_block` wrote.

    Raises
    ------
    ValueError
        It is damaged, or unfolds to more than is read.
    """
    raw = _unfolded(data)
    if len(raw) < _HEAD.size:
        raise ValueError("a block is cut short")
    samples, series = _HEAD.unpack_from(raw)
    begin = _HEAD.size + samples * _TIMES.size
    if series > SERIES_MAX or len(raw) != begin + samples * series * 8:
        raise ValueError("a block has another length than it says")
    times = [_TIMES.unpack_from(raw, _HEAD.size + place * _TIMES.size) for place in range(samples)]
    columns = []
    for place in range(series):
        column = array("d")
        column.frombytes(raw[begin + place * samples * 8 : begin + (place + 1) * samples * 8])
        columns.append(column)
    return [(int(t_ns), int(interval_ns)) for t_ns, interval_ns in times], columns


def _unfolded(data: bytes) -> bytes:
    unfolding = zlib.decompressobj()
    try:
        raw = unfolding.decompress(data, _BLOCK_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if unfolding.unconsumed_tail or not unfolding.eof:
        raise ValueError("it is cut short, or unfolds to more than is read")
    return raw


def floats_of(data: bytes) -> array[float]:
    """Numbers of a sample that is in no block yet."""
    values = array("d")
    values.frombytes(data)
    return values
