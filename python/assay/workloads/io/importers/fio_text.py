"""fio's normal text, and lines of terse output, as the document that its JSON is (`stat.c`; fio 2.0 to 3.42).

The text has a line of what was asked for each job: pattern, blocks, engine and depth, and no other option. Its rates
and amounts are rounded to four digits; counts and times are whole, and figures come from those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate
from typing import NamedTuple

from assay.telemetry.importers.importer import Options
from assay.telemetry.importers.taken import TakenFile
from assay.telemetry.importers.zones import zone_assumed
from assay.workloads.imported import amount, whole
from assay.workloads.io.importers import fio_terse
from assay.workloads.io.importers.fio_command import Commands
from assay.workloads.io.importers.fio_document import ALL_CLIENTS, jobs_of, without_repeats
from assay.workloads.io.importers.fio_options import Record

LETTERS_MAX = 8000
"""Of a line; terse output with many disks has some thousand."""
MESSAGES_MAX = 5
HOSTS_MAX = 1000

Figures = dict[str, object]
"""A part of the document."""

_ASKED = re.compile(
    r": \(g=(?P<group>\d{1,9})\): rw=(?P<rw>\w{1,20}), bs(?P<bs>[^=]{0,20}=.{1,200}?),"
    r" ioengine=(?P<engine>[\w.:/-]{1,80}), iodepth=(?P<depth>\d{1,9})",
    re.ASCII,
)
_RAN = re.compile(
    r": \(groupid=(?P<group>\d{1,9}), jobs=(?P<jobs>\d{1,9})\): err=\s{0,9}(?P<error>\d{1,9})(?: \(.{0,200}?\))?:"
    r" pid=(?P<pid>\d{1,12})(?:: (?P<when>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}))?",
    re.ASCII,
)
_AMOUNT = r"(\d{1,20}(?:\.\d{1,9})?)((?:[kKMGTPE]i?)?)\s{0,3}"
_SIDE = re.compile(
    rf"(read|write|trim|mixed)\s{{0,9}}: IOPS={_AMOUNT}, BW={_AMOUNT}(B|bit)?(?:/s)? \([^()]{{0,30}}\)"
    rf"\({_AMOUNT}B?/(\d{{1,18}})msec\)",
    re.ASCII,
)
_OLD_SIDE = re.compile(
    rf"(read|write|trim|mixed)\s{{0,9}}: io={_AMOUNT}B?, bw={_AMOUNT}(B|b|bit)?/s,"
    rf" iops={_AMOUNT}\s{{0,9}}, runt=\s{{0,20}}(\d{{1,18}})msec",
    re.ASCII,
)
_TIMES = re.compile(
    rf"(slat|clat|lat|sync) \(([num]sec)\)\s{{0,9}}: min=\s{{0,20}}{_AMOUNT}, max=\s{{0,20}}{_AMOUNT},"
    rf" avg=\s{{0,20}}{_AMOUNT}, stdev=\s{{0,20}}{_AMOUNT}",
    re.ASCII,
)
_PERCENTILES = re.compile(r"(slat|clat|lat|sync) percentiles \(([num]sec)\):", re.ASCII)
_PERCENTILE = re.compile(r"(\d{1,3}\.\d{1,9})th=\[\s{0,20}(\d{1,18})\]", re.ASCII)
_CPU = re.compile(r"cpu\s{0,20}: usr=(\d{1,9}\.\d{1,9})%, sys=(\d{1,9}\.\d{1,9})%", re.ASCII)
_ALONE = re.compile(r"IO depths\s{0,9}: 1=(\d{1,9}\.\d{1,9})%", re.ASCII)
_ISSUED = re.compile(
    r"issued\b[^:]{0,12}: total=(.{1,200}?),? short=(.{1,200}?)(?:,? drop(?:ped)?=(.{1,200}))?$", re.ASCII
)
_ERRORS = re.compile(r"errors\s{0,9}: total=(\d{1,18}), first_error=(\d{1,9})/", re.ASCII)
_VERSION = re.compile(r"(?:fio-|fio |hostname=.{1,300}, fio=fio-)?(\d{1,3}\.\d[\w.+-]{0,60})(?:$|, flags=)", re.ASCII)
_HOST = re.compile(r"<([^<>\s]{1,200})>\s?")
_SUMS = re.compile(r"(READ|WRITE|TRIM|MIXED): (bw|io)=|Run status group \d|Disk stats \(|\S{1,200}: ios=\d", re.ASCII)
_PROGRESS = re.compile(r"Jobs: \d|Starting \d|\.\.\.$|.{0,200}: Laying out IO file", re.ASCII)

_FIGURE = re.compile(r"(?<!>)=\s{0,20}\[?\s{0,20}\d", re.ASCII)
_UNIT_NS = {"nsec": 1.0, "usec": 1e3, "msec": 1e6}
_LETTERS = " kMGTPE"
_SPREAD = "spread of fio's own samples, of which the text has no more"
_LEFT_OUT = (
    (re.compile(r"bw \("), "bw", _SPREAD),
    (re.compile(r"iops\s{0,12}:"), "iops", _SPREAD),
    (re.compile(r"lat \([num]sec\)\s{0,9}: [\d>]"), "lat shares", "shares of wide ranges; percentiles say more"),
    (re.compile(r"(slat|clat|lat) prio "), "latency of a priority", "points have no priorities"),
    (re.compile(r"submit\s{0,9}:"), "submit", "points have no such figures"),
    (re.compile(r"complete\s{0,9}:"), "complete", "points have no such figures"),
    (re.compile(r"latency\s{0,9}: target="), "latency target", "points have no such figures"),
    (re.compile(r"fsync/fdatasync"), "fsync/fdatasync/sync_file_range", "a title"),
    (re.compile(r"Description\s{0,9}:"), "Description", "points have no such figures"),
    (re.compile(r"steadystate\s{0,9}:|ss\s{0,9}:"), "steadystate", "the text has no window of it"),
    (re.compile(r"block lifetime percentiles|states\s{0,30}:|\|"), "block lifetimes", "points have no such figures"),
)  # fmt: skip


class Scaled(NamedTuple):
    """A number as fio rounds it (`num2str`), and what its last digit is worth."""

    value: float
    step: float


def scaled(digits: str, letters: str, *, binary: bool = False) -> Scaled:
    """A number with a letter for thousands; `Ki` always stands for 1,024.

    Examples
    --------
    >>> scaled("12.5", "k"), scaled("1392", "Mi").value, scaled("3072.0", "M", binary=True).value
    (Scaled(value=12500.0, step=100.0), 1459617792.0, 3221225472.0)
    """
    base = 1024 if binary or letters.endswith("i") else 1000
    factor = float(base ** _LETTERS.index((letters[:1] or " ").replace("K", "k")))
    # A decimal number times a thousand is not always whole as a float, and fio's is.
    return Scaled(round(float(digits) * factor, 6), factor / 10 ** len(digits.partition(".")[2]))


def is_text(head: str) -> bool:
    """Whether a text has lines of what a job asked for, of what it did, or of terse output."""
    if any(mark in head for mark in ("): err=", "): rw=")):
        return _ASKED.search(head) is not None or _RAN.search(head) is not None
    return fio_terse.is_terse(head)


def documents_of(text: str, options: Options, taken: TakenFile) -> list[Mapping[str, object]]:
    """Every run of a text as a document; of several that --status-interval wrote of one run the last."""
    reader = _Text(options, taken)
    for line in text.splitlines():
        reader.line(line[:LETTERS_MAX])
    if len(reader.hosts) == 1:
        for job in [job for run in reader.runs for job in run.jobs]:
            job["hostname"] = next(iter(reader.hosts))
    elif reader.hosts:
        taken.note(f"is of several hosts, whose jobs alike are workers of one workload: {', '.join(reader.hosts)}")
    found = without_repeats([one.document(taken) for one in reader.runs if one.jobs], taken)
    for name in _several([job for run in found for job in jobs_of(run) if job["pid"] is None]):
        taken.note(
            f"{name}: has several lines of terse output, which does not say whether they ran one after the other or at"
            " once (numjobs without group_reporting); each is a point"
        )
    return found


def _several(jobs: list[Record]) -> list[str]:
    counts = Counter(str(job["jobname"]) for job in jobs)
    return [name for name, count in counts.items() if count > 1]


class _Run:
    """Jobs of one report, with the lines of what was asked."""

    def __init__(self, asked: dict[int, dict[str, Figures]], version: str) -> None:
        self.asked, self.version = asked, version
        self.is_whole: set[tuple[int, str]] = set()
        """Groups and names of jobs whose command says every option."""
        self.jobs: list[Figures] = []
        self.ends: list[Callable[[Figures | None], None]] = []
        """What puts the figures of each job together, once it is known what it asked for."""
        self.written_ms: int | None = None
        self.is_summed_up = False

    def document(self, taken: TakenFile) -> dict[str, object]:
        """The run as fio's JSON has it."""
        for job, end in zip(self.jobs, self.ends, strict=True):
            job["job options"] = asked = self._options(job, taken)
            job["is_whole"] = asked is not None and (job["groupid"], job["jobname"]) in self.is_whole
            end(asked)
        hosts = [job for job in self.jobs if job["jobname"] != ALL_CLIENTS]
        return {"fio version": self.version, "timestamp_ms": self.written_ms, "jobs": hosts or self.jobs}

    def _options(self, job: Figures, taken: TakenFile) -> Figures | None:
        """What a job asked for; None where the text does not say it."""
        asked = self.asked.get(whole(job["groupid"], "groupid"), {})
        own = asked.get(str(job["jobname"])) or (next(iter(asked.values())) if len(asked) == 1 else None)
        if job["jobname"] == ALL_CLIENTS or own is None:
            return None
        reported = {other["jobname"] for other in self.jobs}
        if whole(job.get("members"), "jobs") > 1 and any(
            other != own for name, other in asked.items() if name not in reported
        ):
            taken.note(
                f"{job['jobname']}: sums up jobs that asked for different things (group_reporting), so it is not known"
                " what of it each did"
            )
            return None
        return own


