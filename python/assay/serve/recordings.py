"""A flight recorder's file as the page asks for it: what there is, and lines between two times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.results.flight import Layout
from assay.results.flight_window import catalogue, span, told, window
from assay.results.rolled import Series
from assay.serve.lines import grouped, parse_asked


def catalogue_of(path: Path) -> dict[str, Any]:
    """What a recording holds.

    Raises
    ------
    RunFolderError
        It cannot be read.
    """
    from_ns, to_ns = span(path)
    return {"from_s": from_ns / 1e9, "to_s": to_ns / 1e9, "clock": "wall", "groups": told(catalogue(path))}


def lines_of(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a recording over time; see `assay.serve.lines`.

    Raises
    ------
    UsageError
        What is asked for has another form.
    RunFolderError
        It cannot be read.
    """
    asked = parse_asked(data)

    def wanted(layout: Layout, one: Series) -> bool:
        return any(query.takes(layout.host, layout.source, one.metric, one.entity) for query in asked.queries)

    times, lines = window(path, asked.from_ns, asked.to_ns, asked.steps, wanted)
    panels = []
    for query in asked.queries:
        own = [
            (line.series.entity, line.series.kind, line.values)
            for line in lines
            if query.takes(line.layout.host, line.layout.source, line.series.metric, line.series.entity)
        ]
        panels.append({"lines": grouped(query, own)})
    return {"t": [round(t_ns / 1e9, 3) for t_ns in times], "panels": panels}
