"""The report as one HTML file that needs nothing else: no network, no scripts, fonts of the reader's own."""

from __future__ import annotations

from collections.abc import Mapping

from assay.document.elements import Document


def html_report(document: Document, drawings: Mapping[str, str]) -> str:
    """Build the page.

    Parameters
    ----------
    document : Document
        What to say; all of it is escaped.
    drawings : mapping of str to str
        SVG of each figure, by name. Only `render.render` makes them, and vl-convert escapes the text in them.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("assay.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Markup(environment.get_template("report.css").render())
    safe = {name: Markup(svg) for name, svg in drawings.items()}
    return environment.get_template("report.html").render(document=document, drawings=safe, style=style)
