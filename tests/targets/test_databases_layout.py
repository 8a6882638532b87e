"""Layouts of the workload's tables on real servers: rows, keys and indexes stay, and where they lie changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay import _core
from assay.base.errors import NotSupported, UsageError
from assay.targets.databases import Database, open_database, parse_database
from assay.targets.databases.common.layout import TableLayout, refuse_layout
from assay.targets.databases.common.table_set import RangeKey
from assay.targets.databases.kinds import lay_out, take_down
from assay.targets.databases.mssql.layout import partition_statements
from assay.workloads.brokerage import tables as brokerage
from assay.workloads.tpcc.tables import TABLES
from servers.process import ServerProcess

WAREHOUSES = 5


def with_tables(url: str) -> Database:
    """A database with the workload's empty tables, and some rows in two of them."""
    database = open_database(parse_database(url, {}), TABLES)
    database.open()
    for name, text in _core.oltp_sql("tpcc", database.dialect, "schema"):
        database.create_table(name, text)
    for file in ("indexes", "procedures"):
        for _, text in _core.oltp_sql("tpcc", database.dialect, file):
            database.execute(text)
    for warehouse in range(1, WAREHOUSES + 1):
        database.execute("INSERT INTO warehouse VALUES (%s, 'n', 's', 't', 'c', 'ZZ', '123456789', 0.1, 300000)",
                         (warehouse,))  # fmt: skip
        for order in range(1, 4):
            database.execute("INSERT INTO orders VALUES (%s, 1, %s, 7, '2020-02-02', NULL, 5, 1)", (order, warehouse))
    return database


