"""Layouts on PostgreSQL: tablespaces, and declarative partitions by range."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.base.errors import NotSupported, RefusedTarget, UsageError
from assay.targets.databases.common.database import Database
from assay.targets.databases.common.layout import FOLDER, LaidOutTables, TableLayout, make_folder, spread
from assay.targets.databases.common.marks import TABLE_MARK
from assay.targets.databases.common.table_set import Key, literal

_RELATIONS = """
SELECT c.relname, t.relname, c.relkind = 'i', pg_table_size(c.oid)
FROM pg_class c
LEFT JOIN pg_index i ON i.indexrelid = c.oid
JOIN pg_class t ON t.oid = coalesce(i.indrelid, c.oid)
JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = current_schema() AND t.relname = ANY(%s) AND t.relkind = 'r' AND c.relkind IN ('r', 'i')
ORDER BY c.relname
"""

_REFERENCES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
FROM pg_constraint
WHERE contype = 'f' AND conparentid = 0 AND (conrelid = to_regclass(%s) OR confrelid = to_regclass(%s))
ORDER BY 1, 2
"""
"""Foreign keys of a table, and those that refer to it."""

_PLACED = """
SELECT s.spcname, c.relname, pg_table_size(c.oid)
FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace
WHERE c.relkind IN ('r', 'i') AND c.relnamespace = pg_catalog.quote_ident(current_schema())::regnamespace
  AND s.spcname = ANY(%s)
ORDER BY 3 DESC, 2
"""


def lay_out(database: Database, layout: TableLayout, *, scale: int, connections: int) -> LaidOutTables:
    """As `assay.targets.databases.kinds.lay_out`."""
    drop_places(database)
    places = _make_places(database, layout)
    names = list(places)
    keys: list[Key] = []
    if layout.table:
        keys = database.table_set.first_keys(layout.table, layout.ways, scale, database.schema().shape)
        _partition(database, layout.table, keys, names)
    if layout.spreads:
        _spread(database, names, connections)
    database.checkpoint()
    held = _placed(database, names)
    return {
        "places": [
            {"name": name, "directory": folder, "bytes": held[name].size_bytes, "relations": held[name].relations}
            for name, folder in places.items()
        ],
        "partition": {"table": layout.table, "column": database.table_set.keys[layout.table].column, "first_keys": keys}
        if layout.table
        else None,
    }


# Tablespaces


def _prefix(database: Database) -> str:
    """Tablespaces belong to the server: their names say whose they are."""
    return "_".join(dict.fromkeys(("assay", re.sub(r"[^a-z0-9_]", "_", database.spec.database.lower())[:40])))


def _mark(database: Database) -> str:
    """Comment on a tablespace of this database's: databases with similar names have the same prefix."""
    return f"{TABLE_MARK} for {database.spec.database}"


def _ours(database: Database) -> dict[str, str]:
    """Tablespaces that Assay made for this database, with their folders."""
    rows = database.query(
        "SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace"
        " WHERE spcname ~ %s AND shobj_description(oid, 'pg_tablespace') = %s ORDER BY oid",
        (f"^{_prefix(database)}_[0-9]+$", _mark(database)),
    )
    return {str(name): str(folder) for name, folder in rows}


def drop_places(database: Database) -> None:
    """Drop the tablespaces that Assay made for this database; nothing is in them."""
    for name, folder in _ours(database).items():
        database.execute(f'DROP TABLESPACE "{name}"')
        if database.is_local:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _make_places(database: Database, layout: TableLayout) -> dict[str, str]:
    count, prefix = layout.places_count, _prefix(database)
    data = database.storage_paths().get("data") if count else None
    if count and data is None and not layout.directories:
        raise NotSupported(
            f"{database.spec.display}: its host is out of reach, so no folders can be made for tablespaces there; make"
            " some that its user owns, and name them with --set directories=/a,/b"
        )
    if data is None and count > len(layout.directories):
        raise UsageError(
            f"{database.spec.display}: {count} tablespaces need as many directories there, and"
            f" {len(layout.directories)} are named with --set directories"
        )
    directories = layout.directories or database.usual_places()
    made: dict[str, str] = {}
    for number in range(count):
        name = f"{prefix}_{number + 1}"
        directory = directories[number % len(directories)] if directories else None
        folder = str(directory)
        if data is not None:
            parent = Path(directory) if directory is not None else Path(data).resolve().parent
            folder = _make_folder(database, Path(data), parent / FOLDER / name)
        quoted = folder.replace("'", "''")
        if database.query("SELECT 1 FROM pg_tablespace WHERE spcname = %s", (name,)):
            raise RefusedTarget(
                f"{database.spec.display}: a tablespace {name!r} is there that Assay did not make for this database; "
                "rename it, or drop it yourself"
            )
        database.execute(f"CREATE TABLESPACE \"{name}\" LOCATION '{quoted}'")
        comment = _mark(database).replace("'", "''")
        database.execute(f"COMMENT ON TABLESPACE \"{name}\" IS '{comment}'")
        made[name] = folder
    return made


