"""Times of day as locales write them, and the order of day and month, which a file settles or a user says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Literal, NamedTuple

from assay.telemetry.importers.taken import TakenFile

Order = Literal["day-first", "month-first"]
ORDERS: tuple[Order, ...] = ("day-first", "month-first")

_AFTERNOON = ("pm", "p.m.", "下午", "午後", "오후", "μμ")
_MORNING = ("am", "a.m.", "上午", "午前", "오전", "πμ")
_MONTHS = (
    ("jan", "gen", "ene", "янв"), ("feb", "fév", "fev", "фев"), ("mar", "mär", "mrt", "мар"),
    ("apr", "avr", "abr", "апр"), ("may", "mai", "mag", "mei", "мая", "май"), ("jun", "juin", "giu", "июн"),
    ("jul", "juil", "lug", "июл"), ("aug", "aoû", "ago", "авг"), ("sep", "set", "сен"),
    ("oct", "okt", "ott", "out", "окт"),
    ("nov", "ноя"), ("dec", "dez", "déc", "dic", "дек"),
)  # fmt: skip
_DAY = r"(?P<year>\d{4})\s?[年년.\-/]\s?(?P<month>\d{1,2})\s?[月월.\-/]\s?(?P<day>\d{1,2})[日일.]?"
_SLASHES = r"(?P<first>\d{1,2})(?P<mark>[/.\-])\s?(?P<second>\d{1,2})(?P=mark)\s?(?P<short>\d{4}|\d{2})\.?"
_NAMED = (
    r"(?:[^\W\d]{2,12}\.?,?\s+)?(?P<nday>\d{1,2})\.?[\s-](?:de\s)?(?P<nmonth>[^\W\d]{3,10})\.?[\s-](?:de\s)?"
    r"(?P<nyear>\d{4})"
)
_WIDE = "\uff08\uff09"
"""Brackets as wide as letters of Chinese."""
_DATE = rf"(?:西元)?(?:{_DAY}|{_SLASHES}|{_NAMED})(?:\s?[({_WIDE[0]}][^){_WIDE[1]}]{{1,8}}[){_WIDE[1]}])?"
_HALF = "|".join(re.escape(one) for one in (*_AFTERNOON, *_MORNING))
_TIME = (
    rf"(?:(?P<before>{_HALF})\s?)?(?P<hour>\d{{1,2}})\s?[:時时시h.]\s?(?P<minute>\d{{2}})\s?[:分분m.]\s?(?P<of_minute>\d{{2}})"
    rf"(?:[.,](?P<part>\d{{1,9}}))?\s?[秒초s]?(?:\s*(?P<half>{_HALF}))?"
)
_ZONE = r"(?:\s*(?P<zone>Z|[+-]\d{2}:?\d{2}|[A-Z]{2,5}))?"
_SLASHED = re.compile(r"(?<![\d/.:])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\d/])", re.ASCII)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_HALVES = re.compile(r"\d:\d\d:\d\d\s?(AM|PM)\b")
_WHOLE = re.compile(rf"^{_DATE}[T,]?\s*{_TIME}{_ZONE}$", re.IGNORECASE)
_UNIX = re.compile(
    r"^(?:[A-Z][a-z]{2},? )?(?P<month>[A-Z][a-z]{2})\s+(?P<day>\d{1,2})\s+(?P<time>[\d:.]+(?: [AP]M)?)(?P<zone> \S+)?"
    r" (?P<year>\d{4})$",
    re.ASCII,
)
"""As `date` prints a time where no locale is set: Tue Mar  2 10:00:00 UTC 2021."""
_BEGINS = re.compile(r"(?:[A-Z][a-z]{2},? )?[A-Z][a-z]{2} {1,2}\d{1,2} \d|\d", re.ASCII)
_SECONDS = re.compile(r"(?P<whole>\d{10})(?:\.(?P<part>\d{1,9}))?", re.ASCII)
_ONLY_DATE = re.compile(rf"^{_DATE}$", re.IGNORECASE)
_ONLY_TIME = re.compile(rf"^{_TIME}$", re.IGNORECASE)


class Ambiguous(NamedTuple):
    """A date whose first two numbers may be day and month either way."""

    first: int
    second: int
    year: int

    def settled(self, order: Order) -> date | None:
        """The date in an order; None where no calendar has it."""
        day, month = (self.first, self.second) if order == "day-first" else (self.second, self.first)
        try:
            return date(self.year, month, day)
        except ValueError:
            return None

    def __str__(self) -> str:
        return f"{self.first:02d}/{self.second:02d}/{self.year}"


@dataclass(frozen=True)
class WrittenTime:
    """A time as it stands in a file.

    Attributes
    ----------
    day
        Its date; None for a time alone.
    second_ns
        Nanoseconds since midnight.
    zone
        None where the file does not say it; a text where it names one whose offset is not known.
    """

    day: date | Ambiguous | None
    since_midnight_ns: int
    zone: timezone | str | None = None


def moment(text: str) -> WrittenTime | None:
    """A date and time in any order and language that is known; None for other text.

    Examples
    --------
    >>> moment("2021年03月02日 10时00分10秒").day, moment("2021-03-02T10:00:10+0100").zone
    (datetime.date(2021, 3, 2), datetime.timezone(datetime.timedelta(seconds=3600)))
    >>> moment("02.03.2021 10:00:00").day, moment("Tuesday 02 March 2021 10:00:00 AM IST").day
    (datetime.date(2021, 3, 2), datetime.date(2021, 3, 2))
    >>> moment("Tue Mar  2 10:00:00 UTC 2021").day
    datetime.date(2021, 3, 2)
    >>> str(moment("02/03/21 10:00:00").day), moment("avg-cpu:")
    ('02/03/2021', None)
    """
    if len(text) > 80 or not text[:1].strip():
        return None
    unix = _UNIX.match(text)
    if unix is not None:
        text = f"{unix['day']} {unix['month']} {unix['year']} {unix['time']}{unix['zone'] or ''}"
    match = _WHOLE.match(text)
    if match is None:
        return None
    day, since = _date_of(match), _time_of(match)
    if day is None or since is None:
        return None
    return WrittenTime(day, since, _zone_of(match["zone"]))


def moment_in(line: str) -> WrittenTime | None:
    """The time on a line that holds nothing else, as scripts write it between reports; None for other lines.

    Examples
    --------
    >>> moment_in("zzz ***Tue Mar 2 10:00:00 UTC 2021") == moment_in("--- 2021-03-02T10:00:00Z ---")
    True
    >>> moment_in("1614679200.5") == moment_in("2021-03-02 10:00:00.5 UTC"), moment_in("8 0 sda 1 2")
    (True, None)
    """
    begin = _BEGINS.search(line) if len(line) <= 120 else None
    if begin is None:
        return None
    text = line[begin.start() :].strip(" \t\r\n*#=-<>[]|")
    seconds = _SECONDS.fullmatch(text)
    if seconds is not None:
        days, rest = divmod(int(seconds["whole"]), 86400)
        part_ns = int((seconds["part"] or "0").ljust(9, "0"))
        return WrittenTime(date.fromordinal(_EPOCH_DAY + days), rest * 10**9 + part_ns, UTC)
    return moment(text)


def day_alone(text: str) -> date | Ambiguous | None:
    """A date without a time.

    Examples
    --------
    >>> day_alone("2021-03-02"), str(day_alone("03/02/21")), day_alone("_x86_64_")
    (datetime.date(2021, 3, 2), '03/02/2021', None)
    """
    match = _ONLY_DATE.match(text.strip()) if len(text) < 60 else None
    return _date_of(match) if match is not None else None


def time_alone(text: str) -> int | None:
    """A time of day, in nanoseconds since midnight.

    Examples
    --------
    >>> time_alone("10:00:01 PM") // 10**9, time_alone("10:00:01") // 10**9, time_alone("all")
    (79201, 36001, None)
    """
    match = _ONLY_TIME.match(text.strip()) if len(text) < 30 else None
    return _time_of(match) if match is not None else None


def _date_of(match: re.Match[str]) -> date | Ambiguous | None:
    found = match.groupdict()
    try:
        if found["year"]:
            return date(int(found["year"]), int(found["month"]), int(found["day"]))
        if found["nyear"]:
            month = next((n for n, names in enumerate(_MONTHS, 1) if found["nmonth"].lower().startswith(names)), 0)
            return date(int(found["nyear"]), month, int(found["nday"]))
    except ValueError:
        return None
    short = found["short"]
    one = Ambiguous(int(found["first"]), int(found["second"]), int(short) if len(short) == 4 else 2000 + int(short))
    if found["mark"] in ".-":
        # With points and dashes every locale of glibc has the day first.
        return one.settled("day-first")
    return one if any(one.settled(order) for order in ORDERS) else None


def _time_of(match: re.Match[str]) -> int | None:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["of_minute"])
    half = (match["half"] or match["before"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in _AFTERNOON else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((match["part"] or "0").ljust(9, "0"))


def _zone_of(text: str | None) -> timezone | str | None:
    if not text:
        return None
    if text.upper() in ("Z", "UTC", "GMT"):
        return UTC
    if text[0] in "+-":
        minutes = int(text[1:3]) * 60 + int(text[-2:])
        if minutes >= 24 * 60:
            return text
        return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
    return text


def midnight_ns(day: date) -> int:
    """The beginning of a day as UTC nanoseconds, before its zone is taken off."""
    return (day - date(1970, 1, 1)).days * 86400 * 10**9


# The order of day and month


class Unsettled(Exception):
    """Day and month of a file's dates can be told apart by nothing in it."""


