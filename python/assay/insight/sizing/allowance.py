"""How many simulated I/Os a search may ask for, so that it ends whatever the need is, and what it gives up.

An allowance is counted, not timed: the same need gives the same answer on every machine. What was known before a
search began costs it nothing. What another search asks meanwhile does, so that the order in which searches run changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from assay.insight.sizing.demand import PeakStream
from assay.targets.arrays.model.configuration import Configuration

ALL_IOS = 11_000_000
"""Of one need, all its searches together."""
SEARCH_SHARE, LATENCY_SHARE, HOLDS_SHARE, CERTAINTY_SHARE = 0.36, 0.09, 0.06, 0.24
"""Of them for all sizes that may be bought, for the latencies of those that hold the need, and of each choice for how
much it holds and for how sure that is; the assumptions that would change the purchase have the rest."""
LEAST_IOS = 60_000
"""With less than this nothing can be asked: what comes last goes without, so that what comes first has as much."""
ROUNDS = 3
"""How often what some searches leave over is shared among those that had too little."""

WARM_IOS = 20_000
"""I/Os whose simulation takes as long as filling the caches of a member."""
FLASH_SHARE = 0.25
"""An I/O of an array without mechanical disks counts as so much: neither arms nor platters are simulated."""
WHOLE_BYTES = 64 << 10
"""An I/O that is larger counts as so many of this size."""
REBUILD_IOS = 40_000
"""I/Os whose simulation takes as long as that of a rebuild."""


class GaveUp(Exception):
    """A search asks for more simulated I/Os than it may."""

    def __init__(self, asked_ios: float, allowed_ios: float) -> None:
        self.asked_ios, self.allowed_ios = asked_ios, allowed_ios
        super().__init__(
            f"the search may simulate {allowed_ios:,.0f} I/Os, and would go beyond that with {asked_ios:,.0f} more"
        )


@dataclass(kw_only=True)
class Allowance:
    """Simulated I/Os that a search may ask for.

    Attributes
    ----------
    known
        Questions that were answered before it began.
    """

    ios: float
    known: Set[str] = frozenset()
    spent_ios: float = 0.0
    _asked: set[str] = field(default_factory=set)
    _warm: set[str] = field(default_factory=set)

    def take_once(self, question: str, ios: float) -> None:
        """Count the I/Os of a question that was not known and that this search has not asked before.

        Raises
        ------
        GaveUp
            They are more than what is left.
        """
        if question not in self.known and question not in self._asked:
            self.take(ios)
            self._asked.add(question)

    def take(self, ios: float) -> None:
        """Count I/Os before they are simulated.

        Raises
        ------
        GaveUp
            They are more than what is left.
        """
        if self.spent_ios + ios > self.ios:
            raise GaveUp(ios, self.ios)
        self.spent_ios += ios

    def take_simulation(self, question: str, array: Configuration, phase: Sequence[PeakStream], seconds: float) -> None:
        """Charge a simulation of streams; for an array's first question also the warm-up of its caches.

        Raises
        ------
        GaveUp
            They are more than what is left.
        """
        caches = array.with_options({"state": None}).target_text
        is_warm = caches in self._warm or array.model.structure == "cloud"
        warm = 0.0 if is_warm else float(WARM_IOS * array.members)
        ios = sum(counted(array, one.rate * seconds, one.block_bytes) for one in phase)
        self.take_once(question, warm + ios)
        self._warm.add(caches)


def counted(array: Configuration, ios: float, block_bytes: float) -> float:
    """I/Os of an array as they are counted, by the time that simulating them takes."""
    share = 1.0 if array.model.disk_kind == "mechanical" else FLASH_SHARE
    return ios * share * max(block_bytes / WHOLE_BYTES, 1.0)


class Searched(Protocol):
    """What came of a search."""

    @property
    def gave_up(self) -> GaveUp | None:
        """Why it has no answer, or only a part of one."""


Result = TypeVar("Result", bound=Searched)


def shared(
    ios: float,
    searches: Sequence[Callable[[Allowance], Result]],
    run: Callable[[Sequence[Callable[[], Result]]], list[Result]],
    known: Callable[[], Set[str]],
) -> tuple[list[Result], float]:
    """Run searches that share an allowance evenly; what some leave over goes to those that gave up.

    Parameters
    ----------
    searches
        Those that matter most first: where there are too many, the last ones may ask nothing.
    run
        Runs several at once, and returns their results in order.
    known
        Questions that are answered by now.

    Returns
    -------
    results, spent_ios
        Of each search, and of all together.
    """
    if not searches:
        return [], 0.0
    able = max(min(len(searches), int(ios // LEAST_IOS)), 1)
    spent = 0.0

    def asked(places: Sequence[int], each_ios: float) -> list[Result]:
        nonlocal spent
        before = known()
        allowances = [Allowance(ios=each_ios if place < able else 0.0, known=before) for place in places]
        works = zip(places, allowances, strict=True)
        found = run([partial(searches[place], allowance) for place, allowance in works])
        spent += sum(one.spent_ios for one in allowances)
        return found

    results = asked(range(len(searches)), ios / able)
    for _ in range(ROUNDS - 1):
        poor = [place for place in range(able) if results[place].gave_up is not None]
        if not poor or ios - spent < LEAST_IOS:
            break
        for place, result in zip(poor, asked(poor, (ios - spent) / len(poor)), strict=True):
            results[place] = result
    return results, spent
