"""What a PostgreSQL database holds that is not Assay's, by its catalogues: what would be lost, what hangs on tables.

Every catalogue that numbers its rows is looked at, so that kinds of objects which later versions add are seen as well.
A copy of a database keeps these numbers and the transactions that wrote the rows: an object that has both in the saved
state is there as it was, and any other came or changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.targets.databases.common.marks import TABLE_MARK, own_columns, own_constraints, own_indexes, own_procedures
from assay.targets.databases.common.table_set import TableSet

Query = Callable[..., list[tuple[Any, ...]]]
Address = tuple[int, int]
"""Catalogue and number, as pg_depend has them."""

_FIRST_OID = 16384
"""Numbers below are the server's own (FirstNormalObjectId)."""

_WITHIN = "iPe"
"""Kinds of pg_depend by which one object is part of another: its own, a partition's, an extension's."""

_OWN = """
SELECT c.oid, root.relname FROM pg_class c
JOIN pg_class root ON root.oid = coalesce(pg_partition_root(c.oid), c.oid)
JOIN pg_description d ON d.objoid = root.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
WHERE c.relkind IN ('r', 'p') AND root.relnamespace = to_regnamespace(pg_catalog.quote_ident(current_schema()))
  AND root.relname = ANY(%s) AND d.description = %s
"""
"""Assay's tables and their partitions, with the table each belongs to."""

_OWN_PARTS = """
SELECT 'pg_constraint'::regclass::oid, oid FROM pg_constraint
WHERE conrelid = ANY(%(tables)s) AND (contype = 'n' OR conname = ANY(%(constraints)s))
UNION ALL SELECT 'pg_class'::regclass::oid, indexrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = ANY(%(tables)s) AND relname = ANY(%(indexes)s)
UNION ALL SELECT 'pg_proc'::regclass::oid, oid FROM pg_proc
WHERE pronamespace = to_regnamespace(pg_catalog.quote_ident(current_schema())) AND proname = ANY(%(procedures)s)
"""
"""Keys, checks, indexes and functions that Assay makes, and NOT NULL, which PostgreSQL 18 counts as constraints."""

_DATA = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND c.oid <> ALL(%s) AND NOT EXISTS
    (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
ORDER BY c.relkind = 'S', 1
"""
"""Relations that are not the workload's nor an extension's, sequences last."""

_LARGE_OBJECTS = "SELECT 'large object ' || oid FROM pg_largeobject_metadata ORDER BY oid LIMIT 1000"

_CATALOGUES = """
SELECT c.relname, has_table_privilege(c.oid, 'SELECT') FROM pg_class c
WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind = 'r' AND NOT c.relisshared
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'oid')
ORDER BY 1
"""

_PARTS_ONLY = ("pg_attrdef", "pg_enum", "pg_largeobject_metadata")
"""Defaults go with their column, values with their type; large objects are data."""

_OTHERWISE: Mapping[str, str] = {
    # Layouts move indexes, which writes their row; a toast table goes with its own.
    "pg_class": "SELECT '', 'pg_class'::regclass::oid, oid,"
    " CASE WHEN relkind IN ('i', 'I') THEN pg_catalog.concat_ws(' ', relname, reloptions::text) ELSE xmin::text END"
    " FROM pg_class WHERE oid >= {first} AND relnamespace <> 'pg_toast'::regnamespace AND relpersistence <> 't'",
    # Rights on `public` are others' as well.
    "pg_namespace": "SELECT '', 'pg_namespace'::regclass::oid, oid,"
    " pg_catalog.concat_ws(' ', nspname, nspowner, nspacl::text) FROM pg_namespace"
    " WHERE (oid >= {first} OR nspname = 'public') AND nspname !~ '^pg_(toast_)?temp_'",
    # The catalogue itself holds passwords and is closed to most users.
    "pg_user_mapping": "SELECT '', 'pg_user_mapping'::regclass::oid, umid, pg_catalog.concat_ws(' ', srvname, usename)"
    " FROM pg_user_mappings",
}

_BESIDE = """
SELECT '', 'pg_type'::regclass::oid, enumtypid, enumlabel::text FROM pg_enum WHERE enumtypid >= {first}
UNION ALL SELECT '', 'pg_class'::regclass::oid, attrelid, attname || ' ' || a.xmin::text
FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
WHERE attrelid >= {first} AND relkind IN ('c', 'v') AND attnum > 0
UNION ALL SELECT 'comment on ', classoid, objoid, objsubid || description FROM pg_description
WHERE (objoid >= {first} OR objoid = to_regnamespace('public')) AND description <> '{mark}'
UNION ALL SELECT 'security label on ', classoid, objoid, pg_catalog.concat_ws(' ', objsubid, provider, label)
FROM pg_seclabel
UNION ALL SELECT 'rights on ', 'pg_class'::regclass::oid, oid, relacl::text FROM pg_class
WHERE oid = ANY(%(tables)s) AND relacl <> acldefault('r', relowner)
UNION ALL SELECT 'row security of ', 'pg_class'::regclass::oid, oid, relforcerowsecurity::text FROM pg_class
WHERE oid = ANY(%(tables)s) AND (relrowsecurity OR relforcerowsecurity)
UNION ALL SELECT 'owner of ', 'pg_class'::regclass::oid, oid, relowner::text FROM pg_class
WHERE oid = ANY(%(tables)s) AND relowner <> current_user::regrole
UNION ALL SELECT 'column ' || attname || ' of ', 'pg_class'::regclass::oid, attrelid, ''
FROM pg_attribute WHERE attrelid = ANY(%(tables)s) AND attnum > 0 AND NOT attisdropped
"""
"""What objects hold in rows without numbers, and what others may have added to Assay's tables."""

