"""The one place where charts become SVG: through vl-convert, without a browser and without the network."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TypedDict
from xml.sax.saxutils import quoteattr

from assay.base.extras import CHARTS, are_installed
from assay.document.elements import Document, FigureElement, Specification
from assay.report.labels import with_placed_labels

_PAIR = re.compile(r"(\\+)ud[89ab][0-9a-f]{2}\1ud[c-f][0-9a-f]{2}")


def render_figures(document: Document) -> dict[str, str]:
    """SVG of each figure of a document, by the figure's name; none where the extra `charts` is not installed."""
    if not are_installed(*CHARTS):
        return {}
    return {figure.name: render(figure) for figure in document.figures}


def render(figure: FigureElement) -> str:
    """SVG of one figure, with its text alternative, and ids no other figure of the page has."""
    import vl_convert

    from assay.document.palette import theme

    svg: str = vl_convert.vegalite_to_svg(_measurable(theme(figure.chart)), **_offline(), vl_version=_newest())
    svg = _own_ids(with_placed_labels(svg), figure.name)
    label = f'<svg role="img" aria-label={quoteattr(figure.alternative)} '
    return svg.replace("<svg ", label, 1)


def _measurable(specification: Specification) -> Specification:
    """A drawing without letters of two UTF-16 units: Vega cuts long labels between the two, and cannot measure a half.

    Expressions within it carry texts as JSON does, so that a pair stands behind one backslash or several.
    """
    measurable: Specification = json.loads(_PAIR.sub(r"\1ufffd", json.dumps(specification)))
    return measurable


class LoadingRules(TypedDict):
    """Addresses that drawing may load from."""

    allowed_base_urls: list[str]


def _offline() -> LoadingRules:
    # No chart refers to an address; an empty list makes vl-convert refuse one that would.
    return {"allowed_base_urls": []}


@cache
def _newest() -> str | None:
    """Newest Vega-Lite vl-convert carries that is not newer than the one altair writes for, or its default."""
    import altair
    import vl_convert

    wanted = altair.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]
    carried = [str(version) for version in vl_convert.get_vegalite_versions()]
    return wanted if wanted in carried else None


def _own_ids(svg: str, name: str) -> str:
    """SVG whose ids carry the figure's name: several drawings share one page, and Vega counts from one in each."""
    svg = re.sub(r'\bid="([^"]+)"', lambda match: f'id="{name}-{match[1]}"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", lambda match: f"url(#{name}-{match[1]})", svg)
    svg = re.sub(r'href="#([^"]+)"', lambda match: f'href="#{name}-{match[1]}"', svg)
    # Vega completes what a mark leads to with an address of its own.
    return re.sub(r'xlink:href="[^"#]+#(point-[\w.-]+)"', r'href="#\1"', svg)


def without_links(svg: str) -> str:
    """SVG for a place where nothing can be led to: a file of its own, or paper."""
    return re.sub(r"</?a\b[^>]*>", "", svg)
