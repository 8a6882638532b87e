"""The types of results, in one place: what a run folder and the JSON document hold, and what is asked of it.

What is read from a run folder is checked against them (`assay.results.shapes`), and the JSON Schemas are made from them
(`assay.results.schemas`). A kind of workload has keys of its own besides.
"""

from __future__ import annotations

from assay.results.figures import Figure
from assay.results.limits import Limit
from assay.results.shapes.document import Document
from assay.results.shapes.manifest import Manifest, Part, Target
from assay.results.shapes.point import Answer, Direction, End, JudgedLimit, Load, Point, VerdictLine
from assay.results.shapes.study import Study

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
