"""Results of fio: the document of `--output-format=json` or `json+` (fio 3; `stat.c`, `show_thread_status_json`).

A group of jobs is a point, since they run at the same time: jobs alike are workers of one workload, others are
activities. Mean and longest latency are those of `lat`: submission and completion, as Assay measures. Percentiles are
those of `lat` too where fio was asked for them (`lat_percentiles=1`), else those of `clat`, and a note says so.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from assay.base.units import count_of
from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Latency, Steady
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import (
    ImportedPoint,
    ImportedRun,
    RunImporter,
    Side,
    amount,
    histogram_of_bins,
    latency_of_statistics,
    together,
    whole,
)
from assay.workloads.io.importers import fio_options
from assay.workloads.io.importers.asked import (
    DEPTH_MAX,
    NOT_ASKED,
    WORKERS_MAX,
    AskedAccess,
    ImportedFigures,
    ImportedJob,
    point_of,
    role_of,
    volume_of,
)
from assay.workloads.io.importers.fio_document import JobsTogether, groups_of, jobs_of, options_of, runs, sides, start
from assay.workloads.io.importers.fio_options import Record

if TYPE_CHECKING:
    from assay._core import Histogram

BINS_MAX = 29 * 64
"""Bins of fio's histograms (`stat.h`)."""

_TAKEN = {
    "iops, bw_bytes, total_ios": "IOPS, throughput, count",
    "lat_ns mean, max": "mean and longest latency",
    "runtime": "measured_s",
    "usr_cpu, sys_cpu": "generator.cpu_share",
}
_IGNORED = {
    "slat_ns": "submission is part of lat_ns",
    "iodepth_level, iodepth_submit, iodepth_complete": "points have no such figures",
    "latency_ns, latency_us, latency_ms": "shares of wide ranges; percentiles say more",
    "bw_min ... iops_stddev": "spread of fio's own samples, of which the document has no more",
    "ctx, majf, minf": "points have no such figures",
    "disk_util": "one value for all groups together; record the host beside fio (assay record)",
}


class Fio(RunImporter):
    """fio."""

    name: ClassVar[str] = "fio"
    title: ClassVar[str] = "fio (--output-format=json, json+)"

    def recognises(self, head: str) -> bool:
        """A document with fio's version; lines of messages may stand before it."""
        at = start(head)
        return at is not None and '"fio version"' in head[at : at + 4096]

    def read(self, text: str, options: Options) -> ImportedRun:
        """Take every group of jobs as a point."""
        taken = TakenFile(format=self.name)
        documents = runs(text, taken)
        version = str(documents[0].get("fio version") or "").removeprefix("fio-")
        run = ImportedRun(program="fio", version=version[:40] or "unknown", taken=taken)
        taken.counters.update(_TAKEN)
        taken.ignored.update(_IGNORED)
        volumes: dict[str, Volume] = {}
        for group in [group for document in documents for group in groups_of(document, taken)]:
            jobs = [_Job(one, group.document, options, taken) for one in group.jobs]
            trims = [job for job in jobs if job.is_trim]
            for job in trims:
                taken.ignore(f"{job.name} (group {job.record.get('groupid', 0)})", "points have no trims")
            jobs = [job for job in jobs if not job.is_trim]
            for job in jobs:
                for volume in job.volumes():
                    volumes.setdefault(volume["path"] or "", volume)
            point = _point(jobs, group, taken) if jobs else None
            if point is not None:
                run.points.append(point)
        hosts = {str(job["hostname"]) for document in documents for job in jobs_of(document) if job.get("hostname")}
        if len(hosts) == 1:
            run.hostname = next(iter(hosts))
        elif hosts:
            taken.note(f"is of several hosts, whose jobs alike are workers of one workload: {', '.join(sorted(hosts))}")
        if not run.points:
            why = ": trims are left out" if "points have no trims" in taken.ignored.values() else ""
            raise NotTaken(f"has no job that read or wrote anything{why}")
        if any(point.figures["started_utc_ns"] is None for point in run.points):
            taken.note(
                "it does not say when each group of jobs ran (newer fio does: job_start), so points have no time of day"
            )
        run.volumes = [{**volume} for volume in volumes.values()]
        return run


