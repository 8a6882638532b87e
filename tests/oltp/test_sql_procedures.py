"""The transactions as procedures, on real servers."""

from __future__ import annotations

import threading
from decimal import Decimal

import psycopg
import pymysql
import pytest
from sql_sessions import TABLES, Session, sections


def test_new_order_does_what_the_statements_do(fresh: Session) -> None:
    # Items 3 and 4 at home, 4 twice, and 5 from elsewhere; 20 in stock is just enough for an order of 10.
    lines = [(3, 1, 10), (4, 1, 10), (4, 1, 4), (5, 2, 1)]
    assert fresh.new_order(1, 2, 3, lines) == [(2104, round(25 * Decimal("250") * Decimal("0.8") * Decimal("1.15")))]
    assert fresh.execute("SELECT o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local FROM orders"
                         " WHERE o_w_id = 1 AND o_d_id = 2 AND o_id > 2103") == [(2104, 3, None, 4, 0)]  # fmt: skip
    assert fresh.execute(
        "SELECT ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d, ol_dist_info FROM order_line"
        " WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = 2104 ORDER BY ol_number"
    ) == [
        (number, item, supply, quantity, quantity * Decimal("2.50"), None, "02" * 12)
        for number, (item, supply, quantity) in enumerate(lines, 1)
    ]
    stock = fresh.execute("SELECT s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock"
                          " WHERE s_order_cnt > 0 ORDER BY s_w_id, s_i_id")  # fmt: skip
    assert stock == [(1, 3, 10, 10, 1, 0), (1, 4, 97, 14, 2, 0), (2, 5, 19, 1, 1, 1)]
    assert fresh.failing(after_load=False) == set()
    (moment,) = fresh.execute("SELECT o_entry_d FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 2104")[0]
    now = "now() AT TIME ZONE 'UTC'" if fresh.dialect == "postgresql" else "utc_timestamp()"
    assert abs((fresh.execute(f"SELECT {now}")[0][0] - moment).total_seconds()) < 600

    fresh.new_order(1, 1, 1, [(1, 1, 1), (2, 1, 1)])
    assert fresh.execute("SELECT o_all_local FROM orders WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2104") == [(1,)]


def test_an_unknown_item_undoes_everything(fresh: Session) -> None:
    everything = [f"SELECT * FROM {table} ORDER BY 1, 2, 3" for table in TABLES]
    before = [sorted(map(str, fresh.execute(text))) for text in everything]
    with pytest.raises(Exception, match="an item of the order does not exist") as raised:
        fresh.new_order(1, 2, 3, [(3, 1, 10), (4, 1, 2), (4, 1, 3), (100_001, 1, 1)])
    assert raised.value.sqlstate == ("AS001" if fresh.dialect == "postgresql" else "45001")  # type: ignore[attr-defined]
    assert [sorted(map(str, fresh.execute(text))) for text in everything] == before
    assert fresh.new_order(1, 2, 3, [(3, 1, 10)])[0][0] == 2104


def test_payments_by_number_and_by_name(fresh: Session) -> None:
    assert fresh.prepared("call.payment", 1, 2, 2, 1, 2, "", "12.34") == [(2, Decimal("-22.34"))]
    assert fresh.prepared("call.payment", 1, 2, 1, 2, 0, "BARBARBAR", "0.66") == [(3, Decimal("-10.66"))]
    assert fresh.execute("SELECT c_data, c_payment_cnt, c_ytd_payment FROM customer"
                         " WHERE c_w_id = 2 AND c_d_id = 1 AND c_id = 2") == [
        ("2 1 2 2 1 12.34 data", 2, Decimal("22.34"))
    ]  # fmt: skip
    assert fresh.execute("SELECT c_data FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 3") == [("data",)]
    assert fresh.execute("SELECT w_ytd FROM warehouse ORDER BY w_id") == [(Decimal("73.00"),), (Decimal("60.00"),)]
    assert fresh.execute("SELECT h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_amount, h_data FROM history"
                         " WHERE h_amount <> 10 ORDER BY h_amount") == [
        (3, 2, 1, 2, 1, Decimal("0.66"), "NAME1    NAME2"),
        (2, 1, 2, 2, 1, Decimal("12.34"), "NAME1    NAME2"),
    ]  # fmt: skip
    for _ in range(60):
        fresh.prepared("call.payment", 1, 2, 2, 1, 2, "", "1.00")
    data = fresh.execute("SELECT c_data FROM customer WHERE c_w_id = 2 AND c_d_id = 1 AND c_id = 2")[0][0]
    assert len(data) == 500
    assert data.startswith("2 1 2 2 1 1.00 2 1 2 2 1 1.00 ")
    assert fresh.failing() == set()
    with pytest.raises(Exception, match=r"no customer|does not exist"):
        fresh.prepared("call.payment", 1, 2, 1, 2, 0, "NOBODY", "1.00")
    assert fresh.failing() == set()


