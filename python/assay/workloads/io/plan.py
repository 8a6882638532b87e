"""Plans: what to measure, how long, within which limits. Presets are plans in TOML files beside the workloads.

A plan's activity may give a list for any of its keys; the plan then measures every combination. `--dry-run --json`
prints a plan in the form `--plan` accepts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from assay.base.fields import FieldError, Seconds, Strict, within
from assay.base.reading import refuse_unknown, validated
from assay.base.tables import TableValue
from assay.base.units import parse_bytes, parse_duration
from assay.record.limits import parse_limits
from assay.workloads.io.activities import IoActivity, IoWorkloadSpec
from assay.workloads.io.precondition import Precondition
from assay.workloads.options import BACKEND, TIME, Option, TablesOf
from assay.workloads.plan import COMBINATIONS_MAX, AnyPlan, SearchPlan

AXES = {"none": (1.0, 1.0), "queue-depth": (1.0, 1024.0), "rate": (100.0, 10e6)}
"""First and last load of a search unless the plan says otherwise."""

PLAIN_LISTS = frozenset({"region"})
"""Keys whose value is itself a list and thus no list of levels."""


class IoTiming(Strict):
    """How long points take. With `duration_s` every point lasts just that long after its warm-up."""

    warmup_s: Annotated[Seconds, Option("--warmup", "Warm-up of each point, not measured.", TIME)] = 2.0
    min_s: Annotated[
        Seconds, Field(gt=0), Option("--min-time", "Shortest measured time; also the window that must be steady.", TIME)
    ] = 5.0
    max_s: Annotated[
        Seconds, Field(gt=0), Option("--max-time", "Longest measured time of a point that does not get steady.", TIME)
    ] = 30.0
    duration_s: Annotated[
        Annotated[Seconds, Field(gt=0)] | None,
        Option("--duration", "Measure every point for this time, steady or not.", TIME),
    ] = None
    rest_s: Annotated[Seconds, Option("--rest", "Pause between points.", TIME)] = 0.0
    io_timeout_s: Annotated[
        Seconds,
        Field(gt=0),
        Option("--io-timeout", "An I/O outstanding longer than this ends the run (30s).", TIME),
    ] = 30.0

    @property
    def longest_s(self) -> float:
        """The most one point takes."""
        return self.warmup_s + (self.duration_s or self.max_s) + self.rest_s

    @property
    def shortest_s(self) -> float:
        """The least one point takes."""
        return self.warmup_s + (self.duration_s or self.min_s) + self.rest_s


class IoSearch(SearchPlan):
    """The search of a plan: for I/Os outstanding per worker, or arrivals per second."""

    axes = AXES
    axis: Annotated[
        Literal["none", "queue-depth", "rate"],
        Option("--search", "Axis of a search for the most within the limits: queue-depth, rate or none.", TIME),
    ] = "none"
    plateau: bool = True
    steps: Annotated[tuple[Annotated[float, Field(gt=0, le=1e9)], ...], Field(max_length=1000)] = ()
    """The loads a tester tried, in rising order: the search tries no others."""


class IoPlan(AnyPlan):
    """A plan. `activity` is kept as written, lists of levels included."""

    name: str = "custom"
    backend: Annotated[Literal["auto", "io-uring", "threads"], BACKEND] = "auto"
    size: str | None = None
    fits_sector: bool = False
    """Leave out blocks that are no multiple of the volumes' sector instead of refusing them, as presets do."""
    timing: IoTiming = IoTiming()
    search: IoSearch = IoSearch()
    precondition: Precondition = Precondition()
    case: tuple[dict[str, Any], ...] = ({},)
    """Sets of keys of the first activity to measure one after the other, each with every combination of levels."""
    activity: Annotated[tuple[dict[str, Any], ...], TablesOf(IoActivity)] = ({},)

    def repeated(self, name: str, title: str) -> Self:
        """The plan of a part that repeats another, with its own name and title."""
        return self.model_copy(update={"name": name, "title": title})

    def workloads(self) -> list[IoWorkloadSpec]:
        """Every case with every combination of levels, validated."""
        name = "" if len(self.activity) == 1 else self.title or self.name
        first, *others = self.activity
        return [workload for case in self.case for workload in _combinations(({**first, **case}, *others), name)]


