"""Units of throughput in a paper: both, or one of them, in texts, tables and axes."""

from __future__ import annotations

import altair as alt
import pytest

from assay.document.elements import Cell, Column, Document, FigureElement, Paragraph, Section, Table
from assay.report.paper.shown_units import in_units

pytestmark = pytest.mark.usefixtures("unchecked_charts")


def document(*blocks: Paragraph | Table | FigureElement) -> Document:
    return Document("T", "", [Section("s", "S", list(blocks))], "", is_paper=True)


def first(made: Document) -> Paragraph | Table | FigureElement:
    block = made.sections[0].blocks[0]
    assert isinstance(block, Paragraph | Table | FigureElement)
    return block


@pytest.mark.parametrize(
    ("units", "shown"),
    [
        ("both", "100 MiB/s (105 MB/s), 1 MiB/s, 8 KiB"),
        ("binary", "100 MiB/s, 1 MiB/s, 8 KiB"),
        ("decimal", "105 MB/s, 1.05 MB/s, 8 KiB"),
    ],
)
def test_texts_have_the_units_that_are_wanted(units: str, shown: str) -> None:
    given = document(Paragraph("100 MiB/s (105 MB/s), 1 MiB/s, 8 KiB"))
    assert first(in_units(given, units)) == Paragraph(shown)  # type: ignore[arg-type]


def test_a_table_loses_the_column_of_the_other_unit_and_converts_one_that_is_alone() -> None:
    columns = [Column("Point"), Column("MiB/s"), Column("MB/s"), Column("MiB/s read")]
    given = Table(
        "t", "T", columns, [[Cell("p1"), Cell("100"), Cell("105"), Cell("2.00")], [Cell("p2"), *[Cell("-")] * 3]]
    )
    made = first(in_units(document(given), "decimal"))
    assert isinstance(made, Table)
    assert [column.title for column in made.columns] == ["Point", "MB/s", "MB/s read"]
    assert [[cell.text for cell in row] for row in made.rows] == [["p1", "105", "2.10"], ["p2", "-", "-"]]


def test_a_table_whose_cells_span_rows_keeps_its_shape() -> None:
    columns = [Column("Point"), Column("Side"), Column("MiB/s"), Column("MB/s")]
    rows = [[Cell("p1", rowspan=2), Cell("read"), Cell("1"), Cell("2")], [Cell("write"), Cell("3"), Cell("4")]]
    made = first(in_units(document(Table("t", "T", columns, rows)), "binary"))
    assert isinstance(made, Table)
    assert [[cell.text for cell, _ in row] for row in made.placed()] == [["p1", "read", "1"], ["write", "3"]]


def test_an_axis_and_what_lies_along_it_are_converted_once() -> None:
    rows = [{"level": "a", "value": 104.8576, "low": 1.048576}]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x="level:N")
    y = alt.Y("value:Q", title="throughput (MB/s)", scale=alt.Scale(domain=[0, 209.7152]))
    chart = alt.layer(
        base.mark_bar().encode(y=y), base.mark_rule().encode(y=alt.Y("low:Q"), y2="value:Q"),
        base.mark_text().encode(y=y, text="value:Q"),
    )  # fmt: skip
    given = FigureElement("f", "C", "throughput (MB/s)", chart)
    made = first(in_units(document(given), "binary"))
    assert isinstance(made, FigureElement)
    drawn = made.chart.to_dict()
    (data,) = drawn["datasets"].values()
    assert data == [{"level": "a", "value": pytest.approx(100.0), "low": pytest.approx(1.0)}]
    assert drawn["layer"][0]["encoding"]["y"]["title"] == "throughput (MiB/s)"
    assert drawn["layer"][0]["encoding"]["y"]["scale"]["domain"] == pytest.approx([0, 200.0])
    assert made.alternative == "throughput (MiB/s)"


def test_both_units_leave_the_document_as_it_is() -> None:
    given = document(Paragraph("1 MiB/s"))
    assert in_units(given, "both") is given
