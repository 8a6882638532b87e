"""Loading: all rows, the same ones whatever way they came, in chunks that a load that goes on does not repeat."""

from __future__ import annotations

import pytest
from engine import (
    SEED,
    Database,
    Server,
    first_load,
    load_plan,
    loaded,
    loading,
)

from assay._core import row_counts

CHUNKS_OF_WAREHOUSE = {"warehouse": 1, "stock": 10, "customers": 10, "orders": 10}
CHUNKS_OF_ITEMS = 10

# Of seed 1 the number of rows of items and of the first warehouse, and the sum of their digests: whatever the server,
# however many warehouses, connections and threads there are, and whatever happens on the way.
CONTENTS = {
    "warehouse": (1, 4133610880), "district": (10, 24407125307), "customer": (30000, 64603252330196),
    "history": (30000, 64125885421690), "orders": (30000, 64535832398054), "new_order": (9000, 19289153434909),
    "order_line": (300140, 644168063106617), "stock": (100000, 214612654114850), "item": (100000, 214723978861620),
}  # fmt: skip


def all_chunks(warehouses: int) -> list[tuple[str, int, int]]:
    items = [("items", 0, part) for part in range(1, CHUNKS_OF_ITEMS + 1)]
    return items + [
        (kind, warehouse, part)
        for warehouse in range(1, warehouses + 1)
        for kind, parts in CHUNKS_OF_WAREHOUSE.items()
        for part in range(1, parts + 1)
    ]


@pytest.mark.slow(reason="seconds of a real server; make test loads and runs each kind once")
def test_several_connections_load_every_row_in_its_chunk(server: Server) -> None:
    found = first_load(server)
    status, warehouses = found.status, found.database.warehouses
    chunks = len(all_chunks(warehouses))
    assert (status["state"], status["error"], status["reconnects"]) == ("done", None, 0)
    assert (status["chunks_done"], status["chunks_total"], status["chunks_skipped"]) == (chunks, chunks, 0)
    assert min(status["cpu_ns"], status["elapsed_ns"], status["bytes"]) > 0
    assert found.contents == CONTENTS
    assert found.failing == set()

    with found.database.session() as session:
        recorded = {
            (str(kind), int(warehouse), int(part)): int(count)
            for kind, warehouse, part, count in session.execute("SELECT kind, w_id, part, row_count FROM assay_chunk")
        }
    expected = row_counts("tpcc", warehouses)
    # Orders have 5 to 15 lines each.
    assert found.rows["order_line"] == sum(found.lines.values())
    assert found.rows["order_line"] == pytest.approx(expected["order_line"], rel=0.005)
    assert found.rows | {"order_line": 0} == expected | {"order_line": 0}
    assert sorted(recorded) == sorted(all_chunks(warehouses))
    assert sum(recorded.values()) == status["rows"]
    assert status["rows"] == pytest.approx(status["rows_total"], rel=0.005)
    assert {key: count for key, count in recorded.items() if key[0] != "orders"} == {
        ("items", 0, part): 10_000 for part in range(1, 11)
    } | {
        (kind, warehouse, part): rows
        for warehouse in range(1, warehouses + 1)
        for kind, rows in {"warehouse": 11, "stock": 10_000, "customers": 6_000}.items()
        for part in range(1, CHUNKS_OF_WAREHOUSE[kind] + 1)
    }
    # Besides the lines 3,000 orders, of which 900 are new.
    assert {key: count for key, count in recorded.items() if key[0] == "orders"} == {
        ("orders", *district): 3_900 + count for district, count in found.lines.items()
    }


@pytest.mark.slow(reason="a load that is killed goes on anyway")
def test_one_connection_stopped_and_resumed_loads_the_same(server: Server) -> None:
    database = Database(server.fresh_database(), 1)
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
    # The conditions hold for the same rows above.
    assert database.contents() == CONTENTS

    # Nothing is left to do, which is no error, and nothing changes.
    plan["databases"][0]["done"] = database.chunks()
    with loading(plan) as load:
        again = load.end()
    assert (again["state"], again["chunks_done"], again["rows"]) == ("done", 0, 0)


def test_another_seed_gives_other_rows(server: Server) -> None:
    database = Database(server.fresh_database(), 1)
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


def test_a_load_fills_databases_of_different_kinds(postgresql18: Server, mariadb: Server) -> None:
    databases = [Database(server.fresh_database(), 1) for server in (postgresql18, mariadb)]
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
    plan["databases"][0]["done"] = [chunk for chunk in all_chunks(database.warehouses) if chunk != ("warehouse", 1, 1)]
    before = database.contents("warehouse", "district")
    with loading(plan) as load:
        status = load.end()
    assert (status["state"], status["error"]["kind"], status["chunks_done"]) == ("failed", "other", 0)
    assert len(status["error"]["text"].splitlines()) == 1
    assert database.contents("warehouse", "district") == before
