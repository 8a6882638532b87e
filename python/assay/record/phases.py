"""What faults made of a load: its rate while an array was healthy, degraded or rebuilding, and how far it fell.

The rate before the first event is what later ones are judged by. The load has fallen while its mean over `SMOOTH_S` is
under that by more than three deviations and by more than a twentieth, or under half of it; it has recovered once it
stayed above for `RECOVERED_S`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.record.shapes.point import FaultDip, Phase, ServedPoint

SMOOTH_S = 3.0
"""Over this the rate is averaged: a single slow second is noise."""
DEVIATIONS = 3.0
NORMAL_MAD = 1.4826
"""The standard deviation of a normal distribution over its median absolute deviation."""
SHARE = 0.05
MOST_SHARE = 0.5
"""However uneven a load is, less than half of it is a dip."""
RECOVERED_S = 5.0
"""A load has recovered once its smoothed rate stayed above the bound for so long."""
BEFORE_MIN_S = 5.0
"""Less time before the first event gives no rate to judge by."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What ended in each of equal intervals of a load.

    Attributes
    ----------
    started_ns
        UTC.
    counted_from
        The interval after the warm-up.
    """

    started_ns: int
    interval_s: float
    counts: Sequence[float]
    counted_from: int = 0

    def between(self, from_ns: int, to_ns: int) -> list[float]:
        """Rates per second of the whole intervals between two times, the warm-up left out."""
        first = max(math.ceil((from_ns - self.started_ns) / 1e9 / self.interval_s), self.counted_from)
        last = math.floor((to_ns - self.started_ns) / 1e9 / self.interval_s)
        return [count / self.interval_s for count in self.counts[max(first, 0) : max(last, 0)]]


def phases_of(served: ServedPoint, rates: Rates) -> list[Phase]:
    """The states of an array one after the other, each with the rate of the load.

    Parameters
    ----------
    served
        As a point has it: `state` when the load began, `events`, `from_utc_ns`, `to_utc_ns`.
    """
    end_ns = min(served["to_utc_ns"], rates.started_ns + round(len(rates.counts) * rates.interval_s * 1e9))
    edges = [(served["from_utc_ns"], served["state"])]
    for event in served["events"]:
        if event["t_ns"] >= end_ns:
            break
        if len(edges) > 1 and event["t_ns"] - edges[-1][0] < rates.interval_s * 1e9:
            # A spare that takes a place at once leaves no time without it.
            edges[-1] = (edges[-1][0], event["state"])
        elif event["state"] != edges[-1][1]:
            edges.append((event["t_ns"], event["state"]))
    found: list[Phase] = []
    for (from_ns, state), (to_ns, _) in zip(edges, [*edges[1:], (end_ns, "")], strict=True):
        own = rates.between(from_ns, to_ns)
        found.append({"state": state, "from_utc_ns": from_ns, "to_utc_ns": to_ns, "per_s": fmean(own) if own else None})
    return found


def dip_of(served: ServedPoint, rates: Rates) -> FaultDip | None:
    """How far the load fell after the first event, and for how long; None where there is nothing to judge by.

    Returns
    -------
    dict
        `before_per_s`, `least_per_s` (of the mean over `SMOOTH_S`), `depth_share`, `length_s` (from the event to the
        recovery; 0 where it did not fall, None where it did not recover), `fell_at_utc_ns`, `recovered_at_utc_ns`.
    """
    if not served["events"]:
        return None
    event_ns = served["events"][0]["t_ns"]
    before = rates.between(served["from_utc_ns"], event_ns)
    after = rates.between(event_ns, served["to_utc_ns"])
    width = max(round(SMOOTH_S / rates.interval_s), 1)
    if len(before) * rates.interval_s < BEFORE_MIN_S or len(after) < width:
        return None
    usual = smoothed(before, width)
    middle = median(usual)
    deviation = NORMAL_MAD * median(abs(value - middle) for value in usual)
    bound = middle - min(max(DEVIATIONS * deviation, SHARE * middle), MOST_SHARE * middle)
    rolling = smoothed(after, width)
    low = [place for place, value in enumerate(rolling) if value < bound]
    least = min(rolling)
    first_ns: int = rates.started_ns + round(
        math.ceil((event_ns - rates.started_ns) / 1e9 / rates.interval_s) * rates.interval_s * 1e9
    )

    def at_ns(place: int) -> int:
        return first_ns + round(place * rates.interval_s * 1e9)

    length_s: float | None = 0.0
    recovered_ns = None
    if low:
        calm = max(round(RECOVERED_S / rates.interval_s), 1)
        ends = (
            place for place in range(low[0], len(rolling) - calm + 1) if min(rolling[place : place + calm]) >= bound
        )
        over = next(ends, None)
        recovered_ns = at_ns(over) if over is not None else None
        length_s = (recovered_ns - event_ns) / 1e9 if recovered_ns is not None else None
    return {
        "event": served["events"][0]["what"],
        "before_per_s": fmean(before),
        "least_per_s": least,
        "depth_share": max(1 - least / middle, 0.0) if middle and low else 0.0,
        "length_s": length_s,
        "fell_at_utc_ns": at_ns(low[0]) if low else None,
        "recovered_at_utc_ns": recovered_ns,
    }


def smoothed(values: Sequence[float], width: int) -> list[float]:
    """Moving means over `width` values, one from every value that has enough values after it.

    Examples
    --------
    >>> smoothed([1.0, 2.0, 3.0, 4.0], 2)
    [1.5, 2.5, 3.5]
    """
    return [fmean(values[place : place + width]) for place in range(max(len(values) - width + 1, 0))]
