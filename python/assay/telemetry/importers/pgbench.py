"""Logs of pgbench: of each transaction (`-l`), of intervals (`--aggregate-interval`), and lines of progress.

Source: PostgreSQL documentation, pgbench, "Per-Transaction Logging" and "Aggregated Logging".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import chain, zip_longest
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken

_SECOND_NS = 10**9
_NUMBER = r"\d{1,18}(?:\.\d{1,18})?"
_TRANSACTION = re.compile(
    r"^\d+ \d+ (\d{1,18}|skipped|failed|serialization|deadlock) \d+ \d{9,10} \d{1,6}( \d+)*\s*$", re.ASCII
)
_INTERVAL = re.compile(r"^\d{9,10} \d{1,18} \d{1,18} \d{1,40} \d{1,18} \d{1,18}( \d+)*\s*$", re.ASCII)
_THREADS = re.compile(r"(\D.*?\.\d{1,10})(?:\.\d{1,5})?")
_PROGRESS = re.compile(
    rf"^progress: (?P<at>{_NUMBER}) s, (?P<tps>{_NUMBER}) tps, lat (?P<mean>{_NUMBER}) ms"
    rf" stddev (?P<deviation>{_NUMBER}|NaN)(?:, (?P<failed>\d{{1,18}}) failed)?",
    re.ASCII,
)
EPOCH_S = 10**9
"""A time of progress above this is one since 1970, which --progress-timestamp prints."""

BEHIND = 5
"""Seconds by which lines may be out of order: threads write when they like."""

VALUES_MAX = 1_000_000
"""Transactions of a second whose percentiles are exact; of more the first."""


class PgbenchLog(Importer):
    """Logs of transactions, each by itself or in intervals."""

    name: ClassVar[str] = "pgbench"
    title: ClassVar[str] = "pgbench log (-l)"

    def recognises(self, head: str) -> bool:
        """Lines of numbers alone, with a time since 1970 at the place where it belongs."""
        lines = head.splitlines()[:3]
        return bool(lines) and all(_TRANSACTION.match(line) or _INTERVAL.match(line) for line in lines[:2])

    def together(self, name: str) -> str | None:
        """A run with several threads writes a file for each: `pgbench_log.77`, `pgbench_log.77.1`."""
        match = _THREADS.fullmatch(name)
        return match[1] if match is not None else None

    def joined(self, files: Sequence[TextIO]) -> Iterator[str]:
        """Lines of all threads: transactions in the order of their times, intervals added up."""
        firsts = [next((line for line in file if line.strip()), "") for file in files]
        threads = [chain([first], file) for first, file in zip(firsts, files, strict=True)]
        if all(_INTERVAL.match(first) for first in firsts):
            for lines in zip_longest(*threads, fillvalue=""):
                yield _sum_of_intervals([line for line in lines if line.strip()])
        else:
            yield from merge(*threads, key=_time_of)

    def read(self, file: TextIO, into: Into) -> None:
        """Take commits and latencies of each second, or of each interval.

        Raises
        ------
        NotTaken
            It ends before a second has passed.
        """
        first = next((line for line in file if line.strip()), "")
        if _TRANSACTION.match(first):
            self._transactions(first, file, into)
        else:
            self._intervals(first, file, into)
        if not into.taken.rows:
            raise NotTaken("ends before a second has passed")

    def _transactions(self, first: str, file: TextIO, into: Into) -> None:
        seconds: dict[int, list[float]] = {}
        failed: dict[int, int] = defaultdict(int)
        latest = 0
        for line in chain([first], file):
            if not _TRANSACTION.match(line):
                if line.strip():
                    into.taken.not_understood("lines that are no transaction", line)
                continue
            parts = line.split()
            second = int(parts[4])
            if second <= latest - BEHIND:
                into.taken.ignore(f"transactions more than {BEHIND} s out of order", "their second is over", 1)
                continue
            if second > latest:
                latest = second
                for ended in sorted(one for one in seconds if one <= latest - BEHIND):
                    self._hand_over(ended, seconds.pop(ended), failed.pop(ended, 0), into)
            values = seconds.setdefault(second, [])
            if not parts[2].isdecimal():
                failed[second] += 1
            elif len(values) < VALUES_MAX:
                values.append(float(parts[2]) * 1e3)
            else:
                into.taken.ignore(f"transactions of a second after {VALUES_MAX:,}", "the first stand for all", 1)
        whole = sorted(seconds)
        # The last second is cut off.
        for ended in whole[:-1]:
            self._hand_over(ended, seconds[ended], failed.get(ended, 0), into)
        for cut in whole[-1:]:
            count = len(seconds[cut]) + failed.get(cut, 0)
            into.taken.ignore("transactions of the last second", "it is cut off", count)

    def _hand_over(self, second: int, values: list[float], failed: int, into: Into) -> None:
        t_ns = (second + 1) * _SECOND_NS
        if into.advance(into.options.host, t_ns) is None:
            into.taken.ignore("transactions while the clock was behind", "their time was before", len(values) + failed)
            return
        into.taken.take("transactions", "committed_count, latency_mean_ns, p50, p90, p99, max", len(values) + failed)
        values.sort()
        readings = [Reading("transactions", "committed_count", "delta", float(len(values)))]
        if failed:
            readings.append(Reading("transactions", "failed_count", "delta", float(failed)))
        if values:
            readings.append(Reading("transactions", "latency_mean_ns", "gauge", sum(values) / len(values)))
            readings += [
                Reading("transactions", f"latency_p{share}_ns", "gauge", _percentile(values, share))
                for share in (50, 90, 99)
            ]
            readings.append(Reading("transactions", "latency_max_ns", "gauge", values[-1]))
        _add(readings, t_ns, _SECOND_NS, into)

    def _intervals(self, first: str, file: TextIO, into: Into) -> None:
        before: list[int] | None = None
        for line in chain([first], file):
            if not _INTERVAL.match(line):
                if line.strip():
                    into.taken.not_understood("lines that are no interval", line)
                continue
            parts = [int(part) for part in line.split()[:6]]
            if before is not None and parts[0] <= before[0]:
                into.taken.ignore("intervals while the clock was behind", "their time was before", 1)
            elif before is not None:
                start, count, total_us, _, _, most_us = before
                interval_ns = (parts[0] - start) * _SECOND_NS
                readings = [Reading("transactions", "committed_count", "delta", float(count))]
                if count:
                    readings.append(Reading("transactions", "latency_mean_ns", "gauge", total_us / count * 1e3))
                    readings.append(Reading("transactions", "latency_max_ns", "gauge", most_us * 1e3))
                if into.advance(into.options.host, parts[0] * _SECOND_NS) is not None:
                    into.taken.take("intervals", "committed_count, latency_mean_ns, max")
                    _add(readings, parts[0] * _SECOND_NS, interval_ns, into)
                else:
                    into.taken.ignore("intervals while the clock was behind", "their time was before", 1)
            before = parts
        into.taken.ignore("the last interval", "it is cut off", 1)


class PgbenchProgress(Importer):
    """Lines of progress, with times since 1970 or since the start of the run."""

    name: ClassVar[str] = "pgbench"
    title: ClassVar[str] = "pgbench progress (-P, --progress-timestamp)"

    def recognises(self, head: str) -> bool:
        """A line of progress."""
        return re.search(_PROGRESS.pattern, head, re.MULTILINE | re.ASCII) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take transactions and latency of each interval."""
        before: float | None = None
        host, taken = into.options.host, into.taken
        for line in file:
            match = _PROGRESS.match(line)
            if match is None:
                if line.startswith("progress:"):
                    taken.not_understood("lines of progress", line)
                continue
            at = float(match["at"])
            is_relative = at < EPOCH_S
            if is_relative and into.options.start_ns is None:
                taken.note("says times since its start alone, and so do its values (--start says when it was)")
            begin = before if before is not None else 0.0 if is_relative else None
            if before is not None and at <= before and is_relative:
                into.begin_run(host)
                raise NotTaken("holds several runs of pgbench, which say no times of day: give each by itself")
            before = at
            if begin is None or at <= begin:
                taken.ignore("the first line", "it does not say when its interval began", 1)
                continue
            t_ns = round(at * 1e9) + (into.options.start_ns or 0 if is_relative else 0)
            if into.advance(host, t_ns) is None:
                taken.ignore("lines while the clock was behind", "their time was before", 1)
                continue
            taken.take("lines of progress", "committed_count, latency_mean_ns, failed_count")
            _add(_of_progress(match, at - begin), t_ns, round((at - begin) * 1e9), into)


