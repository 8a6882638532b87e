"""Times of one file as UTC: the order of its dates, its zone, and what stands for times where it says none."""

from __future__ import annotations

from datetime import date, timedelta, timezone
from typing import TextIO

from assay.telemetry.importers.importer import Into, NotTaken
from assay.telemetry.importers.moments import Ambiguous, Dates, Order, Unsettled, WrittenTime, midnight_ns
from assay.telemetry.importers.zones import zone_assumed

_DAY_NS = 86400 * 10**9


class Clock:
    """The clock of a file; the file is read once for its dates, and then stands at its beginning.

    Parameters
    ----------
    file
        None where no date of the file can be read two ways.
    """

    def __init__(self, into: Into, file: TextIO | None = None) -> None:
        self._into = into
        self._dates = Dates(file) if file is not None else Dates()
        if file is not None:
            file.seek(0)
        self._order: Order | None = None
        self._zones: dict[str, timezone] = {}

    def day(self, day: date | Ambiguous) -> date:
        """A date.

        Raises
        ------
        NotTaken
            Its day and month cannot be told apart.
        """
        if isinstance(day, date):
            return day
        if self._order is None:
            into = self._into
            try:
                self._order = self._dates.order(into.options.date_order, into.written_ns, into.taken)
            except Unsettled as error:
                raise NotTaken(str(error)) from None
        found = day.settled(self._order)
        if found is None:
            raise NotTaken(f"its dates are of no one order of day and month: {day}")
        return found

    def t_ns(self, moment: WrittenTime, day: date | None = None) -> int:
        """UTC nanoseconds of a time; `day` is that of a time that says none."""
        whole = self.day(moment.day) if moment.day is not None else day
        if whole is None:
            raise NotTaken("says times of day without a date")
        zone = moment.zone if isinstance(moment.zone, timezone) else self._zone(moment.zone)
        offset_ns = (zone.utcoffset(None) or timedelta()) // timedelta(microseconds=1) * 1000
        return midnight_ns(whole) + moment.since_midnight_ns - offset_ns

    def of_day(self, since_midnight_ns: int, first_day: date, last_ns: int | None) -> int:
        """UTC nanoseconds of a time of day: of the first day, or of a later one where that after the last one is."""
        t_ns = self.t_ns(WrittenTime(None, since_midnight_ns), first_day)
        while last_ns is not None and t_ns < last_ns - _DAY_NS // 2:
            t_ns += _DAY_NS
        return t_ns

    def _zone(self, name: str | None) -> timezone:
        key = name or ""
        if key not in self._zones:
            options, taken = self._into.options, self._into.taken
            why = f"the file names its time zone {name}, which says no offset" if name else None
            self._zones[key] = zone_assumed(options, taken, why) if why else zone_assumed(options, taken)
        return self._zones[key]


class Untimed:
    """What stands for the times of a file that says none: reports an interval apart.

    Parameters
    ----------
    program
        The command that would have written times.
    has_begun
        Whether the first report is of an interval, too: then it ends one after the beginning.
    """

    def __init__(self, into: Into, program: str, *, has_begun: bool = False) -> None:
        self._into, self._program = into, program
        self._count = 0 if has_begun else -1

    def next_ns(self) -> int:
        """The time of the next report.

        Raises
        ------
        NotTaken
            Neither the file nor the user says how far apart reports are.
        """
        options, taken = self._into.options, self._into.taken
        if options.interval_ns is None:
            raise NotTaken(
                f"says no times: say how far apart its reports are (--interval 10s) and when it began (--start), or"
                f" record with {self._program}"
            )
        self._count += 1
        if options.start_ns is None:
            taken.note(
                "says no times: those of its values are of the time since its beginning (--start says when it was)"
            )
        return (options.start_ns or 0) + self._count * options.interval_ns
