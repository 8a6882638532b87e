"""The TPC-C-like application, as what is common to transactions needs to know it."""

from __future__ import annotations

from assay.workloads.tpcc.acknowledged import missing_orders
from assay.workloads.tpcc.tables import TABLES
from assay.workloads.transactions.application import Application, Rate
from assay.workloads.transactions.figures import figures_of

TPCC = Application(
    kind="tpcc",
    name="TPC-C-like",
    transactions={
        "new_order": "New order",
        "payment": "Payment",
        "order_status": "Order status",
        "delivery": "Delivery",
        "stock_level": "Stock level",
    },
    first_plural="new orders",
    rate=Rate(
        key="nopm",
        unit="nopm",
        seconds=60,
        digits=0,
        title="NOPM",
        full="new orders per minute",
        said="new orders a minute (NOPM)",
    ),
    counted_by="the districts count",
    rolled_back="new orders that name an item which does not exist, as they should",
    conditions="Consistency conditions of clause 3.3.2, over all databases; checked: warehouses, districts, orders or"
    " lines.",
    conditions_count=12,
    # Deliveries break it.
    after_load_only=frozenset({11}),
    shape={"items": {"uniform": "items uniform", "nurand": "items skewed (NURand)"}},
    disclaimer=(
        "a TPC-C-like workload, derived and not compliant; TPC-C is a trademark of the Transaction Processing"
        " Performance Council; figures are not comparable with published TPC results, nor with those at another number"
        " of warehouses"
    ),
    tables=TABLES,
    find_acknowledged=missing_orders,
    acknowledged_key="warehouse, district, order, customer",
)

FIGURES = figures_of(TPCC)
