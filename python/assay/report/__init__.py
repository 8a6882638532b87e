"""The report of a run: HTML for the browser, PDF for paper, from one document.

run folder -> source (facts, cleaned) -> sections (document) -> figures (charts) -> render (SVG) -> html, pdf
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path


def write_report(run_path: Path, *, html: bool = True, pdf: bool | None = None) -> list[Path]:
    """Write `report.html` and `report.pdf` into a run folder.

    Parameters
    ----------
    run_path : Path
        A run folder as docs/results.md describes; it may be interrupted or still running.
    html, pdf : bool
        Which of the two to write; the PDF by default where the extra `pdf` is installed.

    Returns
    -------
    list of Path
        The files written, HTML first.

    Raises
    ------
    RunFolderError
        The folder is not a run, or its manifest cannot be read.
    OpenFailed, OutOfSpace
        The report could not be written.
    """
    from assay.report.write import write_report as write

    return write(run_path, html=html, pdf=pdf)


def first_page(run_path: Path) -> str:
    """The first page of a run's report without its figures, as a piece of HTML for a notebook."""
    from assay.report.assemble import assemble
    from assay.report.facts import load_facts
    from assay.report.html import html_piece

    document = assemble(load_facts(run_path))
    return html_piece(replace(document, sections=document.sections[:1]))


__all__ = ["first_page", "write_report"]
