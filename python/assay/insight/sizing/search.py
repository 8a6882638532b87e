"""For every ladder the smallest size that holds a need; and of these the purchase, the smallest and the fastest."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from assay.insight.sizing.allowance import ALL_IOS, LATENCY_SHARE, SEARCH_SHARE, Allowance, GaveUp, shared
from assay.insight.sizing.candidates import ladders
from assay.insight.sizing.demand import PeakDemand, demand_of, refuse_beyond
from assay.insight.sizing.judge import Judge, questions
from assay.insight.sizing.ladder import Ladder, LadderStep, RefusedLadder, RejectionReason, Side
from assay.insight.sizing.need import Need
from assay.insight.sizing.price_book import PriceBook

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
    unneeded
        The smallest size that may hold the need, which was not asked because others cost less or have fewer disks.
    """

    ladder: Ladder
    step: LadderStep | None
    rejected: tuple[tuple[LadderStep, tuple[RejectionReason, ...]], ...] = ()
    asked: int = 0
    gave_up: GaveUp | None = None
    unasked: LadderStep | None = None
    unneeded: LadderStep | None = None


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
    book: PriceBook | None = None
    found: list[Found] = field(default_factory=list)
    refused: list[RefusedLadder] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    latencies_s: dict[str, float] = field(default_factory=dict)
    spent_ios: float = 0.0

    @property
    def holders(self) -> list[Found]:
        """Ladders of which a size holds the need."""
        return [one for one in self.found if one.step is not None]

    @property
    def has_costs(self) -> bool:
        """Whether any holder has a cost; without one disks stand for it."""
        return any(one.ladder.cost(_step(one)) is not None for one in self.holders)

    @property
    def has_rack_units(self) -> bool:
        """Whether every holder with disks has a height; without them members and disks stand for it."""
        own = self.of_side("on-premises")
        return bool(own) and all(one.ladder.rack_units(_step(one)) is not None for one in own)

    def of_side(self, side: Side) -> list[Found]:
        """Holders on one's own premises, or of clouds."""
        return [one for one in self.holders if one.ladder.side == side]

    def cost_key(self, ladder: Ladder, step: LadderStep) -> tuple[float, ...]:
        """Sort key of the purchase: cost, and where none is known disks; those whose cost is known come first."""
        cost = ladder.cost(step) if self.has_costs else None
        return (math.inf if cost is None else cost, ladder.side == "cloud", *ladder.rank(step))

    def size_key(self, ladder: Ladder, step: LadderStep) -> tuple[float, ...]:
        """Sort key of the smallest: rack units (or members), then disks and the rest."""
        height = ladder.rack_units(step) if self.has_rack_units else None
        return (float(step.members) if height is None else height, *ladder.rank(step))

    def best(self, holders: Sequence[Found]) -> Found | None:
        """The one that costs least, or without costs has fewest disks."""
        return min(holders, key=lambda one: self.cost_key(one.ladder, _step(one)), default=None)

    @property
    def purchase(self) -> Found | None:
        """The best of all."""
        return self.best(self.holders)

    @property
    def smallest(self) -> Found | None:
        """The holder that takes least room; a cloud's volumes take none, and are not among them."""
        return min(self.of_side("on-premises"), key=lambda one: self.size_key(one.ladder, _step(one)), default=None)

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


