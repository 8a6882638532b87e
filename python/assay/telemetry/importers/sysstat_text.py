"""Tables with times as sar, mpstat and pidstat print them, and lines as `sadf -d` and `sadf -p` print them.

A title line says when the interval began, its rows when it ended. Source: sysstat, `pr_stats.c`, `mpstat.c`,
`pidstat.c`, `rndr_stats.c`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.moments import day_alone, moment, time_alone
from assay.telemetry.importers.numbers import amount_of
from assay.telemetry.importers.sar import (
    INTERFACE,
    INTERFACE_ERRORS,
    INTERVAL_MAX_S,
    MEMORY,
    PAGING,
    QUEUE,
    SWAPPING,
    TCP,
    TCP_ERRORS,
)
from assay.telemetry.importers.sysstat import CPU, DISK, HEADER, with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_TIMED = r"\d{1,2}[:时時시]\d{2}[:分분]\d{2}[秒초]?(?: [AP]M)?"
_ROW = re.compile(rf"^(?P<at>{_TIMED})\s+(?P<rest>\S.*)$")
_KNOWN_TITLES = (
    r"CPU|DEV|IFACE|UID|PID|kbmemfree|runq-sz|pgpgin/s|pswpin/s|retrans/s|atmptf/s|active/s|tps|proc/s|INTR|TTY"
)
_TITLES = re.compile(rf"^{_TIMED}\s+(?:{_KNOWN_TITLES})\b", re.MULTILINE)
_SADF = re.compile(r"^# ?hostname;interval;timestamp;", re.MULTILINE)
_SADF_LINES = re.compile(r"^\S+\t-?\d+\t(?:\d{9,10}|\d{4}-\d\d-\d\d [\d:]+(?: \w+)?)\t\S+\t\S+\t\S+\s*$", re.MULTILINE)

HELD_MAX = 3_000_000
"""Values of a run that are held until all its tables are read."""


class _Kind(NamedTuple):
    """A table: which column names what it is of, where its values go, and which are known."""

    title: str
    name: str
    tier: str
    source: str
    entity: str
    known: Counters


def _per_second(counters: Counters) -> Counters:
    """Counters of sadf's JSON under the names of tables, which say that they are rates."""
    rates = {f"{name}/s": one for name, one in counters.items() if not isinstance(one, str) and one.kind == "delta"}
    return {**counters, **rates}


_PROCESS: Counters = {
    "kB_rd/s": Counter("read_bytes", "delta", 1024), "kB_wr/s": Counter("write_bytes", "delta", 1024),
    "%usr": Counter("user_share", factor=0.01), "%system": Counter("system_share", factor=0.01),
    "%CPU": Counter("busy_cpus_count", factor=0.01), "iodelay": NO_USE,
}  # fmt: skip
_KINDS = (
    _Kind("PID", "PID", "client", "process", "", _PROCESS),
    _Kind("CPU", "CPU", "client", "host", "cpu", CPU),
    _Kind("DEV", "DEV", "storage", "block", "", _per_second(DISK)),
    _Kind("IFACE", "IFACE", "client", "net", "", _per_second({**INTERFACE, **INTERFACE_ERRORS})),
    _Kind("kbmemfree", "", "client", "host", "memory", MEMORY),
    _Kind("runq-sz", "", "client", "host", "cpu", QUEUE),
    _Kind("pgpgin/s", "", "client", "host", "memory", _per_second(PAGING)),
    _Kind("pswpin/s", "", "client", "host", "paging", _per_second(SWAPPING)),
    _Kind("retrans/s", "", "client", "net", "tcp", _per_second(TCP_ERRORS)),
    _Kind("oseg/s", "", "client", "net", "tcp", _per_second(TCP)),
)


