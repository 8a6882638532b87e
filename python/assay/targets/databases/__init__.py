"""Databases as targets: what the user named, how to connect, administration, and the loaded state kept for later.

`spec` reads what the user named, `connection` and `database` are the interface; each kind of server has its file and
one for its sessions, and `kinds` knows them all. A workload's tables come as a `table_set`. What is Assay's own is in
`marks`; what is not is looked for in `objects_postgresql`, `objects_mariadb` and `objects_mssql`, and refused in
`refusals`. `run_lock` keeps a second run out. Saved states are `template_copy` (PostgreSQL), `tablespace_copy` and
`saved_folders` (MariaDB), and backups (`mssql`). The embedded PostgreSQL is `embedded` (its life and saved state),
`cluster` (its folder), `server` (its processes), `launcher` (a program of its own that starts it under another user),
`tuning` (its settings) and `tree_copy` (copies of its files). DuckDB, which runs in this process, is `duckdb` and
`duckdb_file` (whose the file is, and its lock); `saved_folders` keep its copies.

Drivers are loaded when a database is opened.
"""

from __future__ import annotations

from assay.targets.databases.common.connection import ConnectionLost, ConnectionPlan, Dialect, Progress, Session
from assay.targets.databases.common.database import LAID_OUT, OWN_TABLES, Database, SchemaState
from assay.targets.databases.common.spec import DatabaseSpec, is_database, parse_database, parse_databases
from assay.targets.databases.common.table_set import RangeKey, TableSet
from assay.targets.databases.kinds import open_database

__all__ = [
    "LAID_OUT",
    "OWN_TABLES",
    "ConnectionLost",
    "ConnectionPlan",
    "Database",
    "DatabaseSpec",
    "Dialect",
    "Progress",
    "RangeKey",
    "SchemaState",
    "Session",
    "TableSet",
    "is_database",
    "open_database",
    "parse_database",
    "parse_databases",
]
