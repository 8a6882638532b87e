"""Percentiles of what is under way: read seldom, merged by the core, and none where too few I/Os ended."""

from __future__ import annotations

import json

import pytest

from assay.measure.recent import RecentPercentiles


class Clocks:
    """Clocks of a test, and a core that takes a time to answer."""

    def __init__(self, count: int, *, takes_ns: int = 0) -> None:
        self.now_s, self.cpu_ns, self.takes_ns = 100.0, 0, takes_ns
        self.asked: list[tuple[int, int]] = []
        read = {"count": count, "latency_ns": {"p50": 1e5, "p99": 5e5, "p99_9": 9e5}}
        self.told = {"read": read, "write": None, "activities": [{"read": {**read, "count": 10_000}}]}

    def merged(self, first: int, last: int) -> str:
        self.asked.append((first, last))
        self.cpu_ns += self.takes_ns
        return json.dumps(self.told)

    def percentiles(self, activity: int | None = None) -> RecentPercentiles:
        return RecentPercentiles(
            {"read": "read", "write": "write"}, activity=activity, limit="{side}.{statistic}",
            clock_s=lambda: self.now_s, cpu_ns=lambda: self.cpu_ns,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("count", "known"), [(1, []), (2, ["p50"]), (99, ["p50"]), (100, ["p50", "p99"]), (1000, ["p50", "p99", "p99.9"])]
)
def test_a_percentile_needs_values_beyond_it(count: int, known: list[str]) -> None:
    clocks = Clocks(count)
    found = clocks.percentiles().gauges(clocks.merged, 3, 7)
    assert [one.title.removeprefix("read ") for one in found if one.value is not None] == known
    assert [one.limit for one in found] == ["read.p50", "read.p99", "read.p99.9"]
    assert clocks.asked == [(3, 7)]


def test_nothing_is_asked_before_a_tick_is_over_nor_before_it_is_due() -> None:
    clocks = Clocks(1000)
    percentiles = clocks.percentiles()
    assert not percentiles.gauges(clocks.merged, 0, 0)
    first = percentiles.gauges(clocks.merged, 0, 4)
    clocks.now_s += 0.9
    assert percentiles.gauges(clocks.merged, 1, 5) is first
    clocks.now_s += 0.2
    assert percentiles.gauges(clocks.merged, 2, 6) is not first
    assert clocks.asked == [(0, 4), (2, 6)]


def test_what_takes_long_is_asked_seldom() -> None:
    clocks = Clocks(1000, takes_ns=20_000_000)
    percentiles = clocks.percentiles()
    for _ in range(8):
        percentiles.gauges(clocks.merged, 0, 4)
        clocks.now_s += 1.0
    assert len(clocks.asked) == 2


def test_one_activity_of_several_is_meant() -> None:
    clocks = Clocks(1)
    found = clocks.percentiles(activity=0).gauges(clocks.merged, 0, 4)
    assert [one.value for one in found] == [1e5, 5e5, 9e5]
