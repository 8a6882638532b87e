"""Loading: all rows, the same ones whatever the way they came, in chunks that a load that was cut short need not repeat."""

from __future__ import annotations

import pytest
from engine import (
    SEED,
    SERVERS,
    WAREHOUSE_COLUMNS,
    WAREHOUSES,
    Database,
    Server,
    load_plan,
    loaded,
    loading,
)
from sql_sessions import TABLES

from assay._core import tpcc_rows

CHUNKS_OF_WAREHOUSE = {"warehouse": 1, "stock": 10, "customers": 10, "orders": 10}
CHUNKS_OF_ITEMS = 10

# Of seed 1 the number of rows of items and of the first warehouse, and the sum of their digests: whatever the server, the
# number of warehouses, of connections and of threads, and whatever happened on the way.
CONTENTS = {
    "warehouse": (1, 4133610880),
    "district": (10, 24407125307),
    "customer": (30000, 64603252330196),
    "history": (30000, 64125885421690),
    "orders": (30000, 64535832398054),
    "new_order": (9000, 19289153434909),
    "order_line": (300140, 644168063106617),
    "stock": (100000, 214612654114850),
    "item": (100000, 214723978861620),
}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def all_chunks(warehouses: int) -> list[tuple[str, int, int]]:
    items = [("items", 0, part) for part in range(1, CHUNKS_OF_ITEMS + 1)]
    return items + [
        (kind, warehouse, part)
        for warehouse in range(1, warehouses + 1)
        for kind, parts in CHUNKS_OF_WAREHOUSE.items()
        for part in range(1, parts + 1)
    ]


def contents_of_first_warehouse(database: Database) -> dict[str, tuple[int, int]]:
    found = database.contents("item")
    for table, column in WAREHOUSE_COLUMNS.items():
        found |= database.contents(table, where=f"WHERE {column} = 1")
    return found


def test_several_connections_load_every_row_in_its_chunk(server: Server) -> None:
    database = Database(server.fresh_database(), WAREHOUSES, server)
    database.make_tables()
    with loading(load_plan(database)) as load:
        status = load.end()
    chunks = CHUNKS_OF_ITEMS + WAREHOUSES * sum(CHUNKS_OF_WAREHOUSE.values())
    assert (status["state"], status["error"], status["reconnects"]) == ("done", None, 0)
    assert (status["chunks_done"], status["chunks_total"], status["chunks_skipped"]) == (chunks, chunks, 0)
    assert min(status["cpu_ns"], status["elapsed_ns"], status["bytes"]) > 0

    with database.session() as session:
        counts = {table: int(session.execute(f"SELECT count(*) FROM {table}")[0][0]) for table in TABLES}
        recorded = {
            (str(kind), int(warehouse), int(part)): int(count)
            for kind, warehouse, part, count in session.execute("SELECT kind, w_id, part, row_count FROM assay_chunk")
        }
    expected = tpcc_rows(WAREHOUSES)
    # Orders have 5 to 15 lines each.
    assert counts.pop("order_line") == pytest.approx(expected.pop("order_line"), rel=0.005)
    assert counts == expected
    assert sorted(recorded) == sorted(all_chunks(WAREHOUSES))
    assert sum(recorded.values()) == status["rows"]
    assert status["rows"] == pytest.approx(status["rows_total"], rel=0.005)
    assert {key: count for key, count in recorded.items() if key[0] != "orders"} == {
        ("items", 0, part): 10_000 for part in range(1, 11)
    } | {
        (kind, warehouse, part): rows
        for warehouse in range(1, WAREHOUSES + 1)
        for kind, rows in {"warehouse": 11, "stock": 10_000, "customers": 6_000}.items()
        for part in range(1, CHUNKS_OF_WAREHOUSE[kind] + 1)
    }
    with database.session() as session:
        for (kind, warehouse, district), count in recorded.items():
            if (kind, warehouse) == ("orders", 1):
                of = f"_w_id = {warehouse} AND {{}}_d_id = {district}"
                found = session.execute(f"SELECT count(*) FROM order_line WHERE ol{of.format('ol')}")
                assert count == 3000 + 900 + int(found[0][0])
    database.finish_tables()
    assert database.failing(after_load=True) == set()
    assert contents_of_first_warehouse(database) == CONTENTS


