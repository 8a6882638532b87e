"""Recorded values as OpenMetrics, over HTTP on loopback: node_exporter's names where it has the quantity.

Counters begin with the recorder. Sources: OpenMetrics 1.0; node_exporter's collectors diskstats, meminfo, netdev,
netstat and pressure.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from assay.base.errors import OpenFailed, UsageError
from assay.telemetry.columns import Reading

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

METRICS_MAX = 10_000
"""Counters, and gauges: names of programs and interfaces come and go for months."""

SCRAPERS_MAX = 8
"""Connections at once; one more is closed."""
ANSWER_MAX_S = 10.0
"""How long a connection may take in all, however slowly it asks."""

_COUNTERS: dict[tuple[str, str], str] = {
    ("block", "read_ios_count"): "node_disk_reads_completed",
    ("block", "write_ios_count"): "node_disk_writes_completed",
    ("block", "read_bytes"): "node_disk_read_bytes",
    ("block", "write_bytes"): "node_disk_written_bytes",
    ("block", "flush_ios_count"): "node_disk_flush_requests",
    ("net", "in_bytes"): "node_network_receive_bytes",
    ("net", "out_bytes"): "node_network_transmit_bytes",
    ("net", "in_packets_count"): "node_network_receive_packets",
    ("net", "out_packets_count"): "node_network_transmit_packets",
    ("net", "in_dropped_count"): "node_network_receive_drop",
    ("net", "out_dropped_count"): "node_network_transmit_drop",
    ("net", "in_errors_count"): "node_network_receive_errs",
    ("net", "out_errors_count"): "node_network_transmit_errs",
}
"""Deltas that node_exporter counts under another name."""

_SHARES = {
    ("psi-cpu", "some_share"): "node_pressure_cpu_waiting_seconds",
    ("psi-io", "some_share"): "node_pressure_io_waiting_seconds",
    ("psi-io", "full_share"): "node_pressure_io_stalled_seconds",
    ("psi-memory", "some_share"): "node_pressure_memory_waiting_seconds",
    ("psi-memory", "full_share"): "node_pressure_memory_stalled_seconds",
}
"""Shares of time, which become seconds."""

_MODES = {"user_share": "user", "system_share": "system", "iowait_share": "iowait", "steal_share": "steal"}

_GAUGES = {
    ("memory", "available_bytes"): "node_memory_MemAvailable_bytes",
    ("memory", "total_bytes"): "node_memory_MemTotal_bytes",
    ("memory", "dirty_bytes"): "node_memory_Dirty_bytes",
    ("memory", "writeback_bytes"): "node_memory_Writeback_bytes",
}

_UNITS = (("_bytes", "bytes", 1.0), ("_ns", "seconds", 1e-9), ("_share", "ratio", 1.0), ("_count", "", 1.0))


class Exposition:
    """What scrapers are told: counters that add up, and the newest gauges."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[tuple[str, str], float] = {}
        self._gauges: dict[tuple[str, str], float] = {}

    def add(self, readings: Iterable[Reading], *, interval_ns: int, source: str, **_: Any) -> None:
        """Take the values of one interval."""
        readings = list(readings)
        values = {(one.entity, one.metric): one.value for one in readings}
        interval_s = interval_ns / 1e9
        with self._lock:
            for one in readings:
                self._take(one, source, interval_s, values)

    def _take(self, one: Reading, source: str, interval_s: float, values: dict[tuple[str, str], float]) -> None:
        device = _labels(device=one.entity)
        known = _COUNTERS.get((source, one.metric)) if one.kind == "delta" else None
        if known is not None:
            self._count(known, device, one.value)
        elif source == "net" and one.entity == "tcp" and one.kind == "delta":
            name = {"segments_out_count": "OutSegs", "segments_retransmitted_count": "RetransSegs"}.get(one.metric)
            self._count(f"node_netstat_Tcp_{name}" if name else _name(source, one.metric), "", one.value)
        elif source == "host" and (one.entity, one.metric) in _SHARES:
            self._count(_SHARES[one.entity, one.metric], "", one.value * interval_s)
        elif source == "host" and one.entity == "cpu" and one.metric in _MODES:
            self._count("node_cpu_seconds", _labels(cpu="all", mode=_MODES[one.metric]), one.value * interval_s)
        elif source == "host" and (one.entity, one.metric) in _GAUGES:
            self._show(_GAUGES[one.entity, one.metric], "", one.value)
        elif source == "block" and one.metric == "busy_share":
            self._count("node_disk_io_time_seconds", device, one.value * interval_s)
        elif source == "block" and one.metric == "queue_mean_count":
            self._count("node_disk_io_time_weighted_seconds", device, one.value * interval_s)
        elif source == "block" and one.metric in ("read_latency_mean_ns", "write_latency_mean_ns"):
            side = one.metric.split("_", 1)[0]
            ios = values.get((one.entity, f"{side}_ios_count"), 0.0)
            self._count(f"node_disk_{side}_time_seconds", device, one.value * ios / 1e9)
        elif one.kind == "delta":
            self._count(_name(source, one.metric), _labels(entity=one.entity), one.value)
        else:
            self._show(_name(source, one.metric), _labels(entity=one.entity), one.value * _factor(one.metric))

    def _count(self, name: str, labels: str, grown: float) -> None:
        if (name, labels) in self._counters or len(self._counters) < METRICS_MAX:
            self._counters[name, labels] = self._counters.get((name, labels), 0.0) + max(grown, 0.0)

    def _show(self, name: str, labels: str, value: float) -> None:
        if (name, labels) in self._gauges or len(self._gauges) < METRICS_MAX:
            self._gauges[name, labels] = value

    def text(self) -> str:
        """All metrics, as OpenMetrics has them."""
        with self._lock:
            counters, gauges = sorted(self._counters.items()), sorted(self._gauges.items())
        lines: list[str] = []
        for kind, found, suffix in (("counter", counters, "_total"), ("gauge", gauges, "")):
            named = ""
            for (name, labels), value in found:
                if name != named:
                    lines.append(f"# TYPE {name} {kind}")
                    named = name
                lines.append(f"{name}{suffix}{labels} {value!r}")
        return "\n".join([*lines, "# EOF", ""])


