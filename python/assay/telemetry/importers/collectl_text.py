"""What collectl shows on a terminal: details of disks and processors, summaries, and its brief lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock, Untimed
from assay.telemetry.importers.collectl import (
    CPU,
    DISK,
    DISKS,
    MADE_LATE,
    NET,
    THEIR_SUM,
    CollectlGroup,
    epoch_ns,
    hand_over,
    readings_of,
)
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment, time_alone
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_RECORD = re.compile(
    r"^### RECORD +\d+ >>> (?P<host>\S+) <<< \((?P<whole>\d{9,10})(?:\.(?P<part>\d{1,9}))?\)", re.MULTILINE
)
_HEAD = re.compile(
    r"^### RECORD +\d+ >>> |^#[ \w]{0,40}\bKBytes Merged +IOs|^#[ \w]{0,200}\bKBRead +Reads +KBWrit"
    r"|^#[ \w]{0,40}\bcpu sys inter|^# (?:SINGLE CPU|DISK) (?:STATISTICS|SUMMARY)",
    re.MULTILINE,
)
_THOUSANDS = re.compile(r"(?P<value>\d{1,4})(?P<unit>[KM])")
_PROGRAM = "collectl -sCD -oD -P"
_DAY_NS = 86400 * 10**9

_CPU_TITLES = {
    "User": "User%", "Nice": "Nice%", "Sys": "Sys%", "Wait": "Wait%", "IRQ": "Irq%", "Soft": "Soft%",
    "Steal": "Steal%", "Guest": "Guest%", "NiceG": "GuestN%", "Idle": "Idle%", "RunT": "RunTot", "BlkT": "BlkTot",
}  # fmt: skip
"""Titles on the terminal, and those in files for plots."""
_BRIEF_CPU: Counters = {"cpu": Counter("busy_share", factor=0.01), "sys": Counter("system_share", factor=0.01)}
_TOTALS = {
    "KBRead": "ReadKBTot",
    "Reads": "ReadTot",
    "KBWrit": "WriteKBTot",
    "KBWrite": "WriteKBTot",
    "Writes": "WriteTot",
}
_NET_TITLES = {"KBIn": "RxKB", "KBOut": "TxKB"}


class _Row(NamedTuple):
    """Values of one line of a report."""

    group: CollectlGroup
    record: dict[str, object]


class CollectlText(Importer):
    """collectl on a terminal."""

    name: ClassVar[str] = "collectl"
    title: ClassVar[str] = "collectl -sCD"

    def recognises(self, head: str) -> bool:
        """Its titles."""
        return _HEAD.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, disks and interfaces of every report but the first."""
        reports = _Reports(into)
        titles: list[str] = []
        for raw in file:
            line = raw.strip()
            record = _RECORD.match(line)
            if record is not None:
                reports.end()
                reports.begin(record["host"], epoch_ns(record["whole"], record["part"]))
            elif line.startswith("#"):
                words = line.lstrip("# ").split()
                if "<" not in line:
                    titles = words if len(words) > 3 else []
            elif line and titles:
                reports.row(titles, line.split())
            elif line and not line.startswith("waiting for"):
                into.taken.not_understood("lines", line, len(line.split()) if line[0].isdigit() else 0)
        reports.end()


class _Reports:
    """Reports of a file: rows of one time, or until a row comes again."""

    def __init__(self, into: Into) -> None:
        self._into, self._host = into, into.options.host
        self._clock, self._untimed = Clock(into), Untimed(into, _PROGRAM)
        self._at_ns: int | None = None
        self._stamp: tuple[str, ...] = ()
        self._rows: dict[tuple[str, str], _Row] = {}
        self._first_ns = self._last_ns = -1
        self._is_first = True

    def begin(self, host: str, t_ns: int) -> None:
        """A line says whose report follows, and when it was."""
        self._host, self._at_ns = host, t_ns

    def row(self, titles: Sequence[str], cells: Sequence[str]) -> None:
        """A line of values."""
        times = [title for title in titles[:2] if title in ("Date", "Time")]
        taken = self._into.taken
        if len(cells) != len(titles):
            taken.not_understood("rows with another number of columns", " ".join(cells), len(cells))
            return
        stamp = tuple(cells[: len(times)])
        group, record = _of_titles(titles[len(times) :], cells[len(times) :])
        key = (group.section, group.entity)
        if self._rows and (key in self._rows or stamp != self._stamp):
            self.end()
        self._stamp = stamp
        self._rows[key] = _Row(group, record)

    def end(self) -> None:
        """The end of a report."""
        rows, self._rows = list(self._rows.values()), {}
        if not rows:
            return
        into, taken = self._into, self._into.taken
        count = sum(len(row.record) for row in rows)
        t_ns = self._time_ns()
        if t_ns is None:
            taken.not_understood("reports whose time is not understood", " ".join(self._stamp), count)
            return
        interval_ns = into.advance(self._host, t_ns)
        if not interval_ns:
            name, why = MADE_LATE[interval_ns is None]
            taken.ignore(name.format("report"), why, count)
            return
        interval_ns = into.paced(self._host, interval_ns)
        has_disks = any(row.group.known is DISK for row in rows)
        found: list[tuple[CollectlGroup, list[Reading]]] = []
        for row in rows:
            group = row.group
            if has_disks and group.known is DISKS:
                group = group._replace(known=dict.fromkeys(row.record, THEIR_SUM))
            if not group.source:
                taken.ignore(group.section, NO_USE, len(row.record))
            elif group.known is _BRIEF:
                found += self._brief(row, interval_ns)
            else:
                found.append((group, readings_of(group, row.record, into, interval_ns)))
        hand_over(found, into, self._host, t_ns, interval_ns)

    def _brief(self, row: _Row, interval_ns: int) -> list[tuple[CollectlGroup, list[Reading]]]:
        parts: dict[str, dict[str, object]] = {"cpu": {}, "disks": {}, "": {}}
        for name, cell in row.record.items():
            parts["cpu" if name in _BRIEF_CPU else "disks" if name in _TOTALS else ""][_TOTALS.get(name, name)] = cell
        groups = {
            "cpu": CollectlGroup("client", "host", "cpu", _BRIEF_CPU, "", {}),
            "disks": CollectlGroup("storage", "block", "all disks", DISKS, "", {}),
        }
        for name in parts[""]:
            self._into.taken.ignore(name, NO_USE, 1)
        return [(group, readings_of(group, parts[key], self._into, interval_ns)) for key, group in groups.items()]

    def _time_ns(self) -> int | None:
        """When the report was: as its line says, else its rows, else an interval after the one before."""
        if self._at_ns is not None:
            t_ns, self._at_ns = self._at_ns, None
            return t_ns
        if not self._stamp:
            return self._untimed.next_ns()
        if len(self._stamp) == 2:
            day = self._stamp[0]
            at = moment(f"{day[:4]}-{day[4:6]}-{day[6:]} {self._stamp[1]}")
            return self._clock.t_ns(at) if at is not None else None
        since = time_alone(self._stamp[0])
        return None if since is None else self._of_day(since)

    def _of_day(self, since_ns: int) -> int:
        """A time of day without a date: of the day that the user says, else the time since the beginning."""
        options = self._into.options
        if self._first_ns < 0:
            self._first_ns = self._last_ns = since_ns
            if options.start_ns is None:
                self._into.taken.note(
                    "says times of day without a date: those of its values are of the time since its beginning (--start"
                    " says when it was, -oD records it)"
                )
        while since_ns < self._last_ns - _DAY_NS // 2:
            since_ns += _DAY_NS
        self._last_ns = since_ns
        return max((options.start_ns or 0) + since_ns - self._first_ns, 0)


