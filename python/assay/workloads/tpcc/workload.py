"""The registration of the TPC-C-like workload: what the pipeline knows of it."""

from __future__ import annotations

from assay.base.tables import Record
from assay.workloads.capabilities import Examining
from assay.workloads.tpcc.application import TPCC
from assay.workloads.tpcc.examination import PARTS
from assay.workloads.tpcc.figures import FIGURES
from assay.workloads.tpcc.job import TpccJob
from assay.workloads.tpcc.plan import TpccPlan, load_tpcc_plan
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

    def load_plan(self, data: Record, *, source: str) -> TpccPlan:
        """A plan from its TOML or JSON form."""
        return load_tpcc_plan(data, source=source)
