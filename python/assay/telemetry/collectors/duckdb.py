"""What a DuckDB in this process tells of itself: memory by its use, temporary files, and the sizes of file and log.

Source: DuckDB's documentation, "DuckDB_% Metadata Functions" (`duckdb_memory`, `duckdb_temporary_files`). It counts no
reads and writes: what its storage does is seen at the devices.
"""

from __future__ import annotations

import os

from assay.telemetry.collectors.database import Counters, DatabaseCollector, ObserverSession

_MEMORY = "SELECT lower(tag), memory_usage_bytes FROM duckdb_memory() WHERE memory_usage_bytes > 0"
_TEMPORARY = "SELECT count(*), coalesce(sum(size), 0) FROM duckdb_temporary_files()"
_FILE = "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"


class DuckdbCollector(DatabaseCollector):
    """Gauges of a DuckDB in this process; its parameters are those of `DatabaseCollector`."""

    source = "duckdb"

    def read(self, session: ObserverSession) -> Counters:
        """Ask for memory and temporary files; the file system tells the sizes of file and log."""
        memory = {str(tag): float(used) for tag, used in session.query(_MEMORY)}
        files, temporary = session.query(_TEMPORARY)[0]
        path = str(session.query(_FILE)[0][0])
        gauges = {
            "memory_used_bytes": sum(memory.values()),
            "temp_files_count": float(files),
            "temp_bytes": float(temporary),
            "database_bytes": _bytes_of(path),
            "log_file_bytes": _bytes_of(f"{path}.wal"),
            **{f"memory_{tag}_bytes": used for tag, used in memory.items()},
        }
        return Counters({}, {(self.server, metric): value for metric, value in gauges.items()})


def _bytes_of(path: str) -> float:
    try:
        return float(os.stat(path).st_size)
    except FileNotFoundError:
        return 0.0
