"""DiskSpd's text as the elements of its XML (`ResultParser.cpp`; versions 2.0.12 to 2.2).

The text says what was asked (`Input parameters`) in sentences, and what came of it in tables: each thread's I/Os on
each target, and percentiles of the time span. A file may hold the texts of several runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from assay.telemetry.importers.taken import TakenFile

LETTERS_MAX = 2000
RUNS_MAX = 10_000
ROWS_MAX = 1_000_000

_BYTES = r"(\d{1,18}(?:\.\d{1,3})?)\s?((?:[KMGT]i?)?B?)"
_RESULTS = re.compile(r"Results for timespan (\d{1,6}):")
_TIMESPAN = re.compile(r"timespan:\s{1,20}(\d{1,6})$")
_ROW = re.compile(r"\s{0,20}(?:(\d{1,9})|total:)\s{0,20}\|?\s{0,30}(\d{1,20}) \|")
_COUNT = re.compile(r"\d{1,20}", re.ASCII)
_PERCENT = re.compile(r"(\d{1,2})th$")
_NINES = re.compile(r"(\d)-nines$")
_FLAGS = {
    "software and hardware cache disabled": "DisableAllCache", "software cache disabled": "DisableOSCache",
    "local software cache disabled, remote cache enabled": "DisableLocalCache",
    "hardware write cache disabled, writethrough on": "WriteThrough",
    "hardware and software write caches disabled, writethrough on": "WriteThrough",
    "using parallel async I/O": "ParallelAsyncIO",
}  # fmt: skip
_WITHOUT_USE = re.compile(
    r"using (software cache|hardware( and software)? (write )?caches?\b.*|I/O Completion Ports|completion routines.*"
    r"|FILE_.*)$"
    r"|write buffer source: .*|affinity disabled|advanced affinity.*|gathering IOPS.*|random seed: .*|measuring latency"
    r"|cool down time: .*|WARNING: .*|be compared to other.*|stride size: 0$|file attribute .*|hint.*"
)
_SENTENCES: Mapping[str, re.Pattern[str]] = {
    "Duration": re.compile(r"duration: (\d{1,9})s"),
    "Warmup": re.compile(r"warm up time: (\d{1,9})s"),
    "ThreadCount": re.compile(r"thread pool with (\d{1,9}) threads"),
    "RequestCount": re.compile(r"number of outstanding I/O operations(?: per thread)?: (\d{1,9})"),
    "ThinkTime": re.compile(r"think time: (\d{1,9})ms"),
    "BurstSize": re.compile(r"burst size: (\d{1,9})"),
    "Weight": re.compile(r"relative IO weight in thread pool: (\d{1,9})"),
    "ThreadsPerFile": re.compile(r"threads per file: (\d{1,9})"),
}
_SIZES: Mapping[str, re.Pattern[str]] = {
    "BlockSize": re.compile(rf"block size: {_BYTES}"),
    "BaseFileOffset": re.compile(rf"base file offset: {_BYTES}"),
    "MaxFileSize": re.compile(rf"max file size: {_BYTES}"),
    "ThreadStride": re.compile(rf"thread stride size: {_BYTES}"),
    "Random": re.compile(rf"using random I/O \(alignment: {_BYTES}\)"),
    "StrideSize": re.compile(rf"(?:using(?: interlocked)? sequential I/O \()?stride(?: size)?: {_BYTES}"),
}
_MIXED_ORDER = re.compile(
    rf"using mixed random/sequential I/O \((\d{{1,3}})% random\) \(alignment(?:/stride)?: {_BYTES}\)"
)
_MIX = re.compile(r"performing mix test \((read/write|write/read) ratio: (\d{1,3})/(\d{1,3})\)")
_LIMITED = re.compile(r"throughput rate-limited to (\d{1,12}) (IOPS|B/ms)")
_BUFFER = re.compile(r"write buffer size: |generating random data for each write")
_LETTERS = " KMGT"


class TextRun(NamedTuple):
    """One run of DiskSpd: what was asked of each time span, and what came of it, by numbers; its host and time."""

    profiles: dict[int, Element]
    spans: dict[int, Element]
    system: dict[str, str]


def is_text(head: str) -> bool:
    """Whether a text has results of DiskSpd, or what it was asked."""
    return "Results for timespan " in head or ("Input parameters:" in head and "timespan:" in head)


def runs_of(text: str, taken: TakenFile) -> list[TextRun]:
    """The runs of a file that came to results."""
    reader = _Text(taken)
    for line in text.splitlines():
        reader.line(line[:LETTERS_MAX])
    found = [run for run in reader.runs if run.spans]
    for profile in [profile for run in found for profile in run.profiles.values()]:
        for target in profile.findall("Targets/Target"):
            if target.find("WriteBufferContent") is None and profile.find("WriteBufferContent") is None:
                # What is said of nothing else is the pattern that DiskSpd writes unless asked for another.
                _add(SubElement(target, "WriteBufferContent"), "Pattern", "sequential")
    return found


def size_of(digits: str, letters: str) -> int:
    """Bytes as DiskSpd prints them, whose letters all stand for powers of 1,024.

    Examples
    --------
    >>> size_of("64", "KiB"), size_of("65536", ""), size_of("1.5", "GB")
    (65536, 65536, 1610612736)
    """
    return round(float(digits) * 1024.0 ** _LETTERS.index((letters[:1] or " ").replace("B", " ")))


class _Text:
    """A text, read line by line."""

    def __init__(self, taken: TakenFile) -> None:
        self.taken = taken
        self.runs = [TextRun({}, {}, {})]
        self._profile: Element | None = None
        self._target: Element | None = None
        self._span: Element | None = None
        self._columns: list[str] = []
        self._section = ""
        self._chart = ""
        self._rows = 0

    def line(self, line: str) -> None:
        """The next line."""
        shown = line.strip()
        results, timespan = _RESULTS.match(shown), _TIMESPAN.match(shown)
        begins = shown.startswith(("Command Line:", "Input parameters:"))
        if begins and (self.runs[-1].spans or (shown.startswith("Command") and self.runs[-1].profiles)):
            self.runs.append(TextRun({}, {}, {}))
        if begins or shown.startswith("System information"):
            self._profile = self._target = self._span = None
        elif timespan is not None:
            self._profile = self.runs[-1].profiles.setdefault(int(timespan[1]), Element("TimeSpan"))
            SubElement(self._profile, "Targets")
            self._target = None
        elif results is not None:
            self._begin(int(results[1]))
        elif self._span is not None:
            self._result(line, shown)
        elif self._profile is not None:
            self._asked(shown)
        elif match := re.match(r"(computer name|start time): (.{1,200})", shown):
            self.runs[-1].system.setdefault(match[1], match[2])
            self.taken.take(match[1], "host, time")

    def _begin(self, number: int) -> None:
        if number in self.runs[-1].spans:
            self.runs.append(TextRun({}, {}, {}))
        self._span = self.runs[-1].spans[number] = Element("TimeSpan")
        self._profile, self._section, self._chart, self._columns = None, "", "", []

    # What was asked

    def _asked(self, shown: str) -> None:
        """A sentence of the input parameters."""
        profile = self._profile
        if profile is None or not shown.strip("-"):
            return
        if path := re.match(r"path: (?:template target )?'(.{1,1000})'$", shown):
            self._target = SubElement(_within(profile, "Targets"), "Target")
            _add(self._target, "Path", path[1])
            self.taken.take("path", "volumes")
            return
        holder = profile if self._target is None else self._target
        found = list(_elements(shown))
        for name, text, attributes in found:
            _add(holder, name, text).attrib.update(attributes)
        if found:
            self.taken.take(found[0][0], "workload, load")
        elif _BUFFER.match(shown) or shown == "zeroing write buffers":
            pattern = "zero" if shown.startswith("zero") else "random"
            _add(SubElement(holder, "WriteBufferContent"), "Pattern", pattern)
            self.taken.take("write buffers", "compressible_share")
        elif _WITHOUT_USE.match(shown):
            self.taken.ignore(shown.partition(":")[0][:60], "changes neither the I/Os nor the load", 1)
        else:
            self._other(holder, shown)

    def _other(self, holder: Element, shown: str) -> None:
        """A sentence that says something of the load in words that are not known: kept as it is."""
        name, _, value = shown.partition(":")
        if holder is self._target:
            _add(holder, name.strip()[:60] or shown[:60], value.strip()[:100] or "set")
            self.taken.take(name.strip()[:60], "other_options")
        else:
            self.taken.not_understood(name.strip()[:60], shown)

    # What came of it

    def _result(self, line: str, shown: str) -> None:
        span = self._span
        if span is None:
            return
        if shown in ("Total IO", "Read IO", "Write IO"):
            self._section, self._chart = shown.split()[0], ""
        elif shown.startswith("thread |") and "I/Os" in shown:
            self._columns = [cell.strip() for cell in shown.split("|")]
        elif time := re.match(r"actual test time:\s{1,20}(\d{1,9}\.\d{1,6})s", shown):
            _add(span, "TestTimeSeconds", time[1])
            self.taken.take("actual test time", "measured_s")
        elif cpu := re.match(r"avg\.\|\s{0,9}(\d{1,3}\.\d{1,3})%\|", shown):
            _add(SubElement(SubElement(span, "CpuUtilization"), "Average"), "UsagePercent", cpu[1])
            self.taken.take("avg. Usage", "telemetry.cpu_share")
            self.taken.ignore("avg. User, Kernel, Idle", "the mean of all processors is taken", shown.count("%") - 1)
        elif re.match(r"(total:|Total latency distribution:|Latency distribution: .*)$", shown):
            self._chart = "total" if shown[0] in "tT" else "target"
        elif self._columns and (row := _ROW.match(line)):
            self._row(row[1], [cell.strip() for cell in line.replace("total:", "total |", 1).split("|")])
        elif shown.startswith("The test was interrupted"):
            _add(span, "Error", shown)
        elif shown.count("|") == 3 and (self._chart or "%-ile" in shown):
            self._percentiles(shown)
        elif shown.count("%|") > 1:
            self.taken.ignore("CPU", "the mean of all processors is taken", shown.count("%"))
        elif re.match(r"(thread|proc|request) count:", shown):
            self.taken.ignore("thread count, proc count", "what was asked says it as well", 1)
        elif re.search(r"\d", shown):
            self.taken.ignore("lines of others", f"are no figures of a time span, as: {shown[:60]}")

    def _row(self, thread: str | None, cells: list[str]) -> None:
        """What a thread did to a target, or all to all."""
        row = dict(zip(self._columns, cells, strict=False))
        count, moved, mean = (row.get(name, "") for name in ("I/Os", "bytes", "AvgLat"))
        if self._span is None or not _COUNT.fullmatch(count) or not _COUNT.fullmatch(moved):
            self.taken.not_understood(f"{self._section} IO", " | ".join(cells))
            return
        self._rows += 1
        if thread is None or self._section == "Total" or self._rows > ROWS_MAX:
            self._total(row, len(cells))
            return
        path, _, size = row.get("file", "").rpartition(" (")
        target = SubElement(SubElement(self._span, "Thread"), "Target")
        _add(target, "Path", path or row.get("file", ""))
        if bytes_of := re.fullmatch(rf"{_BYTES}\)", size):
            _add(target, "FileSize", str(size_of(bytes_of[1], bytes_of[2])))
        _add(target, f"{self._section}Count", count)
        _add(target, f"{self._section}Bytes", moved)
        if mean and int(count):
            _add(target, f"Average{self._section}LatencyMilliseconds", mean)
        self.taken.take(f"{self._section} IO: bytes, I/Os, AvgLat", "throughput, count, mean latency", 3 if mean else 2)
        self.taken.ignore(
            "MiB/s, I/O per s, LatStdDev", "bytes, I/Os and time say more", len(cells) - (5 if mean else 4)
        )

    def _total(self, row: Mapping[str, str], cells: int) -> None:
        """A sum: of all I/Os it says the time more exactly than the text does, and of latency the mean."""
        span, section = self._span, self._section
        mean, iops = row.get("AvgLat", ""), row.get("I/O per s", "")
        if span is not None and row.get("thread") == "total":
            if mean and section in ("Read", "Write", "Total"):
                _add(_within(span, "Latency"), f"Average{section}Milliseconds", mean)
            time = span.find("TestTimeSeconds")
            if section == "Total" and time is not None and re.fullmatch(r"\d{1,12}\.\d{1,3}", iops) and float(iops):
                exact = int(row["I/Os"]) / float(iops)
                if f"{exact:.2f}" == time.text:
                    time.text = repr(exact)
        self.taken.ignore("Total IO, total", "sums of threads, reads and writes", cells - 1)

    def _percentiles(self, shown: str) -> None:
        name, *cells = [cell.strip() for cell in shown.split("|")]
        percent, nines = _PERCENT.match(name), _NINES.match(name)
        if "%-ile" in name:
            self._chart = self._chart or "total"
            return
        known = self._chart == "total" and self._span is not None and (percent or nines or name == "max")
        if not known or self._span is None:
            why = "percentiles are those of the time span" if self._chart == "target" else "points have no such figures"
            self.taken.ignore(f"{self._chart} {name}"[:60], why, 3)
            return
        value = 100.0 if name == "max" else float(percent[1]) if percent else 0.0
        if nines:
            value = round(100 - 10.0 ** (2 - int(nines[1])), 7)
        bucket = SubElement(_within(self._span, "Latency"), "Bucket")
        _add(bucket, "Percentile", repr(value))
        for direction, cell in zip(("Read", "Write", "Total"), cells, strict=False):
            if re.fullmatch(r"\d{1,12}\.\d{1,6}", cell):
                _add(bucket, f"{direction}Milliseconds", cell)
                self.taken.take("percentiles", "percentiles, longest latency")
            else:
                self.taken.ignore(f"{direction} percentiles without a value", "nothing was recorded there", 1)


def _elements(shown: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The elements that a sentence stands for."""
    for name, pattern in _SENTENCES.items():
        if match := pattern.fullmatch(shown):
            yield name, match[1], {}
    if match := _MIX.fullmatch(shown):
        # Early versions say writes of a hundred.
        yield "WriteRatio", match[3] if match[1] == "read/write" else match[2], {}
    elif shown in ("performing read test", "performing write test"):
        yield "WriteRatio", "0" if "read" in shown else "100", {}
    elif shown.startswith("using interlocked sequential I/O"):
        yield "InterlockedSequential", "true", {}
    elif shown in _FLAGS:
        yield _FLAGS[shown], "true", {}
    elif match := _LIMITED.fullmatch(shown):
        yield "Throughput", match[1], {"unit": "IOPS" if match[2] == "IOPS" else "BPMS"}
    elif match := _MIXED_ORDER.fullmatch(shown):
        yield "Random", str(size_of(match[2], match[3])), {}
        yield "RandomRatio", match[1], {}
    elif match := re.fullmatch(r"IO priority: (.{1,20})", shown):
        yield "IOPriority", "3" if match[1] == "normal" else match[1], {}
    for name, pattern in _SIZES.items():
        if match := pattern.match(shown):
            yield name, str(size_of(match[1], match[2])), {}


def _within(parent: Element, tag: str) -> Element:
    found = parent.find(tag)
    return SubElement(parent, tag) if found is None else found


def _add(parent: Element, tag: str, text: str) -> Element:
    made = SubElement(parent, tag)
    made.text = text
    return made
