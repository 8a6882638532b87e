"""What each host gets of a plan: totals are spread and add up, regions keep apart, what cannot be spread is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.base.errors import UsageError
from assay.workloads.plan import AnyPlan
from assay.workloads.registry import workload_named
from assay.workloads.spread import Share, split_load, split_whole


def shares(kind: str, data: dict[str, Any], hosts: int = 3, *, shared: bool = False) -> list[Any]:
    workload = workload_named(kind)
    plan: AnyPlan = workload.load_plan(data, source="test")
    return [workload.share(plan, Share(place=place, hosts=hosts, shared=shared)) for place in range(hosts)]


@given(st.integers(0, 10_000), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_parts_of_a_whole_add_up_to_it(total: int, weights: list[int]) -> None:
    parts = split_whole(total, weights)
    assert sum(parts) == total
    assert all(abs(part - total * weight / sum(weights)) < 1 for part, weight in zip(parts, weights, strict=True))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(0, 1000))
def test_no_host_gets_less_than_it_takes_at_least(starts: list[int], more: int) -> None:
    parts = split_load(sum(starts) + more, starts, whole=True)
    assert all(part >= start for part, start in zip(parts, starts, strict=True))


def test_outstanding_ios_and_rates_are_spread() -> None:
    plans = shares("io", {"activity": [{"outstanding": 8}]})
    assert [plan.workloads()[0].activities[0].outstanding for plan in plans] == [3, 3, 2]
    plans = shares("io", {"activity": [{"rate": [900, 1800]}]})
    assert [[one.activities[0].rate for one in plan.workloads()] for plan in plans] == [[300, 600]] * 3


def test_points_last_as_long_on_every_host() -> None:
    (first, *_) = shares("io", {"timing": {"max_s": 12.0}})
    assert first.timing.duration_s == 12.0


def test_a_shared_volume_that_is_written_is_kept_apart() -> None:
    plans = shares("io", {"activity": [{"read_share": 0.5, "region": [0.0, 0.9]}]}, shared=True)
    regions = [plan.workloads()[0].activities[0].region for plan in plans]
    assert [pytest.approx(region) for region in [(0.0, 0.3), (0.3, 0.6), (0.6, 0.9)]] == regions
    reading = shares("io", {"activity": [{"read_share": 1.0}]}, shared=True)
    assert {plan.workloads()[0].activities[0].region for plan in reading} == {(0.0, 1.0)}
    assert len({plan.seed for plan in reading}) == 3


@pytest.mark.parametrize("kind", ["tpcc", "brokerage"])
def test_users_are_spread_and_a_search_begins_with_one_each(kind: str) -> None:
    assert [plan.users for plan in shares(kind, {"users": 7})] == [3, 2, 2]
    plans = shares(kind, {"search": {"axis": "users", "end": 100}})
    assert [(plan.search.start, plan.search.end) for plan in plans] == [(1, 34), (1, 33), (1, 33)]
    with pytest.raises(UsageError, match="less than one for each of 3 hosts"):
        shares(kind, {"users": 2})


def test_streams_and_mailboxes_are_spread() -> None:
    plans = shares("tpch", {"test": "throughput", "streams": 4})
    assert [plan.streams for plan in plans] == [2, 1, 1]
    assert sum(plan.mailboxes for plan in shares("mailbox", {"mailboxes": 1000})) == 1000


@pytest.mark.parametrize("kind", ["tpcc", "brokerage", "mailbox", "integrity", "tpch"])
def test_what_writes_is_refused_on_a_shared_target(kind: str) -> None:
    with pytest.raises(UsageError, match="--shared"):
        shares(kind, {}, shared=True)


def test_a_power_test_is_one_streams() -> None:
    with pytest.raises(UsageError, match="the power test is one stream"):
        shares("tpch", {"test": "both"})
