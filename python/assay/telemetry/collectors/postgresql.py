"""What a PostgreSQL server counts, version 14 and newer: transactions, buffers, I/O, log, checkpoints, waits.

Sources: the server's documentation, "The Cumulative Statistics System". `pg_stat_io` came with 16; 17 moved checkpoints
to `pg_stat_checkpointer`; 18 gave `pg_stat_io` bytes and moved the times of the log there. Times need `track_io_timing`
and `track_wal_io_timing`.
"""

from __future__ import annotations

from collections.abc import Mapping

from assay.base.tables import Record
from assay.telemetry.collectors.database import (
    SECRET_WORDS,
    TEXT_LENGTH,
    Counters,
    DatabaseCollector,
    Key,
    ObserverSession,
    Query,
)

SIZE_EVERY = 10
"""Number of samples from one size of a database to the next: each size costs a look at all of its files."""

_DATABASE = """
select d.datname::text, v.metric, v.value from pg_stat_database d cross join lateral (values
  ('commits_count', d.xact_commit::float8), ('rollbacks_count', d.xact_rollback),
  ('page_requests_count', d.blks_hit + d.blks_read), ('page_reads_count', d.blks_read),
  ('temp_bytes', d.temp_bytes), ('deadlocks_count', d.deadlocks),
  ('read_time_ns', d.blk_read_time * 1e6), ('timed_reads_count', d.blks_read)) v(metric, value)
where d.datname = any(%s::text[])
"""

_WAITS = """
select '', 'waits_' || kind, count(*)::float8 from (
  select case
    when wait_event_type is null then 'none'
    when starts_with(lower(wait_event), 'wal') then 'log'
    when wait_event in ('extend', 'DataFileExtend') then 'extend'
    when wait_event_type in ('IO', 'Lock', 'LWLock', 'Client') then lower(wait_event_type)
    else 'other' end as kind
  from pg_stat_activity
  where state = 'active' and datname = any(%s::text[]) and pid <> pg_backend_pid()) active
group by kind
"""
"""Sessions at work by what they wait for at this moment; `log` is every event of the log, whatever its type."""

_WAIT_KINDS = ("none", "io", "log", "lock", "lwlock", "client", "extend", "other")

_WAL = """
select '', v.metric, v.value from pg_stat_wal w cross join lateral (values
  ('log_bytes', w.wal_bytes::float8), ('log_records_count', w.wal_records), ('log_full_pages_count', w.wal_fpi)
  {times}) v(metric, value)
"""

_WAL_TIMES = """, ('log_writes_count', w.wal_write), ('log_flushes_count', w.wal_sync),
  ('log_write_time_ns', w.wal_write_time * 1e6), ('log_flush_time_ns', w.wal_sync_time * 1e6)"""

_BGWRITER = """
select '', v.metric, v.value from pg_stat_bgwriter b cross join lateral (values
  ('checkpoints_count', (b.checkpoints_timed + b.checkpoints_req)::float8),
  ('checkpoint_written_bytes', b.buffers_checkpoint * {block})
  {written}) v(metric, value)
"""

_CHECKPOINTER = """
select '', v.metric, v.value from pg_stat_checkpointer c cross join lateral (values
  ('checkpoints_count', (c.num_timed + c.num_requested)::float8),
  ('checkpoint_written_bytes', c.buffers_written * {block})) v(metric, value)
"""

_WRITTEN_14 = """, ('written_bytes', (b.buffers_checkpoint + b.buffers_clean + b.buffers_backend) * {block}),
  ('writes_count', b.buffers_checkpoint + b.buffers_clean + b.buffers_backend)"""

_READ_14 = """
select '', v.metric, v.value from (select sum(blks_read) as count from pg_stat_database) r cross join lateral (values
  ('read_bytes', (r.count * {block})::float8), ('reads_count', r.count)) v(metric, value)
"""

