"""The report as one HTML file that needs nothing else: no network, no scripts, fonts of the reader's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.base.extras import CHARTS, missing
from assay.document.elements import Document
from assay.document.references import numbers_of, plain_text, spans_of
from assay.document.text import BREAK, breakable

if TYPE_CHECKING:
    from jinja2 import Environment

CONTENTS_LEAST = 5
"""Sections from which on the contents stand beside the text, and stay there."""


def html_report(document: Document, drawings: Mapping[str, str], *, style: str | None = None) -> str:
    """Build the page.

    Parameters
    ----------
    document : Document
        What to say; all of it is escaped.
    drawings : mapping of str to str
        SVG of each figure, by name; a figure without one shows its text. Only `render.render` makes
        them, and vl-convert escapes the text in them.
    style : str, optional
        Rules of CSS that follow those of all reports.
    """
    from markupsafe import Markup

    environment = _environment()
    # No text of a style may end its element.
    rules = [environment.get_template("report.css").render(), (style or "").replace("</", "<\\/")]
    safe = {name: Markup(svg) for name, svg in drawings.items()}
    return environment.get_template("report.html").render(
        document=document,
        drawings=safe,
        without_drawings=missing("figures", *CHARTS) if document.figures and not drawings else None,
        style=Markup("\n".join(rule for rule in rules if rule)),
        contents_least=CONTENTS_LEAST,
        **_words(document),
    )


def html_piece(document: Document) -> str:
    """The blocks of a document but for its figures, for a page that has a style of its own, such as a notebook."""
    return _environment().get_template("piece.html").render(document=document, drawings={}, **_words(document))


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("assay.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breaking"] = lambda text: Markup("<wbr>").join(breakable(text).split(BREAK))
    return environment


def _words(document: Document) -> dict[str, object]:
    """What the templates ask of references."""
    numbers = numbers_of(document)
    return {
        "numbers": numbers,
        "spans": lambda text: spans_of(text, numbers),
        "plainly": lambda text: plain_text(text, numbers),
    }
