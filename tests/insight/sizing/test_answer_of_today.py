"""What terminal and report say of an answer of today's classes, on one screen."""

from __future__ import annotations

import textwrap

import pytest

from assay.apps.cli.size import answer_blocks
from assay.document.elements import Paragraph, Table
from assay.insight.sizing.answer import size
from assay.insight.sizing.candidates import book_for
from assay.insight.sizing.judge import Judge
from assay.insight.sizing.need import NeedAsWritten, need_of
from assay.record.shapes.sizing import Sizing
from assay.report.sections.sizing import sizing_document

CANDIDATES = [
    {"array": "nvme-md", "drive": "d7-p5520-1920", "disks": [2, 4]},
    {"array": "aws-gp3", "volumes": [1]},
    {"array": "gcp-pd-ssd", "volumes": [1]},
    {"array": "aws-sc1"},
]


@pytest.fixture(scope="module")
def answer() -> Sizing:
    table = {"years": 1, "title": "today", "candidate": CANDIDATES,
             "database": [{"name": "orders", "size": "300GB", "growth": "30%", "iops": 1500}]}  # fmt: skip
    need = need_of(table, "test")
    asked = NeedAsWritten(table, "need.toml", need)
    return size(asked, Judge(), what_if=False, ios=2_000_000, book=book_for(need, None)).answer


def told(answer: Sizing) -> list[str]:
    return [block.text for block in answer_blocks(answer) if isinstance(block, Paragraph)]


def test_the_cheapest_by_list_prices_is_bought_and_both_sides_are_told(answer: Sizing) -> None:
    assert set(answer["chosen"]) == {"cheapest", "on_premises", "smallest", "fastest"}
    best, own = answer["chosen"]["cheapest"], answer["chosen"]["on_premises"]
    assert (best["array"], own["array"]) == ("aws-gp3", "nvme-md")
    assert (best["rebuild_h"], best["loss_probability"], best["disks"]) == (None, None, 0)
    assert best["cost"] == pytest.approx((best["by_month"] or 0) * 60)
    assert best["iops_per_unit"] == pytest.approx(best["iops_held"] / (best["by_month"] or 1))
    wear = own["endurance"]
    assert wear is not None
    # Data and their copies, and what garbage collection adds; one drive write a day is what it is made for.
    assert wear["write_amplification"] > 2
    assert 0 < wear["drive_writes_a_day"] < wear["rated_writes_a_day"] == pytest.approx(1)
    assert any(one["resource"] == "endurance of the drives" for one in own["growth"]["runs_out"])


def test_the_terminal_fits_one_screen_and_says_date_and_source_of_prices(answer: Sizing) -> None:
    words = told(answer)
    assert words[0].startswith("Buy aws-gp3: ")
    assert " USD a month, " in words[0]
    assert "made of the provider's own limits" in words[0]
    whole = "\n".join(words)
    for part in (
        "has no public price", "Not bought: gcp-pd-ssd", "RPO 0", "last snapshot", "aws-gp3 of 2026-02-01 in us-east-1",
        "from aws/agent-toolkit-for-aws", "--prices FILE has yours",
    ):  # fmt: skip
        assert part in whole
    rows = sum(len(block.rows) for block in answer_blocks(answer) if isinstance(block, Table))
    assert sum(len(textwrap.wrap(one, 100)) for one in words) + 4 * rows <= 36


def test_what_a_cloud_does_not_have_is_no_row_of_the_report(answer: Sizing) -> None:
    document = sizing_document({"sizing": answer, "run_id": "r", "started_utc_ns": 0})  # type: ignore[typeddict-item]
    blocks = [block for part in document.sections for block in part.blocks]
    names = {block.name for block in blocks if isinstance(block, Table)}
    assert {"chosen", "prices", "refused"} <= names
    refused = next(block for block in blocks if isinstance(block, Table) and block.name == "refused")
    assert any("aws-sc1" in cell.text for row in refused.rows for cell in row)
