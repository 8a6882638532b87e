"""For every ladder the smallest size that holds a need; and of these the purchase, the smallest and the fastest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from assay.insight.sizing.allowance import ALL_IOS, LATENCY_SHARE, SEARCH_SHARE, Allowance, GaveUp, shared
from assay.insight.sizing.candidates import (
    Ladder,
    LadderStep,
    RejectionReason,
    disk_share,
    ladders,
    pool_configuration,
    pools_of,
    static_reasons,
)
from assay.insight.sizing.demand import PeakDemand, demand_of, refuse_beyond
from assay.insight.sizing.judge import Judge, questions
from assay.insight.sizing.need import Need

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
    gave_up
        Why a size was not asked that would have to be.
    unasked
        That size.
    """

    ladder: Ladder
    step: LadderStep | None
    rejected: tuple[tuple[LadderStep, tuple[RejectionReason, ...]], ...] = ()
    asked: int = 0
    gave_up: GaveUp | None = None
    unasked: LadderStep | None = None


@dataclass(kw_only=True)
class Outcome:
    """A need with all that may be bought for it.

    Attributes
    ----------
    given_up
        In sentences, what was not asked because it takes too many simulated I/Os.
    spent_ios
        Simulated I/Os that the search asked for.
    """

    need: Need
    demand: PeakDemand
    found: list[Found] = field(default_factory=list)
    refused: list[tuple[str, RejectionReason]] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    latencies_s: dict[str, float] = field(default_factory=dict)
    spent_ios: float = 0.0

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

    def cost_key(self, ladder: Ladder, step: LadderStep) -> tuple[float, ...]:
        """Sort key of the purchase: cost (or disks), then disks, members, paths, volumes."""
        cost = ladder.cost(step) if self.has_costs else None
        first = float(ladder.disks(step)) if cost is None else cost
        return (first, ladder.disks(step), step.members, ladder.paths or 0, ladder.volumes)

    def size_key(self, ladder: Ladder, step: LadderStep) -> tuple[float, ...]:
        """Sort key of the smallest: rack units (or members), then disks, paths, volumes."""
        height = ladder.rack_units(step) if self.has_rack_units else None
        first = float(step.members) if height is None else height
        return (first, ladder.disks(step), ladder.paths or 0, ladder.volumes)

    @property
    def purchase(self) -> Found | None:
        """The holder that costs least, or without costs has fewest disks."""
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
    def nearest(self) -> tuple[Ladder, LadderStep, tuple[RejectionReason, ...]] | None:
        """What comes nearest to holding the need where nothing does: the least that is missing."""
        missing = [
            (max(reason.share for reason in reasons), number, (one.ladder, step, reasons))
            for number, one in enumerate(self.found)
            for step, reasons in one.rejected
        ]
        return min(missing)[2] if missing else None


def _step(found: Found) -> LadderStep:
    assert found.step is not None
    return found.step


@dataclass(frozen=True)
class LatencyAtDemand:
    """Mean latency of a holder at the demand; None where it was not asked."""

    seconds: float | None
    gave_up: GaveUp | None = None


def search(need: Need, judge: Judge, tell: Callable[[str], None] = lambda _: None, *, ios: float = ALL_IOS) -> Outcome:
    """Look at all that may be bought, on all cores.

    Parameters
    ----------
    ios
        Simulated I/Os that all searches of the need may ask for.

    Raises
    ------
    UsageError
        A candidate is unknown or impossible.
    Interrupted
        The judge's `interrupt` was set.
    """
    refuse_beyond(need)
    found, refused = ladders(need)
    outcome = Outcome(need=need, demand=demand_of(need, need.years), refused=refused)
    searches = [partial(_least_within, need, ladder, outcome.demand, judge) for ladder in found]
    with ThreadPoolExecutor(cores(), thread_name_prefix="assay-size") as pool:
        run = partial(at_once, pool, judge)
        outcome.found, outcome.spent_ios = shared(
            ios * SEARCH_SHARE, searches, partial(run, tell=lambda one: tell(_told(one))), judge.known
        )
        asked = [partial(_latency_within, need, one, outcome.demand, judge) for one in outcome.holders]
        timed, spent = shared(ios * LATENCY_SHARE, asked, run, judge.known)
    outcome.spent_ios += spent
    for one, latency in zip(outcome.holders, timed, strict=True):
        if latency.seconds is not None:
            outcome.latencies_s[one.ladder.label(_step(one))] = latency.seconds
        else:
            outcome.given_up.append(f"{one.ladder.label(_step(one))}: its latency is not known: {latency.gave_up}")
    outcome.given_up += [_gave_up(one) for one in outcome.found if one.gave_up is not None]
    return outcome


Result = TypeVar("Result")


