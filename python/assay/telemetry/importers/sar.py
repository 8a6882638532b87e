"""Archives of sar as `sadf -j` prints them: one JSON document, with an array of samples for each host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timezone
from typing import ClassVar, TextIO

from assay.base.tables import Record
from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import NO_USE, Importer, Into, NotTaken, utc_ns
from assay.telemetry.importers.zones import zone_assumed

ELEMENT_MAX = 16 * 2**20
"""Characters of a sample: one of a host with thousands of disks has a few million."""

INTERVAL_MAX_S = 1e9
"""Thirty years; what is longer is no interval."""


_Fields = Mapping[str, tuple[str, str, float]]
"""Metric, kind and factor to base units, by the name of sar's field; sar's rates are per second, kB are 1,024 bytes."""

_CPU: _Fields = {
    "usr": ("user_share", "gauge", 0.01), "user": ("user_share", "gauge", 0.01), "sys": ("system_share", "gauge", 0.01),
    "system": ("system_share", "gauge", 0.01), "iowait": ("iowait_share", "gauge", 0.01),
    "steal": ("steal_share", "gauge", 0.01),
}  # fmt: skip
_MEMORY: _Fields = {"avail": ("available_bytes", "gauge", 1024), "dirty": ("dirty_bytes", "gauge", 1024)}
_QUEUE: _Fields = {"runq-sz": ("waiting_count", "gauge", 1)}
_PAGING: _Fields = {"majflt": ("major_faults_count", "delta", 1)}
_PSI: _Fields = {"some_avg": ("some_share", "gauge", 0.01), "full_avg": ("full_share", "gauge", 0.01)}
"""Shares of the interval; those of the last 10, 60 and 300 seconds overlap from sample to sample."""
_DISK: _Fields = {
    "tps": ("ios_count", "delta", 1), "rkB": ("read_bytes", "delta", 1024), "wkB": ("write_bytes", "delta", 1024),
    "areq-sz": ("size_mean_bytes", "gauge", 1024), "await": ("latency_mean_ns", "gauge", 1e6),
    "aqu-sz": ("queue_mean_count", "gauge", 1), "util-percent": ("busy_share", "gauge", 0.01),
}  # fmt: skip
_INTERFACE: _Fields = {"rxkB": ("in_bytes", "delta", 1024), "txkB": ("out_bytes", "delta", 1024)}
_INTERFACE_ERRORS: _Fields = {
    "rxdrop": ("in_dropped_count", "delta", 1), "txdrop": ("out_dropped_count", "delta", 1),
    "rxerr": ("in_errors_count", "delta", 1), "txerr": ("out_errors_count", "delta", 1),
}  # fmt: skip
_TCP: _Fields = {"oseg": ("segments_out_count", "delta", 1)}
_TCP_ERRORS: _Fields = {"retrans": ("segments_retransmitted_count", "delta", 1)}
TAKEN = ("timestamp", "cpu-load", "cpu-load-all", "memory", "queue", "disk", "network", "psi", "paging")

_PSI_ENTITIES = {"psi-mem": "psi-memory"}
"""Resources whose pressure Assay records under another name."""


class Sar(Importer):
    """sar, of sysstat."""

    name: ClassVar[str] = "sar"
    title: ClassVar[str] = "sar (sadf -j)"

    def recognises(self, head: str) -> bool:
        """A document of sysstat whose samples have times; those of iostat have disks without."""
        return '"sysstat"' in head and '"disk_device"' not in head and '"avg-cpu"' not in head

    def read(self, file: TextIO, into: Into) -> None:
        """Take processors, memory, disks, interfaces, TCP and PSI of every sample."""
        local: timezone | None = None
        for host, sample in samples(file):
            stamp = sample.get("timestamp")
            if not isinstance(stamp, Mapping):
                continue
            if not stamp.get("utc") and local is None:
                local = zone_assumed(into.options, into.taken)
            t_ns = _time_ns(stamp, UTC if stamp.get("utc") else local or UTC)
            interval_s = _number(stamp.get("interval"))
            if t_ns is None or not interval_s or not 0 < interval_s <= INTERVAL_MAX_S:
                continue
            name = host or into.options.host
            if into.advance(name, t_ns) is None:
                continue
            for key in sample:
                if key not in TAKEN:
                    into.taken.ignore(str(key), NO_USE)
            for tier, source, records in _sections(sample):
                found = []
                for section, entity, record, fields in records:
                    for key, one in _readings(entity, record, fields, interval_s):
                        into.taken.counters.setdefault(f"{section}.{key}", f"{source} {one.metric}")
                        found.append(one)
                into.add(found, host=name, t_ns=t_ns, interval_ns=round(interval_s * 1e9), tier=tier, source=source)


_Section = tuple[str, str, Record, _Fields]
"""Its name, the entity it is of, its values, and those that are taken."""


def _sections(sample: Record) -> Iterator[tuple[str, str, list[_Section]]]:
    """Sections of a sample, with tier and source."""
    load = "cpu-load" if sample.get("cpu-load") else "cpu-load-all"
    host: list[_Section] = [
        (load, "cpu" if one.get("cpu") == "all" else f"cpu/{one.get('cpu')}", one, _CPU)
        for one in _records(sample.get(load))
    ]
    host += [
        ("memory", "memory", _record(sample.get("memory")), _MEMORY),
        ("queue", "cpu", _record(sample.get("queue")), _QUEUE),
        ("paging", "memory", _record(sample.get("paging")), _PAGING),
    ]
    host += [
        ("psi", _PSI_ENTITIES.get(str(what), str(what)), _record(one), _PSI)
        for what, one in _record(sample.get("psi")).items()
    ]
    yield "client", "host", host
    disks = _records(sample.get("disk"))
    yield "storage", "block", [("disk", str(one.get("disk-device") or ""), one, _DISK) for one in disks]
    network = _record(sample.get("network"))
    net: list[_Section] = [
        (section, str(one.get("iface") or ""), one, fields)
        for section, fields in (("net-dev", _INTERFACE), ("net-edev", _INTERFACE_ERRORS))
        for one in _records(network.get(section))
    ]
    net += [
        (section, "tcp", _record(network.get(section)), fields)
        for section, fields in (("net-tcp", _TCP), ("net-etcp", _TCP_ERRORS))
    ]
    yield "client", "net", net


def _readings(entity: str, record: Record, fields: _Fields, interval_s: float) -> Iterator[tuple[str, Reading]]:
    """What is taken of a section, with the names of its fields."""
    for key, (metric, kind, factor) in fields.items():
        value = _number(record.get(key))
        if value is not None and (kind == "gauge" or value >= 0):
            yield key, Reading(entity, metric, kind, value * factor * (interval_s if kind == "delta" else 1.0))


def samples(file: TextIO) -> Iterator[tuple[str, Record]]:
    """Samples of a document of sysstat one by one, each with the name of its host.

    The document is never held whole: what stands before an array of samples is searched for the host's name, and the
    array is decoded element by element.

    Raises
    ------
    NotTaken
        It is no JSON where a sample should be.
    """
    decoder = json.JSONDecoder()
    buffer, host, inside = "", "", False
    while True:
        chunk = file.read(1 << 16)
        buffer += chunk
        while True:
            if not inside:
                start = buffer.find('"statistics"')
                opening = buffer.find("[", start) if start >= 0 else -1
                if opening < 0:
                    # The name may stand in what is kept.
                    host = _host(buffer) or host
                    buffer = buffer[-1024:] if start < 0 else buffer[start:]
                    break
                host = _host(buffer[:start]) or host
                buffer, inside = buffer[opening + 1 :], True
            text = buffer.lstrip(" \t\r\n,")
            if text.startswith("]"):
                buffer, inside = text[1:], False
                continue
            if not text:
                buffer = text
                break
            try:
                sample, end = decoder.raw_decode(text)
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or a nesting as deep, is no sample that only lacks its end.
                is_open = isinstance(error, json.JSONDecodeError)
                if not is_open or not chunk or len(text) > ELEMENT_MAX:
                    raise NotTaken(f"is damaged or cut off: {str(error).partition(':')[0].lower()}") from None
                buffer = text
                break
            buffer = text[end:]
            if isinstance(sample, Mapping):
                yield host, sample
        if not chunk:
            if inside:
                raise NotTaken("is cut off: its array of samples does not end")
            return


def _host(text: str) -> str:
    """The last host that is named in a piece of a document."""
    start = text.rfind('"nodename"')
    if start < 0:
        return ""
    _, _, rest = text[start:].partition(":")
    try:
        name, _ = json.JSONDecoder().raw_decode(rest.lstrip())
    except (ValueError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def _time_ns(stamp: Record, zone: timezone) -> int | None:
    try:
        at = datetime.strptime(f"{stamp.get('date')} {stamp.get('time')}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
    return utc_ns(at.replace(tzinfo=zone))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if number - number == 0.0 else None


def _record(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
