"""What storage did for a database over a window: `storage` of a point, and its roles, from rows of the recorder.

Devices say what reached them; the databases say what they asked for, which the kernel's page cache may have answered.
Where both are known, bytes per transaction are those of the devices.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from assay.record.shapes.point import Direction, Sides
from assay.telemetry.summary import Sum, sums
from assay.workloads.databases.shapes import Device, File, PerTransaction, Storage

if TYPE_CHECKING:
    from assay.record.rows import Rows

Side = Literal["read", "write"]
SIDES: tuple[Side, Side] = ("read", "write")

DATABASES = ("postgresql", "mariadb", "mssql")
"""Sources of rows that database servers count."""

_SECOND_NS = 10**9


def storage(
    batches: Sequence[Rows],
    start_ns: int,
    end_ns: int,
    devices_by_role: Mapping[str, Sequence[str]],
    transactions_count: float | None,
    client_cpu_ns: float | None,
    is_local: bool,
    *,
    cpu_count: int | None = None,
) -> Storage:
    """Figures of a window; None where they are not known.

    A row counts with the share of its interval that lies in the window. Rates are per time that rows cover, so that a
    server that was away for a while does not lower them; bytes per transaction are of the whole window at that rate.

    Parameters
    ----------
    batches
        Rows of the series; those of other sources are ignored.
    start_ns, end_ns
        The window, in the clock of the rows.
    devices_by_role
        Block devices under the databases: `assay.telemetry.collectors.devices_by_role`; empty for remote servers.
    transactions_count
        Commits and user rollbacks of the window; None for work without: bytes per transaction are left out.
    client_cpu_ns
        CPU time of the load threads in the window; None if not known.
    is_local
        Whether the servers run on this host, so that what the client did not use of its CPU is theirs.
    cpu_count
        Processors of this host; counted if None.

    Returns
    -------
    dict
        STORAGE, and besides it `read_write` (reads for each write: `operations`, `bytes`), `seconds` (the window),
        `bytes_from` (`devices`, `databases` or None: whose bytes are per transaction) and `database`: `read_iops`,
        `write_iops`, `read_bytes_per_s`, `write_bytes_per_s`, `read_latency_mean_ns`, `write_latency_mean_ns`,
        `log_writes_per_s`, `log_bytes_per_s` and `read_` and `written_bytes_per_transaction` as the servers count.
    """
    found = sums(batches, start_ns, end_ns)
    devices = _devices(found, devices_by_role)
    servers = _Deltas([one for one in found if one.source in DATABASES])
    database = _database(servers)
    seconds = (end_ns - start_ns) / _SECOND_NS
    moved = {
        side: sum(bytes_per_s_of(device, side) for device in devices) if devices else database[f"{side}_bytes_per_s"]
        for side in SIDES
    }

    rates = (moved["read"], moved["write"], database["log_bytes_per_s"])
    requests, misses = servers.total("page_requests_count"), servers.total("page_reads_count")
    return {
        "seconds": seconds,
        "devices": devices,
        **_per_transaction(rates, seconds, transactions_count),
        "log_flush_latency_mean_ns": _log_flush_latency(servers),
        "log_flushes_per_s": servers.per_second("log_flushes_count"),
        "buffer_hit_share": max(0.0, 1 - (misses or 0.0) / requests) if requests else None,
        "temp_bytes": servers.total("temp_bytes"),
        "checkpoints_count": servers.ended("checkpoints_count"),
        "server_cpu_share": _server_cpu_share(found, end_ns - start_ns, client_cpu_ns, cpu_count) if is_local else None,
        "files": _files(found),
        "bytes_from": "devices" if devices else "databases" if moved["read"] is not None else None,
        "read_write": _reads_to_writes(devices, database),
        "database": {**database, **_counted_per_transaction(database, seconds, transactions_count)},
    }


def _per_transaction(
    rates: tuple[float | None, float | None, float | None], seconds: float, transactions_count: float | None
) -> PerTransaction:
    """Bytes of the whole window, read, written and of the log, at these rates a second; nothing for other work."""
    if transactions_count is None:
        return {}
    read, written, log = (
        None if rate is None or not transactions_count else rate * seconds / transactions_count for rate in rates
    )
    return {
        "read_bytes_per_transaction": read,
        "written_bytes_per_transaction": written,
        "log_bytes_per_transaction": log,
    }


def _counted_per_transaction(
    database: Mapping[str, float | None], seconds: float, transactions_count: float | None
) -> dict[str, float | None]:
    """Bytes that a transaction read and wrote as the servers count; nothing for other work."""
    rates = database["read_bytes_per_s"], database["write_bytes_per_s"], None
    found = _per_transaction(rates, seconds, transactions_count)
    if not found:
        return {}
    return {
        "read_bytes_per_transaction": found["read_bytes_per_transaction"],
        "written_bytes_per_transaction": found["written_bytes_per_transaction"],
    }


def bytes_per_s_of(device: Device, side: Side) -> float:
    """Bytes per second that a device read or wrote."""
    return (device.get("read_bytes_per_s") if side == "read" else device.get("write_bytes_per_s")) or 0.0


def iops_of(device: Device, side: Side) -> float:
    """Reads or writes per second of a device."""
    return (device.get("read_iops") if side == "read" else device.get("write_iops")) or 0.0


def _reads_to_writes(devices: Sequence[Device], database: Mapping[str, float | None]) -> dict[str, float | None] | None:
    """Reads for each write, in operations and in bytes, of the devices with data; else as the servers asked.

    None where nothing is known.
    """
    own = [device for device in devices if "data" in (device["roles"] or ())]

    def ratio(key: str, of_device: Callable[[Device, Side], float]) -> float | None:
        reads, writes = (
            sum(of_device(device, side) for device in own) if own else database[f"{side}_{key}"] for side in SIDES
        )
        return reads / writes if reads is not None and writes else None

    found = {"operations": ratio("iops", iops_of), "bytes": ratio("bytes_per_s", bytes_per_s_of)}
    return found if any(value is not None for value in found.values()) else None


def data_devices(storage: Storage) -> list[Device]:
    """Devices of STORAGE that hold data."""
    return [device for device in storage.get("devices") or () if "data" in (device["roles"] or ())]


class _Deltas:
    """What some sources counted in the window, by metric."""

    def __init__(self, found: Sequence[Sum]) -> None:
        self._of_metric: dict[str, list[Sum]] = {}
        for one in found:
            if one.kind == "delta":
                self._of_metric.setdefault(one.metric, []).append(one)

    def total(self, metric: str) -> float | None:
        """Sum over entities; None without rows."""
        found = self._of_metric.get(metric)
        return sum(one.total for one in found) if found else None

    def per_second(self, metric: str) -> float | None:
        """Rates per second of time covered, added over entities; None without rows."""
        found = self._of_metric.get(metric)
        return sum(one.per_ns * _SECOND_NS for one in found) if found else None

    def ended(self, metric: str) -> int | None:
        """Events whose intervals end in the window, each as a whole; None where they are not counted."""
        found = self._of_metric.get(metric)
        return sum(round(one.ended) for one in found) if found else None

    def mean(self, time_metric: str, count_metric: str) -> float | None:
        """Time over count; None where nothing was counted or the server does not time it."""
        spent_ns, count = self.total(time_metric), self.total(count_metric)
        return spent_ns / count if spent_ns and count else None


def _database(sums: _Deltas) -> dict[str, float | None]:
    """What the servers asked of storage."""
    return {
        "read_iops": sums.per_second("reads_count"),
        "write_iops": sums.per_second("writes_count"),
        "read_bytes_per_s": sums.per_second("read_bytes"),
        "write_bytes_per_s": sums.per_second("written_bytes"),
        "read_latency_mean_ns": sums.mean("read_time_ns", "timed_reads_count"),
        "write_latency_mean_ns": sums.mean("write_time_ns", "timed_writes_count"),
        "log_writes_per_s": sums.per_second("log_writes_count"),
        "log_bytes_per_s": sums.per_second("log_bytes"),
    }


def _files(found: Sequence[Sum]) -> list[File]:
    """What was written to each file that a server tells of, the most first."""
    written = [one for one in found if one.source in DATABASES and one.metric == "file_written_bytes" and one.total]
    most_first = sorted(written, key=lambda one: -(one.per_ns * _SECOND_NS))
    return [{"file": one.entity, "write_bytes_per_s": one.per_ns * _SECOND_NS} for one in most_first]


def _log_flush_latency(sums: _Deltas) -> float | None:
    """Mean time of a flush; where writes of the log reach storage by themselves, of a write."""
    flush = sums.mean("log_flush_time_ns", "log_flushes_count")
    return sums.mean("log_write_time_ns", "log_writes_count") if flush is None else flush


def _devices(found: Sequence[Sum], devices_by_role: Mapping[str, Sequence[str]]) -> list[Device]:
    """One entry for each device that rows cover, in the order of the roles."""
    entries: list[Device] = []
    for name in dict.fromkeys(name for devices in devices_by_role.values() for name in devices):
        own = [one for one in found if one.source == "block" and one.entity == name]
        if any(one.metric == "read_ios_count" for one in own):
            roles = [role for role, devices in devices_by_role.items() if name in devices]
            entries.append(_device(name, roles, own))
    return entries


def _device(name: str, roles: list[str], own: Sequence[Sum]) -> Device:
    counted, spent_ns = _Deltas(own), {one.metric: one.total for one in own if one.kind == "gauge"}
    counts = {side: counted.total(f"{side}_ios_count") or 0.0 for side in SIDES}

    def latency_ns(side: Side) -> float | None:
        # The kernel adds up whole milliseconds: of few fast I/Os it may have counted none.
        side_ns = spent_ns.get(f"{side}_latency_mean_ns", 0.0)
        return side_ns / counts[side] if counts[side] and side_ns else None

    def size_bytes(side: Side) -> float | None:
        moved = counted.total(f"{side}_bytes") or 0.0
        return moved / counts[side] if counts[side] else None

    total = sum(counts.values())
    return {
        "device": name,
        "roles": roles,
        "read_iops": counted.per_second("read_ios_count") or 0.0,
        "write_iops": counted.per_second("write_ios_count") or 0.0,
        "read_bytes_per_s": counted.per_second("read_bytes") or 0.0,
        "write_bytes_per_s": counted.per_second("write_bytes") or 0.0,
        "read_latency_mean_ns": latency_ns("read"),
        "write_latency_mean_ns": latency_ns("write"),
        "read_size_mean_bytes": size_bytes("read"),
        "write_size_mean_bytes": size_bytes("write"),
        "read_share": counts["read"] / total if total else None,
    }


def _server_cpu_share(
    found: Sequence[Sum], window_ns: int, client_cpu_ns: float | None, cpu_count: int | None
) -> float | None:
    """Share of the host's CPU that neither the load threads nor the recorder used."""
    own_sources = (("host", "cpu"), ("assay", "recorder"))
    means = {one.metric: one.per_ns for one in found if (one.source, one.entity) in own_sources}
    if client_cpu_ns is None or "user_share" not in means or "system_share" not in means:
        return None
    own = (client_cpu_ns / window_ns + means.get("cpu_share", 0.0)) / (cpu_count or os.cpu_count() or 1)
    return min(1.0, max(0.0, means["user_share"] + means["system_share"] - own))


