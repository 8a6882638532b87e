"""Cells that tables of points of every kind share; `span` is how many rows a point takes."""

from __future__ import annotations

from collections.abc import Sequence

from assay.base.tables import Record
from assay.document.elements import Cell, Tone
from assay.document.limits import limit_text
from assay.document.text import DASH, shorten
from assay.record.judgement import concerns
from assay.record.standstill import generator_words
from assay.record.steady import judged_steady

SCOPES_MAX = 3
"""A limit that more volumes miss is named once, with their number."""


def steady_cell(point: Record, span: int = 1) -> Cell:
    """Whether the point was steady and why not, and what was wrong with the load generator."""
    reached, why = judged_steady(point)
    words: dict[bool | None, tuple[str, Tone]] = {True: ("yes", "plain"), False: (f"no: {why}", "warn")}
    text, tone = words.get(reached, (f"not judged: {why}" if why else DASH, "quiet"))
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
    names = dict.fromkeys(str(one.get("limit")) for one in limits if one.get("met") is False)
    missed = [text for limit in names for text in _missed_words(limits, limit)]
    met = sum(limit.get("met") is True for limit in limits)
    if missed:
        return Cell("missed: " + "; ".join(missed), "bad", rowspan=span)
    if unknown:
        limit, why = limit_text(unknown[0]["limit"]), unknown[0].get("why")
        return Cell(f"unknown: {limit}" + (f", {why}" if why else ""), "warn", rowspan=span)
    return Cell("met", "good", rowspan=span) if met else Cell(DASH, "quiet", rowspan=span)


def _missed_words(limits: Sequence[Record], limit: str) -> list[str]:
    """Where a limit is missed: each scope while they are few, else the number of volumes; a role's sum is no volume."""
    own = [one for one in limits if str(one.get("limit")) == limit]
    where = [str(one.get("scope") or "") for one in own if one.get("met") is False]
    missed, judged = sum("/" in scope for scope in where), sum("/" in str(one.get("scope")) for one in own)
    if missed <= SCOPES_MAX:
        return [f"{shorten(scope, 30)} {limit_text(limit)}".strip() for scope in where]
    return [f"{limit_text(limit)} on {f'all {judged}' if missed == judged else f'{missed} of {judged}'} volumes"]
