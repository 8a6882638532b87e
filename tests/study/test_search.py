"""The search on simulated devices, whose answer is known."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.run.search import Curve, search
from assay.workloads.io.workload import IoWorkload
from assay.workloads.workload import Axis

LIMIT = "read.mean<=20ms"
FIGURES = IoWorkload.figures


class Device:
    """Points of a simulated device: whether a load passes, and the throughput at it."""

    def __init__(
        self,
        passes: Callable[[float], bool],
        iops: Callable[[float], float] = lambda load: load * 100,
        reason: str = LIMIT,
    ) -> None:
        self.passes, self.iops, self.failing = passes, iops, reason
        self.asked: list[tuple[float, str, int]] = []
        self.ids = (f"p{number:04d}" for number in itertools.count(1))

    def measure(self, load: float, purpose: str, repeat: int) -> dict[str, Any]:
        self.asked.append((load, purpose, repeat))
        iops = self.iops(load)
        return {
            "id": next(self.ids),
            "passes": self.passes(load),
            "total": {"iops": iops, "bytes_per_s": iops * 8192},
            "batches": {"total": {"iops": [iops * factor for factor in (0.99, 1.0, 1.01, 1.0)]}},
        }

    def reason(self, point: Any) -> str | None:
        return None if point["passes"] else self.failing

    @property
    def loads(self) -> list[float]:
        return [load for load, purpose, _ in self.asked if purpose == "search"]

    def search(self, axis: Axis, repeats: int = 1) -> dict[str, Any]:
        return search(axis, self.measure, self.reason, figures=FIGURES, repeats=repeats)


def depths(start: float = 1, end: float = 1024, resolution_share: float = 0.06) -> Axis:
    return Axis(name="outstanding", start=start, end=end, whole=True, resolution_share=resolution_share)


def rates(start: float = 100, end: float = 1e6, resolution_share: float = 0.06) -> Axis:
    return Axis(name="rate", start=start, end=end, whole=False, resolution_share=resolution_share)


@given(largest=st.integers(1, 1023), share=st.floats(0.005, 0.3))
def test_it_finds_the_largest_passing_depth_within_the_resolution(largest: int, share: float) -> None:
    answer = Device(lambda load: load <= largest).search(depths(resolution_share=share))

    best, failing = answer["max"]["outstanding"], answer["first_failing"]["outstanding"]
    assert best <= largest < failing
    assert failing - best <= max(1, share * failing)
    assert (answer["limited_by"], answer["non_monotone"]) == (LIMIT, False)


@given(largest=st.floats(100, 9e5), share=st.floats(0.01, 0.3))
def test_it_finds_the_largest_passing_rate_within_the_resolution(largest: float, share: float) -> None:
    answer = Device(lambda load: load <= largest).search(rates(resolution_share=share))

    best, failing = answer["max"]["rate"], answer["first_failing"]["rate"]
    assert best <= largest < failing
    assert failing - best <= share * failing


@given(largest=st.integers(0, 2000), start=st.integers(1, 50), end=st.integers(50, 1024))
def test_it_goes_upward_and_never_beyond_the_axis(largest: int, start: int, end: int) -> None:
    device = Device(lambda load: load <= largest)
    device.search(depths(start, end))

    assert device.loads[0] == start
    assert all(start <= load <= end for load, _, _ in device.asked)
    assert len(set(device.loads)) == len(device.loads)
    # No load is tried that is more than twice one that passed, so a slow device is never flooded.
    for position, load in enumerate(device.loads[1:], start=1):
        assert load <= 2 * max([start, *(tried for tried in device.loads[:position] if tried <= largest)])


@given(largest=st.integers(1, 1023), repeats=st.integers(0, 3))
def test_both_ends_are_measured_again_and_all_points_kept(largest: int, repeats: int) -> None:
    device = Device(lambda load: load <= largest)
    answer = device.search(depths(), repeats=repeats)

    again = [(load, repeat) for load, purpose, repeat in device.asked if purpose == "repeat"]
    ends = [answer["max"]["outstanding"], answer["first_failing"]["outstanding"]]
    assert again == [(end, repeat) for repeat in range(1, repeats + 1) for end in ends]
    assert len(answer["point_ids"]) == len(set(answer["point_ids"])) == len(device.asked)


def test_it_says_when_no_load_passes() -> None:
    answer = Device(lambda _: False).search(depths())

    assert answer["max"] is None
    assert answer["interval_95"] is None
    assert answer["first_failing"]["outstanding"] == 1
    assert answer["limited_by"] == LIMIT


def test_it_says_when_the_axis_ends_first() -> None:
    answer = Device(lambda _: True).search(depths(end=100))

    assert (answer["max"]["outstanding"], answer["first_failing"], answer["limited_by"]) == (100, None, "axis end")


def test_it_stops_where_more_load_brings_no_more_and_answers_with_the_most() -> None:
    device = Device(lambda _: True, iops=lambda load: min(load, 10) * 100 - load / 1000)
    answer = device.search(depths())

    assert answer["limited_by"] == "saturation"
    assert answer["max"]["iops"] == pytest.approx(1000, rel=0.01)
    assert max(device.loads) <= 64


def test_a_plateau_does_not_stop_a_search_that_asks_for_the_limit_alone() -> None:
    axis = Axis(name="outstanding", start=1, end=256, whole=True, stops_at_plateau=False)
    answer = Device(lambda load: load <= 100, iops=lambda _: 1000).search(axis)

    assert 94 <= answer["max"]["outstanding"] <= 100


@pytest.mark.parametrize("reason", ["generator", "errors", "rate not sustained"])
def test_what_is_no_limit_stops_it_too_and_is_named(reason: str) -> None:
    answer = Device(lambda load: load <= 20, reason=reason).search(depths())

    assert answer["limited_by"] == reason
    assert 18 <= answer["max"]["outstanding"] <= 20


@pytest.mark.parametrize(
    ("passing", "flagged"),
    [
        ({1.0: True, 2.0: True, 4.0: False}, False),
        ({1.0: True, 2.0: False, 4.0: True}, True),
        ({1.0: False, 2.0: True, 4.0: False}, True),
        ({1.0: False, 2.0: False}, False),
    ],
)
def test_a_curve_that_fails_below_a_load_that_passes_is_flagged(passing: dict[float, bool], flagged: bool) -> None:
    device = Device(lambda load: passing[load])
    curve = Curve(axis=depths(), reason=device.reason, figures=FIGURES)
    for load in passing:
        curve.add(load, device.measure(load, "search", 0))

    assert curve.is_non_monotone is flagged


def test_a_load_fails_when_half_of_its_points_do() -> None:
    outcomes = iter([True, False, True])
    device = Device(lambda _: next(outcomes))
    curve = Curve(axis=depths(), reason=device.reason, figures=FIGURES)

    failures = []
    for _ in range(3):
        curve.add(8, device.measure(8, "repeat", 1))
        failures.append(curve.failure(8))
    assert failures == [None, LIMIT, None]


@given(largest=st.integers(8, 800), seed=st.integers(0, 2**32), noise=st.floats(0, 0.1))
def test_a_noisy_device_is_answered_within_its_noise(largest: int, seed: int, noise: float) -> None:
    chance = random.Random(seed)
    device = Device(lambda load: load * chance.uniform(1 - noise, 1 + noise) <= largest + 0.5)
    answer = device.search(depths(), repeats=2)

    best, failing = answer["max"], answer["first_failing"]
    assert best is not None
    assert best["outstanding"] <= (largest + 0.5) / (1 - noise)
    # Every load this far below passes whatever the noise does, so the search climbed at least half-way to it.
    assert best["outstanding"] >= (largest + 0.5) / (1 + noise) / 2 - 1
    assert failing is None or best["outstanding"] < failing["outstanding"]


@given(largest=st.integers(2, 1000))
def test_the_interval_holds_the_answer_and_reaches_towards_the_failing_end(largest: int) -> None:
    answer = Device(lambda load: load <= largest).search(depths())

    low, high = answer["interval_95"]
    assert low <= answer["max"]["iops"] <= high
    assert high >= (answer["max"]["iops"] + answer["first_failing"]["iops"]) / 2
    assert low > answer["max"]["iops"] * 0.9