def _make_folder(database: Database, data: Path, folder: Path) -> str:
    from assay.targets.databases.embedded.database import EmbeddedPostgresql

    # The server of Assay's own must be shown the folder, and its cluster keeps which folders it made.
    return (
        database.make_place(folder) if isinstance(database, EmbeddedPostgresql) else make_folder(database, data, folder)
    )


def _spread(database: Database, names: list[str], connections: int) -> None:
    """Move all tables and indexes that are not partitioned, the largest first to where least is."""
    rows = database.query(_RELATIONS, (list(database.table_set.names),))
    held = _placed(database, names)
    chosen = spread({str(row[0]): float(row[3]) for row in rows}, [held[name].size_bytes for name in names])
    moves: dict[str, list[str]] = {}
    for relation, table, is_index, _ in rows:
        kind = "INDEX" if is_index else "TABLE"
        # What belongs to one table is moved by one session: each move locks the table.
        moves.setdefault(str(table), []).append(
            f'ALTER {kind} "{relation}" SET TABLESPACE "{names[chosen[str(relation)]]}"'
        )
    database.execute_many_parallel(["; ".join(statements) for statements in moves.values()], connections)


@dataclass
class _Held:
    """Relations in a place, and their size."""

    size_bytes: int = 0
    relations: list[str] = field(default_factory=list)


def _placed(database: Database, names: list[str]) -> dict[str, _Held]:
    """Relations of each tablespace, the largest first, and their bytes."""
    held = {name: _Held() for name in names}
    for name, relation, size_bytes in database.query(_PLACED, (names,)) if names else []:
        held[str(name)].size_bytes += int(size_bytes)
        held[str(name)].relations.append(str(relation))
    return held


# Partitions


def _partition(database: Database, table: str, keys: Sequence[Key], names: list[str]) -> None:
    """Put a partitioned table in the place of a plain one, in one transaction; partitions take the places in turn.

    Indexes are built on each partition, where they get its place, and found again by those of the table. Foreign keys
    of the table, and those that refer to it, are made again last.
    """
    # The plain table is dropped.
    database.refuse_drop()
    (options,) = database.query(
        "SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = to_regclass(%s)", (table,)
    )[0]
    constraints = database.query(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass(%s)"
        " AND contype = 'p'",
        (table,),
    )
    references = database.query(_REFERENCES, (table, table))
    indexes = [
        str(row[0])
        for row in database.query(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass(%s) AND NOT indisprimary",
            (table,),
        )
    ]
    key = database.table_set.keys[table]
    if key.primary:
        # Every key of a partitioned table holds the column it is partitioned by.
        constraints = [(name, f"PRIMARY KEY ({', '.join(key.primary)})") for name, _ in constraints]
    column, edges = key.column, ["MINVALUE", *map(literal, keys), "MAXVALUE"]
    parts = [f"{table}_p{number + 1}" for number in range(len(keys) + 1)]
    storage = f" WITH ({options})" if options else ""
    statements = [
        f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
        *(f'ALTER TABLE {of} DROP CONSTRAINT "{name}"' for of, name, _ in references),
        f"CREATE TABLE {table}_parted (LIKE {table} INCLUDING CONSTRAINTS) PARTITION BY RANGE ({column})",
        f"COMMENT ON TABLE {table}_parted IS '{TABLE_MARK}'",
    ]
    for number, part in enumerate(parts):
        place = f' TABLESPACE "{names[number % len(names)]}"' if names else ""
        within = f"FROM ({edges[number]}) TO ({edges[number + 1]})"
        statements.append(f"CREATE TABLE {part} PARTITION OF {table}_parted FOR VALUES {within}{storage}{place}")
    statements += [
        f"INSERT INTO {table}_parted SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE {table}_parted RENAME TO {table}",
    ]
    for number, part in enumerate(parts):
        if names:
            statements.append(f'SET LOCAL default_tablespace = "{names[number % len(names)]}"')
        statements += [f"ALTER TABLE {part} ADD {definition}" for _, definition in constraints]
        statements += [_index_on(definition, part) for definition in indexes]
    statements.append("SET LOCAL default_tablespace = ''")
    statements += [f'ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition}' for name, definition in constraints]
    referring = [f'ALTER TABLE {of} ADD CONSTRAINT "{name}" {definition}' for of, name, definition in references]
    with contextlib.closing(database.new_session()) as session:
        session.execute("; ".join(["BEGIN", *statements, *indexes, *referring, "COMMIT"]))
        session.execute(f"VACUUM (ANALYZE) {table}")


def _index_on(definition: str, table: str) -> str:
    """The same index on another table, under a name that the server chooses.

    Examples
    --------
    >>> _index_on("CREATE INDEX orders_customer ON public.orders USING btree (o_w_id)", "orders_p1")
    'CREATE INDEX ON orders_p1 USING btree (o_w_id)'
    """
    return re.sub(r"^CREATE (UNIQUE )?INDEX \S+ ON \S+ ", rf"CREATE \1INDEX ON {table} ", definition)
