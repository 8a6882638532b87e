"""Sections of the report on queries."""

from __future__ import annotations

from assay.document.elements import Section
from assay.results.source import RunFacts


def tpch_sections(facts: RunFacts) -> list[Section]:
    """Sections that have matter."""
    return []
