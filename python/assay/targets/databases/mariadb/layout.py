"""Layouts on MariaDB and MySQL: a table partitioned by range, its partitions in directories where they are named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.targets.databases.common.database import Database
from assay.targets.databases.common.layout import (
    FOLDER,
    LaidOutTables,
    PartitionedTable,
    Place,
    TableLayout,
    make_folder,
)
from assay.targets.databases.common.table_set import Key, RangeKey, literal

_REFERENCES = """
SELECT table_name, constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = database() AND (table_name = %s OR referenced_table_name = %s)
ORDER BY 1, 2
"""
"""Foreign keys of a table, and those that refer to it."""


def lay_out(database: Database, layout: TableLayout, *, scale: int) -> LaidOutTables:
    """As `assay.targets.databases.kinds.lay_out`."""
    for by_columns in layout.by_columns:
        database.execute(f"ALTER TABLE {by_columns} ENGINE=ColumnStore")
    if not layout.table:
        database.checkpoint()
        return {"places": [], "partition": None}
    table, key = layout.table, database.table_set.keys[layout.table]
    keys = database.table_set.first_keys(table, layout.ways, scale, database.schema().shape)
    data = database.storage_paths().get("data")
    directories = tuple(
        make_folder(database, Path(data), Path(directory) / FOLDER / database.spec.database) if data else directory
        for directory in layout.directories
    )
    # InnoDB has no foreign keys of partitioned tables, nor any that refer to one.
    references = database.query(_REFERENCES, (table, table))
    for of, name in references:
        database.execute(f"ALTER TABLE {of} DROP FOREIGN KEY {name}")
    database.execute(partition_statement(table, key, keys, directories))
    database.query(f"ANALYZE TABLE {table}")
    database.checkpoint()
    places: list[Place] = [
        {
            "name": directory,
            "directory": directory,
            "bytes": None,
            "relations": [f"{table}.p{number + 1}" for number in range(layout.ways)
                          if number % len(directories) == at],
        }
        for at, directory in enumerate(directories)
    ]  # fmt: skip
    partition: PartitionedTable = {"table": table, "column": key.column, "first_keys": keys}
    if references:
        partition["dropped_foreign_keys"] = [str(name) for _, name in references]
    return {"places": places, "partition": partition}


def partition_statement(table: str, key: RangeKey, first_keys: Sequence[Key], directories: tuple[str, ...] = ()) -> str:
    """The statement that partitions a table.

    Examples
    --------
    >>> partition_statement("stock", RangeKey("s_w_id"), [6]).partition(" (PARTITION ")[2]
    'p1 VALUES LESS THAN (6), PARTITION p2 VALUES LESS THAN MAXVALUE)'
    """
    # Numbers are ordered as expressions, dates as columns.
    whole, highest = ("COLUMNS ", "(MAXVALUE)") if key.years is not None else ("", "MAXVALUE")
    edges = [*(f"({literal(first)})" for first in first_keys), highest]
    parts = []
    for number, edge in enumerate(edges):
        folder = directories[number % len(directories)].replace("\\", "\\\\").replace("'", "''") if directories else ""
        place = f" DATA DIRECTORY = '{folder}'" if folder else ""
        parts.append(f"PARTITION p{number + 1} VALUES LESS THAN {edge}{place}")
    # Every key of a partitioned table holds the column it is partitioned by.
    primary = f" DROP PRIMARY KEY, ADD PRIMARY KEY ({', '.join(key.primary)})" if key.primary else ""
    return f"ALTER TABLE {table}{primary} PARTITION BY RANGE {whole}({key.column}) ({', '.join(parts)})"
