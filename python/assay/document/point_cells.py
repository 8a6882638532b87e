"""Cells that tables of points of every kind share; `span` is how many rows a point takes."""

from __future__ import annotations

from assay.base.tables import Record
from assay.document.elements import Cell, Tone
from assay.document.limits import limit_text
from assay.document.text import DASH, shorten
from assay.record.judgement import concerns
from assay.record.standstill import generator_words

SCOPES_MAX = 3
"""A limit that more volumes miss is named once, with their number."""


def steady_cell(point: Record, span: int = 1) -> Cell:
    """Whether the point was steady, and what was wrong with the load generator."""
    words: dict[object, tuple[str, Tone]] = {True: ("yes", "plain"), False: ("no", "warn")}
    text, tone = words.get((point.get("steady") or {}).get("reached"), (DASH, "quiet"))
    if wrong := generator_words(point):
        text, tone = f"{text}; {wrong}", "warn"
    return Cell(text, tone, rowspan=span)


def errors_cell(point: Record, span: int = 1) -> Cell:
    """How many errors there were."""
    count = (point.get("errors") or {}).get("count")
    return Cell(DASH if count is None else f"{count:,}", "bad" if count else "plain", rowspan=span)


def limits_cell(point: Record, span: int = 1) -> Cell:
    """Which limits were missed, that one is unknown and why, or that all were met."""
    limits = point.get("limits") or []
    unknown = [one for one in limits if one.get("met") is None and concerns(one)]
    scopes: dict[str, list[str]] = {}
    for limit in limits:
        if limit.get("met") is False:
            scopes.setdefault(limit_text(limit.get("limit")), []).append(shorten(str(limit.get("scope") or ""), 30))
    missed = [
        f"{limit} on {len(where)} volumes" if len(where) > SCOPES_MAX else f"{scope} {limit}".strip()
        for limit, where in scopes.items()
        for scope in (where[:1] if len(where) > SCOPES_MAX else where)
    ]
    met = sum(limit.get("met") is True for limit in limits)
    if missed:
        return Cell("missed: " + "; ".join(missed), "bad", rowspan=span)
    if unknown:
        limit, why = limit_text(unknown[0]["limit"]), unknown[0].get("why")
        return Cell(f"unknown: {limit}" + (f", {why}" if why else ""), "warn", rowspan=span)
    return Cell("met", "good", rowspan=span) if met else Cell(DASH, "quiet", rowspan=span)
