"""The text form of performance logs that Windows and esxtop write: a header of counter paths, a row for each sample.

Sources: Microsoft, "Performance Counters: PdhOpenLog" (PDH_LOG_TYPE_CSV and _TSV); output of relog and typeperf.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple, TextIO

import numpy as np

from assay.telemetry.columns import SampledColumn
from assay.telemetry.importers.importer import Into, NotTaken, utc_ns
from assay.telemetry.importers.opening import lines
from assay.telemetry.importers.samples import SampleTable, Values
from assay.telemetry.importers.taken import VALUE_LARGEST, Counter
from assay.telemetry.importers.zones import zone_assumed

HEADER = re.compile(r'^\s*"?\(PDH-(?P<kind>CSV|TSV) (?P<version>[0-9.]+)\)(?P<zone>[^"\t,]*)"?', re.MULTILINE)
_ZONE = re.compile(r"\((-?[0-9]{1,4})\)\s*$")
_PATH = re.compile(r"^\\\\(?P<host>[^\\]+)\\(?P<object>.+)\\(?P<counter>[^\\]*)$")
_HOUR = re.compile(r"^\s*(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2})$", re.ASCII)
_IN_HOUR = re.compile(r"^(\d{2}):(\d{2})(?:\.(\d{1,6}))?\s*$", re.ASCII)


COLUMNS_MAX = 2**15 - 1
"""Columns that are taken of a log: a series has no more names."""

CELL_MAX = 1 << 20
"""Longest cell that is read; what is longer is no counter log."""


@dataclass(frozen=True)
class Path:
    r"""A counter path: `\\host\object(instance)\counter`."""

    host: str
    object: str
    instance: str
    counter: str

    @property
    def name(self) -> str:
        """The counter without host and instance, for people."""
        return f"{self.object}\\{self.counter}"


def parse_path(text: str) -> Path | None:
    r"""A counter path; None for what is none. Instances may hold blanks, brackets and `#2`.

    Examples
    --------
    >>> parse_path(r"\\SQL1\PhysicalDisk(0 C:)\Disk Reads/sec")
    Path(host='SQL1', object='PhysicalDisk', instance='0 C:', counter='Disk Reads/sec')
    >>> parse_path(r"\\sql1\Memory\Available MBytes").instance, parse_path("a description")
    ('', None)
    """
    match = _PATH.match(text.strip())
    if match is None:
        return None
    whole = match["object"]
    first, last = whole.find("("), whole.rfind(")")
    if 0 < first < last == len(whole) - 1:
        return Path(match["host"], whole[:first], whole[first + 1 : last], match["counter"])
    return Path(match["host"], whole, "", match["counter"])


@dataclass(frozen=True)
class PdhLog:
    """A log after its header: the paths of its columns by their place, and the rows that follow."""

    paths: dict[int, Path]
    width: int
    rows: Iterator[Sequence[str]]
    zone: timezone | None
    """What the header says the local time is; None where it says nothing, as typeperf does."""


class PdhColumn(NamedTuple):
    """A column that is taken: where it stands, what it is called, and what it becomes."""

    place: int
    name: str
    counter: Counter
    sampled: SampledColumn


class Columns:
    """Columns of a log, by what their rows have in common; each of their cells is accounted for."""

    def __init__(self, log: PdhLog, into: Into) -> None:
        self._log, self._into = log, into
        self._of: dict[tuple[str, str, str], list[PdhColumn]] = {}
        self._ignored: list[tuple[int, str, str]] = []
        self._strange = [place for place in range(1, log.width) if place not in log.paths]

    def __bool__(self) -> bool:
        return bool(self._of)

    def leave(self, place: int, name: str, reason: str) -> None:
        """Leave a column out."""
        self._ignored.append((place, name, reason))
        self._into.taken.ignore(name, reason)

    def take(self, place: int, path: Path, entity: str, made: tuple[str, str, Counter]) -> None:
        """Take a column; `made` is its tier, source and what it becomes.

        Raises
        ------
        NotTaken
            Another column is taken for the same already.
        """
        tier, source, counter = made
        if not self._into.covered.declare(path.host, source, entity, counter.metric):
            raise NotTaken(
                f"has two columns for {counter.metric} of {entity or source} on {path.host}; one is"
                f" {path.object}({path.instance})\\{path.counter}: which of them is right, it does not say"
            )
        sampled = SampledColumn(tier, path.host, source, entity, "", counter.metric, counter.kind)
        columns = self._of.setdefault((path.host, tier, source), [])
        columns.append(PdhColumn(place, path.name, counter, sampled))
        self._into.taken.counters[path.name] = f"{source} {counter.metric}"

    def hand_over(self) -> None:
        """Read all rows of the log and hand over what is taken of them."""
        into, taken, full = self._into, self._into.taken, self._log.width
        columns = [one for own in self._of.values() for one in own]
        if len(columns) > COLUMNS_MAX:
            raise NotTaken(f"has {len(columns):,} counters that are taken; {COLUMNS_MAX:,} are the most: export fewer")
        hosts = dict.fromkeys(host for host, _, _ in self._of)
        samples, full_rows = _Samples(columns, into), 0
        for t_ns, row in times(self._log, into):
            width = len(row)
            full_rows += width >= full
            for place, name, reason in self._ignored if width < full else ():
                if place < width:
                    taken.ignore(name, reason, 1)
            for host in hosts:
                # All hosts of a log have the same times.
                interval_ns = into.advance(host, t_ns)
            if interval_ns is None:
                late = sum(one.place < width for one in columns)
                taken.ignore("rows while the clock was behind", "their time was before", late)
            else:
                samples.add(t_ns, interval_ns, row)
            if self._strange and (strange := sum(place < width for place in self._strange)):
                taken.not_understood("columns that name no counter", row[self._strange[0]], strange)
            if width > full:
                taken.not_understood("cells beyond the header's columns", row[full], width - full)
        samples.hand_over()
        for _, name, reason in self._ignored:
            taken.ignore(name, reason, full_rows)


class _Samples:
    """Rows until they are handed over together: a log of 100 MB has ten million cells."""

    def __init__(self, columns: Sequence[PdhColumn], into: Into) -> None:
        self._columns, self._into = columns, into
        self._sampled = [one.sampled for one in columns]
        self._places = [one.place for one in columns]
        self._cells_of = itemgetter(*self._places, 0)
        counters = [one.counter for one in columns]
        self._factors, self._offsets = (np.array([one[at] for one in counters], np.float64) for at in (2, 3))
        self._is_delta = np.array([one.kind == "delta" for one in counters])
        self._is_busy = np.array([one.metric == "busy_share" for one in counters])
        self._begin()

    def _begin(self) -> None:
        self._t_ns: list[int] = []
        self._interval_ns: list[int] = []
        self._cells: list[str | None] = []
        self._most = self._into.samples_at_once(len(self._columns))

    def add(self, t_ns: int, interval_ns: int, row: Sequence[str]) -> None:
        """Take a row."""
        try:
            # The time stands last, so that one column is no special case.
            self._cells += self._cells_of(row)[:-1]
        except IndexError:
            self._cells += [row[place] if place < len(row) else None for place in self._places]
        self._t_ns.append(t_ns)
        self._interval_ns.append(interval_ns)
        if len(self._t_ns) >= self._most:
            self.hand_over()

    def hand_over(self) -> None:
        """Make base units of the rows, and hand them over; a rate is of the time since the row before."""
        if not self._t_ns:
            return
        t_ns, interval_ns = np.array(self._t_ns, np.int64), np.array(self._interval_ns, np.int64)
        with np.errstate(all="ignore"):
            made = floats(self._cells).reshape(len(t_ns), -1) * self._factors + self._offsets
            known = np.abs(made) <= VALUE_LARGEST
            known &= ~self._is_delta | ((made >= 0) & (interval_ns > 0)[:, None])
            made = np.where(self._is_delta, made * (interval_ns / 1e9)[:, None], made)
            made = np.where(self._is_busy, np.clip(made, 0.0, 1.0), made)
        made[~known] = np.nan
        self._into.taken.values_taken += int(known.sum())
        for row, place in zip(*np.nonzero(~known), strict=True):
            text = self._cells[row * len(self._columns) + place]
            if text is not None:
                made[row, place] = self._reading(self._columns[place], text, self._interval_ns[row])
        self._into.add_samples(SampleTable(self._sampled, t_ns, interval_ns, made))
        self._begin()

    def _reading(self, column: PdhColumn, text: str, interval_ns: int) -> float:
        """A value that is no plain number, such as one with a comma; NaN where it is none."""
        found = self._into.taken.readings(
            {column.name: text}, {column.name: column.counter}, entity=column.sampled.entity, interval_ns=interval_ns,
            source=column.sampled.source,
        )  # fmt: skip
        return found[0].value if found else math.nan


def floats(texts: Sequence[str | None]) -> Values:
    """Numbers of texts, NaN where a text is none; those of 17 digits cost Python five times as much as Arrow.

    Examples
    --------
    >>> floats(["0.5", None, " ", "x"])
    array([0.5, nan, nan, nan])
    """
    from arro3.core import Array, DataType

    given: list[str | None] = list(texts)
    for _ in range(2):
        found = Array(given, type=DataType.string()).cast(DataType.float64())
        if not found.null_count:
            return np.array(found.to_numpy())
        # A counter without a value is a blank.
        given = [text if text and not text.isspace() else "nan" for text in given]
    return np.array([_float(text) for text in texts])


def _float(text: str | None) -> float:
    try:
        return math.nan if text is None else float(text)
    except ValueError:
        return math.nan


def begin(file: TextIO) -> PdhLog:
    """Read the header of a log.

    Raises
    ------
    NotTaken
        There is none, or it has no counter.
    """
    csv.field_size_limit(CELL_MAX)
    for line in file:
        match = HEADER.match(line)
        if match is not None:
            break
    else:
        raise NotTaken("has no header of a counter log, (PDH-CSV 4.0)")
    separator = "\t" if match["kind"] == "TSV" else ","
    cells = next(_rows([line.replace("\0", "")], separator), [])
    paths = {place: path for place, cell in enumerate(cells) if place and (path := parse_path(cell)) is not None}
    if not paths:
        raise NotTaken("is a counter log without counters")
    zone = _ZONE.search(match["zone"])
    return PdhLog(
        paths=paths,
        width=max(len(cells), 1),
        rows=_rows(lines(file), separator),
        # Minutes to add to local time to get UTC.
        zone=timezone(-timedelta(minutes=int(zone[1]))) if zone is not None and abs(int(zone[1])) < 1440 else None,
    )


def _rows(of: Iterator[str] | Sequence[str], separator: str) -> Iterator[Sequence[str]]:
    reader = csv.reader(of, delimiter=separator)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            # A line that was cut off in a quoted cell.
            continue


def times(log: PdhLog, into: Into) -> Iterator[tuple[int, Sequence[str]]]:
    """Rows that are samples, with their time in UTC nanoseconds; lines of other text are passed over."""
    zone = log.zone or zone_assumed(into.options, into.taken)
    for row in log.rows:
        t_ns = time_ns(row[0], zone) if row else None
        if t_ns is not None:
            yield t_ns, row
        elif len(row) > 1:
            into.taken.not_understood("rows whose first cell is no time", row[0], len(row) - 1)


def time_ns(text: str, zone: timezone) -> int | None:
    """The time of a sample, month first in every language; None for what is no time.

    Examples
    --------
    >>> time_ns("11/23/2026 19:00:00.500", timezone.utc), time_ns("Exiting, please wait...", timezone.utc)
    (1795460400500000000, None)
    """
    hour, _, rest = text.partition(":")
    begin_ns, since_ns = _hour_ns(hour, zone), _in_hour_ns(rest)
    return None if begin_ns is None or since_ns is None else begin_ns + since_ns


@lru_cache
def _hour_ns(text: str, zone: timezone) -> int | None:
    match = _HOUR.match(text)
    if match is None:
        return None
    month, day, year, hour = map(int, match.groups())
    try:
        return utc_ns(datetime(year, month, day, hour, tzinfo=zone))
    except ValueError:
        return None


@lru_cache(4096)
def _in_hour_ns(text: str) -> int | None:
    match = _IN_HOUR.match(text)
    if match is None or int(match[1]) > 59 or int(match[2]) > 59:
        return None
    return (int(match[1]) * 60 + int(match[2])) * 10**9 + int((match[3] or "").ljust(6, "0")) * 1000
