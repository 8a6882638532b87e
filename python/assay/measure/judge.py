"""Whether the load of a window was the load that was meant: its rate sustained, its generator no bottleneck.

Limits are judged in `record/judgement.py`, steady state in `record/steady.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from assay.record.standstill import judged

if TYPE_CHECKING:
    from assay.record.shapes.point import Generator, Offered

SUSTAINED_SHARE = 0.98
"""An open loop that did less than this share of its rate, beyond chance, did not sustain it."""
CHANCE_DEVIATIONS = 4.0
"""Standard deviations of a Poisson count that are put down to chance."""
SATURATED_CPU_SHARE = 0.95
"""A load thread at this share of its core asks no harder."""
SATURATED_HOST_SHARE = 0.98
"""A host at this share of its CPUs asks no harder."""


def sustained(rate: float, done_per_s: float, seconds: float) -> bool:
    """Whether an open loop did what it was asked for.

    Examples
    --------
    >>> sustained(1000.0, 981.0, 100.0), sustained(1000.0, 900.0, 100.0)
    (True, False)
    """
    slack = max((1 - SUSTAINED_SHARE) * rate, CHANCE_DEVIATIONS * math.sqrt(rate / seconds))
    return done_per_s >= rate - slack


def offered(rate: float, done_per_s: float, seconds: float, *, unfinished: int, oldest_ns: int) -> Offered:
    """Return `offered` of a point of an open loop (docs/results.md).

    Parameters
    ----------
    unfinished, oldest_ns
        What was to begin and had not ended at the end of the window, and how old the oldest was.
    """
    return {
        "rate": rate,
        "unfinished": unfinished,
        "oldest_unfinished_ns": oldest_ns,
        "sustained": sustained(rate, done_per_s, seconds),
    }


def is_late(lag_p99_ns: float, service_mean_ns: float | None, least_ns: float) -> bool:
    """Whether an open loop began so late that its schedule is a fiction.

    Parameters
    ----------
    least_ns
        Lateness that no load of this kind notices.
    """
    return lag_p99_ns > max(least_ns, service_mean_ns or 0)


def is_busy(fullest_share: float | None, host_share: float | None = None) -> bool:
    """Whether the generator's fullest thread, or its host, had no CPU left to ask harder."""
    return (fullest_share or 0) >= SATURATED_CPU_SHARE or (host_share or 0) >= SATURATED_HOST_SHARE


def generator(facts: Generator, *, saturated: bool) -> Generator:
    """Return `generator` of a point: its facts, null where it has none, and whether the point may be an answer."""
    known: Generator = {
        "cpu_share": None,
        "fullest_worker_share": None,
        "schedule_lag_p99_ns": None,
        "clock_ns": None,
        "cpu_ns_per_io": None,
        "cpu_unit_ns": None,
        "gaps": None,
    }
    whole: Generator = {**known, **facts}
    found = judged(whole["gaps"], saturated)
    return {**whole, "saturated": found["saturated"], "reason": found["reason"]}
