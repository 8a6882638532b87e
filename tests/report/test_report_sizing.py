"""The report of `assay size`: every section of an answer, figures from its numbers, texts of a need as they are."""

from __future__ import annotations

from typing import Any

import pytest

from assay.document.elements import Document, FactList, Paragraph, Table
from assay.insight.sizing.answer import size
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.need import NeedAsWritten, need_of
from assay.insight.sizing.text import choice_rows
from assay.report.figures_sizing import frontier_chart, growth_chart
from assay.report.html import html_report
from assay.report.pdf import pdf_report
from assay.report.render import render_figures
from assay.report.sections.sizing import REFUSED, sizing_document

HOSTILE = '<script>alert("x")</script> #set \u202e|*_'


def answered(database: dict[str, Any]) -> dict[str, Any]:
    table = {
        "title": HOSTILE,
        "years": 1,
        "database": [{"name": "orders", "growth": "20%", **database}],
        "mail": [{"name": "post", "mailboxes": 100, "size": "1GB", "iops_per_mailbox": 0.1}],
        "candidate": [{"array": "nvme-mirror", "raid": ["1"]}],
    }
    answer = size(NeedAsWritten(table, "need.toml", need_of(table, "test")), Judge(), what_if=False).answer
    return {**answer, "difference": None}


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    return answered({"size": "200GB", "iops": 500})


def document_of(answer: dict[str, Any]) -> Document:
    return sizing_document({"sizing": answer, "run_id": "r", "started_utc_ns": 0})


@pytest.mark.slow(reason="seconds of work; make test has quicker ones of the kind")
def test_every_section_is_there_and_tables_hold_what_was_found(answer: dict[str, Any]) -> None:
    document = document_of(answer)
    assert [one.name for one in document.sections] == ["summary", "need", "candidates", "growth", "what-if", "rules"]
    # A single array has no frontier.
    assert [one.name for one in document.figures] == ["growth"]
    tables = {block.name: block for part in document.sections for block in part.blocks if isinstance(block, Table)}
    assert len(tables["candidates"].rows) == len(answer["candidates"])
    assert len(tables["rules"].rows) == len(answer["rules"])
    assert len(tables["assumptions"].rows) == len(answer["assumptions"])
    told = [block.text for part in document.sections for block in part.blocks if isinstance(block, Paragraph)]
    assert any("post: 100 mailboxes take 1 server" in text for text in told)


def test_a_model_is_named_by_product_and_configuration(answer: dict[str, Any]) -> None:
    facts = next(block for block in document_of(answer).sections[0].blocks if isinstance(block, FactList))
    model = dict(facts.items)["Model"]
    assert "volumes" in model
    assert not any(sign in model for sign in ("model:", "?", "&", "="))


def test_a_purchase_is_said_with_what_it_rests_on(answer: dict[str, Any]) -> None:
    # Data sheets alone are no reason to say that something is to be bought, nor to say it in green.
    first = document_of(answer).sections[0].blocks[0]
    assert isinstance(first, Paragraph)
    assert first.tone == "warn"
    assert first.text.startswith(
        "nvme-mirror, RAID 1, 1 member (one array of a group) comes first by a model that was not calibrated (one "
    )
    assert first.text.endswith("; measure one before you buy it.")

    best = {**answer["chosen"]["fewest_disks"], "model_basis": "calibrated to 4 points of mine.toml; none with log",
            "model_share": 0.07, "probability": 0.93}  # fmt: skip
    first = document_of({**answer, "chosen": {"fewest_disks": best}}).sections[0].blocks[0]
    assert isinstance(first, Paragraph)
    assert (first.tone, first.text) == (
        "good",
        "Buy nvme-mirror, RAID 1, 1 member (one array of a group): by a model that is calibrated to 4 points of"
        " mine.toml, none with log (one standard deviation 7 %) and a demand that may be off by 10 %, it holds the need"
        " of the next year with a probability of 93 %.",
    )


def test_nothing_is_cheapest_without_a_price(answer: dict[str, Any]) -> None:
    assert set(answer["chosen"]) == {"fewest_disks", "smallest", "fastest"}
    older = {**answer, "chosen": {"cheapest": answer["chosen"]["fewest_disks"]}}
    for one in (answer, older):
        document = document_of(one)
        assert [section.name for section in document.sections][3] == "growth"
        assert next(row[0] for row in choice_rows(one)) == "fewest disks"  # type: ignore[arg-type]
        assert "cheapest" not in html_report(document, render_figures(document))


def test_arrays_that_hold_the_need_are_compared_by_cost_and_latency(answer: dict[str, Any]) -> None:
    others = [{**answer["candidates"][0], "label": name, "disks": disks, "latency_ns": 50_000.0}
              for name, disks in (("another", 4), ("a third", 6), ("a fourth", 8))]  # fmt: skip
    document = document_of({**answer, "candidates": [*answer["candidates"], *others]})
    assert [one.name for one in document.figures] == ["frontier", "growth"]
    assert "another: 4, 0.1 ms" in document.figures[0].alternative
    # Without costs nothing costs less, and a line joins two or more.
    caption = document.figures[0].caption
    assert "how many disks it takes" in caption
    assert "costs less" not in caption + str(document.figures[0].chart.to_dict())


def test_titles_are_shown_and_never_run(answer: dict[str, Any]) -> None:
    document = document_of(answer)
    drawings = render_figures(document)
    page = html_report(document, drawings)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "\u202e" not in page
    assert pdf_report(document, drawings).startswith(b"%PDF")


def test_an_answer_without_a_purchase_says_what_is_missing() -> None:
    answer = answered({"size": "20TB", "iops": 500})
    document = document_of(answer)
    assert [one.name for one in document.sections] == ["summary", "need", "candidates", "rules"]
    first = document.sections[0].blocks[0]
    assert isinstance(first, Paragraph)
    assert (first.tone, "nearest comes nvme-mirror" in first.text) == ("bad", True)
    assert not document.figures


def test_figures_of_nothing_are_left_out() -> None:
    assert growth_chart([], 3) is None
    assert frontier_chart([], "cost") is None
    assert frontier_chart([{"label": "a", "cost": 1.0, "latency_ms": 2.0}], "cost") is None


def test_sizes_that_do_not_hold_the_need_stand_at_the_end(answer: dict[str, Any]) -> None:
    refused = {**answer["candidates"][0], "label": "too small", "holds": False, "why_not": ["space: full"]}
    document = document_of({**answer, "candidates": [*answer["candidates"], refused]})
    assert document.sections[-1].name == REFUSED
    shown = {part.name: [block for block in part.blocks if isinstance(block, Table)] for part in document.sections}
    assert "too small" not in str(shown["candidates"])
    assert "too small" in str(shown[REFUSED])
    texts = [block.text for part in document.sections for block in part.blocks if isinstance(block, Paragraph)]
    assert any("2 sizes" in text and "1 of them holds" in text for text in texts)


def test_what_no_row_knows_is_no_column(answer: dict[str, Any]) -> None:
    tables = {block.name: block for part in document_of(answer).sections for block in part.blocks
              if isinstance(block, Table)}  # fmt: skip
    assert "Cost" not in [column.title for column in tables["chosen"].columns]
