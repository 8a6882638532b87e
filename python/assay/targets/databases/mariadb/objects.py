"""What a MariaDB or MySQL database holds on Assay's tables that is not Assay's."""

from __future__ import annotations

from assay.targets.databases.common.database import Database
from assay.targets.databases.common.marks import own_columns, own_constraints, own_indexes

_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = database() AND table_name IN ({}) ORDER BY table_name, ordinal_position
"""

_INDEXES = """
SELECT table_name, index_name, group_concat(coalesce(column_name, 'an expression') ORDER BY seq_in_index SEPARATOR ', ')
FROM information_schema.statistics WHERE table_schema = database() AND table_name IN ({})
GROUP BY table_name, index_name ORDER BY table_name, index_name
"""

_CONSTRAINTS = """
SELECT table_name, constraint_name FROM information_schema.table_constraints
WHERE table_schema = database() AND table_name IN ({}) AND constraint_type IN ('CHECK', 'FOREIGN KEY') ORDER BY 1, 2
"""

_TRIGGERS = """
SELECT concat('trigger ', trigger_name, ' on ', event_object_table) FROM information_schema.triggers
WHERE event_object_schema = database() AND event_object_table IN ({}) ORDER BY 1
"""

_SEES_TRIGGERS = """
SELECT 1 FROM information_schema.user_privileges WHERE privilege_type = 'TRIGGER'
UNION SELECT 1 FROM information_schema.schema_privileges
WHERE privilege_type = 'TRIGGER' AND database() LIKE table_schema
"""

_REFERRING = """
SELECT constraint_schema, table_name, constraint_name
FROM information_schema.referential_constraints
WHERE unique_constraint_schema = database() AND referenced_table_name IN ({}) ORDER BY 1, 2, 3
"""


def not_in_definitions(database: Database) -> list[str]:
    """Triggers, which go with their table, and keys of other tables that refer to it."""
    if not database.query(_SEES_TRIGGERS):
        database.notice(
            f"{database.spec.display}: user {database.spec.user!r} may not see triggers, which go with their tables; "
            f"GRANT TRIGGER ON {database.spec.database}.* TO {database.spec.user} lets Assay look for them"
        )
    own, tables = own_constraints(database.table_set, database.dialect), database.marked_tables()
    referring = [
        f"foreign key {schema}.{table}.{name}"
        for schema, table, name in _asked_rows(database, _REFERRING)
        if schema != database.spec.database or table.lower() not in tables or name.lower() not in own
    ]
    return [*_asked(database, _TRIGGERS), *referring]


def in_definitions(database: Database) -> list[str]:
    """Columns, indexes and constraints that others added, which are part of a table's definition."""
    constraints = own_constraints(database.table_set, database.dialect)
    columns, indexes = (
        own_columns(database.table_set, database.dialect),
        own_indexes(database.table_set, database.dialect),
    )
    added = [
        f"column {table}.{column}"
        for table, column in _asked_rows(database, _COLUMNS)
        if column.lower() not in columns[table.lower()]
    ]
    added += [
        f"index {table}.{index} ({parts})"
        for table, index, parts in _asked_rows(database, _INDEXES)
        # A foreign key makes an index of its name where there is none for it.
        if index.lower() not in indexes | constraints
    ]
    return added + [
        f"constraint {table}.{name}"
        for table, name in _asked_rows(database, _CONSTRAINTS)
        if name.lower() not in constraints
    ]


def _asked_rows(database: Database, sql: str) -> list[tuple[str, ...]]:
    marked = sorted(database.marked_tables() & own_columns(database.table_set, database.dialect).keys())
    if not marked:
        return []
    marks = ", ".join(["%s"] * len(marked))
    return [tuple(map(str, row)) for row in database.query(sql.format(marks), marked)]


def _asked(database: Database, sql: str) -> list[str]:
    return [row[0] for row in _asked_rows(database, sql)]
