"""What stops streams from bringing more: processors, the buffer cache, memory of the queries, or storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.base.units import count_of, format_bytes, format_throughput
from assay.record.shapes.point import Point
from assay.workloads.databases.figures import CPU_BUSY_SHARE
from assay.workloads.databases.storage import data_devices
from assay.workloads.tpch.shapes import Dss, dss_of, storage_of

GAIN_SHARE = 0.10
"""Streams no longer scale where a step to more of them brings less than this share of queries per hour."""

HITS_FALL = 0.02
"""The buffer cache falls short where pages found in it become fewer by this share."""

READ_GROWS = 1.5
"""... and each query makes devices read so many times as much as with the fewest streams."""

WAIT_SHARE = 0.5
"""Storage is the limit where devices have this many I/Os outstanding for each stream."""


def scaling_sentences(points: Sequence[Point]) -> list[str]:
    """Where growing streams stop bringing more queries per hour, and what stops them, a sentence for each database.

    Parameters
    ----------
    points
        Points of a study; throughput tests with several numbers of streams on the same databases count.
    """
    groups: dict[tuple[str, ...], dict[int, Point]] = {}
    for point in points:
        dss = dss_of(point)
        if dss.get("test") == "throughput" and (queries := dss.get("queries")):
            names = tuple(sorted({str(query["database"]) for query in queries}))
            groups.setdefault(names, {}).setdefault(int(dss["streams"] or 0), point)
    return [_sentence(names, by_streams, len(groups) > 1) for names, by_streams in _merged(groups).items()
            if len(by_streams) > 1]  # fmt: skip


def _merged(groups: Mapping[tuple[str, ...], dict[int, Point]]) -> dict[tuple[str, ...], dict[int, Point]]:
    """One stream uses one database of several: it belongs to those that share it, unless they have their own."""
    merged = {names: dict(found) for names, found in groups.items()}
    for names, found in groups.items():
        for others, own in merged.items():
            if set(names) < set(others):
                own.update({streams: point for streams, point in found.items() if streams < len(others)} | own)
    return merged


def _sentence(names: Sequence[str], by_streams: Mapping[int, Point], is_one_of_several: bool) -> str:
    on = f"On {' and '.join(names)}, " if is_one_of_several else ""
    counts = sorted(by_streams)
    rates = {count: _queries_per_hour(by_streams[count]) for count in counts}
    told = ", ".join(f"{rates[count]:,.0f} with {count}" for count in counts)
    for place, count in enumerate(counts[:-1], start=1):
        if max(rates[more] for more in counts[place:]) < rates[count] * (1 + GAIN_SHARE):
            reasons = shortages(by_streams[counts[0]], by_streams[counts[place]])
            why = "; ".join(reasons) or "none of the limits that were looked for was reached"
            bring = "brings" if count == 1 else "bring"
            sentence = f"{on}more than {count_of(count, 'stream')} {bring} nothing (queries an hour: {told}): {why}."
            return sentence[:1].upper() + sentence[1:]
    sentence = f"{on}queries an hour grow with the streams up to {counts[-1]}: {told}."
    return sentence[:1].upper() + sentence[1:]


def shortages(first: Point, last: Point) -> list[str]:
    """What is short with many streams, beside the point with the fewest, the memory first."""
    before, after = dss_of(first), dss_of(last)
    stored_before, stored = storage_of(first), storage_of(last)
    found = []
    hits_before, hits = stored_before.get("buffer_hit_share"), stored.get("buffer_hit_share")
    read_before, read = (_bytes_per_query(point) for point in (first, last))
    if (
        hits is not None
        and hits_before is not None
        and hits_before - hits >= HITS_FALL
        and read > read_before * READ_GROWS
    ):
        found.append(
            f"the buffer cache is short: {hits:.1%} of pages are found in it instead of {hits_before:.1%}, and a query"
            f" makes devices read {format_bytes(read)} instead of {format_bytes(read_before)}"
        )
    spilled_before, spilled = (_spilled_per_query(dss) for dss in (before, after))
    if spilled > max(spilled_before * READ_GROWS, 1 << 20):
        found.append(
            f"the memory of queries is short: each writes {format_bytes(spilled)} to temporary files instead of"
            f" {format_bytes(spilled_before)}"
        )
    cpu = (last.get("telemetry") or {}).get("cpu_share")
    if cpu is not None and cpu >= CPU_BUSY_SHARE:
        found.append(f"the processors are {cpu:.0%} busy")
    data = data_devices(stored)
    outstanding = sum(
        (device.get("read_iops") or 0.0) * (device.get("read_latency_mean_ns") or 0.0) / 1e9 for device in data
    )
    if outstanding >= WAIT_SHARE * int(after["streams"] or 0):
        rate = sum(device.get("read_bytes_per_s") or 0.0 for device in data)
        found.append(f"queries wait for storage: {outstanding:.1f} reads are outstanding at {format_throughput(rate)}")
    return found


def _queries_per_hour(point: Point) -> float:
    dss = dss_of(point)
    done = sum(query["ended_by"] == "done" for query in dss["queries"] or ())
    return float(done * 3600 / max(float(dss["completion_s"] or 0.0), 1e-9))


def _bytes_per_query(point: Point) -> float:
    """Bytes that devices, else servers, read for each query."""
    dss = dss_of(point)
    storage = storage_of(point)
    data = data_devices(storage)
    rate = sum(device.get("read_bytes_per_s") or 0.0 for device in data)
    if not data:
        rate = (storage.get("database") or {}).get("read_bytes_per_s") or 0.0
    return float(rate) * float(storage.get("seconds") or 0.0) / max(len(dss["queries"] or ()), 1)


def _spilled_per_query(dss: Dss) -> float:
    return float((dss.get("storage") or {}).get("temp_bytes") or 0.0) / max(len(dss["queries"] or ()), 1)
