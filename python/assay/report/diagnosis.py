"""The page of a diagnosis: the answer, the matrix, the causes, and their evidence on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.document.elements import Block, Bullets, Document, Notice, Notices, Paragraph, Section
from assay.insight.diagnosis.diagnose import Diagnosis, DiagnosisRecord
from assay.report.files import replace_file
from assay.report.html import html_report
from assay.report.render import render_figures
from assay.report.sections.diagnosis import diagnosis_section, evidence_figure


def write_diagnosis(found: Diagnosis, record: DiagnosisRecord, inputs: Sequence[str], path: Path) -> None:
    """Write a self-contained page.

    Raises
    ------
    OpenFailed, OutOfSpace
        The page cannot be written.
    """
    document = diagnosis_document(found, record, inputs)
    replace_file(path, html_report(document, render_figures(document)).encode())


def diagnosis_document(found: Diagnosis, record: DiagnosisRecord, inputs: Sequence[str]) -> Document:
    """The document of a diagnosis."""
    verdict = record["verdict"]
    head = f"{verdict['state'].capitalize()}: {found.title}: " if found.causes else f"{verdict['state'].capitalize()}: "
    blocks: list[Block] = [
        Paragraph(head + verdict["what"], strong=True),
        Paragraph(f"When: {verdict['since']}"),
        Paragraph(f"Do: {verdict['do']}"),
    ]
    figure = evidence_figure(found)
    if figure is not None:
        blocks.append(figure)
    told: list[Block] = [Bullets([f"assumed: {text}" for text in record["assumed"]])]
    if record["notices"]:
        told.append(Notices([Notice(text) for text in record["notices"]]))
    sections = [
        Section(name="summary", title="The answer", blocks=blocks),
        diagnosis_section(found),
        Section(name="assumed", title="What was assumed", blocks=told),
    ]
    return Document(title="Where it hurts", facts_line=" · ".join(inputs), sections=sections, footer="Assay")
