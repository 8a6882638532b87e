"""Answers of Prometheus to range queries (`/api/v1/query_range`, `/api/v1/query` of a range): series of exporters.

Counters are kept as they are counted; what they say of an interval is their difference over it. An expression such as
`rate(...)` has no name, so what it is cannot be known.

Sources: Prometheus, "HTTP API", range vectors; node_exporter, `collector/`; windows_exporter, `docs/`;
postgres_exporter and mysqld_exporter, `collector/`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container, Iterator, Mapping
from typing import ClassVar, NamedTuple, TextIO

import numpy as np

from assay.telemetry.importers.importer import Into, NotTaken
from assay.telemetry.importers.json_documents import JsonAnswers, documents, leaves, record, texts
from assay.telemetry.importers.metric_series import Meaning, MetricSeries, Points, SeriesPlace, hand_over
from assay.telemetry.importers.numbers import NOTHING
from assay.telemetry.importers.samples import Times, Values
from assay.telemetry.importers.taken import NO_USE

_RESULT = re.compile(
    r'"resultType"\s*:\s*"(matrix|vector|scalar|string|streams)"|"status"\s*:\s*"error",\s*"errorType"'
    r'|^\s*\[?\s*\{\s*"metric"\s*:\s*\{'
)
"""An answer, an error, or the array alone, as promtool prints it."""
_PORT = re.compile(r"(?P<host>.+?):\d{1,5}")
_HOSTS = ("instance", "nodename", "node", "hostname", "host")
"""Labels that name a host."""

_NAMELESS = (
    "an expression has no name, so what it is cannot be known: ask for the counters themselves, such as"
    " node_disk_reads_completed_total"
)
_ASK = (
    "assay reads answers of range queries: curl -G http://SERVER:9090/api/v1/query_range --data-urlencode"
    " 'query={__name__=~\"node_disk_.+|node_cpu_.+|node_pressure_.+\"}' -d start=... -d end=... -d step=15"
)
GAP = 1.5
"""A step of so many usual ones has samples missing in it."""


class _Family(NamedTuple):
    """Metrics of one kind of entity.

    Attributes
    ----------
    label
        The label that names the entity; `=memory` is a name of its own.
    """

    tier: str
    source: str
    label: str
    meanings: Mapping[str, Meaning]


def _disk(prefix: str, **names: str) -> dict[str, Meaning]:
    return {f"{prefix}{name}": Meaning(metric, "count") for metric, name in names.items()}


def _latency(side: str, ios: str, factor: float = 1e9) -> Meaning:
    return Meaning(f"{side}latency_mean_ns", "mean", factor, (ios,))


_NODE_DISK = {
    **_disk(
        "node_disk_", read_ios_count="reads_completed_total", write_ios_count="writes_completed_total",
        read_bytes="read_bytes_total", write_bytes="written_bytes_total", read_merged_ios_count="reads_merged_total",
        write_merged_ios_count="writes_merged_total", discard_ios_count="discards_completed_total",
        flush_ios_count="flush_requests_total",
    ),
    "node_disk_discarded_sectors_total": Meaning("discard_bytes", "count", 512.0),
    "node_disk_read_time_seconds_total": _latency("read_", "node_disk_reads_completed_total"),
    "node_disk_write_time_seconds_total": _latency("write_", "node_disk_writes_completed_total"),
    "node_disk_discard_time_seconds_total": _latency("discard_", "node_disk_discards_completed_total"),
    "node_disk_flush_requests_time_seconds_total": _latency("flush_", "node_disk_flush_requests_total"),
    "node_disk_io_now": Meaning("queue_now_count", instead="queue_mean_count"),
    "node_disk_io_time_seconds_total": Meaning("busy_share", "per_second"),
    "node_disk_io_time_weighted_seconds_total": Meaning("queue_mean_count", "per_second"),
}  # fmt: skip
_NODE_DISK_OLD = {
    **_disk("node_disk_", read_ios_count="reads_completed", write_ios_count="writes_completed",
            read_bytes="bytes_read", write_bytes="bytes_written"),
    "node_disk_read_time_ms": _latency("read_", "node_disk_reads_completed", 1e6),
    "node_disk_write_time_ms": _latency("write_", "node_disk_writes_completed", 1e6),
    "node_disk_io_time_ms": Meaning("busy_share", "per_second", 1e-3),
    "node_disk_io_time_weighted": Meaning("queue_mean_count", "per_second", 1e-3),
}  # fmt: skip
"""Names before node_exporter 0.16."""


def _windows_disk(kind: str) -> dict[str, Meaning]:
    prefix = f"windows_{kind}_disk_"
    return {
        **_disk(prefix, read_ios_count="reads_total", write_ios_count="writes_total", read_bytes="read_bytes_total",
                write_bytes="write_bytes_total"),
        f"{prefix}read_latency_seconds_total": _latency("read_", f"{prefix}reads_total"),
        f"{prefix}write_latency_seconds_total": _latency("write_", f"{prefix}writes_total"),
        f"{prefix}requests_queued": Meaning("queue_now_count", instead="queue_mean_count"),
        f"{prefix}idle_seconds_total": Meaning("busy_share", "idle"),
        f"{prefix}free_bytes": Meaning("free_bytes"),
    }  # fmt: skip


_MEMORY = {
    "node_memory_MemAvailable_bytes": Meaning("available_bytes"),
    "node_memory_MemTotal_bytes": Meaning("total_bytes"),
    "node_memory_Dirty_bytes": Meaning("dirty_bytes"), "node_vmstat_pgmajfault": Meaning("major_faults_count", "count"),
    "windows_memory_available_bytes": Meaning("available_bytes"),
    "windows_memory_physical_total_bytes": Meaning("total_bytes"),
    "windows_cs_physical_memory_bytes": Meaning("total_bytes"),
}  # fmt: skip
_TCP = {
    "node_netstat_Tcp_RetransSegs": Meaning("segments_retransmitted_count", "count"),
    "node_netstat_Tcp_OutSegs": Meaning("segments_out_count", "count"),
}
_NET = {
    f"{prefix}{name}": Meaning(metric, "count")
    for prefix, names in (
        ("node_network_", ("receive_bytes_total", "transmit_bytes_total", "receive_drop_total", "transmit_drop_total",
                           "receive_errs_total", "transmit_errs_total")),
        ("windows_net_", ("bytes_received_total", "bytes_sent_total", "packets_received_discarded_total",
                          "packets_outbound_discarded_total", "packets_received_errors_total",
                          "packets_outbound_errors_total")),
    )
    for name, metric in zip(names, ("in_bytes", "out_bytes", "in_dropped_count", "out_dropped_count",
                                    "in_errors_count", "out_errors_count"), strict=True)
}  # fmt: skip
_POSTGRESQL = {
    "pg_stat_database_xact_commit": Meaning("commits_count", "count"),
    "pg_stat_database_xact_rollback": Meaning("rollbacks_count", "count"),
    "pg_stat_database_blks_read": Meaning("page_reads_count", "count"),
    "pg_stat_database_blks_hit": Meaning("page_requests_count", "count", of=("pg_stat_database_blks_read",)),
    "pg_stat_database_blk_read_time": _latency("read_", "pg_stat_database_blks_read", 1e6),
    "pg_stat_database_deadlocks": Meaning("deadlocks_count", "count"),
    "pg_stat_database_temp_bytes": Meaning("temp_bytes", "count"),
    "pg_stat_database_numbackends": Meaning("sessions_count"),
}
_MYSQL = {
    f"mysql_global_status_{name}": Meaning(metric, "count")
    for name, metric in (
        ("innodb_buffer_pool_read_requests", "page_requests_count"), ("innodb_buffer_pool_reads", "page_reads_count"),
        ("innodb_data_read", "read_bytes"), ("innodb_data_reads", "reads_count"),
        ("innodb_data_written", "written_bytes"), ("innodb_data_writes", "writes_count"),
        ("innodb_data_fsyncs", "data_flushes_count"),
        ("innodb_os_log_written", "log_bytes"), ("innodb_log_writes", "log_writes_count"),
        ("innodb_os_log_fsyncs", "log_flushes_count"), ("innodb_log_waits", "log_buffer_waits_count"),
        ("innodb_row_lock_waits", "row_lock_waits_count"), ("innodb_deadlocks", "deadlocks_count"),
    )
} | {
    "mysql_global_status_innodb_row_lock_time": Meaning("row_lock_time_ns", "count", 1e6),
    "mysql_global_status_threads_running": Meaning("sessions_active_count"),
}  # fmt: skip
_PRESSURE = {
    f"node_pressure_{entity.removeprefix('psi-')}_{word}_seconds_total": (entity, Meaning(metric, "per_second"))
    for entity in ("psi-cpu", "psi-io", "psi-memory")
    for word, metric in (("waiting", "some_share"), ("stalled", "full_share"))
}
_FAMILIES = (
    _Family("storage", "block", "device", {**_NODE_DISK, **_NODE_DISK_OLD}),
    _Family("storage", "block", "disk", _windows_disk("physical")),
    _Family("storage", "block", "volume", _windows_disk("logical")),
    _Family("client", "host", "=memory", _MEMORY),
    _Family("client", "host", "=cpu", {"node_procs_blocked": Meaning("blocked_count"),
                                       "windows_system_processor_queue_length": Meaning("waiting_count")}),
    _Family("client", "host", "=paging", {"node_vmstat_pswpin": Meaning("pages_in_count", "count"),
                                          "node_vmstat_pswpout": Meaning("pages_out_count", "count")}),
    *(_Family("client", "host", f"={entity}", {name: meaning}) for name, (entity, meaning) in _PRESSURE.items()),
    _Family("client", "net", "=tcp", _TCP),
    _Family("client", "net", "device", {name: meaning for name, meaning in _NET.items() if name.startswith("node")}),
    _Family("client", "net", "nic", {name: meaning for name, meaning in _NET.items() if name.startswith("windows")}),
    _Family("database", "postgresql", "datname", _POSTGRESQL),
    _Family("database", "mysql", "=server", _MYSQL),
)  # fmt: skip
_KNOWN = {name: (family, meaning) for family in _FAMILIES for name, meaning in family.meanings.items()}

_MODES = {
    "user": "user_share", "nice": "nice_share", "system": "system_share", "privileged": "system_share",
    "iowait": "iowait_share", "steal": "steal_share", "irq": "interrupt_share", "interrupt": "interrupt_share",
    "softirq": "softirq_share", "dpc": "dpc_share", "idle": "idle_share",
}  # fmt: skip
_PROCESSORS = {"node_cpu_seconds_total": "cpu", "node_cpu": "cpu", "windows_cpu_time_total": "core"}
"""Seconds of processors by mode, and the label that names the processor."""


class Prometheus(JsonAnswers):
    """Prometheus."""

    name: ClassVar[str] = "prometheus"
    title: ClassVar[str] = "Prometheus range query (JSON)"

    def recognises(self, head: str) -> bool:
        """An answer of its API."""
        return _RESULT.search(head[:4000]) is not None

    def read(self, file: TextIO, into: Into) -> None:
        """Take disks, processors, memory, pressure, interfaces and databases of exporters that are known.

        Raises
        ------
        NotTaken
            The file is no answer to a range query, or none of its series is known.
        """
        found: dict[tuple[str, SeriesPlace], _Raw] = {}
        nameless = 0
        for answer in documents(texts(file)):
            for one in _results(answer, into):
                labels, values = record(record(one).get("metric")), record(one).get("values")
                if not isinstance(values, list):
                    into.taken.not_understood("series without values", json.dumps(one), leaves(one))
                    continue
                name = str(labels.get("__name__") or "")
                known = _known_as(name, labels, into)
                if known is None:
                    nameless += not name
                    shown = name or f"an expression with {_labels(labels)}"
                    into.taken.ignore(shown, NO_USE if name else _NAMELESS, len(values))
                    continue
                raw = found.setdefault((known[0], known[1]), _Raw(known[2], _labels(labels), Points()))
                if raw.labels != _labels(labels):
                    raise NotTaken(
                        f"has two series {name} of {known[1].entity} on {known[1].host}: {raw.labels} and"
                        f" {_labels(labels)}; ask for one of them"
                    )
                for pair in values:
                    _take_pair(pair, name, raw, into)
        if not found:
            raise NotTaken(f"holds no series that is known: {_NAMELESS if nameless else NO_USE}")
        disks = {place.host for name, place in found if name.startswith("windows_physical")}
        hand_over((_series(name, _volume(name, place, disks), raw, into) for (name, place), raw in found.items()), into)


def _volume(name: str, place: SeriesPlace, disks: Container[str]) -> SeriesPlace:
    """A volume of Windows counts as a disk where no physical disk was recorded."""
    return place._replace(source="volume") if name.startswith("windows_logical") and place.host in disks else place


class _Raw(NamedTuple):
    """A series as it is in the file."""

    meaning: Meaning
    labels: str
    points: Points


def _results(answer: Mapping[str, object], into: Into) -> Iterator[object]:
    """Series of an answer.

    Raises
    ------
    NotTaken
        It is that to another kind of query.
    """
    if "metric" in answer:
        yield answer
        return
    data = record(answer.get("data")) or answer
    if answer.get("status") == "error" or "error" in answer:
        raise NotTaken(f"is an error of Prometheus: {str(answer.get('error'))[:200]}")
    if data.get("resultType") != "matrix":
        raise NotTaken(f"holds a {str(data.get('resultType'))[:20]}, which is of one moment: {_ASK}")
    result = data.get("result")
    if isinstance(result, list):
        # Each is let go once it was taken: a document takes many times its length.
        result.reverse()
        while result:
            yield result.pop()
    else:
        into.taken.not_understood("result", json.dumps(result), leaves(result))


def _known_as(name: str, labels: Mapping[str, object], into: Into) -> tuple[str, SeriesPlace, Meaning] | None:
    """The name that a series is told by, what it is of and what it becomes; None for one that is not known."""
    told = next((str(labels[one]) for one in _HOSTS if labels.get(one)), into.options.host)
    port = _PORT.fullmatch(told)
    host = port["host"] if port is not None else told
    if name in _PROCESSORS:
        metric = _MODES.get(str(labels.get("mode")))
        cpu = labels.get(_PROCESSORS[name])
        if metric is None:
            return None
        entity = f"cpu/{cpu}" if cpu is not None else "cpu"
        return (
            f"{name} {labels.get('mode')}",
            SeriesPlace("client", host, "host", entity),
            Meaning(metric, "per_second"),
        )
    if name not in _KNOWN:
        return None
    family, meaning = _KNOWN[name]
    entity = family.label[1:] if family.label.startswith("=") else str(labels.get(family.label) or "")
    return name, SeriesPlace(family.tier, host, family.source, entity), meaning


def _labels(labels: Mapping[str, object]) -> str:
    """Labels without the name, for people."""
    shown = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")
    return f"{{{shown[:120]}}}"


def _take_pair(pair: object, name: str, raw: _Raw, into: Into) -> None:
    """Take a time in seconds and a value as text."""
    taken = into.taken
    if not isinstance(pair, list) or len(pair) != 2:
        taken.not_understood(name, json.dumps(pair))
        return
    at, text = pair
    try:
        t_ns, value = round(float(at) * 1000) * 10**6, float(text)
    except (TypeError, ValueError, OverflowError):
        taken.not_understood(name, json.dumps(pair))
        return
    if math.isfinite(value):
        if not raw.points.add(t_ns, value):
            taken.not_understood(name, json.dumps(pair))
    elif str(text).lower() in NOTHING:
        taken.ignore(f"{name} without a value", "nothing was recorded there", 1)
    else:
        taken.not_understood(name, str(text))


def _series(name: str, place: SeriesPlace, raw: _Raw, into: Into) -> MetricSeries:
    """A series with what its counter counted in each interval, or with its gauge."""
    t_ns, values = raw.points.in_order(name, into)
    steps = np.diff(t_ns, prepend=t_ns[:1])
    if raw.meaning.how == "gauge":
        return MetricSeries(name, place, raw.meaning, t_ns, _paced(steps), values)
    counted = _differences(name, values, into)
    return MetricSeries(name, place, raw.meaning, t_ns, steps, counted)


def _differences(name: str, values: Values, into: Into) -> Values:
    """What a counter counted since the sample before; NaN where it began anew."""
    if not values.size:
        return values
    counted = np.diff(values, prepend=np.nan)
    reset = counted < 0
    into.taken.ignore(f"{name} of the first sample", "a counter says something from its second sample on", 1)
    if reset.any():
        why = "the counter began anew, and what it counted before that is not known"
        into.taken.ignore(f"{name} after a reset", why, int(reset.sum()))
    return np.where(reset, np.nan, counted)


def _paced(steps: Times) -> Times:
    """Intervals of a gauge: where samples are missing, it speaks for a usual step alone."""
    if steps.size < 3:
        return steps
    usual = int(np.median(steps[1:]))
    return np.where(steps > GAP * usual, usual, steps)
