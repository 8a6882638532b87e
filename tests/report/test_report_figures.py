"""Figures: plain rows in, a chart out, or nothing when there is nothing to show."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import altair as alt
import pytest
from sample import small

from assay.document import series_charts as figures_series
from assay.document.charts import nines
from assay.document.elements import Document, FigureElement
from assay.document.palette import COLOURS, MAX_SERIES, SHAPES, theme
from assay.report.render import render
from assay.workloads.io.report import charts as figures
from assay.workloads.io.report import part_charts as figures_parts

EMPTY = {
    "iops_bars": lambda: figures.iops_bars([]),
    "latency_curves": lambda: figures.latency_curves([], [], "mean"),
    "percentile_curves": lambda: figures.percentile_curves([]),
    "throughput_lines": lambda: figures_parts.throughput_lines([]),
    "log_write_lines": lambda: figures_parts.log_write_lines([]),
    "role_latencies": lambda: figures_parts.role_latencies([]),
    "foreground_reads": lambda: figures_parts.foreground_reads([]),
    "cache_span": lambda: figures_parts.cache_span([], None),
    "timeline": lambda: figures_series.timeline([], [], end_s=1.0),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_to_show_is_no_figure(name: str) -> None:
    assert EMPTY[name]() is None


def named(document: Document) -> dict[str, FigureElement]:
    return {figure.name: figure for figure in document.figures}


def encodings(specification: Any, channel: str) -> list[dict[str, Any]]:
    """Every encoding of one channel, at any depth."""
    found: list[dict[str, Any]] = []
    if isinstance(specification, dict):
        if channel in specification.get("encoding", {}):
            found.append(specification["encoding"][channel])
        for value in specification.values():
            found += encodings(value, channel)
    elif isinstance(specification, list):
        for value in specification:
            found += encodings(value, channel)
    return found


def test_the_whole_examination_has_every_figure(document: Document) -> None:
    mix = small().points[-1]["id"]
    assert list(named(document)) == [
        "limits", "iops-1", "curve-1-mean", "curve-2-mean", "percentiles-1", "percentiles-2", "scans-1", "log-1",
        f"activities-{mix}", f"bursts-{mix}", "cache-span", "diagnosis-time", "timeline",
    ]  # fmt: skip


def test_no_figure_has_more_than_six_series_and_every_axis_says_its_unit(document: Document) -> None:
    for figure in document.figures:
        specification = theme(figure.chart)
        for colour in encodings(specification, "color"):
            assert len(colour.get("scale", {}).get("domain", [])) <= MAX_SERIES, figure.name
        for axis in encodings(specification, "y"):
            quantity = axis.get("type") == "quantitative" and axis.get("title")
            if quantity:
                assert any(unit in axis["title"] for unit in ("(", "per second")), (figure.name, axis["title"])


def test_every_figure_has_a_text_alternative_with_values(document: Document, drawings: dict[str, str]) -> None:
    for figure in document.figures:
        drawing = ElementTree.fromstring(drawings[figure.name])
        assert drawing.get("role") == "img"
        assert drawing.get("aria-label") == figure.alternative
        assert any(letter.isdigit() for letter in figure.alternative), figure.name


def test_ids_of_two_drawings_never_meet(drawings: dict[str, str]) -> None:
    drawn = [ElementTree.fromstring(drawing) for drawing in list(drawings.values())[:3]]
    ids = [{node.get("id") for node in drawing.iter() if node.get("id")} for drawing in drawn]
    assert not ids[0] & ids[1]
    assert not ids[1] & ids[2]


def test_colours_and_shapes_are_distinct_and_have_no_black_or_yellow() -> None:
    assert len(set(COLOURS)) == len(set(SHAPES)) == MAX_SERIES
    assert not {"#000000", "#F0E442"} & set(COLOURS)


def test_more_mixes_than_colours_are_refused() -> None:
    rows = [{"block": "8 KiB", "mix": str(mix), "iops": 1.0, "low": None, "high": None} for mix in range(7)]
    with pytest.raises(ValueError, match="at most 6"):
        figures.iops_bars(rows)


@pytest.mark.parametrize(("percentile", "place"), [(50.0, 0.30103), (90.0, 1.0), (99.0, 2.0), (99.99, 4.0)])
def test_the_axis_of_nines_counts_nines(percentile: float, place: float) -> None:
    assert nines(percentile) == pytest.approx(place, abs=1e-5)


def test_a_figure_of_one_value_draws() -> None:
    one = figures.iops_bars([{"block": "8 KiB", "mix": "70/30", "iops": 10.0, "low": None, "high": None}])
    assert isinstance(one, alt.TopLevelMixin)
    figure = FigureElement("one", "One.", "One bar: 10.", one)
    assert ElementTree.fromstring(render(figure)).tag.endswith("svg")
