"""Job files of fio as plans (fio, HOWTO, "Job file format"; `init.c`, `__parse_jobs_ini`).

Jobs run at once, as activities of one plan; one with `stonewall`, or that waits for another, begins a plan that comes
after. What fio does where a job says nothing is its documented default, and is asked for here as well: buffered I/O,
one outstanding. Nothing of a job file is executed, included or expanded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, cast

from assay.base.errors import UsageError
from assay.base.reading import validated
from assay.base.units import format_duration
from assay.workloads.io.activities import DEEPEST_QUEUE, IoActivity
from assay.workloads.io.foreign.asked import AskedElsewhere, is_of_windows, left_out, names_of, part_names, together
from assay.workloads.io.importers import fio_options
from assay.workloads.io.importers.asked import AskedAccess, words
from assay.workloads.io.plan import load_plan

JOBS_MAX = 1000
LINES_MAX = 100_000
FILES_MAX = 256
WORKERS_MAX = 1024
RANGE_SIZES_MAX = 64
"""Sizes of a range of blocks that a plan takes as a mix."""

_SECTION = re.compile(r"\s*\[(.{1,255})\]\s*$")
_KNOWN_BY = re.compile(
    r"^[ \t]*(rw|readwrite|ioengine|bs|blocksize|iodepth|filename)[ \t]*=[ \t]*[^\s\"'\[{]", re.MULTILINE
)
_SECTIONS = re.compile(r"^[ \t]*\[[^\[\]\n]{1,255}\][ \t]*\r?$", re.MULTILINE)

_TIMES = words("runtime ramp_time time_based startdelay")
_BOUNDS = words("startdelay loops io_size fill_device")
_ASKED = words("size filesize runtime ramp_time")
"""Options without effect on which I/Os are asked for that plans have all the same."""
_USED = words(
    "filename directory size filesize numjobs iodepth rate_iops rate_process stonewall wait_for_previous wait_for"
    " ioengine bsrange name description kb_base"
)
_REASONS = {
    "exec_prerun": "no command of a job file is executed", "exec_postrun": "no command of a job file is executed",
    "verify": "assay verify proves what is written", "startdelay": "jobs of a plan begin together",
    "io_size": "points end by time", "loops": "points end by time", "offset": "say --region",
    "offset_increment": "say --region", "number_ios": "points end by time", "fill_device": "points end by time",
    "sync": "O_DSYNC is taken instead", "random_distribution": "offsets are uniform instead",
    "rw": "each I/O is drawn anew", "rate": "throughput is no load of plans; say rate_iops",
    "read_iolog": "assay replay runs traces again",
}  # fmt: skip
_NO_KEY = "no key of a plan has it"
_DEVICES = frozenset(
    {"libaio", "io_uring", "posixaio", "windowsaio", "solarisaio", "sg", "io_uring_cmd", *fio_options.SYNCHRONOUS}
)

Options = Mapping[str, str]


class _Load(TypedDict, total=False):
    """Keys of `IoActivity` that say how hard is asked."""

    workers: int
    queue_depth: int
    outstanding: int
    rate: float
    arrivals: str


class _Asked(AskedAccess, _Load, total=False):
    """Keys of `IoActivity` that a job tells of."""

    name: str
    volume: str


@dataclass(frozen=True, kw_only=True)
class _Section:
    """A job with the options that the sections `[global]` before it give it."""

    name: str
    options: dict[str, str]

    @property
    def where(self) -> str:
        return f"job {self.name}"


def is_job_file(text: str) -> bool:
    """Whether a text is a job file: sections, and options of fio without quotation marks, which no TOML has."""
    return _SECTIONS.search(text) is not None and _KNOWN_BY.search(text) is not None


def job_file(text: str, source: str, *, has_target: bool) -> AskedElsewhere:
    """The plans of a job file.

    Raises
    ------
    UsageError
        It is damaged, or has no job that reads or writes files or devices.
    """
    lines: list[str] = []
    found = _sections(text, source)
    for job in found:
        _refuse_variables(job, source, has_target=has_target)
    jobs = [job for job in found if _is_taken(job, lines)]
    if not jobs:
        why = f": {lines[0].partition(': ')[2]}" if lines else ""
        raise UsageError(f"{source}: has no job that can be measured here{why}")
    stages = _stages(jobs, lines)
    paths = [] if has_target else _paths(jobs, source)
    names = names_of(paths)
    plans = []
    titles = part_names("+".join(job.name for job in stage) for stage in stages)
    for title, stage in zip(titles, stages, strict=True):
        activities = [one for job in stage for one in _activities(job, names, lines)]
        given = [one["name"] for one in activities]
        for number, one in enumerate(activities, 1):
            one["name"] = one["name"] if given.count(one["name"]) == 1 else f"{one['name'][:60]} {number}"
        table = {"name": title, "title": f"fio: {', '.join(job.name for job in stage)}"[:200], "activity": activities}
        sizes = [size for job in stage if (size := _size(job, lines)) is not None]
        if sizes:
            table["size"] = str(max(sizes))
        plans.append(load_plan(table | {"timing": _timing(stage, lines)}, source=source))
    if any(plan.size for plan in plans) and any(map(os.path.exists, paths)):
        lines.append("size: is that of new files; files and devices that exist are used whole, say --region")
    if has_target and any("filename" in job.options for job in jobs):
        lines.append("filename: left out, a target is named")
    harmless = sorted(
        {name for job in jobs for name in job.options if name in fio_options.HARMLESS - (_USED | _TIMES | _BOUNDS)}
    )
    if harmless:
        lines.append(f"without effect on which I/Os are asked for: {', '.join(harmless)}")
    return AskedElsewhere(plans=plans, paths=paths, lines=together(lines))


def _sections(text: str, source: str) -> list[_Section]:
    """Jobs in the order of the file; what stands in `[global]` is of all jobs after it."""
    common: dict[str, str] = {}
    found: list[_Section] = []
    options: dict[str, str] | None = None
    lines = text.removeprefix("\ufeff").splitlines()
    if len(lines) > LINES_MAX:
        raise UsageError(f"{source}: has more than {LINES_MAX:,} lines, which no job file has")
    for number, line in enumerate(lines, 1):
        # fio ends a line at either mark, wherever it stands.
        shown = re.split("[;#]", line, maxsplit=1)[0].strip()
        section = _SECTION.match(shown)
        if not shown:
            continue
        if section is not None:
            if section[1].startswith("global"):
                options = common
            else:
                options = dict(common)
                found.append(_Section(name=section[1].strip()[:80], options=options))
            if len(found) > JOBS_MAX:
                raise UsageError(f"{source}: has more than {JOBS_MAX:,} jobs")
            continue
        if options is None:
            raise UsageError(f"{source}, line {number}: {shown[:60]!r} stands before any [section]")
        name, _, value = shown.partition("=")
        name = fio_options.ALIASES.get(name.strip().lower(), name.strip().lower())
        if name.startswith("include "):
            raise UsageError(f"{source}, line {number}: includes another file; put its lines here instead")
        options.pop({"rwmixread": "rwmixwrite", "rwmixwrite": "rwmixread"}.get(name, ""), None)
        options[name] = value.strip().strip('"')[:4096]
    return found


def _is_taken(job: _Section, lines: list[str]) -> bool:
    """Whether a job can be measured; a line says why not."""
    engine = job.options.get("ioengine", "").partition(":")[0]
    pattern = fio_options.pattern(job.options)
    if "trim" in pattern:
        lines.append(f"{job.where}: left out, plans have no trims")
    elif pattern not in ("read", "write", "rw", "readwrite", "randread", "randwrite", "randrw"):
        lines.append(f"{job.where}: left out, rw={pattern[:40]} is no pattern of fio")
    elif engine and engine not in _DEVICES and engine != "null":
        lines.append(f"{job.where}: left out, ioengine={engine[:40]} is neither of files nor of devices")
    elif _blocks(job.options) is None:
        lines.append(f"{job.where}: left out, its blocks are not understood")
    else:
        return True
    return False


def _refuse_variables(job: _Section, source: str, *, has_target: bool) -> None:
    """Refuse variables of the environment where they say which I/Os are asked for: what they hold is not the file's.

    Raises
    ------
    UsageError
        There is one.
    """
    for name, value in job.options.items():
        of_file = name in ("filename", "directory")
        if "${" in value and (not has_target if of_file else name not in fio_options.HARMLESS or name in _ASKED):
            raise UsageError(f"{source}: {job.where}: {name}={value[:60]} has a variable; write its value instead")


def _stages(jobs: Sequence[_Section], lines: list[str]) -> list[list[_Section]]:
    """Jobs that run at once, one list after the other."""
    stages: list[list[_Section]] = []
    place: dict[str, int] = {}
    for job in jobs:
        awaited = place.get(job.options.get("wait_for", ""))
        walls = any(fio_options.flag(job.options, name) for name in ("stonewall", "wait_for_previous"))
        if not stages or walls or (awaited is not None and awaited == len(stages) - 1):
            stages.append([])
            if awaited is not None:
                lines.append(f"{job.where}: wait_for={job.options['wait_for'][:60]}: comes after all jobs before it")
        stages[-1].append(job)
        place[job.name] = len(stages) - 1
    return stages


def _files(job: _Section) -> list[str]:
    folder = job.options.get("directory", "").rstrip("/")
    names = [one.replace("\\:", ":") for one in re.split(r"(?<!\\):", job.options.get("filename", "")) if one]
    return [name if not folder or name.startswith("/") else f"{folder}/{name}" for name in dict.fromkeys(names)]


def _paths(jobs: Sequence[_Section], source: str) -> list[str]:
    """Files and devices of all jobs.

    Raises
    ------
    UsageError
        A job names none, or one of Windows.
    """
    found: dict[str, None] = {}
    for job in jobs:
        files = _files(job)
        if not files:
            raise UsageError(f"{source}: {job.where} names no file (filename=); give the target: PATH")
        found |= dict.fromkeys(files)
    foreign = next((path for path in found if is_of_windows(path)), None)
    if foreign is not None:
        raise UsageError(f"{source}: {foreign[:80]} is a path of Windows; give the target: PATH")
    if len(found) > FILES_MAX:
        raise UsageError(f"{source}: names more than {FILES_MAX} files; give the target: PATH")
    return list(found)


def _activities(job: _Section, names: Mapping[str, str], lines: list[str]) -> list[_Asked]:
    """A job as activities: one, or one for each of its files where other jobs have others."""
    options = job.options
    access = cast("_Asked", {"name": job.name, **fio_options.access(options)})
    blocks = _blocks(options)
    if blocks is not None:
        access["block_bytes"] = blocks
    workers = min(max(int(fio_options.number(options, "numjobs") or 1), 1), WORKERS_MAX)
    # Without an engine fio takes psync, which has one I/O outstanding.
    depth = min(fio_options.queue_depth(options, 1.0), DEEPEST_QUEUE)
    loads: _Load = {"workers": workers, "queue_depth": depth}
    rate = fio_options.number(options, "rate_iops")
    if rate:
        arrivals = "poisson" if options.get("rate_process") == "poisson" else "constant"
        loads |= {"rate": rate * workers, "arrivals": arrivals}
    files = [] if not names else _files(job)
    lines += _lines(job, access, loads)
    if len(files) == len(names) > 1:
        # fio's outstanding I/Os are of a job, over all of its files.
        total = max(depth * workers, workers * len(files))
        load: _Load = loads if rate else {"workers": workers, "outstanding": total}
        return [{**access, **load}]
    if len(files) > 1:
        loads["queue_depth"] = max(-(-depth // len(files)), 1)
        if rate:
            loads["rate"] = rate * workers / len(files)
        return [{**access, **loads, "name": f"{job.name} {names[path]}", "volume": names[path]} for path in files]
    if files and len(names) > 1:
        access["volume"] = names[files[0]]
    return [{**access, **loads}]


def _lines(job: _Section, access: _Asked, loads: _Load) -> list[str]:
    """What was taken of a job, and what was not."""
    options = job.options
    asked = validated(IoActivity, {**access, **loads}, job.where)
    rate = f", {asked.rate:g} I/Os per second, latency from their intended start" if asked.rate else ""
    found = [f"{job.where}: {asked.describe()}, queue depth {asked.depth}{rate}"]
    if fio_options.number(options, "iodepth") not in (None, loads["queue_depth"]):
        engine = options.get("ioengine", "")
        one = engine or "psync, the engine without one,"
        found.append(f"{job.where}: iodepth={options['iodepth'][:20]}: {one} has one outstanding at a time")
    if isinstance(access["block_bytes"], dict):
        found.append(f"{job.where}: blocks of several sizes are drawn for reads and writes alike")
    others = {name: value for name, value in fio_options.others(options).items() if name not in _USED | _TIMES}
    others.pop("bs", None)
    if options.get("rate_iops") and "rate" not in loads:
        others["rate_iops"] = options["rate_iops"]
    for name, value in others.items():
        found += left_out(job.where, {name: value}, f"left out, {_REASONS.get(name, _NO_KEY)}")
    for name in sorted(_BOUNDS):
        if name in options:
            found += left_out(job.where, {name: options[name]}, f"left out, {_REASONS[name]}")
    return found


def _blocks(options: Options) -> int | dict[str, float] | None:
    return fio_options.block_bytes(options) or _range(options) or None


def _range(options: Options) -> int | dict[str, float] | None:
    """A range of blocks as a mix: fio draws multiples of the smallest, each as often (`io_u.c`, `get_next_buflen`).

    Examples
    --------
    >>> _range({"bsrange": "4k-16k"}), _range({"bsrange": "4k-64m"})
    ({'4096': 1.0, '8192': 1.0, '12288': 1.0, '16384': 1.0}, None)
    """
    low, _, high = options.get("bsrange", "").partition(",")[0].partition("-")
    least, most = fio_options.size_bytes(low, options), fio_options.size_bytes(high, options)
    if not least or most is None or not 0 <= most // least - 1 < RANGE_SIZES_MAX or most % least:
        return None
    return least if least == most else {str(size): 1.0 for size in range(least, most + 1, least)}


def _size(job: _Section, lines: list[str]) -> int | None:
    """Size of new files."""
    text = job.options.get("filesize") or job.options.get("size") or ""
    size = fio_options.size_bytes(text, job.options)
    if text and not size:
        lines.append(f"{job.where}: size={text[:40]}: left out, it is no plain size; say --size")
    return size or None


def _timing(stage: Sequence[_Section], lines: list[str]) -> dict[str, float]:
    """Duration of a stage: that of its longest job, after the longest ramp."""
    runtimes = [fio_options.seconds(job.options, "runtime") for job in stage]
    ramps = [fio_options.seconds(job.options, "ramp_time") for job in stage]
    shown = "+".join(job.name for job in stage)[:80]
    timing = {"warmup_s": max(ramps)}
    if max(runtimes):
        timing["duration_s"] = max(runtimes)
        if not any(fio_options.flag(job.options, "time_based") for job in stage):
            lines.append(f"job {shown}: lasts its runtime, though fio ends before where all of `size` is done")
    else:
        lines.append(f"job {shown}: has no runtime; fio ends when `size` is done, a point when it is steady")
    for name, values in (("runtime", runtimes), ("ramp_time", ramps)):
        if len(set(values)) > 1:
            lines.append(f"job {shown}: {name} of jobs at once is the longest, {format_duration(max(values))}")
    return timing
