"""What a SQL Server database holds that is not Assay's. Not verified on SQL Server.

A backup cannot be looked into: a digest of what there was beside Assay's tables when it was made goes into its
description, and a restore goes on only where the digest is still the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.targets.databases.common.marks import own_columns, own_constraints, own_indexes, own_procedures
from assay.targets.databases.common.table_set import TableSet

Query = Callable[[str], list[tuple[Any, ...]]]

_PROPERTY = "assay"
"""Extended property of a table, whose value is Assay's mark."""

MARKED = (
    "SELECT o.name FROM sys.extended_properties AS p JOIN sys.objects AS o ON o.object_id = p.major_id"
    " WHERE p.class = 1 AND p.minor_id = 0 AND p.name = 'assay' AND cast(p.value AS nvarchar(64)) = %s"
    " AND o.schema_id = schema_id(schema_name())"
)

MARKING = (
    "BEGIN TRANSACTION; {statement}; DECLARE @schema sysname = schema_name();"
    " EXECUTE sp_addextendedproperty @name = N'" + _PROPERTY + "', @value = N'{mark}', @level0type = N'SCHEMA',"
    " @level0name = @schema, @level1type = N'TABLE', @level1name = N'{name}'; COMMIT TRANSACTION"
)

_OBJECTS = """
SELECT lower(replace(o.type_desc, '_', ' ')), o.name, isnull(t.name, ''), convert(varchar(27), o.modify_date, 126),
  CASE WHEN o.schema_id = schema_id(schema_name()) THEN 1 ELSE 0 END
FROM sys.objects AS o LEFT JOIN sys.objects AS t ON t.object_id = o.parent_object_id
WHERE o.is_ms_shipped = 0
"""
"""Tables, views, procedures, constraints, triggers: kind, name, table it is on, last change, whether in this schema."""

_ON_TABLES = """
SELECT 'column', c.name, t.name, '' FROM sys.columns AS c JOIN sys.objects AS t ON t.object_id = c.object_id
WHERE t.schema_id = schema_id(schema_name()) AND t.type = 'U'
UNION ALL SELECT 'index', i.name, t.name, '' FROM sys.indexes AS i JOIN sys.objects AS t ON t.object_id = i.object_id
WHERE t.schema_id = schema_id(schema_name()) AND t.type = 'U' AND i.name IS NOT NULL
UNION ALL SELECT 'foreign key', f.name, t.name, 'refers' FROM sys.foreign_keys AS f
JOIN sys.objects AS t ON t.object_id = f.referenced_object_id WHERE t.schema_id = schema_id(schema_name())
"""

_OF_DATABASE = """
SELECT 'type', name, '' FROM sys.types WHERE is_user_defined = 1
UNION ALL SELECT 'schema', name, '' FROM sys.schemas WHERE schema_id BETWEEN 5 AND 16383
UNION ALL SELECT 'user or role', name, convert(varchar(27), modify_date, 126) FROM sys.database_principals
WHERE principal_id > 4 AND is_fixed_role = 0
UNION ALL SELECT 'trigger', name, convert(varchar(27), modify_date, 126) FROM sys.triggers WHERE parent_class = 0
UNION ALL SELECT 'assembly', name, convert(varchar(27), modify_date, 126) FROM sys.assemblies WHERE is_user_defined = 1
UNION ALL SELECT 'partition function', name, convert(varchar(27), modify_date, 126) FROM sys.partition_functions
UNION ALL SELECT 'partition scheme', name, '' FROM sys.partition_schemes
UNION ALL SELECT 'certificate', name, '' FROM sys.certificates
UNION ALL SELECT 'symmetric key', name, '' FROM sys.symmetric_keys
"""


@dataclass(frozen=True, order=True)
class ForeignObject:
    """Something that is not Assay's, and when it was changed last as far as the server keeps that."""

    changed: str
    name: str


def on_tables(query: Query, tables: TableSet, marked: set[str]) -> list[str]:
    """Columns, indexes, triggers and constraints that others added to Assay's tables, and keys that refer to them."""
    columns = own_columns(tables, "mssql")
    constraints = own_constraints(tables, "mssql")
    names = own_indexes(tables, "mssql") | own_procedures(tables, "mssql") | constraints
    found = [
        f"{kind} {name} on {table}"
        for kind, name, table, _, is_here in query(_OBJECTS)
        if is_here and table.lower() in marked and name.lower() not in names
    ]
    for kind, name, table, refers in query(_ON_TABLES):
        known = columns.get(table.lower(), frozenset()) if kind == "column" else names
        # Layouts give the history an index.
        if refers and name.lower() in constraints:
            continue
        if table.lower() in marked and (refers or name.lower() not in known | {f"{table.lower()}_parted"}):
            found.append(f"{kind} {name} on {table}")
    return list(dict.fromkeys(found))


def beside_tables(query: Query, tables: TableSet, marked: set[str]) -> list[ForeignObject]:
    """Objects of the whole database that Assay did not make, the last change first."""
    own = marked | own_procedures(tables, "mssql")
    found = [
        ForeignObject(str(changed), f"{kind} {name}")
        for kind, name, table, changed, is_here in query(_OBJECTS)
        if not (is_here and (table.lower() or name.lower()) in own)
    ]
    found += [
        ForeignObject(str(changed), f"{kind} {name}")
        for kind, name, changed in query(_OF_DATABASE)
        if not name.startswith("assay_part_")
    ]
    return sorted([*found, *(ForeignObject("", name) for name in on_tables(query, tables, marked))], reverse=True)


def digest(items: list[ForeignObject]) -> str:
    """Sixteen characters that differ where the items do: a description has room for 255."""
    text = json.dumps(sorted([item.changed, item.name] for item in items))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
