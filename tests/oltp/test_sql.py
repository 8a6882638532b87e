"""What the files of `crates/oltp/src/tpcc/sql` hold, and what their statements do on real servers."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from sql_sessions import ADDRESS, FILES, LAYERS, PHONE, SESSION, SQL, TABLES, WHEN, Rows, Session, columns, sections

PROCEDURES = ["assay_new_order", "assay_payment", "assay_order_status", "assay_delivery", "assay_stock_level"]
AT_ONCE = {"new_order.stock"}  # where a statement can change a row and return it
IN_TWO = {"new_order.district_next", "new_order.stock_read", "new_order.stock_update"}  # where it cannot


@pytest.mark.parametrize("dialect", LAYERS)
def test_every_dialect_has_all_statements(dialect: str) -> None:
    base = set(sections("mariadb", "statements"))
    names = set(sections(dialect, "statements"))
    assert names == (base if dialect in ("mariadb", "mysql") else base - IN_TWO | AT_ONCE)


@pytest.mark.parametrize("dialect", LAYERS)
def test_placeholders_ascend_and_are_used_once(dialect: str) -> None:
    parameters = {name: re.findall(r"\$(\d+)", text) for name, text in sections(dialect, "statements").items()}
    assert {name: list(map(int, found)) for name, found in parameters.items()} == {
        name: list(range(1, len(found) + 1)) for name, found in parameters.items()
    }
    everyone_has = {name: len(found) for name, found in parameters.items() if name not in AT_ONCE | {"call.new_order"}}
    base = {name: len(re.findall(r"\$\d+", text)) for name, text in sections("mariadb", "statements").items()}
    assert everyone_has == {name: base[name] for name in everyone_has}
    for file in FILES:
        if file != "statements":
            assert not any(re.search(r"\$\d", text) for text in sections(dialect, file).values())


@pytest.mark.parametrize("dialect", LAYERS)
def test_tables_have_the_columns_of_the_specification_in_its_order(dialect: str) -> None:
    found = columns(dialect)
    assert list(found) == ["assay_schema", "assay_chunk", *TABLES]
    if dialect in ("mariadb", "mysql"):
        assert found["history"].pop() == "h_id"  # the one column that is ours
    assert " ".join(found["orders"]) == "o_id o_d_id o_w_id o_c_id o_entry_d o_carrier_id o_ol_cnt o_all_local"
    assert [len(found[table]) for table in TABLES] == [9, 11, 21, 8, 8, 3, 10, 17, 5]
    assert found == columns("postgresql")


@pytest.mark.parametrize("dialect", LAYERS)
def test_everything_that_is_created_is_dropped_and_the_bookkeeping_last(dialect: str) -> None:
    dropped = list(sections(dialect, "drop"))
    assert sorted(dropped) == sorted([*sections(dialect, "schema"), *PROCEDURES])
    assert dropped[-2:] == ["assay_chunk", "assay_schema"]
    created = [name for name in sections(dialect, "procedures") if not name.startswith("drop.")]
    assert created == PROCEDURES


@pytest.mark.parametrize("dialect", LAYERS)
def test_indexes_are_named_like_their_sections(dialect: str) -> None:
    indexes = sections(dialect, "indexes")
    assert all(re.search(rf"(INDEX|CONSTRAINT) {name}\b", text) for name, text in indexes.items())
    keys = "\n".join([*sections(dialect, "schema").values(), *indexes.values()])
    for key in ("w_id", "d_w_id, d_id", "c_w_id, c_d_id, c_id", "o_w_id, o_d_id, o_id", "no_w_id, no_d_id, no_o_id",
                "ol_w_id, ol_d_id, ol_o_id, ol_number", "s_w_id, s_i_id", "i_id"):  # fmt: skip
        assert re.search(rf"PRIMARY KEY( CLUSTERED)? \({key}\)", keys), key


@pytest.mark.parametrize("dialect", LAYERS)
def test_conditions_have_titles(dialect: str) -> None:
    conditions = sections(dialect, "conditions")
    assert list(conditions) == [f"condition.{number}" for number in range(1, 13)]
    assert all(re.match(r"-- title: \S.*\n", text) for text in conditions.values())


def test_what_was_not_verified_says_so() -> None:
    for file in [*(SQL / "mssql").glob("*.sql"), *(SESSION / "mssql").glob("*.sql")]:
        assert "Not verified on SQL Server" in file.read_text().splitlines()[0], file.name


# Parameters of every statement, and what it answers on the loaded rows; nothing where only its effect counts.
ANSWERS: dict[str, tuple[tuple[object, ...], Rows | None]] = {
    "session.isolation.serializable": ((), None),
    "session.isolation.repeatable-read": ((), None),
    "session.isolation.read-committed": ((), None),
    "begin": ((), None),
    "new_order.warehouse": ((1,), [(Decimal("0.1000"),)]),
    "new_order.customer": ((1, 2, 3), [(Decimal("0.2000"), "BARBARBAR", "GC")]),
    "new_order.district": ((1, 2), [(2104, Decimal("0.0500"))]),
    "new_order.district_next": ((1, 2), None),
    "new_order.item": ((7,), [(Decimal("2.50"), "item 7", "data")]),
    "new_order.order": ((2104, 2, 1, 3, 1, 0), None),
    "new_order.new_order": ((2104, 2, 1), None),
    "new_order.stock": ((9, 1, 10, 7, 2), [("10" * 12, 11, "data")]),
    "new_order.stock_read": ((10, 7, 2), [(20, "10" * 12, "data")]),
    "new_order.stock_update": ((11, 9, 1, 7, 2), None),
    "new_order.order_line": ((2104, 2, 1, 1, 7, 2, 9, "22.50", "10" * 12), None),
    "payment.warehouse": ((1,), [("NAME1", *ADDRESS)]),
    "payment.district": ((1, 2), [("NAME2", *ADDRESS)]),
    "payment.by_name": ((1, 2, "BARBARBAR"), [(2,), (3,), (1,)]),
    "payment.customer": ((1, 2, 2), None),
    "payment.customer_data": ((1, 2, 2), [("data",)]),
    "payment.customer_update": (("1.25", "1.25", 1, 2, 1), None),
    "payment.customer_update_bad": (("1.50", "1.50", "more data", 1, 2, 2), None),
    "payment.district_update": (("2.75", 1, 2), None),
    "payment.warehouse_update": (("2.75", 1), None),
    "payment.history": ((1, 2, 1, 2, 1, "1.25", "NAME1    NAME2"), None),
    "order_status.by_name": ((1, 2, "BARBARBAR"), [(2,), (3,), (1,)]),
    "order_status.customer": ((1, 2, 3), [("BERTA", "OE", "BARBARBAR", Decimal("-10.00"))]),
    "order_status.last_order": ((1, 2, 1), None),
    "order_status.lines": ((1, 2, 2104), [(7, 2, 9, Decimal("22.50"), None)]),
    "delivery.oldest": ((1, 2), [(2101,)]),
    "delivery.delete": ((1, 2, 2101), None),
    "delivery.customer_of": ((1, 2, 2101), [(2,)]),
    "delivery.order_update": ((8, 1, 2, 2101), None),
    "delivery.lines_update": ((1, 2, 2101), None),
    "delivery.amount": ((1, 2, 2101), [(Decimal("6.00"),)]),
    "delivery.customer_update": (("6.00", 1, 2, 2), None),
    "stock_level.district": ((1, 2), [(2105,)]),
    "stock_level.count": ((1, 2, 2105, 2105, 21), [(3,)]),
    "rollback": ((), None),
    "commit": ((), None),
}


def test_every_statement_is_prepared_and_answers(loaded: Session) -> None:
    called = {name for name in loaded.statements if name.startswith("call.")}
    assert set(loaded.statements) - called == set(ANSWERS) - (IN_TWO if loaded.dialect == "postgresql" else AT_ONCE)
    for name, (parameters, expected) in ANSWERS.items():
        if name in loaded.statements:
            if name == "rollback":
                changed = loaded.execute("SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock"
                                         " WHERE s_w_id = 2 AND s_i_id = 7")  # fmt: skip
                customers = loaded.execute("SELECT c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"
                                           " FROM customer WHERE c_w_id = 1 AND c_d_id = 2 ORDER BY c_id")  # fmt: skip
                sums = loaded.execute("SELECT w_ytd, d_ytd FROM warehouse JOIN district ON d_w_id = w_id"
                                      " WHERE w_id = 1 AND d_id = 2")  # fmt: skip
            found = loaded.prepared(name, *parameters)
            assert expected is None or found == expected, name
    assert changed == [(11, 9, 1, 1)]
    assert customers == [
        (Decimal("-5.70"), Decimal("11.25"), 2, 0, "data"),
        (Decimal("-5.50"), Decimal("11.50"), 2, 1, "more data"),
        (Decimal("-10.00"), Decimal("10.00"), 1, 0, "data"),
    ]
    assert sums == [(Decimal("62.75"), Decimal("32.75"))]
    assert loaded.failing() == set()


def test_customers_and_orders_are_answered_whole(loaded: Session) -> None:
    (customer,) = loaded.prepared("payment.customer", 1, 2, 2)
    (order,) = loaded.prepared("order_status.last_order", 1, 2, 1)
    assert [str(value) for value in customer] == ["ADAM", "OE", "BARBARBAR", *ADDRESS, PHONE, WHEN, "BC",
                                                  "50000.00", "0.2000", "-10.00"]  # fmt: skip
    assert [str(value) for value in order] == ["2103", WHEN, "None"]


def test_text_parameters_find_rows_by_their_keys(loaded: Session) -> None:
    # A comparison that turned the column instead of the parameter would read the whole table or index.
    if loaded.dialect == "postgresql":
        loaded.execute("SET LOCAL enable_seqscan = off")
        loaded.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        loaded.execute(f"PREPARE stock AS {loaded.statements['new_order.stock']}")
        plan = "\n".join(str(line) for (line,) in loaded.execute("EXPLAIN EXECUTE stock (1, 1, 1, 1, 1)"))
        loaded.execute("DEALLOCATE stock")
        assert "Index Cond: ((s_w_id = $5) AND (s_i_id = $4))" in plan
        assert "Values Scan" not in plan
        return
    reading = ("Handler_read_key", "Handler_read_next", "Handler_read_prev", "Handler_read_rnd_next")
    bounds = {"new_order.stock_read": 3, "payment.by_name": 5, "order_status.last_order": 3, "stock_level.count": 99}
    for name, most in bounds.items():
        loaded.execute("FLUSH LOCAL STATUS")
        loaded.prepared(name, *ANSWERS[name][0])
        counts = loaded.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        assert sum(int(count) for key, count in counts if key in reading) <= most, (name, counts)