def _combinations(activities: Sequence[Mapping[str, TableValue]], name: str) -> Iterator[IoWorkloadSpec]:
    factors = [
        (index, key, value)
        for index, activity in enumerate(activities)
        for key, value in activity.items()
        if isinstance(value, list) and key not in PLAIN_LISTS
    ]
    if math.prod(len(value) for _, _, value in factors) > COMBINATIONS_MAX:
        reason = f"its lists have more than {COMBINATIONS_MAX:,} combinations; give fewer levels"
        raise FieldError(reason, field=("activity",))
    for index, key, value in factors:
        if not value:
            raise FieldError("an empty list; give at least one level", field=("activity", index, key))
    for levels in itertools.product(*(value for _, _, value in factors)):
        chosen = [dict(activity) for activity in activities]
        for (index, key, _), level in zip(factors, levels, strict=True):
            chosen[index][key] = level
        made = tuple(
            validated(IoActivity, activity, "", at=("activity", position)) for position, activity in enumerate(chosen)
        )
        yield IoWorkloadSpec(activities=made, name=name)


def load_plan(data: Mapping[str, object], *, source: str) -> IoPlan:
    """A plan from its TOML or JSON form.

    Raises
    ------
    UsageError
        A key is unknown (the nearest known one is named), or a value is not accepted; `source` says where.
    """
    plan = validated(IoPlan, data, source)
    if not plan.activity or not plan.case:
        raise FieldError("no activity given", source=source)
    for kind, tables in (("activity", plan.activity), ("case", plan.case)):
        for position, table in enumerate(tables):
            refuse_unknown(table, IoActivity, source, at=(kind, position))
    with within(source, "limits"):
        parse_limits(plan.limits)
    with within(source):
        workloads = plan.workloads()
        _refuse_contradictions(plan, workloads)
    return plan


def _refuse_contradictions(plan: IoPlan, workloads: Sequence[IoWorkloadSpec]) -> None:
    """Refuse what each key alone allows, but not all together."""
    axis = plan.search.axis
    if axis != "none":
        keys = ("queue_depth", "outstanding") if axis == "queue-depth" else ("rate",)
        for key in keys:
            if any(isinstance(activity.get(key), list) for activity in plan.activity[:1]):
                raise FieldError(f"search on {axis} and several levels of {key} exclude each other")
        if axis == "queue-depth" and workloads[0].activities[0].is_open:
            raise FieldError("search on queue-depth and a rate exclude each other; search on rate")
    if axis != "none" and plan.search.first_load > plan.search.last_load:
        first, last = plan.search.first_load, plan.search.last_load
        raise FieldError(f"start {first:g} is above end {last:g}", field=("search",))
    if plan.precondition.rounds == "plan" and axis != "none":
        reason = f"rounds of the plan and a search on {axis} exclude each other; give search.axis none"
        raise FieldError(reason, field=("precondition", "rounds"))
    if plan.timing.duration_s is None and plan.timing.min_s > plan.timing.max_s:
        reason = f"min_s {plan.timing.min_s:g} is above max_s {plan.timing.max_s:g}"
        raise FieldError(reason, field=("timing",))


BURSTS_MIN = 3
"""Bursts a point should see, so that they can be told from the time between."""


def fit_bursts(activities: Sequence[Mapping[str, Any]], duration_s: float) -> list[dict[str, Any]]:
    """Activities with bursts as dense in bytes as before, but near enough for `BURSTS_MIN` of them in a point."""
    fitted = []
    for activity in activities:
        made = dict(activity)
        interval_s, size = made.get("burst_interval_s"), made.get("burst_bytes")
        if interval_s is not None and size is not None:
            before_s, nearest_s = parse_duration(interval_s) / 1e9, duration_s / BURSTS_MIN
            # An interval that was fitted before comes back rounded to nanoseconds, and must not be fitted again.
            if nearest_s < before_s - 1e-6:
                made |= {"burst_interval_s": nearest_s, "burst_bytes": int(parse_bytes(size) * nearest_s / before_s)}
        fitted.append(made)
    return fitted