class _Text:
    """A text, read line by line."""

    def __init__(self, options: Options, taken: TakenFile) -> None:
        self.options, self.taken = options, taken
        self.runs = [_Run({}, "unknown")]
        self.hosts: dict[str, None] = {}
        """Hosts of client and server mode."""
        self._first = 0
        """The first run since a sum of all hosts in terse output."""
        self._job: _Report | None = None
        self._commands = Commands()
        self._messages = 0

    def line(self, line: str) -> None:
        """The next line."""
        shown = re.sub(r"^(?:>\s?)+", "", line).strip()
        host = _HOST.match(shown)
        if host is not None and (host[1] in self.hosts or _ASKED.search(shown)) and len(self.hosts) < HOSTS_MAX:
            self.hosts.setdefault(host[1])
            shown = shown[host.end() :]
        ran, asked = _RAN.search(shown), _ASKED.search(shown)
        version = _VERSION.match(shown)
        if ran is not None:
            self._begin(shown[: ran.start()].strip(), ran)
        elif asked is not None:
            self._asked(shown[: asked.start()].strip(), asked)
        elif (terse := fio_terse.job_of(shown, self.taken)) is not None:
            self._terse(*terse)
        elif version is not None:
            self._job = None
            self.runs[-1].version = version[1]
        elif _SUMS.match(shown):
            self._job = None
            self.runs[-1].is_summed_up = self.runs[-1].is_summed_up or shown.startswith("Run status")
            self.taken.ignore(
                "Run status group, Disk stats", "sums of all jobs of a group, and of disks", len(_FIGURE.findall(shown))
            )
        elif self._job is None and self._commands.line(shown):
            self.taken.take("fio's command", "workload, load, volumes", 0)
        elif shown.startswith("fio: "):
            self._message(shown)
        elif shown and not _PROGRESS.match(shown) and (self._job is None or not self._job.figure(shown)):
            self._other(shown)

    def _other(self, shown: str) -> None:
        if self._job is not None and _FIGURE.search(shown):
            self.taken.not_understood(" ".join(shown.split()[:2])[:40], shown, len(_FIGURE.findall(shown)))
        else:
            self.taken.ignore("lines of others", f"are no figures of fio, as: {shown[:60]}")

    def _message(self, shown: str) -> None:
        self._messages += 1
        if self._messages <= MESSAGES_MAX:
            self.taken.note(f"fio says: {shown[:200]}")

    def _asked(self, name: str, asked: re.Match[str]) -> None:
        """A line of what was asked: of a new run where the one before has reported."""
        self._job = None
        if self.runs[-1].jobs:
            self.runs.append(_Run({}, self.runs[-1].version))
        figures: Figures = {"rw": asked["rw"], "ioengine": asked["engine"], "iodepth": asked["depth"]}
        figures |= _blocks(asked["bs"], str(asked["rw"]))
        command = self._commands.of(name[-200:], figures)
        if command is not None:
            self.runs[-1].is_whole.add((int(asked["group"]), name[-200:]))
            figures = {**command}
        self.runs[-1].asked.setdefault(int(asked["group"]), {})[name[-200:]] = figures
        self.taken.take("g, rw, bs, ioengine, iodepth", "workload, load", 5)

    def _begin(self, name: str, ran: re.Match[str]) -> None:
        """The report of a job."""
        job: Figures = {
            "jobname": name[-200:], "groupid": int(ran["group"]), "pid": int(ran["pid"]), "members": int(ran["jobs"]),
            "error": int(ran["error"]), "job options": None,
        }  # fmt: skip
        self.taken.take("groupid, jobs, err", "points, workers, errors", 3)
        self.taken.ignore("pid", "points have no such figures", 1)
        report = _Report(job, self.taken)
        run = self._add(job, report.close)
        self._job = report
        run.written_ms = self._written_ms(ran["when"])

    def _terse(self, version: str, job: Figures) -> None:
        """A line of terse output, which is the whole report of a job."""
        if job.pop("both", None) is not None:
            self.taken.ignore("mixed", "reads and writes say more")

        def end(asked: Figures | None) -> None:
            blocks = {name: _block_of((asked or {}).get("bs"), place) for place, name in enumerate(("read", "write"))}
            fio_terse.count_ios(job, {name: block for name, block in blocks.items() if block}, self.taken)

        run = self._add(job, end)
        run.version = version if run.version == "unknown" else run.version

    def _add(self, job: Figures, end: Callable[[Figures | None], None]) -> _Run:
        """Begin the report of a job, of a new run where it has reported before or all have."""
        self._job = None
        run = self.runs[-1]
        key = [job[name] for name in ("jobname", "groupid", "pid")]
        again = any([other[name] for name in ("jobname", "groupid", "pid")] == key for other in run.jobs)
        if job["jobname"] == ALL_CLIENTS and run.jobs and not again:
            self.taken.ignore(ALL_CLIENTS, "the sum of all hosts, of which each is taken")
            if job["pid"] is None:
                self._join(self._first)
        elif run.jobs and not self.hosts and (again or run.is_summed_up):
            run = _Run(run.asked, run.version)
            self.runs.append(run)
        self.runs[-1].jobs.append(job)
        self.runs[-1].ends.append(end)
        return self.runs[-1]

    def _join(self, first: int) -> None:
        """Take terse lines of several hosts, which their sum follows, as one run."""
        for run in self.runs[first + 1 :]:
            self.runs[first].jobs += run.jobs
            self.runs[first].ends += run.ends
        del self.runs[first + 1 :]
        self.runs[first].is_summed_up = True
        self._first = first + 1

    def _written_ms(self, text: str | None) -> int | None:
        """When a report was written, by the local clock."""
        found = parsedate(text or "")
        try:
            at = datetime(*found[:6]) if found is not None else None
        except ValueError:
            at = None
        if at is None or at.year < 1971:
            return None
        return round(at.replace(tzinfo=zone_assumed(self.options, self.taken)).timestamp() * 1000)


