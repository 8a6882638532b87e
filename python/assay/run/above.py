"""What a run uses of packages above it; its caller hands them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.base.tables import Record
from assay.record.shapes.acceptance import AcceptanceTest
from assay.record.shapes.point import Answer, Point
from assay.workloads.job import Bands

StudyFindings = Callable[
    [Mapping[str, Any], Sequence[Mapping[str, Any]], Sequence[Point], Sequence[Answer]], dict[str, Any]
]
"""What a study found, from its parts, points and answers (`assay.insight.studies.findings.study_findings`)."""

JudgesContract = Callable[[Record, Sequence[Point], Sequence[Answer]], AcceptanceTest]
"""A contract's clauses judged from manifest, points and answers (`assay.insight.contracts.acceptance.judged_test`)."""


@dataclass(kw_only=True)
class Above:
    """What a run uses of packages above it; its caller hands them in.

    Attributes
    ----------
    bands
        Error bands of models.
    study_findings
        The figures that compare the parts of a study.
    judge_contract
        The verdicts of a contract that the run tests.
    write_report
        Writes the report into a run folder.
    """

    bands: Bands | None = None
    study_findings: StudyFindings | None = None
    judge_contract: JudgesContract | None = None
    write_report: Callable[[Path], object] | None = None