def test_one_connection_stopped_and_resumed_loads_the_same(server: Server) -> None:
    database = Database(server.fresh_database(), 1, server)
    database.make_tables()
    plan = load_plan(database, connections=1, threads=1)
    with loading(plan) as load:
        load.until(lambda status: status["chunks_done"] >= 7)
        load.core.stop()
        stopped = load.end()
    chunks = database.chunks()
    assert (stopped["state"], stopped["error"]) == ("stopped", None)
    assert len(chunks) == stopped["chunks_done"] < len(all_chunks(1))

    plan["databases"][0]["done"] = chunks
    with loading(plan) as load:
        resumed = load.end()
    assert (resumed["state"], resumed["error"]) == ("done", None)
    assert resumed["chunks_skipped"] == len(chunks)
    assert resumed["chunks_done"] + resumed["chunks_skipped"] == resumed["chunks_total"] == len(all_chunks(1))
    assert resumed["rows"] + stopped["rows"] == sum(count for count, _ in CONTENTS.values())
    assert sorted(database.chunks()) == sorted(all_chunks(1))
    assert database.contents() == CONTENTS
    database.finish_tables()
    assert database.failing(after_load=True) == set()

    # Nothing is left to do, which is no error, and nothing changes.
    plan["databases"][0]["done"] = database.chunks()
    with loading(plan) as load:
        again = load.end()
    assert (again["state"], again["chunks_done"], again["rows"]) == ("done", 0, 0)


def test_another_seed_gives_other_rows(server: Server) -> None:
    database = Database(server.fresh_database(), 1, server)
    wanted = [("items", 0, 3), ("warehouse", 1, 1), ("stock", 1, 2), ("customers", 1, 4), ("orders", 1, 5)]
    contents = []
    for seed in (SEED, SEED + 1):
        database.make_tables()
        plan = load_plan(database, seed=seed)
        plan["databases"][0]["done"] = [chunk for chunk in all_chunks(1) if chunk not in wanted]
        with loading(plan) as load:
            assert load.end()["state"] == "done"
        assert sorted(database.chunks()) == sorted(wanted)
        contents.append(database.contents())
    # A new order is the key of an order and nothing else.
    assert contents[0].pop("new_order") == contents[1].pop("new_order")
    assert {table for table in contents[0] if contents[0][table] == contents[1][table]} == set()
    assert contents[0]["warehouse"] == CONTENTS["warehouse"]


def test_a_load_fills_databases_of_different_kinds(postgresql15: Server, mariadb: Server) -> None:
    databases = [Database(server.fresh_database(), 1, server) for server in (postgresql15, mariadb)]
    wanted = [("warehouse", 1, 1), ("customers", 1, 1)]
    plan = load_plan(*databases, connections=2)
    for planned, database in zip(plan["databases"], databases, strict=True):
        database.make_tables()
        planned["done"] = [chunk for chunk in all_chunks(1) if chunk not in wanted]
    with loading(plan) as load:
        status = load.end()
    assert (status["state"], status["chunks_done"], status["rows"]) == ("done", 4, 2 * (11 + 6_000))
    assert [sorted(database.chunks()) for database in databases] == [sorted(wanted)] * 2
    first, second = (database.contents() for database in databases)
    assert first == second


def test_a_chunk_that_is_there_is_not_loaded_again(server: Server) -> None:
    database = loaded(server)
    plan = load_plan(database)
    plan["databases"][0]["done"] = [chunk for chunk in all_chunks(WAREHOUSES) if chunk != ("warehouse", 1, 1)]
    with loading(plan) as load:
        status = load.end()
    assert (status["state"], status["error"]["kind"], status["chunks_done"]) == ("failed", "other", 0)
    assert len(status["error"]["text"].splitlines()) == 1
    assert database.failing() == set()
