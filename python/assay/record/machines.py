"""Hosts of a run on one machine, or with databases on one server: what these count is counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

MACHINE_SOURCES = frozenset(
    {"block", "host", "multipath", "net", "nfs", "path", "process", "raid", "volume"}
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


def without_twins(frame: pl.DataFrame, hosts: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The series without what a second agent recorded of the same machine or database server.

    Of each thing that was recorded the first host's rows stay; those that know the thing's role come before others.
    """
    import polars as pl

    machines = first_on_machine(hosts)
    servers = {(str(host.get("name")), name): server for host in hosts for name, server in _servers(host).items()}
    if len(set(machines.values())) == len(machines) and len(set(servers.values())) == len(servers):
        return frame

    def thing(host: str, source: str, entity: str) -> str | None:
        if source in MACHINE_SOURCES and host in machines:
            return f"{machines[host]} {entity}"
        database, _, part = entity.partition("/")
        server = servers.get((host, database)) if source in OF_ONE_DATABASE else None
        return f"{server} {part}" if server else None

    keys = ["host", "source", "entity"]
    text = [pl.col(name).cast(pl.String) for name in keys]
    observed = frame.select(text).unique()
    things = observed.with_columns(
        thing=pl.Series([thing(*row) for row in observed.iter_rows()], dtype=pl.String),
        place=pl.col("host").replace_strict({name: place for place, name in enumerate(machines)}, default=None),
    )
    is_own = pl.any_horizontal(
        (pl.col("source") == source) & pl.col("metric").cast(pl.String).is_in(metrics)
        for source, metrics in OF_ONE_DATABASE.items()
    )
    marked = (
        frame.with_columns(text)
        .join(things, on=keys, how="left", maintain_order="left")
        .with_columns(thing=pl.when(is_own.not_()).then("thing"))
    )
    knows_role = (pl.col("role").cast(pl.String) != "").any()
    kept = (
        marked.drop_nulls("thing")
        .group_by("thing", "source", "host", "place")
        .agg(knows_role=knows_role)
        .sort(pl.col("knows_role").not_(), "place")
        .unique(["thing", "source"], keep="first", maintain_order=True)
        .select("thing", "source", "host", is_kept=pl.lit(True))
    )
    of_kept = marked.join(kept, on=["thing", "source", "host"], how="left", maintain_order="left")
    stays = pl.col("thing").is_null() | pl.col("is_kept").is_not_null()
    return of_kept.filter(stays).drop("thing", "place", "is_kept")


def _servers(host: Mapping[str, Any]) -> Mapping[str, str]:
    """What a run says of the servers of a host's databases; nothing where it does not know."""
    servers = host.get("servers")
    return servers if isinstance(servers, Mapping) else {}
