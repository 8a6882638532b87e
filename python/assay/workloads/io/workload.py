"""The registration of the kind."""

from __future__ import annotations

from assay.workloads.io.figures import FIGURES
from assay.workloads.io.plan import Plan, load_plan
from assay.workloads.workload import OpenWorkload, Part, Record, RunContext, Workload


class IoWorkload(Workload[Plan]):
    """What the pipeline knows of the kind."""

    kind = "io"
    plan_type = Plan
    figures = FIGURES

    def load_plan(self, data: Record, *, source: str) -> Plan:
        """A plan from its TOML or JSON form."""
        return load_plan(data, source=source)

    def estimate_s(self, plan: Plan) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        raise NotImplementedError

    def open(self, part: Part[Plan], context: RunContext) -> OpenWorkload:
        """Begin a part."""
        raise NotImplementedError
