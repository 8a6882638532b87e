"""PostgreSQL's settings for storage."""

from __future__ import annotations

from typing import Any

from assay.rules.rule import Rule, Subject

ENGINE = ("postgresql",)
DOCS = "PostgreSQL documentation"
MIB = 2**20
GIB = 2**30


def _rule(**told: Any) -> Rule:
    return Rule(subject="database", engines=ENGINE, **told)


def _is_large(server: Subject) -> bool | None:
    cache = server.get("shared_buffers_bytes")
    return None if cache is None else cache >= 2 * GIB


def _has_checkpoints(server: Subject) -> bool | None:
    count = server.get("checkpoints")
    return None if count is None else count >= 20


RULES = (
    _rule(
        id="postgresql-fsync",
        title="Commits are not flushed",
        severity="error",
        reads=("fsync",),
        good=lambda value: value == "on",
        wanted="fsync = on",
        why="A crash of the host loses or tears data that were acknowledged.",
        fix="fsync = on.",
        source=f"{DOCS}, fsync; postgresqltuner",
    ),
    _rule(
        id="postgresql-full-page-writes",
        title="Torn pages are not repaired",
        severity="error",
        reads=("full_page_writes",),
        good=lambda value: value == "on",
        wanted="full_page_writes = on, unless the file system writes 8 KiB as a whole",
        why="A page that was half written when the power failed stays broken.",
        fix="full_page_writes = on.",
        source=f"{DOCS}, full_page_writes",
    ),
    _rule(
        id="postgresql-synchronous-commit",
        title="Commits are acknowledged before they are safe",
        severity="note",
        reads=("synchronous_commit",),
        good=lambda value: value != "off",
        wanted="synchronous_commit = on, unless losing the last moments is agreed",
        why="The last transactions before a crash are lost.",
        fix="synchronous_commit = on.",
        source=f"{DOCS}, synchronous_commit",
    ),
    _rule(
        id="postgresql-checksums",
        title="Pages carry no checksums",
        reads=("data_checksums",),
        good=lambda value: value == "on",
        wanted="data_checksums = on",
        why="Storage that returns wrong data is believed.",
        fix="pg_checksums --enable while the server is stopped.",
        source=f"{DOCS}, pg_checksums; First Responder Kit, check 14, for SQL Server",
    ),
    _rule(
        id="postgresql-checksum-failures",
        title="Pages were read whose checksum is wrong",
        severity="error",
        reads=("checksum_failures",),
        good=lambda value: value == 0,
        wanted="none",
        why="Storage or memory returned other data than were written.",
        fix="Restore the pages' tables from a backup, and prove the storage with assay verify.",
        source=f"{DOCS}, pg_stat_database.checksum_failures",
    ),
    _rule(
        id="postgresql-checkpoint-target",
        title="Checkpoints write as fast as they can",
        reads=("checkpoint_completion_target",),
        good=lambda value: 0.7 <= value <= 0.95,
        wanted="checkpoint_completion_target = 0.9",
        why="A burst of writes makes reads and commits wait.",
        fix="checkpoint_completion_target = 0.9.",
        source=f"{DOCS}, WAL Configuration; postgresqltuner",
    ),
    _rule(
        id="postgresql-checkpoints-requested",
        title="The log forces checkpoints",
        reads=("checkpoints_requested_share",),
        good=lambda value: value <= 0.2,
        wanted="at most a fifth of the checkpoints requested",
        applies=_has_checkpoints,
        why="Each makes the log carry whole pages again, and writes more than those that come on time.",
        fix="Raise max_wal_size.",
        source=f"{DOCS}, WAL Configuration (max_wal_size, checkpoint_warning)",
        shown=lambda share: f"{share:.0%} of the checkpoints were requested",
    ),
    _rule(
        id="postgresql-max-wal-size",
        title="The log may not grow",
        reads=("max_wal_size_bytes",),
        good=lambda value: value >= 2 * GIB,
        wanted="max_wal_size = 2 GB for transactions, more where much is written",
        severity="note",
        applies=_is_large,
        why="Checkpoints come early on a busy server.",
        fix="max_wal_size = 8GB, with room for it on the log's volume.",
        source="pgtune: max_wal_size of 4 to 16 GB by kind of workload",
    ),
    _rule(
        id="postgresql-checkpoint-timeout",
        title="Checkpoints come often",
        reads=("checkpoint_timeout_s",),
        good=lambda value: value >= 300,
        wanted="checkpoint_timeout = 5min or more",
        why="After each the log carries whole pages again.",
        fix="checkpoint_timeout = 15min, where recovery may take longer.",
        source=f"{DOCS}, checkpoint_timeout",
    ),
    _rule(
        id="postgresql-write-pressure",
        title="Checkpoints are to write more than the storage takes",
        reads=(
            "max_wal_size_bytes",
            "checkpoint_timeout_s",
            "checkpoint_completion_target",
            "measured_write_bytes_per_s",
        ),
        good=lambda size, timeout, target, rate: size / max(timeout * target, 1) <= 0.5 * rate,
        wanted="at most half of what the storage writes",
        why="While a checkpoint runs nothing is left for transactions.",
        fix="Raise checkpoint_timeout, or lower max_wal_size.",
        source="postgresqltuner: max_wal_size over the time of a checkpoint; measured by assay profile",
        shown=lambda size, timeout, target, rate: (
            f"up to {size / max(timeout * target, 1) / MIB:,.0f} MiB/s of {rate / MIB:,.0f} MiB/s measured"
        ),
    ),
    _rule(
        id="postgresql-shared-buffers-small",
        title="The buffer cache is small",
        reads=("shared_buffers_bytes", "memory_bytes"),
        good=lambda cache, memory: cache >= min(memory / 8, 8 * GIB),
        wanted="about a quarter of memory",
        why="Reads that it does not answer go through the kernel, or to storage.",
        fix="shared_buffers = 25 % of memory.",
        source=f"{DOCS}, shared_buffers; pgtune",
        shown=lambda cache, memory: f"{cache / MIB:,.0f} MiB of {memory / GIB:,.1f} GiB",
    ),
    _rule(
        id="postgresql-shared-buffers-large",
        title="The buffer cache leaves little to others",
        reads=("shared_buffers_bytes", "memory_bytes"),
        good=lambda cache, memory: cache <= 0.4 * memory,
        wanted="at most 40 % of memory",
        why="The kernel's cache, sorts and sessions share the rest.",
        fix="shared_buffers = 25 % of memory.",
        source=f"{DOCS}, shared_buffers; postgresqltuner",
        shown=lambda cache, memory: f"{cache / memory:.0%} of memory",
    ),
    _rule(
        id="postgresql-huge-pages",
        title="A large cache is mapped in small pages",
        reads=("huge_pages",),
        good=lambda value: value in ("on", "try"),
        wanted="huge_pages = try, with vm.nr_hugepages to match",
        applies=_is_large,
        why="Each session has page tables for all of the cache.",
        fix="vm.nr_hugepages from `postgres -C shared_memory_size_in_huge_pages`, huge_pages = on.",
        source=f"{DOCS}, Linux Huge Pages",
    ),
    _rule(
        id="postgresql-random-page-cost",
        title="The planner's price of a random read is not that of this storage",
        reads=("random_page_cost", "measured_random_cost"),
        good=lambda value, measured: measured / 1.8 <= value <= max(measured * 1.8, 1.1),
        wanted="what the storage was measured to cost",
        why="Plans scan where an index is faster, or the other way round.",
        fix="Set random_page_cost to the value measured.",
        source="Assay: time of a random page over that of a sequential one, from the profile;"
        " PostgreSQL documentation, random_page_cost",
        shown=lambda value, measured: f"{value:g}, measured {measured:.2g}",
    ),
    _rule(
        id="postgresql-random-page-cost-flash",
        title="The planner takes flash for a disk",
        reads=("random_page_cost",),
        good=lambda value: value <= 2.0,
        wanted="1.1 on flash",
        severity="note",
        applies=lambda one: (
            False
            if "measured_random_cost" in one.facts
            else (one.get("data_is_flash") if "data_is_flash" in one.facts else None)
        ),
        why="Plans scan whole tables where an index is faster.",
        fix="random_page_cost = 1.1.",
        source="pgtune: 1.1 on SSD and SAN",
    ),
    _rule(
        id="postgresql-io-concurrency",
        title="Scans ask for few pages ahead",
        reads=("effective_io_concurrency",),
        good=lambda value: value >= 16,
        wanted="16 or more (200 on flash)",
        applies=lambda one: one.get("data_is_flash") if "data_is_flash" in one.facts else None,
        why="Storage that serves many I/Os at once gets one.",
        fix="effective_io_concurrency = 200.",
        source="pgtune: 200 on SSD, 300 on SAN",
    ),
    _rule(
        id="postgresql-track-io-timing",
        title="Waiting for storage is not timed",
        severity="note",
        reads=("track_io_timing",),
        good=lambda value: value == "on",
        wanted="track_io_timing = on (pg_test_timing says what it costs)",
        why="Nobody can say how long reads took.",
        fix="track_io_timing = on.",
        source=f"{DOCS}, track_io_timing",
    ),
    _rule(
        id="postgresql-track-wal-io-timing",
        title="Waiting for the log is not timed",
        severity="note",
        reads=("track_wal_io_timing",),
        good=lambda value: value == "on",
        wanted="track_wal_io_timing = on",
        why="The latency of commits cannot be told from that of the rest.",
        fix="track_wal_io_timing = on.",
        source=f"{DOCS}, track_wal_io_timing",
    ),
    _rule(
        id="postgresql-autovacuum",
        title="Nothing is vacuumed by itself",
        severity="error",
        reads=("autovacuum",),
        good=lambda value: value == "on",
        wanted="autovacuum = on",
        why="Tables swell, and in the end the server stops to save its transaction numbers.",
        fix="autovacuum = on.",
        source=f"{DOCS}, Routine Vacuuming; postgresqltuner",
    ),
    _rule(
        id="postgresql-log-statement",
        title="Every statement is written to the server's log",
        severity="note",
        reads=("log_statement",),
        good=lambda value: value not in ("all", "mod"),
        wanted="none or ddl",
        why="The text log writes more than the database.",
        fix="log_min_duration_statement for slow ones.",
        source="postgresqltuner, log_statement",
    ),
    _rule(
        id="postgresql-wal-compression",
        title="Whole pages go to the log as they are",
        severity="note",
        reads=("wal_compression",),
        good=lambda value: value not in ("off", False),
        wanted="wal_compression = lz4 (or on)",
        applies=_is_large,
        why="After a checkpoint most of the log is whole pages.",
        fix="wal_compression = lz4, where processors have room.",
        source=f"{DOCS}, wal_compression",
    ),
    _rule(
        id="postgresql-archive",
        title="The log is not archived",
        severity="note",
        reads=("archive_mode", "standbys"),
        good=lambda mode, standbys: mode != "off" or standbys > 0,
        wanted="archive_mode = on, or a standby",
        why="A restore ends with the last full backup.",
        fix="archive_mode = on with an archive_command, or pg_receivewal.",
        source=f"{DOCS}, Continuous Archiving; First Responder Kit, check 2, for SQL Server",
        shown=lambda *_: "no archive and no standby",
    ),
    _rule(
        id="postgresql-temp-spills",
        title="Much is sorted on storage",
        severity="note",
        reads=("temp_bytes_per_h",),
        good=lambda value: value < 10 * GIB,
        wanted="below 10 GiB an hour",
        applies=lambda one: None if one.get("stats_age_s") is None else one.get("stats_age_s") >= 3600,
        why="Sorts and hash joins that do not fit work_mem write and read temporary files.",
        fix="Raise work_mem for the sessions that do it.",
        source=f"{DOCS}, pg_stat_database.temp_bytes; Assay: 10 GiB an hour",
        shown=lambda value: f"{value / GIB:,.1f} GiB an hour",
    ),
)
