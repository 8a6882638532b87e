"""Settings of the embedded PostgreSQL: what Assay chooses for a machine, and what a user may choose instead."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict

from assay.base.errors import UsageError
from assay.base.units import parse_bytes

GIB = 1024**3
MIB = 1024**2

SETTINGS = (
    "autovacuum",
    "backend_flush_after",
    "bgwriter_delay",
    "bgwriter_flush_after",
    "bgwriter_lru_maxpages",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "deadlock_timeout",
    "debug_io_direct",
    "effective_cache_size",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "io_combine_limit",
    "io_max_combine_limit",
    "io_max_concurrency",
    "io_method",
    "io_workers",
    "maintenance_io_concurrency",
    "maintenance_work_mem",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
    "random_page_cost",
    "shared_buffers",
    "synchronous_commit",
    "wal_buffers",
    "wal_compression",
    "wal_init_zero",
    "wal_recycle",
    "wal_sync_method",
    "wal_writer_delay",
    "wal_writer_flush_after",
    "work_mem",
)
"""Settings that `embedded:DIR?set.NAME=VALUE` takes; their meaning and values are those of PostgreSQL's manual."""

PRESETS: Mapping[str, Mapping[str, str]] = {
    "scans": {
        "io_max_combine_limit": "1MB",
        "io_combine_limit": "1MB",
        "effective_io_concurrency": "64",
        # PostgreSQL's manual ("Planner Cost Constants") takes a random read for 40 times as dear as one in order, and
        # its default of 4 for that with 90 % of the random reads in memory: of data that are scanned none are.
        "random_page_cost": "40",
        "effective_cache_size": "shared_buffers",
        "work_mem": "64MB",
    }
}
"""Settings by what a database is for, as `embedded:DIR?preset=NAME` takes them; settings that are given win.

`scans` reads as a warehouse does: large reads in order, many at once, and joins by hash tables, not by looking rows up.
"""

SINCE = {"io_combine_limit": 17, "io_max_combine_limit": 18}
"""Version of PostgreSQL that brought a setting of a preset, where it is younger than the oldest that may run."""

AUTO = "auto"
"""Value of a setting for which Assay's own choice is to stand, which is a level of a study beside fixed ones."""

CONNECTIONS_MIN = 100
"""`max_connections` unless more are asked for: PostgreSQL's own default."""

CONNECTIONS_OWN = 20
"""Connections beside those of the users: administration, the recorder, a base backup, superusers' reserve."""


class Tuning(TypedDict):
    """What options of `embedded:` say of the server and its disks."""

    settings: dict[str, str]
    preset: str
    read_ahead_bytes: int | None


def tuning_of(what: str, options: Mapping[str, str]) -> Tuning:
    """Settings, preset and read-ahead of a target's options; `what` is named in errors.

    Raises
    ------
    UsageError
        There is no such preset, or the read-ahead is no quantity.
    """
    preset, read_ahead = options.get("preset", ""), options.get("read_ahead")
    if preset and preset not in PRESETS:
        raise UsageError(f"{what} option 'preset': {preset!r} is unknown; accepted: {', '.join(PRESETS)}")
    return {
        "settings": {key.removeprefix("set."): value for key, value in options.items() if key.startswith("set.")},
        "preset": preset,
        "read_ahead_bytes": None if read_ahead is None else parse_bytes(read_ahead, what=f"{what} option 'read_ahead'"),
    }


