"""Writing the report: facts to document to files."""

from __future__ import annotations

from pathlib import Path

from assay.base.extras import PDF, are_installed
from assay.document.elements import Document
from assay.report.files import replace_file


def write_report(run_path: Path, *, html: bool = True, pdf: bool | None = None) -> list[Path]:
    """Write `report.html` and `report.pdf` into a run folder; see `assay.report.write_report`."""
    from assay.report.assemble import assemble
    from assay.report.facts import load_facts

    pdf = are_installed(*PDF) if pdf is None else pdf
    return write_document(run_path, assemble(load_facts(run_path)), html=html, pdf=pdf) if html or pdf else []


def write_document(run_path: Path, document: Document, *, html: bool = True, pdf: bool = True) -> list[Path]:
    """Write `report.html` and `report.pdf` of a document into a run folder.

    Raises
    ------
    OpenFailed, OutOfSpace
        A file cannot be written.
    """
    from assay.report.html import html_report
    from assay.report.pdf import pdf_report
    from assay.report.render import render_figures

    drawings = render_figures(document)
    written = []
    if html:
        written.append(replace_file(run_path / "report.html", html_report(document, drawings).encode()))
    if pdf:
        written.append(replace_file(run_path / "report.pdf", pdf_report(document, drawings)))
    return written
