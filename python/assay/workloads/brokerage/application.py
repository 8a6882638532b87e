"""The TPC-E-like application, as what is common to transactions needs to know it."""

from __future__ import annotations

from assay.workloads.brokerage.tables import KIND, TABLES
from assay.workloads.transactions.application import Application, Rate
from assay.workloads.transactions.figures import figures_of

BROKERAGE = Application(
    kind=KIND,
    name="TPC-E-like",
    transactions={
        "trade_result": "Trade result",
        "trade_status": "Trade status",
        "market_watch": "Market watch",
        "security_detail": "Security detail",
        "customer_position": "Customer position",
        "trade_order": "Trade order",
        "trade_lookup": "Trade lookup",
        "broker_volume": "Broker volume",
        "trade_update": "Trade update",
        "market_feed": "Market feed",
        "data_maintenance": "Data maintenance",
    },
    first_plural="trade results",
    rate=Rate(
        key="trade_results_per_s",
        unit="trade_results_per_s",
        seconds=1,
        digits=1,
        title="trade results/s",
        full="trade results per second",
        said="trade results a second",
    ),
    counted_by="the brokers count",
    rolled_back="trade orders that customers withdraw at the last moment, or whose executor has no right to give them",
    conditions="The three consistency conditions, the references between tables, and the rows of each table.",
    conditions_count=5,
    shape={},
    stall_s=10.0,
    disclaimer=(
        "a TPC-E-like workload, derived and not compliant; TPC-E is a trademark of the Transaction Processing"
        " Performance Council; figures are not comparable with published TPC results, nor with those at another number"
        " of customers or days"
    ),
    tables=TABLES,
)

FIGURES = figures_of(BROKERAGE)

BY_PRODUCTS = ("trade_result", "market_feed")
"""Transactions that the market sends in answer to orders."""
MAINTENANCE = "data_maintenance"
"""The transaction that comes by the clock."""
