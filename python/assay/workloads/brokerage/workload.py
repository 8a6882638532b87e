"""The registration of the TPC-E-like workload: what the pipeline knows of it."""

from __future__ import annotations

from assay.workloads.brokerage.application import BROKERAGE, FIGURES
from assay.workloads.brokerage.job import BrokerageJob
from assay.workloads.brokerage.plan import BrokeragePlan
from assay.workloads.brokerage.shapes import SHAPES
from assay.workloads.brokerage.tables import TABLES
from assay.workloads.transactions.workload import TransactionsWorkload


class BrokerageWorkload(TransactionsWorkload[BrokeragePlan]):
    """TPC-E-like transactions of users on databases."""

    kind = BROKERAGE.kind
    application = BROKERAGE
    job = BrokerageJob
    scale_unless_asked = "those that are loaded, else 1,000"
    preset_default = "orders"
    figures = FIGURES
    shapes = SHAPES
    plan_type = BrokeragePlan
    table_set = TABLES
