"""Files of collectl for plots (`-P`), and what it shows (`-sD`, `-sCD --verbose`, `-scd`).

`QueLen` is the mean queue while a disk was busy, `SvcTim` busy time by I/Os and no latency; `Wait` is a latency. Values
are whole numbers. Source: collectl 4.3.1, `formatit.ph`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.sysstat import with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_PLOT = re.compile(r"^#(?:Date(?P<by>[ ,;\t|])Time(?P=by)|UTC[ ,;\t|])\[[A-Z]+[:\]]", re.MULTILINE)
_COLUMN = re.compile(r"\[(?P<kind>[A-Z]+)(?::(?P<name>[^\]]+))?\](?P<title>.+)")
_HOST = re.compile(r"^# Host: +(?P<host>\S+)")
_ZONE = re.compile(r"^# Date: .* TZ: (?P<sign>[+-])(?P<hours>\d\d)(?P<minutes>\d\d)\s*$")
_DAY = re.compile(r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)")
_EPOCH = re.compile(r"(?P<whole>\d{9,10})(?:\.(?P<part>\d{1,9}))?")

_SHARE, _KIB, _MS = 0.01, 1024.0, 1e6
_SVCTM = "the busy time by I/Os, no latency"
THEIR_SUM = "the sum of the disks or interfaces that are taken"
MADE_LATE = (
    ("the first {}", "the time since the one before is not known"),
    ("{}s while the clock was behind", "their time was before"),
)
"""Why a row has no interval: it is the first one, or its time is not after the one before."""

CPU: Counters = {
    "User%": Counter("user_share", factor=_SHARE), "Nice%": Counter("nice_share", factor=_SHARE),
    "Sys%": Counter("system_share", factor=_SHARE), "Wait%": Counter("iowait_share", factor=_SHARE),
    "Irq%": Counter("interrupt_share", factor=_SHARE), "Soft%": Counter("softirq_share", factor=_SHARE),
    "Steal%": Counter("steal_share", factor=_SHARE), "Idle%": Counter("idle_share", factor=_SHARE),
    "Guest%": Counter("guest_share", factor=_SHARE), "GuestN%": Counter("guest_nice_share", factor=_SHARE),
    "RunTot": Counter("waiting_count"), "BlkTot": Counter("blocked_count"),
}  # fmt: skip
_MEMORY: Counters = {
    "Tot": Counter("total_bytes", factor=_KIB), "Free": Counter("free_bytes", factor=_KIB),
    "Dirty": Counter("dirty_bytes", factor=_KIB), "PageMajFaults": Counter("major_faults_count", "delta"),
}  # fmt: skip
DISK: Counters = {
    "Reads": Counter("read_ios_count", "delta"), "Writes": Counter("write_ios_count", "delta"),
    "RMerge": Counter("read_merged_ios_count", "delta"), "WMerge": Counter("write_merged_ios_count", "delta"),
    "RKBytes": Counter("read_bytes", "delta", _KIB), "WKBytes": Counter("write_bytes", "delta", _KIB),
    "WaitR": Counter("read_latency_mean_ns", factor=_MS, of="Reads"),
    "WaitW": Counter("write_latency_mean_ns", factor=_MS, of="Writes"),
    "Wait": Counter("latency_mean_ns", factor=_MS, of="Reads+Writes"),
    "Request": Counter("size_mean_bytes", factor=_KIB, of="Reads+Writes"),
    "QueLen": Counter("queue_mean_count"), "Util": Counter("busy_share", factor=_SHARE), "SvcTim": _SVCTM,
    "RSize": Counter("read_size_mean_bytes", factor=_KIB, of="Reads"),
    "WSize": Counter("write_size_mean_bytes", factor=_KIB, of="Writes"),
}  # fmt: skip
DISKS: Counters = {
    "ReadTot": Counter("read_ios_count", "delta"), "WriteTot": Counter("write_ios_count", "delta"),
    "ReadKBTot": Counter("read_bytes", "delta", _KIB), "WriteKBTot": Counter("write_bytes", "delta", _KIB),
    "OpsTot": THEIR_SUM, "KbTot": THEIR_SUM,
}  # fmt: skip
"""All disks together, where none was recorded by itself."""
NET: Counters = {
    "RxKB": Counter("in_bytes", "delta", _KIB), "TxKB": Counter("out_bytes", "delta", _KIB),
    "RxDrp": Counter("in_dropped_count", "delta"), "TxDrp": Counter("out_dropped_count", "delta"),
    "RxErrs": Counter("in_errors_count", "delta"), "TxErrs": Counter("out_errors_count", "delta"),
}  # fmt: skip


class CollectlGroup(NamedTuple):
    """Values of one entity: their place in the series, what is known of them, and their titles by column."""

    tier: str
    source: str
    entity: str
    known: Counters
    section: str
    titles: Mapping[int, str]


_KINDS: Mapping[str, tuple[str, str, str, Counters]] = {
    "CPU": ("client", "host", "cpu", CPU), "MEM": ("client", "host", "memory", _MEMORY),
    "DSK": ("storage", "block", "", DISK), "NET": ("client", "net", "", NET),
}  # fmt: skip


def hand_over(
    found: Sequence[tuple[CollectlGroup, list[Reading]]], into: Into, host: str, t_ns: int, interval_ns: int
) -> None:
    """Hand over the readings of one report, those of a source together."""
    sources: dict[tuple[str, str], list[Reading]] = {}
    for group, readings in found:
        sources.setdefault((group.tier, group.source), []).extend(
            with_busy(readings) if group.known is CPU else readings
        )
    for (tier, source), readings in sources.items():
        into.add(readings, host=host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)


def readings_of(group: CollectlGroup, record: dict[str, object], into: Into, interval_ns: int) -> list[Reading]:
    """What is taken of the values of an entity; the queue is made the mean over the whole time."""
    if group.known is DISK:
        depth, busy = number(str(record.get("QueLen", ""))), number(str(record.get("Util", "")))
        if depth is not None and busy is not None:
            record["QueLen"] = depth * min(busy * _SHARE, 1.0)
    return into.taken.readings(
        record, group.known, entity=group.entity, interval_ns=interval_ns, source=group.source, section=group.section
    )


class CollectlPlot(Importer):
    """collectl's files for plots."""

    name: ClassVar[str] = "collectl"
    title: ClassVar[str] = "collectl -P"

    def recognises(self, head: str) -> bool:
        """Titles that say the kind and the name of each column in brackets."""
        return _PLOT.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, disks and interfaces of every row but the first of each run."""
        clock, host, zone = Clock(into), into.options.host, ""
        columns: _Columns | None = None
        for raw in file:
            line = raw.strip("\r\n")
            if line.startswith("#"):
                named, dated = _HOST.match(line), _ZONE.match(line)
                if named is not None:
                    into.begin_run(host)
                    host = named["host"]
                elif dated is not None:
                    zone = f" {dated['sign']}{dated['hours']}:{dated['minutes']}"
                elif _PLOT.match(line) is not None:
                    columns = _Columns(line.lstrip("#"))
            elif not line.strip():
                continue
            elif columns is None:
                into.taken.not_understood("rows without titles", line, len(line.split()) if line[0].isdigit() else 0)
            else:
                columns.row(line, clock, into, host, zone)


class _Columns:
    """Columns of a file for plots, by what they are of."""

    def __init__(self, titles: str) -> None:
        self.by = next(one for one in titles if not one.isalnum())
        found = titles.strip().split(self.by)
        self.is_utc = found[0] == "UTC"
        self.width = len(found)
        self.names: set[int] = set()
        groups: dict[tuple[str, str], dict[int, str]] = {}
        for place, title in enumerate(found):
            match = _COLUMN.fullmatch(title)
            if match is None:
                continue
            if match["title"] == "Name":
                self.names.add(place)
            else:
                own = groups.setdefault((match["kind"], match["name"] or ""), {})
                own[place] = match["title"].removesuffix("/sec")
        self.others = self.width - len(self.names) - sum(map(len, groups.values())) - (1 if self.is_utc else 2)
        self.groups = [_group(kind, name, own, groups) for (kind, name), own in groups.items()]

    def row(self, line: str, clock: Clock, into: Into, host: str, zone: str) -> None:
        """Take a row."""
        cells = line.strip().split(self.by)
        times = 1 if self.is_utc else 2
        count = max(len(cells) - times - len(self.names), 0)
        if len(cells) != self.width:
            into.taken.not_understood("rows with another number of columns", line, count)
            return
        t_ns = _time_ns(cells[:times], clock, zone)
        if t_ns is None:
            into.taken.not_understood("rows whose time is not understood", line, count)
            return
        interval_ns = into.advance(host, t_ns)
        if not interval_ns:
            name, why = MADE_LATE[interval_ns is None]
            into.taken.ignore(name.format("row"), why, count)
            return
        interval_ns = into.paced(host, interval_ns)
        if self.others > 0:
            into.taken.ignore("columns without a kind", NO_USE, self.others)
        found = []
        for group in self.groups:
            record: dict[str, object] = {title: cells[place] for place, title in group.titles.items()}
            found.append((group, readings_of(group, record, into, interval_ns)))
        hand_over(found, into, host, t_ns, interval_ns)


def _group(kind: str, name: str, own: Mapping[int, str], groups: Mapping[tuple[str, str], object]) -> CollectlGroup:
    tier, source, entity, known = _KINDS.get(kind, ("", "", "", {}))
    section = f"[{kind}]"
    if name:
        return CollectlGroup(tier, source, f"cpu/{name}" if kind == "CPU" else name, known, section, own)
    if kind in ("DSK", "NET"):
        has_each = any(other == kind and its_name for other, its_name in groups)
        known = dict.fromkeys(own.values(), THEIR_SUM) if has_each or kind == "NET" else DISKS
        return CollectlGroup(tier, source, "all disks", known, section, own)
    return CollectlGroup(tier, source, entity, known, section, own)


def _time_ns(cells: Sequence[str], clock: Clock, zone: str) -> int | None:
    if len(cells) == 1:
        epoch = _EPOCH.fullmatch(cells[0])
        return epoch_ns(epoch["whole"], epoch["part"]) if epoch is not None else None
    day = _DAY.fullmatch(cells[0])
    at = moment(f"{day['year']}-{day['month']}-{day['day']} {cells[1]}{zone}") if day is not None else None
    return clock.t_ns(at) if at is not None else None


def epoch_ns(whole: str, part: str | None) -> int:
    """Seconds since 1970 and their part, exactly."""
    return int(whole) * 10**9 + int((part or "0").ljust(9, "0"))
