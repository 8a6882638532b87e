"""The tables of this workload: columns once, and the SQL that makes, indexes and drops them in each dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from assay.targets.databases.common.table_set import LoadedSize, RangeKey, TableSet

FIRST_YEAR, YEARS = 1992, 7
"""Orders are of 1992 to 1998; so are their shipping dates (clause 4.2.3)."""


class _Table(NamedTuple):
    """Columns with their types in the specification's order, the primary key, and foreign keys worth an index."""

    columns: str
    key: str
    indexes: tuple[str, ...] = ()


_TABLES = {
    "region": _Table("r_regionkey int, r_name varchar(25), r_comment varchar(152)", "r_regionkey"),
    "nation": _Table("n_nationkey int, n_name varchar(25), n_regionkey int, n_comment varchar(152)", "n_nationkey"),
    "supplier": _Table(
        "s_suppkey bigint, s_name varchar(25), s_address varchar(40), s_nationkey int, s_phone varchar(15),"
        " s_acctbal decimal(15,2), s_comment varchar(101)",
        "s_suppkey",
        ("s_nationkey",),
    ),
    "customer": _Table(
        "c_custkey bigint, c_name varchar(25), c_address varchar(40), c_nationkey int, c_phone varchar(15),"
        " c_acctbal decimal(15,2), c_mktsegment varchar(10), c_comment varchar(117)",
        "c_custkey",
        ("c_nationkey",),
    ),
    "part": _Table(
        "p_partkey bigint, p_name varchar(55), p_mfgr varchar(25), p_brand varchar(10), p_type varchar(25), p_size int,"
        " p_container varchar(10), p_retailprice decimal(15,2), p_comment varchar(23)",
        "p_partkey",
    ),
    "partsupp": _Table(
        "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment varchar(199)",
        "ps_partkey, ps_suppkey",
        ("ps_suppkey",),
    ),
    "orders": _Table(
        "o_orderkey bigint, o_custkey bigint, o_orderstatus char(1), o_totalprice decimal(15,2), o_orderdate date,"
        " o_orderpriority varchar(15), o_clerk varchar(15), o_shippriority int, o_comment varchar(79)",
        "o_orderkey",
        ("o_custkey",),
    ),
    "lineitem": _Table(
        "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2),"
        " l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag char(1),"
        " l_linestatus char(1), l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar(25),"
        " l_shipmode varchar(10), l_comment varchar(44)",
        "l_orderkey, l_linenumber",
        ("l_partkey, l_suppkey",),
    ),
}

_OWN = {
    "assay_schema": ("k varchar(32) NOT NULL, v varchar(4000) NOT NULL", "k"),
    "assay_chunk": (
        "kind varchar(16) NOT NULL, unit int NOT NULL, part int NOT NULL, row_count bigint NOT NULL",
        "kind, unit, part",
    ),
}
"""The bookkeeping comes first: whatever a creation that was cut short leaves behind is known as Assay's own."""

_SUFFIX = {
    "mariadb": " ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin",
    "mysql": " ENGINE = InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin",
}
_COLLATE = {"postgresql": ' COLLATE "C"', "mssql": " COLLATE Latin1_General_BIN2"}
"""Texts compare by bytes, so that answers have one order in all databases."""

_KEYS_AT_ONCE = ("mariadb", "mysql", "mssql")
"""Rows lie in the order of the primary key and arrive in it: the key is made with the table."""

_NO_INDEXES = ("duckdb", "spark")
"""Column stores skip what a filter leaves out; indexes would only slow down loading."""


def statements(dialect: str, file: str) -> list[tuple[str, str]]:
    """SQL of a dialect: `schema`, `indexes`, `procedures` (none) or `drop`, each statement with its name.

    Examples
    --------
    >>> statements("postgresql", "indexes")[0]
    ('region_pkey', 'ALTER TABLE region ADD CONSTRAINT region_pkey PRIMARY KEY (r_regionkey)')
    >>> statements("duckdb", "drop")[0]
    ('lineitem', 'DROP TABLE IF EXISTS lineitem')
    """
    if file == "schema":
        own = [(name, _create(dialect, name, columns.split(", "), key)) for name, (columns, key) in _OWN.items()]
        return [*own, *((name, _create_table(dialect, name)) for name in _TABLES)]
    if file == "indexes":
        return _indexes(dialect)
    if file == "drop":
        # The bookkeeping goes last: what a drop that was cut short leaves behind is still known as Assay's own.
        return [(name, f"DROP TABLE IF EXISTS {name}") for name in reversed([*_OWN, *_TABLES])]
    return []


def _create_table(dialect: str, name: str) -> str:
    table = _TABLES[name]
    collate = _COLLATE.get(dialect, "")
    columns = [
        f"{column}{collate if 'char(' in column else ''} NOT NULL" for column in re.split(r", (?=[a-z])", table.columns)
    ]
    return _create(dialect, name, columns, table.key if dialect in _KEYS_AT_ONCE else "")


def _create(dialect: str, name: str, columns: Sequence[str], key: str) -> str:
    # A column a line: what is Assay's own is read from here (`assay.targets.databases.common.marks`).
    constraint = [f"CONSTRAINT {name}_pkey PRIMARY KEY ({key})"] if key else []
    lines = ",\n".join(f"    {line}" for line in (*columns, *constraint))
    return f"CREATE TABLE {name} (\n{lines}\n){_SUFFIX.get(dialect, '')}"


def _indexes(dialect: str) -> list[tuple[str, str]]:
    if dialect in _NO_INDEXES:
        return []
    found = []
    for name, table in _TABLES.items():
        if dialect not in _KEYS_AT_ONCE:
            key = f"{name}_pkey"
            found.append((key, f"ALTER TABLE {name} ADD CONSTRAINT {key} PRIMARY KEY ({table.key})"))
        for columns in table.indexes:
            index = "_".join([name, *(column.partition("_")[2] for column in columns.split(", "))])
            found.append((index, f"CREATE INDEX {index} ON {name} ({columns})"))
    return found


TABLES = TableSet(
    rows="tpch",
    names=tuple(_TABLES),
    scale="scale_thousandths",
    size=LoadedSize(
        words=lambda thousandths: f"scale {thousandths / 1000:g}",
        number=lambda thousandths: f"{thousandths / 1000:g}",
        option="scale",
        things="tables",
        is_seeded=False,
        # A row store with its indexes takes twice the bytes of the rows.
        bytes_each=2_100_000,
        log_bytes_each=1_200_000,
    ),
    keys={
        "lineitem": RangeKey(
            "l_shipdate", primary=("l_orderkey", "l_linenumber", "l_shipdate"), years=(FIRST_YEAR, YEARS)
        ),
        "orders": RangeKey("o_orderdate", primary=("o_orderkey", "o_orderdate"), years=(FIRST_YEAR, YEARS)),
    },
    statements=statements,
)
