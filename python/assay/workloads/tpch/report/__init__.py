"""Sections of the report on queries."""

from __future__ import annotations

from assay.document.elements import Section
from assay.record.source import RunFacts
from assay.workloads.tpch.report.section import tpch_section
from assay.workloads.tpch.report.timeline import tpch_timeline_section


def tpch_sections(facts: RunFacts) -> list[Section]:
    """Sections that have matter."""
    made = [tpch_section(facts), tpch_timeline_section(facts)]
    return [section for section in made if section is not None]
