"""Facts of PostgreSQL: pg_settings, and what its statistics views count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from assay.base.errors import AssayError
from assay.insight.rules.facts.numbers import Setting, number
from assay.insight.rules.rule import Subject
from assay.targets.databases.common.database import Database

_BYTES = {"B": 1, "kB": 1024, "8kB": 8192, "MB": 2**20, "16MB": 16 * 2**20, "GB": 2**30, "TB": 2**40}
_SECONDS = {"us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_GRANT = "GRANT pg_monitor"


def read(database: Database, server: Subject) -> None:
    """Read all facts."""
    server.otherwise = "this version of PostgreSQL has no such setting"
    for name, value, unit in database.query("select name, setting, unit from pg_settings"):
        _know(server, str(name), value, unit or "", "pg_settings")
    # Of a slot's limit -1 stands for none, whatever its unit.
    if server.get("max_slot_wal_keep_size_bytes") is not None:
        size = server.get("max_slot_wal_keep_size_bytes")
        server.know("max_slot_wal_keep_size", -1 if size < 0 else size, "pg_settings")
    _one_row(
        database, server, ("checksum_failures",),
        "select sum(checksum_failures) from pg_stat_database",
        "pg_stat_database", "pages carry no checksums, so that none can fail",
    )  # fmt: skip
    _checkpoints(database, server)
    _one_row(
        database, server, ("temp_bytes_per_h", "stats_age_s"),
        "select sum(temp_bytes)::float8 / greatest(extract(epoch from now() - min(coalesce(stats_reset,"
        " pg_postmaster_start_time()))), 1)::float8 * 3600,"
        " extract(epoch from now() - min(coalesce(stats_reset, pg_postmaster_start_time())))::float8 from"
        " pg_stat_database",
        "pg_stat_database", "nothing is counted",
    )  # fmt: skip
    _one_row(database, server, ("standbys",), "select count(*) from pg_stat_replication", "pg_stat_replication", "")
    _one_row(
        database, server, ("archive_failing",),
        "select (last_failed_time is not null and (last_archived_time is null or last_failed_time >"
        " last_archived_time))::int from pg_stat_archiver",
        "pg_stat_archiver", "",
    )  # fmt: skip
    try:
        rows = database.query("select slot_name from pg_replication_slots where not active order by 1")
        server.know("inactive_slots", [str(row[0]) for row in rows], "pg_replication_slots")
    except AssayError as error:
        server.lack("inactive_slots", _refused(error))


def from_settings(settings: Mapping[str, Setting], server: Subject, origin: str) -> None:
    """Settings as texts, as `SHOW` gives them: `256kB`, `5min`."""
    for name, text in settings.items():
        value, unit = str(text), ""
        match = re.fullmatch(r"(-?[0-9.]+) ?([a-zA-Z]+)", value)
        if match and match[2] in _BYTES | _SECONDS:
            value, unit = match[1], match[2]
        _know(server, str(name), value, unit, origin)


def _know(server: Subject, name: str, value: Any, unit: str, origin: str) -> None:
    """Keep a setting in base units, with the unit in its name."""
    if unit in _BYTES and re.fullmatch(r"-?[0-9]+", str(value)):
        server.know(f"{name}_bytes", int(value) * _BYTES[unit], origin)
    elif unit in _SECONDS:
        server.know(f"{name}_s", float(value) * _SECONDS[unit], origin)
    else:
        server.know(name, number(value), origin)


def _checkpoints(database: Database, server: Subject) -> None:
    version = int(server.get("server_version_num") or 0) // 10000
    view, counts = (
        ("pg_stat_checkpointer", "num_timed, num_requested")
        if version >= 17
        else ("pg_stat_bgwriter", "checkpoints_timed, checkpoints_req")
    )
    try:
        timed, requested = (int(value) for value in database.query(f"select {counts} from {view}")[0])
    except AssayError as error:
        server.lack("checkpoints", _refused(error))
        return
    server.know("checkpoints", timed + requested, view)
    if timed + requested:
        server.know("checkpoints_requested_share", requested / (timed + requested), view)
    server.lack("checkpoints_requested_share", "no checkpoint is counted yet")


def _one_row(
    database: Database, server: Subject, names: tuple[str, ...], sql: str, origin: str, when_null: str
) -> None:
    """Facts of one row, or why they may not be read."""
    try:
        values = database.query(sql)[0]
    except AssayError as error:
        for name in names:
            server.lack(name, _refused(error))
        return
    for name, value in zip(names, values, strict=True):
        server.know(name, float(value) if value is not None else None, origin)
        server.lack(name, when_null)


def _refused(error: AssayError) -> str:
    return f"it may not be read: {str(error)[:120]}; {_GRANT}"
