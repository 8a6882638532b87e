"""A job of fio as one of Assay's workloads: what it asked for, and what it did."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Latency
from assay.telemetry.importers.importer import Options
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import Side, amount, histogram_of_bins, latency_of_statistics, together, whole
from assay.workloads.io.importers import fio_options
from assay.workloads.io.importers.asked import (
    DEPTH_MAX,
    NOT_ASKED,
    WORKERS_MAX,
    AskedAccess,
    ImportedJob,
    role_of,
    volume_of,
)
from assay.workloads.io.importers.fio_document import options_of, sides
from assay.workloads.io.importers.fio_options import Record

if TYPE_CHECKING:
    from assay._core import Histogram

BINS_MAX = 29 * 64
"""Bins of fio's histograms (`stat.h`)."""


class FioJob:
    """One entry of `jobs`: a job, or all of a group that `group_reporting` summed up.

    Attributes
    ----------
    is_known
        Whether it is known what was asked; with `has_options` all of it, else what fio's text says.
    """

    def __init__(
        self, record: Record, document: Record, options: Options, taken: TakenFile, has_options: bool = True
    ) -> None:
        common = document.get("global options")
        self.fio = {**options_of(common), **options_of(record.get("job options"))}
        self.is_known = common is not None or record.get("job options") is not None
        self.record, self.options, self.taken = record, options, taken
        self.has_options = has_options or record.get("is_whole") is True
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
        members = whole(self.record.get("members"), f"{self.name}: jobs")
        if entries > 1 or members:
            return min(max(members, 1), WORKERS_MAX)
        named = max(int(fio_options.number(self.fio, "numjobs") or 1), 1)
        # The time of all jobs that group_reporting summed up, and that of the group.
        in_all_s = (amount(self.record.get("job_runtime"), f"{self.name}: job_runtime") or 0.0) / 1e3
        found = round(min(in_all_s / self.measured_s, WORKERS_MAX)) if self.measured_s else 0
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
        mean_ns = round((amount(whole_ios.get("mean"), f"{where}: mean") or 0.0) * factor, 6)
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
            return self._not_asked(sides)
        single = self.record.get("iodepth_level")
        alone = amount(single.get("1"), "iodepth_level") if isinstance(single, Mapping) else None
        access = fio_options.access(self.fio)
        unknown: tuple[str, ...] = ()
        if not self.has_options:
            # Of a mix the share is not said, only what came of it.
            done = self._done(sides) if access["read_share"] not in (0.0, 1.0) else None
            access = {"random_share": access["random_share"], "read_share": done or access["read_share"]}
            unknown = _unknown(access)
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
            unknown=unknown,
            others=others,
            read=sides["read"],
            write=sides["write"],
            total=sides["total"],
            flush=sides["flush"],
        )

    def _not_asked(self, found: Mapping[str, Side | None]) -> ImportedJob:
        """The job where the document does not say what was asked: block and mix are those of what was done."""
        self.taken.note(
            f"{self.name}: the file does not say what was asked (fio 2 and terse write no options): its block and mix"
            " are those of what was done, and all else is not known"
        )
        access: AskedAccess = {"block_bytes": self._mean_block(found)}
        done = self._done(found)
        if done is not None:
            access["read_share"] = done
        return ImportedJob(
            label=self.name,
            access=access,
            queue_depth=None,
            workers=min(max(whole(self.record.get("members"), f"{self.name}: jobs"), 1), WORKERS_MAX),
            unknown=_unknown(access),
            read=found["read"],
            write=found["write"],
            total=found["total"],
            flush=found["flush"],
        )

    def _done(self, found: Mapping[str, Side | None]) -> float | None:
        """Share of reads of what was done; None where it is not known."""
        counts = [side.count if side is not None else 0 for side in (found["read"], found["write"])]
        return counts[0] / sum(counts) if sum(counts) else None

    def _mean_block(self, sides: Mapping[str, Side | None]) -> int:
        found = together([sides["total"]]) or together([sides["read"], sides["write"]])
        return max(round(found.bytes_per_s / found.iops), 1) if found is not None and found.iops else 4096


def _unknown(access: AskedAccess) -> tuple[str, ...]:
    return tuple(name for name in NOT_ASKED if name not in access)


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