class Dates:
    """All dates of a file whose first two numbers may be day and month either way, and what settles their order."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._found: dict[Ambiguous, None] = {}
        self._has_halves = self._has_short_years = False
        for line in lines:
            for match in _SLASHED.finditer(line) if line.count("/") >= 2 else ():
                year = int(match[3])
                self._found[Ambiguous(int(match[1]), int(match[2]), year if year > 99 else 2000 + year)] = None
                self._has_short_years |= year <= 99
            self._has_halves = self._has_halves or _HALVES.search(line) is not None

    def order(self, asked: Order | None, written_ns: int | None, taken: TakenFile) -> Order:
        """The order in which day and month stand.

        A number above twelve settles it; else the locale en_US, which alone has four digits of the year and halves of
        the day; else days that follow each other; else that no date lies after the file was written.

        Raises
        ------
        Unsettled
            Nothing does, and the user did not say it; or the dates contradict each other.
        """
        listed = [one for one in self._found if any(one.settled(order) for order in ORDERS)]
        possible = [order for order in ORDERS if all(one.settled(order) for one in listed)]
        if not possible:
            raise Unsettled(f"its dates are of no one order of day and month: {listed[0]} and {listed[-1]}")
        if asked is not None:
            if asked not in possible:
                raise Unsettled(f"--date-order {asked}: {listed[0]} and others are no dates in that order")
            return asked
        if len(possible) == 1 or all(one.first == one.second for one in listed):
            return possible[0]
        if self._has_halves and not self._has_short_years:
            return "month-first"
        in_row = [order for order in ORDERS if len(listed) > 1 and _in_row(listed, order)]
        past = in_row if len(in_row) == 1 else [order for order in ORDERS if _is_past(listed, order, written_ns)]
        if len(past) != 1:
            shown = listed[0]
            ways = " or ".join(f"{shown.settled(order):%-d %B %Y}" for order in ORDERS)
            raise Unsettled(
                f"says {shown}, which is {ways}, and nothing in the file tells which: say --date-order day-first or"
                " --date-order month-first"
            )
        why = "its days follow each other" if in_row else "otherwise it would lie after the file was written"
        taken.note(f"{listed[0]} is read with the {past[0].removesuffix('-first')} first: {why}")
        return past[0]


def _in_row(listed: list[Ambiguous], order: Order) -> bool:
    """Whether each date is the day after the one before."""
    found = [day for one in listed if (day := one.settled(order)) is not None]
    return all(abs((after - before).days) == 1 for before, after in pairwise(found))


def _is_past(listed: list[Ambiguous], order: Order, written_ns: int | None) -> bool:
    """Whether no date lies a day or more after the file was written, in any zone."""
    latest = datetime.fromtimestamp((written_ns or 0) / 1e9, UTC).date() + timedelta(days=1)
    return all((day := one.settled(order)) is not None and (written_ns is None or day <= latest) for one in listed)