def tuned_settings(
    memory_bytes: int, free_bytes: int, *, connections: int = 0, chosen: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Settings of the server for a machine.

    Parameters
    ----------
    memory_bytes
        Memory this process may use.
    free_bytes
        Room on the file system of the log.
    connections
        Connections the workload opens.
    chosen
        What the user set; it wins. The name of another setting stands for the value of that.

    Returns
    -------
    dict of str to str
        In the form of `postgresql.conf`.

    Examples
    --------
    >>> settings = tuned_settings(16 * GIB, 500 * GIB)
    >>> settings["shared_buffers"], settings["effective_cache_size"], settings["max_wal_size"]
    ('4096MB', '12288MB', '16384MB')
    """
    # A quarter of memory is what PostgreSQL's manual advises ("Resource Consumption"): the kernel's page cache holds
    # the rest. Beyond 8 GiB checkpoints grow without the cache serving a benchmark's working set better.
    buffers_bytes = max(min(memory_bytes // 4, 8 * GIB), 128 * MIB)
    # The log may grow until checkpoints come by time and not by volume, but never fills the file system.
    wal_bytes = max(min(16 * GIB, free_bytes // 10), 1 * GIB)
    settings = {
        "shared_buffers": _megabytes(buffers_bytes),
        "effective_cache_size": _megabytes(max(memory_bytes // 4 * 3, buffers_bytes)),
        "maintenance_work_mem": _megabytes(max(min(memory_bytes // 16, 1 * GIB), 64 * MIB)),
        "max_wal_size": _megabytes(wal_bytes),
        "min_wal_size": _megabytes(min(wal_bytes, 1 * GIB)),
        # Five minutes, of which 90 % are spent writing: every window of some minutes has checkpoints' writes in it.
        "checkpoint_timeout": "5min",
        "checkpoint_completion_target": "0.9",
        "wal_compression": "off",
        "huge_pages": "try",
        "max_connections": str(max(connections + CONNECTIONS_OWN, CONNECTIONS_MIN)),
        # Full durability, said in so many words although these are the defaults.
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
    }
    settings |= {name: value for name, value in (chosen or {}).items() if value != AUTO}
    return {name: settings.get(value, value) for name, value in settings.items()}


def preset_settings(preset: str, version: int) -> tuple[dict[str, str], list[str]]:
    """Settings of a preset that a version of the server has, and the names of those that it lacks.

    Examples
    --------
    >>> preset_settings("scans", 16)[1], preset_settings("scans", 18)[1]
    (['io_max_combine_limit', 'io_combine_limit'], [])
    """
    settings = PRESETS.get(preset, {})
    lacking = [name for name in settings if version < SINCE.get(name, 0)]
    return {name: value for name, value in settings.items() if name not in lacking}, lacking


PINNED = {
    "archive_mode": "off",
    "archive_command": "",
    "archive_library": "",
    "restore_command": "",
    "archive_cleanup_command": "",
    "recovery_end_command": "",
    "primary_conninfo": "",
    "ssl": "off",
    "ssl_passphrase_command": "",
    "shared_preload_libraries": "pg_stat_statements",
    "session_preload_libraries": "",
    "local_preload_libraries": "",
    "dynamic_library_path": "$libdir",
    "extension_control_path": "$system",
    "oauth_validator_libraries": "",
    "jit": "off",
    "external_pid_file": "",
    "logging_collector": "off",
    "listen_addresses": "",
    "allow_alter_system": "off",
}
"""Settings that name programs, libraries, files or addresses: given on the command line, which wins over all files."""


def pinned_arguments(data: str) -> list[str]:
    """Arguments of the server that no file of its data directory can change.

    Parameters
    ----------
    data
        Its data directory, with the files of its configuration.
    """
    files = {
        "data_directory": data,
        "config_file": f"{data}/postgresql.conf",
        "hba_file": f"{data}/pg_hba.conf",
        "ident_file": f"{data}/pg_ident.conf",
    }
    return [f"--{name}={value}" for name, value in {**PINNED, **files}.items()]


def configuration(settings: Mapping[str, str], socket_directory: str) -> str:
    """Text of the configuration file: what any embedded server has, then its settings.

    Parameters
    ----------
    settings
        Of `tuned_settings`.
    socket_directory
        Where its socket is; it listens nowhere else.
    """
    fixed = {
        "unix_socket_directories": socket_directory,
        "unix_socket_permissions": "0700",
        # A base backup is part of the study of the steady state.
        "wal_level": "replica",
        "max_wal_senders": "4",
        "max_replication_slots": "4",
        "pg_stat_statements.max": "1000",
        "dynamic_shared_memory_type": _shared_memory(),
        "track_io_timing": "on",
        "track_wal_io_timing": "on",
        "track_functions": "none",
        "compute_query_id": "on",
        "log_checkpoints": "on",
        "log_timezone": "UTC",
        "timezone": "UTC",
        "log_line_prefix": "%m [%p] ",
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in {**fixed, **settings}.items()]
    return "\n".join(["# Written by Assay at every start; changes belong into the target: ?set.NAME=VALUE", *lines, ""])


def _shared_memory() -> str:
    """Kind of memory that processes of the server share: containers may lack the file system of the usual one."""
    try:
        return "posix" if os.stat("/dev/shm").st_mode & 0o002 else "mmap"
    except OSError:
        return "mmap"


def _megabytes(count: int) -> str:
    return f"{count // MIB}MB"


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