def at_once(
    pool: ThreadPoolExecutor,
    judge: Judge,
    works: Sequence[Callable[[], Result]],
    *,
    tell: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Run works on all cores and tell of each as it ends; one that fails ends all."""
    asked = [pool.submit(work) for work in works]
    try:
        for done in as_completed(asked):
            tell(done.result())
    except BaseException:
        judge.interrupt.set()
        raise
    return [one.result() for one in asked]


def _least_within(need: Need, ladder: Ladder, demand: PeakDemand, judge: Judge, allowance: Allowance) -> Found:
    return least(need, ladder, demand, judge.within(allowance))


def _latency_within(
    need: Need, found: Found, demand: PeakDemand, judge: Judge, allowance: Allowance
) -> LatencyAtDemand:
    try:
        return LatencyAtDemand(_latency_s(need, found, demand, judge.within(allowance)))
    except GaveUp as error:
        return LatencyAtDemand(None, error)


def _gave_up(found: Found) -> str:
    """What is not known of a ladder whose search gave up."""
    assert found.unasked is not None
    asked = f"{found.ladder.label(found.unasked)} was not asked"
    if found.step is None:
        return f"{asked}, so whether any size of it holds the need is not known: {found.gave_up}"
    return f"{asked}, so a smaller size than {found.ladder.label(found.step)} may hold the need: {found.gave_up}"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _told(found: Found) -> str:
    if found.gave_up is not None:
        return f"{found.ladder.name}: takes more simulated I/Os than it has"
    if found.step is not None:
        return f"held by {found.ladder.label(found.step)}"
    return f"held by no size of {found.ladder.name}"


def least(need: Need, ladder: Ladder, demand: PeakDemand, judge: Judge, *, known: LadderStep | None = None) -> Found:
    """The smallest size of a ladder that holds a demand. A larger size holds whatever a smaller one does.

    Where the judge's allowance does not reach, it is the smallest of those that were asked.

    Parameters
    ----------
    known
        A size of the ladder that is known to hold the demand, and is not asked.
    """
    steps = ladder.steps
    loaded = demand.times(1 + need.head_room)
    rejected: dict[int, tuple[RejectionReason, ...]] = {}
    held: list[int] = []
    asked = 0

    def static(place: int) -> tuple[RejectionReason, ...]:
        return tuple(static_reasons(need, ladder, steps[place], demand, loaded))

    def holds(place: int) -> bool:
        nonlocal asked
        asked = place
        reasons = tuple(judge.reasons(need, ladder, steps[place], demand))
        if reasons:
            rejected[place] = reasons
        else:
            held.append(place)
        return not reasons

    low = _first(len(steps), lambda place: not static(place))
    if low > 0:
        rejected[low - 1] = static(low - 1)
    gave_up = None
    if known in steps and steps.index(known) >= low:
        held.append(steps.index(known))
    try:
        start = _estimate(need, ladder, demand, low)
        found = _bracket(low, start, len(steps), holds, *held) if low < len(steps) else None
    except GaveUp as error:
        found, gave_up = min(held, default=None), error
    told = tuple((steps[place], rejected[place]) for place in sorted(rejected))
    made = Found(ladder=ladder, step=None if found is None else steps[found], rejected=told, asked=len(rejected))
    return made if gave_up is None else replace(made, gave_up=gave_up, unasked=steps[asked])


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first place that holds, of places of which all after it do; their number where none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _bracket(low: int, start: int, count: int, holds: Callable[[int], bool], found: int | None = None) -> int | None:
    """The first place from `low` on that holds, looked for around `start`: in growing strides, then by halves.

    `found` is a place that is known to hold.
    """
    fails = low - 1
    place, stride = start if found is None else max(min(start, found - 1), low), 1
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


def _estimate(need: Need, ladder: Ladder, demand: PeakDemand, low: int) -> int:
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


def _latency_s(need: Need, found: Found, demand: PeakDemand, judge: Judge) -> float:
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


@dataclass(frozen=True)
class Headroom:
    """How many times a demand is held; where the search for it gave up, at least that."""

    times: float
    gave_up: GaveUp | None = None


def capacity_factor(
    need: Need, ladder: Ladder, step: LadderStep, demand: PeakDemand, judge: Judge, *, known: float = 1.0
) -> Headroom:
    """How many times the demand a healthy size holds within the limits, to 3 %.

    Parameters
    ----------
    known
        A factor that it holds.

    Returns
    -------
    Headroom
        At most `FACTOR_MOST`, which stands for any more.
    """
    holds_factor = known

    def holds(factor: float) -> bool:
        return not judge.state_reasons(need, ladder, step, demand.times(factor))

    try:
        fails = known
        while fails < FACTOR_MOST:
            fails = min(fails * 1.25, FACTOR_MOST)
            if not holds(fails):
                break
            holds_factor = fails
        else:
            return Headroom(holds_factor)
        while fails / holds_factor > 1.03:
            middle = math.sqrt(fails * holds_factor)
            holds_factor, fails = (middle, fails) if holds(middle) else (holds_factor, middle)
    except GaveUp as error:
        return Headroom(holds_factor, error)
    return Headroom(holds_factor)
