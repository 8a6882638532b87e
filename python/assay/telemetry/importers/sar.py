"""Archives of sar as `sadf -j` prints them: one JSON document, with an array of samples for each host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timezone
from typing import Any, ClassVar, TextIO

from assay.telemetry.columns import Reading
from assay.telemetry.importers.importer import NO_USE, Importer, Into, NotTaken, utc_ns
from assay.telemetry.importers.pdh import zone_assumed

ELEMENT_MAX = 16 * 2**20
"""Characters of a sample: one of a host with thousands of disks has a few million."""

Record = Mapping[str, Any]

_CPU = {"usr": "user_share", "user": "user_share", "sys": "system_share", "system": "system_share",
        "iowait": "iowait_share", "steal": "steal_share"}  # fmt: skip
TAKEN = ("timestamp", "cpu-load", "cpu-load-all", "memory", "queue", "disk", "network", "psi", "paging")


_NAMES = {
    ("host", "user_share"): "cpu-load.usr", ("host", "system_share"): "cpu-load.sys",
    ("host", "iowait_share"): "cpu-load.iowait", ("host", "steal_share"): "cpu-load.steal",
    ("host", "available_bytes"): "memory.avail", ("host", "dirty_bytes"): "memory.dirty",
    ("host", "waiting_count"): "queue.runq-sz", ("host", "major_faults_count"): "paging.majflt",
    ("host", "some_share"): "psi.some", ("host", "full_share"): "psi.full",
    ("block", "ios_count"): "disk.tps", ("block", "read_bytes"): "disk.rkB", ("block", "write_bytes"): "disk.wkB",
    ("block", "size_mean_bytes"): "disk.areq-sz", ("block", "latency_mean_ns"): "disk.await",
    ("block", "queue_mean_count"): "disk.aqu-sz", ("block", "busy_share"): "disk.util-percent",
    ("net", "in_bytes"): "net-dev.rxkB", ("net", "out_bytes"): "net-dev.txkB",
    ("net", "in_dropped_count"): "net-edev.rxdrop", ("net", "out_dropped_count"): "net-edev.txdrop",
    ("net", "in_errors_count"): "net-edev.rxerr", ("net", "out_errors_count"): "net-edev.txerr",
    ("net", "segments_out_count"): "net-tcp.oseg", ("net", "segments_retransmitted_count"): "net-etcp.retrans",
}  # fmt: skip
"""What sar calls what is taken, for people."""


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
                local = zone_assumed(into)
            t_ns = _time_ns(stamp, UTC if stamp.get("utc") else local or UTC)
            interval_s = _number(stamp.get("interval"))
            if t_ns is None or not interval_s or interval_s < 0:
                continue
            name = host or into.options.host
            if into.advance(name, t_ns) is None:
                continue
            for key in sample:
                if key not in TAKEN:
                    into.taken.ignore(str(key), NO_USE)
            for tier, source, found in _readings(sample, interval_s):
                for one in found:
                    name_there = _NAMES.get((source, one.metric), one.metric)
                    into.taken.counters.setdefault(name_there, f"{source} {one.metric}")
                into.add(found, host=name, t_ns=t_ns, interval_ns=round(interval_s * 1e9), tier=tier, source=source)


def _readings(sample: Record, interval_s: float) -> Iterator[tuple[str, str, list[Reading]]]:
    """Readings of a sample, with tier and source."""

    def gauge(entity: str, metric: str, value: object, factor: float = 1.0) -> Iterator[Reading]:
        found = _number(value)
        if found is not None:
            yield Reading(entity, metric, "gauge", found * factor)

    def delta(entity: str, metric: str, value: object, factor: float = 1.0) -> Iterator[Reading]:
        found = _number(value)
        if found is not None and found >= 0:
            yield Reading(entity, metric, "delta", found * factor * interval_s)

    host: list[Reading] = []
    for cpu in _records(sample.get("cpu-load") or sample.get("cpu-load-all")):
        entity = "cpu" if cpu.get("cpu") == "all" else f"cpu/{cpu.get('cpu')}"
        for key, metric in _CPU.items():
            host += gauge(entity, metric, cpu.get(key), 0.01)
    memory = _record(sample.get("memory"))
    host += gauge("memory", "available_bytes", memory.get("avail"), 1024)
    host += gauge("memory", "dirty_bytes", memory.get("dirty"), 1024)
    host += gauge("cpu", "waiting_count", _record(sample.get("queue")).get("runq-sz"))
    paging = _record(sample.get("paging"))
    host += delta("memory", "major_faults_count", paging.get("majflt"))
    for what, parts in _record(sample.get("psi")).items():
        entity = str(what).replace("psi-", "psi-") if str(what).startswith("psi-") else f"psi-{what}"
        own = _record(parts)
        host += gauge(entity, "some_share", own.get("some_avg10", own.get("some")), 0.01)
        host += gauge(entity, "full_share", own.get("full_avg10", own.get("full")), 0.01)
    yield "client", "host", host
    block: list[Reading] = []
    for disk in _records(sample.get("disk")):
        device = str(disk.get("disk-device") or "")
        block += delta(device, "ios_count", disk.get("tps"))
        block += delta(device, "read_bytes", disk.get("rkB"), 1024)
        block += delta(device, "write_bytes", disk.get("wkB"), 1024)
        block += gauge(device, "size_mean_bytes", disk.get("areq-sz"), 1024)
        block += gauge(device, "latency_mean_ns", disk.get("await"), 1e6)
        block += gauge(device, "queue_mean_count", disk.get("aqu-sz"))
        block += gauge(device, "busy_share", disk.get("util-percent"), 0.01)
    yield "storage", "block", block
    net: list[Reading] = []
    network = _record(sample.get("network"))
    for one in _records(network.get("net-dev")):
        interface = str(one.get("iface") or "")
        net += delta(interface, "in_bytes", one.get("rxkB"), 1024)
        net += delta(interface, "out_bytes", one.get("txkB"), 1024)
    for one in _records(network.get("net-edev")):
        interface = str(one.get("iface") or "")
        net += delta(interface, "in_dropped_count", one.get("rxdrop"))
        net += delta(interface, "out_dropped_count", one.get("txdrop"))
        net += delta(interface, "in_errors_count", one.get("rxerr"))
        net += delta(interface, "out_errors_count", one.get("txerr"))
    net += delta("tcp", "segments_out_count", _record(network.get("net-tcp")).get("oseg"))
    net += delta("tcp", "segments_retransmitted_count", _record(network.get("net-etcp")).get("retrans"))
    yield "client", "net", net


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
            except (json.JSONDecodeError, RecursionError) as error:
                if not chunk or len(text) > ELEMENT_MAX:
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
    except (json.JSONDecodeError, RecursionError):
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
    number = float(value)
    return number if number - number == 0.0 else None


def _record(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}


def _records(value: object) -> list[Record]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
