"""Results of DiskSpd: the document of `-Rxml` with the profile that was run (`XmlResultParser.cpp`), and its text.

A time span is a point. Its targets are volumes of one workload where they ask for the same, else activities. Latencies
are in milliseconds with three digits, and there only with `-L`; percentiles are those of a time span as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, cast
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Sides
from assay.telemetry.importers.importer import NotTaken, Options, utc_ns
from assay.telemetry.importers.taken import TakenFile
from assay.workloads.imported import (
    ImportedPoint,
    ImportedRun,
    RunImporter,
    Side,
    amount,
    latency_of_statistics,
    together,
    whole,
)
from assay.workloads.io.importers import diskspd_text
from assay.workloads.io.importers.asked import (
    DEPTH_MAX,
    NOT_ASKED,
    WORKERS_MAX,
    AskedAccess,
    ImportedFigures,
    ImportedJob,
    named_sides,
    point_of,
    role_of,
    volume_of,
    words,
)

DEEPEST = 32
ELEMENTS_MAX = 2_000_000
"""Elements of a document: threads, targets and buckets of a run of an hour are some ten thousand."""
TARGETS_MAX = 1000

_TAKEN = {
    "ReadCount, WriteCount, TestTimeSeconds": "IOPS, count, measured_s",
    "ReadBytes, WriteBytes": "throughput",
    "Average...LatencyMilliseconds": "mean latency of each target",
    "Latency": "percentiles and longest latency of a time span",
    "CpuUtilization Average": "telemetry.cpu_share",
}
_IGNORED = {
    "...Stdev, ...StdDev": "points have no such figures",
    "CPU": "the mean of all processors is taken",
    "Bucket of Iops": "series of imported runs have telemetry alone",
    "ProcessorTopology, PowerScheme": "manifests have no such facts",
}

_SAME = words(
    "Path BlockSize Random RandomRatio StrideSize BaseFileOffset MaxFileSize WriteRatio RequestCount ThreadsPerFile"
    " DisableOSCache DisableLocalCache DisableAllCache WriteThrough WriteBufferContent SequentialScan RandomAccess"
    " TemporaryFile UseLargePages FileSize"
)
"""Elements of a target that are understood, or change neither the I/Os nor the load."""
_PLAIN = {
    "InterlockedSequential": "false", "ThreadStride": "0", "Throughput": "0", "IOPriority": "3", "Weight": "1",
    "ParallelAsyncIO": "false", "BurstSize": "0", "ThinkTime": "0",
}  # fmt: skip
"""Elements that change the load unless they have this value."""


class DiskSpd(RunImporter):
    """DiskSpd."""

    name: ClassVar[str] = "diskspd"
    title: ClassVar[str] = "DiskSpd (-Rxml)"

    def recognises(self, head: str) -> bool:
        """A document of results, with or without a declaration before it."""
        begin = re.match(r"\s*(<\?xml[^>]*\?>\s*)?<Results\b", head)
        return begin is not None and re.search(r"<(Profile|System|TimeSpan)\b", head) is not None

    def read(self, text: str, options: Options) -> ImportedRun:
        """Take every time span as a point."""
        root = parsed(text)
        if root.tag != "Results":
            raise NotTaken(f"is another document than DiskSpd's: its root is <{root.tag[:40]}>")
        taken = TakenFile(format=self.name)
        taken.counters.update(_TAKEN)
        taken.ignored.update(_IGNORED)
        version = _text(root, "System/Tool/Version")[:40] or "unknown"
        run = ImportedRun(program="DiskSpd", version=version, taken=taken)
        run.hostname = _text(root, "System/ComputerName")[:200] or None
        profiles = root.findall("Profile/TimeSpans/TimeSpan")
        spans = root.findall("TimeSpan")
        if not spans or len(spans) > len(profiles):
            raise NotTaken("has no results with the profile that they are of; DiskSpd writes both with -Rxml")
        volumes: dict[str, Volume] = {}
        began_ns = _started_ns(_text(root, "System/RunTime"))
        for number, (profile, span) in enumerate(zip(profiles, spans, strict=False), 1):
            label = f"time span {number}"
            run.points += _points(profile, span, label, options, taken, volumes, began_ns if number == 1 else None)
        return _finished(run, volumes)


class DiskSpdText(RunImporter):
    """What DiskSpd prints for people."""

    name: ClassVar[str] = "diskspd_text"
    title: ClassVar[str] = "DiskSpd (its text)"

    def recognises(self, head: str) -> bool:
        """What was asked, or the title of results."""
        return diskspd_text.is_text(head)

    def read(self, text: str, options: Options) -> ImportedRun:
        """Take every time span of every run as a point."""
        taken = TakenFile(format=self.name)
        found = diskspd_text.runs_of(text, taken)
        run = ImportedRun(program="DiskSpd", version="unknown", taken=taken)
        hosts = {one.system.get("computer name", "") for one in found}
        run.hostname = hosts.pop()[:200] or None if len(hosts) == 1 else None
        if not found:
            raise NotTaken("says what DiskSpd was asked and holds no results: it ended before DiskSpd reported")
        if len(found) > 1:
            taken.note(f"holds {len(found)} runs, one after the other")
        volumes: dict[str, Volume] = {}
        for place, one in enumerate(found, 1):
            began_ns = _started_ns(one.system.get("start time", ""))
            for number, span in sorted(one.spans.items()):
                label = f"time span {number}" if len(found) == 1 else f"run {place}, time span {number}"
                begin = began_ns if number == 1 else None
                run.points += _points(one.profiles.get(number), span, label, options, taken, volumes, begin)
        return _finished(run, volumes)


def _points(
    profile: Element | None,
    span: Element,
    label: str,
    options: Options,
    taken: TakenFile,
    volumes: dict[str, Volume],
    began_ns: int | None,
) -> list[ImportedPoint]:
    """The point of a time span; none where it was interrupted. Its volumes are added to those of the run."""
    error = _text(span, "Error")
    if error:
        taken.note(f"{label} is left out: {error[:200]}")
        return []
    point = _Span(profile, span, label, options, taken).point(volumes)
    if began_ns is not None:
        point.figures["started_utc_ns"] = began_ns
    return [point]


def _finished(run: ImportedRun, volumes: Mapping[str, Volume]) -> ImportedRun:
    """The run with its volumes.

    Raises
    ------
    NotTaken
        It has no points.
    """
    taken = run.taken
    if not run.points:
        raise NotTaken(f"has no results{': ' + taken.notes[-1] if taken.notes else ''}")
    taken.note("DiskSpd says when it began, not when it measured, so points have no time of day")
    run.volumes = [{**volume} for volume in volumes.values()]
    return run


class _Bounded(TreeBuilder):
    """Builds a tree within bounds: entities, depth and size are those of a document of DiskSpd."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._count = 0

    def start(self, tag: Any, attrs: Any, /) -> Element:
        self._depth += 1
        self._count += 1
        if self._depth > DEEPEST:
            raise NotTaken("is nested too deeply for a document of DiskSpd")
        if self._count > ELEMENTS_MAX:
            raise NotTaken(f"has more than {ELEMENTS_MAX:,} elements: measure without -D, or in fewer time spans")
        return super().start(tag, attrs)

    def end(self, tag: Any, /) -> Element:
        self._depth -= 1
        return super().end(tag)

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """DiskSpd declares no entities, and what others declare may unfold to any size."""
        raise NotTaken("declares a document type, which DiskSpd does not write")


