"""Metrics of Performance Co-Pilot as `pmrep -o csv` and `pcp2json` print them, live or from archives (`-a`).

Counters are printed as rates (times in ms/s), or as they are with `--raw`; units are those of the metrics (KiB, ms),
where the file does not say others. Sources: PCP 6.0.3, `pmrep`, `pcp2json`, the namespace of `pmdalinux`, and
`derived/iostat.conf`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into, NotTaken
from assay.telemetry.importers.moments import WrittenTime, moment, moment_in
from assay.telemetry.importers.numbers import number
from assay.telemetry.importers.sar_json import DEPTH_MAX, samples
from assay.telemetry.importers.sysstat import with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters

_HEADER = re.compile(r'^"?Time"?(?P<by>[,;|\t ])"?[a-z]\w*\.[\w.]+', re.MULTILINE)
_HOST = re.compile(r"^# +host: +(?P<host>[^\s,]+)")
_ZONE = re.compile(r"UTC(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?")

_KIB, _MS, _SHARE = 1024.0, 1e6, 1e-3
_UNITS = {
    "byte": 1.0, "Kbyte": 1024.0, "Mbyte": 1024.0**2, "Gbyte": 1024.0**3, "Tbyte": 1024.0**4,
    "nanosec": 1e-6, "ns": 1e-6, "microsec": 1e-3, "us": 1e-3, "millisec": 1.0, "ms": 1.0, "sec": 1e3, "s": 1e3,
    "count": 1.0, "none": 1.0, "": 1.0,
}  # fmt: skip
"""Bytes, and milliseconds, of units of PCP; what follows a slash is the second, or the I/O."""


class _Metric(NamedTuple):
    """A metric: what it becomes, its own unit, and whether its raw value counts from the start."""

    counter: Counter
    unit: str = "count"
    is_counter: bool = True


def _of_disks(family: str) -> dict[str, _Metric]:
    found = {
        "total": _Metric(Counter("ios_count", "delta")),
        "avactive": _Metric(Counter("busy_share", factor=_SHARE), "ms"),
        "aveq": _Metric(Counter("queue_mean_count", factor=_SHARE), "ms"),
        "inflight": _Metric(Counter("queue_now_count"), is_counter=False),
        "avg_qlen": _Metric(Counter("queue_mean_count"), is_counter=False),
        "util": _Metric(Counter("busy_share", factor=0.01), is_counter=False),
        "await": _Metric(Counter("latency_mean_ns", factor=_MS), "ms", is_counter=False),
        "avg_rqsz": _Metric(Counter("size_mean_bytes", factor=_KIB), "Kbyte", is_counter=False),
    }
    for side, letter in (("read", "r"), ("write", "w"), ("discard", "d"), ("flush", "f")):
        of = f"disk.{family}.{side}"
        spent = Counter(f"{side}_latency_mean_ns", factor=_MS, of=of)
        found[side] = _Metric(Counter(f"{side}_ios_count", "delta"))
        found[f"{side}_bytes"] = _Metric(Counter(f"{side}_bytes", "delta", _KIB), "Kbyte")
        found[f"{side}_merge"] = _Metric(Counter(f"{side}_merged_ios_count", "delta"))
        found[f"{side}_rawactive"] = _Metric(spent, "ms")
        found[f"{letter}_await"] = _Metric(spent._replace(of=""), "ms", is_counter=False)
        size = Counter(f"{side}_size_mean_bytes", factor=_KIB)
        found[f"{letter}_avg_rqsz"] = _Metric(size, "Kbyte", is_counter=False)
    return {f"disk.{family}.{name}": one for name, one in found.items()}


_SHARES = {
    "user": "user_share", "nice": "nice_share", "sys": "system_share", "idle": "idle_share",
    "wait.total": "iowait_share", "irq.hard": "interrupt_share", "irq.soft": "softirq_share", "steal": "steal_share",
    "guest": "guest_share", "guest_nice": "guest_nice_share",
}  # fmt: skip
_CPUS = ("kernel.all.cpu.", "kernel.percpu.cpu.")
_DISKS = ("dev", "dm", "md", "all")
_KNOWN: Mapping[str, _Metric] = {
    **{name: one for family in _DISKS for name, one in _of_disks(family).items()},
    **{f"{cpus}{name}": _Metric(Counter(metric), "ms") for cpus in _CPUS for name, metric in _SHARES.items()},
    "kernel.all.runnable": _Metric(Counter("waiting_count"), is_counter=False),
    "kernel.all.blocked": _Metric(Counter("blocked_count"), is_counter=False),
    "mem.physmem": _Metric(Counter("total_bytes", factor=_KIB), "Kbyte", is_counter=False),
    "mem.util.free": _Metric(Counter("free_bytes", factor=_KIB), "Kbyte", is_counter=False),
    "mem.util.available": _Metric(Counter("available_bytes", factor=_KIB), "Kbyte", is_counter=False),
    "mem.util.dirty": _Metric(Counter("dirty_bytes", factor=_KIB), "Kbyte", is_counter=False),
    "mem.vmstat.pgmajfault": _Metric(Counter("major_faults_count", "delta")),
    "swap.pagesin": _Metric(Counter("pages_in_count", "delta")),
    "swap.pagesout": _Metric(Counter("pages_out_count", "delta")),
    **{f"network.interface.{side}.{name}": _Metric(Counter(f"{side}_{metric}", "delta"), unit)
       for side in ("in", "out")
       for name, metric, unit in (("bytes", "bytes", "byte"), ("drops", "dropped_count", "count"),
                                  ("errors", "errors_count", "count"))},
    "network.tcp.outsegs": _Metric(Counter("segments_out_count", "delta")),
    "network.tcp.retranssegs": _Metric(Counter("segments_retransmitted_count", "delta")),
    **{f"kernel.all.pressure.{what}.{kind}.total": _Metric(Counter(f"{kind}_share", factor=1e-6), "us")
       for what in ("cpu", "memory", "io") for kind in ("some", "full")},
}  # fmt: skip
_COUNTERS: Counters = {name: one.counter for name, one in _KNOWN.items()}
_NCPU = "hinv.ncpu"
_FIXED = (
    ("mem.vmstat.", "memory"), ("mem.", "memory"), ("swap.", "paging"), ("kernel.all.pressure.io", "psi-io"),
    ("kernel.all.pressure.cpu", "psi-cpu"), ("kernel.all.pressure.memory", "psi-memory"), ("kernel.all", "cpu"),
    ("network.tcp", "tcp"), ("disk.all", "all disks"),
)  # fmt: skip
"""Entities of metrics without instances."""


class _Value(NamedTuple):
    """A value of a metric, of one of its instances."""

    metric: str
    instance: str
    text: object
    unit: str = ""


class PmrepCsv(Importer):
    """pmrep as CSV."""

    name: ClassVar[str] = "pcp"
    title: ClassVar[str] = "pmrep -o csv"

    def recognises(self, head: str) -> bool:
        """A first line of metrics' names."""
        return _HEADER.search(head) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, disks and interfaces of every sample but the first."""
        log = _Log(into)
        columns: list[tuple[str, str]] = []
        header: re.Match[str] | None = None
        for raw in file:
            line = raw.strip("\r\n")
            named, zone = _HOST.match(line), _ZONE.search(line) if line.startswith("# timezone") else None
            header = _HEADER.match(line) or header
            if _HEADER.match(line) is not None and header is not None:
                log.begin()
                columns = [_column(one) for one in _cells(line, header["by"])[1:]]
            elif named is not None:
                log.host = named["host"]
            elif zone is not None:
                log.zone = _offset(zone)
            elif line.strip() and not line.startswith("#") and header is not None:
                at, *cells = _cells(line, header["by"])
                if len(cells) == len(columns):
                    found = (_Value(metric, of, cell) for (metric, of), cell in zip(columns, cells, strict=True))
                    log.sample(at, list(found))
                else:
                    into.taken.not_understood("rows with another number of columns", line, len(cells))
            elif line.strip() and not line.startswith("#"):
                into.taken.not_understood("lines", line, 0)


def _cells(line: str, by: str) -> list[str]:
    try:
        return next(csv.reader([line.replace("\0", "")], delimiter=by), []) or [""]
    except csv.Error:
        return [line]


def _column(title: str) -> tuple[str, str]:
    """A metric and its instance."""
    metric, _, instance = title.partition("-")
    return metric, instance


class Pcp2Json(Importer):
    """pcp2json."""

    name: ClassVar[str] = "pcp"
    title: ClassVar[str] = "pcp2json"

    def recognises(self, head: str) -> bool:
        """Its outermost name."""
        return '"@pcp"' in head and '"@metrics"' in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take what the CSV of pmrep has."""
        log = _Log(into)
        # The zone stands behind the samples.
        zones = (_ZONE.search(line) for line in file if '"@timezone"' in line)
        log.zone = next((_offset(one) for one in zones if one is not None), "")
        file.seek(0)
        run = 0
        for one in samples(file, array='"@metrics"', named='"@host"'):
            if one.run != run:
                run = one.run
                log.begin()
            log.host = one.host or into.options.host
            stamp = one.values.get("@timestamp")
            told = {name: value for name, value in one.values.items() if not name.startswith("@")}
            log.sample(str(stamp or ""), list(_values(told)))


