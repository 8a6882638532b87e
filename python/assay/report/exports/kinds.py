"""What the kinds of workloads say of their points to exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.record.figures import Figure
from assay.workloads.registry import workload_recorded


def own_figures(point: Mapping[str, Any]) -> dict[str, Figure]:
    """Figures of a point that no export has a place of its own for, by name."""
    workload = workload_recorded(point)
    return {figure.name: figure for figure in workload.exported()} if workload else {}


def measures_io(point: Mapping[str, Any]) -> bool:
    """Whether other tools of storage measure such points."""
    workload = workload_recorded(point)
    return workload is not None and workload.measures_io
