"""What queries say in the sections that all kinds share."""

from __future__ import annotations

from assay.document.remarks import Remarks
from assay.results.source import RunFacts


def tpch_remarks(facts: RunFacts) -> Remarks:
    """Build the remarks."""
    return Remarks()