def test_order_status_and_stock_level(fresh: Session) -> None:
    assert fresh.prepared("call.order_status", 1, 2, 0, "BARBARBAR") == [(3, 2102, 2)]
    assert fresh.prepared("call.order_status", 1, 2, 1, "") == [(1, 2103, 2)]
    assert fresh.prepared("call.stock_level", 1, 2, 20) == [(0,)]
    assert fresh.prepared("call.stock_level", 1, 2, 21) == [(2,)]
    fresh.new_order(1, 2, 1, [(9, 1, 9), (10, 1, 10), (11, 2, 10)])
    assert fresh.prepared("call.order_status", 1, 2, 1, "") == [(1, 2104, 3)]
    # Item 11 came from the other warehouse: here there are 20 of it.
    assert fresh.prepared("call.stock_level", 1, 2, 11) == [(1,)]
    assert fresh.prepared("call.stock_level", 1, 2, 12) == [(2,)]
    assert fresh.prepared("call.stock_level", 1, 2, 21) == [(5,)]


def test_a_delivery_takes_the_oldest_order_of_each_district(fresh: Session) -> None:
    assert fresh.prepared("call.delivery", 1, 9) == [(2,)]
    assert fresh.execute("SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 ORDER BY 1") == [
        (2102,),
        (2103,),
    ]
    assert fresh.execute("SELECT o_carrier_id FROM orders WHERE o_w_id = 1 AND o_id = 2101") == [(9,), (9,)]
    assert fresh.execute("SELECT c_balance, c_delivery_cnt FROM customer"
                         " WHERE c_w_id = 1 AND c_d_id = 2 ORDER BY c_id") == [
        (Decimal("-4.45"), 0), (Decimal("-4.00"), 1), (Decimal("-10.00"), 0)
    ]  # fmt: skip
    assert fresh.failing(after_load=False) == set()
    assert [fresh.prepared("call.delivery", 1, 9)[0][0] for _ in range(3)] == [2, 2, 0]
    assert fresh.failing(after_load=False) == set()


def retried(session: Session, name: str, *parameters: object) -> None:
    """Call until there is no deadlock."""
    for _ in range(100):
        try:
            session.prepared(name, *parameters)
            return
        except (psycopg.errors.DeadlockDetected, pymysql.err.OperationalError) as error:
            if session.dialect == "mariadb" and error.args[0] != 1213:
                raise
    raise AssertionError("a hundred deadlocks one after another")


def test_many_sessions_leave_the_conditions_met(fresh: Session, database_url: str) -> None:
    errors: list[Exception] = []

    def work(number: int) -> None:
        session = Session(database_url)
        try:
            for turn in range(40):
                warehouse, district, customer = number % 2 + 1, turn % 2 + 1, turn % 3 + 1
                places = sorted({((turn + k) % 2 + 1, (number + turn * k) % 20 + 1) for k in range(8)})
                lines = [(item, supply, 5) for supply, item in places]
                retried(session, "call.new_order", 1, district, customer, *session.lines(lines))
                retried(session, "call.payment", warehouse, district, 1, 1, 0, "BARBARBAR", "3.33")
                retried(session, "call.delivery", warehouse, 3)
                retried(session, "call.stock_level", warehouse, district, 15)
        except Exception as error:
            errors.append(error)
        finally:
            session.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert fresh.failing(after_load=False) == set()
    assert fresh.execute("SELECT sum(d_next_o_id - 2104) FROM district") == [(4 * 40,)]


def test_everything_can_be_dropped_and_dropped_again(fresh: Session) -> None:
    for _ in range(2):
        for text in sections(fresh.dialect, "drop").values():
            fresh.execute(text)
    schema = "'public'" if fresh.dialect == "postgresql" else "database()"
    for catalogue in ("table", "routine"):
        left = f"SELECT count(*) FROM information_schema.{catalogue}s WHERE {catalogue}_schema = {schema}"
        assert fresh.execute(left) == [(0,)]
