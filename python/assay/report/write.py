"""Writing the report: facts to document to files."""

from __future__ import annotations

import os
from pathlib import Path

from assay.errors import OpenFailed, OutOfSpace


def write_report(run_path: Path, *, html: bool = True, pdf: bool = True) -> list[Path]:
    """Write `report.html` and `report.pdf` into a run folder; see `assay.report.write_report`."""
    from assay.report.assemble import assemble
    from assay.report.html import html_report
    from assay.report.pdf import pdf_report
    from assay.report.render import render_figures
    from assay.report.source import load_facts

    if not (html or pdf):
        return []
    document = assemble(load_facts(run_path))
    drawings = render_figures(document)
    written = []
    if html:
        written.append(replace_file(run_path / "report.html", html_report(document, drawings).encode()))
    if pdf:
        written.append(replace_file(run_path / "report.pdf", pdf_report(document, drawings)))
    return written


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all: a reader may have the last report open."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        kind = OutOfSpace if error.errno in (28, 122) else OpenFailed  # ENOSPC, EDQUOT
        raise kind(f"{path}: the report could not be written: {error.strerror}; free or name another place") from error
    return path
