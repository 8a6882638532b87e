"""The registration of the kind."""

from __future__ import annotations

from assay.workloads.tpcc.plan import TpccPlan, load_tpcc_plan
from assay.workloads.workload import OpenWorkload, Part, Record, RunContext, Workload


class TpccWorkload(Workload[TpccPlan]):
    """What the pipeline knows of the kind."""

    kind = "tpcc"
    plan_type = TpccPlan
    targets = "databases"

    def load_plan(self, data: Record, *, source: str) -> TpccPlan:
        """A plan from its TOML or JSON form."""
        return load_tpcc_plan(data, source=source)

    def estimate_s(self, plan: TpccPlan) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        raise NotImplementedError

    def open(self, part: Part[TpccPlan], context: RunContext) -> OpenWorkload:
        """Begin a part."""
        raise NotImplementedError
