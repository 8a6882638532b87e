"""Sections of the report on I/O."""

from __future__ import annotations

from assay.document.elements import Section
from assay.record.source import RunFacts
from assay.workloads.io.report.curves import curves_section, percentiles_section
from assay.workloads.io.report.iops import iops_section
from assay.workloads.io.report.parts import parts_section
from assay.workloads.io.report.precondition import state_section


def io_sections(facts: RunFacts) -> list[Section]:
    """Sections that have matter."""
    # A study has figures of its own; bars by block and mix would hold a level each without saying which.
    is_study = facts.told("study") is not None
    made = [
        state_section(facts),
        None if is_study else iops_section(facts),
        curves_section(facts),
        percentiles_section(facts),
        parts_section(facts),
    ]
    return [section for section in made if section is not None]
