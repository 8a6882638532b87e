"""Points as fio's JSON, so that tools made for fio read them: fio-plot, json+ histogram tools, scripts.

The layout is that of fio 3.42 (`stat.c`, `stat.h`), the folder's that of bench-fio: a folder per workload, in it one
file per point, `<rw>-<iodepth>-<numjobs>.json`. What fio counts and Assay does not (context switches, page faults,
requests per submission) is left out instead of being filled with zeros, except where fio-plot insists on a key. Points
of workloads that measure something else than reads and writes are no jobs of fio and are left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

from assay.record.histograms import histogram_of
from assay.record.shapes.access import accesses_of
from assay.report.exports.kinds import measures_io

if TYPE_CHECKING:
    from assay.record.shapes.access import Access
    from assay.record.shapes.point import Batch, Batches, Latency
    from assay.record.types import Direction, Load, Manifest, Point

Bins = list[tuple[int, int]]
"""Latency in nanoseconds and count of I/Os."""

FOLDER_LETTERS_MAX = 100

PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
"""fio's default list, of completion latency."""

# fio's histogram (`stat.h`): exact below 2 * 2**6 ns, then 2**6 buckets an octave, 29 groups of 2**6 in all.
_GROUP_BITS = 6
_GROUP = 1 << _GROUP_BITS
_BUCKETS = 29 * _GROUP

# Upper bounds of fio's coarse distribution; each share counts what lies between its bound and the one before.
_BOUNDS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)


class FioLatency(TypedDict):
    """fio's statistics of a latency, nanoseconds, and of completion latency its percentiles and bins."""

    min: int
    max: float
    mean: float
    stddev: float
    N: int
    percentile: NotRequired[dict[str, int]]
    bins: NotRequired[dict[str, int]]


class FioPercentiles(TypedDict, total=False):
    """Completion latency by percentile, and I/Os by latency, in nanoseconds; neither where nothing ended."""

    percentile: dict[str, int]
    bins: dict[str, int]


class FioDirection(TypedDict):
    """What reads, writes or trims of a job did: bytes, `bw` in KiB per second, `runtime` in milliseconds."""

    io_bytes: int
    io_kbytes: int
    bw_bytes: int
    bw: int
    iops: float
    runtime: int
    total_ios: int
    short_ios: int
    drop_ios: int
    slat_ns: FioLatency
    clat_ns: FioLatency
    lat_ns: FioLatency
    bw_min: int
    bw_max: int
    bw_agg: float
    bw_mean: float
    bw_dev: float
    bw_samples: int
    iops_min: int
    iops_max: int
    iops_mean: float
    iops_stddev: float
    iops_samples: int


class FioSync(TypedDict):
    """What flushes of a job did."""

    total_ios: int
    lat_ns: FioLatency


class FioCoarse(TypedDict):
    """Shares of I/Os in percent by upper bounds of their latency, in three units."""

    latency_ns: dict[str, float]
    latency_us: dict[str, float]
    latency_ms: dict[str, float]


FioJob = TypedDict(
    "FioJob",
    {
        "jobname": str, "groupid": int, "job_start": int, "error": int, "eta": int, "elapsed": int, "desc": str,
        "job options": dict[str, str], "read": FioDirection, "write": FioDirection, "trim": FioDirection,
        "sync": FioSync, "job_runtime": int, "usr_cpu": float, "sys_cpu": float, "latency_ns": dict[str, float],
        "latency_us": dict[str, float], "latency_ms": dict[str, float], "total_err": NotRequired[int],
    },
)  # fmt: skip
"""A job: `job_start` and `job_runtime` in milliseconds, `elapsed` in seconds, processors in percent."""

FioDocument = TypedDict(
    "FioDocument",
    {
        "fio version": str, "timestamp": int, "timestamp_ms": int, "global options": dict[str, str],
        "jobs": list[FioJob],
    },
)  # fmt: skip
"""One of fio's files."""


@dataclass(frozen=True, kw_only=True)
class _Done:
    """What one job did: a whole point, or one of its activities."""

    name: str
    read: Direction | None
    write: Direction | None
    flush: Direction | None
    total: Direction
    batches: Batches


