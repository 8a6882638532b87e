"""Costs in one currency: list prices, the user's own over them, and what has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.insight.sizing.candidates import book_for, ladders
from assay.insight.sizing.group_ladder import GroupLadder
from assay.insight.sizing.ladder import Ladder, LadderStep
from assay.insight.sizing.need import Need, need_of
from assay.insight.sizing.search import Found, Outcome
from assay.insight.sizing.sides import comparison_of, comparison_sentence, next_sentences

ENTRY = """
[[price]]
name = "{name}"
kind = "drive"
region = "here"
currency = "{currency}"
dated = 2026-11-01
source = "our quotation 4711"
price = {price}
size = "1.92TB"
"""
DRIVES = {"array": "nvme-md", "drive": "d7-p5520-1920"}


def need(*candidates: dict[str, Any], **others: Any) -> Need:
    table = {"years": 0, "database": [{"size": "200GB", "iops": 2000, "log": "0%"}], "candidate": list(candidates)}
    return need_of({**table, **others}, "test")


def written(folder: Path, *entries: dict[str, Any]) -> Path:
    path = folder / "prices.toml"
    path.write_text("".join(ENTRY.format(**{"currency": "USD", "price": 300, **one}) for one in entries))
    return path


def asked_of(asked: Need, prices: Path | None = None) -> list[Ladder]:
    return ladders(asked, book_for(asked, prices))[0]


def test_a_drive_has_no_public_price_and_takes_ones_own(tmp_path: Path) -> None:
    (ladder,) = asked_of(need(DRIVES))
    step = LadderStep(1, 4)
    assert ladder.cost(step) is None
    assert ladder.price(step).why == "no public list price of d7-p5520-1920 is known"
    path = written(tmp_path, {"name": "d7-p5520-1920"})
    (ladder,) = asked_of(need(DRIVES), path)
    assert (ladder.price(step).once, ladder.price(step).by_month) == (1200, 0)
    assert (ladder.price_used or {})["source"] == "our quotation 4711"
    # What the need says of the server is added, and its price of a disk stands over the file's.
    (ladder,) = asked_of(need({**DRIVES, "cost": 8000}, currency="USD"), path)
    assert ladder.cost(step) == 9200
    (ladder,) = asked_of(need({**DRIVES, "cost": 8000, "disk_cost": 500}, currency="USD"), path)
    assert ladder.cost(step) == 10_000


def test_a_cloud_costs_by_the_month_over_the_service_years() -> None:
    asked = need({"array": "aws-gp3", "volumes": [1]}, service_years=3)
    (ladder,) = asked_of(asked)
    first = ladder.steps[0]
    # 200 GB of 70 %: 267 GiB at 0.08, and what comes with it.
    assert ladder.price(first).by_month == pytest.approx(267 * 0.08)
    assert ladder.cost(first) == pytest.approx(267 * 0.08 * 36)
    assert (ladder.price_used or {})["dated"] == "2026-02-01"


def test_prices_of_other_currencies_and_regions_are_left_out_and_named() -> None:
    (ladder,) = asked_of(need({"array": "aws-gp2"}, currency="EUR"))
    assert ladder.price(ladder.steps[0]).why == "aws-gp2 is listed in USD, and not in EUR"
    (ladder,) = asked_of(need({"array": "aws-gp3", "volumes": [1]}, region="eusc-de-east-1", currency="EUR"))
    assert ladder.price(ladder.steps[0]).by_month == pytest.approx(267 * 0.09394)
    (ladder,) = asked_of(need({"array": "gcp-pd-ssd"}, region="us-east-1"))
    assert ladder.price(ladder.steps[0]).why == "no price of gcp-pd-ssd in us-east-1 is known"
    with pytest.raises(UsageError, match="region: no price in 'mars' is known; known: eastus"):
        asked_of(need({"array": "aws-gp2"}, region="mars"))


def test_costs_without_a_currency_are_not_compared_with_list_prices() -> None:
    own, cloud = asked_of(need({"array": "ps6100xv", "raid": ["10"], "cost": 9}, {"array": "aws-gp2"}))
    assert own.cost(own.steps[0]) == 9
    assert "not in a currency that the need states" in cloud.price(cloud.steps[0]).why


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"name": "aws-gp9"}], "'aws-gp9' is no product of the catalogue or the need; did you mean 'aws-gp3'"),
        ([{"name": "aws-gp3"}, {"name": "aws-gp2", "currency": "EUR"}], "prices are in EUR and USD"),
        ([{"name": "aws-gp3", "price": -3}], "--prices"),
        ([{"name": "aws-gp3", "currency": ""}], "currency"),
    ],
)
def test_a_wrong_price_is_one_line(tmp_path: Path, entries: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        book_for(need(DRIVES), written(tmp_path, *entries))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def outcome_of(asked: Need, prices: Path | None = None) -> Outcome:
    """An outcome in which the largest size of each ladder holds the need."""
    found = asked_of(asked, prices)
    held = [Found(ladder=one, step=next(step for step in one.steps if step.disks in (0, 4))) for one in found]
    outcome = Outcome(need=asked, demand=None, book=book_for(asked, prices))  # type: ignore[arg-type]
    outcome.found = held
    return outcome


def test_both_sides_break_even_or_say_the_price_at_which_they_do(tmp_path: Path) -> None:
    asked = need(DRIVES, {"array": "aws-gp3", "volumes": [1]})
    told = comparison_of(outcome_of(asked))
    assert told is not None
    # Five years of 267 GiB at 0.08 a month, over four drives.
    assert told["break_even_once"] == pytest.approx(267 * 0.08 * 60)
    assert "has no public price: over 5 years it costs less if it is bought for less than 1,282 USD, 320 a drive" in (
        comparison_sentence(told, "USD", 5)
    )
    told = comparison_of(outcome_of(asked, written(tmp_path, {"name": "d7-p5520-1920", "price": 100})))
    assert told is not None
    assert told["break_even_years"] == pytest.approx(400 / (267 * 0.08 * 12))
    assert "has paid for itself after 1.6 years" in comparison_sentence(told, "USD", 5)


def test_what_has_a_price_is_bought_and_the_next_say_why_not() -> None:
    outcome = outcome_of(need(DRIVES, {"array": "aws-gp3"}, {"array": "gcp-pd-ssd"}))
    assert outcome.purchase is not None
    assert outcome.purchase.ladder.array == "aws-gp3"
    dearer, unknown = next_sentences(outcome)
    assert dearer.startswith("gcp-pd-ssd: 267 GiB costs 2,723 USD over 5 years, 2.1")
    assert unknown == "4 x d7-p5520-1920, md RAID 10: no public list price of d7-p5520-1920 is known."
    assert isinstance(outcome.of_side("on-premises")[0].ladder, GroupLadder)
