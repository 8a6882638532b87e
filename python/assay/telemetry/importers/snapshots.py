"""Reports that a script wrote one after the other, with a line of the time before or after each, or with none."""

from __future__ import annotations

from typing import TextIO

from assay.telemetry.importers.clock import Clock, Untimed
from assay.telemetry.importers.importer import Into
from assay.telemetry.importers.moments import WrittenTime


class ReportTimes:
    """Times of the reports of a file: tell it where reports begin and end, and which lines are times.

    Parameters
    ----------
    program
        The command that would have written times.
    has_begun
        Whether the first report is of an interval, too.
    """

    def __init__(self, into: Into, file: TextIO, program: str, *, has_begun: bool = False) -> None:
        self._into = into
        self._clock, self._untimed = Clock(into, file), Untimed(into, program, has_begun=has_begun)
        self._at: WrittenTime | None = None
        self._last_ns: int | None = None
        self._is_open = False
        self._follows: bool | None = None

    def begin(self) -> None:
        """A report has begun."""
        self._is_open = True

    @property
    def is_open(self) -> bool:
        """Whether a report has begun that has not ended."""
        return self._is_open

    def line(self, at: WrittenTime) -> int | None:
        """A line of the time, which ends the report before it: when that was; None where there was none."""
        if self._follows is None:
            # Of a file that begins with a report, times stand after the reports.
            self._follows = self._is_open
        if self._follows:
            self._at = at
        ended = self.end() if self._is_open else None
        self._at = at
        return ended

    def end(self) -> int | None:
        """When the report that ends here was; None where the file says times after reports, and none after this one.

        Raises
        ------
        NotTaken
            The file says no time, and the user does not say how far apart reports are.
        """
        self._is_open = False
        at, self._at = self._at, None
        interval_ns = self._into.options.interval_ns
        if at is not None:
            self._last_ns = self._clock.t_ns(at)
        elif self._follows:
            return None
        elif self._last_ns is not None and interval_ns is not None:
            # The time of the beginning alone, as a script says it that then runs a program with an interval.
            self._last_ns += interval_ns
        else:
            self._last_ns = self._untimed.next_ns()
        return self._last_ns
