"""The performance analysis matrix: tiers by resources, and in each cell utilisation, saturation and errors.

The matrix is the method's; what a cell asks of a resource is Gregg's USE ("Thinking Methodically about Performance",
ACM Queue 10-12, 2012). A cell is hot where a measure stays beyond its threshold for half of the worst ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from assay.insight.diagnosis.measures import CellMeasure, measures_of
from assay.insight.diagnosis.observed import SAMPLES_MIN, Flags, Observations
from assay.insight.diagnosis.recurrence import Recurrence, recurrence_of
from assay.insight.diagnosis.signals import HOLD_SHARE, WARM_SHARE, value_text, worst_share
from assay.telemetry.importers.importer import UNNAMED

TIERS = ("client", "application", "database", "hypervisor", "storage")
RESOURCES = ("cpu", "memory", "network", "disk", "response")
"""Columns of the matrix: resources, and what users see of a tier."""

HOT, WARM, COOL, FEW, NONE = "hot", "warm", "ok", "too few samples", "no data"
"""States of a cell: beyond a threshold for long, for moments, never, and what is not known."""


class MeasureRecord(TypedDict):
    """A measure of a cell for scripts: values in `unit`, minutes beyond its threshold, shares."""

    aspect: str
    what: str
    entity: str
    p95: float
    worst: float
    unit: str
    threshold: float
    bad_when: str
    source: str
    minutes_exceeded: float
    worst_window_share: float
    samples: int
    state: str


class CellRecord(TypedDict):
    """A cell for scripts: the leading measure of each aspect, and all of them."""

    tier: str
    host: str
    resource: str
    state: str
    utilisation: MeasureRecord | None
    saturation: MeasureRecord | None
    errors: MeasureRecord | None
    minutes_exceeded: float
    measures: list[MeasureRecord]


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """A measure over all time.

    Attributes
    ----------
    beyond
        Steps in which it was beyond its threshold.
    recurrence
        When that was, and whether it comes back; None where it never was.
    known_share
        Share of the time in which something was recorded of what it is of.
    p95, worst
        95th percentile, and the most extreme value, in the threshold's unit.
    minutes
        For how long it was beyond its threshold.
    share
        Of the worst ten minutes in which it was.
    """

    measure: CellMeasure
    samples: int
    p95: float
    worst: float
    minutes: float
    share: float
    beyond: Flags
    recurrence: Recurrence | None
    known_share: float

    @property
    def state(self) -> str:
        """State of the cell by this measure; an excess that recurs regularly counts as warm."""
        if self.samples < SAMPLES_MIN:
            return FEW
        comes_back = self.recurrence is not None and self.recurrence.is_periodic
        is_warm = self.share >= WARM_SHARE or comes_back or (self.measure.is_outage and self.recurrence is not None)
        return HOT if self.share >= HOLD_SHARE else WARM if is_warm else COOL

    @property
    def distance(self) -> float:
        """How near it comes to its threshold."""
        bound = self.measure.threshold
        if bound.below:
            return bound.value / self.worst if self.worst > 0 else float("inf")
        return self.p95 / bound.value if bound.value > 0 else self.p95

    @property
    def words(self) -> str:
        """What was measured: its 95th percentile; of an outage the worst, since it is short."""
        value = self.worst if self.measure.is_outage and self.recurrence is not None else self.p95
        return f"{self.measure.text} {value_text(value, self.measure.threshold.unit)}"

    @property
    def bound_words(self) -> str:
        """What was measured, and what would be bad."""
        return f"{self.words} (bad {self.measure.threshold.text})"

    def record(self) -> MeasureRecord:
        """For scripts."""
        threshold = self.measure.threshold
        return {
            "aspect": self.measure.aspect,
            "what": self.measure.text,
            "entity": self.measure.entity,
            "p95": self.p95,
            "worst": self.worst,
            "unit": threshold.unit,
            "threshold": threshold.value,
            "bad_when": "below" if threshold.below else "at or above",
            "source": threshold.source,
            "minutes_exceeded": round(self.minutes, 3),
            "worst_window_share": round(self.share, 4),
            "samples": self.samples,
            "state": self.state,
        }


@dataclass(frozen=True, kw_only=True)
class CellOf:
    """One cell of the matrix."""

    tier: str
    host: str
    resource: str
    judged: list[Judged]

    @property
    def state(self) -> str:
        """The worst of its measures."""
        states = [one.state for one in self.judged]
        return next((state for state in (HOT, WARM, COOL, FEW) if state in states), NONE)

    @property
    def leading(self) -> Judged | None:
        """The measure that decides."""
        return max(self.judged, key=_weight, default=None)

    @property
    def place(self) -> str:
        """Tier and host, where the host has a name."""
        return f"{self.tier} {'' if self.host == UNNAMED else self.host}".strip()

    @property
    def is_bad(self) -> bool:
        """Whether a measure is beyond its threshold for long, or again and again."""
        return self.state in (HOT, WARM)

    @property
    def minutes(self) -> float:
        """For how long the measure was beyond its threshold that was so longest."""
        return max((one.minutes for one in self.judged), default=0.0)

    @property
    def words(self) -> str:
        """The measure that decides, in a few words."""
        return "not recorded" if self.leading is None else self.leading.words

    def record(self) -> CellRecord:
        """For scripts: the leading measure of each aspect, and all of them."""
        return {
            "tier": self.tier,
            "host": self.host,
            "resource": self.resource,
            "state": self.state,
            "utilisation": self._leading_of("utilisation"),
            "saturation": self._leading_of("saturation"),
            "errors": self._leading_of("errors"),
            "minutes_exceeded": round(self.minutes, 3),
            "measures": [one.record() for one in self.judged],
        }

    def _leading_of(self, aspect: str) -> MeasureRecord | None:
        own = [one for one in self.judged if one.measure.aspect == aspect]
        best = max(own, key=_weight, default=None)
        return best.record() if best is not None else None


def _weight(one: Judged) -> tuple[int, float, float]:
    """How much a measure says of its cell: its state, for how long, how near to its threshold it comes."""
    return (FEW, COOL, WARM, HOT).index(one.state), one.share, one.distance


def matrix_of(observed: Observations) -> list[CellOf]:
    """All cells of all hosts, tier after tier; cells without data among them."""
    rows: dict[tuple[str, str], dict[str, list[Judged]]] = {}
    for host in observed.hosts:
        for tier, resource, measure in measures_of(observed, host):
            own = rows.setdefault((tier, host), {name: [] for name in RESOURCES})
            judged = _judge(observed, measure)
            if judged is not None:
                own[resource].append(judged)
    known = [tier for tier, _ in rows]
    order = [*(tier for tier in dict.fromkeys(observed.tiers.values()) if tier not in TIERS), *TIERS]
    for tier in TIERS:
        if tier not in known:
            rows[tier, ""] = {name: [] for name in RESOURCES}
    ordered = sorted(rows, key=lambda key: (order.index(key[0]) if key[0] in order else 0, key[1]))
    return [
        CellOf(tier=tier, host=host, resource=name, judged=rows[tier, host][name])
        for tier, host in ordered
        for name in RESOURCES
    ]


def _judge(observed: Observations, measure: CellMeasure) -> Judged | None:
    known = measure.values[np.isfinite(measure.values) & observed.counted]
    if not known.size:
        return None
    below = measure.threshold.below
    beyond = (measure.values < measure.threshold.value) if below else (measure.values >= measure.threshold.value)
    beyond = beyond & observed.counted & np.isfinite(measure.values)
    return Judged(
        measure=measure,
        samples=int(known.size),
        p95=float(np.quantile(known, 0.05 if below else 0.95)),
        worst=float(known.min() if below else known.max()),
        minutes=observed.minutes(beyond),
        share=worst_share(observed, beyond),
        beyond=beyond,
        recurrence=recurrence_of(observed, beyond),
        known_share=_known_share(observed, measure),
    )


def _known_share(observed: Observations, measure: CellMeasure) -> float:
    """Share of the time in which anything was recorded of what a measure is of: an idle device has no latency."""
    known = np.isfinite(measure.values)
    for track in observed.tracks:
        if track.entity == measure.entity:
            known = known | np.isfinite(track.values)
    counted = observed.counted
    return float((known & counted).sum() / counted.sum()) if counted.any() else 0.0
