"""Points and answers of I/O."""

from __future__ import annotations

from typing import cast

from assay.record.shapes.point import Answer
from assay.record.source import RunFacts
from assay.workloads.io.shapes import MeasuredIo

KIND = "io"


def io_points(facts: RunFacts) -> list[MeasuredIo]:
    """Points whose load was I/O."""
    return cast("list[MeasuredIo]", facts.points_of(KIND))


def points_of_part(facts: RunFacts, part: str) -> list[MeasuredIo]:
    """Points of one part, in the order they ended."""
    return [point for point in io_points(facts) if point.get("part") == part]


def io_answers(facts: RunFacts) -> list[Answer]:
    """Answers of the searches."""
    return facts.answers_of(KIND, "iops")
