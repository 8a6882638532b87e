"""Series of metrics as monitoring systems export them: each has times of its own, and some say something only together.

Latency is a time divided by the I/Os that took it; both are counters of their own in Prometheus and in CloudWatch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from assay.telemetry.columns import SampledColumn
from assay.telemetry.importers.importer import T_NS_END, Into, NotTaken, at_text
from assay.telemetry.importers.samples import SampleTable, Times, Values
from assay.telemetry.importers.taken import VALUE_LARGEST

FREE = ("idle_share", "iowait_share", "steal_share")
"""Shares of a processor in which it does not work."""


class Meaning(NamedTuple):
    """What the amounts of a series become.

    Attributes
    ----------
    how
        `gauge`: as it is; `rest`: what is left of one by it; `rate`: an amount a second, which the interval makes a
        count; `count`: what the interval counted; `per_second`: what it counted, divided by its length; `idle`: what is
        left of one by that; `mean`: what it counted, divided by the counts of others.
    of
        The other series of `mean`, by their names; of `count` those that are added to it.
    instead
        The metric that it becomes where no other series of the same entity is that one.
    """

    metric: str
    how: Literal["gauge", "rest", "rate", "count", "per_second", "idle", "mean"] = "gauge"
    factor: float = 1.0
    of: tuple[str, ...] = ()
    instead: str = ""

    @property
    def kind(self) -> str:
        """The kind of the metric in a series."""
        return "delta" if self.how in ("rate", "count") else "gauge"


class SeriesPlace(NamedTuple):
    """What a series is of."""

    tier: str
    host: str
    source: str
    entity: str


@dataclass(frozen=True, eq=False)
class MetricSeries:
    """A series of amounts, by time.

    Attributes
    ----------
    t_ns, interval_ns
        End and length of the interval of each amount; 0 where the length is not known.
    values
        Amounts; NaN where the file has none.
    statistic
        What the values are of a period; only the same one of two series can be divided.
    left_out
        Why the series itself is left out, though others are divided by it.
    """

    name: str
    place: SeriesPlace
    meaning: Meaning
    t_ns: Times
    interval_ns: Times
    values: Values
    statistic: str = ""
    left_out: str = ""


class _Made(NamedTuple):
    column: SampledColumn
    t_ns: Times
    interval_ns: Times
    values: Values


def hand_over(series: Iterable[MetricSeries], into: Into) -> None:
    """Make base units of series, and hand them over; each of their values is accounted for.

    Raises
    ------
    NotTaken
        Two of them are of the same.
    """
    by_place: dict[SeriesPlace, dict[str, MetricSeries]] = {}
    for one in series:
        of_place = by_place.setdefault(one.place, {})
        if one.name in of_place:
            raise NotTaken(f"has two series {one.name} of {one.place.entity} on {one.place.host}: give one of them")
        of_place[one.name] = one
    made: list[_Made] = []
    for of_place in by_place.values():
        metrics = {one.meaning.metric for one in of_place.values() if not one.left_out}
        taken: dict[str, str] = {}
        for one in of_place.values():
            meaning = one.meaning
            metric = meaning.instead if meaning.instead and meaning.instead not in metrics else meaning.metric
            if one.left_out:
                into.taken.ignore(one.name, one.left_out, int(np.isfinite(one.values).sum()))
            elif metric in taken:
                into.taken.ignore(one.name, f"{taken[metric]} says it as well", int(np.isfinite(one.values).sum()))
            elif (values := _values(one, of_place, into)) is not None:
                taken[metric] = one.name
                column = SampledColumn(*one.place[:3], one.place.entity, "", metric, meaning.kind)
                made.append(_Made(column, one.t_ns, one.interval_ns, values))
    for table in _tables([*made, *_processors(made)]):
        for column in table.columns:
            if not into.covered.declare(column.host, column.source, column.entity, column.metric):
                raise NotTaken(f"has two series for {column.metric} of {column.entity} on {column.host}")
        into.add_samples(table)


def _values(one: MetricSeries, of_place: Mapping[str, MetricSeries], into: Into) -> Values | None:
    """What a series becomes; None where it is left out whole."""
    meaning, taken = one.meaning, into.taken
    with np.errstate(over="ignore"):
        amounts = one.values * meaning.factor
    known, seconds = np.isfinite(one.values), one.interval_ns / 1e9
    count = int(known.sum())
    others = [of_place[name] for name in meaning.of if name in of_place and of_place[name].statistic == one.statistic]
    if len(others) < len(meaning.of):
        missing = next(name for name in meaning.of if of_place.get(name) not in others)
        taken.ignore(
            one.name, f"it says something only together with {one.statistic} {missing}".replace("  ", " "), count
        )
        return None
    if meaning.how == "mean" and count and not amounts[known].any():
        taken.ignore(one.name, "it is 0 all the time, so nothing was timed", count)
        return None
    beside = np.sum([_at(other, one.t_ns, one.interval_ns) for other in others], axis=0)
    if others and (lacking := known & ~np.isfinite(beside)).any():
        taken.ignore(f"{one.name} alone", f"at that time there is no {' and '.join(meaning.of)}", int(lacking.sum()))
        known &= ~lacking
    with np.errstate(all="ignore"):
        if meaning.how == "mean":
            none = known & (beside == 0)
            if none.any():
                taken.ignore(f"{one.name} without I/O", "a mean of none says nothing", int(none.sum()))
                known &= ~none
            made = amounts / beside
        elif meaning.how in ("gauge", "count"):
            made = amounts + beside
        elif meaning.how == "rest":
            made = 1.0 - amounts
        elif meaning.how == "rate":
            made = amounts * seconds
        else:
            made = np.where(seconds > 0, amounts / seconds, np.nan)
            made = 1.0 - made if meaning.how == "idle" else made
        if meaning.metric.endswith("_share"):
            made = np.clip(made, 0.0, 1.0)
        if meaning.kind == "delta":
            made = np.where((made >= 0) & (seconds > 0), made, np.nan)
        good = known & (np.abs(made) <= VALUE_LARGEST)
    strange = known & ~good
    if strange.any():
        taken.not_understood(one.name, str(one.values[strange][0]), int(strange.sum()))
    if good.any():
        taken.take(one.name, f"{one.place.source} {meaning.metric}", int(good.sum()))
    return np.where(good, made, np.nan)


def _at(other: MetricSeries | _Made, t_ns: Times, interval_ns: Times) -> Values:
    """Values of another series in the same intervals; NaN where it has none."""
    if not other.t_ns.size:
        return np.full(t_ns.shape, np.nan)
    places = np.minimum(np.searchsorted(other.t_ns, t_ns), other.t_ns.size - 1)
    is_same = (other.t_ns[places] == t_ns) & (other.interval_ns[places] == interval_ns)
    return np.where(is_same, other.values[places], np.nan)


def _processors(made: Sequence[_Made]) -> Iterator[_Made]:
    """How busy processors are, and all of a host together: the mean of their shares."""
    parts: dict[tuple[str, str], dict[str, list[_Made]]] = {}
    for one in made:
        column = one.column
        if column.source == "host" and column.entity.startswith("cpu") and column.metric.endswith("_share"):
            parts.setdefault((column.host, column.entity), {}).setdefault(column.metric, []).append(one)
            if column.entity != "cpu":
                parts.setdefault((column.host, "cpu"), {}).setdefault(column.metric, []).append(one)
    for (_, entity), metrics in parts.items():
        means = {metric: _mean(found) for metric, found in metrics.items()}
        if entity == "cpu":
            is_own = {metric: any(one.column.entity == "cpu" for one in found) for metric, found in metrics.items()}
            for metric, mean in means.items():
                if not is_own[metric]:
                    yield mean._replace(column=mean.column._replace(entity="cpu"))
        idle = means.get("idle_share")
        if idle is not None and "busy_share" not in means:
            free = [_at(means[name], idle.t_ns, idle.interval_ns) for name in FREE if name in means]
            busy = np.clip(1.0 - np.sum(free, axis=0), 0.0, 1.0)
            yield idle._replace(column=idle.column._replace(entity=entity, metric="busy_share"), values=busy)


def _mean(found: Sequence[_Made]) -> _Made:
    """The mean of series, at the times of the one that has most of them."""
    longest = max(found, key=lambda one: one.t_ns.size)
    stacked = np.array([_at(one, longest.t_ns, longest.interval_ns) for one in found])
    known = np.isfinite(stacked)
    with np.errstate(all="ignore"):
        mean = np.where(known, stacked, 0.0).sum(axis=0) / known.sum(axis=0)
    return longest._replace(values=mean)


def _tables(made: Sequence[_Made]) -> Iterator[SampleTable]:
    """Series with the same times in one table."""
    alike: dict[tuple[bytes, bytes], list[_Made]] = {}
    for one in made:
        if np.isfinite(one.values).any():
            alike.setdefault((one.t_ns.tobytes(), one.interval_ns.tobytes()), []).append(one)
    for found in alike.values():
        columns = [one.column for one in found]
        first = found[0]
        yield SampleTable(columns, first.t_ns, first.interval_ns, np.array([one.values for one in found]).T)


class Points:
    """Times and values of a series as they are read, in any order."""

    def __init__(self) -> None:
        self._t_ns = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._t_ns)

    def add(self, t_ns: int, value: float) -> bool:
        """Add a value; False for a time that no clock has."""
        if not 0 <= t_ns < T_NS_END:
            return False
        self._t_ns.append(t_ns)
        self._values.append(value)
        return True

    def in_order(self, name: str, into: Into) -> tuple[Times, Values]:
        """Times and values by time; what a second document says again is left out.

        Raises
        ------
        NotTaken
            There are two values of one time.
        """
        t_ns, values = np.array(self._t_ns, np.int64), np.array(self._values, np.float64)
        order = np.argsort(t_ns, kind="stable")
        t_ns, values = t_ns[order], values[order]
        again = np.diff(t_ns, prepend=-1) == 0
        other = again & (np.diff(values, prepend=0.0) != 0)
        if other.any():
            place = int(np.flatnonzero(other)[0])
            raise NotTaken(
                f"has two values of {name} at {at_text(int(t_ns[place]))}, {values[place - 1]:g} and {values[place]:g}:"
                " which of them is right, it does not say"
            )
        if again.any():
            into.taken.ignore(f"{name} again", "another document of the same has it", int(again.sum()))
        return t_ns[~again], values[~again]