_OF_SERVER = """
SELECT 'subscription ' || subname FROM pg_subscription
WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())
UNION ALL SELECT 'replication slot ' || slot_name FROM pg_replication_slots WHERE database = current_database()
UNION ALL SELECT 'security label of the database by ' || provider FROM pg_shseclabel
WHERE classoid = 'pg_database'::regclass AND objoid = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY 1
"""
"""What catalogues of the whole server have of a database, which no copy takes along."""

_DEPENDENCIES = "SELECT classid, objid, deptype::text, refclassid, refobjid FROM pg_depend WHERE objid >= %s"

_NAMES = """
SELECT coalesce(i.type || ' ' || i.identity, 'object ' || o.objid)
FROM unnest(%s::oid[], %s::oid[]) WITH ORDINALITY AS o (classid, objid, place)
CROSS JOIN LATERAL pg_identify_object(o.classid, o.objid, 0) i ORDER BY o.place
"""


@dataclass(frozen=True)
class CatalogueRow:
    """A row of a catalogue: `what` it says of an object, and how it was written."""

    what: str
    address: Address
    written: str


def data_of_others(query: Query, own: TableSet) -> list[str]:
    """Tables, views, sequences and large objects that are not the workload's nor an extension's."""
    tables = [row[0] for row in query(_OWN, (list(own_columns(own, "postgresql")), TABLE_MARK))]
    return [str(row[0]) for sql, values in ((_DATA, (tables,)), (_LARGE_OBJECTS, ())) for row in query(sql, values)]


def foreign_tables(query: Query, own: TableSet) -> list[str]:
    """Tables of the workload's names that do not carry Assay's mark, in the schema that is used."""
    names = list(own_columns(own, "postgresql"))
    marked = {row[0] for row in query(_OWN, (names, TABLE_MARK))}
    there = query(
        "SELECT oid, relname FROM pg_class"
        " WHERE relnamespace = to_regnamespace(pg_catalog.quote_ident(current_schema()))"
        " AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname = ANY(%s) ORDER BY 2",
        (names,),
    )
    return [str(name) for oid, name in there if oid not in marked]


def lost_by_restoring(query: Query, query_saved: Query, own: TableSet) -> list[str]:
    """Objects of a database that its saved state lacks, by the names that users know.

    Parameters
    ----------
    query, query_saved
        Answer statements in the one and in the other.
    """
    there = _Objects(query, own)
    saved = set(_Objects(query_saved, own).items)
    since = [item for item in there.items if item not in saved and not there.is_own(item)]
    return [*there.names(since), *(str(row[0]) for row in query(_OF_SERVER))]


