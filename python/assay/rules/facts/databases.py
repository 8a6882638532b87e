"""Facts of database servers: settings and statistics, read with queries that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.rules.facts.devices import is_flash
from assay.rules.facts.runs import Measured
from assay.rules.rule import Subject
from assay.targets.databases import open_database, parse_database
from assay.targets.databases.database import Database
from assay.targets.databases.table_set import NO_TABLES
from assay.targets.host import device_of, memory_bytes

_UNITS = {"8kB": 8192, "kB": 1024, "MB": 2**20, "GB": 2**30, "B": 1, "16MB": 16 * 2**20}
_SECONDS = {"s": 1.0, "min": 60.0, "ms": 0.001, "h": 3600.0}


def _mssql_queries() -> dict[str, str]:
    """Facts of SQL Server and the queries that give them."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files(__package__).joinpath("mssql.toml").read_text("utf-8"))


_LISTS = frozenset(
    ("tempdb_sizes", "percent_growth_files", "small_growth_files", "simple_databases", "unbacked_logs",
     "unbacked_databases", "logs_larger", "auto_shrink_databases", "unverified_databases", "system_drive_files",
     "shared_drives", "slow_read_files", "slow_write_files")
)  # fmt: skip
"""Facts that have several values."""


def database_subjects(text: str, found: Measured | None) -> list[Subject]:
    """A database server, and where its data and log lie if that is on this host.

    Raises
    ------
    AssayError
        It cannot be reached; the line says why.
    """
    database = open_database(parse_database(text), NO_TABLES)
    database.open()
    try:
        server = Subject("database", database.spec.display, engine=_engine(database), anchor=database.spec.display)
        _READERS[server.engine](database, server)
        if database.is_local:
            server.know("memory_bytes", memory_bytes(), "/proc/meminfo")
        server.lack("memory_bytes", "the server is another host's; run assay check there")
        layout = _layout(database, server)
        if found is not None:
            server.know("measured_random_cost", found.random_cost, found.origin)
            server.know("measured_iops", found.iops, found.origin)
            server.know("measured_write_bytes_per_s", found.write_bytes_per_s, found.origin)
        for name in ("measured_random_cost", "measured_iops", "measured_write_bytes_per_s"):
            server.lack(name, "not measured; give a run of assay profile with --profile RUN")
        return [server, *layout]
    finally:
        database.close()


def _engine(database: Database) -> str:
    return database.dialect


def _layout(database: Database, server: Subject) -> list[Subject]:
    """Devices of data, log and tempdb, where the server is on this host."""
    if not database.is_local:
        server.lack("data_is_flash", "the server's devices are another host's")
        return []
    layout = Subject("layout", server.name, anchor=server.anchor)
    devices: dict[str, set[str]] = {}
    mounts = set()
    try:
        paths = database.storage_paths()
    except AssayError as error:
        server.lack("data_is_flash", f"its folders are not known: {error}")
        return []
    for name, folder in paths.items():
        role = {"temp": "tempdb"}.get(name.partition(":")[0], name.partition(":")[0])
        try:
            device = device_of(folder)
        except OSError:
            device = None
        if device is not None:
            devices.setdefault(role, set()).add(device)
        if role == "data":
            mounts.add(_mount_of(folder))
    for role, found in devices.items():
        layout.know(f"{role}_devices", sorted(found), "the server's folders")
    layout.know("data_mounts", sorted(mounts) or None, "the server's folders")
    for role in ("data", "log", "tempdb"):
        layout.lack(f"{role}_devices", "no single device counts the I/O of its folder")
    server.know("data_is_flash", is_flash(devices.get("data", ())), "/sys/block")
    server.lack("data_is_flash", "a virtual device does not say whether it is flash")
    return [layout]


def _mount_of(folder: str) -> str:
    place = Path(folder).resolve()
    while not place.is_mount():
        place = place.parent
    return str(place)