# Jobs


class _Job:
    """One entry of `jobs`: a job, or all of a group that `group_reporting` summed up."""

    def __init__(self, record: Record, document: Record, options: Options, taken: TakenFile) -> None:
        common = document.get("global options")
        self.fio = {**options_of(common), **options_of(record.get("job options"))}
        self.is_known = common is not None or record.get("job options") is not None
        self.record, self.options, self.taken = record, options, taken
        self.name = str(record.get("jobname") or self.fio.get("name") or "job")[:80]

    @property
    def is_trim(self) -> bool:
        """Whether it asked for trims, or did nothing else."""
        trims = self.record.get("trim")
        did = isinstance(trims, Mapping) and whole(trims.get("total_ios"), f"{self.name}: trim")
        return "trim" in fio_options.pattern(self.fio) or bool(
            did and not any(whole(side.get("total_ios"), f"{self.name}: total_ios") for _, side in sides(self.record))
        )

    @property
    def alike(self) -> str:
        """Jobs for which this is the same are workers of one workload."""
        return json.dumps([self.name, dict(self.fio)], sort_keys=True)

    def volumes(self) -> list[Volume]:
        """Files and devices that it names."""
        size = fio_options.size_bytes(self.fio.get("size") or self.fio.get("filesize") or "", self.fio)
        roles = self.options.roles
        return [volume_of(path, size, role_of(path, roles)) for path in self._paths()]

    def _paths(self) -> list[str]:
        # A colon separates files; one with a backslash before it belongs to the name.
        text = self.fio.get("filename") or ""
        found = [one.replace("\\:", ":") for one in re.split(r"(?<!\\):", text) if one]
        return found[:1000] or [f"{self.fio.get('directory', '').rstrip('/')}/{self.name}".lstrip("/")]

    @property
    def measured_s(self) -> float:
        """How long it did I/O."""
        times = [amount(side.get("runtime"), f"{self.name}: runtime") or 0.0 for _, side in sides(self.record)]
        return max(times, default=0.0) / 1e3

    def error(self) -> tuple[int, str] | None:
        """How many errors it had, and the first."""
        number = whole(self.record.get("error"), f"{self.name}: error")
        first = whole(self.record.get("first_error"), f"{self.name}: first_error") or number
        count = whole(self.record.get("total_err"), f"{self.name}: total_err") or (1 if number else 0)
        return (count, errno.errorcode.get(first, "other")) if count else None

    def workers(self, entries: int) -> int:
        """Workers that one of so many entries alike stands for."""
        if entries > 1:
            return 1
        named = max(int(fio_options.number(self.fio, "numjobs") or 1), 1)
        # The time of all jobs that group_reporting summed up, and that of the group.
        in_all_s = (amount(self.record.get("job_runtime"), f"{self.name}: job_runtime") or 0.0) / 1e3
        found = round(in_all_s / self.measured_s) if self.measured_s else 0
        if found > named:
            self.taken.note(
                f"{self.name}: sums up {found:,} jobs (group_reporting), though numjobs is {named}: the options are"
                " those of the first, and others may have asked for something else"
            )
        return min(max(found, named), WORKERS_MAX)

    def sides(self) -> dict[str, Side | None]:
        """Reads, writes, both and flushes."""
        found = {name: self._side(side, name) for name, side in sides(self.record)}
        trims = self.record.get("trim")
        if isinstance(trims, Mapping) and whole(trims.get("total_ios"), "trim: total_ios"):
            self.taken.ignore("trim", "points have reads, writes and flushes alone")
        named = {"read": found.get("read"), "write": found.get("write"), "total": found.get("mixed")}
        return {**named, "flush": self._flush()}

    def _side(self, record: Record, name: str) -> Side | None:
        where = f"{self.name}: {name}"
        count = whole(record.get("total_ios"), f"{where}: total_ios")
        seconds = (amount(record.get("runtime"), f"{where}: runtime") or 0.0) / 1e3
        if not count or not seconds:
            return None
        for key in ("short_ios", "drop_ios"):
            dropped = whole(record.get(key), f"{where}: {key}")
            if dropped:
                self.taken.note(f"{self.name}: {dropped:,} {key.replace('_ios', '')} {name}s")
        iops = amount(record.get("iops"), f"{where}: iops")
        moved = amount(record.get("bw_bytes"), f"{where}: bw_bytes")
        if moved is None:
            moved = 1024 * (amount(record.get("bw"), f"{where}: bw") or 0.0)
        latency_ns, histogram = self._latency(record, count, where)
        return Side(
            count=count,
            iops=count / seconds if iops is None else iops,
            bytes_per_s=moved,
            latency_ns=latency_ns,
            histogram=histogram,
        )

    def _flush(self) -> Side | None:
        record = self.record.get("sync")
        if not isinstance(record, Mapping):
            return None
        # With some engines fio counts no syncs, and has their latencies all the same.
        timed = whole(_timed(record, "lat")[0].get("N"), "sync: N")
        count = whole(record.get("total_ios"), "sync: total_ios") or timed
        if not count or not self.measured_s:
            return None
        latency_ns, histogram = self._latency(record, count, f"{self.name}: sync")
        iops = count / self.measured_s
        return Side(count=count, iops=iops, bytes_per_s=0.0, latency_ns=latency_ns, histogram=histogram)

    def _latency(self, record: Record, count: int, where: str) -> tuple[Latency, Histogram | None]:
        """Statistics and histogram: mean and maximum of all of an I/O, percentiles of what has them."""
        both = {name: _timed(record, name) for name in ("lat", "clat")}
        known = [name for name, (one, _) in both.items() if whole(one.get("N", 1), f"{where}: N") and one.get("mean")]
        if not known:
            self.taken.note(f"{where}: fio measured no latency (disable_lat or gtod_reduce)")
            return {}, None
        whole_ios, factor = both[known[0]]
        if known[0] == "clat":
            self.taken.note(f"{where}: latency is from submission to completion alone (disable_lat)")
        of = next((name for name in known if both[name][0].get("percentile") or both[name][0].get("bins")), None)
        percentiles: dict[float, float] = {}
        histogram = None
        if of is None:
            self.taken.note(f"{where}: fio wrote no percentiles (clat_percentiles=0)")
        else:
            percentiles = _percentiles(both[of], f"{where}: {of}")
            bins = both[of][0].get("bins")
            # I/Os that end as the ramp does are counted in the latency alone.
            timed = whole(both[of][0].get("N"), f"{where}: N") or count
            histogram = self._histogram(bins, timed, both[of][1], where)
            if of == "clat" and known[0] == "lat":
                self.taken.note(
                    "percentiles are of completion latency (clat), which leaves out what submission took; mean and"
                    " longest are of both (lat). fio writes percentiles of both with lat_percentiles=1"
                )
        mean_ns = (amount(whole_ios.get("mean"), f"{where}: mean") or 0.0) * factor
        most = amount(whole_ios.get("max"), f"{where}: max")
        longest_ns = None if most is None else most * factor
        return latency_of_statistics(mean_ns, longest_ns, percentiles, histogram), histogram

    def _histogram(self, bins: object, count: int, factor: float, where: str) -> Histogram | None:
        if not isinstance(bins, Mapping) or not bins:
            self.taken.ignore("histograms", "the document has none (--output-format=json+ writes them)")
            return None
        if len(bins) > BINS_MAX or factor != 1:
            self.taken.note(f"{where}: its bins are not those of fio 3 and are left out")
            return None
        pairs = [
            (whole(_integer(value), f"{where}: bins"), whole(number, f"{where}: bins"))
            for value, number in bins.items()
        ]
        found = histogram_of_bins(pairs, count)
        if found is None:
            self.taken.note(f"{where}: its bins do not add up to its {count:,} latencies and are left out")
        else:
            self.taken.counters.setdefault("bins", "histogram: fio's bins are 1.6 % wide, a value is their middle")
        return found

    def asked(self, entries: int) -> ImportedJob:
        """The job as one of Assay's workloads; `entries` are how many are alike."""
        sides = self.sides()
        label = self.name
        if not self.is_known:
            return self._not_asked(entries, sides)
        single = self.record.get("iodepth_level")
        alone = amount(single.get("1"), "iodepth_level") if isinstance(single, Mapping) else None
        access = fio_options.access(self.fio)
        others = fio_options.others(self.fio)
        blocks = fio_options.block_bytes(self.fio)
        if blocks is None:
            blocks = self._mean_block(sides)
            others |= {name: self.fio[name] for name in ("bs", "bsrange", "bssplit") if name in self.fio}
            self.taken.note(f"{label}: its blocks vary; {blocks:,} bytes are their mean")
        if others:
            names = ", ".join(f"{name}={value}"[:60] for name, value in sorted(others.items())[:8])
            self.taken.note(f"{label}: options that points have no key for are kept as other_options: {names}")
        depth = fio_options.queue_depth(self.fio, None if alone is None else alone / 100)
        return ImportedJob(
            label=label,
            access=access | {"block_bytes": blocks, "role": role_of(self._paths()[0], self.options.roles)},
            queue_depth=min(depth, DEPTH_MAX),
            workers=self.workers(entries),
            others=others,
            read=sides["read"],
            write=sides["write"],
            total=sides["total"],
            flush=sides["flush"],
        )

    def _not_asked(self, entries: int, found: Mapping[str, Side | None]) -> ImportedJob:
        """The job where the document does not say what was asked: block and mix are those of what was done."""
        self.taken.note(
            f"{self.name}: the document does not say what was asked (fio 2 writes no options): its block and mix are"
            " those of what was done, and all else is not known"
        )
        read, write = found["read"], found["write"]
        both = (read.count if read else 0) + (write.count if write else 0)
        access: AskedAccess = {"block_bytes": self._mean_block(found)}
        if both:
            access["read_share"] = (read.count if read else 0) / both
        return ImportedJob(
            label=self.name,
            access=access,
            queue_depth=None,
            workers=max(entries, 1),
            unknown=tuple(name for name in NOT_ASKED if name not in access),
            read=read,
            write=write,
            total=found["total"],
            flush=found["flush"],
        )

    def _mean_block(self, sides: Mapping[str, Side | None]) -> int:
        found = together([sides["total"]]) or together([sides["read"], sides["write"]])
        return max(round(found.bytes_per_s / found.iops), 1) if found is not None and found.iops else 4096