class _Tables:
    """Rows of one run, put together by time: tables follow each other, each over all times."""

    def __init__(self, into: Into) -> None:
        self.into, self.host = into, into.options.host
        self._count = 0
        self._held: dict[tuple[str, int, int], dict[tuple[str, str], list[Reading]]] = {}

    def begin_run(self) -> None:
        """A run of its own begins: hand over what is there."""
        self.end()
        self.into.begin_run(self.host)

    def row(self, titles: Sequence[str], cells: Sequence[str], t_ns: int, interval_ns: int) -> None:
        """Take a row of a table."""
        taken = self.into.taken
        if len(cells) != len(titles):
            taken.not_understood("rows with another number of columns", " ".join(cells), len(cells))
            return
        record = dict(zip(titles, cells, strict=True))
        kind = next((one for one in _KINDS if one.title in titles), None)
        values = {name: cell for name, cell in record.items() if name not in _NAMES}
        if kind is None:
            for name in values:
                taken.ignore(name, NO_USE, 1)
        else:
            self.take(kind, _entity(kind, record), values, t_ns, interval_ns)

    def take(self, kind: _Kind, entity: str, values: Mapping[str, str], t_ns: int, interval_ns: int) -> None:
        """Take values of one entity."""
        readings = self.into.taken.readings(
            values, kind.known, entity=entity, interval_ns=interval_ns, source=kind.source, section=f"{kind.title}."
        )
        if kind.known is CPU:
            readings = with_busy(readings)
        self._count += len(readings)
        if self._count > HELD_MAX:
            raise NotTaken(
                f"holds more than {HELD_MAX:,} values, which tables do not let be read one by one: use sadf -j"
            )
        of_time = self._held.setdefault((self.host, t_ns, interval_ns), {})
        of_time.setdefault((kind.tier, kind.source), []).extend(readings)

    def end(self) -> None:
        """Hand over all rows of the run in the order of their times."""
        for (host, t_ns, interval_ns), groups in sorted(self._held.items()):
            count = sum(one.metric != "busy_share" or bool(one.role) for found in groups.values() for one in found)
            if not 0 < interval_ns <= t_ns or self.into.advance(host, t_ns) is None:
                self.into.taken.values_taken -= count
                self.into.taken.ignore(
                    "rows of no interval, or while the clock was behind", "their time was before", count
                )
                continue
            for (tier, source), found in groups.items():
                self.into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)
        self._held, self._count = {}, 0


_NAMES = frozenset({"CPU", "DEV", "IFACE", "UID", "USER", "PID", "TGID", "TID", "Command"})
"""Columns that say what a row is of."""


def _entity(kind: _Kind, record: Mapping[str, str]) -> str:
    if kind.title == "PID":
        return f"{record.get('Command', 'process')}/{record['PID']}"
    if not kind.name:
        return kind.entity
    name = record[kind.name]
    if kind.entity == "cpu":
        return "cpu" if name in ("all", "-1") else f"cpu/{name}"
    return name


