"""Results of fio: its JSON, its normal text and its terse output (`stat.c`).

A group of jobs is a point, since they run at the same time: jobs alike are workers of one workload, others are
activities. Mean and longest latency are those of `lat`: submission and completion, as Assay measures. Percentiles are
those of `lat` too where fio was asked for them (`lat_percentiles=1`), else those of `clat`, and a note says so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from assay.base.units import count_of
from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Steady
from assay.telemetry.importers.importer import NotTaken, Options
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import ImportedPoint, ImportedRun, RunImporter, amount, together, whole
from assay.workloads.io.importers import fio_options, fio_text
from assay.workloads.io.importers.asked import ImportedFigures, ImportedJob, point_of
from assay.workloads.io.importers.fio_document import JobsTogether, groups_of, jobs_of, runs, start
from assay.workloads.io.importers.fio_job import FioJob
from assay.workloads.io.importers.fio_options import Record

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


class FioResults(RunImporter):
    """Results of fio in one of its formats: each is read as the document that fio's JSON is."""

    has_options: ClassVar[bool] = False
    """Whether it repeats every option of a job."""

    @abstractmethod
    def documents(self, text: str, options: Options, taken: TakenFile) -> Sequence[Record]:
        """Every run of a file.

        Raises
        ------
        NotTaken
            It holds none.
        """

    def read(self, text: str, options: Options) -> ImportedRun:
        """Take every group of jobs as a point."""
        taken = TakenFile(format=self.name)
        documents = self.documents(text, options, taken)
        version = str(documents[0].get("fio version") or "").removeprefix("fio-")
        run = ImportedRun(program="fio", version=version[:40] or "unknown", taken=taken)
        volumes: dict[str, Volume] = {}
        for group in [group for document in documents for group in groups_of(document, taken)]:
            jobs = [FioJob(one, group.document, options, taken, self.has_options) for one in group.jobs]
            trims = [job for job in jobs if job.is_trim]
            for job in trims:
                taken.ignore(f"{job.name} (group {job.record.get('groupid', 0)})", "points have no trims")
            jobs = [job for job in jobs if not job.is_trim]
            for volume in [volume for job in jobs if job.has_options for volume in job.volumes()]:
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


class Fio(FioResults):
    """The document of `--output-format=json` or `json+` (`show_thread_status_json`)."""

    name: ClassVar[str] = "fio"
    title: ClassVar[str] = "fio (--output-format=json, json+)"
    has_options = True

    def recognises(self, head: str) -> bool:
        """A document with fio's version; lines of messages may stand before it."""
        at = start(head)
        return at is not None and '"fio version"' in head[at : at + 4096]

    def documents(self, text: str, options: Options, taken: TakenFile) -> Sequence[Record]:
        """Every run of a file."""
        taken.counters.update(_TAKEN)
        taken.ignored.update(_IGNORED)
        return runs(text, taken)


class FioText(FioResults):
    """What fio prints for people, or line by line for scripts."""

    name: ClassVar[str] = "fio_text"
    title: ClassVar[str] = "fio (its normal text, terse output)"

    def recognises(self, head: str) -> bool:
        """A line of what a job asked for, or of what it did."""
        return fio_text.is_text(head)

    def documents(self, text: str, options: Options, taken: TakenFile) -> Sequence[Record]:
        """Every run of a text."""
        found = fio_text.documents_of(text, options, taken)
        if not found:
            raise NotTaken("says what fio was asked and holds no results: it ended before fio reported")
        if not all(job.get("is_whole") for document in found for job in jobs_of(document)):
            taken.ignore("ramp_time", "the text does not say it; points have no warm-up")
            taken.note(
                "it says pattern, blocks, engine and depth at most, no other option: direct, sync, the mix that was"
                " asked for, files and sizes are not known"
            )
        return found


# Points


def _point(jobs: list[FioJob], group: JobsTogether, taken: TakenFile) -> ImportedPoint | None:
    """The point of a group; None where it did nothing and failed at nothing."""
    alike: dict[str, list[FioJob]] = {}
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
    first.workers = sum(job.workers for job in asked)
    for side in ("read", "write", "total", "flush"):
        whole_side = together([getattr(job, side) for job in asked])
        if whole_side is not None and whole_side.histogram is None:
            taken.note(
                f"{first.label}: percentiles of its {len(asked)} jobs cannot be put together without histograms: let"
                " fio sum them up (group_reporting), or write --output-format=json+"
            )
        setattr(first, side, whole_side)
    return first


def _times(jobs: list[FioJob], group: JobsTogether, seconds: float) -> ImportedFigures:
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


def _cpu_share(jobs: list[FioJob]) -> float | None:
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
