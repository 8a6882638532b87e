"""What a SQL Server counts: transactions, files, waits for the log and for pages, checkpoints.

Sources: the vendor's reference of dynamic management views (`sys.dm_io_virtual_file_stats`, `sys.dm_os_wait_stats`,
`sys.dm_os_performance_counters`), which need the permission VIEW SERVER STATE. Not verified on SQL Server:
tests feed rows as the reference describes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.base.tables import Record
from assay.telemetry.collectors.database import TEXT_LENGTH, Counters, DatabaseCollector, Key, ObserverSession, Query

_FILES = """
select d.name, f.type, f.name, s.num_of_reads, s.num_of_bytes_read, s.io_stall_read_ms,
  s.num_of_writes, s.num_of_bytes_written, s.io_stall_write_ms, s.size_on_disk_bytes
from sys.dm_io_virtual_file_stats(null, null) s
join sys.master_files f on f.database_id = s.database_id and f.file_id = s.file_id
join sys.databases d on d.database_id = s.database_id
"""

_WAITS = """
select wait_type, waiting_tasks_count, wait_time_ms from sys.dm_os_wait_stats
where wait_type = 'WRITELOG' or left(wait_type, 12) = 'PAGEIOLATCH_' or left(wait_type, 6) = 'LCK_M_'
"""

_COUNTERS = """
select rtrim(counter_name), rtrim(instance_name), cntr_value from sys.dm_os_performance_counters
where counter_name in ('Transactions/sec', 'Batch Requests/sec', 'Page lookups/sec', 'Page reads/sec',
  'Checkpoint pages/sec', 'Log Flushes/sec', 'Number of Deadlocks/sec')
"""

_STARTED = "select sqlserver_start_time from sys.dm_os_sys_info"

_PAGE_BYTES = 8192
_NS_PER_MS = 10**6
_ROWS, _LOG = 0, 1
"""Types of files in sys.master_files."""

_OF_DATABASE = {"Transactions/sec": ("commits_count", 1), "Log Flushes/sec": ("log_flushes_count", 1)}
_OF_SERVER = {
    "Batch Requests/sec": ("batches_count", 1),
    "Page lookups/sec": ("page_requests_count", 1),
    "Page reads/sec": ("page_reads_count", 1),
    "Checkpoint pages/sec": ("checkpoint_written_bytes", _PAGE_BYTES),
}
"""Metric of each counter, which despite its name only grows, and what one of it is in the metric's unit."""


class MssqlCollector(DatabaseCollector):
    """Counters of a SQL Server; its parameters are those of `DatabaseCollector`."""

    source = "mssql"

    def read(self, session: ObserverSession) -> Counters:
        """Ask for files, waits and performance counters."""
        counts = file_counts(session.query(_FILES), self.databases)
        for metric, value in wait_counts(session.query(_WAITS)).items():
            counts[self.server, metric] = value
        for (database, metric), value in counter_counts(session.query(_COUNTERS), self.databases).items():
            counts[database or self.server, metric] = value
        sizes = {(entity, "size_bytes"): counts.pop((entity, "size_bytes")) for entity, metric in list(counts)
                 if metric == "size_bytes"}  # fmt: skip
        return Counters(counts, sizes, session.query(_STARTED)[0][0])


def file_counts(rows: list[tuple[Any, ...]], databases: Mapping[str, str]) -> dict[Key, float]:
    """Counters of the databases under load from rows of files: what was written to each, and all of a type added up.

    A write of the log reaches the disk before it is acknowledged, so that its time is that of a flush.
    """
    counts: dict[Key, float] = {}
    for name, kind, file, reads, read_bytes, read_ms, writes, written_bytes, write_ms, size in rows:
        entity = databases.get(str(name))
        if entity is None:
            continue
        counts[f"{entity}/{file}", "file_written_bytes"] = float(written_bytes)
        values: dict[str, Any] = {"size_bytes": size}
        if kind == _ROWS:
            values |= {"reads_count": reads, "read_bytes": read_bytes, "timed_reads_count": reads,
                      "read_time_ns": read_ms * _NS_PER_MS, "writes_count": writes, "written_bytes": written_bytes,
                      "timed_writes_count": writes, "write_time_ns": write_ms * _NS_PER_MS}  # fmt: skip
        elif kind == _LOG:
            values |= {"log_writes_count": writes, "log_bytes": written_bytes,
                      "log_write_time_ns": write_ms * _NS_PER_MS}  # fmt: skip
        for metric, value in values.items():
            counts[entity, metric] = counts.get((entity, metric), 0.0) + float(value)
    return counts