def hanging_on_tables(query: Query, own: TableSet) -> list[str]:
    """Foreign objects that would go with Assay's tables and functions, or keep these from being dropped."""
    there = _Objects(query, own)
    return there.names([item for item in there.items if there.hangs(item) and not there.is_own(item)])


def hidden_catalogues(query: Query) -> list[str]:
    """Catalogues that the user may not read, so that what they hold is not seen."""
    return [str(name) for name, is_open in query(_CATALOGUES) if not is_open and name not in _OTHERWISE]


class _Objects:
    """The objects of one database."""

    def __init__(self, query: Query, own: TableSet) -> None:
        self._query = query
        columns, indexes = own_columns(own, "postgresql"), own_indexes(own, "postgresql")
        roots = {int(oid): str(root) for oid, root in query(_OWN, (list(columns), TABLE_MARK))}
        class_of_tables = int(query("SELECT 'pg_class'::regclass::oid")[0][0])
        parts = query(
            _OWN_PARTS,
            {
                "tables": list(roots),
                "indexes": list(indexes),
                "constraints": list(indexes | own_constraints(own, "postgresql")),
                "procedures": list(own_procedures(own, "postgresql")),
            },
        )
        self._own: set[Address] = {(class_of_tables, oid) for oid in roots} | {(one, other) for one, other in parts}
        self._own_columns = {
            CatalogueRow(f"column {column} of ", (class_of_tables, oid), "")
            for oid, root in roots.items()
            for column in columns[root]
        }
        self._of: dict[Address, list[tuple[str, Address]]] = defaultdict(list)
        for classid, objid, kind, of_class, of_object in query(_DEPENDENCIES, (_FIRST_OID,)):
            self._of[classid, objid].append((str(kind), (of_class, of_object)))
        self.items = self._look(list(roots))

    def _look(self, tables: list[int]) -> list[CatalogueRow]:
        selects = [
            _OTHERWISE.get(
                str(name), f"SELECT '', '{name}'::regclass::oid, oid, xmin::text FROM {name} WHERE oid >= {{first}}"
            )
            for name, is_open in self._query(_CATALOGUES)
            if name in _OTHERWISE or (is_open and name not in _PARTS_ONLY)
        ]
        sql = " UNION ALL ".join([*selects, _BESIDE]).format(first=_FIRST_OID, mark=TABLE_MARK)
        return [
            CatalogueRow(str(what), (classid, objid), str(written))
            for what, classid, objid, written in self._query(sql, {"tables": tables})
        ]

    def is_own(self, item: CatalogueRow) -> bool:
        """Whether Assay made this object, or one that it belongs to."""
        if item.what.startswith("column "):
            return item in self._own_columns
        return not item.what and self._whole(item.address) in self._own

    def hangs(self, item: CatalogueRow) -> bool:
        """Whether it is not there without Assay's tables or functions."""
        if item.what:
            return item.what.startswith("column ")
        return any(self._whole(of) in self._own for _, of in self._of[item.address])

    def _whole(self, address: Address) -> Address:
        """The object that another is part of."""
        seen = {address}
        while True:
            of = next((of for kind, of in self._of.get(address, ()) if kind in _WITHIN and of not in seen), None)
            if of is None or address in self._own:
                return address
            seen.add(of)
            address = of

    def _holders(self, address: Address) -> Iterable[Address]:
        """Everything with which an object goes by itself."""
        seen: set[Address] = set()
        left = [address]
        while left:
            for kind, of in self._of.get(left.pop(), ()):
                if kind in "iPSea" and of not in seen:
                    seen.add(of)
                    left.append(of)
        return seen

    def names(self, items: Sequence[CatalogueRow]) -> list[str]:
        """Names of objects; what goes with one that is named is not named itself."""
        named = {(item.what, item.address if item.what else self._whole(item.address)): None for item in items}
        objects = {address for what, address in named if not what}
        kept = [
            (what, address)
            for what, address in named
            if not objects.intersection(self._holders(address)) and (not what or address not in objects)
        ]
        rows = self._query(_NAMES, ([one for _, (one, _) in kept], [other for _, (_, other) in kept])) if kept else []
        return [what + str(name) for (what, _), (name,) in zip(kept, rows, strict=True)]