def roles_of(storage: Storage) -> dict[str, Sides]:
    """What the devices of each role did: `roles` of a point, on which limits are judged; means only.

    The log's writes are those of its device where it has one of its own. Otherwise the database's own count and time
    of them stand for it, since a device that carries data as well says nothing about the log alone; nothing stands for
    temporary files there. Without devices (a remote server) data are what the databases saw.

    Parameters
    ----------
    storage
        What `storage` returned.
    """
    seconds, devices = storage["seconds"] or 0.0, storage["devices"] or []
    roles: dict[str, Sides] = {}
    for role in dict.fromkeys(role for device in devices for role in device["roles"] or ()):
        own = [device for device in devices if role in (device["roles"] or ())]
        if role == "data" or not any("data" in (device["roles"] or ()) for device in own):
            roles[role] = _directions(own, seconds)
    database = storage.get("database") or {}
    if not devices and database.get("read_bytes_per_s") is not None:
        sides = [_seen_by_database(database, side, seconds) for side in SIDES]
        roles["data"] = {"read": sides[0], "write": sides[1], "total": _merged(sides, seconds)}
    log_bytes_per_s = database.get("log_bytes_per_s")
    if "log" not in roles and log_bytes_per_s is not None:
        count = database.get("log_writes_per_s") or storage.get("log_flushes_per_s") or 0.0
        write = _direction(count, log_bytes_per_s, storage["log_flush_latency_mean_ns"], seconds)
        roles["log"] = {"read": None, "write": write, "total": write}
    return roles


