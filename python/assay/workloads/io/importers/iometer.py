"""Results of Iometer: `results.csv` (`ManagerList.cpp`, `AccessSpecList.cpp`, `PageSetup.cpp`).

Each table of results is a point: its row `ALL`, and of the rows `DISK` what each disk did. Columns are found by their
names, since versions have others. Times are milliseconds. Iometer writes no percentiles; its 21 ranges of response
times are too wide for any.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from assay.record.shapes.manifest import Volume
from assay.record.shapes.point import Sides
from assay.telemetry.importers.importer import NotTaken, Options, utc_ns
from assay.telemetry.importers.taken import TakenFile
from assay.telemetry.importers.zones import zone_assumed
from assay.workloads.imported import (
    ImportedPoint,
    ImportedRun,
    RunImporter,
    Side,
    amount,
    latency_of_statistics,
    together,
    whole,
)
from assay.workloads.io.importers.asked import (
    DEPTH_MAX,
    WORKERS_MAX,
    AskedAccess,
    ImportedFigures,
    ImportedJob,
    named_sides,
    point_of,
    role_of,
    volume_of,
)

COLUMNS_MAX = 1000
ROWS_MAX = 100_000
MEASURED_MAX_S = 1e9
_NEEDED = ("Target Type", "Target Name", "Access Specification Name", "IOps", "Read I/Os", "Write I/Os", "Queue Depth")

_TAKEN = {
    "Read I/Os, Write I/Os, IOps": "count, IOPS, measured_s",
    "Bytes Read, Bytes Written": "throughput",
    "Average Read Response Time, ...Write...": "mean latency",
    "Maximum Read Response Time, ...Write...": "longest latency",
    "% CPU Utilization": "telemetry.cpu_share",
    "Read Errors, Write Errors": "errors",
}
_IGNORED = {
    "0 to 50 uS ... >= 10 s": "ranges of response times that are too wide for percentiles or a histogram",
    "Transactions, Connections, Packets": "points have no such figures",
    "ramp-up": "the file does not say how long it was; points have 0",
    "rows MANAGER, WORKER, PROCESSOR": "the row ALL is taken, and each disk",
}
SPEC = ("size", "% of size", "% reads", "% random", "delay", "burst", "align", "reply")
_ERRORS = {"read": "Read Errors", "write": "Write Errors"}

Row = Mapping[str, str]


class Iometer(RunImporter):
    """Iometer."""

    name: ClassVar[str] = "iometer"
    title: ClassVar[str] = "Iometer (results.csv)"

    def recognises(self, head: str) -> bool:
        """The header of a test, which begins with an apostrophe."""
        return head.lstrip("\ufeff \r\n").startswith("'Test Type,Test Description")

    def read(self, text: str, options: Options) -> ImportedRun:
        """Take every table of results as a point."""
        taken = TakenFile(format=self.name)
        taken.counters.update(_TAKEN)
        taken.ignored.update(_IGNORED)
        reader = _Results(text, options, taken)
        points = list(reader.points())
        if not points:
            raise NotTaken(f"has no results{': ' + taken.notes[-1] if taken.notes else ''}")
        taken.note("it does not say what was written, so whether that compresses is not known")
        return ImportedRun(
            program="Iometer",
            version=reader.version[:40] or "unknown",
            taken=taken,
            points=points,
            volumes=[{**volume} for volume in reader.volumes.values()],
        )


class _Results:
    """A file of results, read line by line."""

    def __init__(self, text: str, options: Options, taken: TakenFile) -> None:
        self.options, self.taken = options, taken
        self.version = ""
        self.volumes: dict[str, Volume] = {}
        self._specs: dict[str, list[Row]] = {}
        self._rows = csv.reader(io.StringIO(text, newline=""))

    def points(self) -> Iterator[ImportedPoint]:
        """Points in the order of the file: a table ends with the time stamp after it.

        Raises
        ------
        NotTaken
            A line is no CSV, a table has other columns, or a value is none of a measurement.
        """
        header: list[str] = []
        table: list[Row] = []
        count = 0
        while line := self._line():
            head = line[0].strip()
            if head == "'Version":
                self.version = self._word().removeprefix("Version").strip()
            elif head == "'Access specifications":
                self._read_specs()
            elif head == "'Results":
                header, table = self._header(), []
            elif head == "'Time Stamp":
                stamp = self._word()
                if table:
                    count += 1
                    yield from self._points(table, stamp, count)
                header, table = [], []
            elif head.lower().startswith("aborted"):
                self.taken.note("the test was aborted; its last table covers what was done until then")
            elif header and len(table) < ROWS_MAX:
                table.append(dict(zip(header, map(str.strip, line), strict=False)))
        if table:
            self.taken.note("ends within a table of results, which is left out")

    def _line(self) -> list[str]:
        """The next line that is not blank; empty at the end."""
        try:
            return next((line[:COLUMNS_MAX] for line in self._rows if any(cell.strip() for cell in line)), [])
        except csv.Error as error:
            raise NotTaken(f"line {self._rows.line_num}: is no CSV ({error})") from None

    def _word(self) -> str:
        return "".join(self._line()[:1]).strip()

    def _header(self) -> list[str]:
        header = [cell.strip().lstrip("'") for cell in self._line()]
        missing = [name for name in _NEEDED if name not in header]
        if missing:
            raise NotTaken(f"has a table of results without the column {missing[0]}")
        return header

    def _read_specs(self) -> None:
        """Access specifications, each with its lines of sizes and shares."""
        name = ""
        while line := self._line():
            head = line[0].strip()
            if head == "'End access specifications":
                return
            if head == "'Access specification name":
                name = self._word()
                self._specs[name] = []
            elif not head.startswith("'") and len(line) >= 4:
                self._specs.setdefault(name, []).append(dict(zip(SPEC, map(str.strip, line), strict=False)))

    def _points(self, table: Sequence[Row], stamp: str, number: int) -> Iterator[ImportedPoint]:
        """The point of a table; none where it does not say what was done."""
        everything = next((row for row in table if row["Target Type"] == "ALL"), None)
        name = (everything or {}).get("Access Specification Name", "")
        label = f"table {number}, {name[:60] or 'without a name'}"
        if everything is None:
            self.taken.ignore(label, "it has no row ALL")
            return
        disks = [row for row in table if row["Target Type"] == "DISK"]
        depth = everything.get("Queue Depth", "")
        if not depth.isdecimal() or not self._specs.get(name):
            why = "its workers have several" if depth.startswith("-") else "it does not say"
            what = "queue depths" if not depth.isdecimal() else "what the access specification is"
            self.taken.ignore(label, f"{why} {what}")
            return
        iops = amount(everything.get("IOps"), f"{label}: IOps") or 0.0
        ios = sum(whole(everything.get(f"{side} I/Os"), f"{label}: I/Os") for side in ("Read", "Write"))
        if not iops or not ios:
            self.taken.ignore(label, "no I/O ended")
            return
        yield self._point(everything, disks, stamp, label, ios / iops)

    def _point(self, everything: Row, disks: Sequence[Row], stamp: str, label: str, seconds: float) -> ImportedPoint:
        name = everything["Access Specification Name"]
        roles = dict.fromkeys(role_of(row["Target Name"], self.options.roles) for row in disks)
        role = next(iter(roles)) if len(roles) == 1 else "data"
        access, unknown, others = access_of(self._specs[name], f"{label}: access specification")
        if everything.get("Starting Sector") == everything.get("Maximum Size") == "0":
            unknown = tuple(key for key in unknown if key != "region")
        sides = {side: _side(everything, side, seconds, label) for side in ("read", "write")}
        for row in disks:
            path = row["Target Name"]
            self.volumes.setdefault(path, volume_of(path, None, role_of(path, self.options.roles)))
        job = ImportedJob(
            label=name[:80] or label,
            access=access | {"role": role},
            queue_depth=min(max(int(everything["Queue Depth"][:9]), 1), DEPTH_MAX),
            # Iometer has so many outstanding for each target of each worker.
            workers=min(max(whole(everything.get("# Disks"), f"{label}: # Disks"), 1), WORKERS_MAX),
            unknown=unknown,
            others=others,
            read=sides["read"],
            write=sides["write"],
        )
        cpu = amount(everything.get("% CPU Utilization"), f"{label}: % CPU Utilization")
        found = {side: whole(everything.get(name), f"{label}: {name}") for side, name in _ERRORS.items()}
        errors = {side: count for side, count in found.items() if count}
        if errors:
            told = " and ".join(f"{count:,} {side} errors" for side, count in errors.items())
            self.taken.note(f"{label}: Iometer reports {told}")
        figures = self._times(stamp, seconds)
        figures |= {
            "warmup_s": 0.0,
            "measured_s": seconds,
            "ended_by": "time",
            "errors": {"count": sum(errors.values()), "kinds": {"other": sum(errors.values())} if errors else {}},
            "telemetry": {} if cpu is None else {"cpu_share": cpu / 100},
            "volumes": self._volumes(disks, seconds, label) if len(disks) > 1 else [],
        }
        return point_of([job], figures, label)

    def _volumes(self, disks: Sequence[Row], seconds: float, label: str) -> list[Sides]:
        """What each disk did; one that several workers use has a row for each of them."""
        found: dict[str, list[Row]] = {}
        for row in disks:
            found.setdefault(row["Target Name"], []).append(row)
        volumes: list[Sides] = []
        for path, rows in found.items():
            where = f"{label}: {path[:60]}"
            read, write = (together([_side(row, side, seconds, where) for row in rows]) for side in ("read", "write"))
            volume = self.volumes[path]
            volumes.append(named_sides(volume["name"], volume["role"], read, write, together([read, write])))
        return volumes

    def _times(self, stamp: str, seconds: float) -> ImportedFigures:
        """The window before the time stamp that ends a table, which is of the local clock."""
        none: ImportedFigures = {"started_utc_ns": None, "measured_from_utc_ns": None, "measured_to_utc_ns": None}
        try:
            at = datetime.strptime(stamp[:19], "%Y-%m-%d %H:%M:%S")
        except ValueError:
            return none
        end_ns = utc_ns(at.replace(tzinfo=zone_assumed(self.options, self.taken)))
        begin_ns = end_ns - round(seconds * 1e9) if seconds < MEASURED_MAX_S else -1
        if begin_ns < 0:
            return none
        return {"started_utc_ns": begin_ns, "measured_from_utc_ns": begin_ns, "measured_to_utc_ns": end_ns}


def _side(row: Row, direction: str, seconds: float, where: str) -> Side | None:
    title = direction.capitalize()
    count = whole(row.get(f"{title} I/Os"), f"{where}: {title} I/Os")
    if not count:
        return None
    moved = whole(row.get("Bytes Read" if direction == "read" else "Bytes Written"), f"{where}: bytes")
    mean, most = (
        amount(row.get(f"{what} {title} Response Time"), f"{where}: {what}") for what in ("Average", "Maximum")
    )
    return Side(
        count=count,
        iops=count / seconds,
        bytes_per_s=moved / seconds,
        latency_ns=latency_of_statistics(
            None if mean is None else mean * 1e6, None if most is None else most * 1e6, {}, None
        ),
    )


def access_of(lines: Sequence[Row], where: str) -> tuple[AskedAccess, tuple[str, ...], dict[str, str]]:
    """What a specification asks for: keys of `Activity`, those that are not known, and what no key has."""
    blocks: dict[str, float] = {}
    reads = random = weights = 0.0
    others: dict[str, str] = {}
    for line in lines[:1000]:
        size = whole(line["size"], f"{where}: size")
        weight = amount(line["% of size"], f"{where}: % of size") or 0.0
        if not size or not weight:
            continue
        blocks[str(size)] = blocks.get(str(size), 0.0) + weight
        reads += weight * min(amount(line["% reads"], f"{where}: % reads") or 0.0, 100.0)
        random += weight * min(amount(line["% random"], f"{where}: % random") or 0.0, 100.0)
        weights += weight
        others |= {key: line[key] for key in ("delay", "reply") if line.get(key, "0") not in ("", "0")}
        if line.get("burst", "1") not in ("", "0", "1"):
            others["burst"] = line["burst"]
    if not blocks:
        raise NotTaken(f"{where}: has no line with a size and a share")
    if len({(line["% reads"], line["% random"]) for line in lines}) > 1:
        others["lines"] = "; ".join(" ".join(line[key] for key in SPEC[:4]) for line in lines[:20])
    unknown = ["region"]
    access: AskedAccess = {
        "block_bytes": int(next(iter(blocks))) if len(blocks) == 1 else blocks,
        "read_share": min(reads / weights / 100, 1.0),
        "random_share": min(random / weights / 100, 1.0),
    }
    aligned = {whole(line.get("align"), f"{where}: align") for line in lines}
    if len(aligned) == 1 and 0 not in aligned:
        access["align_bytes"] = aligned.pop()
    else:
        # 0 stands for the sector, whose size the file does not say.
        unknown.append("align_bytes")
    if access["read_share"] < 1:
        unknown += ["compressible_share", "duplicate_share"]
    return access, tuple(unknown), others
