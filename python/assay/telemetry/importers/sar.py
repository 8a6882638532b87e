"""Archives of sar as `sadf -j` and `sadf -x` print them: one document, with an array of samples for each host."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TextIO

from assay.base.tables import Record
from assay.telemetry.columns import Reading
from assay.telemetry.importers.clock import Clock
from assay.telemetry.importers.importer import Importer, Into
from assay.telemetry.importers.json_documents import number_of
from assay.telemetry.importers.moments import moment
from assay.telemetry.importers.sar_json import Sample, samples
from assay.telemetry.importers.sar_xml import xml_samples
from assay.telemetry.importers.sysstat import CPU, DISK, with_busy
from assay.telemetry.importers.taken import NO_USE, Counter, Counters, TakenFile

INTERVAL_MAX_S = 1e9
"""Thirty years; what is longer is no interval."""

MEMORY: Counters = {
    "avail": Counter("available_bytes", factor=1024), "dirty": Counter("dirty_bytes", factor=1024),
    "kbavail": Counter("available_bytes", factor=1024), "kbdirty": Counter("dirty_bytes", factor=1024),
}  # fmt: skip
QUEUE: Counters = {"runq-sz": Counter("waiting_count"), "blocked": Counter("blocked_count")}
PAGING: Counters = {
    "majflt": Counter("major_faults_count", "delta"), "majflt/s": Counter("major_faults_count", "delta"),
}  # fmt: skip
SWAPPING: Counters = {
    name: Counter(metric, "delta") for name, metric in (("pswpin", "pages_in_count"), ("pswpout", "pages_out_count"))
}
_OVERLAP = "it is a mean of a time that overlaps with that of the next sample"
_PSI: Counters = {
    **{f"{side}_avg{seconds}": _OVERLAP for side in ("some", "full") for seconds in (10, 60, 300)},
    "some_avg": Counter("some_share", factor=0.01), "full_avg": Counter("full_share", factor=0.01),
}  # fmt: skip
INTERFACE: Counters = {"rxkB": Counter("in_bytes", "delta", 1024), "txkB": Counter("out_bytes", "delta", 1024)}
INTERFACE_ERRORS: Counters = {
    "rxdrop": Counter("in_dropped_count", "delta"), "txdrop": Counter("out_dropped_count", "delta"),
    "rxerr": Counter("in_errors_count", "delta"), "txerr": Counter("out_errors_count", "delta"),
}  # fmt: skip
TCP: Counters = {"oseg": Counter("segments_out_count", "delta")}
TCP_ERRORS: Counters = {"retrans": Counter("segments_retransmitted_count", "delta")}

_PSI_ENTITIES = {"psi-mem": "psi-memory"}
"""Resources whose pressure Assay records under another name."""

_NAMES = frozenset({"cpu", "disk-device", "iface"})
"""Fields that are names of what a record is of."""


class Sar(Importer):
    """sar, of sysstat."""

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "sar (sadf -j)"

    def recognises(self, head: str) -> bool:
        """A document of sysstat whose samples have times; those of iostat have disks without."""
        return '"sysstat"' in head and '"disk_device"' not in head and '"avg-cpu"' not in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, disks, interfaces, TCP and PSI of every sample."""
        _read(samples(file), into)


