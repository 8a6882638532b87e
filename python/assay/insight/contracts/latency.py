"""A clause of latency judged interval by interval: minutes that keep it, break it, cannot be told, or do not count."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

from assay.base.units import format_latency
from assay.insight.contracts.contract import LatencyClause, StorageContract
from assay.insight.contracts.intervals import JudgedInterval, counting
from assay.insight.contracts.recorded import DAY_NS
from assay.insight.contracts.times import STATISTICS, IoTimes

HOUR_NS = 3600 * 10**9
WORST_MAX = 10

COARSE = "only quarter hours are kept of that time, and the contract's intervals are shorter"
NO_HISTOGRAM = "no histogram was recorded then; record with --latencies"
NO_TIMES = "no time of these I/Os was recorded then"
IN_QUEUE = "the kernel's mean, in which waiting in the host is included, is above the limit; record with --latencies"
IN_BUCKET = "the limit lies within a bucket of the histogram, and so does the percentile"


@dataclass(slots=True)
class Minutes:
    """Recorded minutes of a clause: what they came to, and why."""

    met: float = 0.0
    missed: float = 0.0
    unknown: dict[str, float] = field(default_factory=dict)
    excluded: dict[str, float] = field(default_factory=dict)

    @property
    def unknown_sum(self) -> float:
        """Minutes that cannot be told."""
        return math.fsum(self.unknown.values())

    @property
    def excluded_sum(self) -> float:
        """Minutes that do not count."""
        return math.fsum(self.excluded.values())

    @property
    def counted(self) -> float:
        """Minutes that count, those among them that cannot be told."""
        return self.met + self.missed + self.unknown_sum

    def add(self, other: Minutes) -> None:
        """Add the minutes of another time."""
        self.met += other.met
        self.missed += other.missed
        for own, more in ((self.unknown, other.unknown), (self.excluded, other.excluded)):
            for why, minutes in more.items():
                own[why] = own.get(why, 0.0) + minutes

    def exclude(self, why: str, minutes: float) -> None:
        """Add minutes that do not count."""
        self.excluded[why] = self.excluded.get(why, 0.0) + minutes

    def keep(self, outcome: bool | None, why: str, minutes: float) -> None:
        """Add minutes by their outcome."""
        if outcome is None:
            self.unknown[why] = self.unknown.get(why, 0.0) + minutes
        elif outcome:
            self.met += minutes
        else:
            self.missed += minutes


@dataclass(slots=True)
class JudgedHour:
    """What the counted intervals of an hour did: the evidence of a breach.

    Attributes
    ----------
    missed
        Minutes in breach.
    value_ns
        The clause's statistic of all counted I/Os of the hour.
    """

    begin_ns: int
    missed: float = 0.0
    value_ns: float | None = None
    covered_ns: int = 0
    ios: float = 0.0
    reads: float = 0.0
    moved: float = 0.0
    times: IoTimes = field(default_factory=IoTimes)

    def take(self, one: JudgedInterval, times: IoTimes) -> None:
        """Add a counted interval."""
        self.covered_ns += one.covered_ns
        self.ios += one.all_ios
        self.reads += one.ios["read"]
        self.moved += sum(one.moved.values())
        self.times.add(times)


@dataclass(slots=True)
class JudgedSpan:
    """A day or month of a clause: when it begins, its minutes, and in months its I/Os."""

    begin_ns: int
    minutes: Minutes = field(default_factory=Minutes)
    times: IoTimes = field(default_factory=IoTimes)


@dataclass(slots=True)
class JudgedWindow:
    """Counted intervals whose I/Os are judged together.

    Attributes
    ----------
    key
        Which window: the number of an hour, a day, a month, or the beginning of an interval.
    hours
        Minutes by the beginning of their hour.
    undecided, unknown
        Why it is unknown whether an interval counts, or what its I/Os took.
    """

    key: int
    times: IoTimes = field(default_factory=IoTimes)
    hours: dict[int, float] = field(default_factory=dict)
    undecided: str = ""
    unknown: str = ""


class LatencyJudge:
    """Takes intervals in the order of time and keeps what a clause came to; memory grows with days alone."""

    def __init__(self, contract: StorageContract, clause: LatencyClause) -> None:
        self.contract, self.clause = contract, clause
        self.minutes = Minutes()
        self.times = IoTimes()
        """Of all counted I/Os, merged."""
        self.days: dict[int, JudgedSpan] = {}
        self.months: dict[int, JudgedSpan] = {}
        """By their beginning."""
        self._worst: list[tuple[float, float, int, JudgedHour]] = []
        self._hour: JudgedHour | None = None
        self.window: JudgedWindow | None = None
        """What counted and is not judged yet."""

    def take(self, one: JudgedInterval) -> None:
        """Judge an interval."""
        counts = counting(self.contract, self.clause, one)
        if counts.excluded:
            for place in self._places(one.begin_ns):
                place.exclude(counts.excluded, one.minutes)
            return
        times, why = self._times(one)
        key = self._key(one.begin_ns)
        if self.window is None or self.window.key != key:
            self._end_window()
            self.window = JudgedWindow(key)
        window = self.window
        hour_ns = one.begin_ns // HOUR_NS * HOUR_NS
        window.hours[hour_ns] = window.hours.get(hour_ns, 0.0) + one.minutes
        window.undecided = window.undecided or counts.undecided
        window.unknown = window.unknown or why
        window.times.add(times)
        self.times.add(times)
        self._month(one.begin_ns).times.add(times)
        self._evidence(one, times)

    def end(self) -> None:
        """Judge what is still open."""
        self._end_window()
        self._end_hour()

    def worst(self) -> list[JudgedHour]:
        """Hours above the limit, the worst first."""
        return [hour for *_, hour in sorted(self._worst, key=lambda one: one[:3], reverse=True)]

    def _times(self, one: JudgedInterval) -> tuple[IoTimes, str]:
        """Times of an interval's I/Os, and why they tell nothing."""
        side, statistic = self.clause.direction, self.clause.statistic
        if one.is_coarse:
            return IoTimes(), COARSE
        times = one.times[side]
        if statistic in STATISTICS and not times.ios:
            return IoTimes(), NO_HISTOGRAM
        if times.timed:
            return times, ""
        counters = one.counters[side]
        if statistic != "mean" or not counters.timed:
            return IoTimes(), NO_TIMES
        # The kernel's mean holds the time in the queue, too: it bounds the device's from above.
        return counters, "" if counters.sum_ns / counters.timed <= self.clause.most else IN_QUEUE

    def _key(self, begin_ns: int) -> int:
        match self.clause.over:
            case "interval":
                return begin_ns
            case "hour":
                return begin_ns // HOUR_NS
            case "day":
                return begin_ns // DAY_NS
            case "month":
                return month_of(begin_ns)
            case _:
                return 0

    def _end_window(self) -> None:
        window, self.window = self.window, None
        if window is None:
            return
        outcome, why = self.outcome(window)
        for hour_ns, minutes in window.hours.items():
            for place in self._places(hour_ns):
                place.keep(outcome, why, minutes)
            if outcome is False and self._hour is not None and self._hour.begin_ns == hour_ns:
                self._hour.missed += minutes

    def outcome(self, window: JudgedWindow) -> tuple[bool | None, str]:
        """Whether a window keeps the limit, and why that is unknown."""
        if window.unknown:
            return None, window.unknown
        outcome = window.times.keeps(self.clause.statistic, self.clause.most)
        if outcome is None:
            return None, IN_BUCKET
        if not outcome and window.undecided:
            return None, f"above the limit, and {window.undecided}"
        return outcome, ""

    def _evidence(self, one: JudgedInterval, times: IoTimes) -> None:
        begin_ns = one.begin_ns // HOUR_NS * HOUR_NS
        if self._hour is None or self._hour.begin_ns != begin_ns:
            self._end_hour()
            self._hour = JudgedHour(begin_ns)
        self._hour.take(one, times)

    def _end_hour(self) -> None:
        hour = self._hour
        if hour is None:
            return
        self._hour = None
        hour.value_ns = hour.times.value_ns(self.clause.statistic)
        is_above = hour.times.keeps(self.clause.statistic, self.clause.most) is False
        if hour.missed or is_above:
            heapq.heappush(self._worst, (hour.missed, hour.value_ns or 0.0, hour.begin_ns, hour))
            if len(self._worst) > WORST_MAX:
                heapq.heappop(self._worst)

    def _places(self, begin_ns: int) -> tuple[Minutes, Minutes, Minutes]:
        """Where minutes of a time are counted."""
        day = _span(self.days, begin_ns // DAY_NS * DAY_NS)
        return self.minutes, day.minutes, self._month(begin_ns).minutes

    def _month(self, begin_ns: int) -> JudgedSpan:
        return _span(self.months, month_begin_ns(begin_ns))

    # What the clause came to

    def met(self) -> bool | None:
        """Whether the clause is kept; None where the unknown minutes decide, or none counts."""
        minutes, allowed = self.minutes, self.clause.allowed * self.minutes.counted
        if minutes.missed > allowed + 1e-9:
            return False
        return True if minutes.counted and minutes.missed + minutes.unknown_sum <= allowed + 1e-9 else None

    def left_minutes(self) -> float:
        """Minutes in breach that the contract still allows of the time that counted."""
        return max(self.clause.allowed * self.minutes.counted - self.minutes.missed, 0.0)

    def value_words(self) -> str:
        """The statistic of all counted I/Os."""
        return format_latency(self.times.value_ns(self.clause.statistic))


def _span(spans: dict[int, JudgedSpan], begin_ns: int) -> JudgedSpan:
    found = spans.get(begin_ns)
    if found is None:
        found = spans[begin_ns] = JudgedSpan(begin_ns)
    return found


def month_of(time_ns: int) -> int:
    """Number of a month in UTC, from year 0.

    Examples
    --------
    >>> month_of(0) == 1970 * 12
    True
    """
    when = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return when.year * 12 + when.month - 1


def month_begin_ns(time_ns: int) -> int:
    """When the month of a time begins, UTC."""
    number = month_of(time_ns)
    return round(datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()) * 10**9