def _timed(record: Record, name: str) -> tuple[Record, float]:
    """A latency of a direction, and its unit in nanoseconds: fio 2 wrote microseconds."""
    for key, factor in ((f"{name}_ns", 1.0), (name, 1e3)):
        found = record.get(key)
        if isinstance(found, Mapping):
            return found, factor
    return {}, 1.0


def _percentiles(timed: tuple[Record, float], where: str) -> dict[float, float]:
    record, factor = timed
    given = record.get("percentile")
    found = {}
    for name, value in given.items() if isinstance(given, Mapping) else ():
        percent, value_ns = _percent(name), amount(value, f"{where}: percentile")
        if percent is not None and value_ns is not None:
            found[percent] = value_ns * factor
    return found


def _percent(name: str) -> float | None:
    match = re.fullmatch(r"\d{1,3}\.\d{1,9}", name, re.ASCII)
    return round(float(name), 6) if match else None


def _integer(text: str) -> object:
    return text if re.fullmatch(r"\d{1,18}", text, re.ASCII) else "-1"


# Points


def _point(jobs: list[_Job], group: JobsTogether, taken: TakenFile) -> ImportedPoint | None:
    """The point of a group; None where it did nothing and failed at nothing."""
    alike: dict[str, list[_Job]] = {}
    for job in jobs:
        alike.setdefault(job.alike, []).append(job)
    asked = [_as_one([job.asked(len(same)) for job in same], taken) for same in alike.values()]
    label = ", ".join(dict.fromkeys(job.name for job in jobs))[:80]
    failed = [(job.name, found) for job in jobs if (found := job.error()) is not None]
    for name, (count, kind) in failed:
        taken.note(f"{name}: fio reports {count_of(count, 'error')}, the first {kind}")
    if all(one.all is None for one in asked) and not failed:
        taken.ignore(label, "it did no reads or writes")
        return None
    kinds: dict[str, int] = {}
    for _, (count, kind) in failed:
        kinds[kind] = kinds.get(kind, 0) + count
    seconds = max(job.measured_s for job in jobs)
    figures = _times(jobs, group, seconds)
    figures |= {
        "warmup_s": min(fio_options.seconds(jobs[0].fio, "ramp_time"), 1e9),
        "measured_s": seconds,
        "ended_by": "failed" if any(job.record.get("error") for job in jobs) else "time",
        "errors": {"count": sum(kinds.values()), "kinds": kinds},
        "generator": {"cpu_share": _cpu_share(jobs), "saturated": None},
        "engine": {"backend": jobs[0].fio.get("ioengine"), "features": [], "degraded": []},
    }
    steady = _steady(jobs[0].record, seconds)
    if steady is not None:
        figures["steady"] = steady
    return point_of(asked, figures, label)