def _blocks(text: str, rw: str) -> Figures:
    """The option `bs` of what the line of a job says: sizes of reads, writes and trims, each a range."""
    kind, _, ranges = text.partition("=")
    sizes = [
        tuple(round(scaled(digits, letters.rstrip("B"), binary="(R)" not in text).value) for digits, letters in pair)
        for one in re.split(r"[,/]", ranges)
        if len(pair := re.findall(r"(\d{1,12}(?:\.\d{1,4})?)((?:[kKMGT]i?)?)B?", one)) == 2
    ]
    if "seq" in kind or "bs_is_seq_rand" in ranges:
        return {"bs_is_seq_rand": "1", "bsrange": ranges.strip()[:80]}
    if not sizes or any(low != high for low, high in sizes[:2]):
        return {"bsrange": ranges.strip()[:80]}
    read, write = sizes[0][0], sizes[min(1, len(sizes) - 1)][0]
    plain = rw.removeprefix("rand")
    if read == write or plain in ("read", "write"):
        return {"bs": str(write if plain == "write" else read)}
    return {"bs": f"{read},{write}"}


class _Report:
    """The report of one job: lines of figures, of which those of latency belong to the side named last."""

    def __init__(self, job: Figures, taken: TakenFile) -> None:
        self.job, self.taken = job, taken
        self._side: Figures = {}
        self._sides: dict[str, Figures] = {}
        self._shown: dict[str, tuple[Scaled, Scaled, Scaled]] = {}
        """IOPS, throughput and amount of each side, as printed."""
        self._issued: list[int] = []
        self._short: list[list[int]] = []
        self._percentile: tuple[str, str] | None = None
        self._handlers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (_SIDE, self._new), (_OLD_SIDE, self._old), (_TIMES, self._times), (_CPU, self._cpu), (_ALONE, self._alone),
            (_PERCENTILES, self._percentiles), (_ISSUED, self._counts), (_ERRORS, self._errors),
        )  # fmt: skip

    def figure(self, line: str) -> bool:
        """Whether a line holds figures of a job; they are taken."""
        if line.startswith("|") and self._percentile is not None:
            return self._of_percentiles(line)
        for pattern, handler in self._handlers:
            if match := pattern.match(line):
                if pattern is not _PERCENTILES:
                    self._percentile = None
                handler(match)
                return True
        for known, name, reason in _LEFT_OUT:
            if known.match(line):
                self._percentile = None
                self.taken.ignore(name, reason, len(_FIGURE.findall(line)))
                return True
        return False

    def _begin(self, name: str, runtime_ms: str) -> None:
        self._side = self._sides[name] = {"runtime": int(runtime_ms)}
        self.taken.take("runtime", "measured_s")

    def _new(self, match: re.Match[str]) -> None:
        name, iops, iops_letter, rate, rate_letter, unit, moved, moved_letter, ms = match.groups()
        self._begin(name, ms)
        bits = 8 if unit == "bit" else 1
        rate_of = scaled(rate, rate_letter)
        shown = (
            scaled(iops, iops_letter),
            Scaled(rate_of.value / bits, rate_of.step / bits),
            scaled(moved, moved_letter),
        )
        self._shown[name] = shown
        self.taken.take("IOPS, BW, amount", "IOPS, throughput", 3)

    def _old(self, match: re.Match[str]) -> None:
        name, moved, moved_letter, rate, rate_letter, unit, iops, iops_letter, ms = match.groups()
        self._begin(name, ms)
        bits = 8 if unit in ("b", "bit") else 1
        rate_of = scaled(rate, rate_letter, binary=True)
        shown = (
            scaled(iops, iops_letter),
            Scaled(rate_of.value / bits, rate_of.step / bits),
            scaled(moved, moved_letter, binary=True),
        )
        self._shown[name] = shown
        self.taken.take("iops, bw, io", "IOPS, throughput", 3)

    def _times(self, match: re.Match[str]) -> None:
        name, unit, _, _, most, most_letter, mean, mean_letter, _, _ = match.groups()
        if name == "sync":
            self._side = self._sides["sync"] = {}
        key = "lat" if name == "sync" else name
        self._side[f"{key}_ns"] = {
            "mean": scaled(mean, mean_letter).value * _UNIT_NS[unit],
            "max": scaled(most, most_letter).value * _UNIT_NS[unit],
        }
        if key == "slat":
            self.taken.ignore("slat", "submission is part of lat", 4)
        else:
            self.taken.take(f"{name} avg, max", "mean and longest latency", 2)
            self.taken.ignore(f"{name} min, stdev", "points have no such figures", 2)

    def _percentiles(self, match: re.Match[str]) -> None:
        self._percentile = "lat" if match[1] == "sync" else match[1], match[2]

    def _of_percentiles(self, line: str) -> bool:
        name, unit = self._percentile or ("", "")
        found = _PERCENTILE.findall(line)
        timed = self._side.get(f"{name}_ns")
        if not isinstance(timed, dict):
            timed = self._side[f"{name}_ns"] = {}
        values = timed.setdefault("percentile", {})
        known = {percent: int(value) * _UNIT_NS[unit] for percent, value in found[:100] if int(value)}
        values |= known
        self.taken.take(f"{name} percentiles", "percentiles", len(known))
        if len(known) < len(found):
            self.taken.ignore(f"{name} percentiles of 0", f"are less than one {unit[:-3]}s", len(found) - len(known))
        if unit != "nsec":
            self.taken.note(f"percentiles are printed in whole {unit} (JSON has nanoseconds)")
        return bool(found)

    def _cpu(self, match: re.Match[str]) -> None:
        self.job |= {"usr_cpu": float(match[1]), "sys_cpu": float(match[2])}
        self.taken.take("cpu usr, sys", "generator.cpu_share", 2)
        self.taken.ignore("cpu ctx, majf, minf", "points have no such figures", 3)

    def _alone(self, match: re.Match[str]) -> None:
        self.job["iodepth_level"] = {"1": float(match[1])}
        self.taken.ignore("IO depths", "points have no such figures", len(_FIGURE.findall(match.string)))

    def _counts(self, match: re.Match[str]) -> None:
        parts = [[int(one) for one in re.findall(r"\d{1,18}", part or "")] for part in match.groups()]
        self._issued, self._short = parts[0], parts[1:]
        self.taken.take("issued total", "count", len(self._issued))
        self.taken.take("issued short, dropped", "notes", sum(map(len, self._short)))

    def _errors(self, match: re.Match[str]) -> None:
        self.job |= {"total_err": int(match[1]), "first_error": int(match[2])}
        self.taken.take("errors total, first_error", "errors", 2)

    def close(self, asked: Figures | None) -> None:
        """Put the sides into the job: counts as issued, rates from counts where they agree with what is printed."""
        if "mixed" in self._sides and len(self._shown) > 1:
            del self._sides["mixed"]
            self.taken.ignore("mixed", "reads and writes say more")
        for name, side in self._sides.items():
            if name == "sync":
                side["total_ios"] = self._issued[3] if len(self._issued) > 3 else 0
                if not side["total_ios"]:
                    self.taken.ignore("sync", "the text does not say how many there were")
            else:
                self._rates(name, side, asked or {})
            self.job[name] = side

    def _rates(self, name: str, side: Figures, asked: Figures) -> None:
        iops, rate, moved = self._shown[name]
        place = ("read", "write", "trim").index(name) if name != "mixed" else 0
        seconds = (amount(side["runtime"], f"{name}: runtime") or 0.0) / 1e3
        issued = sum(self._issued[:3]) if name == "mixed" else self._issued[place] if place < len(self._issued) else 0
        if seconds and issued and abs(issued / seconds - iops.value) <= iops.step + 1:
            side["total_ios"] = issued
        else:
            side |= {"total_ios": round(iops.value * seconds), "iops": iops.value}
            self.taken.note(
                f"{self.job['jobname']}: {name}s have no count that agrees with their rate, so both are"
                " from IOPS as printed"
            )
        for key, counts in zip(("short_ios", "drop_ios"), self._short, strict=False):
            side[key] = counts[place] if place < len(counts) else 0
        block = _block_of(asked.get("bs"), place)
        total = block * whole(side["total_ios"], "total_ios")
        if "iops" not in side and total and seconds and abs(total - moved.value) <= moved.step:
            side["bw_bytes"] = total / seconds
        else:
            side["bw_bytes"] = rate.value
            self.taken.note(f"{self.job['jobname']}: throughput is as fio prints it, rounded")


def _block_of(bs: object, place: int) -> int:
    sizes = str(bs or "").split(",")
    size = sizes[min(place, len(sizes) - 1)]
    return int(size) if size.isdecimal() else 0