def _of_progress(match: re.Match[str], seconds: float) -> list[Reading]:
    readings = [Reading("transactions", "committed_count", "delta", float(match["tps"]) * seconds)]
    if float(match["tps"]):
        readings.append(Reading("transactions", "latency_mean_ns", "gauge", float(match["mean"]) * 1e6))
    if match["failed"] and int(match["failed"]):
        readings.append(Reading("transactions", "failed_count", "delta", float(match["failed"])))
    return readings


def _add(readings: Sequence[Reading], t_ns: int, interval_ns: int, into: Into) -> None:
    into.add(readings, host=into.options.host, t_ns=t_ns, interval_ns=interval_ns, tier="application", source="pgbench")


def _time_of(line: str) -> tuple[int, int]:
    """When a transaction ended; a line that is none stays where it is."""
    parts = line.split()
    return (int(parts[4]), int(parts[5])) if _TRANSACTION.match(line) else (0, 0)


def _sum_of_intervals(lines: Sequence[str]) -> str:
    """The interval of all threads, from one of each; where a line is no interval, the lines stay apart."""
    if not lines or not all(_INTERVAL.match(line) for line in lines):
        return "".join(lines)
    start, count, total, squares, least, most = zip(
        *([int(one) for one in line.split()[:6]] for line in lines), strict=True
    )
    return f"{min(start)} {sum(count)} {sum(total)} {sum(squares)} {min(least)} {max(most)}\n"


def _percentile(ordered: Sequence[float], share: int) -> float:
    """The nearest rank of ordered values.

    Examples
    --------
    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0], 99)
    (2.0, 1.0)
    """
    return ordered[max(-(-len(ordered) * share // 100), 1) - 1]