def fio_bucket_ns(latency_ns: int) -> int:
    """Midpoint of the bucket in which fio counts a latency.

    Above 127 ns the bucket of `v` is given by its most significant bit and the six bits after it, so a bucket is
    `2**(msb - 6)` wide and its midpoint is at most 1/128 = 0.8 % away from any value in it.

    Examples
    --------
    >>> fio_bucket_ns(100), fio_bucket_ns(128), fio_bucket_ns(1_000_000)
    (100, 129, 1003520)
    """
    if latency_ns < 2 * _GROUP:
        return latency_ns
    shift = latency_ns.bit_length() - 1 - _GROUP_BITS
    index = min((shift + 1) * _GROUP + (latency_ns >> shift) % _GROUP, _BUCKETS - 1)
    shift, position = index // _GROUP - 1, index % _GROUP
    return (_GROUP + position << shift) + (1 << shift >> 1)


def fio_json_files(manifest: Manifest, points: Sequence[Point]) -> dict[str, str]:
    """Return `fio.json` with all points as jobs, and `<workload>/<rw>-<iodepth>-<numjobs>.json` per point.

    A point whose name is taken, a repeat for instance, goes to a folder that carries its id, because fio-plot takes
    every file of a folder for another load of the same workload.

    Parameters
    ----------
    manifest, points
        The run (docs/results.md). Points without any I/O are left out.

    Returns
    -------
    dict
        Content of each file, the combined one first.
    """
    documents: dict[str, FioDocument] = {}
    jobs: list[FioJob] = []
    for point in points:
        point_jobs = _jobs(point)
        if point_jobs:
            path = _free_path(point, point_jobs[0]["job options"], documents)
            documents[path] = _document(manifest, point, point_jobs)
            # Measured one after the other, as groups behind a stonewall: readers add up the jobs of a group.
            jobs += [{**job, "groupid": len(documents) - 1} for job in point_jobs]
    combined = _document(manifest, points[-1] if points else None, jobs)
    return {
        path: json.dumps(document, indent=2) + "\n" for path, document in ({"fio.json": combined} | documents).items()
    }


def _free_path(point: Point, options: Mapping[str, str], taken: Container[str]) -> str:
    mix = options.get("rwmixread", "")
    role = point["workload"].get("role") or ""
    folder = "-".join(part for part in (role, options["bs"], options["rw"] + mix) if part)
    if "activities" in point["workload"]:
        folder = f"mixed-{point['workload'].get('name') or 'workload'}"
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", folder)[:FOLDER_LETTERS_MAX].strip("-.") or "workload"
    name = f"{options['rw']}-{int(options['iodepth'])}-{int(options['numjobs'])}.json"
    path = f"{folder}/{name}"
    # Ids are unique within a run, so the second name is free.
    return f"{folder}-{point['id']}/{name}" if path in taken else path


def _document(manifest: Manifest, point: Point | None, jobs: list[FioJob]) -> FioDocument:
    started_ns = (point and point.get("started_utc_ns")) or manifest.get("started_utc_ns") or 0
    ended_s = (started_ns / 1e9) + (_elapsed_s(point) if point else 0.0)
    version = (manifest.get("build") or {}).get("version") or "unknown"
    return {
        # Readers look for a version of fio here; the name says who measured.
        "fio version": f"assay-{version}",
        "timestamp": int(ended_s),
        "timestamp_ms": int(ended_s * 1000),
        "global options": {},
        "jobs": jobs,
    }


def _elapsed_s(point: Point) -> float:
    return float(point.get("warmup_s") or 0) + float(point.get("measured_s") or 0)


def _jobs(point: Point) -> list[FioJob]:
    """One job per activity where several ran at once, else one; none where other tools measure no such points."""
    if not measures_io(point):
        return []
    asked = accesses_of(point)
    if "activities" not in asked:
        total = point.get("total")
        if not total:
            return []
        done = _Done(
            name=point.get("id") or "", read=point.get("read"), write=point.get("write"), flush=point.get("flush"),
            total=total, batches=point.get("batches") or {},
        )  # fmt: skip
        return [_job(point, done, asked, point["load"])]
    by_name = {activity["name"]: activity for activity in asked["activities"]}
    jobs = []
    for part in point.get("activities") or []:
        total = part.get("total")
        if total and part["name"] in by_name:
            activity = by_name[part["name"]]
            done = _Done(
                name=part.get("name") or "", read=part.get("read"), write=part.get("write"), flush=None, total=total,
                batches={},
            )  # fmt: skip
            jobs.append(_job(point, done, activity, activity["load"]))
    return jobs