def _values(tree: Mapping[str, object], path: str = "", depth: int = DEPTH_MAX) -> Iterator[_Value]:
    """Values of a tree of metrics' names."""
    for name, below in tree.items():
        metric = f"{path}.{name}" if path else str(name)
        if not isinstance(below, Mapping):
            if not str(name).startswith("@"):
                yield _Value(metric, "", below)
            continue
        each = below.get("@instances")
        for one in each if isinstance(each, list) else ():
            if isinstance(one, Mapping):
                yield _Value(metric, str(one.get("name") or ""), one.get("value"), str(one.get("@unit") or ""))
            else:
                yield _Value(metric, "", one)
        if "value" in below and not isinstance(below["value"], Mapping):
            yield _Value(metric, "", below["value"], str(below.get("@unit") or ""))
        elif depth:
            own = {key: value for key, value in below.items() if not str(key).startswith("@")}
            yield from _values(own, metric, depth - 1)


def _offset(zone: re.Match[str]) -> str:
    return f" {zone['sign']}{int(zone['hours']):02d}:{zone['minutes'] or '00'}"


class _Log:
    """Samples of one file."""

    def __init__(self, into: Into) -> None:
        self.host, self.zone = into.options.host, ""
        self._into, self._clock = into, Clock(into)
        self._before: dict[tuple[str, str], float] | None = None
        self._is_raw: bool | None = None

    def begin(self) -> None:
        """A run begins: raw counters of the one before are no base of it."""
        self._into.begin_run(self.host)
        self._before, self._is_raw = None, None

    def sample(self, stamp: str, found: list[_Value]) -> None:
        """Take a sample."""
        into, taken = self._into, self._into.taken
        at = self._moment(stamp)
        if at is None:
            taken.not_understood("samples whose time is not understood", stamp, len(found))
            return
        interval_ns = into.advance(self.host, t_ns := self._clock.t_ns(at))
        if interval_ns is None:
            taken.ignore("samples while the clock was behind", "their time was before", len(found))
            return
        if self._is_raw is None:
            # Of rates the first sample has none, and an excerpt's have decimals; raw counters are whole.
            own = [str(one.text) for one in found if _is_counter(one.metric) and number(str(one.text)) is not None]
            self._is_raw = bool(own) and not any("." in text for text in own)
        if self._is_raw:
            found = self._rates(found, interval_ns)
        if not interval_ns:
            taken.ignore("the first sample", "the time since the one before is not known", len(found))
            return
        # Raw counters tell of all time since the sample before, rates of an interval.
        self._take(found, t_ns, interval_ns if self._is_raw else into.paced(self.host, interval_ns))

    def _moment(self, stamp: str) -> WrittenTime | None:
        text = stamp.strip()
        return moment(f"{text}{self.zone}") or moment(text) or (moment_in(text) if text[:10].isdecimal() else None)

    def _rates(self, found: Iterable[_Value], interval_ns: int) -> list[_Value]:
        """Raw counters as rates; one that went back began anew, and says nothing."""
        before, self._before = self._before or {}, {}
        made = []
        for one in found:
            value = number(str(one.text)) if _is_counter(one.metric) else None
            if value is None:
                made.append(one)
                continue
            key = (one.metric, one.instance)
            self._before[key] = value
            step = value - before.get(key, value + 1)
            made.append(one._replace(text=step * 1e9 / interval_ns if interval_ns and step >= 0 else None))
        return made

    def _take(self, found: list[_Value], t_ns: int, interval_ns: int) -> None:
        into, taken = self._into, self._into.taken
        groups: dict[tuple[str, str, str], dict[str, object]] = {}
        has_disks = any(one.metric.startswith("disk.dev.") for one in found)
        processors = _processors(found)
        for one in found:
            if one.metric == _NCPU:
                taken.ignore(_NCPU, "shares of processors are made with it", 1)
            elif one.metric not in _KNOWN:
                taken.ignore(one.metric, NO_USE, 1)
            elif has_disks and one.metric.startswith("disk.all."):
                taken.ignore(one.metric, "the sum of the disks that are taken", 1)
            elif one.metric.startswith(_CPUS[0]) and processors is None:
                taken.ignore(one.metric, "the sum over processors, whose number is not in the file (hinv.ncpu)", 1)
            else:
                record = groups.setdefault((*_place(one.metric, has_disks), _entity(one)), {})
                if one.metric in record:
                    raise NotTaken(f"has two values for {one.metric} of {one.instance or self.host} at one time")
                record[one.metric] = _scaled(one, processors)
        sources: dict[tuple[str, str], list[Reading]] = {}
        for (tier, source, entity), record in groups.items():
            _latencies(record)
            readings = taken.readings(record, _COUNTERS, entity=entity, interval_ns=interval_ns, source=source)
            is_cpu = any(name.startswith(_CPUS) for name in record)
            sources.setdefault((tier, source), []).extend(with_busy(readings) if is_cpu else readings)
        for (tier, source), readings in sources.items():
            into.add(readings, host=self.host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)


