"""The registration of the TPC-C-like workload: what the pipeline knows of it."""

from __future__ import annotations

from assay.workloads.capabilities import Examining
from assay.workloads.tpcc.application import FIGURES, TPCC
from assay.workloads.tpcc.examination import PARTS
from assay.workloads.tpcc.job import TpccJob
from assay.workloads.tpcc.plan import TpccPlan
from assay.workloads.tpcc.shapes import SHAPES
from assay.workloads.tpcc.tables import TABLES
from assay.workloads.transactions.workload import TransactionsWorkload


class TpccWorkload(TransactionsWorkload[TpccPlan], Examining):
    """TPC-C-like transactions of users on databases."""

    kind = TPCC.kind
    application = TPCC
    job = TpccJob
    scale_unless_asked = "those that are loaded, else 10"
    preset_default = "hammerdb"
    examination = PARTS
    figures = FIGURES
    shapes = SHAPES
    plan_type = TpccPlan
    table_set = TABLES
