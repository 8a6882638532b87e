"""The page of a diagnosis: the answer, the matrix, the causes, and their evidence on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.document.elements import Block, Bullets, Document, Notice, Notices, Paragraph, Section
from assay.document.first_use import explained
from assay.document.text import joined, shorten
from assay.insight.diagnosis.diagnose import Diagnosis, DiagnosisRecord
from assay.report.files import replace_file
from assay.report.html import html_report
from assay.report.render import render_figures
from assay.report.sections.diagnosis import diagnosis_blocks, evidence_figure
from assay.telemetry.importers.importer import UNNAMED

TITLE_LETTERS = 60


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
    first, *others = found.answer
    blocks: list[Block] = [Paragraph(first, strong=True), *map(Paragraph, others)]
    figure = evidence_figure(found)
    if figure is not None:
        blocks.append(figure)
    told: list[Block] = [Bullets(list(record["assumed"]))]
    if record["notices"]:
        told.append(Notices([Notice(text) for text in record["notices"]]))
    sections = [
        Section(name="summary", title="The answer", blocks=blocks),
        # The evidence in the answer is the figure of the causes.
        Section("diagnosis", "Where it hurts", diagnosis_blocks(found, None)),
        Section(name="assumed", title="What was assumed", blocks=told),
    ]
    hosts = [host for host in found.observed.hosts if host != UNNAMED]
    title = f"Diagnosis of {shorten(joined(hosts) or joined(inputs), TITLE_LETTERS)}"
    return Document(title=title, facts_line=" · ".join(inputs), sections=explained(sections), footer="Assay")