def _is_counter(metric: str) -> bool:
    return metric in _KNOWN and _KNOWN[metric].is_counter


def _place(metric: str, has_disks: bool) -> tuple[str, str]:
    """Tier and source; what lies on disks that were recorded is no device of its own."""
    if metric.startswith("disk."):
        on_disks = has_disks and metric.startswith(("disk.dm.", "disk.md."))
        return "storage", "volume" if on_disks else "block"
    return "client", "net" if metric.startswith("network.") else "host"


def _entity(one: _Value) -> str:
    if one.metric.startswith(_CPUS[1]):
        return f"cpu/{one.instance.removeprefix('cpu')}"
    return one.instance or next((entity for begin, entity in _FIXED if one.metric.startswith(begin)), "")


def _processors(found: list[_Value]) -> float | None:
    """How many processors there are: as the file says, else by the sum of their time."""
    said = next((number(str(one.text)) for one in found if one.metric == _NCPU), None)
    if said is not None and said > 0:
        return said
    own = {one.metric: number(str(one.text)) or 0.0 for one in found if one.metric.startswith(_CPUS[0])}
    if f"{_CPUS[0]}idle" not in own:
        return None
    guests = sum(value for name, value in own.items() if ".guest" in name)
    return max(float(round((sum(own.values()) - guests) / 1e3)), 1.0)


def _scaled(one: _Value, processors: float | None) -> object:
    """A value in the unit of its metric, times of processors as shares; what is no number stays as it is."""
    value = number(str(one.text))
    if value is None:
        return one.text
    known = _KNOWN[one.metric]
    if one.unit:
        said = _UNITS.get(one.unit.split("/")[0].strip())
        if said is None:
            return f"{one.text} {one.unit}"
        value *= said / _UNITS[known.unit]
    if one.metric.startswith(_CPUS):
        value *= _SHARE / (processors or 1.0 if one.metric.startswith(_CPUS[0]) else 1.0)
    return value


def _latencies(record: dict[str, object]) -> None:
    """Make latencies of the milliseconds that I/Os took in a second, by their number."""
    for name in [one for one in record if one.endswith("_rawactive")]:
        spent, ios = record[name], record.get(name.removesuffix("_rawactive"))
        if isinstance(spent, float) and isinstance(ios, float) and ios > 0:
            record[name] = spent / ios
