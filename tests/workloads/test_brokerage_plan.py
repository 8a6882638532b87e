"""Plans of the brokerage: what they ask for, what they refuse, and how they judge a point."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.workloads.brokerage.application import BROKERAGE
from assay.workloads.brokerage.job import fits
from assay.workloads.brokerage.plan import (
    ORDERED,
    BrokerageMix,
    BrokeragePlan,
)
from assay.workloads.registry import workload_named

BROKERAGE_KIND = workload_named("brokerage")


def plan(**changes: Any) -> BrokeragePlan:
    return BROKERAGE_KIND.load_plan(changes, source="plan")


@given(st.lists(st.integers(0, 1000), min_size=8, max_size=8).filter(any))
def test_shares_of_any_mix_add_up_and_results_follow_orders(weights: list[int]) -> None:
    shares = BrokerageMix(**dict(zip(ORDERED, weights, strict=True))).shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["trade_result"] == pytest.approx(0.99 * shares["trade_order"])
    assert shares["market_feed"] == pytest.approx(shares["trade_result"] / 10)


def test_the_published_mix_is_the_default() -> None:
    mix = plan().mix
    assert mix.weights == [0, 190, 180, 140, 130, 101, 80, 49, 20, 0, 0]
    assert {name: round(share, 3) for name, share in mix.shares.items()} == {
        "trade_status": 0.19, "market_watch": 0.18, "security_detail": 0.14, "customer_position": 0.13,
        "trade_order": 0.101, "trade_lookup": 0.08, "broker_volume": 0.049, "trade_update": 0.02,
        "trade_result": 0.1, "market_feed": 0.01,
    }  # fmt: skip


def counted(count_of: dict[str, int], p90_ns: float = 1e6) -> dict[str, Any]:
    return {
        name: {"count": count_of.get(name, 0), "latency_ns": {"p90": p90_ns} if count_of.get(name) else None}
        for name in BROKERAGE.transactions
    }


def test_a_share_passes_within_its_tolerance() -> None:
    asked = plan(limits=["response.p90<2s"])
    right = {name: round(share * 1e6) for name, share in asked.mix.shares.items()}
    assert {one["pass_mix"] for name, one in asked.judged(counted(right)).items() if name != "data_maintenance"} == {
        True
    }
    assert sum(one["mix"] or 0 for one in asked.judged(counted(right)).values()) == pytest.approx(1)
    short = right | {"trade_result": right["trade_result"] // 2}
    judged = asked.judged(counted(short))
    assert judged["trade_result"]["pass_mix"] is False
    assert judged["data_maintenance"]["pass_mix"] is None
    # Of few transactions a share says little.
    few = {name: round(share * 100) for name, share in asked.mix.shares.items()} | {"market_feed": 0}
    assert asked.judged(counted(few))["market_feed"]["pass_mix"] is True


def test_a_response_passes_where_all_limits_on_it_are_met() -> None:
    counts = dict.fromkeys(BROKERAGE.transactions, 10)
    asked = plan(limits=["response.p90<2s", "trade_order.p90<500us", "read.mean<20ms"])
    judged = asked.judged(counted(counts))
    assert (judged["trade_status"]["pass_latency"], judged["trade_order"]["pass_latency"]) == (True, False)
    assert asked.judged(counted({}))["trade_status"]["pass_latency"] is None
    assert plan().judged(counted(counts))["trade_status"]["pass_latency"] is None


def test_presets_have_a_limit_on_each_response() -> None:
    assert BROKERAGE_KIND.presets() == ["orders", "strict"]
    strict = BROKERAGE_KIND.preset("strict")
    bounded = {text.partition(".p90")[0] for text in strict.limits}
    assert {*BROKERAGE.transactions} - bounded == {"data_maintenance"}


def test_customers_are_shared_out_by_the_hundred() -> None:
    assert plan(customers=1000).shares(3) == [400, 300, 300]
    assert plan().shares(1) == [1000]


def test_clerks_have_connections_of_their_own() -> None:
    asked = plan(threads=2)
    assert [asked.desk_connections(users, 1) for users in (1, 4, 8, 100)] == [1, 2, 4, 50]
    assert asked.desk_connections(8, 2) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"customers": 150}, "give 200"),
        ({"mix": {"trade_result": 10}}, "trade_result"),
        ({"mix": "trade_order=0"}, "every weight is 0"),
        ({"layout": {"partition_table": "broker", "partition_ways": 2}}, "partition_table"),
        ({"limits": ["trade_orders.p90<2s"]}, "trade_order"),
        ({"days": 0}, "days"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan(**changes)


def test_tables_have_the_rows_that_they_should() -> None:
    expected = {"customer": 100, "trade": 1000, "watch_item": 500, "holding": 40, "trade_request": 0}
    assert fits("customer", 100, expected, is_fresh=True)
    assert not fits("customer", 99, expected, is_fresh=False)
    assert not fits("trade", 1001, expected, is_fresh=True)
    assert fits("trade", 1001, expected, is_fresh=False)
    assert not fits("trade", 999, expected, is_fresh=False)
    assert fits("watch_item", 700, expected, is_fresh=False)
    assert not fits("watch_item", 1200, expected, is_fresh=False)
    assert fits("holding", 1, expected, is_fresh=False)