class SarText(Importer):
    """Tables of sar, mpstat and pidstat."""

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "sar, mpstat, pidstat (text)"

    def recognises(self, head: str) -> bool:
        """Title lines that begin with a time."""
        return _TITLES.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, devices, interfaces, memory and processes of every interval.

        Raises
        ------
        NotTaken
            It does not say its date, or holds no table that is known.
        """
        clock, tables, reader = Clock(into, file), _Tables(into), _Reader()
        for raw in file:
            line = raw.strip()
            match = HEADER.match(line)
            if match is not None:
                found = day_alone(match["date"])
                if found is None:
                    raise NotTaken(f"says its date as {match['date'][:40]!r}, which is not understood: use sadf -j")
                tables.begin_run()
                tables.host, reader = match["host"] or into.options.host, _Reader(clock.day(found))
            elif (row := _ROW.match(line)) is not None:
                reader.row(row, clock, tables)
            elif line and line.split()[0].rstrip(":").lower() in _AVERAGES:
                count = sum(amount_of(one) is not None for one in line.split()[1:])
                into.taken.ignore("averages of the whole file", "they are those of its rows", count)
        tables.end()


class _Reader:
    """Where a run is: its day, the table that is read, and when the interval of its next row begins."""

    def __init__(self, day: date | None = None) -> None:
        self._day = day
        self._titles: tuple[str, ...] = ()
        self._begun_ns = self._length_ns = 0
        self._last_ns: dict[tuple[str, ...], int] = {}

    def row(self, row: re.Match[str], clock: Clock, tables: _Tables) -> None:
        """A line that begins with a time: titles, values, or a restart."""
        if self._day is None:
            raise NotTaken(_WITHOUT_DATE)
        cells, since = tuple(row["rest"].split()), time_alone(row["at"])
        if since is None:
            tables.into.taken.not_understood("rows whose time is not understood", row[0], len(cells))
        elif "RESTART" in row["rest"]:
            self._titles = ()
        elif not any(amount_of(one) is not None for one in cells):
            self._titles = cells
            self._begun_ns = clock.of_day(since, self._day, self._last_ns.get(cells))
            self._last_ns.setdefault(cells, self._begun_ns)
        elif self._titles:
            t_ns = clock.of_day(since, self._day, self._last_ns.get(self._titles))
            if t_ns > self._begun_ns:
                self._length_ns = t_ns - self._begun_ns
            self._begun_ns = self._last_ns[self._titles] = t_ns
            tables.row(self._titles, cells, t_ns, self._length_ns)
        else:
            tables.into.taken.not_understood("rows without titles", row[0], len(cells))


_AVERAGES = ("average", "durchschn.", "durchschnitt", "moyenne", "media", "média", "平均时间", "平均值", "summary")
_WITHOUT_DATE = (
    "lacks its first line, which says the date and the host: give it, or record with sadf -j /var/log/sa/sa23 -- -A"
)


class SadfLines(Importer):
    """Lines of `sadf -d` (semicolons) and `sadf -p` (a value a line)."""

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "sadf -d, sadf -p"

    def recognises(self, head: str) -> bool:
        """The title line of -d, or lines of -p."""
        return _SADF.search(head) is not None or _SADF_LINES.search(head[:2000]) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take what the tables of sar hold."""
        clock, tables = Clock(into), _Tables(into)
        titles: list[str] = []
        grouped: dict[tuple[str, int, int, str], dict[str, str]] = {}
        for raw in file:
            line = raw.rstrip("\r\n")
            if line.startswith("#"):
                titles = line.lstrip("# ").split(";")
                continue
            cells = line.split(";") if titles else line.split("\t")
            if len(cells) < 4:
                continue
            stamp = _stamp_ns(cells[2], clock)
            interval = amount_of(cells[1])
            if stamp is None or interval is None or not 0 < interval.value <= INTERVAL_MAX_S:
                count = len(cells) - 3 if titles else 1
                into.taken.ignore("lines without an interval, such as restarts", "rates need one", count)
                continue
            tables.host = cells[0] or into.options.host
            interval_ns = round(interval.value * 1e9)
            if titles:
                tables.row(titles[3:], cells[3:], stamp, interval_ns)
            elif len(cells) == 6:
                grouped.setdefault((tables.host, stamp, interval_ns, cells[3]), {})[cells[4]] = cells[5]
            else:
                into.taken.not_understood("lines", line)
        for (host, t_ns, interval_ns, device), record in grouped.items():
            tables.host = host
            _of_device(device, record, tables, t_ns, interval_ns)
        tables.end()


def _of_device(device: str, record: Mapping[str, str], tables: _Tables, t_ns: int, interval_ns: int) -> None:
    """Values of `sadf -p`: each kind of table is told by its fields, and what they are of stands in one column."""
    left = dict(record)
    for kind in _KINDS:
        own = {name: value for name, value in left.items() if name in kind.known}
        is_disk = kind.title != "DEV" or "await" in left or "tps" in left
        if own and is_disk and kind.source != "process" and (bool(kind.name) or device == "-"):
            left = {name: value for name, value in left.items() if name not in own}
            tables.take(kind, _entity(kind, {kind.name: device}), own, t_ns, interval_ns)
    for name in left:
        tables.into.taken.ignore(name, NO_USE, 1)


def _stamp_ns(text: str, clock: Clock) -> int | None:
    if text.isdecimal() and 9 <= len(text) <= 10:
        return int(text) * 10**9
    at = moment(text)
    return clock.t_ns(at) if at is not None else None