_IO = """
select '', v.metric, v.value from (
  select sum(reads) as reads, sum(writes) as writes, sum(extends) as extends,
    sum(extend_time) * 1e6 as extend_time,
    sum({read_bytes}) as read_bytes, sum({written_bytes}) as written_bytes
  from pg_stat_io where object = 'relation') i cross join lateral (values
  ('reads_count', i.reads::float8), ('writes_count', i.writes + i.extends), ('read_bytes', i.read_bytes),
  ('written_bytes', i.written_bytes), ('extends_count', i.extends), ('extend_time_ns', i.extend_time)) v(metric, value)
"""
"""Writes are not timed here: they end in the page cache of the kernel, which is no latency of storage."""

_IO_LOG = """
select '', v.metric, v.value from (
  select sum(writes) as writes, sum(fsyncs) as fsyncs, sum(write_time) as write_time, sum(fsync_time) as fsync_time
  from pg_stat_io where object = 'wal' and context = 'normal') i cross join lateral (values
  ('log_writes_count', i.writes::float8), ('log_flushes_count', i.fsyncs), ('log_write_time_ns', i.write_time * 1e6),
  ('log_flush_time_ns', i.fsync_time * 1e6)) v(metric, value)
"""
"""Context `normal` only: `init` fills new segments with zeros, for which no commit waits."""

_SIZES = "select datname::text, pg_database_size(datname)::float8 from pg_database where datname = any(%s::text[])"


_DOING = """
select '', 'backups_running_count', count(*)::float8 from pg_stat_progress_basebackup
union all select '', 'vacuums_running_count', count(*)::float8 from pg_stat_progress_vacuum
union all select '', 'cache_bytes', pg_size_bytes(current_setting('shared_buffers'))::float8
union all select '/' || coalesce(application_name, '') || '/' || pid, 'replication_lag_bytes',
  pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end,
    replay_lsn)::float8 from pg_stat_replication where replay_lsn is not null
union all (
  select '/' || coalesce(c.relname, 'relation ' || w.relation), 'lock_waiting_count', count(*)::float8 from (
    select l.pid, max(coalesce(l.relation, t.relation)) as relation from pg_locks l
      left join pg_locks t on t.pid = l.pid and t.locktype = 'tuple' and t.granted
    where not l.granted group by l.pid) w
  left join pg_class c on c.oid = w.relation where w.relation is not null
  group by c.relname, w.relation order by 3 desc limit 10)
"""
"""Gauges of what the server is doing. Who waits for a row waits for its transaction, and holds the row's tuple lock."""


def counters_sql(version: int, block_bytes: int) -> str:
    """Query for all counters and gauges of a sample: database (empty for the server), metric, value.

    Parameters
    ----------
    version
        Major version of the server.
    block_bytes
        Its page size.

    Raises
    ------
    ValueError
        The version is below 14.
    """
    if version < 14:
        raise ValueError(f"PostgreSQL {version} has no pg_stat_wal")
    pieces = [_DATABASE, _WAITS, _WAL.format(times="" if version >= 18 else _WAL_TIMES)]
    if version >= 17:
        pieces.append(_CHECKPOINTER.format(block=block_bytes))
    else:
        written = _WRITTEN_14.format(block=block_bytes) if version < 16 else ""
        pieces.append(_BGWRITER.format(block=block_bytes, written=written))
    if version >= 18:
        pieces += [
            _IO.format(read_bytes="read_bytes", written_bytes="write_bytes + coalesce(extend_bytes, 0)"),
            _IO_LOG,
        ]
    elif version >= 16:
        pieces.append(
            _IO.format(read_bytes="reads * op_bytes", written_bytes="(writes + coalesce(extends, 0)) * op_bytes")
        )
    else:
        pieces.append(_READ_14.format(block=block_bytes))
    return "union all".join(pieces)


