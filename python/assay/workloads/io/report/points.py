"""Points and answers of I/O."""

from __future__ import annotations

from assay.record.source import Record, RunFacts

KIND = "io"


def io_points(facts: RunFacts) -> list[Record]:
    """Points whose load was I/O."""
    return [*facts.points_of(KIND)]


def points_of_part(facts: RunFacts, part: str) -> list[Record]:
    """Points of one part, in the order they ended."""
    return [point for point in io_points(facts) if point.get("part") == part]


def io_answers(facts: RunFacts) -> list[Record]:
    """Answers of the searches."""
    return [*facts.answers_of(KIND, "iops")]
