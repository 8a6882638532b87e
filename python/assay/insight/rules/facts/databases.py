"""Facts of database servers: settings and statistics, read with queries that change nothing, and where their files lie.

One file for each kind of server reads its own: `postgresql.py`, `mariadb.py`, `mssql.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from assay.base.errors import AssayError, UsageError
from assay.insight.rules.facts import mariadb, mssql, postgresql
from assay.insight.rules.facts.devices import is_flash, raid_of
from assay.insight.rules.facts.mounts import mount_point
from assay.insight.rules.facts.numbers import Setting
from assay.insight.rules.facts.runs import MeasuredStorage
from assay.insight.rules.rule import Subject
from assay.record.shapes.manifest import Database as DatabaseShape
from assay.targets.databases import open_database, parse_database
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.spec import DatabaseSpec
from assay.targets.databases.common.table_set import NO_TABLES
from assay.targets.drives.beneath import disks_of
from assay.targets.host import device_of, memory_bytes
from assay.targets.kernel import block_device_at

_READERS: dict[str, Callable[[Database, Subject], None]] = {
    "postgresql": postgresql.read,
    "mariadb": mariadb.read,
    "mysql": mariadb.read,
    "mssql": mssql.read,
}
_SETTINGS: dict[str, Callable[[Mapping[str, Setting], Subject, str], None]] = {
    "postgresql": postgresql.from_settings,
    "mariadb": mariadb.from_settings,
    "mysql": mariadb.from_settings,
    "mssql": mssql.from_settings,
}
"""What each kind makes of the settings that a run keeps."""

_MEASURED = ("measured_random_cost", "measured_iops", "measured_write_bytes_per_s")


def database_subjects(text: str, found: MeasuredStorage | None) -> list[Subject]:
    """A database server, and where its data and log lie if that is on this host.

    Raises
    ------
    UsageError
        It is a database of Assay's own that is not there: a check makes nothing.
    AssayError
        It cannot be reached; the line says why.
    """
    spec = parse_database(text)
    _refuse_absent(spec)
    database = open_database(spec, NO_TABLES)
    database.open()
    try:
        server = Subject("database", database.spec.display, engine=database.dialect, anchor=database.spec.display)
        server.otherwise = "the server does not tell"
        if server.engine in _READERS:
            _READERS[server.engine](database, server)
        if database.is_local:
            server.know("memory_bytes", memory_bytes(), "/proc/meminfo")
        server.lack("memory_bytes", "the server is another host's; run assay check there")
        layout = _layout(database, server)
        know_measured(server, found)
        return [server, *layout]
    finally:
        database.close()


def _refuse_absent(spec: DatabaseSpec) -> None:
    place = spec.display.partition(":")[2].partition("?")[0]
    if spec.kind in ("embedded", "duckdb") and not os.path.exists(place):
        raise UsageError(f"{spec.display}: is not there; assay check changes nothing, and makes none")


def know_measured(server: Subject, found: MeasuredStorage | None) -> None:
    """What a run measured of the server's storage."""
    if found is not None:
        server.know("measured_random_cost", found.random_cost, found.origin)
        server.know("measured_iops", found.iops, found.origin)
        server.know("measured_write_bytes_per_s", found.write_bytes_per_s, found.origin)
    reason = "not measured; give a run of assay profile with --profile RUN"
    if found is not None:
        reason = f"{found.origin} did not measure it; give a run of assay profile with --profile RUN"
    for name in _MEASURED:
        server.lack(name, reason)


def settings_subject(told: DatabaseShape, memory: int | None, found: MeasuredStorage | None, anchor: str) -> Subject:
    """A server from the settings that a run keeps of it.

    Parameters
    ----------
    told
        One of the manifest's `target.databases`.
    memory
        Memory of the host that ran, where the server was there.
    """
    kind = str(told.get("kind"))
    engine = "postgresql" if kind == "embedded" else kind
    server = Subject("database", str(told.get("name")), engine=engine, anchor=anchor)
    server.otherwise = "the run did not keep it; name the server's URL"
    settings = told.get("settings")
    if engine in _SETTINGS and isinstance(settings, Mapping):
        _SETTINGS[engine](settings, server, anchor)
    server.know("memory_bytes", memory if told.get("is_local") else None, anchor)
    know_measured(server, found)
    return server


def _layout(database: Database, server: Subject) -> list[Subject]:
    """Devices of data, log and tempdb, where the server is on this host."""
    if not database.is_local:
        server.lack("data_is_flash", "the server's devices are another host's")
        return []
    try:
        paths = database.storage_paths()
    except AssayError as error:
        server.lack("data_is_flash", f"its folders are not known: {error}")
        return []
    if not paths:
        reason = next(iter(database.notices), "its folders cannot be seen from here")
        server.lack("data_is_flash", reason)
        return [Subject("layout", server.name, anchor=server.anchor, otherwise=reason)]
    places = [({"temp": "tempdb"}.get(name.partition(":")[0], name.partition(":")[0]), folder)
              for name, folder in paths.items()]  # fmt: skip
    layout = layout_subject(server.name, places, "the server's folders")
    layout.anchor = server.anchor
    data = [device for role, folder in places if role == "data" and (device := _device_of(folder)) is not None]
    server.know("data_is_flash", is_flash(data), "/sys/block")
    server.lack("data_is_flash", "a virtual device does not say whether it is flash")
    return [layout]


def layout_subject(name: str, places: list[tuple[str, str]], origin: str) -> Subject:
    """What lies where: the disks, the file systems and, of Linux's own RAID, the policy of each role.

    Parameters
    ----------
    places
        Roles and paths.
    """
    layout = Subject("layout", name)
    roles = dict.fromkeys(role for role, _ in places if role)
    for role in roles:
        folders = [path for own, path in places if own == role]
        devices = [_device_of(path) for path in folders]
        known = [device for device in devices if device is not None]
        if known and None not in devices:
            layout.know(f"{role}_devices", disks_of(known), origin)
            layout.know(f"{role}_raid", raid_of(known), "/sys/block")
        if role == "data":
            mounts = sorted({mount_point(path) for path in folders if block_device_at(path) is None})
            layout.know("data_mounts", mounts or None, origin)
    for role in ("data", "log", "tempdb"):
        reason = "no single device counts the I/O of its folder" if role in roles else f"no folder is known as {role}"
        layout.lack(f"{role}_devices", reason)
    layout.lack("data_mounts", "no folder is known as data")
    return layout


def _device_of(path: str) -> str | None:
    try:
        return device_of(path)
    except OSError:
        return None
