"""The layout of every figure of the sample reports, by its geometry: what a reader could not read on paper."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import altair as alt
import pytest
from sample import Sample, io
from sample_study import study_run

from assay.document.charts import SearchRow, search_curve
from assay.document.elements import Document, FigureElement
from assay.document.palette import COUNT, log_scale
from assay.document.series import PanelRow
from assay.document.series_charts import timeline
from assay.report.assemble import assemble
from assay.report.drawing import Drawing, DrawnText, Pixel, read_drawing
from assay.report.facts import load_facts
from assay.report.render import render, render_figures
from assay.workloads.io.report.charts import CurveRow, latency_curves
from assay.workloads.io.report.curves import curve_rows

SLACK_PX = 1.0
"""The metrics of a font are not those of every reader's: letters that touch by less are apart."""


def faults_of(svg: str) -> Iterator[str]:
    """What is wrong with a drawing."""
    drawing = read_drawing(svg)
    yield from _overlaps(drawing)
    yield from (f"beyond the drawing: {text.text!r}" for text in drawing.texts if _is_outside(text, drawing))
    yield from _axes(drawing.texts)
    if len(drawing.symbols) + len(drawing.shapes) + len(drawing.lines) == 0:
        yield "an empty figure"
    if not drawing.shapes and not drawing.lines and len(drawing.symbols) < 4:
        yield "dots that a sentence could say"


def _overlaps(drawing: Drawing) -> Iterator[str]:
    for number, one in enumerate(drawing.texts):
        for other in drawing.texts[:number]:
            if one.extent.meets(other.extent, SLACK_PX) and not _are_apart(one, other):
                yield f"{other.text!r} and {one.text!r} overlap"
        if one.role == "mark":
            for symbol in drawing.symbols:
                if one.extent.meets(symbol, 2 * SLACK_PX):
                    yield f"{one.text!r} lies on a point"
                    break


def _are_apart(one: DrawnText, other: DrawnText) -> bool:
    """Whether a line along a side of either, as of a slanted text, has the two on its sides."""
    for mine, its in ((one.corners, other.corners), (other.corners, one.corners)):
        for side in (Pixel(*(b - a for a, b in zip(mine[0], mine[end], strict=True))) for end in (1, 2)):
            length = math.hypot(*side)
            first, second = ([(at.x * side.x + at.y * side.y) / length for at in corners] for corners in (mine, its))
            if min(max(first), max(second)) - max(min(first), min(second)) <= SLACK_PX:
                return True
    return False


def _is_outside(text: DrawnText, drawing: Drawing) -> bool:
    extent = text.extent
    return (
        extent.left < -SLACK_PX
        or extent.top < -SLACK_PX
        or extent.right > drawing.width + SLACK_PX
        or extent.bottom > drawing.height + SLACK_PX
    )


def _axes(texts: list[DrawnText]) -> Iterator[str]:
    by_axis: dict[int, list[str]] = {}
    for text in texts:
        if text.role == "axis-label":
            by_axis.setdefault(text.group, []).append(text.text)
    titles = {text.group - 1: text.text for text in texts if text.role == "axis-title"}
    for group, shown in by_axis.items():
        twice = [label for label, count in Counter(shown).items() if count > 1]
        if twice:
            yield f"an axis has {twice[0]!r} more than once: {shown}"
        title = next((titles[at] for at in range(group, group + 3) if at in titles), "")
        if re.search(r"\blog\b", title) and len(shown) < 3:
            yield f"the axis {title!r} has the labels {shown} only"


STUDIES = ("queue-depth", "oltp-layout", "dss-profile-vs-database")


def assert_readable(drawings: Mapping[str, str]) -> None:
    assert drawings
    found = {name: list(faults_of(svg)) for name, svg in drawings.items()}
    assert not {name: faults for name, faults in found.items() if faults}


def study_drawings(folder: Path, name: str) -> dict[str, str]:
    return render_figures(assemble(load_facts(study_run(folder, name, bands=True))))


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_every_figure_of_an_examination_can_be_read(drawings: dict[str, str]) -> None:
    assert_readable(drawings)


def test_every_figure_of_a_search_and_a_study_can_be_read(searched: Document, tmp_path: Path) -> None:
    assert_readable(render_figures(searched))
    assert_readable(study_drawings(tmp_path, "block-and-mix"))


@pytest.mark.slow(reason="the test above reads the same kinds of figures")
@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_of_other_studies_can_be_read(tmp_path: Path, name: str) -> None:
    assert_readable(study_drawings(tmp_path, name))


@pytest.mark.slow(reason="the test of a search reads the same kinds of figures")
def test_every_figure_of_transactions_can_be_read(one: Document) -> None:
    assert_readable(render_figures(one))


@pytest.fixture
def crowded() -> FigureElement:
    """Curves that meet near their answers, as those of four mixes do."""
    rows: list[CurveRow] = [
        {"series": f"mix {series}", "direction": "read", "iops": 1000 * load + 90 * series, "latency_ns": 1e6 * load,
         "load": load, "low_ns": 1e6 * load, "high_ns": 1e6 * load, "mark": "most, knee, edge" if load >= 4 else "",
         "point_id": None}
        for series in range(2)
        for load in (1, 2, 3, 4, 4.3)
    ]  # fmt: skip
    chart = latency_curves(rows, [{"direction": "read", "latency_ns": 4.2e6, "limit": "limit 4.2 ms"}], "mean")
    assert chart is not None
    return FigureElement("crowded", "Curves.", "Curves.", chart)