def _as_one(asked: list[ImportedJob], taken: TakenFile) -> ImportedJob:
    """Jobs alike as workers of one."""
    first = asked[0]
    if len(asked) == 1:
        return first
    first.workers = len(asked)
    for side in ("read", "write", "total", "flush"):
        whole_side = together([getattr(job, side) for job in asked])
        if whole_side is not None and whole_side.histogram is None:
            taken.note(
                f"{first.label}: percentiles of its {len(asked)} jobs cannot be put together without histograms: let"
                " fio sum them up (group_reporting), or write --output-format=json+"
            )
        setattr(first, side, whole_side)
    return first


def _times(jobs: list[_Job], group: JobsTogether, seconds: float) -> ImportedFigures:
    """When it ran: by fio's own words, or back from when the document was written where all jobs ran until then.

    fio sets `job_start` anew when the ramp ends (`reset_all_stats` calls `set_epoch_time`): the window begins there.
    """
    starts = [whole(job.record.get("job_start"), "job_start") for job in jobs]
    written_ms = whole(group.document.get("timestamp_ms"), "timestamp_ms")
    window_ns = round(seconds * 1e9)
    # Another clock than the wall's may be asked for.
    if all(starts) and not fio_options.number(jobs[0].fio, "job_start_clock_id"):
        begin_ns = min(starts) * 10**6
    elif group.is_last and written_ms:
        begin_ns = written_ms * 10**6 - window_ns
    else:
        begin_ns = -1
    if not 0 <= begin_ns < 2**62 or window_ns >= 2**60:
        return {"started_utc_ns": None, "measured_from_utc_ns": None, "measured_to_utc_ns": None}
    end_ns = begin_ns + window_ns
    return {"started_utc_ns": begin_ns, "measured_from_utc_ns": begin_ns, "measured_to_utc_ns": end_ns}


def _cpu_share(jobs: list[_Job]) -> float | None:
    """Mean share of a core that a job used."""
    found = [
        (amount(job.record.get("usr_cpu"), "usr_cpu") or 0.0) + (amount(job.record.get("sys_cpu"), "sys_cpu") or 0.0)
        for job in jobs
        if "usr_cpu" in job.record
    ]
    return sum(found) / len(found) / 100 if found else None


def _steady(record: Record, seconds: float) -> Steady | None:
    """What fio's own test of the steady state said, where it was asked."""
    found = record.get("steadystate")
    if not isinstance(found, Mapping) or found.get("attained") not in (0, 1):
        return None
    reached = bool(found["attained"])
    return {
        "reached": reached, "window_s": seconds, "slope_share": None, "half_width_share": None, "judged_by": "fio",
    }  # fmt: skip
