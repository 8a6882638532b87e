"""The consistency conditions: true of a database that is consistent, and each found out by what breaks it."""

from __future__ import annotations

import pytest
from sql_sessions import TABLES, WHEN, Session, sections


def test_a_loaded_database_meets_all_conditions(loaded: Session) -> None:
    assert loaded.failing() == set()


def test_conditions_of_empty_tables_have_nothing_to_say(loaded: Session) -> None:
    for table in TABLES:
        loaded.execute(f"DELETE FROM {table}")
    found = [loaded.execute(text) for text in sections(loaded.dialect, "conditions").values()]
    assert found == [[(0, 0, None)]] * 12


# What is changed, and which conditions that breaks.
CHANGES = [
    ("UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 1", {1, 8}),
    ("DELETE FROM warehouse WHERE w_id = 2", {1, 8}),
    ("UPDATE district SET d_ytd = d_ytd - 0.01 WHERE d_w_id = 2 AND d_id = 1", {1, 9}),
    ("DELETE FROM district WHERE d_w_id = 2 AND d_id = 2", {1, 2, 3, 4, 9, 11}),
    ("UPDATE district SET d_w_id = 9 WHERE d_w_id = 2 AND d_id = 2", {1, 2, 3, 4, 9, 11}),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 1", {2}),
    # A district without new orders is compared as well.
    (
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 1;"
        "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1",
        {2, 5, 11},
    ),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1", {5, 11}),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2101", {5, 11}),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2102", {3, 5, 11}),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2103", {2, 5, 11}),
    ("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (2104, 1, 1)", {2, 5, 11}),
    ("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (5, 1, 9)", {2, 3, 5, 11}),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7", {4, 6}),
    # Two errors that cancel out in the district are found in its orders.
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7;"
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 8",
        {6},
    ),
    ("DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7", {4, 6, 7, 11}),
    ("DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 2103", {2, 4, 5, 6, 7, 11}),
    ("DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 2", {2, 4, 5, 6, 7, 10, 11, 12}),
    (
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)"
        f" VALUES (1, 9, 1, 1, '{WHEN}', 7, 0, 1)",
        {2, 4, 10, 11, 12},
    ),
    ("UPDATE orders SET o_c_id = 9 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7", {10, 12}),
    ("UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 7", {5, 7}),
    ("UPDATE orders SET o_carrier_id = 7 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2103", {5, 7}),
    ("DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7", {4, 6}),
    ("DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 5", {4, 6, 10, 12}),
    ("DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 1", {4, 6, 10, 12}),
    ("UPDATE order_line SET ol_o_id = 9999 WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7", {6, 7}),
    ("UPDATE order_line SET ol_d_id = 9 WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7", {4, 6, 7}),
    ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 7", {7}),
    ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 5", {7, 10, 12}),
    (
        f"UPDATE order_line SET ol_delivery_d = '{WHEN}'"
        " WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 2101 AND ol_number = 2",
        {7, 10, 12},
    ),
    ("UPDATE order_line SET ol_amount = 5.56 WHERE ol_w_id = 2 AND ol_d_id = 1 AND ol_o_id = 5", {10, 12}),
    ("UPDATE history SET h_amount = 10.01 WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 3", {8, 9, 10}),
    ("DELETE FROM history WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 3", {8, 9, 10}),
    ("DELETE FROM history WHERE h_w_id = 2", {8, 9, 10}),
    ("UPDATE history SET h_d_id = 2 WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 3", {9}),
    ("UPDATE history SET h_w_id = 1 WHERE h_w_id = 2 AND h_d_id = 1 AND h_c_id = 3", {8, 9}),
    (
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
        f" VALUES (9, 1, 1, 1, 1, '{WHEN}', 0, 'unknown customer')",
        {10},
    ),
    (
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
        f" VALUES (1, 1, 1, 1, 9, '{WHEN}', 0, 'unknown warehouse')",
        {8, 9},
    ),
    ("UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 2", {10, 12}),
    ("UPDATE customer SET c_ytd_payment = 10.01 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 2", {12}),
    (
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1"
        " WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 2",
        {10},
    ),
    ("DELETE FROM customer WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 2", {10, 12}),
    # A customer with neither orders nor payments: sums of nothing are 0, not unknown.
    ("UPDATE customer SET c_d_id = 9 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 2", {10, 12}),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_a_change_breaks_exactly_the_conditions_it_should(loaded: Session, change: str, expected: set[int]) -> None:
    for text in change.split(";"):
        loaded.execute(text)
    assert loaded.failing() == expected


def test_every_condition_is_broken_by_some_change() -> None:
    assert set.union(*(expected for _, expected in CHANGES)) == set(range(1, 13))


def test_violations_are_counted_and_shown(loaded: Session) -> None:
    loaded.execute("UPDATE customer SET c_balance = c_balance + 1 WHERE c_w_id = 1")
    loaded.execute("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id < 4")
    conditions = sections(loaded.dialect, "conditions")
    ((checked, violations, example),) = loaded.execute(conditions["condition.10"])
    lines = loaded.execute(conditions["condition.7"])
    assert (checked, violations) == (12, 6)
    assert example == "warehouse 1, district 1, customer 1 (rows 1): c_balance -3.45, delivered 5.55, paid 10.00"
    assert [int(value) for value in lines[0][:2]] == [4 * (2100 + 6), 3]