def _job(point: Point, done: _Done, access: Access, load: Load) -> FioJob:
    reads, writes, flushes = _bins(done.read), _bins(done.write), _bins(done.flush)
    options = _options(access, load, done.total)
    cpu_percent = 100 * float((point.get("generator") or {}).get("cpu_share") or 0.0)
    errors = int((point.get("errors") or {"count": 0})["count"])
    coarse = _coarse(reads + writes)
    job: FioJob = {
        "jobname": str(done.name or point.get("id") or "assay"),
        "groupid": 0,
        "job_start": int((point.get("started_utc_ns") or 0) / 1e6),
        "error": 0,
        "eta": 0,
        "elapsed": math.ceil(_elapsed_s(point)),
        "desc": _description(access, load),
        "job options": options,
        "read": _direction(done.read, reads, point, done.batches.get("read")),
        "write": _direction(done.write, writes, point, done.batches.get("write")),
        "trim": _direction(None, [], point, None),
        "sync": {"total_ios": done.flush["count"] if done.flush else 0, "lat_ns": _latency(flushes)},
        "job_runtime": round(1000 * float(point.get("measured_s") or 0) * int(options["numjobs"])),
        # The load threads' time is known as a whole; fio's readers add user and system up.
        "usr_cpu": cpu_percent,
        "sys_cpu": 0.0,
        "latency_ns": coarse["latency_ns"],
        "latency_us": coarse["latency_us"],
        "latency_ms": coarse["latency_ms"],
    }
    if errors:
        job["total_err"] = errors
    return job


def _description(access: Access, load: Load) -> str:
    name = str(access.get("name") or "")
    if _depth(load) is not None:
        return name
    kind = "bursts" if load.get("burst_bytes") is not None else "open loop"
    return f"{name}; {kind}, latency from the intended start; iodepth is the mean number in flight".lstrip("; ")


def _depth(load: Load) -> int | None:
    """Queue depth of a closed loop; open loops and bursts have none."""
    if load.get("rate") is not None or load.get("burst_bytes") is not None:
        return None
    depth, outstanding = load.get("queue_depth"), load.get("outstanding")
    if depth is not None:
        return depth
    return None if outstanding is None else math.ceil(outstanding / (load.get("workers") or 1))


def _options(access: Access, load: Load, total: Direction) -> dict[str, str]:
    read_share, random_share, block_bytes = access["read_share"], access["random_share"], access["block_bytes"]
    if read_share is None or block_bytes is None:
        raise TypeError("its workload lacks a share or a size")
    kind = {1.0: "read", 0.0: "write"}.get(read_share, "rw")
    options = _block_options(block_bytes)
    if random_share is not None:
        options["rw"] = f"rand{kind}" if random_share else kind
    workers = int(load.get("workers") or 1)
    depth = _depth(load)
    if depth is None:
        # fio-plot insists on a depth; an open loop has none, so it gets the mean in flight, by Little's law.
        in_flight = total["iops"] * (total["latency_ns"].get("mean") or 0.0) / 1e9
        depth = math.ceil(in_flight / workers)
    options["iodepth"] = str(max(1, depth))
    rate = load.get("rate")
    if rate is not None:
        options["rate_iops"] = f"{rate / workers:.0f}"
        if load.get("arrivals") == "poisson":
            options["rate_process"] = "poisson"
    options["numjobs"] = str(workers)
    if 0 < read_share < 1:
        options["rwmixread"] = f"{100 * read_share:.0f}"
    if random_share is not None and 0 < random_share < 1:
        options["percentage_random"] = f"{100 * random_share:.0f}"
    options["direct"] = "1" if access.get("io_mode", "direct") == "direct" else "0"
    return options | _sync_options(access)


def _sync_options(access: Access) -> dict[str, str]:
    sync = access.get("sync") or "none"
    if sync in ("fsync", "fdatasync"):
        return {sync: str(access.get("sync_every") or 1)}
    return {"sync": "dsync"} if sync == "dsync" else {}


def _block_options(block_bytes: int | Mapping[str, float]) -> dict[str, str]:
    """`bs`, and for a mix `bssplit` too; `bs` is then the most frequent size, because fio's readers show one."""
    if not isinstance(block_bytes, Mapping):
        return {"bs": _size(int(block_bytes))}
    split = ":".join(f"{_size(int(size))}/{100 * share:.0f}" for size, share in block_bytes.items())
    return {"bs": _size(int(max(block_bytes, key=lambda size: block_bytes[size]))), "bssplit": split}


def _size(size_bytes: int) -> str:
    for factor, letter in ((2**20, "m"), (2**10, "k")):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor}{letter}"
    return str(size_bytes)