def _postgresql(database: Database, server: Subject) -> None:
    origin = "pg_settings"
    for name, value, unit in database.query("select name, setting, unit from pg_settings"):
        if unit in _UNITS and str(value).lstrip("-").isdecimal():
            server.know(f"{name}_bytes", int(value) * _UNITS[unit], origin)
        elif unit in _SECONDS:
            server.know(f"{name}_s", float(value) * _SECONDS[unit], origin)
        else:
            server.know(name, _number(value), origin)
    _try(
        database,
        server,
        ("checksum_failures",),
        "select coalesce(sum(checksum_failures), 0) from pg_stat_database",
        "pg_stat_database",
    )
    version = int(server.get("server_version_num") or 0) // 10000
    counts = (
        "num_timed, num_requested from pg_stat_checkpointer"
        if version >= 17
        else "checkpoints_timed, checkpoints_req from pg_stat_bgwriter"
    )
    try:
        timed, requested = database.query(f"select {counts}")[0]
        server.know("checkpoints", int(timed) + int(requested), "its statistics")
        if timed + requested:
            server.know("checkpoints_requested_share", float(requested) / float(timed + requested), "its statistics")
    except AssayError as error:
        server.lack("checkpoints_requested_share", str(error))
    server.lack("checkpoints_requested_share", "no checkpoint is counted yet")
    _try(
        database,
        server,
        ("temp_bytes_per_h", "stats_age_s"),
        "select sum(temp_bytes)::float8 / greatest(extract(epoch from now() - min(coalesce(stats_reset,"
        " pg_postmaster_start_time()))), 1)::float8 * 3600,"
        " extract(epoch from now() - min(coalesce(stats_reset, pg_postmaster_start_time())))::float8 from"
        " pg_stat_database",
        "pg_stat_database",
    )
    _try(database, server, ("standbys",), "select count(*) from pg_stat_replication", "pg_stat_replication")


def _mariadb(database: Database, server: Subject) -> None:
    for name, value in database.query("show global variables"):
        server.know(str(name), _number(value), "its global variables")
    status = {str(name): value for name, value in database.query("show global status")}
    origin = "its global status"

    def count(name: str) -> float | None:
        value = _number(status.get(name))
        return float(value) if isinstance(value, (int, float)) else None

    server.know("log_waits", count("Innodb_log_waits"), origin)
    server.know("log_writes", count("Innodb_log_writes"), origin)
    requests, reads = (count(f"Innodb_buffer_pool_{one}") for one in ("read_requests", "reads"))
    server.know("read_requests", requests, origin)
    if requests and reads is not None:
        server.know("read_efficiency", 1.0 - reads / requests, origin)
    opened, uptime = count("Opened_tables"), count("Uptime")
    if opened is not None and uptime:
        server.know("opened_tables_per_s", opened / uptime, origin)
    redo = server.get("innodb_redo_log_capacity") or (
        (server.get("innodb_log_file_size") or 0) * (server.get("innodb_log_files_in_group") or 1) or None
    )
    server.know("redo_bytes", redo, "its global variables")
    for name in ("innodb_flush_method", "innodb_doublewrite", "innodb_checksum_algorithm"):
        value = server.get(name)
        server.know(name, str(value) if value is not None else None, "its global variables")


def _mssql(database: Database, server: Subject) -> None:
    for name, sql in _mssql_queries().items():
        try:
            rows = database.query(sql)
        except AssayError as error:
            server.lack(name, f"it may not be read: {str(error)[:120]}; GRANT VIEW SERVER STATE, VIEW ANY DEFINITION")
            continue
        values = [row[0] for row in rows if row[0] is not None]
        if name in _LISTS:
            server.know(name, values, "its catalogue")
        elif values:
            server.know(name, values[0], "its catalogue")


def _duckdb(database: Database, server: Subject) -> None:
    del database, server


_READERS: dict[str, Callable[[Database, Subject], None]] = {
    "postgresql": _postgresql,
    "mariadb": _mariadb,
    "mysql": _mariadb,
    "mssql": _mssql,
    "duckdb": _duckdb,
}


def _try(database: Database, server: Subject, names: tuple[str, ...], sql: str, origin: str) -> None:
    """Facts of one row, or why they may not be read."""
    try:
        values = database.query(sql)[0]
    except AssayError as error:
        for name in names:
            server.lack(name, f"it may not be read: {str(error)[:120]}; GRANT pg_monitor")
        return
    for name, value in zip(names, values, strict=True):
        server.know(name, float(value) if value is not None else None, origin)


def _number(value: Any) -> Any:
    """A number where a text is one."""
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value