@pytest.fixture(params=["postgresql15", "postgresql18", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: ServerProcess = request.getfixturevalue(request.param)
    found = with_tables(server.fresh_database())
    yield found
    found.close()


@pytest.fixture(params=["postgresql15", "postgresql18"])
def postgresql(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: ServerProcess = request.getfixturevalue(request.param)
    found = with_tables(server.fresh_database())
    yield found
    for table in TABLES.names:
        found.execute(f"DROP TABLE {table}")
    take_down(found)
    found.close()


def partitions(database: Database, table: str) -> list[int]:
    """Rows of each partition."""
    if database.dialect == "postgresql":
        names = [row[0] for row in database.query(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(%s) ORDER BY inhrelid",
            (table,),
        )]  # fmt: skip
        return [int(database.query(f"SELECT count(*) FROM {name}")[0][0]) for name in names]
    names = [row[0] for row in database.query(
        "SELECT partition_name FROM information_schema.partitions WHERE table_schema = database() AND table_name = %s"
        " ORDER BY partition_ordinal_position", (table,),
    )]  # fmt: skip
    return [int(database.query(f"SELECT count(*) FROM {table} PARTITION ({name})")[0][0]) for name in names]


def test_rows_go_where_their_warehouse_belongs(database: Database) -> None:
    found = lay_out(database, TableLayout(table="orders", ways=2), scale=WAREHOUSES, connections=2)

    assert found == {"places": [], "partition": {"table": "orders", "column": "o_w_id", "first_keys": [3]}}
    assert partitions(database, "orders") == [6, 9]
    assert set(TABLES.names) <= set(database.tables())
    database.execute("INSERT INTO orders VALUES (4, 1, 5, 7, '2020-02-02', NULL, 5, 1)")
    assert partitions(database, "orders") == [6, 10]


@pytest.mark.parametrize("table", sorted(TABLES.keys))
@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_every_table_can_be_partitioned(database: Database, table: str) -> None:
    lay_out(database, TableLayout(table=table, ways=3), scale=WAREHOUSES, connections=1)

    assert len(partitions(database, table)) == 3


def test_keys_indexes_and_fill_factors_stay(postgresql: Database) -> None:
    catalogue = (
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND tablename = %s ORDER BY indexname",
        ("orders",),
    )
    before = postgresql.query(*catalogue)

    lay_out(postgresql, TableLayout(table="orders", ways=2), scale=WAREHOUSES, connections=1)

    assert postgresql.query(*catalogue) == before
    assert len(postgresql.query("SELECT 1 FROM pg_indexes WHERE tablename = 'orders_p1'")) == len(before)
    options = postgresql.query("SELECT reloptions FROM pg_class WHERE relname = 'orders_p2'")
    assert options == [(["fillfactor=90"],)]
    plan = postgresql.query("EXPLAIN SELECT o_c_id FROM orders WHERE o_w_id = 4 AND o_d_id = 1 AND o_id = 1")
    assert "orders_p2" in str(plan)
    assert "orders_p1" not in str(plan)


def test_partitions_take_the_places_in_turn_and_all_else_is_spread(postgresql: Database) -> None:
    layout = TableLayout(places=2, table="stock", ways=4)

    found = lay_out(postgresql, layout, scale=WAREHOUSES, connections=2)

    held = [set(place["relations"]) for place in found["places"]]
    assert {"stock_p1", "stock_p3", "stock_p1_pkey"} <= held[0]
    assert {"stock_p2", "stock_p4", "stock_p2_pkey"} <= held[1]
    assert {"customer", "customer_pkey", "customer_name", "item"} <= held[0] | held[1]
    assert not held[0] & held[1]


def test_places_are_made_anew_once_the_tables_are_gone(postgresql: Database) -> None:
    lay_out(postgresql, TableLayout(places=3), scale=WAREHOUSES, connections=1)
    for table in TABLES.names:
        postgresql.execute(f"DROP TABLE {table}")
    take_down(postgresql)

    assert postgresql.query("SELECT 1 FROM pg_tablespace WHERE spcname LIKE 'assay%%'", ()) == []
    for _, text in _core.oltp_sql("tpcc", "postgresql", "schema")[2:]:
        postgresql.execute(text)
    found = lay_out(postgresql, TableLayout(places=2), scale=WAREHOUSES, connections=1)
    assert len(found["places"]) == 2


def test_a_directory_that_is_missing_is_named(postgresql: Database) -> None:
    with pytest.raises(UsageError, match="/nowhere/here does not exist; make it first"):
        lay_out(postgresql, TableLayout(places=2, directories=("/nowhere/here",)), scale=5, connections=1)


def test_partitions_lie_in_directories(mariadb: ServerProcess) -> None:
    database = with_tables(mariadb.fresh_database())
    folders = [mariadb.folder / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)

    layout = TableLayout(table="orders", ways=2, directories=tuple(map(str, folders)))
    lay_out(database, layout, scale=WAREHOUSES, connections=1)

    assert [len(list(folder.rglob("*.ibd"))) for folder in folders] == [1, 1]
    with pytest.raises(NotSupported, match="no tablespaces to spread over"):
        refuse_layout(database, places=3, ways=1, scale=5)
    database.close()


def test_statements_for_sql_server() -> None:
    statements = partition_statements("stock", RangeKey("s_w_id"), [3, 5], ["s_w_id", "s_i_id"], ("/a", "/b"))

    assert statements[-4:] == [
        "CREATE PARTITION FUNCTION assay_part_ranges (int) AS RANGE RIGHT FOR VALUES (3, 5)",
        "CREATE PARTITION SCHEME assay_part_scheme AS PARTITION assay_part_ranges"
        " TO (assay_part_1, assay_part_2, assay_part_1)",
        "ALTER TABLE stock DROP CONSTRAINT stock_pkey",
        "ALTER TABLE stock ADD CONSTRAINT stock_pkey PRIMARY KEY CLUSTERED (s_w_id, s_i_id)"
        " ON assay_part_scheme (s_w_id)",
    ]
    assert [statement for statement in statements if "FILENAME" in statement] == [
        "ALTER DATABASE CURRENT ADD FILE (NAME = assay_part_1, FILENAME = '/a/assay_part_1.ndf') TO FILEGROUP"
        " assay_part_1",
        "ALTER DATABASE CURRENT ADD FILE (NAME = assay_part_2, FILENAME = '/b/assay_part_2.ndf') TO FILEGROUP"
        " assay_part_2",
    ]
    assert "CLUSTERED INDEX history_parted" in partition_statements("history", RangeKey("h_w_id"), [2], [])[-1]


def test_ranges_share_the_warehouses_evenly() -> None:
    assert TABLES.first_keys("stock", 8, 10) == [2, 3, 4, 6, 7, 8, 9]
    assert TABLES.first_keys("stock", 5, 5) == [2, 3, 4, 5]
    assert TABLES.first_keys("item", 2, 1) == [50_001]


def test_a_table_of_trades_is_cut_at_their_keys_and_knows_what_refers_to_it() -> None:
    trades = brokerage.trades(100, {"days": 1, "news_bytes": 1000})
    assert brokerage.TABLES.first_keys("trade", 2, 100, {"days": 1, "news_bytes": 1000}) == [1 + trades // 2]
    found = brokerage.TABLES.references_of("mssql", "trade")
    assert {of for of, _, _ in found} == {
        "trade", "trade_history", "settlement", "cash_transaction", "holding", "holding_history", "trade_request",
    }  # fmt: skip
    assert all(text.startswith(f"ALTER TABLE {of} ADD CONSTRAINT {name} ") for of, name, text in found)
    assert TABLES.references_of("mssql", "orders") == []
    statements = partition_statements("trade", brokerage.TABLES.keys["trade"], [7], ["t_id"])
    assert statements[0] == "CREATE PARTITION FUNCTION assay_part_ranges (bigint) AS RANGE RIGHT FOR VALUES (7)"


@pytest.mark.parametrize(
    ("layout", "directories"),
    [
        (TableLayout(table="stock", ways=4), ("/a", "/b", "/c", "/d")),
        (TableLayout(table="stock", ways=8), ("/a", "/b", "/c", "/d", "/e")),
        (TableLayout(table="stock", ways=4, directories=("/own",)), ("/own",)),
        (TableLayout(places=3, table="stock", ways=4), ()),
        (TableLayout(places=3), ()),
    ],
)
def test_partitions_go_to_volumes_of_their_own_unless_places_are_named(
    layout: TableLayout, directories: tuple[str, ...]
) -> None:
    over = layout.over(["/a", "/b", "/c", "/d", "/e"])
    assert over.directories == directories
    assert over.spreads == layout.spreads
    assert layout.over(["/a"]) == layout
