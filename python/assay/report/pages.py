"""A document written as a page where the user names it: HTML, PDF or Markdown by its suffix."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from assay.base.errors import UsageError
from assay.base.extras import PDF, require
from assay.base.paths import printable
from assay.document.elements import Document
from assay.report.files import refuse_foreign, replace_file

SUFFIXES = (".html", ".pdf", ".md")


def check_pages(paths: Iterable[Path]) -> None:
    """Refuse paths that are no pages, before work begins.

    Raises
    ------
    UsageError
        A path has no suffix of a page, or a file is there that Assay did not write.
    NotSupported
        A PDF is asked for, and packages are missing.
    """
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"--output: {printable(path)} has no suffix of a page; accepted: {', '.join(SUFFIXES)}")
        if path.suffix.lower() != ".md":
            refuse_foreign(path, what=f"--output {printable(path)}")
        if path.suffix.lower() == ".pdf":
            require(f"--output {printable(path)}", *PDF)


def write_page(path: Path, document: Document) -> None:
    """Write a document; figures of Markdown become files beside it.

    Raises
    ------
    OpenFailed, OutOfSpace
        It cannot be written.
    """
    from assay.report.html import html_report
    from assay.report.markdown import markdown_report
    from assay.report.pdf import pdf_report
    from assay.report.render import render_figures

    drawings = render_figures(document)
    suffix = path.suffix.lower()
    if suffix == ".html":
        replace_file(path, html_report(document, drawings).encode())
    elif suffix == ".pdf":
        replace_file(path, pdf_report(document, drawings))
    else:
        folder = path.with_suffix(".figures")
        if drawings:
            folder.mkdir(exist_ok=True)
        for name, drawing in drawings.items():
            replace_file(folder / f"{name}.svg", drawing.encode())
        replace_file(path, markdown_report(document, folder.name).encode())
