"""Files of nmon (`.nmon`), as it writes them and as `sort` orders them for spreadsheets.

A snapshot is the rows of one number, T0001; a row ZZZZ says its time. Amounts are KiB and MiB. Counts of VM are
those of the interval, all others rates. Sources: nmon 16 for Linux; IBM's documentation for what AIX
alone has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.parts import disk_of_part
from assay.telemetry.importers.sysstat import with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_HEAD = re.compile(r"^(AAA,progname,|AAA,host,|ZZZZ,T\d+,\d)", re.MULTILINE)
_NUMBER = re.compile(r"T\d{1,9}", re.ASCII)
_DISKS = re.compile(r"(?P<name>(?:DISK|DG)[A-Z]+)\d*", re.ASCII)
_PROCESSOR = re.compile(r"CPU(?P<number>\d{1,6})", re.ASCII)
_INTERFACE = re.compile(r"(?P<name>.+)-(?P<what>(?:read|write)-KB/s)")

HELD_MAX = 3_000_000
"""Cells of snapshots whose time was not read yet: in a sorted file that is all of them."""

_KIB, _MIB, _MS = 1024.0, 1024.0**2, 1e6
_ITS_DISKS = "its disks say it"

_DISK: Counters = {
    "DISKBUSY": Counter("busy_share", factor=0.01),
    "DISKREAD": Counter("read_bytes", "delta", _KIB), "DISKWRITE": Counter("write_bytes", "delta", _KIB),
    "DISKXFER": Counter("ios_count", "delta"), "DISKBSIZE": Counter("size_mean_bytes", factor=_KIB, of="DISKXFER"),
    "DISKREADS": Counter("read_ios_count", "delta"), "DISKWRITES": Counter("write_ios_count", "delta"),
    "DISKRIO": Counter("read_ios_count", "delta"), "DISKWIO": Counter("write_ios_count", "delta"),
    "DISKRXFER": Counter("read_ios_count", "delta"),
    "DISKSERV": Counter("device_latency_mean_ns", factor=_MS, of="DISKXFER"),
    "DISKREADSERV": Counter("read_latency_mean_ns", factor=_MS, of="DISKRIO+DISKRXFER+DISKREADS"),
    "DISKWRITESERV": Counter("write_latency_mean_ns", factor=_MS, of="DISKWIO+DISKWRITES"),
    "DISKWAIT": Counter("queue_latency_mean_ns", factor=_MS, of="DISKXFER"),
    "DGREADS": Counter("read_ios_count", "delta"), "DGWRITES": Counter("write_ios_count", "delta"),
    "DGREADSERV": Counter("read_latency_mean_ns", factor=_MS, of="DGREADS"),
    "DGWRITESERV": Counter("write_latency_mean_ns", factor=_MS, of="DGWRITES"),
    "DGREADMERGE": Counter("read_merged_ios_count", "delta"),
    "DGWRITEMERGE": Counter("write_merged_ios_count", "delta"),
    "DGINFLIGHT": Counter("queue_now_count"), "DGBACKLOG": Counter("queue_mean_count", factor=1e-3),
    **dict.fromkeys(("DGBUSY", "DGREAD", "DGWRITE", "DGSIZE", "DGXFER"), _ITS_DISKS),
}  # fmt: skip
"""Rows of disks; those of a group of one disk are the disk's."""
_GROUP: Counters = {
    name: one if name.endswith("SERV") else _ITS_DISKS for name, one in _DISK.items() if name.startswith("DG")
}
_CPU: Counters = {
    "User%": Counter("user_share", factor=0.01), "Sys%": Counter("system_share", factor=0.01),
    "Wait%": Counter("iowait_share", factor=0.01), "Idle%": Counter("idle_share", factor=0.01),
    "Steal%": Counter("steal_share", factor=0.01),
}  # fmt: skip
_MEMORY: Counters = {
    "memtotal": Counter("total_bytes", factor=_MIB), "Real total(MB)": Counter("total_bytes", factor=_MIB),
    "memfree": Counter("free_bytes", factor=_MIB), "Real free(MB)": Counter("free_bytes", factor=_MIB),
    "memavailable": Counter("available_bytes", factor=_MIB),
}  # fmt: skip
_VM: Counters = {
    "pgpgin": Counter("paged_in_bytes", "count", _KIB), "pgpgout": Counter("paged_out_bytes", "count", _KIB),
    "pgmajfault": Counter("major_faults_count", "count"),
}  # fmt: skip
_SWAP: Counters = {
    "pswpin": Counter("pages_in_count", "count"), "pswpout": Counter("pages_out_count", "count"),
    "pgsin": Counter("pages_in_count", "delta"), "pgsout": Counter("pages_out_count", "delta"),
}  # fmt: skip
_QUEUE: Counters = {"Runnable": Counter("waiting_count"), "Blocked": Counter("blocked_count")}
_NET: Counters = {"read-KB/s": Counter("in_bytes", "delta", _KIB), "write-KB/s": Counter("out_bytes", "delta", _KIB)}
_HOST = {
    "CPU_ALL": (("cpu", _CPU),), "MEM": (("memory", _MEMORY),), "PROC": (("cpu", _QUEUE),),
    "PAGE": (("paging", _SWAP),), "VM": (("paging", _SWAP), ("memory", _VM)),
}  # fmt: skip
"""Entities of sections of the host, and what is known of them: the last takes what no other knows."""


