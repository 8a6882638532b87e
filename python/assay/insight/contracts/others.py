"""Clauses other than latency, judged over a recording: what was reached, stood still, was rebuilt; else unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.base.units import format_decimal, format_duration, format_iops, format_throughput
from assay.document.text import joined, moment
from assay.insight.contracts.contract import StorageContract
from assay.insight.contracts.intervals import JudgedInterval, maintenance_in
from assay.insight.contracts.words import percent_words

QUARTER_NS = 15 * 60 * 10**9
NOT_ASKED = "the storage serves no more than it is asked for; assay profile asks for all of it"


@dataclass(frozen=True)
class ClauseFinding:
    """What a clause came to: kept, broken or unknown, what was found, and why it is unknown."""

    met: bool | None
    found: str
    why: str = ""


@dataclass(slots=True)
class Peak:
    """The most that was reached, and when."""

    value: float = 0.0
    at_ns: int = 0

    def take(self, value: float, at_ns: int) -> None:
        """Keep a value that is larger."""
        if value > self.value:
            self.value, self.at_ns = value, at_ns


@dataclass(slots=True)
class RebuildSeen:
    """A rebuild: when it was seen first and until when, and how far off both may be."""

    begin_ns: int
    end_ns: int
    within_ns: int


@dataclass(slots=True)
class RecordedFacts:
    """What clauses other than latency hang on, of intervals in the order of time; memory grows with rebuilds alone.

    Attributes
    ----------
    total_ns, unrecorded_ns, excluded_ns
        Time of the recording without maintenance; of it what was not recorded; maintenance.
    stalled_ns
        Time in which I/Os were outstanding and none ended: its least and its most.
    """

    contract: StorageContract
    iops: Peak = field(default_factory=Peak)
    throughput: dict[str, Peak] = field(default_factory=lambda: {"read": Peak(), "write": Peak()})
    rebuilds: list[RebuildSeen] = field(default_factory=list)
    total_ns: int = 0
    unrecorded_ns: int = 0
    excluded_ns: int = 0
    stalled_ns: tuple[float, float] = (0.0, 0.0)
    errors: float = 0.0
    begin_ns: int = 0
    end_ns: int = 0
    _lacking_ns: int = 0

    def take(self, one: JudgedInterval) -> None:
        """Add an interval."""
        self.iops.take(one.iops, one.begin_ns)
        for side, peak in self.throughput.items():
            peak.take(one.bytes_per_s(side), one.begin_ns)
        self.errors += one.errors
        self._take_rebuild(one)
        if self.end_ns:
            self._take_gap(self.end_ns, one.begin_ns)
        else:
            self.begin_ns = one.end_ns - min(one.covered_ns, one.length_ns)
        first, self.end_ns = not self.end_ns, one.end_ns
        if maintenance_in(self.contract.exclude, one.begin_ns, one.end_ns):
            self.excluded_ns += one.length_ns
            return
        # What lacks in the last interval is its end, which is no gap; in the first it is its beginning.
        self.unrecorded_ns, self._lacking_ns = self.unrecorded_ns + self._lacking_ns, 0
        if first:
            self.total_ns += one.covered_ns
        else:
            self.total_ns += one.length_ns
            lacking_ns = one.length_ns - one.covered_ns
            # Samples do not end with the interval: what is less than a few of them is no gap.
            self._lacking_ns = lacking_ns if lacking_ns > max(3 * 10**9, one.length_ns // 100) else 0
        low, high = self.stalled_ns
        self.stalled_ns = (low + one.stalled_ns[0], high + one.stalled_ns[1])

    def end(self) -> None:
        """Take the last interval for as long as it was recorded."""
        self.total_ns, self.end_ns = self.total_ns - self._lacking_ns, self.end_ns - self._lacking_ns
        self._lacking_ns = 0

    def _take_gap(self, from_ns: int, to_ns: int) -> None:
        while from_ns < to_ns:
            end_ns = min(from_ns // QUARTER_NS * QUARTER_NS + QUARTER_NS, to_ns)
            if maintenance_in(self.contract.exclude, from_ns, end_ns):
                self.excluded_ns += end_ns - from_ns
            else:
                self.total_ns += end_ns - from_ns
                self.unrecorded_ns += end_ns - from_ns
            from_ns = end_ns

    def _take_rebuild(self, one: JudgedInterval) -> None:
        if not one.rebuilt_bytes:
            return
        last = self.rebuilds[-1] if self.rebuilds else None
        if last is not None and one.begin_ns - last.end_ns <= one.length_ns:
            last.end_ns = one.end_ns
        else:
            self.rebuilds.append(RebuildSeen(one.begin_ns, one.end_ns, 2 * one.length_ns))

    def iops_finding(self, least: float) -> ClauseFinding:
        """Whether so many I/Os a second were served once."""
        if not self.iops.value:
            return ClauseFinding(None, "no I/O was recorded", NOT_ASKED)
        found = f"at most {format_iops(self.iops.value)} IOPS over an interval, at {moment(self.iops.at_ns)}"
        return ClauseFinding(True, found) if self.iops.value >= least else ClauseFinding(None, found, NOT_ASKED)

    def throughput_finding(self, side: str, least: float) -> ClauseFinding:
        """Whether so many bytes a second were served once."""
        peak = self.throughput[side]
        if not peak.value:
            return ClauseFinding(None, f"no {side}s were recorded", NOT_ASKED)
        found = f"at most {format_throughput(peak.value)} over an interval, at {moment(peak.at_ns)}"
        return ClauseFinding(True, found) if peak.value >= least else ClauseFinding(None, found, NOT_ASKED)

    def rebuild_finding(self, most_s: float) -> ClauseFinding:
        """Whether every rebuild that was seen took no longer."""
        if not self.rebuilds:
            why = "no rebuild of an md RAID was recorded; arrays of other kinds do not tell the host of theirs"
            return ClauseFinding(None, "no rebuild", why)
        longest = max(self.rebuilds, key=lambda one: one.end_ns - one.begin_ns)
        most_ns, seen_ns = most_s * 1e9, longest.end_ns - longest.begin_ns
        found = f"{len(self.rebuilds)} seen; the longest took {format_duration(seen_ns / 1e9)}"
        found += f" at most, from {moment(longest.begin_ns)}"
        if seen_ns <= most_ns:
            return ClauseFinding(True, found)
        if seen_ns - longest.within_ns > most_ns:
            return ClauseFinding(False, found)
        return ClauseFinding(None, found, "the intervals that were recorded are too long to tell")

    def availability_finding(self, least: float) -> ClauseFinding:
        """Whether the storage answered for such a share of the time, at the least and at the most."""
        if not self.total_ns:
            return ClauseFinding(None, "no time counts", "all of the recording is maintenance")
        low_ns, high_ns = self.stalled_ns
        if self.contract.assumed.unrecorded == "unknown":
            high_ns += self.unrecorded_ns
        worst, best = 1 - min(high_ns / self.total_ns, 1.0), 1 - low_ns / self.total_ns
        span = percent_words(worst) if worst == best else f"{percent_words(worst)} to {percent_words(best)}"
        found = f"available {span} of {format_duration(self.total_ns / 1e9)}"
        if worst >= least:
            return ClauseFinding(True, found)
        if best < least:
            return ClauseFinding(False, found)
        whys = []
        if self.unrecorded_ns:
            whys.append(f"{format_duration(self.unrecorded_ns / 1e9)} were not recorded")
        if self.stalled_ns[1] > self.stalled_ns[0]:
            idle_s = (self.stalled_ns[1] - self.stalled_ns[0]) / 1e9
            whys.append(f"in {format_duration(idle_s)} no I/O ended, and whether one was outstanding is not known")
        return ClauseFinding(None, found, joined(whys))

    def loss_finding(self) -> ClauseFinding:
        """What a recording says of lost data: errors, never their absence."""
        found = "no failed I/O or media error was recorded" if not self.errors else (
            f"{math.ceil(self.errors):,} failed I/Os or media errors were recorded"
        )  # fmt: skip
        why = "a recording counts I/Os and does not see what is in them; assay verify checks data"
        return ClauseFinding(None, found, why)

    def capacity_finding(self, sizes: Mapping[str, float]) -> ClauseFinding:
        """Whether the file systems of the contract add up to the capacity."""
        clause = self.contract.capacity
        assert clause is not None
        if not clause.mounts:
            return ClauseFinding(None, "no size was asked of the recording", "[capacity] mounts names no file systems")
        lacking = [name for name in clause.mounts if name not in sizes]
        if lacking:
            return ClauseFinding(None, "not all sizes were recorded", f"{joined(lacking)} is not in the recording")
        size = math.fsum(sizes[name] for name in clause.mounts)
        return ClauseFinding(size >= clause.least, f"{format_decimal(size)} at the least")

    def power_finding(self) -> ClauseFinding:
        """Whether a meter showed no more than is promised."""
        clause, capacity_tb = self.contract.power, self.contract.capacity_tb
        assert clause is not None
        assert capacity_tb is not None
        if clause.measured is None:
            return ClauseFinding(
                None, "not measured", "no collector reads a meter; [power] measured takes what one showed"
            )
        per_tb = clause.measured / capacity_tb
        return ClauseFinding(per_tb <= clause.most_per_tb, f"{per_tb:.3g} W/TB, as measured on a meter")
