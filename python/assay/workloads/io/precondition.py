"""How a plan brings its target into a known state (docs/precondition.md): what is written before it measures.

The steps are those of the SNIA Solid State Storage Performance Test Specification (PTS) 2.0.2: purge,
workload-independent preconditioning (the capacity is written twice in sequence) and workload-dependent preconditioning
in rounds until steady state. `short` writes the distribution of steady state instead.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from assay.base.fields import Share, Strict, percent
from assay.base.units import count_of, format_decimal, format_duration
from assay.workloads.options import SAFETY, TIME, Option

ROUND_SHARE = 0.1
"""Share of the capacity that a round writes unless a plan says otherwise.

Five rounds are half a drive write. With 7 % of spare flash that is enough for the distribution of steady state; with
more the first rounds still find free blocks, and the window falls until these are used.
"""
WRITTEN_LEAST = 2.0
"""Steady state is judged once the capacity was written so often: until then a purged drive has blocks left that hold
nothing, and is steady for that reason alone."""
PLAN_ROUNDS_MOST = 10.0
"""Rounds of a whole plan end when they wrote the capacity so often."""
SPREAD_STEPS = 8


class Precondition(Strict):
    """The state that a plan's target shall be in before it is measured."""

    method: Annotated[
        Literal["none", "purge", "fill", "full", "short"],
        Option(
            "--precondition",
            "Bring the target into a state first: full (steady), short (steady, in one pass), fill or purge.",
            TIME,
        ),
    ] = "none"
    purge: Annotated[
        Literal["auto", "discard", "format", "none"],
        Option(
            "--purge", "How a device is emptied first: discard, format, none; auto discards if the device can.", SAFETY
        ),
    ] = "auto"
    fills: Annotated[int, Field(ge=0, le=10)] = 2
    """How often `fill` and `full` write the capacity in sequence."""
    rounds: Literal["writes", "plan"] = "writes"
    """What a round of `full` does: random writes of a tenth of the capacity, or all workloads of the plan."""
    round_share: Annotated[Share, Field(gt=0)] = ROUND_SHARE
    rounds_most: Annotated[int, Field(ge=5, le=200)] = 25
    over_provisioning_share: Annotated[
        Share,
        Field(gt=0),
        Option(
            "--over-provisioning", "Spare flash of the drive in percent of its capacity, for short (15).",
            TIME, parse=percent,
        ),
    ] = 0.15  # fmt: skip

    @property
    def is_asked(self) -> bool:
        """Whether anything is done."""
        return self.method != "none"

    @property
    def formats(self) -> bool:
        """Whether the purge formats whole namespaces."""
        return self.is_asked and self.purge == "format"

    def written_most_bytes(self, capacity_bytes: int) -> float:
        """The most that is written, purge apart; rounds end before they would write more."""
        if self.method == "fill":
            return float(capacity_bytes * self.fills)
        if self.method == "full":
            rounds = self.rounds_most * self.round_share if self.rounds == "writes" else PLAN_ROUNDS_MOST
            return capacity_bytes * (self.fills + rounds)
        if self.method == "short":
            return capacity_bytes * (1 + sum(share for _, share in spread(self.over_provisioning_share)))
        return 0.0

    def written_least_bytes(self, capacity_bytes: int) -> float:
        """What is written where the fewest rounds are steady."""
        if self.method != "full":
            return self.written_most_bytes(capacity_bytes)
        return capacity_bytes * max(self.fills + 5 * self.round_share, WRITTEN_LEAST)


SLOW_BYTES_PER_S, FAST_BYTES_PER_S = 0.2e9, 4e9
"""Rates of writing between which most flash lies, from a worn SATA drive to NVMe; they bound the time that is told."""


def precondition_words(wanted: Precondition, capacity_bytes: int) -> str:
    """What is formatted and written at most, and how long it takes; empty where nothing is.

    Examples
    --------
    >>> precondition_words(Precondition(method="short"), 960_000_000_000).partition(" (")[0]
    'preconditioning writes 1.13 TB: 1 sequential fill and the spread of steady state'
    """
    formats = "preconditioning formats the whole NVMe namespace of each volume" if wanted.formats else ""
    if not wanted.is_asked or wanted.method == "purge":
        return formats
    least, most = (find(capacity_bytes) for find in (wanted.written_least_bytes, wanted.written_most_bytes))
    amount = format_decimal(most) if least == most else f"{format_decimal(least)} to {format_decimal(most)}"
    fills = count_of(wanted.fills, "sequential fill")
    does = {
        "fill": fills,
        "full": f"{fills} and rounds until steady",
        "short": "1 sequential fill and the spread of steady state",
    }[wanted.method]
    ends = (format_duration(least / FAST_BYTES_PER_S), format_duration(most / SLOW_BYTES_PER_S))
    begins = f"{formats}, then writes" if formats else "preconditioning writes"
    return f"{begins} {amount}: {does} ({ends[0]} at 4 GB/s, {ends[1]} at 0.2 GB/s)"


def valid_share(over_provisioning_share: float) -> float:
    """Share of valid pages in the block that garbage collection takes next, in the steady state of random writes.

    With spare flash of s the mean valid share 1 / (1 + s) is (1 - v) / ln(1 / v) (P. Desnoyers, Analytic Models of SSD
    Write Performance, ACM Transactions on Storage 10, 2014; greedy collection, uniform writes). Solved by bisection.

    Examples
    --------
    >>> round(valid_share(0.07), 3), round(1 / (1 - valid_share(0.15)), 2)
    (0.872, 4.02)
    """
    wanted = 1 / (1 + over_provisioning_share)
    low, high = 1e-12, 1 - 1e-12
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - middle) / -math.log(middle) < wanted else (low, middle)
    return (low + high) / 2


def spread(over_provisioning_share: float) -> list[tuple[float, float]]:
    """Random writes that leave the distribution of steady state behind one sequential fill.

    In steady state the valid share of blocks rises with their age from v to 1 as v^(1 - x), x from 0, the oldest, to 1
    (Desnoyers, as above; `sprandom` of fio rests on the same law). After a pass in sequence the age of a block is the
    place of its addresses, u of the capacity, x = u / (1 + s). Random writes with density d leave e^-d of a block
    valid, so the density that is wanted is (1 - u / (1 + s)) ln(1 / v): it falls evenly over the addresses. Writes over
    ever longer beginnings of the addresses add up to it, in `SPREAD_STEPS` stairs; the last are over all of them.

    Returns
    -------
    list of pairs
        The share of the addresses, from the beginning, and what is written to it as a share of the capacity.

    Examples
    --------
    >>> steps = spread(0.15)
    >>> len(steps), steps[-1][0], round(sum(share for _, share in steps), 2)
    (8, 1.0, 0.18)
    """
    density = -math.log(valid_share(over_provisioning_share))
    falls = density / (1 + over_provisioning_share)
    steps = [
        (number / SPREAD_STEPS, falls * number / SPREAD_STEPS**2) for number in range(1, SPREAD_STEPS + 1)
    ]  # fmt: skip
    end, written = steps[-1]
    # What is left of the density at the end of the addresses, where the blocks are that the pass wrote last.
    return [*steps[:-1], (end, written + density - falls)]
