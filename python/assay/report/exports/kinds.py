"""What the kinds of workloads say of their points to exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.record.figures import Figure
from assay.workloads.capabilities import MeasuresIo, Reporting
from assay.workloads.registry import workload_recorded

if TYPE_CHECKING:
    from assay.record.types import Point


def own_figures(point: Point) -> dict[str, Figure]:
    """Figures of a point that no export has a place of its own for, by name."""
    workload = workload_recorded(point)
    if workload is None:
        return {}
    own = workload.exported() if isinstance(workload, Reporting) else workload.figures
    return {figure.name: figure for figure in own}


def measures_io(point: Point) -> bool:
    """Whether other tools of storage measure such points."""
    return isinstance(workload_recorded(point), MeasuresIo)
