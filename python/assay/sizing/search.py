"""Finds, for every ladder, the smallest size that holds a need; and of these the cheapest, smallest and fastest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from assay.sizing.candidates import (
    Ladder,
    Reason,
    Step,
    disk_share,
    ladders,
    pool_configuration,
    pools_of,
    static_reasons,
)
from assay.sizing.demand import Demand, demand_of
from assay.sizing.judge import Judge, questions
from assay.sizing.need import Need

ESTIMATE_SHARE = 0.6
"""The share of its lower bound on disk time at which an array usually reaches its limits: where a search begins."""


FACTOR_MOST = 16.0
"""More than so many times the need is not asked for."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What came of a ladder.

    Attributes
    ----------
    step
        Its smallest size that holds the need; None where none does.
    rejected
        Sizes that were looked at and do not, with their reasons, the largest last.
    """

    ladder: Ladder
    step: Step | None
    rejected: tuple[tuple[Step, tuple[Reason, ...]], ...] = ()
    asked: int = 0


@dataclass(kw_only=True)
class Outcome:
    """A need with all that may be bought for it."""

    need: Need
    demand: Demand
    found: list[Found] = field(default_factory=list)
    refused: list[tuple[str, Reason]] = field(default_factory=list)
    latencies_s: dict[str, float] = field(default_factory=dict)

    @property
    def holders(self) -> list[Found]:
        """Ladders of which a size holds the need."""
        return [one for one in self.found if one.step is not None]

    @property
    def has_costs(self) -> bool:
        """Whether every holder has a cost; without them disks stand for it."""
        return bool(self.holders) and all(one.ladder.cost(_step(one)) is not None for one in self.holders)

    @property
    def has_rack_units(self) -> bool:
        """Whether every holder has a height; without them members and disks stand for it."""
        return bool(self.holders) and all(one.ladder.rack_units(_step(one)) is not None for one in self.holders)

    def cost_key(self, ladder: Ladder, step: Step) -> tuple[float, ...]:
        """By which the cheapest is found: cost, else disks; then disks, then the rest of the choice."""
        cost = ladder.cost(step) if self.has_costs else None
        first = float(ladder.disks(step)) if cost is None else cost
        return (first, ladder.disks(step), step.members, ladder.paths or 0, ladder.volumes)

    def size_key(self, ladder: Ladder, step: Step) -> tuple[float, ...]:
        """By which the smallest is found: rack units, else members; then disks."""
        height = ladder.rack_units(step) if self.has_rack_units else None
        first = float(step.members) if height is None else height
        return (first, ladder.disks(step), ladder.paths or 0, ladder.volumes)

    @property
    def cheapest(self) -> Found | None:
        """The holder that costs least."""
        return min(self.holders, key=lambda one: self.cost_key(one.ladder, _step(one)), default=None)

    @property
    def smallest(self) -> Found | None:
        """The holder that takes least room."""
        return min(self.holders, key=lambda one: self.size_key(one.ladder, _step(one)), default=None)

    @property
    def fastest(self) -> Found | None:
        """The holder that answers soonest at the need."""
        timed = [one for one in self.holders if one.ladder.label(_step(one)) in self.latencies_s]
        return min(timed, key=lambda one: self.latencies_s[one.ladder.label(_step(one))], default=None)

    @property
    def nearest(self) -> tuple[Ladder, Step, tuple[Reason, ...]] | None:
        """What comes nearest to holding the need where nothing does: the least that is missing."""
        missing = [
            (max(reason.share for reason in reasons), number, (one.ladder, step, reasons))
            for number, one in enumerate(self.found)
            for step, reasons in one.rejected
        ]
        return min(missing)[2] if missing else None


def _step(found: Found) -> Step:
    assert found.step is not None
    return found.step


def search(need: Need, judge: Judge, tell: Callable[[str], None] = lambda _: None) -> Outcome:
    """Look at all that may be bought, on all cores.

    Raises
    ------
    UsageError
        A candidate is unknown or impossible.
    Interrupted
        The judge's `interrupt` was set.
    """
    found, refused = ladders(need)
    outcome = Outcome(need=need, demand=demand_of(need, need.years), refused=refused)
    with ThreadPoolExecutor(cores(), thread_name_prefix="assay-size") as pool:
        asked = {pool.submit(least, need, ladder, outcome.demand, judge): ladder for ladder in found}
        try:
            for done in as_completed(asked):
                tell(_told(done.result()))
        except BaseException:
            judge.interrupt.set()
            raise
        outcome.found = [one.result() for one in asked]
        timed = pool.map(lambda one: _latency_s(need, one, outcome.demand, judge), outcome.holders)
        outcome.latencies_s = {
            one.ladder.label(_step(one)): value for one, value in zip(outcome.holders, timed, strict=True)
        }
    return outcome


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _told(found: Found) -> str:
    if found.step is not None:
        return f"held by {found.ladder.label(found.step)}"
    return f"held by no size of {found.ladder.name}"


def least(need: Need, ladder: Ladder, demand: Demand, judge: Judge) -> Found:
    """The smallest size of a ladder that holds a demand. A larger size holds whatever a smaller one does."""
    steps = ladder.steps
    loaded = demand.times(1 + need.head_room)
    rejected: dict[int, tuple[Reason, ...]] = {}

    def static(place: int) -> tuple[Reason, ...]:
        return tuple(static_reasons(need, ladder, steps[place], demand, loaded))

    def holds(place: int) -> bool:
        reasons = tuple(judge.reasons(need, ladder, steps[place], demand))
        if reasons:
            rejected[place] = reasons
        return not reasons

    low = _first(len(steps), lambda place: not static(place))
    if low > 0:
        rejected[low - 1] = static(low - 1)
    found = _bracket(low, _estimate(need, ladder, demand, low), len(steps), holds) if low < len(steps) else None
    told = tuple((steps[place], rejected[place]) for place in sorted(rejected))
    return Found(ladder=ladder, step=None if found is None else steps[found], rejected=told, asked=len(rejected))


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first place that holds, of places of which all after it do; their number where none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _bracket(low: int, start: int, count: int, holds: Callable[[int], bool]) -> int | None:
    """The first place from `low` on that holds, looked for around `start`: in growing strides, then by halves."""
    fails, found = low - 1, None
    place, stride = start, 1
    while fails + 1 < (count if found is None else found):
        if holds(place):
            found = place
        else:
            fails = place
        if found is None:
            place = min(place + stride, count - 1)
        elif fails < low:
            place = max(found - stride, low)
        else:
            place = (fails + found) // 2
        stride *= 2
    return found


def _estimate(need: Need, ladder: Ladder, demand: Demand, low: int) -> int:
    """The place where a search begins: where the least time of the disks is a usual share of what they have."""
    loaded = demand.times(1 + need.head_room)

    def fits(place: int) -> bool:
        pools = pools_of(ladder, ladder.steps[place], demand)
        return all(
            disk_share(pool, [one for one in phase if len(pools) == 1 or one.role == pool.role], demand)
            <= ESTIMATE_SHARE
            for pool in pools
            for phase in loaded.phases
        )

    return max(low, min(_first(len(ladder.steps), fits), len(ladder.steps) - 1))


def _latency_s(need: Need, found: Found, demand: Demand, judge: Judge) -> float:
    """Mean latency of random I/O of a holder at the demand; infinite where there is none."""
    total = weight = 0.0
    for pool, phase in questions(found.ladder, _step(found), demand):
        array = pool_configuration(need, found.ladder, _step(found), demand, pool)
        for one, told in zip(phase, judge.seen(array, phase).streams, strict=False):
            if one.read_limit_s is None:
                continue
            for value, share in ((told.read_s, one.read_share), (told.write_s, 1 - one.read_share)):
                if value is not None:
                    total, weight = total + value * one.rate * share, weight + one.rate * share
    return total / weight if weight else math.inf


def capacity_factor(
    need: Need, ladder: Ladder, step: Step, demand: Demand, judge: Judge, *, known: float = 1.0
) -> float:
    """How many times the demand a healthy size holds within the limits, to 3 %.

    Parameters
    ----------
    known
        A factor that it holds.

    Returns
    -------
    float
        At most `FACTOR_MOST`, which stands for any more.
    """
    holds_factor = known

    def holds(factor: float) -> bool:
        return not judge.state_reasons(need, ladder, step, demand.times(factor))

    fails = known
    while fails < FACTOR_MOST:
        fails = min(fails * 1.25, FACTOR_MOST)
        if not holds(fails):
            break
        holds_factor = fails
    else:
        return holds_factor
    while fails / holds_factor > 1.03:
        middle = math.sqrt(fails * holds_factor)
        holds_factor, fails = (middle, fails) if holds(middle) else (holds_factor, middle)
    return holds_factor
