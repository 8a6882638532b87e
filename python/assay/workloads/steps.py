"""Steps of an open workload: what it asks the pipeline to measure, to keep and to search."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from assay.base.tables import Record
from assay.record.phases import Rates


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What a search varies.

    Attributes
    ----------
    name
        As answers name it.
    start, end
        First and last load.
    whole
        Whether loads are whole numbers.
    resolution_share
        How near the ends of the bracket must come.
    plateau_share
        Gain in throughput that two successive doublings must bring for the search to go on without a limit missed.
    stops_at_plateau
        Whether the search ends where throughput rises no more.
    steps
        The loads that may be tried, in the order in which they get harder; any between `start` and `end` where none are
        named.
    falls
        Whether less is harder, as of memory. Such an axis has steps.
    """

    name: str
    start: float
    end: float
    whole: bool
    resolution_share: float = 0.06
    plateau_share: float = 0.03
    stops_at_plateau: bool = True
    steps: tuple[float, ...] = ()
    falls: bool = False


REPEATS_FACTOR = 5
"""A load whose limit is undecided is measured again at most this many times the asked repeats."""


def points_of_search(repeats: int) -> tuple[int, int]:
    """Fewest and most points that a search takes as a rule: doublings, halvings, and repeats of both ends."""
    return 4 + 2 * repeats, 18 + 2 * REPEATS_FACTOR * repeats


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One load to be measured.

    Attributes
    ----------
    key
        All that decides its figures, as JSON, beside part and repeat. A point that the run folder holds under its key
        is not measured again.
    workload, load
        What the point says it is, as docs/results.md has it.
    what
        What `OpenWorkload.measure` gets.
    facts
        What the point says besides.
    """

    key: Record
    workload: Record
    load: Record
    what: Any = None
    facts: Record = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of measuring: the point's own figures, what ended it before its time, and its rate over time."""

    figures: dict[str, Any]
    error: Exception | None = None
    rates: Rates | None = None


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A step: measure one load.

    Attributes
    ----------
    ask
        What is measured.
    purpose
        Why; what is measured for another purpose than `grid` is no result of the part.
    repeat
        Its number among points alike, which changes the seed.
    """

    ask: Ask
    purpose: str = "grid"
    repeat: int = 0


@dataclass(frozen=True, kw_only=True)
class Keep:
    """A step: keep a point that came by itself while the workload ran.

    Attributes
    ----------
    ask
        What was measured.
    measured
        Gives the figures; asked once the point has its id. None for a point that the run folder holds.
    repeat
        Its number among points alike.
    judged
        Whether the part's limits apply to it.
    """

    ask: Ask
    measured: Callable[[str], Measured] | None
    repeat: int = 0
    judged: bool = True


@dataclass(frozen=True, kw_only=True)
class Search:
    """A step: find the most throughput within the limits, its knee, and the largest load within them.

    Attributes
    ----------
    axis
        What is varied.
    ask
        Gives what is to be measured at a load.
    workload
        What the answer says it is about.
    repeats
        How often each load that the answer rests on is measured again at least.
    """

    axis: Axis
    ask: Callable[[float], Ask]
    workload: Record
    repeats: int = 1


Step = Measure | Keep | Search


Steps = Generator[Step, Any, None]
"""What an open workload does, one step after the other; it is sent each step's point or answer."""
