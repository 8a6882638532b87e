"""Sections of the report on transactions."""

from __future__ import annotations

from assay.document.elements import Section
from assay.record.source import RunFacts
from assay.workloads.transactions.application import Application
from assay.workloads.transactions.report.section import oltp_section, search_section
from assay.workloads.transactions.report.storage import oltp_storage_section
from assay.workloads.transactions.report.timeline import oltp_timeline_section

SECTIONS = (oltp_section, search_section, oltp_timeline_section, oltp_storage_section)


def transaction_sections(facts: RunFacts, application: Application) -> list[Section]:
    """Sections that have matter."""
    made = [section(facts, application) for section in SECTIONS]
    return [section for section in made if section is not None]
