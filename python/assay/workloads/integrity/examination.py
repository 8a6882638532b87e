"""What the examination asks of integrity: a short run on the files that the other parts use, too."""

from __future__ import annotations

from assay.workloads.examination import Examination
from assay.workloads.integrity.plan import (
    IntegrityPlan,
    IntegrityTiming,
)
from assay.workloads.plan import ExaminationPart, Part
from assay.workloads.registry import workload_named

NAME = "integrity"
MAX_BYTES, REDUCED_BYTES = 2 << 30, 256 << 20
"""Bytes of each volume that the part writes and reads at most, of a full and of a reduced examination."""
STRESS_SHARE = 0.7
"""Share of the part's time for stress; the rest is for preparing and the audit."""


def _part(asked: Examination) -> Part[IntegrityPlan]:
    """A short run of all users but the one that changes sizes: the files are the other parts' too."""
    timing = {"stress_s": max(asked.planned_s * STRESS_SHARE, 1.0)}
    if asked.timeout_s is not None:
        timing |= {"io_timeout_s": asked.timeout_s, "long_io_s": min(IntegrityTiming().long_io_s, asked.timeout_s)}
    data = workload_named("integrity").preset("default").model_dump(mode="json", exclude_unset=True) | asked.given
    data |= {"most_bytes": MAX_BYTES if asked.is_full else REDUCED_BYTES, "shrinkable": False}
    data |= {"timing": timing, "no_buffering": asked.is_direct}
    plan = workload_named("integrity").load_plan(data, source=f"part {NAME}")
    return Part(name=NAME, title=plan.title, plan=plan, planned_s=asked.planned_s)


PARTS = (ExaminationPart(name=NAME, share=0.08, part=_part),)
