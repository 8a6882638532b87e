"""What a MariaDB or MySQL server counts: transactions, buffer pool, I/O, log, checkpoint age, locks.

Sources: the servers' documentation, "Server Status Variables" and "Performance Schema". The time of a log flush is
known where the performance schema is on and instruments the log's files, which MariaDB no longer does since 10.8; the
count of flushes (`Innodb_os_log_fsyncs`) went with it. InnoDB checkpoints all the time: checkpoints are not counted,
but their age is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from assay.base.tables import Record
from assay.telemetry.collectors.database import (
    FILES_MAX,
    SECRET_WORDS,
    TEXT_LENGTH,
    Counters,
    DatabaseCollector,
    Key,
    ObserverSession,
    Query,
)

_COUNTS = {
    "Com_commit": ("commits_count", 1),
    "Com_rollback": ("rollbacks_count", 1),
    "Innodb_deadlocks": ("deadlocks_count", 1),
    "Innodb_buffer_pool_read_requests": ("page_requests_count", 1),
    "Innodb_buffer_pool_reads": ("page_reads_count", 1),
    "Innodb_data_read": ("read_bytes", 1),
    "Innodb_data_reads": ("reads_count", 1),
    "Innodb_data_written": ("written_bytes", 1),
    "Innodb_data_writes": ("writes_count", 1),
    "Innodb_data_fsyncs": ("data_flushes_count", 1),
    "Innodb_os_log_written": ("log_bytes", 1),
    "Innodb_log_writes": ("log_writes_count", 1),
    "Innodb_os_log_fsyncs": ("log_flushes_count", 1),
    "Innodb_log_waits": ("log_buffer_waits_count", 1),
    "Innodb_row_lock_waits": ("row_lock_waits_count", 1),
    "Innodb_row_lock_time": ("row_lock_time_ns", 10**6),
}
"""Metric of each status variable that only grows, and what one of it is in the metric's unit."""

_GAUGES = {
    "Innodb_checkpoint_age": "checkpoint_age_bytes",
    "Innodb_buffer_pool_bytes_dirty": "dirty_bytes",
    "Threads_running": "sessions_active_count",
}

_CACHE = ("Innodb_buffer_pool_pages_total", "Innodb_page_size")
"""Pages of the buffer pool, and the bytes of one."""

_STATUS = "show global status where variable_name in ({})".format(
    ", ".join(f"'{name}'" for name in (*_COUNTS, *_GAUGES, *_CACHE, "Uptime"))
)

_FILES = """
select event_name, count_read, sum_timer_read, count_write, sum_timer_write, count_misc, sum_timer_misc
from performance_schema.file_summary_by_event_name
where event_name in ('wait/io/file/innodb/innodb_log_file', 'wait/io/file/innodb/innodb_data_file')
"""

_WRITTEN = f"""
select file_name, sum_number_of_bytes_write from performance_schema.file_summary_by_instance
where event_name in ('wait/io/file/innodb/innodb_log_file', 'wait/io/file/innodb/innodb_data_file')
order by sum_number_of_bytes_write desc limit {FILES_MAX}
"""

_WAITING = """
select replace(replace(l.lock_table, '`', ''), '.', '/'), count(*)
from information_schema.innodb_trx t join information_schema.innodb_locks l on l.lock_id = t.trx_requested_lock_id
where t.trx_state = 'LOCK WAIT' group by l.lock_table order by 2 desc limit 10
"""
"""Transactions that wait for a lock, by table. MySQL 8 has moved the view, and is not asked."""

_PS_PER_NS = 1000


class MariadbCollector(DatabaseCollector):
    """Counters of a MariaDB or MySQL server; its parameters are those of `DatabaseCollector`."""

    source = "mariadb"
    _uptime_s = 0.0
    _starts = 0
    _has_files: bool | None = None
    _has_locks = False

    def read(self, session: ObserverSession) -> Counters:
        """Ask for the status variables, for the times of files where the server keeps them, and who waits for locks."""
        status = {str(name): value for name, value in session.query(_STATUS)}
        if self._has_files is None:
            self._look_at_rights(session)
        files = session.query(_FILES) if self._has_files else []
        written = session.query(_WRITTEN) if self._has_files else []
        uptime_s = float(status.pop("Uptime", 0))
        if uptime_s < self._uptime_s:
            self._starts += 1
        self._uptime_s = uptime_s
        counts = {**status_counts(status), **file_counts(files)}
        gauges = {metric: float(status[name]) for name, metric in _GAUGES.items() if name in status}
        if all(name in status for name in _CACHE):
            gauges["cache_bytes"] = float(status[_CACHE[0]]) * float(status[_CACHE[1]])
        waiting = {str(table): float(count) for table, count in session.query(_WAITING)} if self._has_locks else {}
        if self._has_locks:
            # The observer is at work, too.
            at_work = gauges.get("sessions_active_count", 0.0) - 1
            if at_work >= 1:
                gauges["waits_lock_share"] = min(sum(waiting.values()) / at_work, 1.0)
        return Counters(
            {(self.server, metric): value for metric, value in counts.items()}
            | written_counts(written, self.databases, self.server),
            {(self.server, metric): value for metric, value in gauges.items()}
            | {(f"{self.server}/{table}", "lock_waiting_count"): count for table, count in waiting.items()},
            self._starts,
        )

    def _look_at_rights(self, session: ObserverSession) -> None:
        """Find out what the server keeps and the user may see; the status variables are open to all."""
        is_on = session.query("show global variables where variable_name = 'performance_schema' and value = 'ON'")
        files, locks = _refusal(session, _FILES) if is_on else "it is off", _refusal(session, _WAITING)
        self._has_files, self._has_locks = not files, not locks
        missing = []
        if "denied" in files:
            missing.append("times of files are hidden from its user; GRANT SELECT ON performance_schema.* TO that user")
        if "PROCESS" in locks:
            missing.append("who waits for locks is hidden from its user; GRANT PROCESS ON *.* TO that user")
        self.missing = missing


