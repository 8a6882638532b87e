"""What a search knows of its axis: which load it needs next, and what it answers. Nothing here measures.

Passing is decided on the limit itself: the limiting metric at a load is estimated from all repeats, and repeats go on
until its interval leaves the limit out or `REPEATS_FACTOR` times the asked repeats are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from assay.record import student
from assay.record.answers import KNEE_SHARE
from assay.record.figures import Figure, end_figures
from assay.record.shapes.point import Point
from assay.record.steady import half_width_95
from assay.workloads.steps import REPEATS_FACTOR, Axis

NOMINAL_SHARE = 0.0142
"""Error of one look that leaves 5 % over six looks, the first point and five groups of repeats: Pocock's constant 2.453
(C. Jennison and B. W. Turnbull, Group Sequential Methods with Applications to Clinical Trials, 2000, table 2.1)."""
PRIOR_SHARE, PRIOR_FREEDOM = 0.01, 2.0
"""How much repeats are taken to differ before any were made, and the degrees of freedom which that is worth."""
STEP_SHARE = 0.25
"""How near the loads around the knee come, and the step above a failure that repeats could not make sure of."""


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a point is from one limit in one scope.

    Attributes
    ----------
    limit, scope
        As the point's judged limits name them.
    missed_by
        Logarithm of value over bound; above 0 the limit is missed, whichever way it bounds.
    is_upper
        Whether the limit bounds from above.
    """

    limit: str
    scope: str
    missed_by: float
    is_upper: bool = True


