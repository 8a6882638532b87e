"""What was measured at one combination of levels, and the figures that studies compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.record.figures import Figure
from assay.record.intervals import by_answer_intervals, by_blocks, widened
from assay.record.shapes.study import Result
from assay.workloads.registry import workloads

Value = tuple[float, tuple[float, float] | None]
"""A figure with its 95 % interval, if there is one."""


def study_figures() -> dict[str, Figure]:
    """Figures that studies compare, by the name they have there; the kind registered first gives the words."""
    return {figure.study: figure for kind in reversed(workloads()) for figure in kind.figures if figure.study}


def unit_of(name: str) -> str:
    """Unit of a figure that studies compare."""
    return study_figures()[name].unit


@dataclass(frozen=True, kw_only=True)
class StudyResult:
    """The figure of one workload at one combination of levels, over its repeats.

    Attributes
    ----------
    levels
        Keys of the levels, by factor.
    title
        Labels of the levels.
    workload, load
        What was asked; no load where it was searched for.
    series
        What it has in common with the results it is compared with, where there are several such series.
    place
        Which of the part's workloads this is: it is compared with the same place at other levels.
    values
        Values by figure, each with its 95 % interval or None; empty where there is no answer.
    limited_by
        What ended a search.
    reason
        Why the values must not be believed, or are missing.
    one_run
        Whether it was measured once on the wall clock: what varies from run to run is not in its intervals.
    repeats
        Values by figure, one a repeat, where there are several; None where one has no answer.
    answered
        Names of the figures that answers of its kind have, first the one in which the band is.
    band_90, band_basis
        How far the model may be off, and what that rests on.
    """

    part: str
    levels: dict[str, str]
    title: str
    workload: str
    load: str | None
    place: int
    series: str = ""
    values: dict[str, tuple[float, tuple[float, float] | None]]
    limited_by: str | None = None
    reason: str = ""
    one_run: bool = False
    repeats: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    answered: tuple[str, ...] = ()
    band_90: tuple[float, float] | None = None
    band_basis: str | None = None
    point_ids: tuple[str, ...] = ()

    def to_dict(self) -> Result:
        """The result as the manifest has it."""
        return {
            "part": self.part,
            "levels": dict(self.levels),
            "title": self.title,
            "workload": self.workload,
            "load": self.load,
            "place": self.place,
            "series": self.series,
            "values": {
                name: {"value": value, "unit": unit_of(name), "interval_95": list(interval) if interval else None}
                for name, (value, interval) in self.values.items()
            },
            "limited_by": self.limited_by,
            "reason": self.reason,
            "band_90": list(self.band_90) if self.band_90 else None,
            "band_basis": self.band_basis,
            "point_ids": list(self.point_ids),
        }


def ratio_over_repeats_95(
    one: StudyResult, base: StudyResult, series: Sequence[StudyResult], figure: str
) -> tuple[float, float] | None:
    """95 % interval of a figure over the baseline's, from repeats in blocks; None where there are none.

    Every level that was measured in every block tells how much the figure varies between runs (`intervals.by_blocks`).
    """
    values = [result.values.get(figure) for result in (one, base)]
    repeats = [held for result in (one, base) if (held := result.repeats.get(figure))]
    if len(repeats) < 2 or values[0] is None or values[1] is None or min(values[0][0], values[1][0]) <= 0:
        return None
    others = [held for result in series if result not in (one, base) and not result.reason
              and (held := result.repeats.get(figure)) and all(held)]  # fmt: skip
    rows = [row for row in (*repeats, *others) if len(row) == len(repeats[0])]
    estimate = by_blocks(rows, math.log(values[0][0] / values[1][0]))[0] if len(rows) > 1 else None
    return None if estimate is None else (math.exp(estimate.low), math.exp(estimate.high))


def ratio_95(one: Value | None, base: Value | None, *, one_run: bool = False) -> tuple[float, float] | None:
    """95 % interval of one figure over another; None where either has none.

    Of one run each, what varies from run to run is added (`intervals.widened`), as comparisons of runs do.
    """
    if one is None or base is None or one[1] is None or base[1] is None:
        return None
    if min(one[0], base[0], *one[1], *base[1]) <= 0:
        return None
    estimate = by_answer_intervals(base[0], one[0], base[1], one[1])
    if one_run:
        estimate = widened(estimate, math.log(one[0] / base[0]))
    return math.exp(estimate.low), math.exp(estimate.high)


def differ(one: Value, other: Value, *, one_run: bool = False) -> bool:
    """Whether two values differ beyond their interval; without one nothing is known to differ."""
    interval = ratio_95(one, other, one_run=one_run)
    return interval is not None and apart(interval)


def apart(interval: tuple[float, float]) -> bool:
    """Whether the interval of a ratio says that its two values differ."""
    return not interval[0] <= 1 <= interval[1]
