"""What load generators of databases print while they run: sysbench, go-tpc, BenchBase, and the summary of pgbench.

Times are of the time since the start of the run (`--start` says when that was). Sources: sysbench 1.0 and 0.5
(`sb_lua.c`, `sysbench.c`), go-tpc (`measurement.go`), BenchBase (`ResultWriter.java`), PostgreSQL, pgbench.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_N = r"\d{1,15}(?:\.\d{1,9})?"
_SYSBENCH = re.compile(
    rf"^\[\s*(?P<at>{_N})s\s*\]\s+(?:thds|threads): \d+,? tps: (?P<tps>{_N}),? (?:qps: (?P<qps>{_N}).*? lat \(ms,\s?"
    rf"(?P<share>\d{{1,2}})%\): (?P<late>{_N})|.*?response time: (?P<old>{_N})ms \((?P<old_share>\d{{1,2}})%\))"
    rf".*?err(?:ors?)?(?:/s)?: (?P<errors>{_N})"
)
_GO_TPC = re.compile(r"^\[(?P<what>Current|Summary)\] (?P<name>\w{1,40}) - (?P<fields>Takes\(s\): .*)$")
_FIELD = re.compile(rf"(?<![\w.])(?P<name>[\w.]{{1,40}}(?:\([a-z]{{1,8}}\))?): (?P<value>{_N})")
_SUMMARY = {
    "duration": re.compile(rf"^duration: (?P<value>{_N}) s\b"),
    "count": re.compile(r"^number of transactions actually processed: (?P<value>\d{1,15})"),
    "failed": re.compile(r"^number of failed transactions: (?P<value>\d{1,15})"),
    "mean": re.compile(rf"^latency average = (?P<value>{_N}) ms"),
    "tps": re.compile(rf"^tps = (?P<value>{_N}) \((?:without initial connection|including connections)"),
}
_MS = 1e6

SECONDS_MAX = 1e9
"""Thirty years; no run is as long."""

_GO_FIELDS: Counters = {
    "Count": Counter("committed_count"), "Avg(ms)": Counter("latency_mean_ns", factor=_MS),
    "50th(ms)": Counter("latency_p50_ns", factor=_MS), "90th(ms)": Counter("latency_p90_ns", factor=_MS),
    "95th(ms)": Counter("latency_p95_ns", factor=_MS), "99th(ms)": Counter("latency_p99_ns", factor=_MS),
    "99.9th(ms)": Counter("latency_p99_9_ns", factor=_MS), "Max(ms)": Counter("latency_max_ns", factor=_MS),
    "TPM": "it is the count over a minute",
}  # fmt: skip
_BENCHBASE: Counters = {
    "Throughput (requests/second)": Counter("committed_count", "delta"),
    "Average Latency (millisecond)": Counter("latency_mean_ns", factor=_MS),
    "Median Latency (millisecond)": Counter("latency_p50_ns", factor=_MS),
    "90th Percentile Latency (millisecond)": Counter("latency_p90_ns", factor=_MS),
    "95th Percentile Latency (millisecond)": Counter("latency_p95_ns", factor=_MS),
    "99th Percentile Latency (millisecond)": Counter("latency_p99_ns", factor=_MS),
    "Maximum Latency (millisecond)": Counter("latency_max_ns", factor=_MS),
}


class _Part(NamedTuple):
    """One interval of a log: its end since the start, its length, and what was found."""

    end_s: float
    length_s: float
    readings: list[Reading]


class _LoadLog(Importer):
    """A log whose times are of the time since its start."""

    line: ClassVar[re.Pattern[str]]
    """A line by which the log is known."""

    def recognises(self, head: str) -> bool:
        """Such a line."""
        return re.search(self.line.pattern, head, re.MULTILINE) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take transactions and latencies of each interval."""
        host, start_ns = into.options.host, into.options.start_ns
        if start_ns is None:
            into.taken.note("says times since its start alone, and so do its values (--start says when it was)")
        for part in self.parts(file, into):
            if not -SECONDS_MAX <= part.length_s <= part.end_s <= SECONDS_MAX:
                raise NotTaken("says times that no run has")
            t_ns, interval_ns = (start_ns or 0) + round(part.end_s * 1e9), round(part.length_s * 1e9)
            if interval_ns <= 0 or into.advance(host, t_ns) is None:
                raise NotTaken("holds several runs, which say no times of day: give each by itself")
            into.add(part.readings, host=host, t_ns=t_ns, interval_ns=interval_ns, tier="application", source=self.name)

    def parts(self, file: TextIO, into: Into) -> Iterator[_Part]:
        """Intervals in the order of their ends."""
        raise NotImplementedError


class Sysbench(_LoadLog):
    """sysbench with `--report-interval`."""

    name: ClassVar[str] = "sysbench"
    title: ClassVar[str] = "sysbench (--report-interval)"
    line: ClassVar[re.Pattern[str]] = _SYSBENCH

    def parts(self, file: TextIO, into: Into) -> Iterator[_Part]:
        """A line is an interval."""
        before = 0.0
        for line in file:
            match = _SYSBENCH.match(line)
            if match is None:
                if re.match(r"^\[\s*\d+s", line):
                    into.taken.not_understood("lines of an interval", line)
                continue
            length = float(match["at"]) - before
            before = float(match["at"])
            share, late = match["share"] or match["old_share"], match["late"] or match["old"]
            into.taken.take("lines of an interval", f"committed_count, failed_count, latency_p{share}_ns")
            readings = [Reading("transactions", "committed_count", "delta", float(match["tps"]) * length)]
            if float(match["tps"]):
                readings.append(Reading("transactions", f"latency_p{share}_ns", "gauge", float(late) * _MS))
            if float(match["errors"]):
                readings.append(Reading("transactions", "failed_count", "delta", float(match["errors"]) * length))
            yield _Part(before, length, readings)


