"""When something held, and whether it comes back: stretches of steps, their period and their length."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

import numpy as np

from assay.base.units import count_of, format_duration
from assay.insight.diagnosis.observed import SECOND_NS, Flags, Observations

GAP_STEPS = 2
"""Steps that something may be away for without being over: values near a threshold flicker."""

REGULAR_MIN = 3
"""Stretches from which equal distances are told as a period."""

PERIODIC_MIN = 4
"""Stretches from which a period by itself is a finding: of three, two distances are alike by chance too often."""

TOLERANCE = 0.1
"""Share of the period by which distances may differ from it; one step is always allowed."""

LONGEST_SHARE = 0.6
"""Share of its period that a stretch has at most: what is longer goes on, with breaks."""

SUSTAINED_STEPS = 2
"""Steps of a usual stretch from which its coming back counts: single steps are moments."""

DAY_S = 86_400.0
DAY_TOLERANCE_S = 1_800.0
"""Two stretches a day apart, give or take half an hour, are a daily job: schedules are by the day."""


class RecurrenceRecord(TypedDict):
    """How something comes back, for scripts: seconds; `period_s` is null where distances are not alike."""

    count: int
    period_s: float | None
    length_s: float
    longest_s: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Stretches of time in which something held.

    Attributes
    ----------
    stretches
        First step of each, and the step after its last.
    period_s
        Distance of their beginnings; None where these are not alike.
    length_s, longest_s
        Median and largest length.
    """

    begin_ns: int
    step_s: float
    stretches: tuple[tuple[int, int], ...]
    period_s: float | None
    length_s: float
    longest_s: float

    @property
    def is_periodic(self) -> bool:
        """Whether it comes back regularly, for several steps each time, and often enough for no accident."""
        lengths = [end - begin for begin, end in self.stretches]
        is_often = len(self.stretches) >= PERIODIC_MIN or self._is_daily
        return self.period_s is not None and is_often and bool(np.median(lengths) >= SUSTAINED_STEPS)

    @property
    def _is_daily(self) -> bool:
        return self.period_s is not None and abs(self.period_s - DAY_S) <= DAY_TOLERANCE_S

    @property
    def since_ns(self) -> int:
        """When it began first, UTC."""
        return self._at(self.stretches[0][0])

    @property
    def until_ns(self) -> int:
        """When it ended last, UTC."""
        return self._at(self.stretches[-1][1])

    def _at(self, step: int) -> int:
        return self.begin_ns + round(step * self.step_s * SECOND_NS)

    @property
    def words(self) -> str:
        """How it comes back, in a few words."""
        length, count = _duration(self.length_s), len(self.stretches)
        if count == 1:
            return f"once, for {length}"
        if self.period_s is None:
            return f"{count} times, {length} each, at no regular distance"
        if self._is_daily:
            clock = datetime.fromtimestamp(self.since_ns / SECOND_NS, UTC)
            return f"each day at {clock:%H:%M} UTC, {length} long ({count_of(count, 'time')})"
        return f"every {_duration(self.period_s)}, {length} long ({count_of(count, 'time')})"

    def record(self) -> RecurrenceRecord:
        """For scripts."""
        return {
            "count": len(self.stretches),
            "period_s": self.period_s,
            "length_s": self.length_s,
            "longest_s": self.longest_s,
            "words": self.words,
        }


def _duration(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds <= 120 else format_duration(seconds)


def recurrence_of(observed: Observations, holds: Flags) -> Recurrence | None:
    """Stretches in which something holds, and their period; None where it never does."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], np.asarray(holds, dtype=int), [0]))))
    stretches: list[tuple[int, int]] = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stretches and begin - stretches[-1][1] <= GAP_STEPS:
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((begin, end))
    if not stretches:
        return None
    lengths = np.array([end - begin for begin, end in stretches]) * observed.step_s
    begins = np.array([begin for begin, _ in stretches]) * observed.step_s
    return Recurrence(
        begin_ns=observed.begin_ns, step_s=observed.step_s, stretches=tuple(stretches),
        period_s=_period(begins, lengths, observed.step_s), length_s=float(np.median(lengths)),
        longest_s=float(lengths.max()),
    )  # fmt: skip


def _period(begins: np.ndarray, lengths: np.ndarray, step_s: float) -> float | None:
    """Distance of beginnings that are equally far apart; None where they are not, or too few."""
    distances = np.diff(begins)
    if not distances.size:
        return None
    middle = float(np.median(distances))
    is_daily = abs(middle - DAY_S) <= DAY_TOLERANCE_S
    allowed = DAY_TOLERANCE_S if is_daily else max(TOLERANCE * middle, step_s)
    is_regular = (
        (is_daily or begins.size >= REGULAR_MIN)
        and bool((np.abs(distances - middle) <= allowed).all())
        and float(np.median(lengths)) <= LONGEST_SHARE * middle
    )
    return middle if is_regular else None
