"""Logs of pgbench: of each transaction (`-l`), of intervals (`--aggregate-interval`), and lines of progress.

Source: PostgreSQL documentation, pgbench, "Per-Transaction Logging" and "Aggregated Logging".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Importer, Into, NotTaken

_SECOND_NS = 10**9
_NUMBER = r"\d{1,18}(?:\.\d{1,18})?"
_TRANSACTION = re.compile(
    r"^\d+ \d+ (\d{1,18}|skipped|failed|serialization|deadlock) \d+ \d{9,10} \d{1,6}( \d+)*\s*$", re.ASCII
)
_INTERVAL = re.compile(r"^\d{9,10} \d{1,18} \d{1,18} \d{1,40} \d{1,18} \d{1,18}( \d+)*\s*$", re.ASCII)
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
        strange = late = 0
        for line in chain([first], file):
            if not _TRANSACTION.match(line):
                strange += bool(line.strip())
                continue
            parts = line.split()
            second = int(parts[4])
            if second <= latest - BEHIND:
                late += 1
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
        whole = sorted(seconds)
        # The last second is cut off.
        for ended in whole[:-1]:
            self._hand_over(ended, seconds[ended], failed.get(ended, 0), into)
        into.taken.counters |= {"time": "latency_mean_ns, p50, p90, p99, max", "lines": "committed_count"}
        if strange:
            into.taken.ignore(f"{strange:,} lines", "they are no lines of a transaction")
        if late:
            into.taken.note(f"{late:,} transactions stand more than {BEHIND} s out of order and are left out")

    def _hand_over(self, second: int, values: list[float], failed: int, into: Into) -> None:
        t_ns = (second + 1) * _SECOND_NS
        if into.advance(into.options.host, t_ns) is None:
            return
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
        strange = 0
        for line in chain([first], file):
            if not _INTERVAL.match(line):
                strange += bool(line.strip())
                continue
            parts = [int(part) for part in line.split()[:6]]
            if before is not None and parts[0] > before[0]:
                start, count, total_us, _, _, most_us = before
                interval_ns = (parts[0] - start) * _SECOND_NS
                readings = [Reading("transactions", "committed_count", "delta", float(count))]
                if count:
                    readings.append(Reading("transactions", "latency_mean_ns", "gauge", total_us / count * 1e3))
                    readings.append(Reading("transactions", "latency_max_ns", "gauge", most_us * 1e3))
                if into.advance(into.options.host, parts[0] * _SECOND_NS) is not None:
                    _add(readings, parts[0] * _SECOND_NS, interval_ns, into)
            before = parts
        into.taken.counters |= {
            "num_transactions": "committed_count",
            "sum_latency, max_latency": "latency_mean_ns, max",
        }
        into.taken.ignore("the last interval", "it is cut off")
        if strange:
            into.taken.ignore(f"{strange:,} lines", "they are no lines of an interval")


class PgbenchProgress(Importer):
    """Lines of progress, with times since 1970."""

    name: ClassVar[str] = "pgbench"
    title: ClassVar[str] = "pgbench progress (-P --progress-timestamp)"

    def recognises(self, head: str) -> bool:
        """A line of progress."""
        return re.search(_PROGRESS.pattern, head, re.MULTILINE | re.ASCII) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take transactions and latency of each interval.

        Raises
        ------
        NotTaken
            Its times are since the start, which it does not name.
        """
        before: float | None = None
        for line in file:
            match = _PROGRESS.match(line)
            if match is None:
                continue
            at = float(match["at"])
            if at < EPOCH_S:
                raise NotTaken("says times since its start alone: pgbench -P 1 --progress-timestamp says when it was")
            if before is not None and at > before:
                t_ns, interval_ns = round(at * 1e9), round((at - before) * 1e9)
                readings = [
                    Reading("transactions", "committed_count", "delta", float(match["tps"]) * interval_ns / 1e9),
                    Reading("transactions", "latency_mean_ns", "gauge", float(match["mean"]) * 1e6),
                ]
                if match["failed"] and int(match["failed"]):
                    readings.append(Reading("transactions", "failed_count", "delta", float(match["failed"])))
                if into.advance(into.options.host, t_ns) is not None:
                    _add(readings, t_ns, interval_ns, into)
            before = at
        into.taken.counters |= {"tps": "committed_count", "lat": "latency_mean_ns"}
        into.taken.ignore("the first line", "it does not say when its interval began")


def _add(readings: Sequence[Reading], t_ns: int, interval_ns: int, into: Into) -> None:
    into.add(readings, host=into.options.host, t_ns=t_ns, interval_ns=interval_ns, tier="application", source="pgbench")


def _percentile(ordered: Sequence[float], share: int) -> float:
    """The nearest rank of ordered values.

    Examples
    --------
    >>> _percentile([1.0, 2.0, 3.0, 4.0], 50), _percentile([1.0], 99)
    (2.0, 1.0)
    """
    return ordered[max(-(-len(ordered) * share // 100), 1) - 1]