def volumes_of(storage: Storage) -> list[Sides]:
    """Each device by itself, so that a mean does not hide the slow one: `volumes` of a point.

    A device that carries the log beside data is listed as data: its latency is not that of the log.
    """
    return [_volume(device, storage["seconds"] or 0.0) for device in storage["devices"] or ()]


def _volume(device: Device, seconds: float) -> Sides:
    roles = device["roles"] or ["data"]
    return {
        "name": device["device"],
        "role": "data" if "data" in roles else roles[0],
        **_directions([device], seconds),
    }


def _directions(devices: Sequence[Device], seconds: float) -> Sides:
    sides = [_merged([_of_device(device, side, seconds) for device in devices], seconds) for side in SIDES]
    return {"read": sides[0], "write": sides[1], "total": _merged(sides, seconds)}


def _of_device(device: Device, side: Side, seconds: float) -> Direction | None:
    mean_ns = device["read_latency_mean_ns"] if side == "read" else device["write_latency_mean_ns"]
    return _direction(iops_of(device, side), bytes_per_s_of(device, side), mean_ns, seconds)


def _seen_by_database(database: Mapping[str, float | None], side: Side, seconds: float) -> Direction | None:
    return _direction(
        database.get(f"{side}_iops") or 0.0,
        database.get(f"{side}_bytes_per_s") or 0.0,
        database.get(f"{side}_latency_mean_ns"),
        seconds,
    )


def _direction(iops: float, bytes_per_s: float, mean_ns: float | None, seconds: float) -> Direction | None:
    if not iops:
        return None
    return {"count": round(iops * seconds), "iops": iops, "bytes_per_s": bytes_per_s, "latency_ns": {"mean": mean_ns},
            "histogram": None}  # fmt: skip


def _merged(sides: Sequence[Direction | None], seconds: float) -> Direction | None:
    """Several directions as one; its mean latency is weighted by I/Os, and None if one of them is not known."""
    active = [side for side in sides if side is not None]
    iops = sum(side["iops"] for side in active)
    means = [side["latency_ns"]["mean"] for side in active]
    weighted = sum(side["iops"] * mean for side, mean in zip(active, means, strict=True) if mean is not None)
    mean_ns = None if None in means or not iops else weighted / iops
    return _direction(iops, sum(side["bytes_per_s"] for side in active), mean_ns, seconds)