def _refusal(session: ObserverSession, sql: str) -> str:
    """Why the server does not answer a query; empty if it does."""
    try:
        session.query(sql)
    except Exception as error:
        return str(error) or "no reason is given"
    return ""


def status_counts(status: Mapping[str, Any]) -> dict[str, float]:
    """Counters by metric from status variables.

    Examples
    --------
    >>> status_counts({"Innodb_row_lock_time": "3", "Innodb_data_read": "4096", "Other": "1"})
    {'read_bytes': 4096.0, 'row_lock_time_ns': 3000000.0}
    """
    return {metric: float(status[name]) * unit for name, (metric, unit) in _COUNTS.items() if name in status}


def file_counts(rows: list[tuple[Any, ...]]) -> dict[str, float]:
    """Counters by metric from the performance schema's rows of the log's and the data's files; times are picoseconds.

    The "misc" events of the log are its flushes, but for the opening of a file now and then. Writes of data are
    asynchronous: their times are those of their start.

    Examples
    --------
    >>> file_counts([("wait/io/file/innodb/innodb_log_file", 0, 0, 5, 50000, 2, 8000000)])["log_flush_time_ns"]
    8000.0
    """
    counts: dict[str, float] = {}
    for event, reads, read_ps, writes, write_ps, misc, misc_ps in rows:
        if str(event).endswith("log_file") and writes:
            counts |= {"log_writes_count": writes, "log_write_time_ns": write_ps / _PS_PER_NS,
                       "log_flushes_count": misc, "log_flush_time_ns": misc_ps / _PS_PER_NS}  # fmt: skip
        elif str(event).endswith("data_file"):
            counts |= {"timed_reads_count": reads, "read_time_ns": read_ps / _PS_PER_NS}
    return {metric: float(value) for metric, value in counts.items()}


def written_counts(rows: Sequence[tuple[Any, ...]], databases: Mapping[str, str], server: str) -> dict[Key, float]:
    """Bytes written to each file of the databases under load, and to those that all databases share.

    InnoDB keeps a table, or a partition of one, in a file of its own in the folder of its database.

    Examples
    --------
    >>> rows = [("/d2/shop/stock#P#p1.ibd", 4096), ("./mysql/user.ibd", 9), ("./ibdata1", 7)]
    >>> sorted(written_counts(rows, {"shop": "a"}, "a"))
    [('a/ibdata1', 'file_written_bytes'), ('a/stock#P#p1', 'file_written_bytes')]
    """
    counts: dict[Key, float] = {}
    for name, written in rows:
        file = PurePath(str(name))
        is_table = file.suffix == ".ibd"
        entity = databases.get(file.parent.name) if is_table else server
        if entity is not None:
            counts[f"{entity}/{file.stem if is_table else file.name}", "file_written_bytes"] = float(written)
    return counts


_STATEMENTS = f"""
select digest, left(digest_text, {TEXT_LENGTH}), count_star, sum_timer_wait, sum_rows_sent + sum_rows_affected
from performance_schema.events_statements_summary_by_digest
where schema_name = database() and digest is not null
  and digest_text not rlike '{SECRET_WORDS}|performance_schema|information_schema|^SHOW '
"""

_PROGRAMS = """
select object_name, concat('CALL ', object_name), count_star, sum_timer_wait, 0
from performance_schema.events_statements_summary_by_program
where object_type = 'PROCEDURE' and object_schema = database()
"""
"""Procedures: MariaDB has digests of statements that are sent as text only, MySQL of prepared ones as well."""

_TABLES = """
select object_name, count_fetch, count_insert, count_update, count_delete, sum_timer_wait
from performance_schema.table_io_waits_summary_by_table where object_schema = database() and object_name is not null
"""


def statements(query: Query) -> dict[str, Record]:
    """Statements of the current database since the server counts; empty where the performance schema is off."""
    rows = query(_STATEMENTS, ())
    if "mariadb" in str(query("select version()", ())[0][0]).lower():
        calls = query(_PROGRAMS, ())
        rows = [row for row in rows if not str(row[1]).startswith("CALL ")] + calls
    return {
        key: {
            "text": text,
            "calls_count": float(calls),
            "time_ns": float(time_ps) / _PS_PER_NS,
            "rows_count": float(count),
        }
        for key, text, calls, time_ps, count in rows
    }


def tables(query: Query) -> dict[str, Record]:
    """Tables of the current database: rows fetched and changed, and the time that took, pages in memory included."""
    return {
        name: {"fetched_count": float(fetched), "inserted_count": float(inserted), "updated_count": float(updated),
               "deleted_count": float(deleted), "time_ns": float(time_ps) / _PS_PER_NS}
        for name, fetched, inserted, updated, deleted, time_ps in query(_TABLES, ())
    }  # fmt: skip