def search(
    need: Need,
    judge: Judge,
    tell: Callable[[str], None] = lambda _: None,
    *,
    ios: float = ALL_IOS,
    book: PriceBook | None = None,
) -> Outcome:
    """Look at all that may be bought, on all cores.

    Of the catalogue's classes what cannot win is not asked; candidates that a need states are.

    Parameters
    ----------
    book
        Prices; None for those that the need states alone.
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
    found, refused = ladders(need, book)
    outcome = Outcome(need=need, demand=demand_of(need, need.years), refused=refused, book=book)
    with ThreadPoolExecutor(cores(), thread_name_prefix="assay-size") as pool:
        work = _Search(outcome, judge, partial(at_once, pool, judge), tell, ios)
        if need.candidate:
            # What the need states is asked, all of it.
            work.ask(found)
        else:
            work.ask_in_order(found)
        work.ask_latencies(outcome.holders)
    order = {ladder.name: place for place, ladder in enumerate(found)}
    outcome.found.sort(key=lambda one: order[one.ladder.name])
    outcome.given_up += [_gave_up(one) for one in outcome.found if one.gave_up is not None]
    return outcome


ENOUGH = 3
"""So many that hold the need are found in the order of their cost, or disks, before nothing dearer is asked: what is
bought, and the two next."""
SOONEST_MOST = 4
"""So many are asked because they may answer soonest."""


class _Search:
    """Asks ladders, and keeps what they answered in an outcome."""

    def __init__(
        self, outcome: Outcome, judge: Judge, run: Callable[..., list[Any]], tell: Callable[[str], None], ios: float
    ) -> None:
        self.outcome, self.judge, self.run, self.tell = outcome, judge, run, tell
        self.need, self.demand = outcome.need, outcome.demand
        self.search_ios, self.latency_ios = ios * SEARCH_SHARE, ios * LATENCY_SHARE

    def ask(self, asked: Sequence[Ladder]) -> None:
        """The smallest sizes of ladders that hold the need."""
        searches = [partial(_least_within, self.need, one, self.demand, self.judge) for one in asked]
        run = partial(self.run, tell=lambda one: self.tell(_told(one)))
        found, spent = shared(self.search_ios, searches, run, self.judge.known)
        self.search_ios -= spent
        self.outcome.spent_ios += spent
        self.outcome.found += found

    def ask_latencies(self, holders: Sequence[Found]) -> None:
        """The latencies of holders at the need, each once."""
        known = self.outcome.latencies_s
        asked = [one for one in holders if one.ladder.label(_step(one)) not in known]
        searches = [partial(_latency_within, self.need, one, self.demand, self.judge) for one in asked]
        timed, spent = shared(self.latency_ios, searches, self.run, self.judge.known)
        self.latency_ios -= spent
        self.outcome.spent_ios += spent
        for one, latency in zip(asked, timed, strict=True):
            label = one.ladder.label(_step(one))
            if latency.seconds is not None:
                known[label] = latency.seconds
            else:
                self.outcome.given_up.append(f"{label}: its latency is not known: {latency.gave_up}")

    def ask_in_order(self, found: Sequence[Ladder]) -> None:
        """Ask what costs least first, on each side, and what may answer soonest; the rest cannot win."""
        loaded = self.demand.times(1 + self.need.head_room)
        firsts: dict[str, LadderStep] = {}
        for ladder in found:
            place = first_possible(self.need, ladder, self.demand, loaded)
            if place < len(ladder.steps):
                firsts[ladder.name] = ladder.steps[place]
        possible = [one for one in found if one.name in firsts]
        self.ask([one for one in found if one.name not in firsts])  # arithmetic refuses all their sizes
        for side in SIDES:
            own = sorted((one for one in possible if one.side == side), key=lambda one: _key(one, firsts[one.name]))
            while own:
                keys = sorted(_key(one.ladder, _step(one)) for one in self.outcome.of_side(side))
                if len(keys) >= ENOUGH and keys[ENOUGH - 1] <= _key(own[0], firsts[own[0].name]):
                    break
                self.ask(own[:ENOUGH])
                own = own[ENOUGH:]
        reads = read_share(self.demand)
        asked = {one.ladder.name for one in self.outcome.found}
        soonest = sorted(possible, key=lambda one: one.least_latency_s(reads))[:SOONEST_MOST]
        self.ask([one for one in soonest if one.name not in asked])
        asked |= {one.name for one in soonest}
        self.outcome.found += [
            Found(ladder=one, step=None, unneeded=firsts[one.name]) for one in possible if one.name not in asked
        ]


SIDES: tuple[Side, ...] = ("on-premises", "cloud")


def _key(ladder: Ladder, step: LadderStep) -> tuple[float, ...]:
    """Order in which one side is asked: the known costs first, then disks."""
    cost = ladder.cost(step)
    return (math.inf if cost is None else cost, *ladder.rank(step))


def read_share(demand: PeakDemand) -> float:
    """Share of reads of all random I/O."""
    random = [one for phase in demand.phases for one in phase if one.random_share > 0.5]
    total = sum(one.rate for one in random)
    return sum(one.rate * one.read_share for one in random) / total if total else 0.0


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
        return tuple(ladder.static_reasons(need, steps[place], demand, loaded))

    def holds(place: int) -> bool:
        nonlocal asked
        asked = place
        reasons = tuple(judge.reasons(need, ladder, steps[place], demand))
        if reasons:
            rejected[place] = reasons
        else:
            held.append(place)
        return not reasons

    low = first_possible(need, ladder, demand, loaded)
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


def first_possible(need: Need, ladder: Ladder, demand: PeakDemand, loaded: PeakDemand) -> int:
    """The place of the smallest size that arithmetic does not refuse; the number of sizes where it refuses all."""
    steps = ladder.steps
    return _first(len(steps), lambda place: not any(ladder.static_reasons(need, steps[place], demand, loaded)))


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
    first = _first(len(ladder.steps), lambda place: ladder.busy_share(ladder.steps[place], loaded) <= ESTIMATE_SHARE)
    return max(low, min(first, len(ladder.steps) - 1))


def _latency_s(need: Need, found: Found, demand: PeakDemand, judge: Judge) -> float:
    """Mean latency of random I/O of a holder at the demand; infinite where there is none."""
    total = weight = 0.0
    for pool, phase in questions(found.ladder, _step(found), demand):
        array = found.ladder.configuration(need, _step(found), demand, pool)
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