class GoTpc(_LoadLog):
    """go-tpc, and tiup bench."""

    name: ClassVar[str] = "go-tpc"
    title: ClassVar[str] = "go-tpc (tiup bench)"
    line: ClassVar[re.Pattern[str]] = _GO_TPC

    def parts(self, file: TextIO, into: Into) -> Iterator[_Part]:
        """Lines of several transactions make one interval: a name that comes again begins the next."""
        end = 0.0
        of_name: dict[str, tuple[float, list[Reading]]] = {}
        for line in file:
            match = _GO_TPC.match(line)
            if match is None:
                continue
            fields = {one["name"]: one["value"] for one in _FIELD.finditer(match["fields"])}
            length = float(fields.pop("Takes(s)", 0))
            name = match["name"].lower()
            if match["what"] == "Summary" or not length:
                into.taken.ignore("[Summary]", "it is of the whole run, whose intervals are taken", len(fields))
                continue
            if name in of_name:
                yield self._together(of_name, end)
                end += max(length for length, _ in of_name.values())
                of_name = {}
            readings = into.taken.readings(fields, _GO_FIELDS, entity=name, interval_ns=1, source=self.name)
            of_name[name] = length, readings
        if of_name:
            yield self._together(of_name, end)

    @staticmethod
    def _together(of_name: Mapping[str, tuple[float, list[Reading]]], begin: float) -> _Part:
        length = max(length for length, _ in of_name.values())
        found = [
            one._replace(kind="delta") if one.metric == "committed_count" else one
            for _, readings in of_name.values()
            for one in readings
        ]
        return _Part(begin + length, length, found)


class BenchBase(_LoadLog):
    """The results of BenchBase by interval (`*.results.csv`)."""

    name: ClassVar[str] = "benchbase"
    title: ClassVar[str] = "BenchBase (results.csv)"
    line: ClassVar[re.Pattern[str]] = re.compile(r"\A\s*Time \(seconds\),Throughput \(requests/second\)")

    def parts(self, file: TextIO, into: Into) -> Iterator[_Part]:
        """A row is an interval, of the length between two rows."""
        rows = csv.DictReader(line.replace("\0", "") for line in file)
        before: tuple[float, dict[str, object]] | None = None
        length = 0.0
        for row in rows:
            values = {name: value for name, value in row.items() if name is not None and name != "Time (seconds)"}
            at = number(row.get("Time (seconds)") or "")
            if at is None:
                into.taken.not_understood("rows whose time is not understood", str(row)[:60], len(values))
                continue
            if before is not None:
                length = at - before[0]
                yield self._part(before, length, into)
            before = at, dict(values)
        if before is not None and length > 0:
            into.taken.ignore("the last row", "its interval is cut off", len(before[1]))

    def _part(self, row: tuple[float, Mapping[str, object]], length: float, into: Into) -> _Part:
        at, values = row
        interval_ns = round(min(max(length, 0.0), 1e9) * 1e9)
        readings = into.taken.readings(
            values, _BENCHBASE, entity="transactions", interval_ns=interval_ns, source=self.name
        )
        return _Part(at + length, length, readings)


class PgbenchSummary(_LoadLog):
    """What pgbench prints at its end, where it printed no progress: one interval of the whole run."""

    name: ClassVar[str] = "pgbench"
    title: ClassVar[str] = "pgbench (summary)"
    line: ClassVar[re.Pattern[str]] = re.compile(r"^tps = \d")

    def parts(self, file: TextIO, into: Into) -> Iterator[_Part]:
        """The whole run."""
        found: dict[str, float] = {}
        for line in file:
            for name, pattern in _SUMMARY.items():
                match = pattern.match(line)
                if match is not None and name in found and name != "tps":
                    raise NotTaken("holds several runs, which say no times of day: give each by itself")
                if match is not None:
                    found.setdefault(name, float(match["value"]))
        if "tps" not in found or not found["tps"]:
            raise NotTaken("holds no transactions")
        length = found.get("duration") or found.get("count", 0.0) / found["tps"]
        if not length:
            raise NotTaken("says neither how long it ran nor how many transactions it did")
        count = found.get("count", found["tps"] * length)
        readings = [Reading("transactions", "committed_count", "delta", count)]
        into.taken.take("number of transactions", "committed_count")
        into.taken.ignore("tps", NO_USE if "count" not in found else "the count is taken", 1)
        if "mean" in found:
            into.taken.take("latency average", "latency_mean_ns")
            readings.append(Reading("transactions", "latency_mean_ns", "gauge", found["mean"] * _MS))
        if found.get("failed"):
            into.taken.take("number of failed transactions", "failed_count")
            readings.append(Reading("transactions", "failed_count", "delta", found["failed"]))
        yield _Part(length, length, readings)
