"""A flight recorder's file as the page asks for it: what there is, and lines between two times."""

from __future__ import annotations

from pathlib import Path

from assay.apps.ui.lines import FigurePanel, FiguresOverTime, FiguresQuestion, SeriesCatalogue, grouped
from assay.record.flight import SampleLayout
from assay.record.flight_window import catalogue, span, told, window
from assay.record.rolled import SeriesKey


def catalogue_of(path: Path) -> SeriesCatalogue:
    """What a recording holds.

    Raises
    ------
    RunFolderError
        It cannot be read.
    """
    from_ns, to_ns = span(path)
    return {"from_s": from_ns / 1e9, "to_s": to_ns / 1e9, "clock": "wall", "groups": told(catalogue(path))}


def lines_of(path: Path, question: FiguresQuestion) -> FiguresOverTime:
    """Figures of a recording over time; see `assay.apps.ui.lines`.

    Raises
    ------
    UsageError
        A query names what was not recorded.
    RunFolderError
        It cannot be read.
    """
    question.refuse_unknown({(one.host, one.source, series.metric) for one in catalogue(path) for series in one.series})

    def wanted(layout: SampleLayout, one: SeriesKey) -> bool:
        return any(query.takes(layout.host, layout.source, one.metric, one.entity) for query in question.queries)

    times, lines = window(path, question.from_ns, question.to_ns, question.steps, wanted)
    panels: list[FigurePanel] = []
    for query in question.queries:
        own = [
            (line.series.entity, line.series.kind, line.values)
            for line in lines
            if query.takes(line.layout.host, line.layout.source, line.series.metric, line.series.entity)
        ]
        panels.append({"lines": grouped(query, own)})
    return {"t": [round(t_ns / 1e9, 3) for t_ns in times], "panels": panels}
