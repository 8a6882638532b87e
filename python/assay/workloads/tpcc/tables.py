"""The tables of this workload, as databases need to know them."""

from __future__ import annotations

from assay import _core
from assay.base.units import count_of
from assay.targets.databases.common.table_set import LoadedSize, RangeKey, TableSet

ITEMS_COUNT = 100_000

BYTES_PER_WAREHOUSE = 110 << 20

TABLES = TableSet(
    rows="tpcc",
    names=("item", "warehouse", "district", "customer", "history", "orders", "new_order", "order_line", "stock"),
    scale="warehouses",
    size=LoadedSize(
        words=lambda warehouses: count_of(warehouses, "warehouse"),
        option="warehouses",
        things="warehouses",
        bytes_each=BYTES_PER_WAREHOUSE,
        log_bytes_each=85 << 20,
    ),
    unit="w_id",
    # The warehouse leads the key of every table but item's.
    keys={
        "warehouse": RangeKey("w_id"),
        "district": RangeKey("d_w_id"),
        "customer": RangeKey("c_w_id"),
        "history": RangeKey("h_w_id", primary=("h_id", "h_w_id")),
        "orders": RangeKey("o_w_id"),
        "new_order": RangeKey("no_w_id"),
        "order_line": RangeKey("ol_w_id"),
        "stock": RangeKey("s_w_id"),
        "item": RangeKey("i_id", ITEMS_COUNT),
    },
    statements=lambda dialect, file: _core.oltp_sql("tpcc", dialect, file),
    counters={"new_order_count": ("district", "SELECT sum(d_next_o_id) FROM district")},
)