def test_labels_of_points_find_places_of_their_own(crowded: FigureElement, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(faults_of(render(crowded))) == []
    monkeypatch.setattr("assay.report.render.with_placed_labels", lambda svg: svg)
    found = list(faults_of(render(crowded)))
    assert any("lies on a point" in fault for fault in found)
    assert any("overlap" in fault for fault in found)


def test_a_label_that_moves_far_has_a_line_to_its_point(crowded: FigureElement) -> None:
    assert "x1=" in render(crowded)


def drawn(chart: alt.TopLevelMixin) -> list[str]:
    return list(faults_of(render(FigureElement("one", "One.", "One.", chart))))


def bars(values: list[float], **axis: object) -> alt.Chart:
    rows = [{"name": f"level {number}", "value": value} for number, value in enumerate(values)]
    y = alt.Y("value:Q", axis=alt.Axis(**axis), title="I/Os per second")
    made: alt.Chart = alt.Chart(alt.InlineData(values=rows)).mark_bar().encode(x=alt.X("name:N", title=None), y=y)
    return made.properties(width=300, height=150)


def test_axes_of_small_counts_have_no_label_twice() -> None:
    assert any("more than once" in fault for fault in drawn(bars([0.4, 1.2], format=",d", tickCount=6)))
    assert drawn(bars([0.4, 1.2], format=COUNT, tickCount=6)) == []


@pytest.mark.parametrize("values", [(17.0, 21.0), (0.3, 40.0), (95.0, 101.0), (1.0, 1e6), (0.00012, 0.0004)])
@pytest.mark.parametrize("most", [5, 9])
def test_logarithmic_axes_have_three_labels_at_least(values: tuple[float, float], most: int) -> None:
    scale, ticks = log_scale(values, most)
    low, high = scale.to_dict()["domain"]
    assert 3 <= len(ticks) <= most
    assert all(low <= tick <= high for tick in ticks)
    assert len(set(ticks)) == len(ticks)


def panel(count: int, step_s: float = 1.0, log: bool = False) -> list[PanelRow]:
    return [{"panel": "latency (ms, log)" if log else "IOPS", "series": "read", "t_s": number * step_s,
             "value": 0.4 + number % 3, "log": log} for number in range(count)]  # fmt: skip


def test_a_course_over_time_needs_values() -> None:
    """A point of a tenth of a second that was recorded once a second has no course."""
    assert timeline(panel(1), [], end_s=0.1) is None
    assert timeline(panel(3), [], end_s=3) is None
    shown = timeline([*panel(8), *panel(8, log=True)], [], end_s=8)
    assert shown is not None
    assert drawn(shown) == []


@pytest.mark.parametrize("at", [0, 25, 38])
def test_a_short_burst_does_not_flatten_what_comes_after_it(at: int) -> None:
    rows = panel(40)
    rows[at]["value"] = 500.0
    shown = timeline(rows, [], end_s=40)
    assert shown is not None
    assert drawn(shown) == []
    (told,) = [layer for layer in shown.to_dict()["vconcat"][0]["layer"] if layer["mark"]["type"] == "text"]
    values = shown.to_dict()["datasets"][told["data"]["name"]]
    assert values == [{"t": float(at), "label": "up to 500"}]
    # Four such steps are no burst.
    for step in range(20, 24):
        rows[step]["value"] = 500.0
    shown = timeline(rows, [], end_s=40)
    assert shown is not None
    assert all(layer["mark"]["type"] == "line" for layer in shown.to_dict()["vconcat"][0]["layer"])


def rows_of(loads: list[float]) -> list[SearchRow]:
    return [{"load": load, "value": 100.0 + 10 * number % 30, "latency_ns": 1e6 * (1 + number % 3), "point_id": "p",
             "state": "meets the limits", "mark": ""} for number, load in enumerate(loads)]  # fmt: skip


def test_three_dots_are_no_figure() -> None:
    assert search_curve(rows_of([1, 2, 3]), "users", "transactions per second") is None
    assert search_curve(rows_of([1, 2, 3, 4]), "users", "transactions per second") is not None


def test_a_line_passes_once_through_repeats_at_a_load() -> None:
    chart = search_curve(rows_of([1, 2, 4, 8, 8, 8, 8.2, 16]), "users", "transactions per second")
    assert chart is not None
    lines = read_drawing(render(FigureElement("one", "One.", "One.", chart))).lines
    across = [(start.x, end.x) for start, end in lines if end.x > start.x]
    assert len(across) == 2 * 4, "values and latencies"
    assert any(start.x == end.x and start.y != end.y for start, end in lines), "the range of the repeats"


def test_curves_join_the_medians_of_loads_that_are_near() -> None:
    sample = Sample(3)
    points = [sample.random_point("custom", io(8192, 0.7, "mix"), depth, 20) for depth in (8, 40, 41, 40, 80)]
    rows = [row for row in curve_rows(points, "mix", {}, "mean") if row["direction"] == "read"]
    assert [row["load"] for row in rows] == sorted(row["load"] for row in rows)
    assert len(rows) == 3
    assert rows[1]["low_ns"] is not None
    assert rows[1]["low_ns"] < rows[1]["latency_ns"] < (rows[1]["high_ns"] or 0)