def parsed(text: str) -> Element:
    """The root of a document.

    Raises
    ------
    NotTaken
        It is damaged, or not within the bounds.
    """
    # Text that was decoded has no other encoding than its own, whatever it declares.
    text = re.sub(r"\A\s*<\?xml[^>]*\?>", "", text)
    parser = XMLParser(target=_Bounded(), encoding="utf-8")
    try:
        parser.feed(text.encode("utf-8", "replace"))
        root = parser.close()
    except ParseError as error:
        line, _ = error.position
        raise NotTaken(f"is damaged or cut off at line {line} ({str(error).partition(':')[0][:60]})") from None
    if not isinstance(root, Element):
        raise NotTaken("holds no document")
    return root


class _Span:
    """A time span: what was asked, and what came of it."""

    def __init__(self, profile: Element | None, span: Element, label: str, options: Options, taken: TakenFile) -> None:
        self.is_known = profile is not None
        self.profile = Element("TimeSpan") if profile is None else profile
        self.span, self.label = span, label
        self.options, self.taken = options, taken
        self.seconds = amount(_text(span, "TestTimeSeconds"), f"{label}: TestTimeSeconds") or 0.0
        if not self.seconds:
            raise NotTaken(f"{label}: does not say how long it took (TestTimeSeconds)")
        self.targets = self.profile.findall("Targets/Target") if self.is_known else self._used()
        paths = [_text(target, "Path") for target in self.targets]
        if not paths or len(paths) > TARGETS_MAX:
            raise NotTaken(f"{label}: names {'no' if not paths else 'more than ' + str(TARGETS_MAX)} targets")
        if len(set(paths)) < len(paths):
            twice = next(path for path in paths if paths.count(path) > 1)
            raise NotTaken(f"{label}: has the target {twice[:80]} twice, whose results cannot be told apart")

    def point(self, volumes: dict[str, Volume]) -> ImportedPoint:
        """The point; its volumes are added to those of the run."""
        asked = [self._asked(target) for target in self.targets]
        measured = [_text(target, "Path") for target in self.targets]
        for path, job in zip(measured, asked, strict=True):
            size = max((whole(_text(one, "FileSize"), "FileSize") for one in self._results(path)), default=0)
            volumes.setdefault(path, volume_of(path, size or None, job.role))
        alike = len({(repr(job.access), repr(job.others), job.queue_depth) for job in asked}) == 1
        sides = [
            named_sides(volume_of(path, None, job.role)["name"], job.role, job.read, job.write, job.all)
            for path, job in zip(measured, asked, strict=True)
        ]
        jobs = self._as_one(asked) if alike else asked
        cpu = amount(_text(self.span, "CpuUtilization/Average/UsagePercent"), "CpuUtilization")
        warmup_s = amount(_text(self.profile, "Warmup"), "Warmup") or 0.0
        figures: ImportedFigures = {
            "started_utc_ns": None,
            "measured_from_utc_ns": None,
            "measured_to_utc_ns": None,
            "warmup_s": warmup_s,
            "measured_s": self.seconds,
            "ended_by": "time",
            "telemetry": {} if cpu is None else {"cpu_share": cpu / 100},
            "volumes": sides if len(sides) > 1 else [],
        }
        point = point_of(jobs, figures, self.label)
        if not point.figures["total"]:
            raise NotTaken(f"{self.label}: no I/O ended")
        self._add_percentiles(cast("ImportedFigures", point.figures))
        return point

    def _as_one(self, asked: list[ImportedJob]) -> list[ImportedJob]:
        """Targets that ask for the same as volumes of one workload."""
        first = asked[0]
        threads = whole(_text(self.profile, "ThreadCount"), "ThreadCount")
        requests = whole(_text(self.profile, "RequestCount"), "RequestCount")
        if threads:
            # Threads shared by all targets, each with the requests of every target outstanding, or so many in all.
            first.workers = min(threads, WORKERS_MAX)
            first.queue_depth = min(requests or (first.queue_depth or 1) * len(asked), DEPTH_MAX)
        else:
            first.workers = min(first.workers * len(asked), WORKERS_MAX)
        first.read, first.write = together([job.read for job in asked]), together([job.write for job in asked])
        return [first]

    def _used(self) -> list[Element]:
        """Targets of a time span whose input parameters are missing: those that threads used."""
        found: dict[str, Element] = {}
        for one in self.span.findall("Thread/Target"):
            found.setdefault(_text(one, "Path"), one)
        return list(found.values())

    def _not_asked(self, path: str, where: str) -> ImportedJob:
        """A target where the text does not say what was asked: block and mix are those of what was done."""
        self.taken.note(
            f"{where}: the text does not say what was asked (Input parameters): block and mix are those of what was"
            " done, and all else is not known"
        )
        read, write = self._side(path, "Read", where), self._side(path, "Write", where)
        both = together([read, write])
        access: AskedAccess = {"role": role_of(path, self.options.roles)}
        if both is not None:
            access["block_bytes"] = max(round(both.bytes_per_s / both.iops), 1)
            access["read_share"] = (read.count if read is not None else 0) / both.count
        return ImportedJob(
            label=path[:80] or self.label,
            access=access,
            queue_depth=None,
            workers=1,
            unknown=tuple(name for name in NOT_ASKED if name not in access),
            read=read,
            write=write,
        )

    def _asked(self, target: Element) -> ImportedJob:
        path = _text(target, "Path")
        where = f"{self.label}: {path[:60]}"
        if not self.is_known:
            return self._not_asked(path, where)
        written = min(amount(_text(target, "WriteRatio"), f"{where}: WriteRatio") or 0.0, 100.0)
        block = whole(_text(target, "BlockSize"), f"{where}: BlockSize") or 65536
        random = whole(_text(target, "Random"), f"{where}: Random")
        ratio = amount(_text(target, "RandomRatio"), f"{where}: RandomRatio")
        stride = whole(_text(target, "StrideSize"), f"{where}: StrideSize")
        access: AskedAccess = {
            "block_bytes": block,
            "read_share": 1 - written / 100,
            "random_share": 0.0 if not random else 1.0 if ratio is None else min(ratio, 100.0) / 100,
            "io_mode": "direct" if _is_on(target, "DisableOSCache", "DisableAllCache") else "buffered",
            "role": role_of(path, self.options.roles),
        }
        if random or (stride and stride != block):
            access["align_bytes" if random else "stride_bytes"] = random or stride
        unknown = self._region(target, path, access)
        if written:
            if _is_on(target, "WriteThrough", "DisableAllCache"):
                access["sync"] = "dsync"
            if _text(target, "WriteBufferContent/Pattern") in ("sequential", "zero"):
                # Every block written is the same.
                access |= {"compressible_share": 1.0, "duplicate_share": 1.0}
        others = _others(target)
        if others:
            names = ", ".join(f"{name} {value}"[:60] for name, value in others.items())
            self.taken.note(f"{where}: what points have no key for is kept as other_options: {names}")
        return ImportedJob(
            label=path[:80] or self.label,
            access=access,
            queue_depth=min(max(whole(_text(target, "RequestCount"), f"{where}: RequestCount"), 1), DEPTH_MAX),
            workers=min(max(whole(_text(target, "ThreadsPerFile"), f"{where}: ThreadsPerFile"), 1), WORKERS_MAX),
            unknown=unknown,
            others=others,
            read=self._side(path, "Read", where),
            write=self._side(path, "Write", where),
        )

    def _region(self, target: Element, path: str, access: AskedAccess) -> tuple[str, ...]:
        """Which part of the file was used; unknown where its size is not told."""
        base = whole(_text(target, "BaseFileOffset"), "BaseFileOffset")
        end = whole(_text(target, "MaxFileSize"), "MaxFileSize")
        if not base and not end:
            return ()
        size = max((whole(_text(one, "FileSize"), "FileSize") for one in self._results(path)), default=0)
        if not size or base >= (end or size):
            return ("region",)
        access["region"] = (min(base / size, 1.0), min((end or size) / size, 1.0))
        if access["region"][0] < access["region"][1]:
            return ()
        del access["region"]
        return ("region",)

    def _results(self, path: str) -> list[Element]:
        """What each thread did to a target."""
        return [one for one in self.span.findall("Thread/Target") if _text(one, "Path") == path]

    def _side(self, path: str, direction: str, where: str) -> Side | None:
        count = moved = 0
        weighted, timed = 0.0, True
        for one in self._results(path):
            ios = whole(_text(one, f"{direction}Count"), f"{where}: {direction}Count")
            moved += whole(_text(one, f"{direction}Bytes"), f"{where}: {direction}Bytes")
            # Earlier versions wrote AverageLatencyMilliseconds for writes too.
            mean = amount(_text(one, f"Average{direction}LatencyMilliseconds"), f"{where}: latency")
            timed &= mean is not None or not ios
            weighted += (mean or 0.0) * ios
            count += ios
        if not count:
            return None
        mean_ns = weighted / count * 1e6 if timed else None
        if mean_ns is None:
            self.taken.note(f"{where}: DiskSpd measured no latency (-L does)")
        return Side(
            count=count,
            iops=count / self.seconds,
            bytes_per_s=moved / self.seconds,
            latency_ns=latency_of_statistics(mean_ns, None, {}, None),
        )

    def _add_percentiles(self, figures: ImportedFigures) -> None:
        """Percentiles and the longest latency of the time span as a whole."""
        table = self.span.find("Latency")
        if table is None:
            return
        roles = [*figures["roles"].values()]
        alone: Sides = roles[0] if len(roles) == 1 else {}
        for name, side, of_role in (
            ("Read", figures["read"], alone.get("read")),
            ("Write", figures["write"], alone.get("write")),
            ("Total", figures["total"], alone.get("total")),
        ):
            if side is None:
                continue
            where = f"{self.label}: Latency {name}"
            mean = amount(_text(table, f"Average{name}Milliseconds"), where)
            values = dict(_buckets(table, f"{name}Milliseconds", where))
            most = values.pop(100.0, None)
            mean_ns = mean * 1e6 if mean is not None else side["latency_ns"].get("mean")
            side["latency_ns"] = latency_of_statistics(mean_ns, most, values, None)
            if of_role:
                of_role["latency_ns"] = side["latency_ns"]


def _buckets(table: Element, name: str, where: str) -> Iterable[tuple[float, float]]:
    for bucket in table.findall("Bucket"):
        percent, value = amount(_text(bucket, "Percentile"), where), amount(_text(bucket, name), where)
        if percent is not None and value is not None:
            yield round(percent, 7), value * 1e6


def _others(target: Element) -> dict[str, str]:
    """Elements that change the load in a way that no key of a point has."""
    found: dict[str, str] = {}
    for one in target:
        if one.tag in _SAME:
            continue
        value = (one.text or "").strip()
        if value == _PLAIN.get(one.tag):
            continue
        unit: Mapping[str, str] = one.attrib
        shown = value or ", ".join(" ".join((child.text or "").split()) for child in one.iter() if child is not one)
        found[str(one.tag)[:80]] = f"{shown} {unit.get('unit', '')}".strip()[:200] or "set"
    return found


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _is_on(target: Element, *names: str) -> bool:
    return any(_text(target, name).lower() == "true" for name in names)


def _started_ns(text: str) -> int | None:
    match = re.match(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) (UTC|GMT)", text, re.ASCII)
    try:
        return utc_ns(datetime.strptime(match[1], "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)) if match else None
    except ValueError:
        return None