def _bins(direction: Direction | None) -> Bins:
    histogram = histogram_of(direction)
    return [] if histogram is None else histogram.bins()


def _direction(direction: Direction | None, bins: Bins, point: Point, batches: Batch | None) -> FioDirection:
    measured: Direction = direction or {"count": 0, "iops": 0.0, "bytes_per_s": 0.0, "latency_ns": {}}
    seconds = float(point.get("measured_s") or 0)
    bytes_per_s = float(measured["bytes_per_s"])
    count, iops = measured["count"], float(measured["iops"])
    windows = [value for value in (batches or {}).get("iops") or [] if value is not None] or [iops]
    # Batches hold I/Os, not bytes; the block size is that of the whole point, so bandwidth scales with them.
    kib = [value * bytes_per_s / iops / 1024 if iops else 0.0 for value in windows]
    latency = _latency(bins, measured["latency_ns"])
    return {
        "io_bytes": round(bytes_per_s * seconds),
        "io_kbytes": round(bytes_per_s * seconds / 1024),
        "bw_bytes": round(bytes_per_s),
        "bw": round(bytes_per_s / 1024),
        "iops": iops,
        "runtime": round(1000 * seconds) if count else 0,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        # Submission is not timed apart, so all of the latency is completion latency, as under `disable_slat`.
        "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
        "clat_ns": {**latency, **_percentiles_and_bins(bins)},
        "lat_ns": latency,
        "bw_min": round(min(kib)),
        "bw_max": round(max(kib)),
        "bw_agg": 100.0 if count else 0.0,
        "bw_mean": sum(kib) / len(kib),
        "bw_dev": _deviation(kib),
        "bw_samples": len(windows) if count else 0,
        "iops_min": round(min(windows)),
        "iops_max": round(max(windows)),
        "iops_mean": sum(windows) / len(windows),
        "iops_stddev": _deviation(windows),
        "iops_samples": len(windows) if count else 0,
    }


def _deviation(values: Sequence[float]) -> float:
    """Sample standard deviation, 0 of a single value, as fio gives it."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _latency(bins: Bins, measured: Latency | None = None) -> FioLatency:
    known: Latency = measured or {}
    count = sum(number for _, number in bins)
    if not count:
        return {"min": 0, "max": known.get("max") or 0, "mean": float(known.get("mean") or 0), "stddev": 0.0, "N": 0}
    mean = sum(value * number for value, number in bins) / count
    square = sum(number * (value - mean) ** 2 for value, number in bins)
    exact_max, exact_mean = known.get("max"), known.get("mean")
    return {
        "min": bins[0][0],
        "max": bins[-1][0] if exact_max is None else exact_max,
        "mean": float(mean if exact_mean is None else exact_mean),
        "stddev": math.sqrt(square / (count - 1)) if count > 1 else 0.0,
        "N": count,
    }


def _percentiles_and_bins(bins: Bins) -> FioPercentiles:
    counts: dict[int, int] = {}
    for value, number in bins:
        bucket = fio_bucket_ns(value)
        counts[bucket] = counts.get(bucket, 0) + number
    if not counts:
        return {}
    ordered, total, percentiles = sorted(counts.items()), sum(counts.values()), {}
    below, at = ordered[0][1], 0
    for percentile in PERCENTILES:
        while below < math.ceil(percentile / 100 * total) and at + 1 < len(ordered):
            at += 1
            below += ordered[at][1]
        percentiles[f"{percentile:f}"] = ordered[at][0]
    return {"percentile": percentiles, "bins": {str(value): number for value, number in ordered}}


def _coarse(bins: Bins) -> FioCoarse:
    """Shares in percent of I/Os below 1 us, below 1 ms and above, in fio's steps of each unit."""
    total = sum(number for _, number in bins) or 1

    def shares(factor: int, bounds: Sequence[int], lower: int) -> dict[str, float]:
        row: dict[str, float] = {}
        for bound in bounds:
            upper = bound * factor
            row[str(bound)] = 100 * sum(number for value, number in bins if lower <= value < upper) / total
            lower = upper
        return row

    slow = 100 * sum(number for value, number in bins if value >= 2 * 10**9) / total
    return {
        "latency_ns": shares(1, _BOUNDS, 0),
        "latency_us": shares(10**3, _BOUNDS, 10**3),
        "latency_ms": shares(10**6, (*_BOUNDS, 2000), 10**6) | {">=2000": slow},
    }
