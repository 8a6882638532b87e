"""Statistics of periods, as the clouds keep them: averages and sums, each with the time at which its period began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from assay.telemetry.importers.importer import Into, utc_ns
from assay.telemetry.importers.json_documents import number_of
from assay.telemetry.importers.metric_series import Meaning, MetricSeries, Points, SeriesPlace
from assay.telemetry.importers.samples import Times

SUM, AVERAGE = "sum", "average"
UNKNOWN = "unknown"
"""The statistic of values of which the file does not say it."""

_SHORTEST = {"burst_balance_share": "minimum"}
"""Metrics of which another statistic says as much."""

ALONE = "one value does not say how long its period is: say it (--interval 5m), or ask for more"


class _Key(NamedTuple):
    name: str
    place: SeriesPlace


class PeriodStatistics:
    """Collector of values by metric and statistic, until the file ends.

    Parameters
    ----------
    asking
        How one asks for the statistic that a metric needs, such as `--statistics`.
    """

    def __init__(self, into: Into, asking: str) -> None:
        self._into, self._asking = into, asking
        self._found: dict[_Key, tuple[Meaning, int | None, dict[str, Points]]] = {}

    def add(
        self, name: str, place: SeriesPlace, meaning: Meaning, statistic: str, starts_ns: int, value: object, *,
        period_ns: int | None = None,
    ) -> None:  # fmt: skip
        """Take a value of a period that began at a time; what is no number is accounted for at once.

        Parameters
        ----------
        period_ns
            Length of the period; None where the file does not say it.
        """
        taken = self._into.taken
        if value is None:
            taken.ignore(f"{name} without a value", "nothing was recorded there", 1)
        elif (number := number_of(value)) is None:
            taken.not_understood(name, str(value))
        else:
            _, _, statistics = self._found.setdefault(_Key(name, place), (meaning, period_ns, {}))
            if not statistics.setdefault(statistic, Points()).add(starts_ns, number):
                taken.not_understood("points whose time is not understood", str(starts_ns))

    def __bool__(self) -> bool:
        return bool(self._found)

    def series(self) -> Iterator[MetricSeries]:
        """One series of each metric, of the statistic that says what is needed of it."""
        held = {
            (key, statistic): points.in_order(key.name, self._into)
            for key, (_, _, statistics) in self._found.items()
            for statistic, points in statistics.items()
        }
        usual_ns = min((_period_ns(t_ns) for t_ns, _ in held.values() if len(t_ns) > 1), default=None)
        for (name, place), (meaning, told_ns, statistics) in self._found.items():
            chosen, left_out = self._chosen(name, meaning, statistics)
            for statistic in statistics:
                if statistic != chosen:
                    why = f"its {chosen} says it" if chosen else f"its {_wanted(meaning)} is needed: {self._asking}"
                    self._into.taken.ignore(f"{name} ({statistic})", why, len(held[_Key(name, place), statistic][1]))
            if chosen is None:
                continue
            starts_ns, values = held[_Key(name, place), chosen]
            own_ns = _period_ns(starts_ns) if len(starts_ns) > 1 else usual_ns
            period_ns = told_ns or self._into.options.interval_ns or own_ns
            if period_ns is None:
                self._into.taken.ignore(name, ALONE, len(values))
                continue
            lengths = np.full(len(values), period_ns)
            yield MetricSeries(name, place, meaning, starts_ns + period_ns, lengths, values, chosen, left_out)

    def _chosen(self, name: str, meaning: Meaning, statistics: Mapping[str, object]) -> tuple[str | None, str]:
        """The statistic that is taken, and why the metric is left out all the same."""
        wanted = _wanted(meaning)
        other = _SHORTEST.get(meaning.metric, "maximum" if meaning.metric.endswith("_exceeded_share") else "")
        found = next((one for one in (wanted, other, UNKNOWN) if one in statistics), None)
        if found != UNKNOWN:
            return found, ""
        if wanted == SUM and meaning.how != "mean":
            why = f"the file does not say which statistic it is, and only the {SUM} counts: {self._asking}"
            return found, why
        how = f"those of {meaning.of[0]} are taken for the same" if meaning.of else f"those of {name} are read as means"
        self._into.taken.note(f"does not say which statistic its values are; {how}")
        return found, ""


def _wanted(meaning: Meaning) -> str:
    """The statistic that says what is needed."""
    return SUM if meaning.how in ("count", "mean", "idle", "per_second") else AVERAGE


def start_ns(value: object) -> int | None:
    """UTC nanoseconds of a time in ISO 8601, or of seconds since 1970; None for what is none.

    Examples
    --------
    >>> start_ns("1970-01-01T00:00:10Z"), start_ns("1970-01-01T01:00:10+01:00"), start_ns(10), start_ns("soon")
    (10000000000, 10000000000, 10000000000, None)
    """
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None
        return utc_ns(at if at.tzinfo is not None else at.replace(tzinfo=UTC))
    number = number_of(value)
    return None if number is None or not 0 <= number < 2**33 else round(number * 1000) * 10**6


def _period_ns(starts_ns: Times) -> int:
    """The shortest step: where nothing was counted a cloud has no value."""
    return int(np.diff(starts_ns).min())
