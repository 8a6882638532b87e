"""The tables of this workload, as databases need to know them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from assay import _core
from assay.base.units import count_of
from assay.targets.databases.common.table_set import LoadedSize, RangeKey, TableSet

KIND = "brokerage"

CUSTOMERS_OF_BROKER = 100
"""Customers of one broker: numbers of customers are multiples of it."""

DAYS_DEFAULT = 10
NEWS_BYTES = 100_000
"""Length of the large object of a news item."""

ROWS_BYTES, DAY_BYTES = 200_000, 75_000
"""Room that a customer takes with indexes: of all but trades and news, and of the trades of a day; measured."""
NEWS_OF_CUSTOMER = 1


def bytes_of_customer(shape: Mapping[str, int]) -> int:
    """Room that a customer takes with rows of a shape, indexes included."""
    return ROWS_BYTES + shape["days"] * DAY_BYTES + shape["news_bytes"] * NEWS_OF_CUSTOMER


def trades(customers: int, shape: Mapping[str, int]) -> int:
    """Trades of a load; their keys count from 1, in the order of time. Later trades have higher keys."""
    return _core.row_counts(KIND, customers, json.dumps(dict(shape)))["trade"]


def _of_trade(column: str) -> RangeKey:
    return RangeKey(column, trades, type="bigint")


SHAPE = {"days": DAYS_DEFAULT, "news_bytes": NEWS_BYTES}

DRAWN = frozenset(
    ("customer_account", "account_permission", "watch_item", "trade_history", "cash_transaction", "holding_history",
     "holding", "holding_summary")
)  # fmt: skip
"""Tables whose number of rows is drawn: it is only near the expected number."""

GROWING = frozenset(
    ("trade", "settlement", "trade_history", "cash_transaction", "holding_history", "holding", "holding_summary",
     "trade_request")
)  # fmt: skip
"""Tables to which transactions add."""

TABLES = TableSet(
    rows=KIND,
    names=tuple(_core.row_counts(KIND, CUSTOMERS_OF_BROKER)),
    scale="customers",
    size=LoadedSize(
        words=lambda customers: count_of(customers, "customer"),
        option="customers",
        things="customers",
        bytes_each=bytes_of_customer(SHAPE),
        bytes_by_shape=bytes_of_customer,
        log_bytes_each=200_000,
        step=CUSTOMERS_OF_BROKER,
    ),
    shape=SHAPE,
    has_references=True,
    # On the key of the trade, as the published study did. New trades go to the last range.
    keys={
        "trade": _of_trade("t_id"),
        "trade_history": _of_trade("th_t_id"),
        "settlement": _of_trade("se_t_id"),
        "cash_transaction": _of_trade("ct_t_id"),
        "holding_history": _of_trade("hh_t_id"),
        "holding": _of_trade("h_t_id"),
    },
    statements=lambda dialect, file: _core.oltp_sql(KIND, dialect, file),
    counters={"trade_result_count": ("broker", "SELECT sum(b_num_trades) FROM broker")},
)
