"""The types of results, in one place: what a run folder and the JSON document hold, and what is asked of it.

What is read from a run folder is checked against them (`assay.record.shapes`), and the JSON Schemas are made from them
(`assay.record.schemas`). A kind of workload has keys of its own besides.
"""

from __future__ import annotations

from assay.record.figures import Figure
from assay.record.limits import Limit
from assay.record.shapes.document import Document
from assay.record.shapes.manifest import Manifest, Part, Target
from assay.record.shapes.point import Answer, Direction, End, JudgedLimit, Load, Point, VerdictLine
from assay.record.shapes.study import Study

__all__ = [
    "Answer",
    "Direction",
    "Document",
    "End",
    "Figure",
    "JudgedLimit",
    "Limit",
    "Load",
    "Manifest",
    "Part",
    "Point",
    "Study",
    "Target",
    "VerdictLine",
]
