"""Recordings of promised storage, made by the recorder's own writer: a device whose every minute is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.telemetry.columns import Reading
from assay.telemetry.flight.writer import FlightWriter

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BEGIN_NS = 1_793_577_600 * SECOND
"""2026-11-02 00:00 UTC, a Monday."""


@dataclass(frozen=True)
class Minute:
    """What a device did in a minute.

    Attributes
    ----------
    reads, writes
        I/Os.
    read_buckets, write_buckets
        I/Os by bucket of the recorder; None where no histogram was recorded.
    queue
        Mean queue.
    """

    reads: float = 6000.0 * 5
    writes: float = 6000.0
    block_bytes: float = 8192.0
    read_buckets: dict[int, float] | None = None
    write_buckets: dict[int, float] | None = None
    read_mean_ns: float = 400e3
    read_max_ns: float = 3e6
    counter_mean_ns: float = 500e3
    queue: float = 1.0


def of(fast: float, slow: float, **more: float) -> Minute:
    """A minute with reads of 0.5 ms (bucket 18) and of 6 ms (bucket 26)."""
    return Minute(reads=fast + slow, read_buckets={18: fast, 26: slow}, read_max_ns=7e6 if slow else 0.55e6, **more)


def readings(one: Minute, device: str = "sda", role: str = "data") -> Iterator[Reading]:
    """Values of a minute, as the collectors of devices and latencies give them."""
    for side, ios in (("read", one.reads), ("write", one.writes)):
        yield Reading(device, f"{side}_ios_count", "delta", ios, role)
        yield Reading(device, f"{side}_bytes", "delta", ios * one.block_bytes, role)
        if ios:
            yield Reading(device, f"{side}_latency_mean_ns", "gauge", one.counter_mean_ns, role)
    yield Reading(device, "queue_mean_count", "gauge", one.queue, role)
    yield Reading(device, "ios_count", "delta", one.reads + one.writes, role)
    for side, buckets in (("read", one.read_buckets), ("write", one.write_buckets)):
        if not buckets:
            continue
        yield Reading(device, f"{side}_device_ios_count", "delta", sum(buckets.values()), role)
        yield Reading(device, f"{side}_device_latency_mean_ns", "gauge", one.read_mean_ns, role)
        yield Reading(device, f"{side}_device_latency_max_ns", "gauge", one.read_max_ns, role)
        for bucket, count in buckets.items():
            if count:
                yield Reading(device, f"{side}_device_bucket{bucket:02}_count", "delta", count, role)


def record(
    folder: Path, minutes: int, minute: Callable[[int], Minute | None], *, begin_ns: int = BEGIN_NS,
    keep_bytes: int = 64 << 20, also: Callable[[int], Iterable[tuple[str, Reading]]] = lambda _: (), host: str = "db1",
) -> Path:  # fmt: skip
    """Record minutes, each of which is one sample; where there is none, nothing is recorded."""
    with FlightWriter(folder, keep_bytes=keep_bytes, host=host) as writer:
        writer.begin({"host": host})
        for number in range(minutes):
            one = minute(number)
            if one is None:
                continue
            t_ns = begin_ns + (number + 1) * MINUTE
            writer.add(readings(one), t_ns=t_ns, interval_ns=MINUTE, tier="storage", source="block")
            for source, reading in also(number):
                writer.add([reading], t_ns=t_ns, interval_ns=MINUTE, tier="storage", source=source)
            if number % 60 == 0:
                writer.commit()
        writer.commit()
    return folder
