"""Reports of studies: the section comes first and says what was found; other reports stay as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sample import Sample, io, write_run
from sample_study import study_run

from assay.document.charts import with_others
from assay.document.elements import Document, FigureElement, Paragraph, Table
from assay.document.palette import MAX_SERIES
from assay.insight.studies.files import study_names
from assay.report import write_report
from assay.report.assemble import assemble
from assay.report.facts import load_facts
from assay.report.figures_study import LevelRow, level_figure
from assay.report.sections.study import _groups
from assay.workloads.transactions.report.study import device_rows, partition_rows, partitioned_tables, written_rows

MEANING = r" \((new orders per minute|member: one array of a group|one array of a group)\)"
"""What the first use of a word has behind it."""


def document_of(run: Path) -> Document:
    return assemble(load_facts(run))


def section_of(document: Document) -> Any:
    section = document.sections[0]
    assert section.name == "study"
    return section


def blocks(document: Document, kind: type) -> list[Any]:
    return [block for block in section_of(document).blocks if isinstance(block, kind)]


def drawn(figure: FigureElement) -> list[dict[str, Any]]:
    """What a chart draws: rows of its first data."""
    (rows, *_) = figure.chart.to_dict()["datasets"].values()
    return list(rows)


@pytest.mark.parametrize("name", study_names())
def test_every_preset_has_a_section_with_sentences_figure_and_table(tmp_path: Path, name: str) -> None:
    run = study_run(tmp_path, name)
    document = document_of(run)
    told = json.loads((run / "run.json").read_text())["study"]

    strong = [block.text for block in blocks(document, Paragraph) if block.strong]
    # Where brackets stand behind the word already, its meaning comes first in them.
    plain = [re.sub(r"\((new orders per minute); ", "(", re.sub(MEANING, "", text)) for text in strong]
    assert plain == told["sentences"] != []
    figures = blocks(document, FigureElement)
    assert figures
    assert all(figure.chart.to_dict() for figure in figures)
    beside = ("matrix-", "study-tpch-queries-", "study-tpch-devices")
    tables = [table.name for table in blocks(document, Table) if not table.name.startswith(beside)]
    assert tables == ["published-table" if told["published"] else "levels"]
    assert document.title.endswith(f": {told['title']}")


def test_the_table_names_the_baseline_and_what_each_level_differs_by(tmp_path: Path) -> None:
    (table,) = blocks(document_of(study_run(tmp_path, "raid-policy")), Table)

    against = [column.title for column in table.columns].index("Against baseline")
    # Each level holds 20 % less than the one before.
    assert [row[against].text.split(" +-")[0] for row in table.rows] == ["+25 %", "baseline", "-20 %"]


def test_figures_of_databases_have_titles_and_units_of_their_own(tmp_path: Path) -> None:
    document = document_of(study_run(tmp_path, "oltp-layout"))

    (table,) = blocks(document, Table)
    assert [column.title for column in table.columns][1:8] == [
        "NOPM", "95 % interval", "TPM", "Response p90", "Data reads", "Data writes", "Log writes",
    ]  # fmt: skip
    figures = blocks(document, FigureElement)
    assert [figure.name for figure in figures[4:]] == [
        "study-storage", "study-written-device", "study-written-file", "study-devices",
    ]  # fmt: skip
    titles = [figure.chart.to_dict()["layer"][-1]["encoding"]["y"]["title"] for figure in figures[:4]]
    assert titles == [
        "new orders per minute", "response time of new orders, p90 (ms)", "mean data write latency (us)",
        "mean log write latency (us)",
    ]  # fmt: skip
    spanned = ["whiskers" in figure.caption for figure in figures[:4]]
    assert spanned == [True, False, False, False]


def test_figures_of_a_brokerage_speak_of_its_own_transactions(tmp_path: Path) -> None:
    run = study_run(tmp_path, "oltp-layout")
    told = json.loads((run / "run.json").read_text())
    for result in told["study"]["results"]:
        result["values"] = {
            {"nopm": "trade_results_per_s"}.get(name, name): value
            for name, value in result["values"].items()
            if name in ("nopm", "tpm", "response_p90")
        }
    told["study"]["comparison"]["figure"] = "trade_results_per_s"
    (run / "run.json").write_text(json.dumps(told))
    titles = [
        figure.chart.to_dict()["layer"][-1]["encoding"]["y"]["title"]
        for figure in blocks(document_of(run), FigureElement)[:2]
    ]
    assert titles == ["trade results per second", "response time of trade results, p90 (ms)"]


def test_a_study_of_databases_shows_their_storage_at_each_level(tmp_path: Path) -> None:
    run = study_run(tmp_path, "oltp-partition")
    storage, written = (
        figure
        for figure in blocks(document_of(run), FigureElement)
        if figure.name in ("study-storage", "study-written-device")
    )
    points = [json.loads(line) for line in (run / "points.jsonl").read_text().splitlines()]

    panels = [panel["data"]["name"] for panel in storage.chart.to_dict()["hconcat"]]
    throughput, ios, latency = (storage.chart.to_dict()["datasets"][name] for name in panels)
    labels = ["one table", "4 partitions", "8 partitions"]
    assert [row["level"] for row in throughput] == labels
    assert [row["value"] * 60 for row in throughput] == pytest.approx([one["oltp"]["tpm_client"] for one in points])
    assert [(row["series"], row["value"]) for row in ios[:3]] == [
        (f"{role} {side}s", pytest.approx((points[0]["roles"][role][side] or {"iops": 0})["iops"]))
        for role, side in (("data", "read"), ("data", "write"), ("log", "write"))
    ]
    assert [row["value"] * 1e3 for row in latency] == pytest.approx(
        [one["roles"]["data"]["read"]["latency_ns"]["mean"] for one in points]
    )
    assert {row["series"] for row in drawn(written)} == {"vda (data)", "vdb (log)"}
    devices = [device["write_bytes_per_s"] / 2**20 for one in points for device in one["oltp"]["storage"]["devices"]]
    assert [row["value"] for row in drawn(written)] == pytest.approx(devices)


def test_without_devices_the_server_says_what_was_written() -> None:
    counted = {"write_bytes_per_s": 3 * 2.0**20, "log_bytes_per_s": 2.0**20}
    point = {"oltp": {"storage": {"devices": [], "database": counted}}}

    assert [(row["series"], row["value"]) for row in written_rows([("1", point)], "device")] == [
        ("data (server)", 3.0), ("log (server)", 1.0),
    ]  # fmt: skip


def test_of_each_device_the_outstanding_ios_are_rate_times_latency_over_the_points_of_a_level() -> None:
    def point(name: str, rate: float) -> dict[str, Any]:
        log = {"device": "log", "roles": ["log"], "read_iops": 0.0, "write_iops": 0.0}
        data = {"device": "data", "roles": ["data"], "read_iops": rate, "read_latency_mean_ns": 4e6}
        data |= {"write_iops": 100.0, "write_latency_mean_ns": 2e6}
        return {"id": name, "oltp": {"storage": {"devices": [data, log]}}}

    rows = device_rows([("4", point("p0001", 50.0)), ("4", point("p0002", 150.0))])

    assert [(row["panel"], row["series"], row["value"], row["point_id"]) for row in rows] == [
        ("I/Os outstanding", "data (data)", pytest.approx(0.6), "p0001"),
        ("I/Os outstanding", "log (log)", 0.0, "p0001"),
        ("write latency (ms)", "data (data)", pytest.approx(2.0), "p0001"),
    ]


def test_writes_to_files_are_told_where_the_server_counts_them(tmp_path: Path) -> None:
    run = study_run(tmp_path, "oltp-partition")
    (written,) = (figure for figure in blocks(document_of(run), FigureElement) if figure.name == "study-written-file")
    assert {row["series"] for row in drawn(written)} == {"order_line", "stock"}

    point = {"oltp": {"storage": {"files": []}}}
    assert written_rows([("1", point)], "file") == []


def test_a_partitioned_table_shows_the_mean_of_its_files() -> None:
    def point(layout: dict[str, Any] | None, *names: str) -> dict[str, Any]:
        files = [{"file": f"tpcc/{name}", "write_bytes_per_s": (1 + at) * 2.0**20} for at, name in enumerate(names)]
        return {"oltp": {"layout": layout, "storage": {"devices": [], "files": files}}}

    layout = {"databases": [{"partition": {"table": "stock"}}]}
    levels = [("one", point(None, "stock", "orders")), ("two", point(layout, "stock#P#p1", "orders", "stock#P#p2"))]
    assert partitioned_tables(levels) == ["stock"]
    assert [(row["level"], row["value"]) for row in partition_rows(levels, ["stock"])] == [("one", 1.0), ("two", 2.0)]


def test_the_smallest_of_too_many_series_are_added_up() -> None:
    rows = [{"level": level, "series": str(size), "value": float(size)} for level in "ab" for size in range(1, 9)]

    shown = with_others(rows)
    assert [row["series"] for row in shown if row["level"] == "a"] == ["4", "5", "6", "7", "8", "others"]
    assert [row["value"] for row in shown if row["series"] == "others"] == [6.0, 6.0]


def test_rising_levels_are_joined_and_others_are_bars(tmp_path: Path) -> None:
    def marks(name: str) -> set[str]:
        figure = blocks(document_of(study_run(tmp_path, name)), FigureElement)[0]
        return {layer["mark"]["type"] for layer in figure.chart.to_dict()["layer"]}

    assert "line" in marks("working-set") - marks("raid-policy")
    assert "bar" in marks("raid-policy") - marks("working-set")
    assert "bar" in marks("fill"), "a line of three dots is none"


def test_bands_of_a_model_are_drawn_and_named(tmp_path: Path) -> None:
    plain, banded = (document_of(study_run(tmp_path, "fill", bands=bands)) for bands in (False, True))

    assert "how far the model may be off" in blocks(banded, FigureElement)[0].caption
    assert "how far the model may be off" not in blocks(plain, FigureElement)[0].caption


def test_many_series_are_spread_over_figures_by_what_they_share(tmp_path: Path) -> None:
    figures = blocks(document_of(study_run(tmp_path, "paths")), FigureElement)[:4]

    told = [figure.alternative for figure in figures]
    assert [["sequential read", "sequential write", "random read", "random write"][at] in text
            for at, text in enumerate(told)] == [True] * 4  # fmt: skip


def test_all_paths_and_queue_depths_share_one_figure_with_a_line_per_number_of_paths(tmp_path: Path) -> None:
    (figure,) = blocks(document_of(study_run(tmp_path, "paths", bands=True)), FigureElement)[4:]

    assert figure.name == "study-iops-over-queue-depth-1"
    assert figure.caption.startswith("I/Os per second by queue depth")
    rows = drawn(figure)
    assert list(dict.fromkeys(row["level"] for row in rows)) == ["4", "8", "16", "32"]
    assert {row["series"] for row in rows} == {
        f"{paths}, random {side}" for paths in ("1 path", "2 paths", "3 paths") for side in ("reads", "writes")
    }
    assert all(row["low"] < row["value"] < row["high"] for row in rows)


def test_a_study_of_two_numeric_factors_draws_a_line_per_level_of_the_second(tmp_path: Path) -> None:
    (figure,) = blocks(document_of(study_run(tmp_path, "block-and-mix")), FigureElement)

    assert [(row["level"], row["series"]) for row in drawn(figure)][::5] == [
        ("8 KiB", "100 % reads"), ("16 KiB", "80 % reads"), ("32 KiB", "70 % reads"), ("64 KiB", "60 % reads"),
    ]  # fmt: skip


def test_series_that_share_nothing_are_drawn_together_as_far_as_they_can_be_told_apart() -> None:
    rows = [{"series": f"{depth} out", "group": str(depth)} for depth in range(8)]

    assert [len(group) for group in _groups(rows)] == [4, 4]


def test_a_figure_refuses_more_series_than_can_be_told_apart() -> None:
    rows = [
        {"level": "a", "series": str(number), "value": 1.0, "low": None, "high": None, "band_low": None,
         "band_high": None} for number in range(MAX_SERIES + 1)
    ]  # fmt: skip

    with pytest.raises(ValueError, match="at most"):
        level_figure(rows, "iops", "x", joined=True)
    assert level_figure([], "iops", "x", joined=True) is None


def test_an_axis_of_bytes_has_a_unit_that_suits() -> None:
    rows: list[LevelRow] = [
        {"level": level, "series": "all", "unit": "bytes", "value": value, "low": None, "high": None, "band_low": None,
         "band_high": None, "point_ids": ["p1"]}
        for level, value in (("64 kB", 26_738_688.0), ("256 MB", 0.0))
    ]  # fmt: skip
    chart = level_figure(rows, "spilled", "memory of a sort", joined=False)

    assert chart is not None
    drawn = chart.to_dict()["layer"][0]["encoding"]
    assert drawn["y"]["title"] == "bytes that queries wrote to temporary files (MB)"
    # No level loses its name.
    assert drawn["x"]["axis"]["labelOverlap"] is False


@pytest.mark.parametrize(("longest_s", "unit"), [(76_794.0, "h"), (600.0, "min"), (110.0, "s")])
def test_an_axis_of_times_has_a_unit_that_suits(longest_s: float, unit: str) -> None:
    rows: list[LevelRow] = [
        {"level": level, "series": "all", "unit": "s", "value": value, "low": None, "high": None, "band_low": None,
         "band_high": None, "point_ids": ["p1"]}
        for level, value in (("held", longest_s), ("fast", 8.0))
    ]  # fmt: skip
    chart = level_figure(rows, "rebuild_time", "rate", joined=False)

    assert chart is not None
    assert chart.to_dict()["layer"][0]["encoding"]["y"]["title"] == f"time until a lost disk is on the spare ({unit})"


def test_every_section_says_which_level_it_speaks_of(tmp_path: Path) -> None:
    document = document_of(study_run(tmp_path, "raid-policy"))

    points = next(section for section in document.sections if section.name == "points")
    (table,) = [block for block in points.blocks if isinstance(block, Table)]
    assert {row[1].text for row in table.rows if row[0].text.startswith("p")} == {
        f"RAID {policy}: 8 KiB random 70/30" for policy in (10, 50, 6)
    }
    assert "iops" not in [section.name for section in document.sections]


def test_the_target_of_each_part_is_named_beside_the_array_of_one(tmp_path: Path) -> None:
    run = study_run(tmp_path, "raid-policy")
    manifest = json.loads((run / "run.json").read_text())
    first = manifest["parts"][0]["target"]
    array = {"title": "An array", "target": first, "raid": "10", "members": 1}
    (run / "run.json").write_text(json.dumps(manifest | {"target": manifest["target"] | {"array": array}}))

    method = next(section for section in document_of(run).sections if section.name == "method")
    (table,) = [block for block in method.blocks if isinstance(block, Table) and block.name == "part-targets"]
    assert [row[1].text for row in table.rows] == [part["target"] for part in manifest["parts"]]
    assert len({row[1].text for row in table.rows}) == 3
    texts = [block.text for block in method.blocks if isinstance(block, Paragraph)]
    assert any("The array below and its parameters at the end are those of raid=10 only" in text for text in texts)


def test_points_of_a_chain_that_was_measured_again_are_told_once(tmp_path: Path) -> None:
    run = study_run(tmp_path, "read-realloc")
    lines = [json.loads(line) for line in (run / "points.jsonl").read_text().splitlines()]
    stale = [{**point, "id": f"p9{place:03}", "key": point["id"]} for place, point in enumerate(lines)]
    again = [{**point, "key": point["id"]} for point in lines]
    (run / "points.jsonl").write_text("".join(json.dumps(point) + "\n" for point in [*stale[:2], *again]))

    assert [point["id"] for point in load_facts(run).points] == [point["id"] for point in lines]


def test_a_study_under_way_has_a_report(tmp_path: Path) -> None:
    sample = Sample(3)
    sample.random_point("a", io(8192, 0.7, "8 KiB random 70/30"), 8, 20)
    study = {"name": "s", "title": "S", "question": "Why?", "order": ["a", "b"], "seed": 1, "factors": [],
             "levels": {}, "comparison": None}  # fmt: skip
    parts = [{"name": name, "title": name.upper(), "plan": {}} for name in ("a", "b")]
    run = write_run(tmp_path, sample, verb="study", status="running", study=study, parts=parts)

    texts = [block.text for block in blocks(document_of(run), Paragraph)]
    assert any("nothing has been compared yet" in text for text in texts)


def test_html_and_pdf_are_written(tmp_path: Path) -> None:
    html, pdf = write_report(study_run(tmp_path, "published"))

    page = html.read_text()
    assert "RAID 10 over RAID 50" in page
    assert "fitted to" in page
    assert pdf.read_bytes().startswith(b"%PDF")


def test_a_run_that_is_no_study_has_no_such_section(document: Document) -> None:
    assert "study" not in [section.name for section in document.sections]
    assert document.title == "assay.data in /srv/db on db07: whole examination"