_BRIEF: Counters = {}
"""A brief line: groups of several subsystems in one row."""


def _of_titles(titles: Sequence[str], cells: Sequence[str]) -> tuple[CollectlGroup, dict[str, object]]:
    """What a row is of, and its values by the titles of files for plots."""
    if "SvcTim" in titles and titles[0] == "Name":
        names = _disk_titles(titles[1:])
        record: dict[str, object] = dict(zip(names, cells[1:], strict=True))
        for name in ("Reads", "Writes"):
            record[name] = _whole(str(record[name])) if name in record else ""
        return CollectlGroup("storage", "block", cells[0], DISK, "[DSK]", {}), {
            k: v for k, v in record.items() if v != ""
        }
    if titles[0] == "Cpu" and "Idle" in titles:
        return _cpu(f"cpu/{cells[0]}", titles[1:], cells[1:])
    if "User" in titles and "Idle" in titles:
        return _cpu("cpu", titles, cells)
    if titles[0] == "Num" and "KBIn" in titles:
        named = {_NET_TITLES.get(name, name): cell for name, cell in zip(titles[2:], cells[2:], strict=True)}
        return CollectlGroup("client", "net", cells[1], NET, "[NET]", {}), dict(named)
    unique = {f"{name} {place}" if name in titles[:place] else name: cell
              for place, (name, cell) in enumerate(zip(titles, cells, strict=True))}  # fmt: skip
    if "KBRead" in titles and "SizeKB" in titles:
        return CollectlGroup("storage", "block", "all disks", DISKS, "[DSK]", {}), {
            _TOTALS.get(name, name): _plain(cell) for name, cell in unique.items()
        }
    if "KBRead" in titles or titles[0] == "cpu":
        return CollectlGroup("client", "host", "", _BRIEF, "brief", {}), {
            name: _plain(cell) for name, cell in unique.items()
        }
    return CollectlGroup("", "", "", {}, " ".join(titles[:3]), {}), dict(unique)


def _cpu(entity: str, titles: Sequence[str], cells: Sequence[str]) -> tuple[CollectlGroup, dict[str, object]]:
    record = {_CPU_TITLES.get(name, name): cell for name, cell in zip(titles, cells, strict=True)}
    return CollectlGroup("client", "host", entity, CPU, "[CPU]", {}), dict(record)


def _disk_titles(titles: Sequence[str]) -> list[str]:
    """Titles of reads, then of writes, then of both, each under a name of its own.

    Examples
    --------
    >>> _disk_titles("KBytes Merged IOs Size KBytes Merged IOs Size RWSize QLen Wait SvcTim Util".split())[4:10]
    ['WKBytes', 'WMerge', 'Writes', 'WSize', 'Request', 'QueLen']
    """
    found = []
    of_both = {"RWSize": "Request", "QLen": "QueLen"}
    of_side = {"KBytes": "{}KBytes", "Merged": "{}Merge", "Size": "{}Size", "Wait": "Wait{}"}
    side = ""
    for title in titles:
        if title == "KBytes":
            side = "R" if not side else "W"
        elif title == "RWSize":
            side = ""
        if title == "IOs" and side:
            found.append("Reads" if side == "R" else "Writes")
        else:
            found.append(of_side[title].format(side) if side and title in of_side else of_both.get(title, title))
    return found


def _whole(text: str) -> str:
    """A count that was shortened by thousands, as `12K`, whole."""
    match = _THOUSANDS.fullmatch(text)
    return text if match is None else f"{match['value']}{'000' if match['unit'] == 'K' else '000000'}"


def _plain(text: str) -> str:
    """A cell of a brief line; what is shortened there says too little to be a value."""
    return text if number(text) is not None else f"{text} (shortened)"
