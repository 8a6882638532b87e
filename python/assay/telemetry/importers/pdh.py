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
from typing import NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import Into, NotTaken, utc_ns
from assay.telemetry.importers.taken import VALUE_LARGEST, Counter, TakenFile
from assay.telemetry.importers.zones import zone_assumed

HEADER = re.compile(r'^\s*"?\(PDH-(?P<kind>CSV|TSV) (?P<version>[0-9.]+)\)(?P<zone>[^"\t,]*)"?', re.MULTILINE)
_ZONE = re.compile(r"\((-?[0-9]{1,4})\)\s*$")
_PATH = re.compile(r"^\\\\(?P<host>[^\\]+)\\(?P<object>.+)\\(?P<counter>[^\\]*)$")
_TIME = re.compile(r"^\s*(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,6}))?\s*$", re.ASCII)

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
    """A column that is taken: where it stands, and what it becomes."""

    place: int
    name: str
    entity: str
    counter: Counter


class Columns:
    """Columns of a log, by what their rows have in common; each of their cells is accounted for."""

    def __init__(self, log: PdhLog, into: Into) -> None:
        self._log, self._into = log, into
        self._of: dict[str, dict[tuple[str, str], list[PdhColumn]]] = {}
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
        columns = self._of.setdefault(path.host, {}).setdefault((tier, source), [])
        columns.append(PdhColumn(place, path.name, entity, counter))
        self._into.taken.counters[path.name] = f"{source} {counter.metric}"

    def hand_over(self) -> None:
        """Read all rows of the log and hand over what is taken of them."""
        into, taken = self._into, self._into.taken
        for t_ns, row in times(self._log, into):
            width = len(row)
            for place, name, reason in self._ignored:
                if place < width:
                    taken.ignore(name, reason, 1)
            for host, groups in self._of.items():
                interval_ns = into.advance(host, t_ns)
                for (tier, source), columns in groups.items():
                    if interval_ns is None:
                        late = sum(one.place < width for one in columns)
                        taken.ignore("rows while the clock was behind", "their time was before", late)
                        continue
                    found = _readings(columns, row, interval_ns, taken)
                    into.add(
                        found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source, is_declared=True
                    )
            strange = sum(place < width for place in self._strange)
            if strange:
                taken.not_understood("columns that name no counter", row[self._strange[0]], strange)
            if width > self._log.width:
                taken.not_understood("cells beyond the header's columns", row[self._log.width], width - self._log.width)


def _readings(columns: Sequence[PdhColumn], row: Sequence[str], interval_ns: int, taken: TakenFile) -> list[Reading]:
    """The values of a row; a rate is of the time since the row before, so the first row has none."""
    found = []
    width, seconds, strange = len(row), interval_ns / 1e9, 0
    for place, name, entity, (metric, kind, factor, offset, _) in columns:
        if place >= width:
            continue
        text = row[place]
        try:
            # The usual case at its full speed: a log of 100 MB has ten million cells.
            value = float(text) * factor + offset
        except ValueError:
            value = math.nan
        if not -VALUE_LARGEST <= value <= VALUE_LARGEST or (kind == "delta" and (value < 0 or not interval_ns)):
            strange += 1
            counter = Counter(metric, kind, factor, offset)
            found += taken.readings({name: text}, {name: counter}, entity=entity, interval_ns=interval_ns, source="")
        elif kind == "delta":
            found.append(Reading(entity, metric, kind, value * seconds))
        elif metric == "busy_share":
            found.append(Reading(entity, metric, kind, min(max(value, 0.0), 1.0)))
        else:
            found.append(Reading(entity, metric, kind, value))
    taken.values_taken += sum(column.place < width for column in columns) - strange
    return found


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
        rows=_rows((line.replace("\0", "") for line in file), separator),
        # Minutes to add to local time to get UTC.
        zone=timezone(-timedelta(minutes=int(zone[1]))) if zone is not None and abs(int(zone[1])) < 1440 else None,
    )


def _rows(lines: Iterator[str] | Sequence[str], separator: str) -> Iterator[Sequence[str]]:
    reader = csv.reader(lines, delimiter=separator)
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
    match = _TIME.match(text)
    if match is None:
        return None
    month, day, year, hour, minute, second = (int(match[place]) for place in range(1, 7))
    micro = int((match[7] or "").ljust(6, "0"))
    try:
        return utc_ns(datetime(year, month, day, hour, minute, second, micro, tzinfo=zone))
    except ValueError:
        return None
