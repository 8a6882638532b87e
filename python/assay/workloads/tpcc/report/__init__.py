"""Sections of the report on transactions."""

from __future__ import annotations

from assay.document.elements import Section
from assay.results.source import RunFacts
from assay.workloads.tpcc.report.section import oltp_section, search_section
from assay.workloads.tpcc.report.storage import oltp_storage_section
from assay.workloads.tpcc.report.timeline import oltp_timeline_section


def tpcc_sections(facts: RunFacts) -> list[Section]:
    """Sections that have matter."""
    made = [oltp_section(facts), search_section(facts), oltp_timeline_section(facts), oltp_storage_section(facts)]
    return [section for section in made if section is not None]