class PostgresqlCollector(DatabaseCollector):
    """Counters of a PostgreSQL server; its parameters are those of `DatabaseCollector`."""

    source = "postgresql"
    _sql = ""
    _samples = 0
    _sizes: tuple[tuple[str, float], ...] = ()

    def read(self, session: ObserverSession) -> Counters:
        """Ask for all counters in one query, and every tenth time for sizes."""
        if not self._sql:
            version, block, user, sees_all = session.query(
                "select current_setting('server_version_num')::int / 10000, current_setting('block_size')::int,"
                " quote_ident(current_user), pg_has_role(current_user, 'pg_read_all_stats', 'usage')"
            )[0]
            self._sql = counters_sql(version, block)
            if not sees_all:
                self.missing = (f"what other sessions wait for is hidden from its user; GRANT pg_monitor TO {user}",)
        names = list(self.databases)
        rows = session.query(self._sql, (names, names))
        doing = session.query(_DOING)
        started = session.query("select pg_postmaster_start_time()")[0][0]
        if self._samples % SIZE_EVERY == 0:
            self._sizes = tuple((name, float(size)) for name, size in session.query(_SIZES, (names,)))
        self._samples += 1
        counts: dict[Key, float] = {}
        waiting: dict[str, float] = {}
        for name, metric, value in rows:
            if metric.startswith("waits_"):
                waiting[metric.removeprefix("waits_")] = value
            elif value is not None:
                counts[self.databases.get(name, self.server), metric] = float(value)
        gauges = {(self.server, metric): value for metric, value in _wait_shares(waiting).items()}
        gauges |= {(self.databases[name], "size_bytes"): size for name, size in self._sizes}
        gauges |= {(self.server + of, metric): float(value) for of, metric, value in doing if value is not None}
        return Counters(counts, gauges, started)


def _wait_shares(waiting: Mapping[str, float]) -> dict[str, float]:
    """Sessions at work, and the share of them that waits for each kind of event; no shares when none is at work."""
    active = sum(waiting.values())
    shares = {f"waits_{kind}_share": waiting.get(kind, 0.0) / active for kind in _WAIT_KINDS} if active else {}
    return {"sessions_active_count": active, **shares}


_STATEMENTS = f"""
select s.queryid::text || '/' || s.userid::text || '/' || s.toplevel::text, left(s.query, {TEXT_LENGTH}),
  s.calls::float8,
  s.total_exec_time * 1e6, s.rows::float8, s.shared_blks_read * b.block, s.shared_blks_hit::float8,
  s.shared_blks_read::float8, s.wal_bytes::float8
from {{schema}}.pg_stat_statements s, (select current_setting('block_size')::float8 as block) b
where s.dbid = (select oid from pg_database where datname = current_database())
  and s.query !~* '({SECRET_WORDS}|pg_stat)'
"""
"""`schema` is where the extension was installed, which need not be on the search path."""

_TABLES = """
select s.relname::text, (coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0)) * b.block,
  (coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0))::float8,
  (coalesce(heap_blks_hit, 0) + coalesce(idx_blks_hit, 0))::float8,
  n_tup_ins::float8, n_tup_upd::float8, n_tup_del::float8
from pg_statio_user_tables s join pg_stat_user_tables t using (relid),
  (select current_setting('block_size')::float8 as block) b
"""


def statements(query: Query) -> dict[str, Record]:
    """Statements of the current database since the server counts; empty without the extension pg_stat_statements."""
    found = query(
        "select quote_ident(nspname) from pg_extension join pg_namespace on pg_namespace.oid = extnamespace"
        " where extname = 'pg_stat_statements'",
        (),
    )
    if not found:
        return {}
    rows = query(_STATEMENTS.format(schema=found[0][0]), ())
    return {
        key: {"text": text, "calls_count": calls, "time_ns": time_ns, "rows_count": count, "read_bytes": read,
              "page_requests_count": hits + reads, "page_reads_count": reads, "log_bytes": log}
        for key, text, calls, time_ns, count, read, hits, reads, log in rows
    }  # fmt: skip


def tables(query: Query) -> dict[str, Record]:
    """Tables of the current database with what was read and changed since the server counts."""
    return {
        name: {"read_bytes": read, "page_requests_count": hits + reads, "page_reads_count": reads,
               "inserted_count": inserted, "updated_count": updated, "deleted_count": deleted}
        for name, read, reads, hits, inserted, updated, deleted in query(_TABLES, ())
    }  # fmt: skip