@dataclass(frozen=True, kw_only=True)
class LoadReading:
    """What a point says of its load: a fault that makes it no answer whatever the limits say, or its distances."""

    fault: str | None = None
    distances: Sequence[Distance] = ()


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Whether a load passes, by all its points.

    Attributes
    ----------
    reason
        Why it fails; None where it passes.
    decided
        Whether the interval of the limiting metric leaves the limit out.
    limiting
        The limit and scope nearest to being missed or most missed; None where nothing was bounded.
    missed_by, half_width
        Estimate of its distance, and half of its 95 % interval.
    """

    reason: str | None
    decided: bool
    limiting: Distance | None = None
    missed_by: float = 0.0
    half_width: float = 0.0


@dataclass
class SearchCurve:
    """All points of one search, by load.

    Of an axis that falls the loads are counted below zero, so that a harder load is the larger one here too.

    Attributes
    ----------
    axis
        What is varied.
    figures
        Those of the kind; the first is maximised.
    repeats
        How often each load that the answer rests on is measured again at least.
    """

    axis: Axis
    figures: Sequence[Figure]
    repeats: int = 1
    points: dict[float, list[Point]] = field(default_factory=dict)
    _readings: dict[float, list[LoadReading]] = field(default_factory=dict)
    _judged: dict[float, Judgement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        axis = self.axis
        if axis.falls:
            steps = tuple(-load for load in axis.steps)
            self.axis = replace(axis, start=-axis.start, end=-axis.end, steps=steps)

    def add(self, load: float, point: Point, reading: LoadReading) -> None:
        """Add a point and judge all loads again, since they share the deviations of all repeats."""
        self.points.setdefault(load, []).append(point)
        self._readings.setdefault(load, []).append(reading)
        deviations = self._deviations()
        self._judged = {load: _judge(readings, deviations) for load, readings in self._readings.items()}

    def judged(self, load: float) -> Judgement:
        """Whether a load passes."""
        return self._judged[load]

    # What to measure

    def next_load(self) -> float | None:
        """The load to measure next, again where it was measured before; None when the answer stands.

        The bracket is found again from all points each time, so a load that repeats turn from failing to passing
        lets the search go on above it.
        """
        for wanted in (self._above, self._inside, self._below_knee, self._again, self._beyond):
            load = wanted()
            if load is not None:
                return load
        return None

    def _above(self) -> float | None:
        """Twice the largest load, while nothing above the largest passing one fails."""
        if not self.points:
            return self.axis.steps[0] if self.axis.steps else self.axis.start
        edge = self.edge
        if edge is None or self.first_failing is not None or self.stopped_by is not None:
            return None
        if self.axis.steps:
            return next((load for load in self.axis.steps if load > edge), None)
        return min(edge * 2, self.axis.end)

    def _inside(self) -> float | None:
        """The middle of the bracket, until its ends are as near as the axis asks."""
        edge, failing = self.edge, self.first_failing
        if edge is None or failing is None:
            return None
        return self._middle(edge, failing, self.axis.resolution_share)

    def _below_knee(self) -> float | None:
        """The middle between the knee and the load below it, until they are near enough."""
        knee = self.knee
        below = max((load for load in self.points if knee is not None and load < knee), default=None)
        if knee is None or below is None:
            return None
        return self._middle(below, knee, max(STEP_SHARE, self.axis.resolution_share))

    def _middle(self, low: float, high: float, step_share: float) -> float | None:
        middle = float(int((low + high) / 2)) if self.axis.whole else (low * high) ** 0.5
        done = self.axis.steps or middle in self.points or high - low <= step_share * high
        return None if done else middle

    def _again(self) -> float | None:
        """A load that the answer rests on and that has too few repeats; the one with the fewest comes first."""
        ends = {load for load in (self.best, self.edge, self.first_failing) if load is not None}
        wanting = [load for load in ends if len(self.points[load]) <= self._repeats_wanted(load)]
        return min(wanting, key=lambda load: (len(self.points[load]), load), default=None)

    def _beyond(self) -> float | None:
        """A step above the largest load, where repeats could not tell that it fails: an upper end to the crossing."""
        edge, top = self.edge, max(self.points)
        if (
            edge is None
            or self.repeats == 0
            or self.axis.steps
            or any(self.judged(load).decided for load in self.failing if load > edge)
        ):
            return None
        further = min(top * (1 + STEP_SHARE), edge * 2, self.axis.end)
        further = float(int(further)) if self.axis.whole else further
        return further if self.first_failing is not None and further > top else None

    def _repeats_wanted(self, load: float) -> int:
        return self.repeats if self.judged(load).decided else REPEATS_FACTOR * self.repeats

    # What is known

    @property
    def passing(self) -> list[float]:
        """Loads that pass, ascending."""
        return sorted(load for load, judged in self._judged.items() if judged.reason is None)

    @property
    def failing(self) -> list[float]:
        """Loads that fail, ascending."""
        return sorted(load for load, judged in self._judged.items() if judged.reason is not None)

    @property
    def edge(self) -> float | None:
        """The largest load that passes."""
        return max(self.passing, default=None)

    @property
    def first_failing(self) -> float | None:
        """The smallest load that fails above the edge."""
        edge = self.edge
        return min((load for load in self.failing if edge is None or load > edge), default=None)

    @property
    def best(self) -> float | None:
        """The passing load with the most throughput; of an axis that falls the least, which is what was asked."""
        if self.axis.falls:
            return self.edge
        return max(self.passing, key=self.throughput, default=None)

    @property
    def knee(self) -> float | None:
        """The smallest load that passes with `KNEE_SHARE` of the most throughput; none where less is asked for."""
        best = self.best
        if best is None or self.axis.falls:
            return None
        return next(load for load in self.passing if self.throughput(load) >= KNEE_SHARE * self.throughput(best))

    def sound(self, load: float) -> list[Point]:
        """The points at a load that have no fault; all of them where each has one."""
        points = zip(self.points[load], self._readings[load], strict=True)
        return [point for point, reading in points if reading.fault is None] or self.points[load]

    def throughput(self, load: float) -> float:
        """Mean throughput at a load."""
        points = self.sound(load)
        return sum(self.value(point) for point in points) / len(points)

    def value(self, point: Point) -> float:
        """Throughput of a point; 0 where it has none."""
        return self.figures[0].value(point) or 0.0

    @property
    def stopped_by(self) -> str | None:
        """What ends the way up though no load fails: throughput that rises no more, or the end of the axis."""
        edge = self.edge
        if edge is None or self.first_failing is not None:
            return None
        if self.axis.stops_at_plateau and self._rungs_without_gain() >= 2:
            return "saturation"
        return "axis end" if edge >= self.axis.end else None

    def _rungs_without_gain(self) -> float:
        """Successive doublings at the top that brought no more throughput."""
        load, best, without_gain = self.axis.start, 0.0, 0.0
        while load in self.points:
            value = self.throughput(load)
            gains = value >= best * (1 + self.axis.plateau_share)
            without_gain = 0.0 if gains else without_gain + _witness(self.points[load][0])
            best = max(best, value)
            if load >= self.axis.end:
                break
            load = min(load * 2, self.axis.end)
        return without_gain

    @property
    def is_non_monotone(self) -> bool:
        """Whether a load fails although a larger load passes, both decided."""
        decided = {load for load, judged in self._judged.items() if judged.decided}
        passed = max((load for load in self.passing if load in decided), default=-math.inf)
        return any(load < passed for load in self.failing if load in decided)

    def _deviations(self) -> Mapping[tuple[str, str], tuple[float, float]]:
        """Standard deviation of repeats for each limit and scope, pooled over all loads, and its degrees of freedom.

        `PRIOR_SHARE` counts as `PRIOR_FREEDOM` repeats more: the mean of a scaled inverse chi-squared prior and the
        data (Gelman and others, Bayesian Data Analysis, 3rd edition, section 2.6).
        """
        squares: dict[tuple[str, str], float] = {}
        freedom: dict[tuple[str, str], float] = {}
        for readings in self._readings.values():
            for key, values in _by_scope(readings).items():
                mean = sum(values) / len(values)
                squares[key] = squares.get(key, 0.0) + sum((value - mean) ** 2 for value in values)
                freedom[key] = freedom.get(key, PRIOR_FREEDOM) + len(values) - 1
        prior = PRIOR_FREEDOM * PRIOR_SHARE**2
        return {key: (math.sqrt((prior + squares[key]) / freedom[key]), freedom[key]) for key in squares}

    # The answer

    def answer(self) -> dict[str, Any]:
        """The answer as in docs/results.md, without what it is about."""
        best, failing = self.best, self.first_failing
        ends = {"max": best, "knee": self.knee, "edge": self.edge, "first_failing": failing}
        answered = {
            name: None if load is None else self._end(load, holds=load != failing) for name, load in ends.items()
        }
        bracket = [load for load in (self.edge, failing) if load is not None]
        return {
            "axis": self.axis.name,
            "point_ids": [point["id"] for load in sorted(self.points) for point in self.points[load]],
            **answered,
            "limited_by": self._limited_by(),
            "interval_95": None if best is None else self._interval_95(best),
            "crossing": self._crossing_told(),
            "step_share": (bracket[1] - bracket[0]) / max(map(abs, bracket)) if len(bracket) > 1 else None,
            "resolution_share": self.axis.resolution_share,
            "undecided": not all(self.judged(load).decided for load in bracket),
            "non_monotone": self.is_non_monotone,
        }

    def _limited_by(self) -> str | None:
        best, edge, failing = self.best, self.edge, self.first_failing
        if best is not None and edge is not None:
            falls = self.throughput(edge) < self.throughput(best) * (1 - self.axis.plateau_share)
            if falls:
                return "saturation"
        return self.stopped_by if failing is None else self.judged(failing).reason

    def _end(self, load: float, *, holds: bool) -> dict[str, Any]:
        points = self.sound(load)
        found = list(zip(self.points[load], map(_meets, self._readings[load]), strict=True))
        # The point that is cited shows what the answer says of its load.
        shown = next((point for point, met in found if met is holds), points[0])
        return {
            self.axis.name: int(abs(load)) if self.axis.whole else abs(load),
            **end_figures(self.figures, points),
            "interval_95": self._interval_95(load),
            "limiting": _limiting(self.judged(load)),
            "point_id": shown["id"],
            "repeats": len(found),
            "repeats_met": sum(met for _, met in found),
        }

    def _interval_95(self, load: float) -> list[float] | None:
        """Batch means at a load, widened by the spread of repeats and, at the edge, by where the limit is crossed.

        The true largest load lies within the interval of the crossing, so the bounds reach to the throughput there.
        """
        points = self.sound(load)
        mean = self.throughput(load)
        # Each point has an interval of its own: strung together, a step between repeats would pass for correlation.
        half_widths = [half_width_95(self.figures[0].batches(point)) for point in points]
        half_width = math.hypot(*half_widths) / len(points)
        if half_width == math.inf:
            return None
        around = [mean, *([self._throughput_near(at) for at in self.crossing_95 or ()] if load == self.edge else [])]
        values = [self.value(point) for point in points]
        return [max(min(*around, *values) - half_width, 0.0), max(*around, *values) + half_width]

    def _throughput_near(self, load: float) -> float:
        """Throughput between measured loads, along straight lines."""
        below = max((known for known in self.points if known <= load), default=min(self.points))
        above = min((known for known in self.points if known >= load), default=max(self.points))
        share = (load - below) / (above - below) if above > below else 0.0
        return self.throughput(below) * (1 - share) + self.throughput(above) * share

    # The crossing

    @property
    def crossing(self) -> float | None:
        """The load at which the limit is crossed, interpolated between the ends of the bracket; None without both."""
        edge, failing = self.edge, self.first_failing
        if edge is None or failing is None or not all(self.judged(load).limiting for load in (edge, failing)):
            return None
        return _zero(edge, self.judged(edge).missed_by, failing, self.judged(failing).missed_by)

    @property
    def crossing_95(self) -> tuple[float, float] | None:
        """The 95 % interval of the crossing; None where no load decides one of its ends.

        Read off the band of the curve at the limit, as a calibration line is inverted (C. Eisenhart, Annals of
        Mathematical Statistics 10, 1939): from where the band's upper edge crosses the limit to where the lower does.
        """
        known = [(load, judged) for load, judged in sorted(self._judged.items()) if judged.limiting is not None]
        upper = [(load, judged.missed_by + judged.half_width) for load, judged in known]
        lower = [(load, judged.missed_by - judged.half_width) for load, judged in known]
        last = max((place for place, (_, value) in enumerate(upper) if value < 0), default=None)
        first = min((place for place, (_, value) in enumerate(lower) if value > 0), default=None)
        if self.crossing is None or last is None or not first or last + 1 >= len(known):
            return None
        ends = (_zero(*upper[last], *upper[last + 1]), _zero(*lower[first - 1], *lower[first]))
        return min(ends), max(ends)

    def _crossing_told(self) -> dict[str, Any] | None:
        crossing, interval = self.crossing, self.crossing_95
        if crossing is None:
            return None
        ends = None if interval is None else sorted(map(abs, interval))
        return {self.axis.name: abs(crossing), "interval_95": ends}


def _judge(readings: Sequence[LoadReading], deviations: Mapping[tuple[str, str], tuple[float, float]]) -> Judgement:
    """Judge one load by the limiting metric, the scope with the largest mean distance over all its points.

    A repeated confidence interval (C. Jennison and B. W. Turnbull, "Interim Analyses: The Repeated Confidence Interval
    Approach", Journal of the Royal Statistical Society B 51, 1989) on the logarithm of the metric: Student's t at
    Pocock's nominal level, so that looking after each group of repeats keeps the error at 5 %.
    """
    faults = [reading.fault for reading in readings if reading.fault]
    if faults and len(faults) * 2 >= len(readings):
        return Judgement(reason=faults[0], decided=len(faults) * 2 > len(readings))
    by_scope = _by_scope(readings)
    if not by_scope:
        return Judgement(reason=None, decided=True)
    means = {key: sum(values) / len(values) for key, values in by_scope.items()}
    worst = max(means, key=lambda key: means[key])
    deviation, freedom = deviations[worst]
    error = deviation / math.sqrt(len(by_scope[worst]))
    # Of several scopes as bad, the worst is in part the unluckiest: each has its share of the error (Bonferroni).
    alike = sum(mean >= means[worst] - _quantile(freedom, 1) * error for mean in means.values())
    half_width = _quantile(freedom, alike) * error
    limiting = next(one for reading in readings for one in reading.distances if (one.limit, one.scope) == worst)
    return Judgement(
        reason=worst[0] if means[worst] > 0 else None,
        decided=abs(means[worst]) > half_width,
        limiting=limiting,
        missed_by=means[worst],
        half_width=half_width,
    )


def _meets(reading: LoadReading) -> bool:
    return reading.fault is None and all(one.missed_by <= 0 for one in reading.distances)


def _by_scope(readings: Sequence[LoadReading]) -> dict[tuple[str, str], list[float]]:
    """Distances by limit and scope, of points without a fault."""
    found: dict[tuple[str, str], list[float]] = {}
    for reading in readings:
        for one in reading.distances if reading.fault is None else ():
            found.setdefault((one.limit, one.scope), []).append(one.missed_by)
    return found


@lru_cache
def _quantile(freedom: float, comparisons: int) -> float:
    return student.quantile(freedom, 1 - NOMINAL_SHARE / 2 / comparisons)


def _limiting(judged: Judgement) -> dict[str, Any] | None:
    """The limiting metric as a share of its bound."""
    if judged.limiting is None:
        return None
    sign = 1 if judged.limiting.is_upper else -1
    low, high = sorted(math.exp(sign * (judged.missed_by + side)) for side in (-judged.half_width, judged.half_width))
    return {
        "limit": judged.limiting.limit,
        "scope": judged.limiting.scope,
        "share": math.exp(sign * judged.missed_by),
        "interval_95": [low, high],
    }


def _zero(x: float, y: float, further_x: float, further_y: float) -> float:
    """Where the straight line through two points is 0."""
    return x + (further_x - x) * -y / (further_y - y) if further_y != y else x


def _witness(point: Point) -> float:
    """Weight of a point without gain as evidence of a plateau: 0.5 if it was not steady, else 1."""
    return 0.5 if (point.get("steady") or {}).get("reached") is False else 1.0
