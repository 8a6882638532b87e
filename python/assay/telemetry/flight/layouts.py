"""Where the series of collectors lie in what is written: in layouts of some hundred series each.

Rolling up unfolds a layout with a histogram for each series, so that its size decides the memory of the recorder.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from assay.record.flight_segments import SampleLayout
from assay.record.rolled import SERIES_MAX, VALUE_MAX, SeriesKey
from assay.telemetry.columns import Reading

LAYOUT_SERIES = 400
"""Series of a layout; those of one entity stay together, because a mean latency is weighted by the I/Os beside it."""

Source = tuple[str, str]
"""Tier and source of a collector."""

_NAN = float("nan")


class Layouts:
    """Layouts of a segment by number, and where each series of a source lies.

    Parameters
    ----------
    host
        Name of this host.
    by_number
        Layouts that the segment has; new ones are added to them.
    """

    def __init__(self, host: str, by_number: dict[int, SampleLayout]) -> None:
        self._host, self.by_number = host, by_number
        self._places: dict[Source, dict[tuple[str, str], tuple[int, int]]] = {}
        self._numbers: dict[Source, dict[str, int]] = {}
        self._newest: dict[Source, int] = {}
        for number, layout in by_number.items():
            source = (layout.tier, layout.source)
            self._newest[source] = number
            for place, one in enumerate(layout.series):
                self._places.setdefault(source, {})[one.entity, one.metric] = (number, place)
                self._numbers.setdefault(source, {})[one.entity] = number

    def arranged(
        self, readings: Iterable[Reading], source: Source, next_number: Callable[[], int]
    ) -> tuple[dict[int, array[float]], bool]:
        """Values of an interval by layout, and whether some found no place.

        Parameters
        ----------
        next_number
            A number that no layout has.
        """
        places = self._places.setdefault(source, {})
        found: dict[int, array[float]] = {}
        left_out = False
        for one in readings:
            if not abs(one.value) < VALUE_MAX:
                continue
            placed = places.get((one.entity, one.metric))
            if placed is None:
                if len(places) >= SERIES_MAX:
                    left_out = True
                    continue
                placed = places[one.entity, one.metric] = self._place(one, source, next_number)
            number, place = placed
            values = found.get(number)
            if values is None:
                values = found[number] = array("d", [_NAN]) * len(self.by_number[number].series)
            if place >= len(values):
                values.extend([_NAN] * (place + 1 - len(values)))
            values[place] = one.value
        return found, left_out

    def _place(self, one: Reading, source: Source, next_number: Callable[[], int]) -> tuple[int, int]:
        """A place for a series that is new."""
        numbers = self._numbers.setdefault(source, {})
        number = numbers.get(one.entity)
        if number is None:
            number = self._newest.get(source)
            if number is None or len(self.by_number[number].series) >= LAYOUT_SERIES:
                number = self._newest[source] = next_number()
                self.by_number[number] = SampleLayout(source[0], self._host, source[1], [])
            numbers[one.entity] = number
        series = self.by_number[number].series
        series.append(SeriesKey(one.entity, one.role, one.metric, str(one.kind)))
        return number, len(series) - 1