def wait_counts(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Counters by metric from waits: tasks that waited for the log, for pages and for locks, and how long.

    Examples
    --------
    >>> wait_counts([("PAGEIOLATCH_SH", 2, 3), ("PAGEIOLATCH_EX", 1, 1)])
    {'page_waits_count': 3.0, 'page_wait_time_ns': 4000000.0}
    """
    counts: dict[str, float] = {}
    for wait, tasks, wait_ms in rows:
        kind = {"WRITELOG": "log", "PAGEIOLATCH": "page", "LCK": "lock"}[str(wait).split("_")[0]]
        for metric, value in ((f"{kind}_waits_count", tasks), (f"{kind}_wait_time_ns", wait_ms * _NS_PER_MS)):
            counts[metric] = counts.get(metric, 0.0) + float(value)
    return counts


def counter_counts(rows: list[tuple[Any, ...]], databases: Mapping[str, str]) -> dict[Key, float]:
    """Counters from performance counters; the entity is empty for those of the whole server."""
    counts: dict[Key, float] = {}
    for counter, instance, value in rows:
        name = str(counter).strip()
        entity = databases.get(str(instance).strip())
        if name in _OF_DATABASE and entity is not None:
            metric, unit = _OF_DATABASE[name]
            counts[entity, metric] = float(value) * unit
        elif name in _OF_SERVER:
            metric, unit = _OF_SERVER[name]
            counts["", metric] = float(value) * unit
        elif name == "Number of Deadlocks/sec" and str(instance).strip() == "_Total":
            counts["", "deadlocks_count"] = float(value)
    return counts


# The text of a procedure holds all its statements; offsets are bytes of two to a letter.
_STATEMENTS = f"""
select convert(varchar(40), q.query_hash, 1), left(max(s.text), {TEXT_LENGTH}), sum(q.execution_count),
  sum(q.total_elapsed_time), sum(q.total_rows), sum(q.total_logical_reads), sum(q.total_physical_reads)
from sys.dm_exec_query_stats q cross apply sys.dm_exec_sql_text(q.sql_handle) t
cross apply (select substring(t.text, q.statement_start_offset / 2 + 1, (case q.statement_end_offset
  when -1 then datalength(t.text) else q.statement_end_offset end - q.statement_start_offset) / 2 + 1) as text) s
where t.dbid = db_id() or t.dbid is null
group by q.query_hash
"""

_TABLES = """
select object_name(s.object_id), sum(s.range_scan_count + s.singleton_lookup_count), sum(s.leaf_insert_count),
  sum(s.leaf_update_count), sum(s.leaf_delete_count + s.leaf_ghost_count), sum(s.page_io_latch_wait_in_ms)
from sys.dm_db_index_operational_stats(db_id(), null, null, null) s
join sys.tables t on t.object_id = s.object_id
group by s.object_id
"""


def statements(query: Query) -> dict[str, Record]:
    """Statements of the current database in the plan cache; elapsed times are microseconds there."""
    return {
        key: {"text": text, "calls_count": float(calls), "time_ns": float(time_us) * 1000, "rows_count": float(rows),
              "page_requests_count": float(logical), "page_reads_count": float(physical),
              "read_bytes": float(physical) * _PAGE_BYTES}
        for key, text, calls, time_us, rows, logical, physical in query(_STATEMENTS, ())
        if not {"password", "identified"} & set(str(text).lower().split())
    }  # fmt: skip


def tables(query: Query) -> dict[str, Record]:
    """Tables of the current database: rows looked up and changed, and the time waited for their pages."""
    return {
        name: {"fetched_count": float(fetched), "inserted_count": float(inserted), "updated_count": float(updated),
               "deleted_count": float(deleted), "time_ns": float(wait_ms) * _NS_PER_MS}
        for name, fetched, inserted, updated, deleted, wait_ms in query(_TABLES, ())
    }  # fmt: skip
