"""Intervals of a contract: what the promised devices did in each, and whether it counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby

from assay.base.units import format_bytes, format_iops, format_share
from assay.insight.contracts.contract import Exclusions, LatencyClause, StorageContract
from assay.insight.contracts.recorded import DIRECTIONS, RecordedStep
from assay.insight.contracts.times import IoTimes

NO_RANDOM = "whether reads were random is not recorded"


@dataclass(slots=True)
class JudgedInterval:
    """One interval of a contract, all devices together.

    Attributes
    ----------
    is_coarse
        Whether the contract's intervals are shorter than what is kept of this time.
    covered_ns
        Time that was recorded.
    ios, moved
        I/Os and bytes by direction.
    times, counters
        As of `DeviceStep`.
    """

    begin_ns: int
    length_ns: int
    is_coarse: bool = False
    covered_ns: int = 0
    ios: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0.0))
    moved: dict[str, float] = field(default_factory=lambda: dict.fromkeys(DIRECTIONS, 0.0))
    times: dict[str, IoTimes] = field(default_factory=lambda: {side: IoTimes() for side in DIRECTIONS})
    counters: dict[str, IoTimes] = field(default_factory=lambda: {side: IoTimes() for side in DIRECTIONS})
    stalled_ns: tuple[float, float] = (0.0, 0.0)
    rebuilt_bytes: float = 0.0
    errors: float = 0.0

    def add(self, step: RecordedStep) -> None:
        """Add a step that lies in the interval."""
        self.covered_ns += step.covered_ns
        for side in DIRECTIONS:
            self.ios[side] += step.ios(side)
            self.moved[side] += step.moved(side)
            self.times[side].add(step.times(side))
            self.counters[side].add(step.counters(side))
        low, high = step.stalled_ns
        self.stalled_ns = (self.stalled_ns[0] + low, self.stalled_ns[1] + high)
        self.rebuilt_bytes += step.rebuilt_bytes
        self.errors += step.errors

    @property
    def end_ns(self) -> int:
        """When it ends."""
        return self.begin_ns + self.length_ns

    @property
    def minutes(self) -> float:
        """Minutes that were recorded."""
        return self.covered_ns / 60e9

    @property
    def all_ios(self) -> float:
        """I/Os of both directions."""
        return sum(self.ios.values())

    @property
    def iops(self) -> float:
        """I/Os a second."""
        return self.all_ios / self.covered_ns * 1e9 if self.covered_ns else 0.0

    def bytes_per_s(self, side: str) -> float:
        """Throughput of a direction."""
        return self.moved[side] / self.covered_ns * 1e9 if self.covered_ns else 0.0

    @property
    def block_bytes(self) -> float:
        """Mean size of an I/O; 0 without I/Os."""
        return sum(self.moved.values()) / self.all_ios if self.all_ios else 0.0

    @property
    def read_share(self) -> float:
        """Share of reads; 0 without I/Os."""
        return self.ios["read"] / self.all_ios if self.all_ios else 0.0


def intervals_of(steps: Iterable[RecordedStep], interval_ns: int) -> Iterator[JudgedInterval]:
    """Put steps together to intervals; one that is longer than an interval stays one of its own, which is coarse."""

    def key(step: RecordedStep) -> tuple[int, int]:
        length_ns = max(interval_ns, step.length_ns)
        return step.begin_ns // length_ns * length_ns, length_ns

    for (begin_ns, length_ns), own in groupby(steps, key=key):
        found = JudgedInterval(begin_ns, length_ns, is_coarse=length_ns > interval_ns)
        for step in own:
            found.add(step)
        yield found


@dataclass(frozen=True, slots=True)
class Counting:
    """Whether an interval counts: `excluded` or `undecided` says why not, or why that is unknown."""

    excluded: str = ""
    undecided: str = ""


COUNTS = Counting()


def maintenance_in(exclude: Exclusions, begin_ns: int, end_ns: int) -> str:
    """Find the maintenance that an interval touches; an empty text where none does."""
    for window in exclude.maintenance:
        if window.begin < end_ns and begin_ns < window.end:
            return window.why
    if exclude.weekly:
        # An interval lies within one hour of UTC.
        begins = datetime.fromtimestamp(begin_ns // 10**9, UTC)
        for weekly in exclude.weekly:
            # Hours after midnight belong to the day on which the window begins.
            yesterday = begins.hour < _first(weekly.hours)
            if begins.hour in weekly.hours and (begins.weekday() - yesterday) % 7 == weekly.day:
                return weekly.why
    return ""


def _first(hours: tuple[int, ...]) -> int:
    """Hour at which hours over midnight begin; 0 of hours of one day.

    Examples
    --------
    >>> _first((0, 1, 22, 23)), _first(tuple(range(24))), _first((2, 3))
    (22, 0, 0)
    """
    if not {0, 23} <= {*hours}:
        return 0
    return next((hour for hour in hours if hour and hour - 1 not in hours), 0)


def counting(contract: StorageContract, clause: LatencyClause, one: JudgedInterval) -> Counting:
    """Whether an interval counts for a clause of latency: the first reason that excludes it."""
    exclude = contract.exclude
    if why := maintenance_in(exclude, one.begin_ns, one.end_ns):
        return Counting(f"maintenance: {why}")
    if not one.ios[clause.direction]:
        return Counting(f"no {clause.direction}s")
    if exclude.below_iops is not None and one.iops < exclude.below_iops:
        return Counting(f"below {format_iops(exclude.below_iops)} IOPS")
    if exclude.above_block is not None and one.block_bytes > exclude.above_block:
        return Counting(f"I/Os above {format_bytes(exclude.above_block)}")
    if why := _beyond(contract, clause, one):
        return Counting(why)
    return _random_reads(contract, one)


def _beyond(contract: StorageContract, clause: LatencyClause, one: JudgedInterval) -> str:
    """Why an interval has another load than a clause is promised for."""
    blocks, reads = clause.blocks, clause.reads
    if blocks is not None and not blocks[0] <= one.block_bytes <= blocks[1]:
        return f"I/Os not of {format_bytes(blocks[0])} to {format_bytes(blocks[1])}"
    if reads is not None and not reads[0] <= one.read_share <= reads[1]:
        return f"reads not {format_share(reads[0])} to {format_share(reads[1])} of the I/Os"
    most = load_of(contract, clause)
    if most is not None and one.iops > most:
        return f"above the promised {format_iops(most)} IOPS"
    return ""


def load_of(contract: StorageContract, clause: LatencyClause) -> float | None:
    """Load up to which a latency is promised, I/Os a second; None where it is promised at any."""
    if clause.iops_per_tb is not None and contract.capacity_tb is not None:
        return clause.iops_per_tb * contract.capacity_tb
    return clause.iops


def _random_reads(contract: StorageContract, one: JudgedInterval) -> Counting:
    least = contract.exclude.below_random_reads
    if least is None:
        return COUNTS
    why = f"random reads below {format_share(least)}"
    if one.read_share < least:
        return Counting(why)
    random = contract.assumed.random_reads
    if random is None:
        return Counting(undecided=NO_RANDOM)
    return Counting(why) if one.read_share * random < least else COUNTS
