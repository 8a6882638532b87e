"""Layouts on SQL Server: a table partitioned by range, on file groups where directories are named.

Not verified on SQL Server.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.targets.databases.common.database import Database
from assay.targets.databases.common.layout import LaidOutTables, Place, TableLayout
from assay.targets.databases.common.table_set import Key, RangeKey, literal

PREFIX = "assay_part"


def lay_out(database: Database, layout: TableLayout, *, scale: int) -> LaidOutTables:
    """As `assay.targets.databases.kinds.lay_out`."""
    range_key = database.table_set.keys.get(layout.table)
    keys: list[Key] = []
    if range_key is not None:
        keys = database.table_set.first_keys(layout.table, layout.ways, scale, database.schema().shape)
        key = list(range_key.primary) or _primary_key(database, layout.table)
        references = database.table_set.references_of(database.dialect, layout.table)
        for statement in (
            # The key that they refer to is made anew.
            *(f"ALTER TABLE {of} DROP CONSTRAINT {name}" for of, name, _ in references),
            *partition_statements(layout.table, range_key, keys, key, layout.directories),
            *(text for _, _, text in references),
        ):
            database.execute(statement)
    for table in layout.by_columns:
        column = range_key.column if range_key is not None and table == layout.table else ""
        for statement in column_statements(table, _primary_key(database, table), partitioned_by=column):
            database.execute(statement)
    for table in dict.fromkeys([*([layout.table] if layout.table else []), *layout.by_columns]):
        database.execute(f"UPDATE STATISTICS {table}")
    database.checkpoint()
    places: list[Place] = [
        {"name": f"{PREFIX}_{number + 1}", "directory": directory, "bytes": None, "relations": []}
        for number, directory in enumerate(layout.directories)
    ]
    return {
        "places": places,
        "partition": {"table": layout.table, "column": range_key.column, "first_keys": keys} if range_key else None,
    }


def _primary_key(database: Database, table: str) -> list[str]:
    rows = database.query(
        "SELECT c.name FROM sys.key_constraints k"
        " JOIN sys.index_columns i ON i.object_id = k.parent_object_id AND i.index_id = k.unique_index_id"
        " JOIN sys.columns c ON c.object_id = i.object_id AND c.column_id = i.column_id"
        " WHERE k.parent_object_id = object_id(%s) AND k.type = 'PK' ORDER BY i.key_ordinal",
        (table,),
    )
    return [str(row[0]) for row in rows]


def column_statements(table: str, key: Sequence[str], *, partitioned_by: str = "") -> list[str]:
    """Statements that keep a table by columns, partition-aligned; its primary key stays, beside the columns.

    Parameters
    ----------
    key
        Columns of the primary key; none: there is none.
    partitioned_by
        The column by which the table is partitioned, if it is.

    Examples
    --------
    >>> column_statements("orders", ["o_orderkey"])[1]
    'CREATE CLUSTERED COLUMNSTORE INDEX orders_columns ON orders'
    """
    on = f" ON {PREFIX}_scheme ({partitioned_by})" if partitioned_by else ""
    drop = [f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey"] if key else []
    add = (
        [f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY NONCLUSTERED ({', '.join(key)})"] if key else []
    )
    return [*drop, f"CREATE CLUSTERED COLUMNSTORE INDEX {table}_columns ON {table}{on}", *add]


def partition_statements(
    table: str, range_key: RangeKey, keys: Sequence[Key], key: Sequence[str], directories: tuple[str, ...] = ()
) -> list[str]:
    """Statements that put a table's clustered key, and with it its rows, on a partition scheme.

    Parameters
    ----------
    range_key
        The column whose ranges they are.
    keys
        First key of each partition but the first: ranges begin with them, RANGE RIGHT.
    key
        Columns of the table's primary key; a table without one gets a clustered index on the column.
    directories
        One file group with one file in each; partitions take them in turn.
    """
    groups = [f"{PREFIX}_{number + 1}" for number in range(len(directories))]
    statements = []
    for group, directory in zip(groups, directories, strict=True):
        path = f"{directory.rstrip('/')}/{group}.ndf".replace("'", "''")
        statements += [
            f"ALTER DATABASE CURRENT ADD FILEGROUP {group}",
            f"ALTER DATABASE CURRENT ADD FILE (NAME = {group}, FILENAME = '{path}') TO FILEGROUP {group}",
        ]
    ways = len(keys) + 1
    used = ", ".join(groups[number % len(groups)] for number in range(ways)) if groups else ""
    kind = "date" if keys and isinstance(keys[0], str) else range_key.type
    column = range_key.column
    statements += [
        f"CREATE PARTITION FUNCTION {PREFIX}_ranges ({kind}) AS RANGE RIGHT FOR VALUES "
        f"({', '.join(map(literal, keys))})",
        f"CREATE PARTITION SCHEME {PREFIX}_scheme AS PARTITION {PREFIX}_ranges "
        + (f"TO ({used})" if used else "ALL TO ([PRIMARY])"),
    ]
    if not key:
        on = f"ON {PREFIX}_scheme ({column})"
        return [*statements, f"CREATE CLUSTERED INDEX {table}_parted ON {table} ({column}) {on}"]
    return [
        *statements,
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_pkey PRIMARY KEY CLUSTERED ({', '.join(key)})"
        f" ON {PREFIX}_scheme ({column})",
    ]


def drop_partitions(database: Database) -> None:
    """Drop scheme and function once no table uses them; file groups and their empty files stay."""
    for kind, view in (("SCHEME", "schemes"), ("FUNCTION", "functions")):
        name = f"{PREFIX}_{'scheme' if kind == 'SCHEME' else 'ranges'}"
        if database.query(f"SELECT 1 FROM sys.partition_{view} WHERE name = %s", (name,)):
            database.execute(f"DROP PARTITION {kind} {name}")
