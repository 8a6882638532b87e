"""The figure of a comparison: differences with whiskers, at most six series, units on the axis."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.document.palette import COLOURS
from assay.insight.differences import FigureDifference, RunComparison
from assay.report.figures_compare import POINTS_MAX, compare_figure
from assay.workloads.registry import figures_of

METRICS = {figure.name: figure for figure in figures_of({}) if figure.compared}


def difference(
    load: str = "8 outstanding", metric: str = "iops", relative: float | None = 0.2, run: int = 1
) -> FigureDifference:
    interval = None if relative is None else (relative - 0.1, relative + 0.1)
    return FigureDifference(
        workload="8 KiB random 70/30", load=load, figure=METRICS[metric], run=run, a=1.0, b=1.2, relative=relative,
        interval_95=interval, p=0.01, method="batches", status="changed", better=True,
    )  # fmt: skip


def specification(*rows: FigureDifference, runs: tuple[str, ...] = ("one", "two")) -> dict[str, Any]:
    """Return the Vega-Lite document, its shared data put back where they are used."""
    document: dict[str, Any] = compare_figure(RunComparison(runs, 0.05, rows, ())).to_dict()
    datasets = document.get("datasets", {})
    for panel in document["vconcat"]:
        for layer in panel["layer"]:
            layer["data"] = {"values": datasets[layer["data"]["name"]]} if "name" in layer["data"] else layer["data"]
    return document


def marks(panel: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [layer for layer in panel["layer"] if layer["mark"]["type"] == kind]


def test_every_metric_is_a_series_of_its_own_in_the_colour_blind_safe_palette() -> None:
    (panel,) = specification(*(difference(metric=name) for name in METRICS))["vconcat"]
    (points,) = marks(panel, "point")
    assert points["encoding"]["color"]["scale"] == {
        "domain": [metric.title for metric in METRICS.values()],
        "range": list(COLOURS),
    }
    assert len(METRICS) <= 6
    assert points["encoding"]["shape"]["scale"]["domain"] == [metric.title for metric in METRICS.values()]


def test_values_are_percent_and_the_axis_says_of_what() -> None:
    (panel,) = specification(difference(relative=0.2))["vconcat"]
    (points,) = marks(panel, "point")
    assert points["encoding"]["x"]["title"] == "B over A, difference (%)"
    (value,) = points["data"]["values"]
    assert (value["percent"], value["low"], value["high"]) == pytest.approx((20.0, 10.0, 30.0))
    (band,) = marks(panel, "rect")
    assert band["data"]["values"] == [{"from": -5.0, "to": 5.0}]


def test_a_difference_without_interval_has_a_marker_and_no_whisker() -> None:
    row = replace(difference(), interval_95=None)
    (panel,) = specification(row)["vconcat"]
    (points,) = marks(panel, "point")
    assert points["data"]["values"][0]["low"] is None
    whisker = next(rule for rule in marks(panel, "rule") if "x2" in rule["encoding"])
    assert whisker["transform"] == [{"filter": "isValid(datum.low)"}]


def test_what_has_no_difference_is_left_to_the_table() -> None:
    (panel,) = specification(difference(), difference(load="9 outstanding", relative=None))["vconcat"]
    (points,) = marks(panel, "point")
    assert [value["place"] for value in points["data"]["values"]] == ["8 KiB random 70/30, 8 outstanding"]


def test_each_further_run_has_a_panel() -> None:
    document = specification(difference(), difference(run=2), runs=("one", "two", "three"))
    assert [panel["title"] for panel in document["vconcat"]] == ["B", "C"]


def test_of_very_many_points_the_largest_differences_are_shown_and_the_rest_is_told() -> None:
    rows = [difference(load=f"{at} outstanding", relative=at / 100) for at in range(POINTS_MAX + 3)]
    document = specification(*rows)
    (points,) = marks(document["vconcat"][0], "point")
    shown = [value["percent"] for value in points["data"]["values"]]
    assert shown == pytest.approx([float(at) for at in range(3, POINTS_MAX + 3)])
    assert document["title"]["subtitle"] == ["3 more workloads and loads, with smaller differences, are in the table"]


def test_a_comparison_without_any_match_still_draws() -> None:
    assert json.dumps(specification())


def test_it_renders() -> None:
    vl_convert = pytest.importorskip("vl_convert")
    svg = vl_convert.vegalite_to_svg(
        specification(difference(), difference(metric="read_latency_p99_ns", relative=-0.3))
    )
    assert "B over A, difference (%)" in svg