class SarXml(Importer):
    """sar, of sysstat, in XML."""

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "sar (sadf -x)"

    def recognises(self, head: str) -> bool:
        """A document of sysstat in XML."""
        return "<sysstat" in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take what the document in JSON has."""
        _read(xml_samples(file), into)


def _read(found: Iterable[Sample], into: Into) -> None:
    """Hand over samples one by one."""
    clock, run = Clock(into), 0
    for one in found:
        if one.run != run:
            run = one.run
            into.begin_run(one.host or into.options.host)
        _take(one, clock, into)


def _take(one: Sample, clock: Clock, into: Into) -> None:
    """Hand over a sample."""
    sample, taken = one.values, into.taken
    stamp = sample.get("timestamp")
    values = sum(_leaves(value) for key, value in sample.items() if key != "timestamp")
    if not isinstance(stamp, Mapping):
        taken.ignore("samples without a time", "nothing says when they were", values)
        return
    t_ns, interval_s = _time_ns(stamp, clock), number_of(stamp.get("interval"))
    if t_ns is None:
        taken.not_understood("samples whose time is not understood", json.dumps(stamp), values)
        return
    if not interval_s or not 0 < interval_s <= INTERVAL_MAX_S:
        taken.ignore("samples without an interval", "rates need one", values)
        return
    host, interval_ns = one.host or into.options.host, round(interval_s * 1e9)
    if into.advance(host, t_ns) is None or interval_ns > t_ns:
        taken.ignore("samples while the clock was behind", "their time was before", values)
        return
    for key, value in sample.items():
        if key not in _TAKEN:
            taken.ignore(str(key), NO_USE, _leaves(value))
    for tier, source, sections in _sections(sample, taken):
        found: list[Reading] = []
        for section, entity, record, known in sections:
            readings = taken.readings(
                _values(record), known, entity=entity, interval_ns=interval_ns, source=source, section=f"{section}."
            )
            found += with_busy(readings) if known is CPU else readings
        into.add(found, host=host, t_ns=t_ns, interval_ns=interval_ns, tier=tier, source=source)


_Section = tuple[str, str, Record, Counters]
"""Its name, the entity it is of, its values, and those that are known."""

_HOST = (("memory", "memory", MEMORY), ("queue", "cpu", QUEUE), ("paging", "memory", PAGING),
         ("swap-pages", "paging", SWAPPING))  # fmt: skip
_NET = (("net-dev", INTERFACE), ("net-edev", INTERFACE_ERRORS))
_PROTOCOLS = (("net-tcp", TCP), ("net-etcp", TCP_ERRORS))
_TAKEN = {"timestamp", "cpu-load", "cpu-load-all", "disk", "network", "psi", *(name for name, _, _ in _HOST)}


def _sections(sample: Record, taken: TakenFile) -> Iterator[tuple[str, str, list[_Section]]]:
    """Sections of a sample, with tier and source."""
    load = "cpu-load-all" if sample.get("cpu-load-all") else "cpu-load"
    if load == "cpu-load-all" and "cpu-load" in sample:
        taken.ignore("cpu-load", "cpu-load-all says more", _leaves(sample["cpu-load"]))
    host: list[_Section] = [
        (load, "cpu" if one.get("cpu") == "all" else f"cpu/{one.get('cpu')}", one, CPU)
        for one in _records(sample.get(load), load, taken)
    ]
    host += [(name, entity, _record(sample.get(name), name, taken), known) for name, entity, known in _HOST]
    pressure = sample.get("psi")
    if isinstance(pressure, Mapping):
        host += [
            ("psi", _PSI_ENTITIES.get(str(what), str(what)), _record(one, "psi", taken), _PSI)
            for what, one in pressure.items()
        ]
    elif "psi" in sample:
        taken.not_understood("psi", json.dumps(pressure), _leaves(pressure))
    yield "client", "host", host
    disks = _records(sample.get("disk"), "disk", taken)
    yield "storage", "block", [("disk", str(one.get("disk-device") or ""), one, DISK) for one in disks]
    network = sample.get("network")
    if "network" in sample and not isinstance(network, Mapping):
        taken.not_understood("network", json.dumps(network), _leaves(network))
    parts = network if isinstance(network, Mapping) else {}
    net: list[_Section] = [
        (section, str(one.get("iface") or ""), one, known)
        for section, known in _NET
        for one in _records(parts.get(section), section, taken)
    ]
    net += [(section, "tcp", _record(parts.get(section), section, taken), known) for section, known in _PROTOCOLS]
    for key, value in parts.items():
        if key not in {name for name, _ in (*_NET, *_PROTOCOLS)}:
            taken.ignore(f"network.{key}", NO_USE, _leaves(value))
    yield "client", "net", net


def _values(record: Record) -> Record:
    """The values of a record without its names; what is nested stands for itself."""
    return {str(key): value for key, value in record.items() if key not in _NAMES}


def _leaves(value: object) -> int:
    """How many values there are, names left out."""
    if isinstance(value, Mapping):
        return sum(_leaves(one) for key, one in value.items() if key not in _NAMES)
    if isinstance(value, list):
        return sum(_leaves(one) for one in value)
    return 1


def _time_ns(stamp: Record, clock: Clock) -> int | None:
    """When a sample ended; sysstat says the zone as `utc` (until 12.5) or `tz` (since), or as the creator's own."""
    zone = "UTC" if stamp.get("utc") else str(stamp.get("tz") or "")
    at = moment(f"{stamp.get('date')} {stamp.get('time')} {zone}".strip())
    return None if at is None else clock.t_ns(at)


def _record(value: object, name: str, taken: TakenFile) -> Record:
    if isinstance(value, Mapping):
        return value
    if value is not None:
        taken.not_understood(name, json.dumps(value), _leaves(value))
    return {}


def _records(value: object, name: str, taken: TakenFile) -> list[Record]:
    if isinstance(value, Mapping):
        return [value]
    found = []
    for one in value if isinstance(value, list) else () if value is None else (value,):
        if isinstance(one, Mapping):
            found.append(one)
        else:
            taken.not_understood(name, json.dumps(one), _leaves(one))
    return found