class _Row(NamedTuple):
    """A row of a snapshot."""

    section: str
    titles: Sequence[str]
    cells: Sequence[str]

    def record(self) -> dict[str, str]:
        return dict(zip(self.titles, self.cells, strict=False))


class Nmon(Importer):
    """nmon."""

    name: ClassVar[str] = "nmon"
    title: ClassVar[str] = "nmon"

    def recognises(self, head: str) -> bool:
        """Its own rows of facts, or of times."""
        return _HEAD.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take disks, processors, memory and interfaces of every snapshot but the first of each run."""
        run = _Run(into, Clock(into))
        for raw in file:
            cells = raw.strip().rstrip(",").split(",")
            section = cells[0]
            if section == "AAA":
                if cells[1:2] == ["progname"] and run.has_begun:
                    run = run.ended()
                elif cells[1:2] == ["host"] and len(cells) > 2:
                    run.host = cells[2].strip() or into.options.host
            elif section == "BBBG" and len(cells) > 3:
                run.groups[cells[2].strip()] = cells[3:]
            elif section == "ZZZZ" and len(cells) > 3:
                run.at(cells[1], f"{cells[3]} {cells[2]}")
            elif section.startswith("BBB") or section == "UARG" or len(cells) < 2:
                continue
            elif section == "TOP":
                # A row of a process has its number first.
                into.taken.ignore("TOP", NO_USE, len(cells) - 3 if _NUMBER.fullmatch("".join(cells[2:3])) else 0)
            elif _NUMBER.fullmatch(cells[1]) is not None:
                run.row(cells[1], section, cells[2:])
            else:
                run.titles[section] = [one.strip() for one in cells[2:]]
        run.ended()


class _Run:
    """Snapshots of one run: their rows are held until the time of the next one is read."""

    def __init__(self, into: Into, clock: Clock) -> None:
        self.host = into.options.host
        self.titles: dict[str, list[str]] = {}
        self.groups: dict[str, list[str]] = {}
        self._into, self._clock = into, clock
        self._held: dict[str, list[_Row]] = {}
        self._count = 0
        self._times: dict[str, int] = {}
        self._is_first = True

    @property
    def has_begun(self) -> bool:
        """Whether it has a snapshot: sorted files have all facts first."""
        return bool(self._held or self._times)

    def row(self, snapshot: str, section: str, cells: Sequence[str]) -> None:
        """Hold a row."""
        taken, titles = self._into.taken, self.titles.get(section)
        if titles is None:
            taken.not_understood("rows without titles", ",".join((section, snapshot, *cells)), len(cells))
            return
        if len(cells) > len(titles):
            more = cells[len(titles) :]
            taken.not_understood(f"{section}: values without a title", more[0], len(more))
        self._count += len(cells)
        if self._count > HELD_MAX:
            raise NotTaken(f"holds more than {HELD_MAX:,} values before their times: do not sort it")
        rows = self._held.setdefault(snapshot, [])
        if any(one.section == section for one in rows):
            raise NotTaken(f"has two rows {section} of {snapshot}: it holds several runs; give each by itself")
        rows.append(_Row(section, titles, cells[: len(titles)]))

    def at(self, snapshot: str, text: str) -> None:
        """The time of a snapshot: those before it are complete."""
        written = moment(text)
        if written is None:
            self._into.taken.not_understood("times of snapshots", text, 0)
            return
        t_ns = self._times[snapshot] = self._clock.t_ns(written)
        self._hand_over(t_ns)

    def ended(self) -> _Run:
        """Hand over what is left; a run of its own follows."""
        self._hand_over(None)
        for snapshot, rows in self._held.items():
            count = sum(len(one.cells) for one in rows)
            self._into.taken.not_understood("snapshots whose time is not said", snapshot, count)
        self._into.begin_run(self.host)
        return _Run(self._into, self._clock)

    def _hand_over(self, before_ns: int | None) -> None:
        known = sorted((self._times[one], one) for one in self._held if one in self._times)
        for t_ns, snapshot in known:
            if before_ns is None or t_ns < before_ns:
                rows = self._held.pop(snapshot)
                self._count -= sum(len(one.cells) for one in rows)
                self._take(rows, t_ns)

    def _take(self, rows: Sequence[_Row], t_ns: int) -> None:
        into, taken = self._into, self._into.taken
        interval_ns = into.advance(self.host, t_ns)
        is_first, self._is_first = self._is_first, False
        if is_first or not interval_ns:
            name, why = (
                ("the first snapshot", "the time since the one before is not known")
                if is_first and interval_ns is not None
                else ("snapshots while the clock was behind", "their time was before")
            )
            taken.ignore(name, why, sum(len(one.cells) for one in rows))
            return
        interval_ns = into.paced(self.host, interval_ns)
        found: dict[tuple[str, str], list[Reading]] = {("client", "host"): [], ("client", "net"): []}
        disks: dict[str, dict[str, str]] = {}
        for row in rows:
            match = _DISKS.fullmatch(row.section)
            if match is not None:
                self._collect(match["name"], row, disks)
            elif row.section == "NET":
                found["client", "net"] += self._net(row, interval_ns)
            else:
                found["client", "host"] += self._of_host(row, interval_ns)
        found["storage", "block"] = [
            one for entity, record in disks.items() for one in self._disk(entity, record, disks, interval_ns)
        ]
        if found["storage", "block"] and not any("latency" in one.metric for one in found["storage", "block"]):
            taken.note("holds no latency of disks in some or all snapshots: nmon -g auto -D records it, or iostat -xt")
        for (tier, source), readings in found.items():
            into.add(readings, host=self.host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)

    def _collect(self, name: str, row: _Row, disks: dict[str, dict[str, str]]) -> None:
        """Add a row to the records of its disks; a group of one disk is that disk."""
        if len(set(row.titles)) < len(row.titles):
            raise NotTaken(f"has a disk twice in {row.section}: which of its values is right, it does not say")
        for title, cell in row.record().items():
            group = self.groups.get(title, []) if name.startswith("DG") else []
            entity = group[0].strip() if len(group) == 1 else title
            if name in disks.setdefault(entity, {}):
                raise NotTaken(f"has two values of {name} of {entity}: which of them is right, it does not say")
            disks[entity][name] = cell

    def _disk(
        self, entity: str, record: dict[str, str], disks: Mapping[str, object], interval_ns: int
    ) -> list[Reading]:
        taken = self._into.taken
        disk = disk_of_part(entity, disks)
        if disk is not None:
            taken.ignore("partitions", "their disk is taken as a whole", len(record))
            return []
        for side in ("READ", "WRITE"):
            # The milliseconds of all I/Os of a second, by their number.
            if (name := f"DG{side}SERV") in record:
                spent, ios = number(record[name]), number(record.get(f"DG{side}S", ""))
                record[name] = str(spent / ios) if spent is not None and ios else record[name]
        is_group = not any(name.startswith("DISK") for name in record)
        return taken.readings(
            record, _GROUP if is_group else _DISK, entity=entity, interval_ns=interval_ns, source="block"
        )

    def _net(self, row: _Row, interval_ns: int) -> list[Reading]:
        interfaces: dict[str, dict[str, str]] = {}
        for title, cell in row.record().items():
            match = _INTERFACE.fullmatch(title)
            if match is None:
                self._into.taken.ignore(f"NET.{title}", NO_USE, 1)
            else:
                interfaces.setdefault(match["name"], {})[match["what"]] = cell
        return [
            one
            for name, record in interfaces.items()
            for one in self._into.taken.readings(
                record, _NET, entity=name, interval_ns=interval_ns, source="net", section="NET."
            )
        ]

    def _of_host(self, row: _Row, interval_ns: int) -> list[Reading]:
        taken, record = self._into.taken, row.record()
        processor = _PROCESSOR.fullmatch(row.section)
        # nmon counts processors from one, Linux from none.
        kinds = ((f"cpu/{int(processor['number']) - 1}", _CPU),) if processor else _HOST.get(row.section, ())
        if not kinds:
            taken.ignore(row.section, NO_USE, len(row.cells))
            return []
        found: list[Reading] = []
        for place, (entity, known) in enumerate(kinds, 1):
            own = {name: cell for name, cell in record.items() if name in known or place == len(kinds)}
            record = {name: cell for name, cell in record.items() if name not in own}
            section = "CPU." if processor else f"{row.section}."
            readings = taken.readings(
                own, known, entity=entity, interval_ns=interval_ns, source="host", section=section
            )
            found += with_busy(readings) if known is _CPU else readings
        return found
