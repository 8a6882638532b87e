"""The registration of the kind."""

from __future__ import annotations

from assay.workloads.integrity.figures import FIGURES
from assay.workloads.integrity.plan import IntegrityPlan, load_integrity_plan
from assay.workloads.workload import OpenWorkload, Part, Record, RunContext, Workload


class IntegrityWorkload(Workload[IntegrityPlan]):
    """What the pipeline knows of the kind."""

    kind = "integrity"
    plan_type = IntegrityPlan
    figures = FIGURES

    def load_plan(self, data: Record, *, source: str) -> IntegrityPlan:
        """A plan from its TOML or JSON form."""
        return load_integrity_plan(data, source=source)

    def estimate_s(self, plan: IntegrityPlan) -> tuple[float, float]:
        """Shortest and longest time its points take."""
        raise NotImplementedError

    def open(self, part: Part[IntegrityPlan], context: RunContext) -> OpenWorkload:
        """Begin a part."""
        raise NotImplementedError