def _name(source: str, metric: str) -> str:
    """Name of a quantity that node_exporter lacks: the source, the metric and its unit.

    Examples
    --------
    >>> _name("postgresql", "log_flush_latency_mean_ns"), _name("postgresql", "commits_count")
    ('assay_postgresql_log_flush_latency_mean_seconds', 'assay_postgresql_commits')
    """
    for ending, unit, _ in _UNITS:
        if metric.endswith(ending):
            metric = metric.removesuffix(ending) + (f"_{unit}" if unit else "")
            break
    return re.sub(r"[^a-zA-Z0-9_]", "_", f"assay_{source}_{metric}")


def _factor(metric: str) -> float:
    return next((factor for ending, _, factor in _UNITS if metric.endswith(ending)), 1.0)


def _labels(**labels: str) -> str:
    escaped = (
        f'{name}="' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        for name, text in labels.items()
    )
    return "{" + ",".join(escaped) + "}"


def parse_address(text: str, *, anywhere: bool) -> tuple[str, int]:
    """Address and port of `127.0.0.1:9600`.

    Raises
    ------
    UsageError
        It has another form, or is not of this host alone and that was not asked for.

    Examples
    --------
    >>> parse_address("127.0.0.1:9600", anywhere=False), parse_address("[::1]:0", anywhere=False)
    (('127.0.0.1', 9600), ('::1', 0))
    """
    host, mark, port = text.rpartition(":")
    host = host.strip("[]")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not mark or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--metrics {text!r}: accepted: ADDRESS:PORT, such as 127.0.0.1:9600")
    if not address.is_loopback and not anywhere:
        raise UsageError(
            f"--metrics {text!r}: others could read it there; give an address of loopback, or --metrics-anywhere as"
            " well"
        )
    return str(address), int(port)


class _Bounded(ThreadingHTTPServer):
    """A server of few connections, each of which ends in time: half a question holds nothing up."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._began_s: dict[Any, float] = {}
        super().__init__(*arguments)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more."""
        del client_address
        if len(self._began_s) >= SCRAPERS_MAX:
            return False
        self._began_s[request] = time.monotonic()
        return True

    def service_actions(self) -> None:
        """End what takes too long; called twice a second."""
        for request, began_s in list(self._began_s.items()):
            if time.monotonic() - began_s > ANSWER_MAX_S:
                with contextlib.suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, whose place is free again."""
        self._began_s.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that goes away is no news."""
        del client_address
        self._began_s.pop(request, None)


def serve(exposition: Exposition, address: tuple[str, int]) -> ThreadingHTTPServer:
    """Answer scrapers in a thread of its own; `server_address` says where.

    Raises
    ------
    OpenFailed
        The port is taken.
    """

    class Answer(BaseHTTPRequestHandler):
        server_version, sys_version = "assay", ""
        timeout = 10

        def do_GET(self) -> None:
            if self.path not in ("/metrics", "/"):
                self.send_error(404)
                return
            body = exposition.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Scrapes are no news."""

    class Server(_Bounded):
        address_family = 10 if ":" in address[0] else 2

    try:
        server = Server(address, Answer)
    except OSError as error:
        raise OpenFailed(f"--metrics {address[0]}:{address[1]}: cannot listen there: {error.strerror}") from None
    threading.Thread(target=server.serve_forever, name="assay-metrics", daemon=True).start()
    return server
