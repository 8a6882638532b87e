"""Hosts of a run on one machine, or with databases on one server: what these count is counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.record.rows import Rows

MACHINE_SOURCES = frozenset(
    {"block", "drive", "host", "multipath", "net", "nfs", "path", "process", "raid", "volume"}
)  # fmt: skip
"""Sources of the series that tell of a machine; all others tell of what one agent did, or of its target."""

_OBSERVER = frozenset({"observing_latency_ns", "observing_cpu_share"})

OF_ONE_DATABASE = {
    "mariadb": _OBSERVER | {"file_written_bytes"},
    "mssql": _OBSERVER | {
        "commits_count", "file_written_bytes", "log_bytes", "log_flush_latency_mean_ns", "log_flushes_count",
        "log_write_latency_mean_ns", "log_write_time_ns", "log_writes_count", "read_bytes", "read_latency_mean_ns",
        "read_time_ns", "reads_count", "size_bytes", "timed_reads_count", "timed_writes_count", "write_latency_mean_ns",
        "write_time_ns", "writes_count", "written_bytes",
    },
    "postgresql": _OBSERVER | {
        "commits_count", "deadlocks_count", "page_reads_count", "page_requests_count", "read_latency_mean_ns",
        "read_time_ns", "rollbacks_count", "size_bytes", "temp_bytes", "timed_reads_count",
    },
}  # fmt: skip
"""Sources of the series that tell of a database server, and which metrics of theirs are one database's, or the
observer's own. All others are the whole server's, and stand under the first database that is under load there."""


def first_on_machine(hosts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The first of the hosts on the same machine, for each host; a host of an unknown machine is alone on it.

    Examples
    --------
    >>> first_on_machine([{"name": "a", "machine": "m"}, {"name": "b", "machine": "m"}, {"name": "c"}])
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """
    firsts: dict[str, str] = {}
    found: dict[str, str] = {}
    for host in hosts:
        name, machine = str(host.get("name")), host.get("machine")
        found[name] = firsts.setdefault(str(machine), name) if machine else name
    return found


def without_twins(rows: Rows, hosts: Sequence[Mapping[str, Any]]) -> Rows:
    """The series without what a second agent recorded of the same machine or database server.

    Of each thing that was recorded the first host's rows stay; those that know the thing's role come before others.
    """
    import numpy as np

    machines = first_on_machine(hosts)
    servers = {(str(host.get("name")), name): server for host in hosts for name, server in _servers(host).items()}
    if len(set(machines.values())) == len(machines) and len(set(servers.values())) == len(servers):
        return rows

    def thing(host: str, source: str, entity: str) -> str | None:
        if source in MACHINE_SOURCES and host in machines:
            return f"{machines[host]} {entity}"
        database, _, part = entity.partition("/")
        server = servers.get((host, database)) if source in OF_ONE_DATABASE else None
        return f"{server} {part}" if server else None

    is_own = np.zeros(len(rows), np.bool_)
    for source, metrics in OF_ONE_DATABASE.items():
        is_own |= rows.are("source", source) & rows.are("metric", *metrics)
    places = {name: place for place, name in enumerate(machines)}
    groups = rows.groups("host", "source", "entity")
    knows_role = groups.sums(~rows.are("role", "") & ~is_own) > 0
    has_rows = groups.sums(~is_own) > 0
    firsts = rows.where(groups.first)
    observed = list(zip(*(firsts.texts[name].column() for name in ("host", "source", "entity")), strict=True))
    things = [thing(*one) for one in observed]
    # Several hosts may tell of one thing: the host that knows its role counts, else the first.
    ranks: dict[tuple[str, str], dict[str, tuple[bool, int]]] = {}
    for number, ((host, source, _), named) in enumerate(zip(observed, things, strict=True)):
        if named is not None and has_rows[number]:
            of_thing = ranks.setdefault((named, source), {})
            rank = (not knows_role[number], places.get(host, len(places)))
            of_thing[host] = min(of_thing.get(host, rank), rank)
    kept = {one: min(of_thing, key=of_thing.__getitem__) for one, of_thing in ranks.items()}
    stays = np.array(
        [
            named is None or kept.get((named, source), host) == host
            for (host, source, _), named in zip(observed, things, strict=True)
        ]
    )
    return rows.where(is_own | stays[groups.of_row])


def _servers(host: Mapping[str, Any]) -> Mapping[str, str]:
    """What a run says of the servers of a host's databases; nothing where it does not know."""
    servers = host.get("servers")
    return servers if isinstance(servers, Mapping) else {}
